"""The Parquet store of one capture: schemas, atomic writer, manifest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roundline.errors import StoreError
from roundline.store.manifest import MANIFEST, Manifest, read_manifest

__all__ = ["Manifest", "Store", "is_store", "open_store"]


@dataclass(frozen=True)
class Store:
    """A complete store on disk."""

    path: Path
    manifest: Manifest

    @property
    def marts_dir(self) -> Path:
        """Where marts are kept once they were computed."""
        return self.path / "marts"

    def table_path(self, name: str) -> Path:
        """The Parquet file of a raw table."""
        return self.path / f"{name}.parquet"


def is_store(path: Path) -> bool:
    """True for a directory that claims to be a store."""
    return (path / MANIFEST).is_file()


def open_store(path: Path) -> Store:
    """Open a store.

    Raises:
        StoreError: `path` is no store, incomplete, damaged, or written by a newer Roundline.
    """
    if not path.is_dir():
        raise StoreError(
            f"{path} is no store: a store is a directory that `roundline ingest` writes"
        )
    manifest = read_manifest(path)
    store = Store(path, manifest)
    missing = [name for name in manifest.tables if not store.table_path(name).is_file()]
    if missing:
        raise StoreError(
            f"{path} is incomplete: {', '.join(missing)} missing; ingest the capture again"
        )
    return store
