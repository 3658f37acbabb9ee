"""Reader of PyTorch-profiler (Kineto) traces: one pass, bounded memory, exact nanoseconds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from roundline.errors import SourceError, TruncatedSourceError
from roundline.readers.contract import (
    Diagnostic,
    Progress,
    ReadOptions,
    Sink,
    SourceFacts,
    State,
)
from roundline.readers.kineto_events import (
    HOUR_NS,
    Args,
    Cache,
    Event,
    EventDecoder,
    Names,
    api_name,
    arguments,
    copy_kind,
    external_ids,
    integers,
    kernel_columns,
    memory_columns,
    nanoseconds,
    stream_of,
    thread_ids,
)
from roundline.readers.kineto_metadata import (
    Metadata,
    Processes,
    devices_of,
    parse_metadata,
    processes_of,
)
from roundline.readers.kineto_stream import LIMIT_BYTES, EventStream, Losses, Pieces

_EVENTS_KEY: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_HEAD_ATTEMPTS: Final = 32
_EPOCH_NS: Final = (1_262_304_000_000_000_000, 4_102_444_800_000_000_000)  # 2010 to 2100
_OTHER_FILES: Final = (
    (re.compile(rb'"schema"\s*:\s*"[^"]*".*"nodes"\s*:', re.DOTALL), "a PyTorch execution trace"),
    (re.compile(rb'"nodes"\s*:\s*\['), "a PyTorch execution trace"),
    (re.compile(rb"rocprofiler"), "a rocprofiler result"),
)
_GPU_KINDS: Final = frozenset({"kernel", "memcpy", "memset"})
_RANGE_KINDS: Final = ("user_annotation", "cpu_op", "python_function", "gpu_annotation")
# lower case: files of 2020 and 2021 write Kernel, Memcpy, Runtime, Operator
_KINDS: Final = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "cuda_runtime": "api",
    "cuda_driver": "api",
    "runtime": "api",
    "user_annotation": "user_annotation",
    "gpu_user_annotation": "gpu_annotation",
    "cpu_op": "cpu_op",
    "operator": "cpu_op",
    "python_function": "python_function",
    "overhead": "overhead",
}


def read_kineto(
    path: Path, sink: Sink, options: ReadOptions, progress: Progress | None = None
) -> SourceFacts:
    """Stream a torch trace, plain or gzip-compressed, into `sink`.

    Raises:
        SourceError: no trace, two writers in one file, or GPU events that are beyond repair.
        TruncatedSourceError: the file ends early and `options.allow_truncated` is off.
    """
    pieces = Pieces(path, progress)
    opening = _open(path, iter(pieces))
    decoder = EventDecoder(lines=opening.layout == "lines")
    stream: EventStream[Event | None] = EventStream(
        path, opening.body, opening.offset, opening.rest, decoder
    )
    rows = _Rows(sink, options)
    for events in stream:
        rows.add(events)
    truncated = _truncated(opening.layout, stream, pieces)
    if truncated and not options.allow_truncated:
        raise TruncatedSourceError(
            f"{path} is truncated after {rows.events} complete events: {truncated};"
            " --allow-truncated keeps them"
        )
    _refuse_lost_gpu_events(path, stream.losses, options)
    metadata = parse_metadata(opening.head, stream.tail, opening.layout == "object")
    return _facts(path, metadata, rows, stream.losses, truncated)


@dataclass(frozen=True)
class _Opening:
    """Where the events begin; `layout` is object, list or lines."""

    layout: str
    head: bytes
    body: bytes
    offset: int
    rest: Iterator[bytes]


def _open(path: Path, pieces: Iterator[bytes]) -> _Opening:
    text = b""
    for piece in pieces:
        text += piece
        if opening := _opening(text, pieces, complete=False):
            return opening
        if len(text) > LIMIT_BYTES:
            break
    if opening := _opening(text, pieces, complete=True):
        return opening
    raise SourceError(f"{path} has no traceEvents: it looks like {_other_file(text)}")


def _opening(text: bytes, rest: Iterator[bytes], *, complete: bool) -> _Opening | None:
    bom = 3 if text.startswith(b"\xef\xbb\xbf") else 0
    start = len(text) - len(text[bom:].lstrip())
    if text[start : start + 1] == b"[":
        return _Opening("list", b"", text[start + 1 :], start + 1, rest)
    line = text[start:].partition(b"\n")[0]
    if b"\n" in text[start:] or complete:
        first = _json(line)
        if isinstance(first, dict) and "ph" in first:
            return _Opening("lines", b"", text[start:], start, rest)
    fallback = None
    for match, _ in zip(_EVENTS_KEY.finditer(text, start), range(_HEAD_ATTEMPTS), strict=False):
        head = text[start : match.start()].rstrip().rstrip(b",") + b"}"
        opening = _Opening("object", head, text[match.end() :], match.end(), rest)
        if isinstance(_json(head), dict):
            return opening
        fallback = fallback or opening
    return fallback


def _json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _other_file(text: bytes) -> str:
    for pattern, name in _OTHER_FILES:
        if pattern.search(text[: 1 << 20]):
            return name
    return "no trace of the PyTorch profiler"


def _truncated(layout: str, stream: EventStream[Event | None], pieces: Pieces) -> str | None:
    if stream.ended:
        return None
    if pieces.damage:
        return pieces.damage
    if layout == "object":
        return "its event list has no end"
    return "its last event has no end" if stream.tail.strip(b" \t\r\n,\0") else None


def _refuse_lost_gpu_events(path: Path, losses: Losses, options: ReadOptions) -> None:
    lost = _lost_gpu_events(losses)
    if lost and not options.lenient:
        raise SourceError(
            f"{path}: {lost} GPU events are malformed beyond repair, the first malformed event"
            f" is at byte {losses.first_offset}; --lenient reads the others"
        )


def _lost_gpu_events(losses: Losses) -> int:
    return sum(
        number
        for category, number in losses.lost.items()
        if category is None or _KINDS.get(category.lower()) in _GPU_KINDS
    )


@dataclass
class _Counts:
    kinds: dict[str, int] = field(default_factory=dict)
    invalid_times: int = 0
    implausible: int = 0
    unnamed: int = 0
    graph_nodes: int = 0
    graph_launches: int = 0


class _Rows:
    """Turns events into batches of rows, one batch per kind and span."""

    def __init__(self, sink: Sink, options: ReadOptions) -> None:
        self.events = 0
        self.processes = Processes()
        self.devices: set[tuple[int, int]] = set()
        self.first_ns: int | None = None
        self.counts = _Counts()
        self._sink = sink
        self._names = Names()
        self._api_names = Cache(api_name)
        self._copy_kinds = Cache(copy_kind)
        skipped = () if options.with_python else ("python_function",)
        self._kinds = Cache(lambda cat: _kind(cat, skipped))

    def add(self, events: Sequence[Event | None]) -> None:
        """Write the rows of a span of events."""
        self.events += len(events)
        kinds = self._kinds
        buckets: dict[str, list[Event]] = {}
        for event in events:
            if event is not None and (kind := kinds[event.cat]) and event.ph == "X":
                buckets.setdefault(kind, []).append(event)
        for kind, rows in buckets.items():
            self._write(kind, rows)

    def _write(self, kind: str, events: list[Event]) -> None:
        events, times = self._times(events, gpu=kind in _GPU_KINDS)
        if not events:
            return
        self.counts.kinds[kind] = self.counts.kinds.get(kind, 0) + len(events)
        args = arguments(events)
        table, columns = self._columns(kind, events, args)
        processes = self.processes
        columns["process_id"] = pa.array([processes[event.pid] for event in events], pa.int32())
        if kind in _GPU_KINDS:
            self.devices.update(
                zip(
                    columns["process_id"].to_pylist(), columns["device_id"].to_pylist(), strict=True
                )
            )
        if kind == "api":
            processes.note_host(events)
        if (names := self._names.fresh()) is not None:
            self._sink.write("names", names)
        columns = times | columns
        self._sink.write(table, pa.RecordBatch.from_pydict(columns))

    def _columns(
        self, kind: str, events: list[Event], args: list[Args]
    ) -> tuple[str, dict[str, pa.Array]]:
        if kind == "kernel":
            names = [event.name for event in events]
            self.counts.unnamed += names.count("unknown") + names.count("")
            columns = kernel_columns(events, args)
            columns["name_id"] = self._names.ids(names)
            nodes = columns["graph_node_id"]
            self.counts.graph_nodes += len(nodes) - nodes.null_count
            return "kernels", columns
        if kind in _GPU_KINDS:
            return "memory_ops", memory_columns(events, args, kind, self._copy_kinds)
        if kind == "api":
            return "api_calls", self._api_columns(events, args)
        if kind == "overhead":
            names = [event.name for event in events]
            return "overheads", {
                "thread_id": thread_ids(events), "kind": pa.array(names, pa.string())
            }  # fmt: skip
        return "ranges", self._range_columns(kind, events, args)

    def _api_columns(self, events: list[Event], args: list[Args]) -> dict[str, pa.Array]:
        names = [self._api_names[event.name] for event in events]
        self.counts.graph_launches += sum(name.endswith("GraphLaunch") for name in names)
        return {
            "thread_id": thread_ids(events),
            "name": pa.array(names, pa.string()),
            "correlation_id": integers([arg.correlation or None for arg in args], pa.int64()),
        }

    def _range_columns(
        self, kind: str, events: list[Event], args: list[Args]
    ) -> dict[str, pa.Array]:
        columns = {
            "name_id": self._names.ids([event.name for event in events]),
            "kind": pa.array([kind] * len(events), pa.string()),
            "external_id": external_ids(args),
        }
        if kind == "gpu_annotation":
            streams = [stream_of(e, arg) for e, arg in zip(events, args, strict=True)]
            return columns | {"stream_id": integers(streams, pa.int64())}
        return columns | {"thread_id": thread_ids(events)}

    def _times(self, events: list[Event], *, gpu: bool) -> tuple[list[Event], dict[str, pa.Array]]:
        """Start and end; events without a time are left out and counted."""
        start = nanoseconds([event.ts for event in events])
        duration = nanoseconds([event.dur for event in events]).fill_null(0)
        timeless = pc.is_null(start)
        if gpu:
            nothing = pc.and_(pc.equal(start, 0), pc.equal(duration, 0))
            timeless = pc.or_(timeless, nothing.fill_null(False))
        if lost := pc.sum(timeless).as_py():
            self.counts.invalid_times += lost
            keep = pc.invert(timeless)
            events = [e for e, kept in zip(events, keep.to_pylist(), strict=True) if kept]
            start, duration = start.filter(keep), duration.filter(keep)
        if not events:
            return events, {}
        implausible = pc.less(duration, 0)
        if gpu:
            implausible = pc.or_(implausible, pc.greater(duration, HOUR_NS))
        if odd := pc.sum(implausible).as_py():
            self.counts.implausible += odd
            duration = pc.if_else(implausible, 0, duration)
        first = pc.min(start).as_py()
        self.first_ns = first if self.first_ns is None else min(first, self.first_ns)
        return events, {"start_ns": start, "end_ns": pc.add(start, duration)}


def _kind(category: str, skipped: Sequence[str]) -> str | None:
    kind = _KINDS.get(category.lower())
    if kind is None and category.endswith(("_runtime", "_driver")):
        kind = "api"
    return None if kind in skipped else kind


def _facts(
    path: Path, metadata: Metadata, rows: _Rows, losses: Losses, truncated: str | None
) -> SourceFacts:
    base = _clock_base(metadata, rows.first_ns)
    devices = devices_of(metadata, rows.processes, rows.devices)
    return SourceFacts(
        producer="PyTorch profiler (Kineto)",
        producer_version=None,
        schema_version=metadata.schema_version,
        wall_clock_base_ns=base,
        processes=processes_of(path, metadata, rows.processes),
        devices=devices,
        capabilities=_capabilities(rows, devices, base),
        diagnostics=tuple(_diagnostics(metadata, rows, losses, truncated, base)),
        truncated=truncated is not None,
    )


def _clock_base(metadata: Metadata, first_ns: int | None) -> int | None:
    if first_ns is not None and _EPOCH_NS[0] <= first_ns < _EPOCH_NS[1]:
        return 0
    return metadata.base_ns


def _capabilities(rows: _Rows, devices: Sequence[Any], base: int | None) -> dict[str, State]:
    kinds = rows.counts.kinds
    gpu = any(kinds.get(kind) for kind in _GPU_KINDS)
    ranges = any(kinds.get(kind) for kind in _RANGE_KINDS)
    named = [device.device_evidence for device in devices]
    states: dict[str, State] = {
        "kernels": _state(kinds.get("kernel", 0) > 0),
        "memory_ops": _state(gpu),
        "graph_nodes": _graph_nodes(rows.counts),
        "graph_spans": "absent",
        "api_calls": _state(kinds.get("api", 0) > 0),
        "ranges": _state(ranges),
        "overheads": _state(kinds.get("overhead", 0) > 0),
        "gpu_identity": _state(bool(named) and set(named) == {"mapped"}),
        "wall_clock": _state(base is not None),
        "log_windows": "absent",
    }
    if "assumed" in named or ("mapped" in named and "absent" in named):
        states["gpu_identity"] = "partial"
    return states


def _state(there: bool) -> State:
    return "present" if there else "absent"


def _graph_nodes(counts: _Counts) -> State:
    """Every kernel of a replay is recorded; older profilers only do not number the nodes."""
    if counts.graph_nodes:
        return "present"
    return "partial" if counts.graph_launches and counts.kinds.get("kernel") else "absent"


def _diagnostics(
    metadata: Metadata, rows: _Rows, losses: Losses, truncated: str | None, base: int | None
) -> Iterator[Diagnostic]:
    counts = rows.counts
    if truncated:
        yield Diagnostic(
            "truncated", "error", 1, f"{truncated}; {rows.events} complete events were kept"
        )
    if losses.first_offset is not None:
        yield _malformed(losses)
    if metadata.damaged:
        yield Diagnostic(
            "malformed_metadata", "warning", 1,
            "the text around the events is malformed: rank, device or clock may be missing",
        )  # fmt: skip
    if base is None and counts.kinds:
        yield Diagnostic(
            "clock_unknown", "info", 1,
            "no baseTimeNanoseconds and no Unix times: not comparable with other sources",
        )  # fmt: skip
    if counts.invalid_times:
        yield Diagnostic(
            "invalid_time", "warning", counts.invalid_times,
            "events without a time (no ts, or ts 0 and dur 0 on a GPU) were left out",
        )  # fmt: skip
    if counts.implausible:
        yield Diagnostic(
            "implausible_duration", "warning", counts.implausible,
            "durations below 0, or above an hour on a GPU, are taken as 0",
        )  # fmt: skip
    if counts.unnamed:
        yield Diagnostic(
            "unnamed_kernels", "warning", counts.unnamed,
            "kernels whose name the profiler wrote as `unknown`: they cannot be classified",
        )  # fmt: skip


def _malformed(losses: Losses) -> Diagnostic:
    lost = sum(losses.lost.values())
    return Diagnostic(
        "malformed_events",
        "error" if _lost_gpu_events(losses) else "warning",
        losses.repaired + lost,
        f"{losses.repaired} repaired, {lost} lost; first at byte {losses.first_offset}:"
        f" {losses.reason}",
    )
