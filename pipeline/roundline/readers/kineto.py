"""Reader of PyTorch-profiler (Kineto) traces: one pass, bounded memory, exact nanoseconds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from roundline.errors import SourceError, TruncatedSourceError
from roundline.readers.contract import Progress, ReadOptions, Sink, SourceFacts
from roundline.readers.kineto_events import Event, EventDecoder
from roundline.readers.kineto_findings import capabilities, diagnostics, lost_gpu_events
from roundline.readers.kineto_inflate import Pieces
from roundline.readers.kineto_metadata import Metadata, devices_of, parse_metadata, processes_of
from roundline.readers.kineto_stream import LIMIT_BYTES, EventStream, Losses
from roundline.readers.kineto_tables import TableWriter

PRODUCER: Final = "torch-profiler"

_BOM: Final = b"\xef\xbb\xbf"
_EVENTS_KEY: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_HEAD_ATTEMPTS: Final = 32
_EARLIEST_NS: Final = 1_262_304_000 * 10**9  # 2010: what is later is a Unix time
_OTHER_FILES: Final = (
    (b'"nodes"', "a PyTorch execution trace (schema, nodes)"),
    (b"rocprofiler", "a rocprofiler result"),
)


def read_kineto(
    path: Path, sink: Sink, options: ReadOptions, progress: Progress | None = None
) -> SourceFacts:
    """Stream a torch trace, plain or gzip-compressed, into `sink`.

    Memory does not grow with the file: beyond one span of events and the dictionary of names,
    which is bounded too, nothing is kept.

    Raises:
        SourceError: no trace, two writers in one file, or GPU events that are beyond repair
            while `options.lenient` is off.
        TruncatedSourceError: the file ends early and `options.allow_truncated` is off.
    """
    pieces = Pieces(path, progress)
    opening = _open(path, iter(pieces))
    tables = TableWriter(sink, with_python=options.with_python)
    decoder = EventDecoder(tables.kinds, lines=opening.layout == "lines")
    stream: EventStream[Event] = EventStream(
        path, opening.body, opening.offset, opening.rest, decoder
    )
    for events in stream:
        tables.add(events)
    truncated = _truncation(opening.layout, stream, pieces)
    if truncated:
        truncated = f"truncated after {decoder.seen} complete events: {truncated}"
        if not options.allow_truncated:
            raise TruncatedSourceError(f"{path} is {truncated}; --allow-truncated keeps them")
    _refuse_lost_gpu_events(path, stream.losses, options)
    tables.finish()
    tail = b"}" if truncated else stream.tail
    metadata = parse_metadata(opening.head, tail, expected=opening.layout == "object")
    return _facts(path, metadata, tables, stream.losses, truncated)


def _facts(
    path: Path, metadata: Metadata, tables: TableWriter, losses: Losses, truncated: str | None
) -> SourceFacts:
    tally = tables.tally
    absolute = tally.first_ns is not None and tally.first_ns >= _EARLIEST_NS
    base_ns = 0 if absolute else metadata.base_ns
    devices = devices_of(metadata, tables.processes, tally.devices)
    return SourceFacts(
        producer=PRODUCER,
        producer_version=None,
        schema_version=metadata.schema_version,
        wall_clock_base_ns=base_ns,
        processes=processes_of(path, metadata, tables.processes),
        devices=devices,
        capabilities=capabilities(tally, devices, base_ns),
        diagnostics=tuple(diagnostics(metadata, tally, losses, truncated, base_ns)),
        truncated=truncated is not None,
    )


def _truncation(layout: str, stream: EventStream[Event], pieces: Pieces) -> str | None:
    """Why the events are not complete; the end of a list or of lines is not required."""
    if stream.ended:
        return None
    if pieces.damage:
        return pieces.damage
    if layout == "object":
        return "its event list has no end"
    return "its last event has no end" if stream.tail.strip(b" \t\r\n,\0") else None


def _refuse_lost_gpu_events(path: Path, losses: Losses, options: ReadOptions) -> None:
    lost = lost_gpu_events(losses)
    if lost and not options.lenient:
        raise SourceError(
            f"{path}: {lost} GPU events are malformed beyond repair, the first malformed event"
            f" is at byte {losses.first_offset}; --lenient reads the others"
        )


@dataclass(frozen=True)
class _Opening:
    """Where the events begin; `layout` is object, list or lines."""

    layout: str
    head: bytes
    body: bytes
    offset: int
    rest: Iterator[bytes]


def _open(path: Path, pieces: Iterator[bytes]) -> _Opening:
    """Find the events; the text is searched whenever it has doubled, so never quadratically."""
    text, parts, size = b"", [], 0
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size < 2 * len(text):
            continue
        text, parts = b"".join([text, *parts]), []
        if opening := _opening(text, pieces, complete=False):
            return opening
        if size > LIMIT_BYTES:
            break
    text = b"".join([text, *parts])
    if opening := _opening(text, pieces, complete=True):
        return opening
    raise SourceError(f"{path} has no traceEvents: {_other_file(text)}")


def _opening(text: bytes, rest: Iterator[bytes], *, complete: bool) -> _Opening | None:
    start = len(text) - len(text.removeprefix(_BOM).lstrip())
    if text[start : start + 1] == b"[":
        return _Opening("list", b"", text[start + 1 :], start + 1, rest)
    line, newline, _ = text[start:].partition(b"\n")
    if newline or complete:
        first = _json(line)
        if isinstance(first, dict) and "ph" in first:
            return _Opening("lines", b"", text[start:], start, rest)
    return _object(text, start, rest)


def _object(text: bytes, start: int, rest: Iterator[bytes]) -> _Opening | None:
    """An opening counts when the text before it parses: it may stand in a string as well."""
    damaged = None
    for match, _ in zip(_EVENTS_KEY.finditer(text, start), range(_HEAD_ATTEMPTS), strict=False):
        head = text[start : match.start()].rstrip().rstrip(b",") + b"}"
        opening = _Opening("object", head, text[match.end() :], match.end(), rest)
        if isinstance(_json(head), dict):
            return opening
        damaged = damaged or opening
    return damaged


def _json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _other_file(text: bytes) -> str:
    for mark, name in _OTHER_FILES:
        if mark in text:
            return f"it looks like {name}"
    return "it is no trace of the PyTorch profiler"
