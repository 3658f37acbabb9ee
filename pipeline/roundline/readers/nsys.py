"""One Nsight Systems export into parts and facts, whatever its container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from roundline.errors import SourceError
from roundline.readers.contract import (
    DeviceFacts,
    Diagnostic,
    ProcessFacts,
    ReadOptions,
    Sink,
    SourceFacts,
    State,
)
from roundline.readers.nsys_counts import Counts
from roundline.readers.nsys_events import EventReader
from roundline.readers.nsys_export import (
    NVTX,
    Export,
    Metadata,
    check_schema,
    filter_diagnostics,
    read_metadata,
    rows,
    tool_diagnostics,
)
from roundline.readers.nsys_rows import PID_MASK

_MOST_DEVICES: Final = 4096
_BANDWIDTH_RANGE: Final = range(10**10, 2 * 10**13)  # bytes/s; anything else is no bandwidth


def read_export(export: Export, sink: Sink, options: ReadOptions) -> SourceFacts:
    """Read every table that Roundline knows and say what the export is."""
    metadata = read_metadata(export)
    diagnostics = check_schema(export, metadata, lenient=options.lenient)
    events = EventReader(export, metadata, sink)
    try:
        events.read()
    except pa.ArrowException as error:
        raise SourceError(
            f"{export.label}: a value is out of range ({error}): the export is damaged"
        ) from error
    counts = events.rows.counts
    if len(counts.devices) > _MOST_DEVICES:
        raise SourceError(f"{export.label} names {len(counts.devices)} devices: it is damaged")
    processes = tuple(_processes(export, events))
    devices = tuple(_devices(export, counts, processes))
    diagnostics += [
        *filter_diagnostics(metadata),
        *tool_diagnostics(export, recorded=bool(counts.devices)),
        *counts.diagnostics({process.process_id: process.pid for process in processes}),
        *_graph_level(counts),
        *_lost_ranges(export, counts),
    ]
    return SourceFacts(
        producer="nsight-systems",
        producer_version=metadata.product_version,
        schema_version=metadata.schema_version,
        wall_clock_base_ns=metadata.utc_base_ns,
        processes=processes,
        devices=devices,
        capabilities=_capabilities(metadata, counts, devices),
        diagnostics=tuple(diagnostics),
    )


def _processes(export: Export, events: EventReader) -> Iterator[ProcessFacts]:
    """Processes as they were met, with the rank that MPI gave them where it was traced."""
    ranks = {
        row["globalTid"] & PID_MASK: row["rank"]
        for row in rows(export, "MPI_RANKS", "globalTid", "rank")
        if row["globalTid"] is not None
    }
    size = max(ranks.values(), default=-1) + 1 or None
    for global_pid, number in events.rows.processes.numbers.items():
        pid = None if global_pid is None else (global_pid >> 24) & 0xFFFFFF
        if global_pid in ranks:
            yield ProcessFacts(number, pid, ranks[global_pid], "metadata", size)
        else:
            yield ProcessFacts(number, pid)


def _devices(
    export: Export, counts: Counts, processes: tuple[ProcessFacts, ...]
) -> Iterator[DeviceFacts]:
    gpus = rows(
        export, "TARGET_INFO_GPU", "id", "name", "cuDevice", "memoryBandwidth", "totalMemory",
        "l2CacheSize", "smCount", "computeMajor", "computeMinor",
    )  # fmt: skip
    mapped = {
        (row["pid"], row["cudaId"]): row["gpuId"]
        for row in rows(export, "TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId", "pid")
    }
    by_id = {key: {gpu[key]: gpu for gpu in reversed(gpus)} for key in ("cuDevice", "id")}
    pids = {process.process_id: process.pid for process in processes}
    for process_id, device_id in sorted(counts.devices):
        gpu_id = mapped.get((pids[process_id], device_id))
        gpu, evidence = _gpu(by_id, gpu_id, device_id)
        order = gpu["id"] if gpu and gpu["id"] is not None else device_id
        yield DeviceFacts(
            process_id=process_id,
            device_id=device_id,
            order=(order, pids[process_id] or 0),
            device_evidence=evidence,
            **(_gpu_facts(gpu) if gpu else {}),
        )


def _gpu(
    by_id: dict[str, dict[Any, dict[str, Any]]], gpu_id: int | None, device_id: int
) -> tuple[dict[str, Any] | None, str]:
    """The GPU behind a process's device: mapped by the export, else assumed, else unknown."""
    if gpu_id is not None and gpu_id in by_id["id"]:
        return by_id["id"][gpu_id], "mapped"
    gpu = by_id["cuDevice"].get(device_id) or by_id["id"].get(device_id)
    return gpu, "assumed" if gpu else "absent"


def _gpu_facts(gpu: dict[str, Any]) -> dict[str, Any]:
    """What a row of TARGET_INFO_GPU states; text where a number belongs states nothing."""
    numbers = {key: value for key, value in gpu.items() if isinstance(value, int)}
    major, minor = numbers.get("computeMajor"), numbers.get("computeMinor")
    bandwidth = numbers.get("memoryBandwidth")
    return {
        "name": str(gpu["name"]) if gpu["name"] else None,
        "memory_bandwidth_bytes_per_s": bandwidth
        if bandwidth is not None and bandwidth in _BANDWIDTH_RANGE
        else None,
        "memory_bytes": numbers.get("totalMemory"),
        "l2_bytes": numbers.get("l2CacheSize"),
        "sm_count": numbers.get("smCount"),
        "compute_capability": f"{major}.{minor}" if major is not None else None,
    }


def _graph_level(counts: Counts) -> Iterator[Diagnostic]:
    """Launches whose kernels are not there: the capture's default hides them in one span."""
    spans = counts.rows.get("graph_spans", 0)
    nodes = counts.graph_nodes + counts.replayed_kernels
    if spans or (counts.graph_launches and not nodes):
        number = spans or counts.graph_launches
        text = (
            f"graph-level capture: the kernels of {number} graph replays are hidden; record nodes"
            " with --cuda-graph-trace=node"
        )
        if not spans:
            text += ", or export the report again with nsys 2024.2 or newer for their spans"
        yield Diagnostic("graph_level_trace", "error", number, text)


def _lost_ranges(export: Export, counts: Counts) -> Iterator[Diagnostic]:
    if counts.rows.get("ranges"):
        return
    if counts.nvtx_bookkeeping and NVTX in export.tables():
        yield Diagnostic(
            "ranges_lost", "warning", counts.nvtx_bookkeeping,
            "NVTX domains but no NVTX ranges: they were lost by a mismatch between nvtx and nsys",
        )  # fmt: skip
    else:
        yield Diagnostic("no_ranges", "info", 1, "no NVTX ranges: step markers are not available")


def _capabilities(
    metadata: Metadata, counts: Counts, devices: tuple[DeviceFacts, ...]
) -> dict[str, State]:
    named = [device for device in devices if device.name]
    hidden = any(_graph_level(counts))
    states: dict[str, State] = {
        "kernels": _state(counts.rows.get("kernels"), partial=hidden),
        "memory_ops": _state(counts.rows.get("memory_ops")),
        "graph_nodes": _state(counts.graph_nodes),
        "graph_spans": _state(counts.rows.get("graph_spans")),
        "api_calls": _state(counts.rows.get("api_calls")),
        "ranges": _state(counts.rows.get("ranges")),
        "overheads": _state(counts.rows.get("overheads")),
        "gpu_identity": _state(len(named), partial=len(named) < len(devices)),
        "wall_clock": _state(metadata.utc_base_ns),
        "log_windows": "absent",
    }
    return states


def _state(count: int | None, *, partial: bool = False) -> State:
    if not count:
        return "absent"
    return "partial" if partial else "present"
