"""What was met while events were read, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from roundline.readers.contract import Diagnostic

_SILENCE_NS: Final = 1_000_000_000  # launches that go on for longer without any GPU activity


@dataclass
class ProcessActivity:
    """Launches and GPU activity of one process."""

    launches: int = 0
    last_launch_ns: int | None = None
    gpu_events: int = 0
    last_gpu_ns: int | None = None


@dataclass
class Counts:
    """Feeds capabilities and diagnostics."""

    rows: dict[str, int] = field(default_factory=dict)
    activity: dict[int, ProcessActivity] = field(default_factory=dict)
    devices: set[tuple[int, int]] = field(default_factory=set)
    graph_nodes: int = 0
    graph_launches: int = 0
    replayed_kernels: int = 0
    open_ranges: int = 0
    negative_times: int = 0
    missing_times: int = 0
    backward_times: int = 0
    nvtx_bookkeeping: int = 0
    unnamed_kernels: int = 0

    def add(self, table: str, number: int) -> None:
        """Count rows of a part."""
        self.rows[table] = self.rows.get(table, 0) + number

    def of_process(self, process_id: int) -> ProcessActivity:
        """What was met of one process."""
        return self.activity.setdefault(process_id, ProcessActivity())

    def add_gpu_events(self, processes: pa.Array, devices: pa.Array, ends: pa.Array) -> None:
        """Note who ran on which device until when."""
        groups = pa.table({"p": processes, "d": devices, "end": ends}).group_by(["p", "d"])
        for row in groups.aggregate([("end", "max"), ("end", "count")]).to_pylist():
            self.devices.add((row["p"], row["d"]))
            seen = self.of_process(row["p"])
            seen.gpu_events += row["end_count"]
            seen.last_gpu_ns = _latest(seen.last_gpu_ns, row["end_max"])

    def add_launches(self, processes: pa.Array, names: pa.Array, starts: pa.Array) -> None:
        """Note launches of kernels and graphs; `names` of API calls, without version suffix."""
        is_launch = pc.match_substring_regex(names, "Launch(Cooperative)?Kernel|GraphLaunch")
        launches = pa.table({"p": processes, "start": starts}).filter(is_launch)
        groups = launches.group_by(["p"]).aggregate([("start", "max"), ("start", "count")])
        for row in groups.to_pylist():
            seen = self.of_process(row["p"])
            seen.launches += row["start_count"]
            seen.last_launch_ns = _latest(seen.last_launch_ns, row["start_max"])

    def diagnostics(self, pids: dict[int, int | None]) -> Iterator[Diagnostic]:
        """What a user must know; `pids` names processes for messages."""
        if self.open_ranges:
            text = "ranges were still open when the capture ended; they have no end"
            yield Diagnostic("open_ranges", "info", self.open_ranges, text)
        if self.negative_times:
            text = "events start before the capture's zero (warm-up); they are kept"
            yield Diagnostic("invalid_time", "info", self.negative_times, text)
        if self.missing_times:
            text = "events without a start or an end were left out"
            yield Diagnostic("invalid_time", "warning", self.missing_times, text)
        if self.backward_times:
            text = "events end before they start; they are kept with no duration"
            yield Diagnostic("implausible_duration", "warning", self.backward_times, text)
        if self.unnamed_kernels:
            text = "kernel names are missing from the export (was StringIds filtered out?)"
            yield Diagnostic("unnamed_kernels", "error", self.unnamed_kernels, text)
        for process_id, seen in sorted(self.activity.items()):
            yield from self._silent(f"process {pids.get(process_id)}", seen)

    def _silent(self, process: str, seen: ProcessActivity) -> Iterator[Diagnostic]:
        """Launches without GPU activity, for the whole capture or from some time on."""
        if seen.launches and not seen.gpu_events and self.devices:
            yield Diagnostic(
                "no_gpu_activity", "warning", seen.launches,
                f"{process} launched {seen.launches} times but none of its GPU activity was"
                " recorded: forked without exec? add --trace-fork-before-exec=true",
            )  # fmt: skip
        if seen.last_launch_ns is None or seen.last_gpu_ns is None:
            return
        silence_ns = seen.last_launch_ns - seen.last_gpu_ns
        if silence_ns > _SILENCE_NS:
            yield Diagnostic(
                "dropped_records", "warning", 1,
                f"{process} goes on launching for {silence_ns / 1e9:.1f} s after its last recorded"
                " GPU activity: records were dropped, or CUPTI is older than the driver",
            )  # fmt: skip


def _latest(known: int | None, new: int | None) -> int | None:
    return new if known is None or (new is not None and new > known) else known
