"""When each rank ran kernels, and whether the ranks of a capture ran together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roundline.readers.contract import Diagnostic

_NOTABLE_NS: Final = 1_000_000  # ranks of one job start within a round of each other


@dataclass(frozen=True)
class RankWindow:
    """First start and last end of a rank's kernels, and the sum of their durations."""

    rank: int
    start_ns: int
    end_ns: int
    sum_ns: int


def rank_windows(kernels: Path) -> tuple[RankWindow, ...]:
    """The windows of a store's `kernels` table, by rank."""
    windows: dict[int, RankWindow] = {}
    for batch in pq.ParquetFile(kernels).iter_batches(columns=["rank", "start_ns", "end_ns"]):
        table = pa.Table.from_batches([batch])
        durations = pc.subtract(table["end_ns"], table["start_ns"])
        groups = table.append_column("ns", durations).group_by(["rank"])
        wanted = [("start_ns", "min"), ("end_ns", "max"), ("ns", "sum")]
        for row in groups.aggregate(wanted).to_pylist():
            window = RankWindow(row["rank"], row["start_ns_min"], row["end_ns_max"], row["ns_sum"])
            windows[window.rank] = _joined(windows.get(window.rank), window)
    return tuple(windows[rank] for rank in sorted(windows))


def _joined(known: RankWindow | None, more: RankWindow) -> RankWindow:
    if known is None:
        return more
    return RankWindow(
        known.rank,
        min(known.start_ns, more.start_ns),
        max(known.end_ns, more.end_ns),
        known.sum_ns + more.sum_ns,
    )


def skew_diagnostics(windows: Sequence[RankWindow]) -> Iterator[Diagnostic]:
    """What to know when ranks on one clock did not start, or did not run, together."""
    if len(windows) < 2:
        return
    first = min(windows, key=lambda window: window.start_ns)
    last = max(windows, key=lambda window: window.start_ns)
    skew_ns = last.start_ns - first.start_ns
    text = f"rank {last.rank} starts {skew_ns / 1e6:,.3f} ms after rank {first.rank}"
    if min(window.end_ns for window in windows) <= last.start_ns:
        text += ": the ranks were not captured at the same time, nothing can be compared in time"
        yield Diagnostic("start_skew", "warning", 1, text)
    elif skew_ns > _NOTABLE_NS:
        text += ": what only some ranks captured tells nothing of waiting"
        yield Diagnostic("start_skew", "info", 1, text)
