"""Nsight events to parts: kernels, copies, graph spans, API calls, ranges, overheads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from roundline.readers.contract import Sink
from roundline.readers.nsys_counts import Counts
from roundline.readers.nsys_export import (
    GRAPH_TRACE,
    KERNEL,
    MEMCPY,
    MEMSET,
    NVTX,
    RUNTIME,
    Export,
    Metadata,
    resolve,
)
from roundline.readers.nsys_names import UNKNOWN, Names

_API_VERSION: Final = re.compile(r"_v\d+(?:_pt[sd][sz])?$")
_DOMAIN_CREATE: Final = 75
_NO_PROCESS: Final = -0x200000000000000  # 0xFE00… as a signed integer
PID_MASK: Final = -0x1000000  # keeps hardware id, VM id and pid; clears the thread
_COPY_KINDS: Final = {
    1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP", 11: "HtoD", 12: "DtoH", 13: "DtoD",
}  # fmt: skip
_OVERHEADS: Final = {
    2: "JIT", 3: "Buffer Flush", 4: "Instrumentation", 5: "Resource", 6: "Module Loading",
    7: "Lazy Function Loading", 8: "Command Buffer Full",
}  # fmt: skip
_GPU_COLUMNS: Final = {
    "deviceId": "device_id", "contextId": "context_id", "streamId": "stream_id",
    "correlationId": "correlation_id", "graphId": "graph_id", "graphNodeId": "graph_node_id",
}  # fmt: skip
_KERNEL_COLUMNS: Final = {
    "gridX": "grid_x", "gridY": "grid_y", "gridZ": "grid_z", "blockX": "block_x",
    "blockY": "block_y", "blockZ": "block_z", "registersPerThread": "registers_per_thread",
}  # fmt: skip
_NVTX_KINDS: Final = {59: "nvtx_push_pop", 60: "nvtx_start_end", 70: "nvtx_push_pop",
                      71: "nvtx_start_end"}  # fmt: skip


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


class EventReader:
    """Reads every event table of an export into a sink."""

    def __init__(self, export: Export, metadata: Metadata, sink: Sink) -> None:
        self._export = export
        self._metadata = metadata
        self._sink = sink
        self.names = Names()
        self.processes = Processes()
        self.counts = Counts()
        self._graph_launches: list[pa.Array] = []

    def read(self) -> None:
        """Stream all tables, then the names that they refer to."""
        self._api_calls()
        self._kernels()
        self._memory_ops(MEMCPY, "memcpy")
        self._memory_ops(MEMSET, "memset")
        self._graph_spans()
        self._ranges()
        self._overheads()
        self.names.write(self._export, self._sink)
        self.counts.unnamed_kernels = self.names.unnamed

    def _kernels(self) -> None:
        name = self._first(KERNEL, "demangledName", "shortName", "mangledName")
        shared = ("staticSharedMemory", "dynamicSharedMemory")
        extra = [*_KERNEL_COLUMNS, *shared, "shortName", *filter(None, [name])]
        for batch in self._timed(KERNEL, ("start", "end", "globalPid", *_GPU_COLUMNS, *extra)):
            there = batch.column_names
            columns = self._gpu_columns(batch)
            columns |= {new: batch[old] for old, new in _KERNEL_COLUMNS.items() if old in there}
            short = batch["shortName"] if "shortName" in there and name != "shortName" else None
            columns["name_id"] = (
                self.names.of_kernels(batch[name], short)
                if name
                else pa.array([self.names.of_text(UNKNOWN)] * batch.num_rows, pa.int32())
            )
            if all(column in there for column in shared):
                columns["shared_memory_bytes"] = pc.add(batch[shared[0]], batch[shared[1]])
            self._count_replayed(columns)
            self._write("kernels", columns)

    def _count_replayed(self, columns: dict[str, Any]) -> None:
        """Kernels of a graph launch, told by its correlation where nodes are not named."""
        if self._graph_launches and "graph_node_id" not in columns:
            launches = pa.concat_arrays(self._graph_launches)
            replayed = pc.is_in(columns["correlation_id"], value_set=launches)
            self.counts.replayed_kernels += pc.sum(replayed).as_py() or 0

    def _memory_ops(self, table: str, kind: str) -> None:
        columns = ("start", "end", "globalPid", "bytes", "copyKind", *_GPU_COLUMNS)
        for batch in self._timed(table, columns):
            part = self._gpu_columns(batch)
            part["kind"] = pa.array([kind] * batch.num_rows, pa.string())
            if "bytes" in batch.column_names:
                part["bytes"] = batch["bytes"]
            if kind == "memcpy" and "copyKind" in batch.column_names:
                kinds = [_COPY_KINDS.get(k or 0, "other") for k in batch["copyKind"].to_pylist()]
                part["copy_kind"] = pa.array(kinds, pa.string())
            self._write("memory_ops", part)

    def _graph_spans(self) -> None:
        columns = ("start", "end", "globalPid", "graphExecId", *_GPU_COLUMNS)
        for batch in self._timed(GRAPH_TRACE, columns):
            part = self._gpu_columns(batch)
            part.pop("graph_node_id", None)
            if "graphExecId" in batch.column_names:
                part["graph_exec_id"] = batch["graphExecId"]
            self._write("graph_spans", part)

    def _api_calls(self) -> None:
        columns = ("start", "end", "globalTid", "correlationId", "nameId", "eventClass")
        texts: dict[int, str] = {}
        for batch in self._timed(RUNTIME, columns):
            if "eventClass" in batch.column_names:
                # other classes (backtraces) repeat the correlation id of the call itself
                classes = pc.is_in(batch["eventClass"], value_set=pa.array([0, 1], pa.int64()))
                batch = batch.filter(pc.fill_null(classes, True))
            part = self._host_columns(batch)
            part["end_ns"] = self._forward(part["start_ns"], self._time(batch, "end"))
            part["correlation_id"] = _no_zero(batch, "correlationId")
            part["name"] = self._api_names(batch, texts)
            self._note_launches(part)
            self._write("api_calls", part)

    def _note_launches(self, part: dict[str, Any]) -> None:
        self.counts.add_launches(part["process_id"], part["name"], part["start_ns"])
        is_graph = pc.match_substring(part["name"], "GraphLaunch")
        graphs = part["correlation_id"].filter(is_graph)
        self.counts.graph_launches += len(graphs)
        if len(graphs):
            self._graph_launches.append(graphs)

    def _api_names(self, batch: pa.Table, texts: dict[int, str]) -> pa.Array:
        if "nameId" not in batch.column_names:
            return pa.array([UNKNOWN] * batch.num_rows, pa.string())
        ids = batch["nameId"].combine_chunks()
        unique = pc.unique(ids)
        new = [id_ for id_ in unique.drop_null().to_pylist() if id_ not in texts]
        values = self._export.strings(new)
        texts |= {id_: _API_VERSION.sub("", values.get(id_, UNKNOWN)) for id_ in new}
        names = pa.array([texts.get(id_, UNKNOWN) for id_ in unique.to_pylist()], pa.string())
        return names.take(pc.index_in(ids, value_set=unique))

    def _ranges(self) -> None:
        columns = ("start", "end", "eventType", "text", "textId", "globalTid", "domainId")
        domains = self._domains()
        for batch in self._scan(NVTX, columns):
            if "start" not in batch.column_names:
                return
            if batch["start"].null_count:
                self.counts.missing_times += batch["start"].null_count
                batch = batch.filter(batch["start"].is_valid())
            if "eventType" in batch.column_names:
                kinds = pa.array(list(_NVTX_KINDS), pa.int64())
                is_range = pc.fill_null(pc.is_in(batch["eventType"], value_set=kinds), False)
                self.counts.nvtx_bookkeeping += batch.num_rows - (pc.sum(is_range).as_py() or 0)
                batch = batch.filter(is_range)
            if batch.num_rows:
                self._write("ranges", self._range_columns(batch, domains))

    def _range_columns(
        self, batch: pa.Table, domains: dict[tuple[int, int], str]
    ) -> dict[str, Any]:
        part = self._host_columns(batch)
        part["kind"] = self._range_kinds(batch)
        part["end_ns"] = self._range_ends(batch, part["start_ns"])
        part["name_id"] = self._range_names(batch)
        if domains and "domainId" in batch.column_names:
            processes, ids = part["process_id"].to_pylist(), batch["domainId"].to_pylist()
            part["domain"] = pa.array(
                [domains.get((p, d)) for p, d in zip(processes, ids, strict=True)], pa.string()
            )
        return part

    @staticmethod
    def _range_kinds(batch: pa.Table) -> pa.Array:
        if "eventType" not in batch.column_names:
            return pa.array(["nvtx_push_pop"] * batch.num_rows, pa.string())
        types = pa.array(list(_NVTX_KINDS), pa.int64())
        kinds = pa.array(list(_NVTX_KINDS.values()), pa.string())
        return kinds.take(pc.index_in(batch["eventType"].combine_chunks(), value_set=types))

    def _range_ends(self, batch: pa.Table, starts: pa.Array) -> pa.Array:
        """Ends; a range that was still open ends with the capture or has no end at all."""
        ends = self._time(batch, "end")
        if self._metadata.duration_ns is not None:
            is_open = pc.equal(ends, self._metadata.duration_ns)
            ends = pc.if_else(is_open, pa.scalar(None, pa.int64()), ends)
        self.counts.open_ranges += ends.null_count
        return self._forward(starts, ends)

    def _range_names(self, batch: pa.Table) -> pa.Array:
        """A registered message by its id, else the inline text, else nothing."""
        there = batch.column_names
        numbers = pa.nulls(batch.num_rows, pa.int32())
        if "textId" in there:
            numbers = self.names.of_ids(batch["textId"])
        if "text" in there and numbers.null_count:
            numbers = pc.coalesce(numbers, self.names.of_texts(batch["text"]))
        return numbers.fill_null(self.names.of_text("")) if numbers.null_count else numbers

    def _domains(self) -> dict[tuple[int, int], str]:
        """Domain names by (process, domain): rows of type 75, numbered anew in each process."""
        columns = ("eventType", "globalTid", "domainId", "text", "textId")
        created = [
            {**dict.fromkeys(columns), **row}
            for batch in self._scan(NVTX, columns)
            if "eventType" in batch.column_names
            for row in batch.filter(pc.equal(batch["eventType"], _DOMAIN_CREATE)).to_pylist()
        ]
        values = self._export.strings([r["textId"] for r in created if r["textId"] is not None])
        return {
            (self.processes.number(_pid(row["globalTid"])), row["domainId"]):
                values.get(row["textId"], "") if row["textId"] is not None else row["text"] or ""
            for row in created
        }  # fmt: skip

    def _overheads(self) -> None:
        for batch in self._timed("PROFILER_OVERHEAD", ("start", "end", "globalTid", "nameId")):
            part = self._host_columns(batch)
            part["end_ns"] = self._forward(part["start_ns"], self._time(batch, "end"))
            part["kind"] = self._api_names(batch, {})
            self._write("overheads", part)
        columns = ("start", "end", "globalTid", "globalPid", "overheadKind", "overheadType")
        for batch in self._timed("CUPTI_ACTIVITY_KIND_OVERHEAD", columns):
            kind = next((c for c in columns[4:] if c in batch.column_names), None)
            codes = batch[kind].to_pylist() if kind else [None] * batch.num_rows
            kinds = [_OVERHEADS.get(code or 0, "Profiler") for code in codes]
            part = self._host_columns(batch)
            part["end_ns"] = self._forward(part["start_ns"], self._time(batch, "end"))
            part["kind"] = pa.array(kinds, pa.string())
            self._write("overheads", part)

    def _scan(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Batches of the columns that exist; nothing when the table is missing."""
        name = resolve(self._export, table)
        there = [c for c in dict.fromkeys(columns) if c in self._export.columns(name)]
        if there:
            yield from self._export.scan(name, there)

    def _timed(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """As `_scan`, without rows that lack a start or an end; no event is without them."""
        for batch in self._scan(table, columns):
            if not {"start", "end"} <= set(batch.column_names):
                self.counts.missing_times += batch.num_rows
                continue
            kept = batch
            if batch["start"].null_count or batch["end"].null_count:
                kept = batch.filter(pc.and_(batch["start"].is_valid(), batch["end"].is_valid()))
                self.counts.missing_times += batch.num_rows - kept.num_rows
            if kept.num_rows:
                yield kept

    def _first(self, table: str, *columns: str) -> str | None:
        there = self._export.columns(resolve(self._export, table))
        return next((c for c in columns if c in there), None)

    def _gpu_columns(self, batch: pa.Table) -> dict[str, Any]:
        starts = self._time(batch, "start")
        part: dict[str, Any] = {
            "start_ns": starts,
            "end_ns": self._forward(starts, self._time(batch, "end")),
            "process_id": self._process(batch, "globalPid"),
        }
        for old, new in _GPU_COLUMNS.items():
            if old in batch.column_names:
                keep_zero = old in ("deviceId", "contextId", "streamId")
                part[new] = batch[old] if keep_zero else _no_zero(batch, old)
        part.setdefault("device_id", pa.array([0] * batch.num_rows, pa.int64()))
        part["device_id"] = pc.fill_null(part["device_id"], 0)
        self.counts.add_gpu_events(part["process_id"], part["device_id"], part["end_ns"])
        if "graph_node_id" in part:
            self.counts.graph_nodes += batch.num_rows - part["graph_node_id"].null_count
        return part

    def _host_columns(self, batch: pa.Table) -> dict[str, Any]:
        column = "globalTid" if "globalTid" in batch.column_names else "globalPid"
        part: dict[str, Any] = {
            "start_ns": self._time(batch, "start"),
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

    def _time(self, batch: pa.Table, column: str) -> pa.Array:
        """Times on the capture's own clock: the exporter's shift taken off again."""
        if column not in batch.column_names:
            return pa.nulls(batch.num_rows, pa.int64())
        times = batch[column].combine_chunks()
        return pc.subtract(times, self._metadata.shift_ns) if self._metadata.shift_ns else times

    def _forward(self, starts: pa.Array, ends: pa.Array) -> pa.Array:
        """Ends that are not before their starts, as the vendor's own tools read them."""
        backward = pc.sum(pc.less(ends, starts)).as_py() or 0
        self.counts.backward_times += backward
        if not backward:
            return ends
        return pc.if_else(pc.fill_null(pc.less(ends, starts), False), starts, ends)

    def _write(self, table: str, columns: dict[str, Any]) -> None:
        part = pa.table(columns)
        if "start_ns" in columns:
            negative = pc.sum(pc.less(part["start_ns"], 0)).as_py() or 0
            self.counts.negative_times += negative
        self.counts.add(table, part.num_rows)
        self._sink.write(table, part)


def _no_zero(batch: pa.Table, column: str) -> pa.Array:
    """A column of ids in which 0 means none."""
    if column not in batch.column_names:
        return pa.nulls(batch.num_rows, pa.int64())
    ids = batch[column].combine_chunks()
    return pc.if_else(pc.equal(ids, 0), pa.scalar(None, pa.int64()), ids)


def _pid(global_tid: int | None) -> int | None:
    return None if global_tid is None else global_tid & PID_MASK
