"""How round times spread, which rounds stand out, and which kernels the time is in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import duckdb

from roundline.warehouse.attribution import NS_PER_MS

MAX_OUTLIERS: Final = 20
MAX_KERNELS: Final = 25


@dataclass(frozen=True)
class RoundTime:
    """One round; `excluded_because` is None where it is steady."""

    round_id: int
    wall_ns: int
    excluded_because: str | None


@dataclass(frozen=True)
class RoundOutlier:
    """A steady round outside Tukey's fences, with the term that is furthest from its own mean."""

    round_id: int
    wall_ms: float
    above_median_ms: float
    term: str
    term_above_mean_ms: float


@dataclass(frozen=True)
class RankSpread:
    """All rounds of one rank in order of time.

    Attributes:
        rank: whose rounds.
        rounds: steady or not.
        low_fence_ms: 1.5 interquartile ranges below the first quartile of the steady rounds.
        high_fence_ms: the same above the third.
        outliers: steady rounds outside the fences, the furthest first, at most `MAX_OUTLIERS`.
        outlier_count: how many there are.
    """

    rank: int
    rounds: tuple[RoundTime, ...]
    low_fence_ms: float
    high_fence_ms: float
    outliers: tuple[RoundOutlier, ...]
    outlier_count: int


@dataclass(frozen=True)
class KernelTotal:
    """One kernel name in one phase of the steady rounds of a rank; means per round."""

    name: str
    phase: str
    category: str
    calls: float
    ms: float


def read_spread(warehouse: duckdb.DuckDBPyConnection, rank: int) -> RankSpread:
    """The rounds of one rank that has steady ones."""
    given = {"rank": rank, "limit": MAX_OUTLIERS}
    rounds = warehouse.execute(
        "SELECT round_id, wall_ns, excluded_because FROM rounds WHERE rank = ? ORDER BY round_id",
        [rank],
    ).fetchall()
    low, high, count = warehouse.execute(_FENCES, {"rank": rank}).fetchall()[0]
    outliers = warehouse.execute(_OUTLIERS, given).fetchall()
    return RankSpread(
        rank=rank,
        rounds=tuple(RoundTime(*row) for row in rounds),
        low_fence_ms=low / NS_PER_MS,
        high_fence_ms=high / NS_PER_MS,
        outliers=tuple(
            RoundOutlier(
                round_id, wall / NS_PER_MS, above / NS_PER_MS, term, term_above / NS_PER_MS
            )
            for round_id, wall, above, term, term_above in outliers
        ),
        outlier_count=count,
    )


def read_kernels(warehouse: duckdb.DuckDBPyConnection, rank: int) -> tuple[KernelTotal, ...]:
    """The kernels that take most of the steady rounds; long names are cut."""
    rows = warehouse.execute(_KERNELS, {"rank": rank, "limit": MAX_KERNELS}).fetchall()
    return tuple(
        KernelTotal(name, phase, category, calls / rounds, int(ns) / rounds / NS_PER_MS)
        for name, phase, category, calls, ns, rounds in rows
    )


_SPREAD = """
WITH steady AS (
  SELECT round_id, wall_ns FROM rounds WHERE steady AND rank = $rank
),
quartiles AS (
  SELECT
    quantile_cont(wall_ns, 0.25) AS q1, median(wall_ns) AS q2, quantile_cont(wall_ns, 0.75) AS q3,
  FROM steady
),
fences AS (
  SELECT q1 - 1.5 * (q3 - q1) AS low_ns, q2, q3 + 1.5 * (q3 - q1) AS high_ns FROM quartiles
),
outside AS (
  SELECT round_id, wall_ns, wall_ns - q2 AS above_ns
  FROM steady CROSS JOIN fences WHERE wall_ns NOT BETWEEN low_ns AND high_ns
)
"""

_FENCES = f"""{_SPREAD}
SELECT low_ns, high_ns, (SELECT count(*) FROM outside) FROM fences
"""

# a round in which a term did not run has no row of it: absent is zero here
_OUTLIERS = f"""{_SPREAD},
means AS (
  SELECT term, sum(measured_ns) / (SELECT count(*) FROM steady) AS mean_ns
  FROM round_terms JOIN steady USING (round_id) WHERE rank = $rank GROUP BY term
),
terms AS (
  SELECT round_id, term, measured_ns FROM round_terms WHERE rank = $rank
)
SELECT
  outside.round_id,
  outside.wall_ns,
  outside.above_ns,
  means.term,
  coalesce(terms.measured_ns, 0) - means.mean_ns AS term_above_ns,
FROM outside CROSS JOIN means
LEFT JOIN terms USING (round_id, term)
QUALIFY row_number() OVER (
  PARTITION BY outside.round_id ORDER BY abs(term_above_ns) DESC, means.term
) = 1
ORDER BY abs(above_ns) DESC, outside.round_id
LIMIT $limit
"""

_KERNELS = """
SELECT
  name[:400], phase, category, count(*), sum(exclusive_ns),
  (SELECT count(*) FROM rounds WHERE steady AND rank = $rank),
FROM kernel_attribution JOIN rounds USING (rank, round_id)
WHERE steady AND rank = $rank
GROUP BY ALL
ORDER BY sum(exclusive_ns) DESC, name[:400], phase, category
LIMIT $limit
"""
