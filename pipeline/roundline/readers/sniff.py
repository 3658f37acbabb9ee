"""What a file is, by its content: magic bytes first, never the suffix."""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from glob import glob, has_magic
from pathlib import Path
from typing import Final
from urllib.parse import quote

from roundline.errors import SourceError
from roundline.readers.nsys_export import NSYS_TABLES
from roundline.store import is_store

_HEAD: Final = 256 * 1024
_PIECE: Final = 1 << 20
_SQLITE: Final = b"SQLite format 3\x00"
_REPORT: Final = b"NVIDIA Tegra Profiler Report"
_GZIP: Final = b"\x1f\x8b"


class SourceKind(StrEnum):
    """Kinds of source that Roundline reads; a store is none, it was made of them."""

    NSYS_SQLITE = "nsys-sqlite"
    NSYS_PARQUETDIR = "nsys-parquetdir"
    NSYS_ARROWDIR = "nsys-arrowdir"
    NSYS_REPORT = "nsys-report"
    KINETO = "torch-profiler"
    SERVER_LOG = "server-log"
    STORE = "store"


@dataclass(frozen=True)
class FoundSources:
    """Sources in a stable order, and what was passed over with the reason."""

    sources: tuple[tuple[Path, SourceKind], ...]
    skipped: tuple[tuple[Path, str], ...]


def find_sources(paths: Sequence[Path]) -> FoundSources:
    """Expand files, directories and globs into sources.

    Raises:
        SourceError: a named file is no capture, or a directory holds none.
    """
    found: dict[Path, tuple[Path, SourceKind]] = {}
    skipped: list[tuple[Path, str]] = []
    for path in _expand(paths):
        for source, kind in _sources_of(path, skipped):
            found.setdefault(source.resolve(), (source, kind))  # a file named twice is one source
    return FoundSources(tuple(found.values()), tuple(skipped))


def sniff(path: Path) -> SourceKind:
    """The kind of one source.

    Raises:
        SourceError: it is none that Roundline reads; the message says what it is.
    """
    if path.is_dir():
        kind = _directory_kind(path) or (SourceKind.STORE if is_store(path) else None)
        if kind is None:
            raise SourceError(f"{path} is a directory without an export in it")
        return kind
    if not path.is_file():
        raise SourceError(f"{path}: no such file")
    head = _head(path)
    if not head.strip(b"\x00 \t\r\n"):
        raise SourceError(f"{path} is empty: the profiler wrote nothing")
    return _by_magic(path, head) or _by_text(path, head)


def _expand(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists() and has_magic(str(path)):
            matches = sorted(map(Path, glob(str(path), recursive=True)))  # noqa: PTH207  # from any root
            if not matches:
                raise SourceError(f"{path}: the pattern matches no file")
            yield from matches
        else:
            yield path


def _sources_of(path: Path, skipped: list[tuple[Path, str]]) -> Sequence[tuple[Path, SourceKind]]:
    """The sources that one argument means: itself, or the captures below it."""
    if not path.is_dir() or _directory_kind(path) is not None:
        return [(path, sniff(path))]
    passed: list[tuple[Path, str]] = []
    inside = list(_walk(path, passed))
    if not inside and is_store(path):
        raise SourceError(f"{path} is a store already: attribute, reconcile or report it")
    if not inside:
        raise SourceError(f"{path}: no capture in this directory; {_reasons(passed)}")
    skipped += passed
    return inside


def _walk(folder: Path, skipped: list[tuple[Path, str]]) -> Iterator[tuple[Path, SourceKind]]:
    """Captures below a folder; symbolic links and foreign files are passed over."""
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink():
            skipped.append((entry, "a symbolic link"))
        elif entry.name.startswith(".") or is_store(entry):
            continue
        elif _is_graph_capture(entry):
            skipped.append((entry, "a graph-capture trace: it shows no serving time"))
        elif entry.is_dir() and _directory_kind(entry) is None:
            yield from _walk(entry, skipped)
        else:
            try:
                yield entry, sniff(entry)
            except (SourceError, OSError) as error:
                skipped.append((entry, str(error)))


def _is_graph_capture(path: Path) -> bool:
    """Whether a file or folder holds what an engine traced while it recorded its graphs."""
    is_inside = "capture_traces" in (path.name, path.parent.name)
    return is_inside or "graph_capture_rank" in path.name


def _reasons(skipped: Sequence[tuple[Path, str]]) -> str:
    shown = "; ".join(reason for _, reason in skipped[:2])
    return shown or "give a profiler export, a trace or a folder of them"


def _directory_kind(path: Path) -> SourceKind | None:
    names = {file.stem: file.suffix for file in path.iterdir()} if path.is_dir() else {}
    for table in (*NSYS_TABLES, "TARGET_INFO_GPU", "ANALYSIS_DETAILS"):
        if names.get(table) == ".parquet":
            return SourceKind.NSYS_PARQUETDIR
        if names.get(table) == ".arrow":
            return SourceKind.NSYS_ARROWDIR
    return None


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        raw = file.read(_HEAD)
    if not raw.startswith(_GZIP):
        return raw
    try:
        head = zlib.decompressobj(31).decompress(raw, _HEAD)
    except zlib.error as error:
        raise SourceError(f"{path}: damaged gzip ({error})") from error
    if head.startswith((_SQLITE, _REPORT, _GZIP)):  # only traces and logs are read through gzip
        raise SourceError(f"{path} is compressed beyond reading: decompress it first (gzip -d)")
    return head


_FOREIGN: Final = (
    (b"\x89HDF\r\n", "an HDF5 export, which loses NULLs: export sqlite or parquetdir instead"),
    (b"QDSTRM", "a raw nsys stream: import it with QdstrmImporter, then export"),
    (b"NVR", "a Nsight Compute report, which times kernels one by one: record with nsys"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed: decompress it first (zstd -d)"),
    (b"\xfd7zXZ", "xz-compressed: decompress it first (xz -d)"),
    (b"BZh", "bzip2-compressed: decompress it first (bzip2 -d)"),
    (b"PK\x03\x04", "a zip archive: unpack it first"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"version https://git-lfs", "a Git LFS pointer, not the file: fetch it with git lfs pull"),
    (b"PAR1", "one Parquet table: give the export directory that holds it"),
    (b"\xff\xff\xff\xff", "an Arrow stream: give an arrowdir, or export sqlite or parquetdir"),
    (b"ARROW1", "an Arrow file: give an arrowdir, or export sqlite or parquetdir"),
    (b"\xff\xfe", "UTF-16 text: convert it to UTF-8 first"),
    (b"\xfe\xff", "UTF-16 text: convert it to UTF-8 first"),
    (b"\x80\x02", "a Python pickle (a memory snapshot?), no trace"),
    (b"\x80\x03", "a Python pickle (a memory snapshot?), no trace"),
    (b"\x80\x04", "a Python pickle (a memory snapshot?), no trace"),
    (b"\x80\x05", "a Python pickle (a memory snapshot?), no trace"),
)  # fmt: skip


def _by_magic(path: Path, head: bytes) -> SourceKind | None:
    if head.startswith(_SQLITE):
        return _sqlite(path)
    if head.startswith(_REPORT):
        return SourceKind.NSYS_REPORT
    for magic, meaning in _FOREIGN:
        if head.startswith(magic):
            raise SourceError(f"{path} is {meaning}")
    if head[257:262] == b"ustar":
        raise SourceError(f"{path} is a tar archive: unpack it first")
    return None


def _sqlite(path: Path) -> SourceKind:
    uri = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.text_factory = lambda name: name.decode("utf-8", errors="replace")
            rows = connection.execute("SELECT name FROM sqlite_master").fetchall()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # even a message may be garbled
        raise SourceError(f"{path}: {error}: the export is truncated, export again") from error
    if not {name for (name,) in rows} & {*NSYS_TABLES, "TARGET_INFO_GPU", "ANALYSIS_DETAILS"}:
        raise SourceError(f"{path} is a SQLite file without any table of an Nsight export")
    return SourceKind.NSYS_SQLITE


def _by_text(path: Path, head: bytes) -> SourceKind:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _JSON_START.match(text):
        return _json(path, text)
    if b"\x00" in text[:4096]:
        raise SourceError(f"{path} is a binary file of an unknown kind")
    # a server prints its arguments and the loading of the model long before its first window
    if _looks_like_log(text) or _contains(path, _LOG_MARKS):
        return SourceKind.SERVER_LOG
    raise SourceError(f"{path} is text, but no trace and no log of a supported engine")


# a time stamp in brackets begins like a list
_JSON_START: Final = re.compile(rb"\{|\[\s*(?:[\[{\]]|$)")
_JSON_KINDS: Final = (
    (re.compile(rb'"rocprofiler'), "rocprofiler results"),
    (re.compile(rb'"nodes"|\{\s*"schema"\s*:'), "an execution trace (schema, nodes)"),
    (
        re.compile(rb'\A\{\s*"data"\s*:\s*\[|"Type"\s*:\s*\d+\s*,\s*"\w+Event"'),
        "an nsys event dump: export sqlite or parquetdir instead",
    ),
)


def _json(path: Path, text: bytes) -> SourceKind:
    if b'"traceEvents"' in text or b'"ph"' in text:
        return SourceKind.KINETO
    if _looks_like_log(text):  # lines that a log collector wrapped in JSON
        return SourceKind.SERVER_LOG
    if _contains(path, (b'"traceEvents"',)):
        return SourceKind.KINETO
    for mark, meaning in _JSON_KINDS:
        if mark.search(text):
            raise SourceError(f"{path} is JSON without traceEvents: {meaning}")
    raise SourceError(f"{path} is JSON without traceEvents: no torch-profiler trace")


def _contains(path: Path, marks: Sequence[bytes]) -> bool:
    """Look for a text beyond the head, in bounded memory."""
    overlap = max(map(len, marks)) - 1
    tail = b""
    for piece in _pieces(path):
        text = tail + piece
        if any(mark in text for mark in marks):
            return True
        tail = text[-overlap:]
    return False


def _pieces(path: Path) -> Iterator[bytes]:
    """The file's bytes, inflated if it is gzip; a damaged rest is left out."""
    with path.open("rb") as file:
        raw = file.read(_PIECE)
        inflate = zlib.decompressobj(31) if raw.startswith(_GZIP) else None
        while raw:
            if inflate is None:
                yield raw
                raw = file.read(_PIECE)
                continue
            try:
                yield inflate.decompress(raw, _PIECE)
            except zlib.error:
                return
            raw = inflate.unconsumed_tail or (b"" if inflate.eof else file.read(_PIECE))


_LOG_MARKS: Final = (
    b"Decode batch", b"Prefill batch", b"gen throughput", b"Avg generation throughput",
    b"SpecDecoding metrics", b"host_step_time", b"currank_total_requests", b"eval time =",
    b"draft acceptance",
)  # fmt: skip


def _looks_like_log(text: bytes) -> bool:
    return any(mark in text for mark in _LOG_MARKS)
