"""Builds Nsight exports row by row, in every container, with or without a vendor's schema."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Row = Mapping[str, Any]
Tables = Mapping[str, Sequence[Row]]

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"

# what the vendor's exporter writes unsigned in columnar exports, in SQLite signed
_UNSIGNED = frozenset(
    {"globalTid", "globalPid", "contextId", "streamId", "rangeId", "category", "domainId",
     "demangledName", "shortName", "nameId", "graphNodeId", "greenContextId"}
)  # fmt: skip
_UINT32_IN_ARROW = frozenset({"deviceId", "correlationId", "textId", "eventType", "eventClass"})
_NARROW = frozenset({"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"})


def global_id(pid: int, tid: int = 0, hardware: int = 1) -> int:
    """A global process or thread id, as SQLite shows it: signed."""
    value = (hardware << 56) | (pid << 24) | tid
    return value - (1 << 64) if value >= 1 << 63 else value


def kernel(index: int, pid: int = 100, **values: Any) -> dict[str, Any]:
    """One kernel of 300 ns every microsecond, launched by call `index`."""
    start = 1_000 * index
    return {
        "start": start, "end": start + 300, "deviceId": 0, "contextId": 1, "streamId": 7,
        "correlationId": index, "globalPid": global_id(pid), "demangledName": 1, "shortName": 2,
        "gridX": 4, "gridY": 1, "gridZ": 1, "blockX": 128, "blockY": 1, "blockZ": 1,
        "registersPerThread": 32, "staticSharedMemory": 16, "dynamicSharedMemory": 1024,
    } | values  # fmt: skip


def call(index: int, pid: int = 100, **values: Any) -> dict[str, Any]:
    """The API call that launches kernel `index`, 200 ns before it."""
    start = 1_000 * index - 200
    return {
        "start": start, "end": start + 150, "eventClass": 0, "globalTid": global_id(pid, pid + 1),
        "correlationId": index, "nameId": 3, "returnValue": 0,
    } | values  # fmt: skip


def nvtx(index: int, pid: int = 100, **values: Any) -> dict[str, Any]:
    """A push/pop range around call `index`, with its message inline."""
    start = 1_000 * index - 250
    return {
        "start": start, "end": start + 500, "eventType": 59, "text": f"step {index}",
        "textId": None, "globalTid": global_id(pid, pid + 1), "domainId": 0,
    } | values  # fmt: skip


STRINGS: tuple[Row, ...] = tuple(
    {"id": id_, "value": value}
    for id_, value in enumerate(
        ("zero is a name", "void gemm<float>(float*)", "gemm", "cudaLaunchKernel_v7000",
         "cudaGraphLaunch_v10000_ptsz", "registered", "Buffer Flush")
    )
)  # fmt: skip


def two_processes() -> dict[str, list[Row]]:
    """Two processes that both call their GPU device 0, with everything that Roundline reads."""
    pids = (100, 200)
    gpu = {"name": "NVIDIA RTX A6000", "memoryBandwidth": 768_096_000_000, "smCount": 84,
           "totalMemory": 51_000_000_000, "l2CacheSize": 6_291_456, "computeMajor": 8,
           "computeMinor": 6}  # fmt: skip
    return {
        "StringIds": list(STRINGS),
        KERNEL: [kernel(i, pid) for pid in pids for i in range(1, 6)]
        + [kernel(i, 100, correlationId=50, graphNodeId=(7 << 32) | i, graphId=7)
           for i in range(10, 14)],
        MEMCPY: [{
            "start": 20_000, "end": 20_400, "deviceId": 0, "contextId": 1, "streamId": 7,
            "correlationId": 60, "globalPid": global_id(100), "bytes": 4096, "copyKind": 1,
        }],
        RUNTIME: [call(i, pid) for pid in pids for i in range(1, 6)]
        + [call(9, correlationId=50, nameId=4), call(1, eventClass=67)],
        "NVTX_EVENTS": [
            nvtx(1), nvtx(2, text=None, textId=5), nvtx(3, end=None), nvtx(4, 200, domainId=1),
            nvtx(0, 200, eventType=75, end=None, text="decode", domainId=1),
            nvtx(5, eventType=34, end=None),
        ],
        "PROFILER_OVERHEAD": [{
            "start": 3_500, "end": 3_600, "globalTid": global_id(100, 101), "nameId": 6,
            "returnValue": 0,
        }],
        "TARGET_INFO_GPU": [{"id": 0, "cuDevice": 1, **gpu}, {"id": 1, "cuDevice": 0, **gpu}],
        "TARGET_INFO_CUDA_DEVICE": [
            {"gpuId": 1, "cudaId": 0, "pid": 100}, {"gpuId": 0, "cudaId": 0, "pid": 200},
        ],
        "ANALYSIS_DETAILS": [{"duration": 90_000, "startTime": 5, "stopTime": 6}],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_755_000_000_000_000_000}],
        "PROCESSES": [{"globalPid": global_id(pid), "pid": pid, "name": "python"} for pid in pids],
    }  # fmt: skip


def metadata(**values: str) -> dict[str, list[Row]]:
    """The metadata table of an exporter."""
    return {"META_DATA_EXPORT": [{"name": k, "value": v} for k, v in values.items()]}


def write_sqlite(path: Path, tables: Tables, ddl: str = "") -> Path:
    """Write rows; with a schema only its tables and columns, and what it demands as zero."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(ddl)
        for table, rows in tables.items():
            if not ddl and rows:
                names = dict.fromkeys(name for row in rows for name in row)
                columns = ", ".join(f'"{name}"' for name in names)
                connection.execute(f'CREATE TABLE "{table}" ({columns})')
            _insert(connection, table, rows)
        connection.commit()
    return path


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    columns = connection.execute(f'PRAGMA table_info("{table}")').fetchall()
    marks = ", ".join("?" * len(columns))
    for row in rows if columns else ():
        values = [
            row.get(name, 0 if is_required else None) for _, name, _, is_required, _, _ in columns
        ]
        connection.execute(f'INSERT OR REPLACE INTO "{table}" VALUES ({marks})', values)


def write_parquetdir(folder: Path, tables: Tables) -> Path:
    """Write one Parquet file per table with the exporter's types."""
    folder.mkdir()
    for name, rows in tables.items():
        table = _arrow(rows, arrow_stream=False)
        pq.write_table(table, folder / f"{name}.parquet", compression="none", row_group_size=4)
    return folder


def write_arrowdir(folder: Path, tables: Tables) -> Path:
    """Write one Arrow stream per table with the exporter's types."""
    folder.mkdir()
    for name, rows in tables.items():
        table = _arrow(rows, arrow_stream=True)
        with pa.ipc.new_stream(folder / f"{name}.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    return folder


def _arrow(rows: Sequence[Row], *, arrow_stream: bool) -> pa.Table:
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        columns[name] = pa.array(
            [v % (1 << 64) if name in _UNSIGNED and v is not None else v for v in values],
            _type(name, values, arrow_stream=arrow_stream),
        )
    return pa.table(columns)


def _type(name: str, values: Sequence[Any], *, arrow_stream: bool) -> pa.DataType:
    if any(isinstance(value, str) for value in values) or name == "text":
        return pa.string()
    if name in _UNSIGNED:
        return pa.uint64()
    if name in _UINT32_IN_ARROW and arrow_stream:
        return pa.uint32()
    return pa.int32() if name in _NARROW else pa.int64()
