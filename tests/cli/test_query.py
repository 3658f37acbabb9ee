"""SQL of users: what it may do, and what the sandbox refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roundline.cli import main

Captured = pytest.CaptureFixture[str]
TRACE = {
    "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "gemvx|<b>", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0,
         "args": {"device": 0, "stream": 7, "correlation": 1}}
    ]
}  # fmt: skip


@pytest.fixture
def store(tmp_path: Path, capsys: Captured) -> Path:
    """A store of one kernel."""
    (tmp_path / "trace.json").write_text(json.dumps(TRACE))
    target = tmp_path / "store"
    assert main(["ingest", str(tmp_path / "trace.json"), "-o", str(target), "-q"]) == 0
    capsys.readouterr()
    return target


def test_a_query_prints_json_that_parses(store: Path, capsys: Captured) -> None:
    """stdout is data: it can be piped into a JSON tool."""
    sql = "SELECT name, end_ns - start_ns AS ns FROM kernel_attribution"
    assert main(["query", str(store), sql, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"name": "gemvx|<b>", "ns": 2000}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM glob('/etc/*')",
        "COPY (SELECT 1) TO '/tmp/roundline-escape.csv'",
        "ATTACH '/tmp/roundline-escape.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW kernels",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/roundline-escape.csv'",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "",
    ],
)
def test_everything_but_reading_the_store_is_refused(
    sql: str, store: Path, capsys: Captured
) -> None:
    """Files outside, writing, settings and extensions: one line and exit code 2."""
    assert main(["query", str(store), sql]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("roundline: SQL: ")
    assert not list(Path("/tmp").glob("roundline-escape*"))


def test_a_query_cannot_write_into_the_store(store: Path, capsys: Captured) -> None:
    """The store is the allowed directory, and still nobody writes there."""
    before = sorted(store.iterdir())
    sql = f"COPY (SELECT 1) TO '{store}/kernels.parquet'"
    assert main(["query", str(store), sql]) == 2
    assert [path for path in sorted(store.iterdir()) if path.name != "marts"] == before


def test_memory_of_a_query_is_bounded(store: Path, capsys: Captured) -> None:
    """A query that would need many gigabytes ends in an error, not in the kernel's killer."""
    sql = "SELECT list(a.range || b.range) FROM range(30000) a, range(30000) b"
    assert main(["query", str(store), sql]) == 2
    assert "emory" in capsys.readouterr().err


def test_tables_are_listed_with_their_meaning(store: Path, capsys: Captured) -> None:
    """--list names marts and raw tables; --describe the columns of one."""
    assert main(["query", str(store), "--list"]) == 0
    listed = capsys.readouterr().out
    assert "round_attribution" in listed
    assert "log_windows" in listed
    assert main(["query", str(store), "--describe", "rounds"]) == 0
    assert "start of the anchor" in capsys.readouterr().out


def test_an_unknown_table_gets_a_hint(store: Path, capsys: Captured) -> None:
    """A misspelt table names its neighbour."""
    assert main(["query", str(store), "--describe", "round"]) == 2
    assert "rounds" in capsys.readouterr().err
