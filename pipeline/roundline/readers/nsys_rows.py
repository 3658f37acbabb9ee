"""Rows of Nsight event tables: batches with their times, processes and threads made plain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from roundline.readers.contract import Sink
from roundline.readers.nsys_counts import Counts
from roundline.readers.nsys_export import Export, Metadata, resolve
from roundline.readers.nsys_names import Names

PID_MASK: Final = -0x1000000  # keeps hardware id, VM id and pid; clears the thread
_NO_PROCESS: Final = -0x200000000000000  # 0xFE00… as a signed integer
GPU_COLUMNS: Final = {
    "deviceId": "device_id", "contextId": "context_id", "streamId": "stream_id",
    "correlationId": "correlation_id", "graphId": "graph_id", "graphNodeId": "graph_node_id",
}  # fmt: skip


class Processes:
    """Global process ids, numbered as they are met."""

    def __init__(self) -> None:
        self.numbers: dict[int | None, int] = {}

    def of_global_ids(self, ids: pa.Array) -> pa.Array:
        """Local process ids of global thread or process ids."""
        pids = pc.bit_wise_and(ids, pa.scalar(PID_MASK, pa.int64()))
        unique = pc.unique(pids)
        numbers = pa.array([self.number(pid) for pid in unique.to_pylist()], pa.int32())
        return numbers.take(pc.index_in(pids, value_set=unique))

    def number(self, global_pid: int | None) -> int:
        """Local process id of a global one; what names no process belongs to the only one."""
        if global_pid is None or global_pid == _NO_PROCESS:
            return 0 if len(self.numbers) == 1 else self.numbers.setdefault(None, len(self.numbers))
        return self.numbers.setdefault(global_pid, len(self.numbers))


class EventRows:
    """Reads batches of one export and writes parts; names, processes and counts grow with it."""

    def __init__(self, export: Export, metadata: Metadata, sink: Sink) -> None:
        self.export = export
        self.metadata = metadata
        self.sink = sink
        self.names = Names()
        self.processes = Processes()
        self.counts = Counts()

    def scan(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Batches of the columns that exist; nothing when the table is missing."""
        name = resolve(self.export, table)
        there = [c for c in dict.fromkeys(columns) if c in self.export.columns(name)]
        if there:
            yield from self.export.scan(name, there)

    def timed(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """As `_scan`, without rows that lack a start or an end; no event is without them."""
        for batch in self.scan(table, columns):
            if not {"start", "end"} <= set(batch.column_names):
                self.counts.missing_times += batch.num_rows
                continue
            kept = batch
            if batch["start"].null_count or batch["end"].null_count:
                kept = batch.filter(pc.and_(batch["start"].is_valid(), batch["end"].is_valid()))
                self.counts.missing_times += batch.num_rows - kept.num_rows
            if kept.num_rows:
                yield kept

    def first(self, table: str, *columns: str) -> str | None:
        """The first of these columns that a table has."""
        there = self.export.columns(resolve(self.export, table))
        return next((c for c in columns if c in there), None)

    def gpu_columns(self, batch: pa.Table) -> dict[str, Any]:
        """What every activity of a GPU has: times, process, device, stream, launch, graph."""
        starts = self.time(batch, "start")
        part: dict[str, Any] = {
            "start_ns": starts,
            "end_ns": self.forward(starts, self.time(batch, "end")),
            "process_id": self._process(batch, "globalPid"),
        }
        for old, new in GPU_COLUMNS.items():
            if old in batch.column_names:
                keep_zero = old in ("deviceId", "contextId", "streamId")
                part[new] = batch[old] if keep_zero else no_zero(batch, old)
        part.setdefault("device_id", pa.array([0] * batch.num_rows, pa.int64()))
        part["device_id"] = pc.fill_null(part["device_id"], 0)
        self.counts.add_gpu_events(part["process_id"], part["device_id"], part["end_ns"])
        if "graph_node_id" in part:
            self.counts.graph_nodes += batch.num_rows - part["graph_node_id"].null_count
        return part

    def host_columns(self, batch: pa.Table) -> dict[str, Any]:
        """What every activity of the host has but its end: start, process, thread."""
        column = "globalTid" if "globalTid" in batch.column_names else "globalPid"
        part: dict[str, Any] = {
            "start_ns": self.time(batch, "start"),
            "process_id": self._process(batch, column),
        }
        if column == "globalTid":
            mask = pa.scalar(0xFFFFFF, pa.int64())
            part["thread_id"] = pc.bit_wise_and(batch["globalTid"], mask)
        return part

    def _process(self, batch: pa.Table, column: str) -> pa.Array:
        if column in batch.column_names:
            return self.processes.of_global_ids(batch[column].combine_chunks())
        return pa.array([self.processes.number(None)] * batch.num_rows, pa.int32())

    def time(self, batch: pa.Table, column: str) -> pa.Array:
        """Times on the capture's own clock: the exporter's shift taken off again."""
        if column not in batch.column_names:
            return pa.nulls(batch.num_rows, pa.int64())
        times = batch[column].combine_chunks()
        return pc.subtract(times, self.metadata.shift_ns) if self.metadata.shift_ns else times

    def forward(self, starts: pa.Array, ends: pa.Array) -> pa.Array:
        """Ends that are not before their starts, as the vendor's own tools read them."""
        backward = pc.sum(pc.less(ends, starts)).as_py() or 0
        self.counts.backward_times += backward
        if not backward:
            return ends
        return pc.if_else(pc.fill_null(pc.less(ends, starts), False), starts, ends)

    def write(self, table: str, columns: dict[str, Any]) -> None:
        """Hand a part's rows to the sink, and count them."""
        part = pa.table(columns)
        if "start_ns" in columns:
            negative = pc.sum(pc.less(part["start_ns"], 0)).as_py() or 0
            self.counts.negative_times += negative
        self.counts.add(table, part.num_rows)
        self.sink.write(table, part)


def no_zero(batch: pa.Table, column: str) -> pa.Array:
    """A column of ids in which 0 means none."""
    if column not in batch.column_names:
        return pa.nulls(batch.num_rows, pa.int64())
    ids = batch[column].combine_chunks()
    return pc.if_else(pc.equal(ids, 0), pa.scalar(None, pa.int64()), ids)
