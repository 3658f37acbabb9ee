"""Kineto events to rows of parts: gathered by kind of event and written in batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from roundline.readers.contract import Sink
from roundline.readers.kineto_columns import (
    Cache,
    Names,
    api_name,
    copy_kind,
    correlations,
    external_ids,
    gpu_columns,
    integers,
    kernel_columns,
    nanoseconds,
    streams,
    threads,
)
from roundline.readers.kineto_events import Args, Event, arguments
from roundline.readers.kineto_metadata import Processes

_BATCH: Final = 16_384  # rows of one kind: large enough for Arrow, a few MB as objects
_HOUR_NS: Final = 3_600_000_000_000
GPU_KINDS: Final = frozenset({"kernel", "memcpy", "memset"})
RANGE_KINDS: Final = frozenset({"user_annotation", "cpu_op", "python_function", "gpu_annotation"})
# categories in lower case: files of 2020 and 2021 write Kernel, Memcpy, Runtime, Operator
_KINDS: Final = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "memcpy": "memcpy",
    "gpu_memset": "memset",
    "memset": "memset",
    "runtime": "api",
    "user_annotation": "user_annotation",
    "gpu_user_annotation": "gpu_annotation",
    "cpu_op": "cpu_op",
    "operator": "cpu_op",
    "python_function": "python_function",
    "overhead": "overhead",
}


def kind_of(category: str) -> str | None:
    """What an event of a category is; None for flows, instants, counters and the rest.

    `cuda_runtime` holds HIP calls too; other accelerators have `…_runtime` of their own.
    """
    category = category.lower()
    if category.endswith(("_runtime", "_driver")):
        return "api"
    return _KINDS.get(category)


@dataclass
class Tally:
    """What was counted while rows were written."""

    rows: dict[str, int] = field(default_factory=dict)
    devices: set[tuple[int, int]] = field(default_factory=set)
    first_ns: int | None = None
    no_time: int = 0
    implausible: int = 0
    unnamed: int = 0
    graph_nodes: int = 0
    graph_launches: int = 0

    def note_start(self, start_ns: int) -> None:
        """Remember the earliest start."""
        if self.first_ns is None or start_ns < self.first_ns:
            self.first_ns = start_ns

    def gpu_rows(self) -> int:
        """Rows of GPU activity."""
        return sum(self.rows.get(kind, 0) for kind in GPU_KINDS)

    def ranges(self) -> int:
        """Rows of ranges."""
        return sum(self.rows.get(kind, 0) for kind in RANGE_KINDS)


class TableWriter:
    """Writes the rows of events to a sink and keeps count."""

    def __init__(self, sink: Sink, *, with_python: bool) -> None:
        self.processes = Processes()
        self.tally = Tally()
        self._sink = sink
        self._groups: defaultdict[str, list[Event]] = defaultdict(list)
        self._names = Names()
        self._api_names = Cache(api_name)
        self._copy_kinds = Cache(copy_kind)
        skipped = None if with_python else "python_function"
        self.kinds = Cache(lambda cat: None if (kind := kind_of(cat)) == skipped else kind)

    def add(self, events: Sequence[Event]) -> None:
        """Take events, all of which are of some kind; write the kinds that have gathered enough."""
        groups, kinds = self._groups, self.kinds
        for event in events:
            groups[kinds[event.cat]].append(event)
        for kind, group in groups.items():
            if len(group) >= _BATCH:
                self._write(kind, group)
                groups[kind] = []

    def finish(self) -> None:
        """Write what is left."""
        for kind, group in self._groups.items():
            self._write(kind, group)
        self._groups.clear()

    def _write(self, kind: str, events: list[Event]) -> None:
        events, times = self._times(kind, events)
        if not events:
            return
        self.tally.rows[kind] = self.tally.rows.get(kind, 0) + len(events)
        processes = [self.processes[event.pid] for event in events]
        table, columns = self._columns(kind, events, arguments(events))
        if kind in GPU_KINDS:
            devices = columns["device_id"].to_pylist()
            self.tally.devices.update(zip(processes, devices, strict=True))
        elif kind != "gpu_annotation":
            self.processes.note_host(events)
        if (names := self._names.fresh()) is not None:
            self._sink.write("names", names)
        columns = {"process_id": pa.array(processes, pa.int32()), **times, **columns}
        self._sink.write(table, pa.RecordBatch.from_pydict(columns))

    def _columns(
        self, kind: str, events: list[Event], args: list[Args]
    ) -> tuple[str, dict[str, pa.Array]]:
        if kind == "kernel":
            return "kernels", self._kernels(events, args)
        if kind in GPU_KINDS:
            return "memory_ops", self._memory_ops(kind, events, args)
        if kind == "api":
            return "api_calls", self._api_calls(events, args)
        if kind == "overhead":
            names = pa.array([event.name for event in events], pa.string())
            return "overheads", {"thread_id": threads(events), "kind": names}
        return "ranges", self._ranges(kind, events, args)

    def _kernels(self, events: list[Event], args: list[Args]) -> dict[str, pa.Array]:
        names = [event.name for event in events]
        columns = kernel_columns(events, args) | {"name_id": self._names.ids(names)}
        nodes = columns["graph_node_id"]
        self.tally.graph_nodes += len(nodes) - nodes.null_count
        self.tally.unnamed += names.count("unknown") + names.count("")
        return columns

    def _memory_ops(self, kind: str, events: list[Event], args: list[Args]) -> dict[str, pa.Array]:
        copies = [self._copy_kinds[e.name] if kind == "memcpy" else None for e in events]
        return gpu_columns(events, args) | {
            "kind": pa.array([kind] * len(events), pa.string()),
            "copy_kind": pa.array(copies, pa.string()),
            "bytes": integers([arg.bytes for arg in args], pa.int64()),
        }

    def _api_calls(self, events: list[Event], args: list[Args]) -> dict[str, pa.Array]:
        names = [self._api_names[event.name] for event in events]
        self.tally.graph_launches += sum(name.endswith("GraphLaunch") for name in names)
        return {
            "thread_id": threads(events),
            "name": pa.array(names, pa.string()),
            "correlation_id": correlations(args),
        }

    def _ranges(self, kind: str, events: list[Event], args: list[Args]) -> dict[str, pa.Array]:
        columns = {
            "name_id": self._names.ids(event.name for event in events),
            "kind": pa.array([kind] * len(events), pa.string()),
            "external_id": external_ids(args),
        }
        if kind == "gpu_annotation":
            return columns | {"stream_id": streams(events, args)}
        return columns | {"thread_id": threads(events)}

    def _times(self, kind: str, events: list[Event]) -> tuple[list[Event], dict[str, pa.Array]]:
        """Start and end of events; those without a start are left out and counted."""
        start = nanoseconds([event.ts for event in events])
        if start.null_count:
            self.tally.no_time += start.null_count
            events = [
                e for e, known in zip(events, start.is_valid().to_pylist(), strict=True) if known
            ]
            start = start.drop_null()
        if not events:
            return events, {}
        duration = self._plausible(kind, nanoseconds([event.dur for event in events]))
        if kind in GPU_KINDS:
            zero = pc.and_(pc.equal(start, 0), pc.equal(duration, 0))
            self.tally.no_time += pc.sum(zero).as_py()
        self.tally.note_start(pc.min(start).as_py())
        end = pc.add(start, duration)
        if kind in RANGE_KINDS:
            end = pc.if_else(pa.array([_never_closed(event) for event in events]), None, end)
        return events, {"start_ns": start, "end_ns": end}

    def _plausible(self, kind: str, duration: pa.Array) -> pa.Array:
        """Durations; 0 and counted where there is none or it cannot be."""
        odd = pc.less(duration, 0).fill_null(True)
        if kind in GPU_KINDS:
            odd = pc.or_(odd, pc.greater(duration, _HOUR_NS).fill_null(True))
        self.tally.implausible += pc.sum(odd).as_py()
        return pc.if_else(odd, 0, duration)


def _never_closed(event: Event) -> bool:
    return event.args is not None and event.args.finished is False
