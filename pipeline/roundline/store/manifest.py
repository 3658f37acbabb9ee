"""`manifest.json`: what a store was made of, what it holds and what to know of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from roundline.errors import StoreError
from roundline.store.schemas import SCHEMA_VERSION

MANIFEST: Final = "manifest.json"


@dataclass(frozen=True)
class ManifestSource:
    """One source file. Only its name is kept: a path may name a user or a machine."""

    name: str
    kind: str
    bytes: int
    sha256: str
    producer: str
    producer_version: str | None
    schema_version: str | None
    truncated: bool


@dataclass(frozen=True)
class ManifestDiagnostic:
    """One thing to know; `source` is its index in the sources, None for the whole capture."""

    code: str
    severity: str
    count: int
    detail: str
    source: int | None = None


@dataclass(frozen=True)
class Manifest:
    """The whole manifest. `tables` counts rows; `capabilities` says present, partial or absent."""

    schema_version: int
    tool_version: str
    sources: tuple[ManifestSource, ...]
    ranks: tuple[int, ...]
    tables: dict[str, int]
    kernel_ns: int
    capabilities: dict[str, str]
    diagnostics: tuple[ManifestDiagnostic, ...]
    truncated: bool
    options: dict[str, bool]

    def dumps(self) -> str:
        """The manifest as JSON text; equal manifests give equal bytes."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"


def read_manifest(store: Path) -> Manifest:
    """Read a store's manifest.

    Raises:
        StoreError: there is none, it is damaged, or a newer Roundline wrote it.
    """
    path = store / MANIFEST
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        version = int(raw["schema_version"])
    except FileNotFoundError:
        raise StoreError(
            f"{store} is no store: it has no {MANIFEST}; ingest the capture again"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{path} is damaged ({error}): ingest the capture again") from None
    if version != SCHEMA_VERSION:
        advice = "update Roundline" if version > SCHEMA_VERSION else "ingest the capture again"
        raise StoreError(
            f"{store} has store schema {version}, this Roundline reads {SCHEMA_VERSION}: {advice}"
        )
    return _from_json(raw, path)


def _from_json(raw: dict[str, Any], path: Path) -> Manifest:
    try:
        return Manifest(
            **{
                **raw,
                "sources": tuple(ManifestSource(**source) for source in raw["sources"]),
                "diagnostics": tuple(ManifestDiagnostic(**d) for d in raw["diagnostics"]),
                "ranks": tuple(raw["ranks"]),
            }
        )
    except (TypeError, KeyError) as error:
        raise StoreError(f"{path} is damaged ({error}): ingest the capture again") from None
