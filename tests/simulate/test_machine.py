"""Simulated captures obey what GPUs, hosts and engines obey."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from roundline.simulate.session import SimulateOptions, simulate
from roundline.simulate.timeline import Activity, Capture, Kernel, RankTrace
from roundline.simulate.truth import truth_of

WHOLE = SimulateOptions(rounds=1, cut=False)


@pytest.fixture(scope="module")
def capture() -> Capture:
    """Three rounds of the worked example's model, nothing cut off."""
    return simulate(WHOLE)


def of_round(capture: Capture, round_id: int = 1) -> list[Activity]:
    """What one round of rank 0 runs."""
    found = truth_of(capture).activities
    return [i.activity for i in found if (i.rank, i.round_id) == (0, round_id)]


def test_a_round_reads_every_matrix_as_often_as_the_model_says(capture: Capture) -> None:
    """64 layers, 48 of them recurrent, and three draft passes with the head in each."""
    splits = ("splitKreduce", "splitk")
    reads = Counter(
        a.truth.matrix
        for a in of_round(capture)
        if isinstance(a, Kernel) and a.truth.matrix and not any(s in a.name for s in splits)
    )
    assert reads == {
        "gate_up": 67, "down": 67, "in_proj_qkvz": 48, "in_proj_ba": 48, "gdn_out": 48,
        "qkv": 19, "o": 19, "fc": 3, "lm_head": 4,
    }  # fmt: skip


def test_a_round_has_138_all_reduces_and_4_gathers(capture: Capture) -> None:
    """Two per layer and one for the embedding in the target, three in each draft pass."""
    names = [a.name for a in of_round(capture) if isinstance(a, Kernel)]
    assert sum("cross_device_reduce" in name for name in names) == 138
    assert sum("AllGather" in name for name in names) == 4


def test_collectives_end_together(capture: Capture) -> None:
    """Ranks start a collective when they are ready and leave it within a fraction of a µs."""
    ends: dict[int, list[Activity]] = {}
    for _, activity in capture.activities():
        if activity.truth.collective_id is not None:
            ends.setdefault(activity.truth.collective_id, []).append(activity)
    assert all(len(sides) == 2 for sides in ends.values())
    assert all(abs(a.end_ns - b.end_ns) < 200 for a, b in ends.values())
    assert any(abs(a.start_ns - b.start_ns) > 200 for a, b in ends.values())


def test_nothing_runs_before_its_launch_call(capture: Capture) -> None:
    """The call starts first; it may return later."""
    for trace in capture.ranks:
        calls = {c.correlation_id: c for c in trace.api_calls}
        assert all(calls[a.correlation_id].start_ns < a.start_ns for a in trace.activities)


def test_one_stream_runs_one_thing_at_a_time(capture: Capture) -> None:
    """Without dependent launch nothing overlaps on a stream."""
    for trace in capture.ranks:
        line = sorted(trace.activities, key=lambda a: a.start_ns)
        assert all(a.end_ns <= b.start_ns for a, b in pairwise(line))


def test_correlation_ids_collide_over_processes(capture: Capture) -> None:
    """Ids are unique within a process only, so a join needs the process."""
    first, second = ({c.correlation_id for c in t.api_calls} for t in capture.ranks)
    assert first == second


def test_a_replay_is_one_launch(capture: Capture) -> None:
    """All nodes of a graph launch share its correlation, and a graph keeps its node count."""
    nodes: dict[tuple[int | None, int | None], int] = Counter(
        (a.graph_id, a.replay_id) for a in capture.ranks[0].activities if a.graph_id is not None
    )
    sizes: dict[int | None, set[int]] = {}
    for (graph_id, _), count in nodes.items():
        sizes.setdefault(graph_id, set()).add(count)
    assert len(sizes) == 3
    assert all(len(counts) == 1 for counts in sizes.values())


def test_the_same_seed_gives_the_same_capture() -> None:
    """No clock and no other chance than the seed."""
    assert simulate(WHOLE) == simulate(WHOLE)
    assert simulate(WHOLE) != simulate(SimulateOptions(rounds=1, cut=False, seed=1))


def test_the_window_cuts_both_edges() -> None:
    """A cut capture holds its complete rounds and half a verification on either side."""
    cut = simulate(SimulateOptions(rounds=2))
    truth = truth_of(cut)
    assert {r.round_id for r in truth.rounds} == {0, 1}
    outside = [i for i in truth.activities if i.round_id is None and i.rank == 0]
    assert sum(i.activity.truth.phase == "verify" for i in outside) > 500


def causes(trace: RankTrace, capture: Capture) -> set[str]:
    """Idle causes of one rank."""
    rounds = truth_of(capture).rounds
    return {i.cause for r in rounds if r.rank == trace.rank for i in r.idle}


def test_every_idle_cause_occurs() -> None:
    """A capture with a profiler flush and an eager pass shows each cause that it can have."""
    found = simulate(SimulateOptions(rounds=3, extend="eager", flush_after=(1,)))
    assert causes(found.ranks[0], found) == {
        "host_late", "launch_latency", "in_graph", "dependency", "profiler",
    }  # fmt: skip


def test_a_prompt_lies_inside_the_round_it_follows() -> None:
    """The round with a prompt is longer, is not steady, and the next begins with a draft."""
    capture = simulate(SimulateOptions(rounds=3, prefill_after=(1,)))
    mine = [r for r in truth_of(capture).rounds if r.rank == 0]
    assert [r.excluded_because for r in mine] == [None, "prefill", None]
    assert mine[1].wall_ns > 1.5 * mine[0].wall_ns
    assert any(w.phase == "prefill" for w in mine[1].work)
