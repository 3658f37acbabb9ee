"""Exclusive and idle time against a brute-force oracle that looks at every nanosecond."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from harness import kernel, memory_op, numbered, warehouse_of
from hypothesis import given, settings
from hypothesis import strategies as st

COMPUTE, COLLECTIVE, COPY = 0, 1, 2
NAMES = [
    {"name_id": 0, "name": "gemv2T_kernel_val"},
    {"name_id": 1, "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"},
]

activities = st.lists(
    st.tuples(
        st.integers(-5, 45), st.integers(0, 12), st.integers(0, 2), st.sampled_from([0, 1, 2])
    ),
    min_size=1,
    max_size=14,
)


def rows_of(drawn: list[tuple[int, int, int, int]]) -> dict[str, Any]:
    """Raw tables of the drawn activities."""
    kernels = [
        kernel(start, start + length, stream_id=stream, name_id=priority)
        for start, length, stream, priority in drawn
        if priority != COPY
    ]
    copies = [
        memory_op(start, start + length, stream_id=stream)
        for start, length, stream, priority in drawn
        if priority == COPY
    ]
    return {
        "names": NAMES,
        "kernels": numbered(kernels, "kernel_id"),
        "memory_ops": numbered(copies, "memory_op_id"),
    }


def rounds_of(raw: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Rounds from anchor to anchor: every second distinct start of an activity is an anchor."""
    anchors = sorted({row["start_ns"] for row in raw["kernels"] + raw["memory_ops"]})[::2]
    return [(i, *pair) for i, pair in enumerate(pairwise(anchors))]


def oracle(
    raw: dict[str, Any], rounds: list[tuple[int, int, int]]
) -> tuple[Counter[tuple[str, int, int]], Counter[int]]:
    """Owned nanoseconds per (kind, id, round) and idle ones per round, looking at each instant."""
    running = [
        ("kernel", k["kernel_id"], k["start_ns"], k["end_ns"], k["name_id"], k["stream_id"])
        for k in raw["kernels"]
    ] + [
        ("memory_op", m["memory_op_id"], m["start_ns"], m["end_ns"], COPY, m["stream_id"])
        for m in raw["memory_ops"]
    ]
    owned: Counter[tuple[str, int, int]] = Counter()
    idle: Counter[int] = Counter()
    for round_id, begin, end in rounds:
        for t in range(begin, end):
            here = [a for a in running if a[2] <= t < a[3]]
            if here:
                kind, id_, *_ = min(here, key=lambda a: (a[4], a[2], a[5], a[0], a[1]))
                owned[kind, id_, round_id] += 1
            else:
                idle[round_id] += 1
    return owned, idle


@settings(max_examples=60, deadline=None)
@given(activities)
def test_every_instant_has_the_owner_that_the_rules_name(
    drawn: list[tuple[int, int, int, int]],
) -> None:
    """Random overlaps over streams, classes and round boundaries agree with the oracle."""
    raw = rows_of(drawn)
    rounds = rounds_of(raw)
    # an empty VALUES is no SQL: a round that no rank has stands in for "no rounds"
    values = ", ".join(f"(0, {r}, {b}, {e})" for r, b, e in rounds) or "(-1, 0, 0, 0)"
    select = f"""
        SELECT rank::INTEGER AS rank, round_id::BIGINT AS round_id,
          start_ns::BIGINT AS start_ns, end_ns::BIGINT AS end_ns
        FROM (VALUES {values}) AS v(rank, round_id, start_ns, end_ns)
    """
    warehouse = warehouse_of(raw, ["int_owned", "int_gaps"], {"int_rounds": select})
    owned = warehouse.execute(
        """
        SELECT a.kind, a.source_id, o.round_id, sum(o.exclusive_ns)::BIGINT
        FROM int_owned AS o JOIN int_activities AS a USING (activity_id)
        WHERE o.round_id IS NOT NULL GROUP BY ALL
        """
    ).fetchall()
    idle = warehouse.execute(
        "SELECT round_id, sum(end_ns - start_ns)::BIGINT FROM int_gaps GROUP BY ALL"
    ).fetchall()
    warehouse.close()
    expected_owned, expected_idle = oracle(raw, rounds)
    assert {(k, i, r): ns for k, i, r, ns in owned} == dict(expected_owned)
    assert dict(idle) == dict(expected_idle)
