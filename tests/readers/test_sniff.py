"""A file is what its bytes say; what Roundline cannot read is named, with what to do."""

from __future__ import annotations

import gzip
import json
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from nsys_exports import (
    KERNEL,
    STRINGS,
    kernel,
    two_processes,
    write_arrowdir,
    write_parquetdir,
    write_sqlite,
)

from roundline.cli import main
from roundline.errors import SourceError
from roundline.readers.ingest import IngestOptions, ingest
from roundline.readers.sniff import SourceKind, find_sources, sniff

TRACE = json.dumps(
    {"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1,
                      "dur": 2, "args": {"device": 0, "stream": 7, "correlation": 1}}]}
).encode()  # fmt: skip
LOG = b"[2026-06-01 12:00:00 TP0] Decode batch, #running-req: 1, gen throughput (token/s): 5.0\n"


def export(path: Path) -> Path:
    """A small SQLite export."""
    return write_sqlite(path, {"StringIds": list(STRINGS), KERNEL: [kernel(1)]})


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (TRACE, SourceKind.KINETO),
        (gzip.compress(TRACE), SourceKind.KINETO),
        (b"\xef\xbb\xbf" + TRACE, SourceKind.KINETO),
        (b"\n \n" + TRACE, SourceKind.KINETO),
        (b'{"padding": "' + b"x" * 700_000 + b'", ' + TRACE[1:], SourceKind.KINETO),
        (b'[{"ph": "X", "name": "top-level list"}]', SourceKind.KINETO),
        (LOG, SourceKind.SERVER_LOG),
        (gzip.compress(LOG), SourceKind.SERVER_LOG),
        (b"NVIDIA Tegra Profiler Report 1.\x00\x01", SourceKind.NSYS_REPORT),
    ],
)
@pytest.mark.parametrize("name", ["x.json", "x.gz", "x.sqlite", "x.nsys-rep", "x"])
def test_the_suffix_means_nothing(
    tmp_path: Path, content: bytes, kind: SourceKind, name: str
) -> None:
    """The kind follows from the content under every name."""
    path = tmp_path / name
    path.write_bytes(content)
    assert sniff(path) is kind


def test_exports_are_recognised_in_every_container(tmp_path: Path) -> None:
    """A SQLite file and both kinds of directory."""
    assert sniff(export(tmp_path / "a.db")) is SourceKind.NSYS_SQLITE
    assert sniff(write_parquetdir(tmp_path / "p", two_processes())) is SourceKind.NSYS_PARQUETDIR
    assert sniff(write_arrowdir(tmp_path / "a", two_processes())) is SourceKind.NSYS_ARROWDIR


def other_database(path: Path) -> None:
    """A SQLite file of somebody else."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE photos (id)")
        connection.commit()


def truncated_export(path: Path) -> None:
    """An export whose second half is missing."""
    tables = {"StringIds": list(STRINGS), KERNEL: [kernel(i) for i in range(2_000)]}
    data = write_sqlite(path, tables).read_bytes()
    path.write_bytes(data[: len(data) // 2])


def bomb(path: Path) -> None:
    """A gzip member of 300 MB of blanks and no event."""
    path.write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * 300_000_000))


WRONG: dict[str, tuple[bytes | Callable[[Path], None], str]] = {
    "nothing": (b"", "is empty"),
    "zeros": (b"\0" * 4096, "is empty"),
    "prose": (b"dear diary\n" * 50, "is text, but no trace"),
    "binary": (struct.pack("<100I", *range(100)), "binary file"),
    "json": (b'{"answer": 42}', "without traceEvents"),
    "execution trace": (b'{"schema": "1.0.2", "nodes": [{"id": 1}]}', "execution trace"),
    "rocprofiler": (b'{"rocprofiler-sdk-tool": [{}]}', "rocprofiler"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + b"\0" * 90, "HDF5"),
    "nsys stream": (b"QDSTRM" + b"\1" * 90, "raw nsys stream"),
    "nsight compute": (b"NVR\0" + b"\1" * 90, "Nsight Compute"),
    "json that has data": (b'{"data": {"a": 1}}', "no torch-profiler trace"),
    "nsys json dump": (b'{"data":["a","b"]}\n{"Type":48,"CudaEvent":{}}\n', "nsys event dump"),
    "nsys jsonlines dump": (b'{"Type":48,"CudaEvent":{"startNs":"1"}}\n' * 9, "nsys event dump"),
    "chakra trace": (b'{"schema": "1.1.1-chakra.0.0.4", "pid": 7}', "execution trace"),
    "compressed export": (gzip.compress(b"SQLite format 3\0" + b"\0" * 99), "gzip -d"),
    "compressed report": (gzip.compress(b"NVIDIA Tegra Profiler Report 1."), "gzip -d"),
    "compressed twice": (gzip.compress(gzip.compress(TRACE)), "gzip -d"),
    "zip": (b"PK\x03\x04" + b"\1" * 90, "unpack it first"),
    "tar": (b"run.json".ljust(257, b"\0") + b"ustar\0" + b"\0" * 250, "tar archive"),
    "unfetched file": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "lfs pull"),
    "diary of a profiler": (b"the eval time was long today\n", "no log of a supported engine"),
    "zstd": (b"\x28\xb5\x2f\xfd" + b"\1" * 90, "zstd"),
    "pickle": (b"\x80\x04\x95" + b"\1" * 90, "pickle"),
    "one parquet file": (b"PAR1" + b"\1" * 90, "export directory"),
    "broken gzip": (b"\x1f\x8b\x08\x00" + b"garbage" * 99, "gzip"),
    "database": (other_database, "without any table of an Nsight export"),
    "half an export": (truncated_export, "export again"),
    "no SQLite at all": (b"SQLite format 3\x00" + b"\7" * 4000, "export again"),
    "bomb": (bomb, "this is no trace"),
    "nesting": (b'{"traceEvents": [' + b"[" * 2_000_000, "truncated"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_gets_one_line_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Exit code 3, one line that names the file and what is wrong, no output of any kind."""
    content, message = WRONG[name]
    path = tmp_path / "input.bin"
    if callable(content):
        content(path)
    else:
        path.write_bytes(content)
    assert main(["ingest", str(path), "-o", str(tmp_path / "out")]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert len(shown.err.strip().splitlines()) == 1
    assert message in shown.err
    assert str(path) in shown.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["input.bin"]


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    """A name that does not exist, and a pattern that matches nothing."""
    with pytest.raises(SourceError, match="no such file"):
        find_sources([tmp_path / "absent.json"])
    with pytest.raises(SourceError, match="matches no file"):
        find_sources([tmp_path / "*.json"])


def test_a_directory_is_searched_for_captures(tmp_path: Path) -> None:
    """Captures inside are found in order of name; foreign files are named with the reason."""
    (tmp_path / "sub").mkdir()
    for name in ("b.json", "a.json", "sub/c.json"):
        (tmp_path / name).write_bytes(TRACE)
    (tmp_path / "notes.txt").write_text("remember the milk")
    (tmp_path / "server.log").write_bytes(LOG)
    write_parquetdir(tmp_path / "export", two_processes())
    found = find_sources([tmp_path])
    assert [path.relative_to(tmp_path).as_posix() for path, _ in found.sources] == [
        "a.json", "b.json", "export", "server.log", "sub/c.json",
    ]  # fmt: skip
    assert [path.name for path, _ in found.skipped] == ["notes.txt"]


def test_links_inside_a_directory_are_not_followed(tmp_path: Path) -> None:
    """A capture folder of a stranger cannot lead outside itself."""
    (tmp_path / "secret.json").write_bytes(TRACE)
    folder = tmp_path / "capture"
    folder.mkdir()
    (folder / "real.json").write_bytes(TRACE)
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    (folder / "loop").symlink_to(folder)
    found = find_sources([folder])
    assert [path.name for path, _ in found.sources] == ["real.json"]
    assert sorted(path.name for path, _ in found.skipped) == ["link.json", "loop"]


def test_a_directory_without_captures_is_refused(tmp_path: Path) -> None:
    """The message says what was found instead."""
    (tmp_path / "notes.txt").write_text("remember the milk")
    with pytest.raises(SourceError, match=r"no capture in this directory.*notes\.txt"):
        find_sources([tmp_path])


def test_stores_in_a_directory_are_no_sources(tmp_path: Path) -> None:
    """A store that lies beside its capture is not read back in."""
    (tmp_path / "a.json").write_bytes(TRACE)
    ingest([tmp_path / "a.json"], tmp_path / "a.roundline", IngestOptions())
    assert [path.name for path, _ in find_sources([tmp_path]).sources] == ["a.json"]


@pytest.mark.parametrize(
    "name",
    [
        "capture_traces/bs_1.json",
        "capture_traces/rank0/bs_1.json",
        "graph_capture_rank_0/trace.json",
        "graph_capture_rank_0.json",
        "1717-graph_capture_rank_3.trace.json",
    ],
)
def test_capture_time_traces_are_left_out(tmp_path: Path, name: str) -> None:
    """Traces of graph capture show no serving time and are no ranks, however deep they lie."""
    for trace in (name, "run.json"):
        (tmp_path / trace).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / trace).write_bytes(TRACE)
    found = find_sources([tmp_path])
    assert [path.name for path, _ in found.sources] == ["run.json"]
    assert [reason for _, reason in found.skipped] == [
        "a graph-capture trace: it shows no serving time"
    ]


def test_a_store_is_known_and_is_no_source(tmp_path: Path) -> None:
    """A store given to ingest is refused with what to do with it instead."""
    (tmp_path / "a.json").write_bytes(TRACE)
    store = tmp_path / "a.roundline"
    ingest([tmp_path / "a.json"], store, IngestOptions())
    assert sniff(store) is SourceKind.STORE
    with pytest.raises(SourceError, match="is a store already"):
        find_sources([store])


def test_a_foreign_manifest_does_not_hide_a_capture(tmp_path: Path) -> None:
    """A folder that is named is searched, whoever wrote a manifest.json into it."""
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "run.json").write_bytes(TRACE)
    assert [path.name for path, _ in find_sources([tmp_path]).sources] == ["run.json"]


def test_a_source_that_is_named_twice_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative name, an absolute name and the folder around them are one file: one rank."""
    (tmp_path / "run.json").write_bytes(TRACE)
    monkeypatch.chdir(tmp_path)
    found = find_sources([Path("run.json"), tmp_path / "run.json", tmp_path])
    assert [path for path, _ in found.sources] == [Path("run.json")]


def test_a_pattern_is_expanded(tmp_path: Path) -> None:
    """A glob that no shell expanded."""
    for rank in (1, 0):
        (tmp_path / f"rank{rank}.json").write_bytes(TRACE)
    found = find_sources([tmp_path / "rank*.json"])
    assert [path.name for path, _ in found.sources] == ["rank0.json", "rank1.json"]
