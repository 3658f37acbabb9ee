"""Writes a capture as Nsight Systems exports it to SQLite: one file with all processes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from roundline.simulate import nsys_metadata as metadata
from roundline.simulate.names.spelling import nsight_short_name, nsight_spelling
from roundline.simulate.nsys_metadata import Row
from roundline.simulate.nsys_schema import Version, parse_version, tables_of
from roundline.simulate.timeline import (
    ApiCall,
    Capture,
    HostRange,
    Kernel,
    MemoryOp,
    Overhead,
    RankTrace,
    repetitions,
)

GraphMode = Literal["node", "graph"]

_COPY_KINDS: Final = {"HtoD": (1, 1, 2), "DtoH": (2, 2, 1), "DtoD": (8, 2, 2), "PtoP": (10, 2, 2)}
_API_SUFFIX: Final = {"cudaGraphLaunch": "_v10000", "cudaLaunchKernelExC": "_v11060"}
_PUSH_POP: Final = 59
_BATCH: Final = 50_000


def write_nsys_sqlite(
    capture: Capture,
    path: Path,
    *,
    schema: str = "3.17.1",
    graphs: GraphMode = "node",
    times: int = 1,
) -> None:
    """Write `capture` to `path`, replacing what is there.

    Args:
        capture: what was recorded.
        path: the `.sqlite` file.
        schema: export-schema version, one of `PRODUCT_VERSIONS`.
        graphs: `node` gives a row for every graph node, `graph` one span per replay, which
            versions before 3.11.1 leave out altogether.
        times: repeat the recording so often, in the memory of one repetition.

    Raises:
        UnknownNameError: unknown schema version.
    """
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        _Export(database, schema, graphs).write(capture, times)
        database.commit()


@dataclass
class _Export:
    """One export under way; `strings` numbers the texts in order of first use."""

    database: sqlite3.Connection
    schema: str
    graphs: GraphMode
    strings: dict[str, int] = field(default_factory=dict)

    @property
    def version(self) -> Version:
        return parse_version(self.schema)

    def write(self, capture: Capture, times: int) -> None:
        """All tables; a table without rows is not written, as exporters do since 3.0."""
        self._insert_metadata(capture)
        for part in repetitions(capture, times):
            for trace in part.ranks:
                self._insert_events(trace, part.end_ns)
        strings = ({"id": number, "value": text} for text, number in self.strings.items())
        self._insert("StringIds", strings)

    def _insert_events(self, trace: RankTrace, end_ns: int) -> None:
        self._insert("CUPTI_ACTIVITY_KIND_RUNTIME", self._runtime(trace))
        self._insert("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", _synchronisations(trace))
        self._insert("CUPTI_ACTIVITY_KIND_KERNEL", self._kernels(trace))
        self._insert("CUPTI_ACTIVITY_KIND_MEMCPY", self._copies(trace))
        self._insert("CUPTI_ACTIVITY_KIND_MEMSET", self._fills(trace))
        if self.graphs == "graph":
            self._insert("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", _graph_spans(trace))
        self._insert("NVTX_EVENTS", self._ranges(trace, end_ns))
        self._insert("PROFILER_OVERHEAD", self._overheads(trace))

    def _insert(self, table_name: str, rows: Iterable[Row]) -> None:
        table = tables_of(self.version).get(table_name)
        if table is None:
            return
        columns = table.names(self.version)
        places = ", ".join("?" * len(columns))
        batch: list[tuple[object, ...]] = []
        for row in rows:
            if not batch:
                self._create(table_name)
            batch.append(tuple(map(row.get, columns)))
            if len(batch) == _BATCH:
                self.database.executemany(f"INSERT INTO {table_name} VALUES ({places})", batch)
                batch.clear()
        if batch:
            self.database.executemany(f"INSERT INTO {table_name} VALUES ({places})", batch)

    def _create(self, table_name: str) -> None:
        ddl = tables_of(self.version)[table_name].ddl(self.version)
        self.database.execute(ddl.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1))

    def _string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def _kernels(self, trace: RankTrace) -> Iterator[Row]:
        for number, kernel in enumerate(trace.activities):
            if isinstance(kernel, Kernel) and self._is_shown(kernel):
                yield self._kernel(trace, kernel, number)

    def _is_shown(self, activity: Kernel | MemoryOp) -> bool:
        return self.graphs == "node" or activity.graph_id is None

    def _kernel(self, trace: RankTrace, kernel: Kernel, number: int) -> Row:
        return {
            **_gpu_columns(trace, kernel),
            "demangledName": self._string(nsight_spelling(kernel.name)),
            "shortName": self._string(nsight_short_name(kernel.name)),
            "launchType": 1,
            "cacheConfig": 1,
            "registersPerThread": kernel.registers_per_thread,
            **dict(zip(("gridX", "gridY", "gridZ"), kernel.grid, strict=True)),
            **dict(zip(("blockX", "blockY", "blockZ"), kernel.block, strict=True)),
            "staticSharedMemory": kernel.shared_memory_bytes,
            "dynamicSharedMemory": 0,
            "localMemoryPerThread": 0,
            "localMemoryTotal": 77_856_768,
            "gridId": number + 1,
            "sharedMemoryExecuted": 32_768,
            "sharedMemoryLimitConfig": 0,
            "graphId": kernel.graph_id or 0,
            "clusterX": 0,
            "clusterY": 0,
            "clusterZ": 0,
            "clusterSchedulingPolicy": 1,
            "maxPotentialClusterSize": 0,
            "maxActiveClusters": 0,
            "tensorSizeMinusOneElements": "[]",
        }

    def _copies(self, trace: RankTrace) -> Iterator[Row]:
        for copy in trace.activities:
            if isinstance(copy, MemoryOp) and copy.copy_kind is not None and self._is_shown(copy):
                kind, source, target = _COPY_KINDS[copy.copy_kind]
                yield {
                    **_gpu_columns(trace, copy),
                    "bytes": copy.size_bytes,
                    "copyKind": kind,
                    "srcKind": source,
                    "dstKind": target,
                    "copyCount": 1,
                }

    def _fills(self, trace: RankTrace) -> Iterator[Row]:
        for fill in trace.activities:
            if isinstance(fill, MemoryOp) and fill.kind == "memset" and self._is_shown(fill):
                yield {
                    **_gpu_columns(trace, fill),
                    "value": 0,
                    "bytes": fill.size_bytes,
                    "memKind": 2,
                }

    def _runtime(self, trace: RankTrace) -> Iterator[Row]:
        for call in trace.api_calls:
            is_driver = call.name.startswith("cu") and not call.name.startswith("cuda")
            suffix = "" if is_driver else _API_SUFFIX.get(call.name, "_v3020")
            yield {
                **_host_columns(trace, call),
                "eventClass": int(is_driver),
                "correlationId": call.correlation_id,
                "nameId": self._string(call.name + suffix),
                "returnValue": 0,
            }

    def _ranges(self, trace: RankTrace, end_ns: int) -> Iterator[Row]:
        """Push/pop ranges. Nsight sees no torch operators; it ends open ranges with the capture."""
        for item in trace.ranges:
            if item.kind == "annotation":
                yield {
                    **_host_columns(trace, item),
                    "end": end_ns if item.end_ns is None else item.end_ns,
                    "eventType": _PUSH_POP,
                    "text": item.name,
                    "domainId": 0,
                }

    def _overheads(self, trace: RankTrace) -> Iterator[Row]:
        for overhead in trace.overheads:
            yield {
                **_host_columns(trace, overhead),
                "nameId": self._string(overhead.kind),
                "returnValue": 0,
                "overheadType": 3,
            }

    def _insert_metadata(self, capture: Capture) -> None:
        export_table = "META_DATA_EXPORT" if self.version >= (3, 4) else "EXPORT_META_DATA"
        self._insert(export_table, metadata.pairs(metadata.export_facts(self.schema)))
        self._insert("META_DATA_CAPTURE", metadata.pairs(self._capture_facts()))
        duration_ns = capture.end_ns
        self._insert(
            "ANALYSIS_DETAILS",
            [
                {
                    "globalVid": metadata.VM,
                    "duration": duration_ns,
                    "startTime": 0,
                    "stopTime": duration_ns,
                }
            ],
        )
        self._insert("TARGET_INFO_SESSION_START_TIME", [{"utcEpochNs": capture.epoch_ns}])
        self._insert("PROCESSES", (metadata.process(trace) for trace in capture.ranks))
        self._insert("TARGET_INFO_GPU", (metadata.gpu(capture, trace) for trace in capture.ranks))
        self._insert(
            "TARGET_INFO_CUDA_DEVICE", (metadata.device(capture, t) for t in capture.ranks)
        )
        contexts = [metadata.context(trace) for trace in capture.ranks]
        self._insert("TARGET_INFO_CUDA_NULL_STREAM", contexts)
        self._insert("TARGET_INFO_CUDA_CONTEXT_INFO", contexts)

    def _capture_facts(self) -> list[tuple[str, str]]:
        prefix = "" if self.version >= (3, 25) else "PROCESS_0:"
        return [
            ("CAPTURE_EVENT_TYPE", "Cuda"),
            ("CAPTURE_EVENT_TYPE", "NvtxEvents"),
            ("DEVICE_ID", "Local (CLI)"),
            (f"{prefix}CUDA_GRAPH_TRACE_OPTIONS:MODE", self.graphs.capitalize()),
            ("PROCESS_0:COMMAND", "python3"),
        ]


def _gpu_columns(trace: RankTrace, activity: Kernel | MemoryOp) -> dict[str, object]:
    node = None
    if activity.graph_id is not None and activity.graph_node is not None:
        node = activity.graph_id << 32 | activity.graph_node
    return {
        "start": activity.start_ns,
        "end": activity.end_ns,
        "deviceId": trace.device_id,
        "contextId": metadata.CONTEXT,
        "greenContextId": 0,
        "streamId": activity.stream_id,
        "correlationId": activity.correlation_id,
        "globalPid": metadata.global_pid(trace),
        "graphNodeId": node,
    }


def _host_columns(trace: RankTrace, item: ApiCall | HostRange | Overhead) -> dict[str, object]:
    return {
        "start": item.start_ns,
        "end": item.end_ns,
        "globalTid": metadata.global_pid(trace) | item.thread_id,
    }


def _synchronisations(trace: RankTrace) -> Iterator[Row]:
    for call in trace.api_calls:
        if call.name == "cudaStreamSynchronize":
            yield {
                "start": call.start_ns,
                "end": call.end_ns,
                "deviceId": trace.device_id,
                "contextId": metadata.CONTEXT,
                "streamId": 7,
                "correlationId": call.correlation_id,
                "globalPid": metadata.global_pid(trace),
                "syncType": 3,
                "eventId": 0xFFFF_FFFF,
                "eventSyncId": 0xFFFF_FFFF,
            }


def _graph_spans(trace: RankTrace) -> Iterator[Row]:
    """One row per replay, from its first node to its last."""
    spans: dict[int, list[Kernel | MemoryOp]] = {}
    for activity in trace.activities:
        if isinstance(activity, Kernel | MemoryOp) and activity.replay_id is not None:
            spans.setdefault(activity.replay_id, []).append(activity)
    for nodes in spans.values():
        yield {
            **_gpu_columns(trace, nodes[0]),
            "start": min(node.start_ns for node in nodes),
            "end": max(node.end_ns for node in nodes),
            "graphId": nodes[0].graph_id,
            "graphExecId": (nodes[0].graph_id or 0) + 1,
        }
