"""Captures as they come in the wild: with records lost, clocks apart, or parts never recorded.

Each function takes a capture and gives another. What is lost is lost from the truth as well,
so that truth says what can still be known.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from roundline.simulate.timeline import Activity, Capture, RankTrace


def without_api_calls(capture: Capture) -> Capture:
    """Only GPU activity was recorded: no idle time has a cause."""
    return _each(capture, lambda trace: replace(trace, api_calls=()))


def without_ranges(capture: Capture) -> Capture:
    """No annotations and no operators, as a server gives none."""
    return _each(capture, lambda trace: replace(trace, ranges=()))


def without_rank(capture: Capture, rank: int) -> Capture:
    """One process was not traced."""
    return replace(capture, ranks=tuple(t for t in capture.ranks if t.rank != rank))


def with_dropped_kernels(capture: Capture, share: float, *, seed: int = 0) -> Capture:
    """The profiler lost a share of the eager records; anchors and graph nodes stay."""
    rng = random.Random(seed)

    def is_kept(activity: Activity) -> bool:
        safe = activity.graph_id is not None or activity.truth.anchor is not None
        return safe or rng.random() >= share

    return _each(
        capture,
        lambda trace: replace(trace, activities=tuple(filter(is_kept, trace.activities))),
    )


def with_late_rank(capture: Capture, rank: int, late_ns: int) -> Capture:
    """Recording of one rank began `late_ns` after the others."""
    from_ns = capture.start_ns + late_ns

    def cut(trace: RankTrace) -> RankTrace:
        if trace.rank != rank:
            return trace
        return replace(
            trace,
            activities=tuple(a for a in trace.activities if a.start_ns >= from_ns),
            api_calls=tuple(c for c in trace.api_calls if c.start_ns >= from_ns),
            ranges=tuple(r for r in trace.ranges if r.start_ns >= from_ns),
        )

    return _each(capture, cut)


def _each(capture: Capture, change: Callable[[RankTrace], RankTrace]) -> Capture:
    return replace(capture, ranks=tuple(change(trace) for trace in capture.ranks))
