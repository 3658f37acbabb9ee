"""One reconciliation of the bundled capture, and the same with hostile text in every name."""

from __future__ import annotations

import dataclasses
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from roundline.cli import main
from roundline.reconcile.reconciliation import Reconciliation
from roundline.report import reconciliation as renderers

CASE = Path(__file__).parents[2] / "traces" / "worked-example"
MODEL = ("--model", "qwen3.6-27b", "--context", "240", "--log", str(CASE / "server.log"))
HOSTILE = (
    "</title></style><script>alert(1)</script><img src=x onerror=alert(2)>"
    "\"'`&|{code}{expand}[~all]*b*_i_!x.png!\\\r\n\x1b[2J\u202eמבט\u2066 {color:red} h1. "
    + "x"
    * 20_000
)


@pytest.fixture(scope="session")
def report_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled capture as a store."""
    target = tmp_path_factory.mktemp("report") / "store"
    assert main(["ingest", str(CASE / "capture.sqlite"), "-o", str(target), "-q"]) == 0
    return target


@pytest.fixture(scope="session")
def result(report_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Reconciliation:
    """The value that `roundline report` hands to its renderers."""
    caught: list[Reconciliation] = []

    def catch(value: Reconciliation) -> str:
        caught.append(value)
        return ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(renderers.RENDERERS, "table", catch)
        out = tmp_path_factory.mktemp("caught") / "r.txt"
        assert main(["report", str(report_store), *MODEL, "-o", str(out), "-q"]) == 0
    return caught[0]


@pytest.fixture(scope="session")
def hostile(result: Reconciliation) -> Reconciliation:
    """Every free text of the value ends in markup, quotes, control characters and 20,000 x."""
    kept = {"floor": result.floor, "verdict": replace(result.verdict, text=HOSTILE)}
    changed: Any = _poisoned(replace(result, command=("store", "--log", HOSTILE)))
    return replace(changed, **kept, ledgers=result.ledgers)


_PLAIN = {
    "phase",
    "term",
    "category",
    "label",
    "status",
    "sha256",
    "kind",
    "cause",
    "matrix",
    "part",
}  # not from captures


def _poisoned(value: Any, field: str = "") -> Any:
    if isinstance(value, str):
        return value if field in _PLAIN else value + HOSTILE
    if isinstance(value, tuple):
        return tuple(_poisoned(item, field) for item in value)
    if isinstance(value, dict):
        return {key: _poisoned(item, field) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        fields = {
            f.name: _poisoned(getattr(value, f.name), f.name)
            for f in dataclasses.fields(value)
            if f.name != "floor"
        }
        return replace(value, **fields)
    return value
