"""Wrong input of each kind: one clear line, the right exit code, and no output left behind."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from roundline.cli import main

Captured = pytest.CaptureFixture[str]
GOOD = {
    "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "gemvx", "pid": 0, "tid": 7, "ts": 1.0, "dur": 2.0,
         "args": {"device": 0, "stream": 7, "correlation": 1}}
    ]
}  # fmt: skip


def write_wrong(kind: str, folder: Path) -> Path:
    """One unusable source of each kind."""
    path = folder / "source"
    if kind == "directory":
        path.mkdir()
        (path / "notes.md").write_text("nothing here")
    elif kind == "truncated sqlite":
        whole = folder / "whole"
        with sqlite3.connect(whole) as connection:
            connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER)")
            rows = [(i,) for i in range(5000)]
            connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?)", rows)
        connection.close()
        path.write_bytes(whole.read_bytes()[:9000])
        whole.unlink()
    elif kind == "foreign sqlite":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t (x)")
        connection.close()
    else:
        path.write_bytes(CONTENT[kind])
    return path


CONTENT = {
    "empty": b"",
    "text": b"this is no capture\n" * 50,
    "json": json.dumps({"hello": [1, 2, 3]}).encode(),
    "execution trace": json.dumps({"schema": "1.1.0", "nodes": []}).encode(),
    "binary": bytes(range(256)) * 20,
    "garbage gzip": b"\x1f\x8b" + b"garbage" * 100,
    "hdf5": b"\x89HDF\r\n\x1a\n" + b"\x00" * 100,
    "qdstrm": b"QDSTRM" + b"\x00" * 100,
    "parquet": b"PAR1" + b"\x00" * 100,
    "zstd": b"\x28\xb5\x2f\xfd" + b"\x00" * 100,
    "pickle": b"\x80\x04\x95" + b"\x00" * 100,
    "half json": json.dumps(GOOD).encode()[:-30],
    "half gzip": gzip.compress(json.dumps(GOOD).encode(), mtime=0)[:-12],
}
KINDS = [*CONTENT, "directory", "truncated sqlite", "foreign sqlite"]


@pytest.mark.parametrize("kind", KINDS)
def test_unusable_sources_are_refused_in_one_line(
    kind: str, tmp_path: Path, capsys: Captured
) -> None:
    """The message is one line that names the file; no store and no scraps remain."""
    source = write_wrong(kind, tmp_path)
    assert main(["ingest", str(source), "-o", str(tmp_path / "store")]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("roundline: ")
    assert captured.err.count("\n") == 1
    assert str(source) in captured.err
    assert {path.name for path in tmp_path.iterdir()} == {"source"}


def test_a_file_that_is_not_there(tmp_path: Path, capsys: Captured) -> None:
    """A missing source is named."""
    assert main(["ingest", str(tmp_path / "no.json"), "-o", str(tmp_path / "store")]) == 3
    assert "no.json" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_gpu_is_a_usage_error(capsys: Captured) -> None:
    """Nobody's GPU: exit 2, and the way to give its bandwidth."""
    assert main(["predict", "--model", "qwen3-8b", "--gpu", "RTX 9999"]) == 2
    error = capsys.readouterr().err
    assert "RTX 9999" in error
    assert "--hbm-gbps" in error


def test_an_unknown_model_is_a_usage_error(capsys: Captured) -> None:
    """Nobody's model: exit 2, and what would do."""
    assert main(["predict", "--model", "qwen9", "--gpu", "RTX A6000"]) == 2
    error = capsys.readouterr().err
    assert "qwen9" in error
    assert "config.json" in error


def good_store(tmp_path: Path) -> Path:
    """A small store."""
    (tmp_path / "trace.json").write_text(json.dumps(GOOD))
    assert main(["ingest", str(tmp_path / "trace.json"), "-o", str(tmp_path / "store"), "-q"]) == 0
    return tmp_path / "store"


def test_a_store_of_a_newer_schema_is_refused(tmp_path: Path, capsys: Captured) -> None:
    """A newer Roundline wrote it: exit 3, and update is the advice."""
    store = good_store(tmp_path)
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["schema_version"] = 99
    (store / "manifest.json").write_text(json.dumps(manifest))
    capsys.readouterr()
    assert main(["attribute", str(store)]) == 3
    error = capsys.readouterr().err
    assert "99" in error
    assert "update Roundline" in error


def test_a_half_store_is_refused(tmp_path: Path, capsys: Captured) -> None:
    """A store without one of its tables is incomplete."""
    store = good_store(tmp_path)
    (store / "kernels.parquet").unlink()
    capsys.readouterr()
    assert main(["attribute", str(store)]) == 3
    assert "kernels" in capsys.readouterr().err


def test_a_store_is_never_overwritten_by_accident(tmp_path: Path, capsys: Captured) -> None:
    """An existing store needs --force; anything else is not replaced even then."""
    store = good_store(tmp_path)
    trace = str(tmp_path / "trace.json")
    assert main(["ingest", trace, "-o", str(store)]) == 3
    assert "--force" in capsys.readouterr().err
    assert main(["ingest", trace, "-o", str(store), "--force", "-q"]) == 0
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    assert main(["ingest", trace, "-o", str(precious), "--force"]) == 3
    assert (precious / "thesis.tex").read_text() == "years of work"


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two ingests of one file are byte-identical, manifest included."""
    store = good_store(tmp_path)
    again = tmp_path / "again"
    assert main(["ingest", str(tmp_path / "trace.json"), "-o", str(again), "-q"]) == 0
    names = sorted(path.name for path in store.iterdir())
    assert names == sorted(path.name for path in again.iterdir())
    assert all((store / n).read_bytes() == (again / n).read_bytes() for n in names)


def test_help_is_quick_to_reach(capsys: Captured) -> None:
    """--help loads none of the heavy packages."""
    import subprocess
    import sys

    probe = (
        "import sys; from roundline.cli import main; main(['--help']);"
        "print([m for m in ('duckdb', 'pyarrow', 'polars', 'nvtx', 'msgspec') if m in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    ).stdout
    assert output.rstrip().endswith("[]")
