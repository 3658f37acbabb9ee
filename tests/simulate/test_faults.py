"""Faulty captures lose what they should and are diagnosed as what they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from agreement import attributed

from roundline.simulate.faults import (
    with_dropped_kernels,
    with_late_rank,
    without_api_calls,
    without_rank,
)
from roundline.simulate.nsys_writer import write_nsys_sqlite
from roundline.simulate.session import SimulateOptions, simulate
from roundline.simulate.timeline import Capture
from roundline.simulate.truth import truth_of


@pytest.fixture(scope="module")
def capture() -> Capture:
    """Four rounds of a small hybrid with an eager extending pass."""
    return simulate(SimulateOptions(model="qwen3.5-4b", rounds=4, extend="eager"))


def idle_causes(capture: Capture) -> set[str]:
    """Causes of all idle time."""
    return {idle.cause for item in truth_of(capture).rounds for idle in item.idle}


def test_without_calls_idle_has_no_cause(capture: Capture, tmp_path: Path) -> None:
    """Only gaps inside a replay keep theirs, which needs no call; attribution agrees."""
    blind = without_api_calls(capture)
    assert idle_causes(blind) == {"in_graph", "unknown"}
    (tmp_path / "c").mkdir()
    write_nsys_sqlite(blind, tmp_path / "c" / "x.sqlite")
    with attributed(tmp_path / "c", tmp_path / "s") as warehouse:
        found = warehouse.execute("SELECT DISTINCT cause FROM round_idle").fetchall()
    assert {cause for (cause,) in found} == {"in_graph", "unknown"}


def test_dropped_kernels_leave_launches_behind(capture: Capture) -> None:
    """Eager launches without a kernel remain; graph replays stay whole."""
    lossy = with_dropped_kernels(capture, 0.2)
    for before, after in zip(capture.ranks, lossy.ranks, strict=True):
        lost = set(before.activities) - set(after.activities)
        assert 0.05 < len(lost) / sum(a.graph_id is None for a in before.activities) < 0.4
        assert all(a.graph_id is None for a in lost)
        assert before.api_calls == after.api_calls


def test_a_rank_that_starts_late_has_fewer_rounds(capture: Capture) -> None:
    """And its collectives before that have no partner."""
    late = truth_of(with_late_rank(capture, 1, 20_000_000))
    rounds = [r.rank for r in late.rounds]
    assert rounds.count(1) < rounds.count(0)
    assert any(m.transfer_ns is None for m in late.collectives)
    assert any(m.transfer_ns is not None for m in late.collectives)


def test_a_missing_rank_leaves_no_transfer_time(capture: Capture) -> None:
    """What a collective costs cannot be told from one rank alone."""
    alone = truth_of(without_rank(capture, 1))
    assert {m.rank for m in alone.collectives} == {0}
    assert all(m.transfer_ns is None for m in alone.collectives)
