"""Owned stretches against an oracle that looks at every instant."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from roundline.reconcile.sweep import Activity, Stretch, coarsened, owned

activities = st.lists(
    st.builds(
        lambda start, length, priority, category: (start, start + length, priority, category),
        st.integers(0, 40),
        st.integers(1, 12),
        st.integers(0, 2),
        st.sampled_from("abc"),
    ),
    max_size=12,
).map(lambda rows: [Activity(s, e, p, i, "verify", None, c) for i, (s, e, p, c) in enumerate(rows)])


@given(activities)
def test_each_instant_has_the_owner_of_the_rule(drawn: list[Activity]) -> None:
    """Lowest priority number, then earliest start, then order; nothing is left out or doubled."""
    found = {t: s.label for s in owned(drawn) for t in range(s.start_ns, s.end_ns)}
    for instant in range(60):
        running = [a for a in drawn if a.start_ns <= instant < a.end_ns]
        owner = min(running, key=lambda a: (a.priority, a.start_ns, a.order), default=None)
        assert found.get(instant) == (owner.category if owner else None)


@given(activities)
def test_neighbours_of_one_kind_are_one_stretch(drawn: list[Activity]) -> None:
    """Stretches are in order, do not overlap, and touch only where the kind changes."""
    found = list(owned(drawn))
    for left, right in pairwise(found):
        assert left.end_ns <= right.start_ns
        assert left.end_ns < right.start_ns or left.label != right.label


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from("ab")), min_size=1), st.integers(1, 9))
def test_coarse_stretches_cover_the_same_time(drawn: list[tuple[int, str]], cells: int) -> None:
    """Never more than asked for, from the same start to the same end without gaps."""
    stretches, now = [], 0
    for length, label in drawn:
        stretches.append(Stretch(now, now + length, "verify", None, label))
        now += length
    shown = coarsened(stretches, cells)
    assert len(shown) <= max(cells, 1)
    assert (shown[0].start_ns, shown[-1].end_ns) == (0, now)
    assert all(a.end_ns == b.start_ns for a, b in pairwise(shown))


def test_the_longest_wins_a_cell() -> None:
    """Eight of ten instants are a's."""
    drawn = [Stretch(0, 8, "verify", None, "a"), Stretch(8, 10, "verify", None, "b")]
    assert [(s.start_ns, s.end_ns, s.label) for s in coarsened(drawn, 1)] == [(0, 10, "a")]
