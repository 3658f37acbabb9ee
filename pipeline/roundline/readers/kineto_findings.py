"""What a user must know of a torch trace that was read: capabilities and diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from roundline.readers.contract import DeviceFacts, Diagnostic, Severity, State
from roundline.readers.kineto_metadata import Metadata
from roundline.readers.kineto_stream import Losses
from roundline.readers.kineto_tables import GPU_KINDS, Tally, kind_of


def capabilities(
    tally: Tally, devices: Sequence[DeviceFacts], base_ns: int | None
) -> dict[str, State]:
    """The state of every capability."""
    named = sum(device.name is not None for device in devices)
    return {
        "kernels": _state(tally.rows.get("kernel", 0)),
        "memory_ops": _state(tally.gpu_rows()),
        "graph_nodes": _graph_nodes(tally),
        "graph_spans": "absent",
        "api_calls": _state(tally.rows.get("api", 0)),
        "ranges": _state(tally.ranges()),
        "overheads": _state(tally.rows.get("overhead", 0)),
        "gpu_identity": "partial" if 0 < named < len(devices) else _state(named),
        "wall_clock": "absent" if base_ns is None else "present",
        "log_windows": "absent",
    }


def _state(count: int) -> State:
    return "present" if count else "absent"


def _graph_nodes(tally: Tally) -> State:
    """Every kernel of a replay is recorded; older profilers only do not number the nodes."""
    if tally.graph_nodes:
        return "present"
    return "partial" if tally.graph_launches and tally.rows.get("kernel") else "absent"


def lost_gpu_events(losses: Losses) -> int:
    """Events beyond repair that are of a GPU, or may be."""
    return sum(
        number
        for category, number in losses.lost.items()
        if category is None or kind_of(category) in GPU_KINDS
    )


def diagnostics(
    metadata: Metadata, tally: Tally, losses: Losses, truncated: str | None, base_ns: int | None
) -> Iterator[Diagnostic]:
    """Everything odd, by stable code."""
    if truncated:
        yield Diagnostic("truncated", "warning", 1, truncated)
    if losses.first_offset is not None:
        yield _malformed(losses)
    if metadata.damaged:
        text = "the text around the events is malformed: rank, device or clock may be missing"
        yield Diagnostic("malformed_metadata", "warning", 1, text)
    if tally.rows and base_ns is None:
        text = "no baseTimeNanoseconds and no Unix times: not comparable with other sources"
        yield Diagnostic("clock_unknown", "info", 1, text)
    if tally.rows and not tally.ranges():
        text = "no annotations or operators: step markers are not available"
        yield Diagnostic("no_ranges", "info", 1, text)
    yield from _odd_rows(tally)


def _malformed(losses: Losses) -> Diagnostic:
    lost = sum(losses.lost.values())
    text = (
        f"{losses.repaired} events repaired, {lost} lost; the first is at byte"
        f" {losses.first_offset}: {losses.reason}"
    )
    severity: Severity = "error" if lost_gpu_events(losses) else "warning"
    return Diagnostic("malformed_events", severity, losses.repaired + lost, text)


def _odd_rows(tally: Tally) -> Iterator[Diagnostic]:
    for code, count, text in (
        ("invalid_time", tally.no_time, "events without ts (left out), or 0 as ts and dur (kept)"),
        (
            "implausible_duration", tally.implausible,
            "durations missing, negative or, on a GPU, above an hour: taken as 0",
        ),
        ("unnamed_kernels", tally.unnamed, "kernels whose name the profiler wrote as `unknown`"),
    ):  # fmt: skip
        if count:
            yield Diagnostic(code, "warning", count, text)
