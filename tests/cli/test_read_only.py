"""A store that lies where nobody can write is still a store."""

from __future__ import annotations

import json
from pathlib import Path

from roundline.cli import main
from roundline.store import open_store
from roundline.warehouse.build import open_warehouse

TRACE = {
    "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "gemvx", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0,
         "args": {"device": 0, "stream": 7, "correlation": 1}}
    ]
}  # fmt: skip


def test_current_marts_are_read_without_writing(tmp_path: Path) -> None:
    """Once its marts are there, opening a store changes nothing below it."""
    (tmp_path / "trace.json").write_text(json.dumps(TRACE))
    target = tmp_path / "store"
    assert main(["ingest", str(tmp_path / "trace.json"), "-o", str(target), "-q"]) == 0
    with open_warehouse(open_store(target)):
        pass
    before = {path: path.stat().st_mtime_ns for path in (target, *target.rglob("*"))}
    with open_warehouse(open_store(target)) as warehouse:
        assert warehouse.execute("SELECT count(*) FROM kernel_attribution").fetchall() == [(1,)]
        during = {path: path.stat().st_mtime_ns for path in (target, *target.rglob("*"))}
    assert during == before
