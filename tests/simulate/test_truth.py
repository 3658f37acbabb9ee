"""The brute-force truth against hand-made timelines with known answers."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from roundline.simulate.gpus import gpu_of
from roundline.simulate.idle_truth import Idle
from roundline.simulate.timeline import (
    Activity,
    Anchor,
    ApiCall,
    Capture,
    Kernel,
    MemoryOp,
    Overhead,
    RankTrace,
    Truth,
)
from roundline.simulate.truth import truth_of


def kernel(
    start_ns: int,
    end_ns: int,
    category: str = "gemm",
    *,
    anchor: bool = False,
    stream: int = 7,
    correlation: int | None = None,
    graph: bool = False,
) -> Kernel:
    """A kernel of phase verify, launched by the call with its own start as id."""
    return Kernel(
        start_ns=start_ns,
        end_ns=end_ns,
        stream_id=stream,
        correlation_id=start_ns if correlation is None else correlation,
        graph_id=1 if graph else None,
        graph_node=0 if graph else None,
        name=category,
        truth=Truth(category=category, phase="verify", anchor=Anchor() if anchor else None),
    )


def copy(start_ns: int, end_ns: int) -> MemoryOp:
    """A copy of phase verify."""
    return MemoryOp(
        start_ns=start_ns, end_ns=end_ns, stream_id=7, correlation_id=start_ns, kind="memcpy",
        size_bytes=1, truth=Truth(category="memcpy", phase="verify"),
    )  # fmt: skip


def call(start_ns: int, correlation: int) -> ApiCall:
    """A launch call."""
    return ApiCall(
        start_ns=start_ns, end_ns=start_ns + 5, thread_id=1, name="cudaLaunchKernel",
        correlation_id=correlation,
    )  # fmt: skip


def one_rank(
    *activities: Activity, calls: tuple[ApiCall, ...] = (), overheads: tuple[Overhead, ...] = ()
) -> Capture:
    """A capture of one rank."""
    trace = RankTrace(
        rank=0, pid=1, device_id=0, activities=activities, api_calls=calls, overheads=overheads
    )
    return Capture(gpu=gpu_of("rtx-a6000"), ranks=(trace,), epoch_ns=0, start_ns=0, end_ns=1_000)


def exclusive(*activities: Activity) -> list[int]:
    """Exclusive times in order of start, within a round from 0 to 1000."""
    bounds = (kernel(0, 0, "norm", anchor=True), kernel(1_000, 1_000, "norm", anchor=True))
    found = truth_of(one_rank(*bounds, *activities)).activities
    return [item.exclusive_ns for item in found if item.activity not in bounds]


def idle_of(*activities: Activity, **rest: Any) -> set[tuple[str, int]]:
    """(cause, ns) of the only round."""
    [found] = truth_of(one_rank(*activities, **rest)).rounds
    return {(item.cause, item.idle_ns) for item in found.idle}


def test_compute_hides_a_collective_that_started_before_it() -> None:
    """A collective owns only what no compute kernel covers, whoever started first."""
    assert exclusive(kernel(10, 100, "collective"), kernel(40, 60)) == [70, 20]


def test_copies_yield_to_collectives() -> None:
    """A copy owns only what neither compute nor collectives cover."""
    assert exclusive(copy(10, 100), kernel(20, 40, "collective"), kernel(30, 50)) == [60, 10, 20]


def test_in_one_class_the_earlier_start_owns_the_overlap() -> None:
    """Programmatic dependent launch: the second kernel owns what is left of it."""
    assert exclusive(kernel(10, 50), kernel(45, 70)) == [40, 20]


def test_equal_starts_go_to_the_lower_stream() -> None:
    """Of two kernels that start together, the one on the lower stream owns the overlap."""
    late, early = kernel(10, 50, stream=9), kernel(10, 30, "norm", stream=7)
    assert exclusive(late, early) == [20, 20]


def test_a_round_ends_where_the_next_anchor_starts() -> None:
    """An activity across the boundary counts where it starts; its time counts where it passes."""
    first, second, third = (kernel(t, t + 1, "norm", anchor=True) for t in (0, 100, 200))
    rounds = truth_of(one_rank(first, kernel(90, 130), second, third)).rounds
    gemms = [next(w for w in r.work if w.category == "gemm") for r in rounds]
    assert [(w.kernels, w.sum_ns, w.exclusive_ns) for w in gemms] == [(1, 40, 10), (0, 0, 30)]


def test_a_late_launch_splits_the_gap_at_its_call() -> None:
    """Before the call of the next launch the host is late, from there on the launch takes time."""
    found = idle_of(
        kernel(0, 100, anchor=True), kernel(150, 160, anchor=True), calls=(call(130, 150),)
    )
    assert found == {("host_late", 30), ("launch_latency", 20)}


def test_a_timely_launch_makes_the_gap_a_dependency() -> None:
    """A call at or before the start of the gap was in time."""
    found = idle_of(
        kernel(0, 100, anchor=True), kernel(150, 160, anchor=True), calls=(call(100, 150),)
    )
    assert found == {("dependency", 50)}


def test_a_gap_between_nodes_of_one_replay_is_in_graph() -> None:
    """Both neighbours carry the correlation of one graph launch."""
    nodes = (
        kernel(0, 100, correlation=1, graph=True, anchor=True),
        kernel(130, 160, correlation=1, graph=True),
    )
    assert ("in_graph", 30) in idle_of(*nodes, kernel(160, 170, anchor=True))


def test_without_a_call_the_cause_is_unknown() -> None:
    """No API row, no cause."""
    assert idle_of(kernel(0, 9, anchor=True), kernel(20, 30, anchor=True)) == {("unknown", 11)}


def test_profiler_time_comes_off_the_cause_below_it() -> None:
    """What overheads cover is the profiler's, once however many overlap."""
    overheads = tuple(
        Overhead(start_ns=a, end_ns=b, thread_id=1, kind="Buffer Flush")
        for a, b in ((90, 120), (110, 125), (400, 500))
    )
    found = idle_of(
        kernel(0, 100, anchor=True),
        kernel(150, 160, anchor=True),
        calls=(call(130, 150),),
        overheads=overheads,
    )
    assert found == {("profiler", 25), ("host_late", 5), ("launch_latency", 20)}


ACTIVITIES = st.lists(
    st.builds(
        lambda start, length, category, stream: kernel(
            start, start + length, category, stream=stream
        ),
        st.integers(0, 300),
        st.integers(0, 60),
        st.sampled_from(("gemm", "norm", "collective")),
        st.integers(1, 3),
    ),
    max_size=12,
)


@given(ACTIVITIES)
def test_every_instant_is_counted_once(activities: list[Kernel]) -> None:
    """Exclusive and idle times add up to the wall time, whatever overlaps."""
    anchors = [kernel(t, t + 5, "norm", anchor=True) for t in (50, 150, 250)]
    for item in truth_of(one_rank(*anchors, *activities)).rounds:
        busy_ns = sum(work.exclusive_ns for work in item.work)
        assert busy_ns + sum(idle.idle_ns for idle in item.idle) == item.wall_ns


@given(ACTIVITIES)
def test_owners_follow_a_scan_of_every_nanosecond(activities: list[Kernel]) -> None:
    """The walk over boundary points gives what a scan instant by instant gives."""
    anchors = [kernel(t, t + 5, "norm", anchor=True) for t in (0, 400)]
    line = sorted(
        [*anchors, *activities],
        key=lambda a: (a.start_ns, a.truth.category == "collective", a.stream_id),
    )
    owned = [0] * len(line)
    for now_ns in range(400):
        running = [i for i, a in enumerate(line) if a.start_ns <= now_ns < a.end_ns]
        if running:
            owned[min(running, key=lambda i: (line[i].truth.category == "collective", i))] += 1
    found = truth_of(one_rank(*anchors, *activities)).activities
    inside = [item for item in found if item.activity.start_ns < 400]
    assert [item.exclusive_ns for item in inside] == owned[: len(inside)]


def test_collectives_pair_over_ranks() -> None:
    """The shortest duration among the ranks is the transfer, the rest of each is waiting."""
    ranks = tuple(
        RankTrace(
            rank=rank, pid=rank, device_id=0, api_calls=(),
            activities=(
                Kernel(
                    start_ns=start_ns, end_ns=100, stream_id=7, correlation_id=1, name="nccl",
                    truth=Truth(category="collective", collective_id=3),
                ),
            ),
        )
        for rank, start_ns in ((0, 40), (1, 70))
    )  # fmt: skip
    capture = Capture(gpu=gpu_of("h100"), ranks=ranks, epoch_ns=0, start_ns=0, end_ns=100)
    found = truth_of(capture).collectives
    assert [(m.rank, m.transfer_ns, m.wait_ns) for m in found] == [(0, 30, 30), (1, 30, 0)]


def test_idle_of_a_zero_length_neighbour_is_split_there() -> None:
    """A kernel without length still ends one gap and begins the next."""
    found = truth_of(
        one_rank(kernel(0, 10, anchor=True), kernel(20, 20), kernel(50, 60, anchor=True))
    ).rounds
    assert found[0].idle == (Idle("verify", "unknown", None, 40),)
