"""Nsight events to parts: kernels, copies, graph spans, API calls, overheads."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from roundline.readers.contract import Sink
from roundline.readers.nsys_export import (
    GRAPH_TRACE,
    KERNEL,
    MEMCPY,
    MEMSET,
    RUNTIME,
    Export,
    Metadata,
)
from roundline.readers.nsys_names import UNKNOWN
from roundline.readers.nsys_ranges import RangeReader
from roundline.readers.nsys_rows import GPU_COLUMNS, EventRows, no_zero

_API_VERSION: Final = re.compile(r"_v\d+(?:_pt[sd][sz])?$")
_COPY_KINDS: Final = {
    1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP", 11: "HtoD", 12: "DtoH", 13: "DtoD",
}  # fmt: skip
_OVERHEADS: Final = {
    2: "JIT", 3: "Buffer Flush", 4: "Instrumentation", 5: "Resource", 6: "Module Loading",
    7: "Lazy Function Loading", 8: "Command Buffer Full",
}  # fmt: skip
_KERNEL_COLUMNS: Final = {
    "gridX": "grid_x", "gridY": "grid_y", "gridZ": "grid_z", "blockX": "block_x",
    "blockY": "block_y", "blockZ": "block_z", "registersPerThread": "registers_per_thread",
}  # fmt: skip


class EventReader:
    """Reads every event table of an export into a sink."""

    def __init__(self, export: Export, metadata: Metadata, sink: Sink) -> None:
        self.rows = EventRows(export, metadata, sink)
        self._graph_launches: list[pa.Array] = []

    def read(self) -> None:
        """Stream all tables, then the names that they refer to."""
        self._api_calls()
        self._kernels()
        self._memory_ops(MEMCPY, "memcpy")
        self._memory_ops(MEMSET, "memset")
        self._graph_spans()
        RangeReader(self.rows).read()
        self._overheads()
        self.rows.names.write(self.rows.export, self.rows.sink)
        self.rows.counts.unnamed_kernels = self.rows.names.unnamed

    def _kernels(self) -> None:
        name = self.rows.first(KERNEL, "demangledName", "shortName", "mangledName")
        shared = ("staticSharedMemory", "dynamicSharedMemory")
        extra = [*_KERNEL_COLUMNS, *shared, "shortName", *filter(None, [name])]
        for batch in self.rows.timed(KERNEL, ("start", "end", "globalPid", *GPU_COLUMNS, *extra)):
            there = batch.column_names
            columns = self.rows.gpu_columns(batch)
            columns |= {new: batch[old] for old, new in _KERNEL_COLUMNS.items() if old in there}
            short = batch["shortName"] if "shortName" in there and name != "shortName" else None
            columns["name_id"] = (
                self.rows.names.of_kernels(batch[name], short)
                if name
                else pa.array([self.rows.names.of_text(UNKNOWN)] * batch.num_rows, pa.int32())
            )
            if all(column in there for column in shared):
                columns["shared_memory_bytes"] = pc.add(batch[shared[0]], batch[shared[1]])
            self._count_replayed(columns)
            self.rows.write("kernels", columns)

    def _count_replayed(self, columns: dict[str, Any]) -> None:
        """Kernels of a graph launch, told by its correlation where nodes are not named."""
        if self._graph_launches and "graph_node_id" not in columns:
            launches = pa.concat_arrays(self._graph_launches)
            replayed = pc.is_in(columns["correlation_id"], value_set=launches)
            self.rows.counts.replayed_kernels += pc.sum(replayed).as_py() or 0

    def _memory_ops(self, table: str, kind: str) -> None:
        columns = ("start", "end", "globalPid", "bytes", "copyKind", *GPU_COLUMNS)
        for batch in self.rows.timed(table, columns):
            part = self.rows.gpu_columns(batch)
            part["kind"] = pa.array([kind] * batch.num_rows, pa.string())
            if "bytes" in batch.column_names:
                part["bytes"] = batch["bytes"]
            if kind == "memcpy" and "copyKind" in batch.column_names:
                kinds = [_COPY_KINDS.get(k or 0, "other") for k in batch["copyKind"].to_pylist()]
                part["copy_kind"] = pa.array(kinds, pa.string())
            self.rows.write("memory_ops", part)

    def _graph_spans(self) -> None:
        columns = ("start", "end", "globalPid", "graphExecId", *GPU_COLUMNS)
        for batch in self.rows.timed(GRAPH_TRACE, columns):
            part = self.rows.gpu_columns(batch)
            part.pop("graph_node_id", None)
            if "graphExecId" in batch.column_names:
                part["graph_exec_id"] = batch["graphExecId"]
            self.rows.write("graph_spans", part)

    def _api_calls(self) -> None:
        columns = ("start", "end", "globalTid", "correlationId", "nameId", "eventClass")
        texts: dict[int, str] = {}
        for batch in self.rows.timed(RUNTIME, columns):
            if "eventClass" in batch.column_names:
                # other classes (backtraces) repeat the correlation id of the call itself
                classes = pc.is_in(batch["eventClass"], value_set=pa.array([0, 1], pa.int64()))
                batch = batch.filter(pc.fill_null(classes, True))
            part = self.rows.host_columns(batch)
            part["end_ns"] = self.rows.forward(part["start_ns"], self.rows.time(batch, "end"))
            part["correlation_id"] = no_zero(batch, "correlationId")
            part["name"] = self._api_names(batch, texts)
            self._note_launches(part)
            self.rows.write("api_calls", part)

    def _note_launches(self, part: dict[str, Any]) -> None:
        self.rows.counts.add_launches(part["process_id"], part["name"], part["start_ns"])
        is_graph = pc.match_substring(part["name"], "GraphLaunch")
        graphs = part["correlation_id"].filter(is_graph)
        self.rows.counts.graph_launches += len(graphs)
        if len(graphs):
            self._graph_launches.append(graphs)

    def _api_names(self, batch: pa.Table, texts: dict[int, str]) -> pa.Array:
        if "nameId" not in batch.column_names:
            return pa.array([UNKNOWN] * batch.num_rows, pa.string())
        ids = batch["nameId"].combine_chunks()
        unique = pc.unique(ids)
        new = [id_ for id_ in unique.drop_null().to_pylist() if id_ not in texts]
        values = self.rows.export.strings(new)
        texts |= {id_: _API_VERSION.sub("", values.get(id_, UNKNOWN)) for id_ in new}
        names = pa.array([texts.get(id_, UNKNOWN) for id_ in unique.to_pylist()], pa.string())
        return names.take(pc.index_in(ids, value_set=unique))

    def _overheads(self) -> None:
        for batch in self.rows.timed("PROFILER_OVERHEAD", ("start", "end", "globalTid", "nameId")):
            part = self.rows.host_columns(batch)
            part["end_ns"] = self.rows.forward(part["start_ns"], self.rows.time(batch, "end"))
            part["kind"] = self._api_names(batch, {})
            self.rows.write("overheads", part)
        columns = ("start", "end", "globalTid", "globalPid", "overheadKind", "overheadType")
        for batch in self.rows.timed("CUPTI_ACTIVITY_KIND_OVERHEAD", columns):
            kind = next((c for c in columns[4:] if c in batch.column_names), None)
            codes = batch[kind].to_pylist() if kind else [None] * batch.num_rows
            kinds = [_OVERHEADS.get(code or 0, "Profiler") for code in codes]
            part = self.rows.host_columns(batch)
            part["end_ns"] = self.rows.forward(part["start_ns"], self.rows.time(batch, "end"))
            part["kind"] = pa.array(kinds, pa.string())
            self.rows.write("overheads", part)
