"""Who owns each instant of a round: the rule of exact time, as stretches that can be drawn."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple


@dataclass(frozen=True)
class Stretch:
    """A stretch of one round that belongs to one thing.

    Attributes:
        start_ns: from the start of the round.
        end_ns: exclusive.
        phase: phase of the work, or of the work that ends an idle stretch.
        draft_step: draft pass within the round; None outside draft passes.
        label: category of what ran, or cause of the idleness.
        idle: nothing ran.
        host_range: what the host was doing in an idle stretch, where it is known.
    """

    start_ns: int
    end_ns: int
    phase: str
    draft_step: int | None
    label: str
    idle: bool = False
    host_range: str | None = None

    @property
    def ns(self) -> int:
        """Length."""
        return self.end_ns - self.start_ns


class Activity(NamedTuple):
    """Something that ran on the GPU; `priority` is 0 compute, 1 collective, 2 copy or fill."""

    start_ns: int
    end_ns: int
    priority: int
    order: int
    phase: str
    draft_step: int | None
    category: str


def owned(activities: Sequence[Activity]) -> Iterator[Stretch]:
    """Stretches in which something ran, each owned by one activity; neighbours of a kind joined.

    Of several activities that run at once the lowest priority number owns the instant, then the
    one that started first, then the lower `order`.
    """
    waiting = sorted(activities, key=lambda a: a.start_ns, reverse=True)
    bounds = sorted({a.start_ns for a in activities} | {a.end_ns for a in activities})
    running: list[tuple[int, int, int, Activity]] = []
    yield from joined(_owned(bounds, waiting, running))


def _owned(
    bounds: Sequence[int],
    waiting: list[Activity],
    running: list[tuple[int, int, int, Activity]],
) -> Iterator[Stretch]:
    for left, right in pairwise(bounds):
        while waiting and waiting[-1].start_ns <= left:
            a = waiting.pop()
            heapq.heappush(running, (a.priority, a.start_ns, a.order, a))
        while running and running[0][-1].end_ns <= left:
            heapq.heappop(running)
        if running:
            a = running[0][-1]
            yield Stretch(left, right, a.phase, a.draft_step, a.category)


def joined(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    """Neighbours without a gap that differ in nothing but their times, as one."""
    last: Stretch | None = None
    for stretch in stretches:
        if last is None:
            last = stretch
        elif replace(stretch, start_ns=last.start_ns, end_ns=last.end_ns) == last and (
            stretch.start_ns == last.end_ns
        ):
            last = replace(last, end_ns=stretch.end_ns)
        else:
            yield last
            last = stretch
    if last is not None:
        yield last


def coarsened(stretches: Sequence[Stretch], cells: int) -> tuple[Stretch, ...]:
    """At most `cells` stretches over the same time: in each cell the longest stretch wins."""
    if len(stretches) <= cells:
        return tuple(stretches)
    end = stretches[-1].end_ns
    width = -(-end // cells)
    longest: dict[int, Stretch] = {}
    for stretch in stretches:
        for cell in range(stretch.start_ns // width, -(-stretch.end_ns // width)):
            low, high = max(stretch.start_ns, cell * width), min(stretch.end_ns, (cell + 1) * width)
            if cell not in longest or high - low > longest[cell].ns:
                longest[cell] = replace(stretch, start_ns=low, end_ns=high)
    spread = (
        replace(longest[cell], start_ns=cell * width, end_ns=min((cell + 1) * width, end))
        for cell in sorted(longest)
    )
    return tuple(joined(spread))
