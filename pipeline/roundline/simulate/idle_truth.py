"""Why a GPU was idle, and what its host did meanwhile, by the rules of attribution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from roundline.simulate.timeline import Activity, ApiCall, HostRange, Overhead, RankTrace

Cause = str


@dataclass(frozen=True, slots=True)
class Idle:
    """Idle time of a round.

    `phase` is that of the activity that ends it; `host_range` the innermost range open on the
    launching thread while the host was late, None for other causes and outside ranges.
    """

    phase: str
    cause: Cause
    host_range: str | None
    idle_ns: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Nothing runs in `[start_ns, end_ns)`; `before` ended last, `after` starts next."""

    start_ns: int
    end_ns: int
    before: Activity
    after: Activity


@dataclass(frozen=True, slots=True)
class _Part:
    cause: Cause
    start_ns: int
    end_ns: int
    host_range: str | None = None


class HostSide:
    """What the host of one rank was recorded doing."""

    def __init__(self, trace: RankTrace) -> None:
        self._launches = {call.correlation_id: call for call in trace.api_calls}
        self._ranges = sorted(trace.ranges, key=lambda r: r.start_ns)
        self._overheads = sorted(trace.overheads, key=lambda o: o.start_ns)

    def idle(self, gaps: Iterable[Gap]) -> Iterator[Idle]:
        """Idle time of the gaps of one round, summed."""
        total: Counter[tuple[str, Cause, str | None]] = Counter()
        for gap in gaps:
            phase = gap.after.truth.phase
            for part in self._parts(gap):
                held_ns = _covered(self._overheads, part.start_ns, part.end_ns)
                total[phase, "profiler", None] += held_ns
                total[phase, part.cause, part.host_range] += part.end_ns - part.start_ns - held_ns
        order = sorted(total.items(), key=lambda item: (item[0][0], item[0][1], item[0][2] or ""))
        for (leads_to, cause, host_range), idle_ns in order:
            if idle_ns:
                yield Idle(leads_to, cause, host_range, idle_ns)

    def _parts(self, gap: Gap) -> Iterator[_Part]:
        launch = self._launches.get(gap.after.correlation_id)
        if gap.after.replay_id is not None and gap.after.replay_id == gap.before.replay_id:
            yield _Part("in_graph", gap.start_ns, gap.end_ns)
        elif launch is None:
            yield _Part("unknown", gap.start_ns, gap.end_ns)
        elif launch.start_ns <= gap.start_ns:
            yield _Part("dependency", gap.start_ns, gap.end_ns)
        else:
            called_ns = min(launch.start_ns, gap.end_ns)
            yield from self._late(launch, gap.start_ns, called_ns)
            yield _Part("launch_latency", called_ns, gap.end_ns)

    def _late(self, launch: ApiCall, start_ns: int, end_ns: int) -> Iterator[_Part]:
        """The host is late: cut where ranges of the launching thread open and close."""
        ranges = [
            r
            for r in self._ranges
            if r.thread_id == launch.thread_id
            and r.start_ns < end_ns
            and (r.end_ns is None or r.end_ns > start_ns)
        ]
        bounds = {start_ns, end_ns, *(r.start_ns for r in ranges)}
        bounds |= {r.end_ns for r in ranges if r.end_ns is not None}
        cuts = sorted(bound for bound in bounds if start_ns <= bound <= end_ns)
        for from_ns, to_ns in pairwise(cuts):
            yield _Part("host_late", from_ns, to_ns, _innermost(ranges, from_ns))


def _innermost(ranges: list[HostRange], at_ns: int) -> str | None:
    open_then = [
        r for r in ranges if r.start_ns <= at_ns and (r.end_ns is None or at_ns < r.end_ns)
    ]
    return open_then[-1].name if open_then else None


def _covered(overheads: list[Overhead], start_ns: int, end_ns: int) -> int:
    """How much of `[start_ns, end_ns)` the union of the overheads covers."""
    covered_ns, until_ns = 0, start_ns
    for overhead in overheads:
        from_ns = max(overhead.start_ns, until_ns)
        to_ns = min(overhead.end_ns, end_ns)
        if to_ns > from_ns:
            covered_ns += to_ns - from_ns
            until_ns = to_ns
    return covered_ns
