"""One representative round of every rank, instant by instant, read off the marts.

The round is the steady one of the slowest rank whose wall time is nearest to the median; of every
other rank it is the round that overlaps it most. Owned and idle stretches cover a round without
gaps, so that what is drawn adds up to its wall time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import duckdb

from roundline.reconcile.sweep import Activity, Stretch, coarsened, joined, owned

MAX_STRETCHES: Final = 6_000  # of all ranks together: what a screen can show, and 60 KB of SVG


@dataclass(frozen=True)
class PhaseTime:
    """What one category took in one phase of the round, in ns; idle time under its cause."""

    phase: str
    draft_step: int | None
    label: str
    idle: bool
    ns: int


@dataclass(frozen=True)
class RoundTimeline:
    """One round of one rank. `stretches` may be coarsened for drawing, `times` are exact.

    Attributes:
        rank: whose round.
        round_id: which round.
        wall_ns: its length.
        stretches: everything in order of time, without gaps.
        cell_ns: stretches are shown in cells of this length; None where all are shown.
        times: exact sums per phase, draft step and label.
    """

    rank: int
    round_id: int
    wall_ns: int
    stretches: tuple[Stretch, ...]
    cell_ns: int | None
    times: tuple[PhaseTime, ...]


def read_timelines(warehouse: duckdb.DuckDBPyConnection) -> tuple[RoundTimeline, ...]:
    """The representative round of every rank, the slowest rank first."""
    chosen = warehouse.execute(_REPRESENTATIVE).fetchall()
    budget = MAX_STRETCHES // max(len(chosen), 1)
    return tuple(_read_round(warehouse, budget, *row) for row in chosen)


def _read_round(
    warehouse: duckdb.DuckDBPyConnection, budget: int, rank: int, round_id: int, wall_ns: int
) -> RoundTimeline:
    def ask(sql: str) -> list[tuple[Any, ...]]:
        return warehouse.execute(sql, {"rank": rank, "round_id": round_id}).fetchall()

    busy = owned([Activity(*row) for row in ask(_ACTIVITIES)])
    idle = (Stretch(*row) for row in ask(_IDLE))
    in_order = sorted([*busy, *idle], key=lambda stretch: stretch.start_ns)
    everything = tuple(joined(_with_steps(in_order)))
    shown = coarsened(everything, budget)
    return RoundTimeline(
        rank=rank,
        round_id=round_id,
        wall_ns=wall_ns,
        stretches=shown,
        cell_ns=None if shown == everything else -(-wall_ns // budget),
        times=_times(everything),
    )


def _with_steps(stretches: Sequence[Stretch]) -> list[Stretch]:
    """Idle stretches belong to the draft step of the work that ends them."""
    filled: list[Stretch] = []
    step: int | None = None
    for stretch in reversed(stretches):
        if stretch.idle:
            filled.append(replace(stretch, draft_step=step))
        else:
            step = stretch.draft_step
            filled.append(stretch)
    return filled[::-1]


def _times(stretches: Sequence[Stretch]) -> tuple[PhaseTime, ...]:
    """Sums in order of first appearance of each phase, the longest first within it."""
    sums: dict[tuple[str, int | None, str, bool], int] = {}
    order: dict[tuple[str, int | None], int] = {}
    for s in stretches:
        key = (s.phase, s.draft_step, s.label, s.idle)
        sums[key] = sums.get(key, 0) + s.ns
        order.setdefault((s.phase, s.draft_step), len(order))
    times = [PhaseTime(*key, ns) for key, ns in sums.items()]
    return tuple(sorted(times, key=lambda t: (order[t.phase, t.draft_step], -t.ns, t.label)))


_REPRESENTATIVE = """
WITH steady AS (SELECT rank, round_id, start_ns, end_ns, wall_ns FROM rounds WHERE steady),
ranks AS (
  SELECT rank, avg(wall_ns) AS mean_ns, median(wall_ns) AS median_ns FROM steady GROUP BY rank
),
reference AS (
  SELECT steady.*
  FROM steady JOIN ranks USING (rank)
  ORDER BY mean_ns DESC, rank, abs(wall_ns - median_ns), round_id LIMIT 1
)
SELECT steady.rank, steady.round_id, steady.wall_ns
FROM steady JOIN ranks USING (rank) CROSS JOIN reference
QUALIFY row_number() OVER (
  PARTITION BY steady.rank
  ORDER BY
    greatest(
      least(steady.end_ns, reference.end_ns) - greatest(steady.start_ns, reference.start_ns), 0
    ) DESC,
    abs(steady.round_id - reference.round_id),
    steady.round_id
) = 1
ORDER BY mean_ns DESC, steady.rank
"""

# an activity that began before the round is clipped to it, as the round's wall time is
_ACTIVITIES = """
WITH chosen AS (
  SELECT start_ns AS from_ns, end_ns AS until_ns
  FROM rounds WHERE rank = $rank AND round_id = $round_id
),
activities AS (
  SELECT start_ns, end_ns, if(category = 'collective', 1, 0) AS priority, kernel_id AS id,
    phase, draft_step, category
  FROM kernel_attribution WHERE rank = $rank
  UNION ALL
  SELECT start_ns, end_ns, 0, graph_span_id, phase, NULL, category
  FROM graph_span_attribution WHERE rank = $rank
  UNION ALL
  SELECT start_ns, end_ns, 2, memory_op_id, phase, draft_step, category
  FROM memory_attribution WHERE rank = $rank
)
SELECT
  greatest(start_ns, from_ns) - from_ns, least(end_ns, until_ns) - from_ns,
  priority,
  row_number() OVER (ORDER BY start_ns, id),
  coalesce(phase, 'other'), draft_step, category,
FROM activities JOIN chosen ON end_ns > from_ns AND start_ns < until_ns AND end_ns > start_ns
ORDER BY start_ns, priority, id
"""

# several causes of one gap lie one after the other
_IDLE = """
WITH gaps AS (
  SELECT *,
    start_ns + coalesce(sum(idle_ns) OVER (
      PARTITION BY start_ns, end_ns ORDER BY cause, host_range
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS from_ns,
  FROM idle_gaps WHERE rank = $rank AND round_id = $round_id
)
SELECT
  (from_ns - rounds.start_ns)::BIGINT,
  (from_ns + idle_ns - rounds.start_ns)::BIGINT,
  gaps.phase,
  NULL,
  gaps.cause,
  true,
  gaps.host_range[:400],
FROM gaps JOIN rounds USING (rank, round_id)
ORDER BY from_ns
"""
