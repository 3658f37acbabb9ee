"""Torch traces as other writers lay them out: the same events in other bytes.

Beside torch's C++ writer there are its Python export, its CUPTI-monitor backend, and whatever
loads a trace and dumps it again (splitters, overlays, pretty-printers, SGLang's merge of ranks).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from roundline.simulate.timeline import Capture
from roundline.simulate.torch_writer import TorchOptions, torch_text

Layout = Literal["python-export", "cupti-monitor", "dumped", "indented", "merged"]

_Event = dict[str, Any]
_COMPACT: Final = (",", ":")
_KEPT_BY_MONITOR: Final = frozenset(
    ("device", "context", "stream", "correlation", "graph id", "graph node id", "bytes")
)
_GPU_CATEGORIES: Final = frozenset(("kernel", "gpu_memcpy", "gpu_memset"))


@dataclass(frozen=True)
class _Trace:
    """A trace taken apart: what stands before and after the events."""

    head: _Event
    events: list[_Event]
    tail: _Event


def write_torch_layout(capture: Capture, folder: Path, layout: Layout) -> list[Path]:
    """Write the traces of `capture` in another writer's layout, uncompressed.

    Returns:
        One file per rank in order of rank; a single one when merged.
    """
    traces = [_parsed(capture, rank) for rank in range(len(capture.ranks))]
    if layout == "merged":
        path = folder / "merged-1755512345.67.trace.json"
        path.write_text(_merged(traces), encoding="utf-8")
        return [path]
    paths = []
    for rank, trace in enumerate(traces):
        path = folder / f"1755512345.67-TP-{rank}.trace.json"
        path.write_text(_LAYOUTS[layout](trace), encoding="utf-8")
        paths.append(path)
    return paths


def _parsed(capture: Capture, rank: int) -> _Trace:
    text = "".join(torch_text(capture, rank, TorchOptions(compress=False)))
    document: _Event = json.loads(text)
    events = document.pop("traceEvents")
    tail = {"traceName": document.pop("traceName")}
    return _Trace(document, events, tail)


def _python_export(trace: _Trace) -> str:
    """One event per line; device properties with fewer keys."""
    properties = [
        {
            "id": device["id"],
            "name": device["name"],
            "totalGlobalMem": device["totalGlobalMem"],
            "computeMajor": device["computeMajor"],
            "computeMinor": device["computeMinor"],
            "maxThreadsPerMultiprocessor": device["numSms"],
        }
        for device in trace.head["deviceProperties"]
    ]
    head = json.dumps({**trace.head, "deviceProperties": properties})[:-1]
    events = ",\n".join(json.dumps(event) for event in trace.events)
    return f'{head}, "traceEvents": [\n{events}\n], {json.dumps(trace.tail)[1:]}\n'


def _cupti_monitor(trace: _Trace) -> str:
    """A single line; GPU events with the few arguments that the monitor keeps."""
    events = [_monitored(event) for event in trace.events]
    return json.dumps({**trace.head, "traceEvents": events, **trace.tail}, separators=_COMPACT)


def _monitored(event: _Event) -> _Event:
    if event.get("cat") not in _GPU_CATEGORIES:
        return event
    args = {
        key: value
        for key, value in event["args"].items()
        if key in _KEPT_BY_MONITOR and (value or not key.startswith("graph"))
    }
    if event["cat"] == "gpu_memcpy":
        args["copy kind"] = event["name"].split()[1]
    return {**event, "args": args}


def _dumped(trace: _Trace) -> str:
    """Loaded and dumped with the defaults, the events before the rest; no window end."""
    events = [event for event in trace.events if event["name"] != "Record Window End"]
    return json.dumps({"traceEvents": events, **trace.head, **trace.tail})


def _indented(trace: _Trace) -> str:
    """Pretty-printed, keys in order of the alphabet."""
    document = {**trace.head, "traceEvents": trace.events, **trace.tail}
    return json.dumps(document, indent=2, sort_keys=True)


def _merged(traces: Iterable[_Trace]) -> str:
    """SGLang's merge: every pid becomes a labelled string, ids of the ranks collide."""
    events: list[_Event] = []
    head: _Event = {}
    for rank, trace in enumerate(traces):
        head = head or trace.head
        events += [{**e, "pid": f"[TP{rank:02d}] {e['pid']}"} for e in trace.events]
    return json.dumps({**head, "traceEvents": events})


_LAYOUTS: Final = {
    "python-export": _python_export,
    "cupti-monitor": _cupti_monitor,
    "dumped": _dumped,
    "indented": _indented,
}
