"""Idle causes against an oracle that judges every idle nanosecond by the rules."""

from __future__ import annotations

from collections import Counter
from typing import Any

from harness import kernel, numbered, warehouse_of
from hypothesis import given, settings
from hypothesis import strategies as st

NAMES = [{"name_id": 0, "name": "gemv2T_kernel_val"}, {"name_id": 1, "name": "outer"},
         {"name_id": 2, "name": "inner"}]  # fmt: skip

kernels = st.lists(
    st.tuples(
        st.integers(0, 60),  # start
        st.integers(0, 8),  # length
        st.integers(0, 2),  # stream
        st.one_of(st.none(), st.integers(0, 20)),  # how long before its start it was launched
        st.integers(0, 2),  # 0: launched alone, else the replay it belongs to
    ),
    min_size=2,
    max_size=10,
)
spans = st.lists(st.tuples(st.integers(-5, 60), st.integers(1, 15)), max_size=3)


def rows_of(drawn: list[tuple[int, int, int, int | None, int]]) -> dict[str, Any]:
    """Kernels with launches; members of one replay share their first launch."""
    activities, calls, replays = [], [], {}
    for index, (start, length, stream, lead, replay) in enumerate(drawn):
        correlation = index + 100
        if replay:
            correlation = replay
            replays.setdefault(replay, lead)
        if lead is not None and not replay:
            calls.append((correlation, start - lead, "cudaLaunchKernel"))
        activities.append(
            kernel(
                start,
                start + length,
                stream_id=stream,
                correlation_id=correlation,
                graph_node_id=index + 1 if replay else None,
            )
        )
    for replay, lead in replays.items():
        first = min(a["start_ns"] for a in activities if a["correlation_id"] == replay)
        if lead is not None:
            calls.append((replay, first - lead, "cudaGraphLaunch"))
    api = [
        {"rank": 0, "process_id": 0, "thread_id": 1, "start_ns": start, "end_ns": start + 1,
         "name": name, "correlation_id": correlation}
        for correlation, start, name in calls
    ]  # fmt: skip
    return {
        "names": NAMES,
        "kernels": numbered(activities, "kernel_id"),
        "api_calls": numbered(api, "api_call_id"),
    }


def oracle(
    raw: dict[str, Any], begin: int, end: int, overheads: list[tuple[int, int]]
) -> Counter[str]:
    """Idle nanoseconds per cause in [begin, end)."""
    running = sorted(raw["kernels"], key=lambda k: (k["start_ns"], k["stream_id"], k["kernel_id"]))
    launches = {c["correlation_id"]: c["start_ns"] for c in raw["api_calls"]}
    causes: Counter[str] = Counter()
    for t in range(begin, end):
        if any(k["start_ns"] <= t < k["end_ns"] for k in running):
            continue
        if any(start <= t < start + length for start, length in overheads):
            causes["profiler"] += 1
            continue
        following = next(k for k in running if k["start_ns"] > t)
        before = [
            k for k in running if k["start_ns"] < following["start_ns"] and k["start_ns"] <= t
        ]
        previous = max(before, key=lambda k: (k["end_ns"], running.index(k)))
        launch = launches.get(following["correlation_id"])
        same = following["correlation_id"] == previous["correlation_id"]
        if same and following["graph_node_id"] is not None:
            causes["in_graph"] += 1
        elif launch is None:
            causes["unknown"] += 1
        elif launch <= previous["end_ns"]:
            causes["dependency"] += 1
        else:
            causes["host_late" if t < launch else "launch_latency"] += 1
    return causes


@settings(max_examples=60, deadline=None)
@given(kernels, spans)
def test_every_idle_instant_has_the_cause_that_the_rules_name(
    drawn: list[tuple[int, int, int, int | None, int]], overheads: list[tuple[int, int]]
) -> None:
    """Random kernels, replays, launches and profiler work agree with the oracle."""
    raw = rows_of(drawn)
    raw["overheads"] = [
        {"rank": 0, "process_id": 0, "start_ns": s, "end_ns": s + n, "kind": "Buffer Flush"}
        for s, n in overheads
    ]
    starts = sorted({k["start_ns"] for k in raw["kernels"]})
    begin, end = starts[0], starts[-1]
    select = f"""SELECT 0::INTEGER AS rank, 0::BIGINT AS round_id,
        {begin}::BIGINT AS start_ns, {end}::BIGINT AS end_ns"""
    warehouse = warehouse_of(raw, ["int_idle"], {"int_rounds": select})
    found = warehouse.execute(
        "SELECT cause, sum(idle_ns)::BIGINT FROM int_idle GROUP BY 1"
    ).fetchall()
    warehouse.close()
    assert dict(found) == dict(oracle(raw, begin, end, overheads))


def test_nested_ranges_are_cut_at_the_innermost() -> None:
    """A range inside another takes its part; the outer one has the rest, and nothing is lost."""
    ranges = [
        {"range_id": 1, "process_id": 0, "thread_id": 1, "start_ns": 10, "end_ns": 100},
        {"range_id": 2, "process_id": 0, "thread_id": 1, "start_ns": 20, "end_ns": 50},
        {"range_id": 3, "process_id": 0, "thread_id": 1, "start_ns": 50, "end_ns": 60},
        {"range_id": 4, "process_id": 0, "thread_id": 2, "start_ns": 0, "end_ns": 5},
    ]
    rows = [{**r, "name_id": 1, "kind": "nvtx_push_pop"} for r in ranges]
    warehouse = warehouse_of({"ranges": rows, "names": NAMES}, ["stg_ranges"])
    found = warehouse.execute(
        """
        SELECT start_ns, end_ns, range_id FROM flatten_ranges('stg_ranges')
        WHERE thread_id = 1 ORDER BY 1
        """
    ).fetchall()
    warehouse.close()
    assert found == [(10, 20, 1), (20, 50, 2), (50, 60, 3), (60, 100, 1), (100, None, None)]


@settings(max_examples=40, deadline=None)
@given(
    st.recursive(st.just(()), lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)
)
def test_flattening_agrees_with_a_stack(tree: tuple[Any, ...]) -> None:
    """For any well-nested ranges the innermost one is what a stack would show."""
    ranges: list[tuple[int, int]] = []

    def walk(node: tuple[Any, ...], at: int) -> int:
        mine = len(ranges)
        ranges.append((at, at))
        now = at + 1
        for child in node:
            now = walk(child, now)
        ranges[mine] = (at, now + 1)
        return now + 1

    walk(tree, 0)
    rows = [
        {"range_id": i, "process_id": 0, "thread_id": 1, "start_ns": s, "end_ns": e, "name_id": 1,
         "kind": "cpu_op"}
        for i, (s, e) in enumerate(ranges)
    ]  # fmt: skip
    warehouse = warehouse_of({"ranges": rows, "names": NAMES}, ["stg_ranges"])
    found = warehouse.execute(
        "SELECT start_ns, end_ns, range_id FROM flatten_ranges('stg_ranges') WHERE range_id >= 0"
    ).fetchall()
    warehouse.close()
    shown = {t: range_id for start, end, range_id in found for t in range(start, end)}
    stack = {
        t: max((s, i) for i, (s, e) in enumerate(ranges) if s <= t < e)[1]
        for t in range(ranges[0][1])
    }
    assert shown == stack
