"""PyTorch-profiler (Kineto) traces: `.json` and `.json.gz`, streamed, from all known writers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from roundline.errors import SourceError
from roundline.readers.contract import (
    DeviceFacts,
    Diagnostic,
    ProcessFacts,
    Progress,
    ReadOptions,
    Sink,
    SourceFacts,
    State,
)
from roundline.readers.kineto_rows import Faults, RowWriter
from roundline.readers.kineto_stream import Losses, TraceStream
from roundline.readers.kineto_times import is_absolute

_RANK_IN_NAME: Final = (
    re.compile(r"(?<![a-zA-Z])TP-?(\d+)(?!\d)"),
    re.compile(r"rank[-_ ]?(\d+)(?!\d)", re.IGNORECASE),
    re.compile(r"(?<![a-zA-Z])worker(\d+)(?!\d)"),
)


def read_kineto(
    path: Path, sink: Sink, options: ReadOptions, progress: Progress | None = None
) -> SourceFacts:
    """Read one trace.

    Raises:
        TruncatedSourceError: the writer died and `options.allow_truncated` is off.
        SourceError: no trace, two writers in one file, or a GPU event beyond repair while
            `options.lenient` is off.
    """
    stream = TraceStream(path, progress)
    writer = RowWriter(sink, options.with_python)
    for batch in stream.batches(allow_truncated=options.allow_truncated):
        for event in batch:
            writer.take(event)
    writer.finish()
    if stream.losses.rejected_gpu and not options.lenient:
        raise SourceError(
            f"{path}: {stream.losses.rejected_gpu} GPU events are damaged beyond repair, the first"
            f" at byte {stream.losses.first_rejected}: --lenient goes on without them"
        )
    base = _base_ns(stream.metadata, writer)
    processes = tuple(_processes(path, stream.metadata, writer))
    devices = tuple(_devices(stream.metadata, writer))
    return SourceFacts(
        producer="torch-profiler",
        producer_version=None,
        schema_version=_text(stream.metadata.get("schemaVersion")),
        wall_clock_base_ns=base,
        processes=processes,
        devices=devices,
        capabilities=_capabilities(writer, devices, base),
        diagnostics=tuple(_diagnostics(path, stream, writer, base)),
        truncated=stream.truncated,
    )


def _base_ns(metadata: dict[str, Any], writer: RowWriter) -> int | None:
    """Unix time of the trace's zero: stated, or 0 where times are absolute already."""
    try:
        return int(metadata["baseTimeNanoseconds"])
    except (KeyError, TypeError, ValueError):
        earliest = writer.earliest_ns
        return 0 if earliest is not None and is_absolute(earliest) else None


def _processes(path: Path, metadata: dict[str, Any], writer: RowWriter) -> Iterator[ProcessFacts]:
    info = metadata.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    stated, size = _number(info.get("rank")), _number(info.get("world_size"))
    for label, number in writer.processes.items():
        rank, evidence = stated, "metadata"
        if label:
            rank, evidence = rank_in_name(label), "metadata"
        if rank is None:
            rank, evidence = rank_in_name(path.name), "file_name"
        yield ProcessFacts(
            process_id=number,
            pid=writer.pids.get(number),
            rank=rank,
            rank_evidence=evidence if rank is not None else "order",
            world_size=size or None,
        )


def rank_in_name(name: str) -> int | None:
    """The rank that a file name or label states: `…-TP-1-DECODE…`, `rank1`, `[TP01-DP00]`."""
    for pattern in _RANK_IN_NAME:
        match = pattern.search(name)
        if match:
            return int(match[1])
    return None


def _devices(metadata: dict[str, Any], writer: RowWriter) -> Iterator[DeviceFacts]:
    listed = metadata.get("deviceProperties")
    known = (
        [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )
    for process, device in sorted(writer.devices):
        properties, evidence = _properties(known, device)
        yield DeviceFacts(
            process_id=process,
            device_id=device,
            order=(process, device),
            device_evidence=evidence,
            **_device_facts(properties),
        )


def _properties(known: list[dict[str, Any]], device: int) -> tuple[dict[str, Any], str]:
    """Properties of a device: listed under its id, or the same for all that are listed."""
    for entry in known:
        if entry.get("id") == device and entry.get("name"):
            return entry, "mapped"
    names = {entry.get("name") for entry in known}
    if len(names) == 1 and names != {""} and names != {None}:
        return known[0], "assumed"
    return {}, "absent"


def _device_facts(properties: dict[str, Any]) -> dict[str, Any]:
    major, minor = properties.get("computeMajor"), properties.get("computeMinor")
    return {
        "name": properties.get("name") or None,
        "memory_bytes": _number(properties.get("totalGlobalMem")),
        "sm_count": _number(properties.get("numSms")),
        "compute_capability": f"{major}.{minor}" if major is not None else None,
    }


def _capabilities(
    writer: RowWriter, devices: tuple[DeviceFacts, ...], base: int | None
) -> dict[str, State]:
    named = sum(device.name is not None for device in devices)
    states: dict[str, State] = {
        "kernels": _state(writer.counts.get("kernels")),
        "memory_ops": _state(writer.counts.get("memory_ops")),
        "graph_nodes": _state(writer.graph_nodes),
        "graph_spans": "absent",
        "api_calls": _state(writer.counts.get("api_calls")),
        "ranges": _state(writer.counts.get("ranges")),
        "overheads": _state(writer.counts.get("overheads")),
        "gpu_identity": "partial" if 0 < named < len(devices) else _state(named),
        "wall_clock": "absent" if base is None else "present",
        "log_windows": "absent",
    }
    return states


def _state(count: int | None) -> State:
    return "present" if count else "absent"


def _diagnostics(
    path: Path, stream: TraceStream, writer: RowWriter, base: int | None
) -> Iterator[Diagnostic]:
    if stream.truncated:
        text = f"{path.name} ends after {stream.events:,} complete events: its writer died"
        yield Diagnostic("truncated", "warning", 1, text)
    yield from _loss_diagnostics(path, stream.losses)
    yield from _fault_diagnostics(writer.faults)
    if base is None and writer.processes:
        text = "the trace states no wall clock (no baseTimeNanoseconds)"
        yield Diagnostic("clock_unknown", "info", 1, text)
    if not writer.counts.get("ranges"):
        yield Diagnostic("no_ranges", "info", 1, "no ranges: step markers are not available")


def _loss_diagnostics(path: Path, losses: Losses) -> Iterator[Diagnostic]:
    for kind, (count, offset) in losses.repaired.items():
        text = f"{path.name}: {kind}, first at byte {offset}; repaired"
        yield Diagnostic("malformed_events", "warning", count, text)
    if losses.rejected:
        text = f"{path.name}: events beyond repair, first at byte {losses.first_rejected}; left out"
        severity: Any = "error" if losses.rejected_gpu else "warning"
        yield Diagnostic("malformed_events", severity, losses.rejected, text)
    if losses.header:
        text = f"{path.name}: {losses.header}; metadata may be missing"
        yield Diagnostic("malformed_events", "warning", 1, text)


def _fault_diagnostics(faults: Faults) -> Iterator[Diagnostic]:
    for code, count, text in (
        ("invalid_time", faults.invalid_time, "events without a usable time"),
        ("implausible_duration", faults.implausible, "events shorter than nothing or over an hour"),
        ("unnamed_kernels", faults.unnamed, "kernels whose name the profiler lost"),
    ):
        if count:
            yield Diagnostic(code, "warning", count, text)


def _number(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
