"""The truth of a capture, counted by brute force from what the engine meant.

Independent of the SQL that it is held against: a walk over the boundary points of one round at a
time, by the rules of attribution. Within a round every instant belongs to one running activity
or is idle: compute wins over collectives, collectives over copies and fills; in one class the
earliest started, then the lower stream, then the order of start.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from roundline.simulate.host_truth import GraphLaunch, RoundHost, graph_launches, round_host
from roundline.simulate.idle_truth import Gap, HostSide, Idle
from roundline.simulate.timeline import COLLECTIVE, Activity, Anchor, Capture, RankTrace

WorkKey = tuple[str, int | None, str]  # phase, draft step, category


@dataclass(frozen=True, slots=True)
class Work:
    """What one phase, draft step and category did in a round.

    Activities count, with their raw durations, in the round in which they started; exclusive
    time counts where it passed.
    """

    phase: str
    draft_step: int | None
    category: str
    kernels: int
    sum_ns: int
    exclusive_ns: int


@dataclass(frozen=True, slots=True)
class Round:
    """One round of one rank: `[start_ns, end_ns)` from its anchor to the next."""

    rank: int
    round_id: int
    start_ns: int
    end_ns: int
    excluded_because: str | None
    work: tuple[Work, ...]
    idle: tuple[Idle, ...]
    host: RoundHost

    @property
    def wall_ns(self) -> int:
        """Length of the round; exclusive times and idle times add up to it."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Located:
    """An activity with its round (None outside all) and the time that it alone is charged for."""

    rank: int
    activity: Activity
    round_id: int | None
    exclusive_ns: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """A collective on one rank, paired over ranks: the shortest duration is the transfer.

    `transfer_ns` and `wait_ns` are None when a rank has no record of it.
    """

    collective_id: int
    rank: int
    round_id: int | None
    duration_ns: int
    transfer_ns: int | None
    wait_ns: int | None


@dataclass(frozen=True, slots=True)
class CaptureTruth:
    """All truth of a capture. `activities` are in order of rank and start."""

    rounds: tuple[Round, ...]
    activities: tuple[Located, ...]
    collectives: tuple[Meeting, ...]
    graph_launches: tuple[GraphLaunch, ...]


def truth_of(capture: Capture) -> CaptureTruth:
    """Count the truth of every rank of `capture`."""
    rounds: list[Round] = []
    located: list[Located] = []
    for trace in capture.ranks:
        of_rank, activities = _rank_truth(trace)
        rounds += of_rank
        located += activities
    launches = (launch for trace in capture.ranks for launch in graph_launches(trace))
    return CaptureTruth(
        tuple(rounds), tuple(located), tuple(_meetings(capture, located)), tuple(launches)
    )


@dataclass(frozen=True, slots=True)
class _Ordered:
    """An activity with its place in the one order of a rank."""

    place: int
    activity: Activity

    @property
    def owns_before(self) -> tuple[int, int]:
        """Of two running activities the smaller owns the instant."""
        return priority(self.activity.truth.category), self.place


@dataclass(frozen=True, slots=True)
class _Segment:
    """A stretch in which the same activities run.

    `owner` is None when nothing does; then `before` is what ended last, `after` starts next.
    """

    start_ns: int
    end_ns: int
    owner: _Ordered | None
    before: _Ordered | None
    after: _Ordered | None


@dataclass(frozen=True, slots=True)
class _Span:
    """From one anchor to the next."""

    start_ns: int
    end_ns: int
    anchor: Anchor


def priority(category: str) -> int:
    """0 for compute, 1 for collectives, 2 for copies and fills: the lower owns an instant."""
    if category == COLLECTIVE:
        return 1
    return 2 if category in ("memcpy", "memset") else 0


def _rank_truth(trace: RankTrace) -> tuple[list[Round], list[Located]]:
    line = _in_order(trace.activities)
    starts = [item.activity.start_ns for item in line]
    spans = list(_spans(line))
    segments = list(_segments(line, starts))
    segment_starts = [segment.start_ns for segment in segments]
    host = HostSide(trace)
    rounds = [
        Round(
            rank=trace.rank,
            round_id=number,
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            excluded_because=span.anchor.excluded_because,
            work=tuple(_work(started, within)),
            idle=tuple(host.idle(_gaps(within))),
            host=round_host(trace, (i.activity for i in started), span.start_ns, span.end_ns),
        )
        for number, span in enumerate(spans)
        for started in [_inside(line, starts, span)]
        for within in [_inside(segments, segment_starts, span)]
    ]
    return rounds, list(_located(trace.rank, line, spans, segments))


def _located(
    rank: int, line: list[_Ordered], spans: list[_Span], segments: list[_Segment]
) -> Iterator[Located]:
    exclusive: Counter[int] = Counter()
    for segment in segments:
        if segment.owner is not None:
            exclusive[segment.owner.place] += segment.end_ns - segment.start_ns
    round_starts = [span.start_ns for span in spans]
    for item in line:
        number = bisect_right(round_starts, item.activity.start_ns) - 1
        in_round = number >= 0 and item.activity.start_ns < spans[number].end_ns
        yield Located(rank, item.activity, number if in_round else None, exclusive[item.place])


def _in_order(activities: Iterable[Activity]) -> list[_Ordered]:
    def key(activity: Activity) -> tuple[int, int, int]:
        return activity.start_ns, priority(activity.truth.category), activity.stream_id

    return [_Ordered(place, a) for place, a in enumerate(sorted(activities, key=key))]


def _spans(line: list[_Ordered]) -> Iterator[_Span]:
    marked = [(i.activity.start_ns, i.activity.truth.anchor) for i in line]
    anchors = [(start_ns, anchor) for start_ns, anchor in marked if anchor is not None]
    for (start_ns, anchor), (end_ns, _) in pairwise(anchors):
        yield _Span(start_ns, end_ns, anchor)


def _segments(line: list[_Ordered], starts: list[int]) -> Iterator[_Segment]:
    """Elementary stretches between all starts and ends (every anchor is a start)."""
    points = sorted({*starts, *(item.activity.end_ns for item in line)})
    running: list[_Ordered] = []
    before: _Ordered | None = None
    place = 0
    for start_ns, end_ns in pairwise(points):
        while place < len(line) and starts[place] <= start_ns:
            running.append(line[place])
            before = _ends_last(before, line[place])
            place += 1
        running = [item for item in running if item.activity.end_ns > start_ns]
        owner = min(running, key=lambda item: item.owns_before, default=None)
        after = line[place] if place < len(line) else None
        yield _Segment(start_ns, end_ns, owner, before, after)


def _ends_last(one: _Ordered | None, later_started: _Ordered) -> _Ordered:
    if one is None or later_started.activity.end_ns >= one.activity.end_ns:
        return later_started
    return one


_Item = TypeVar("_Item", _Ordered, _Segment)


def _inside(items: list[_Item], starts: list[int], span: _Span) -> list[_Item]:
    return items[bisect_left(starts, span.start_ns) : bisect_left(starts, span.end_ns)]


def _work(started: list[_Ordered], segments: list[_Segment]) -> Iterator[Work]:
    kernels: Counter[WorkKey] = Counter()
    sums: Counter[WorkKey] = Counter()
    exclusive: Counter[WorkKey] = Counter()
    for item in started:
        kernels[_work_key(item.activity)] += 1
        sums[_work_key(item.activity)] += item.activity.duration_ns
    for segment in segments:
        if segment.owner is not None:
            exclusive[_work_key(segment.owner.activity)] += segment.end_ns - segment.start_ns
    for key in sorted({*kernels, *exclusive}, key=lambda k: (k[0], k[1] or 0, k[2])):
        yield Work(*key, kernels[key], sums[key], exclusive[key])


def _work_key(activity: Activity) -> WorkKey:
    truth = activity.truth
    return truth.phase, truth.draft_step, truth.category


def _gaps(segments: list[_Segment]) -> Iterator[Gap]:
    for segment in segments:
        if segment.owner is None and segment.before and segment.after:
            yield Gap(
                segment.start_ns, segment.end_ns, segment.before.activity, segment.after.activity
            )


def _meetings(capture: Capture, located: list[Located]) -> Iterator[Meeting]:
    sides: dict[int, list[Located]] = defaultdict(list)
    for item in located:
        number = item.activity.truth.collective_id
        if number is not None:
            sides[number].append(item)
    for number in sorted(sides):
        durations = [item.activity.duration_ns for item in sides[number]]
        complete = len(durations) == len(capture.ranks) > 1
        transfer_ns = min(durations) if complete else None
        for item in sides[number]:
            duration_ns = item.activity.duration_ns
            wait_ns = None if transfer_ns is None else duration_ns - transfer_ns
            yield Meeting(number, item.rank, item.round_id, duration_ns, transfer_ns, wait_ns)
