"""Where the time of a capture's rounds went, read off the marts.

Means are over steady rounds of one rank, so that the parts add up to the mean wall time. A
capture without rounds is described as a whole, by category alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import duckdb

NS_PER_MS: Final = 1e6


@dataclass(frozen=True)
class Rounds:
    """How many rounds there are, on what evidence, and why some do not count."""

    count: int
    steady: int
    evidence: str | None
    excluded: dict[str, int]
    refused_because: str | None


@dataclass(frozen=True)
class AttributionLine:
    """Mean GPU time per steady round of one phase, draft step and category."""

    phase: str | None
    draft_step: int | None
    category: str
    kernels_per_round: float
    sum_ms: float
    exclusive_ms: float


@dataclass(frozen=True)
class IdleLine:
    """Mean idle time per steady round of one cause."""

    cause: str
    ms: float


@dataclass(frozen=True)
class RankAttribution:
    """One rank: mean wall time, and the parts that add up to it."""

    rank: int
    device_name: str | None
    rounds: int
    wall_ms_mean: float | None
    attribution: tuple[AttributionLine, ...]
    idle: tuple[IdleLine, ...]
    idle_withheld_because: str | None


@dataclass(frozen=True)
class UnclassifiedName:
    """A kernel name without a class and its total time in the capture."""

    name: str
    ms: float


@dataclass(frozen=True)
class Unclassified:
    """Share of all kernel time that has no class, and the names behind it."""

    share: float
    names: tuple[UnclassifiedName, ...]


@dataclass(frozen=True)
class QualityLine:
    """One thing to know before trusting the numbers."""

    check: str
    rank: int
    status: str
    detail: str


@dataclass(frozen=True)
class Attribution:
    """The whole answer of `roundline attribute`."""

    rounds: Rounds
    ranks: tuple[RankAttribution, ...]
    unclassified: Unclassified
    quality: tuple[QualityLine, ...]


def read_attribution(warehouse: duckdb.DuckDBPyConnection) -> Attribution:
    """Read the summary off the marts of an open warehouse."""
    ranks = warehouse.execute("SELECT rank FROM ranks ORDER BY rank").fetchall()
    return Attribution(
        rounds=read_rounds(warehouse),
        ranks=tuple(_read_rank(warehouse, rank) for (rank,) in ranks),
        unclassified=_read_unclassified(warehouse),
        quality=read_quality(warehouse),
    )


def read_rounds(warehouse: duckdb.DuckDBPyConnection) -> Rounds:
    """Round counts of the rank that has most; ranks of one job take part in the same rounds."""
    count, steady, evidence = _one(
        warehouse,
        """
        SELECT coalesce(max(rounds), 0), coalesce(max(steady), 0), min(evidence)
        FROM (
          SELECT rank, count(*) AS rounds, count(*) FILTER (WHERE steady) AS steady,
            min(evidence) AS evidence
          FROM rounds GROUP BY rank
        )
        """,
    )
    excluded = warehouse.execute(
        """
        SELECT excluded_because, max(n) FROM (
          SELECT rank, excluded_because, count(*) AS n FROM rounds WHERE NOT steady GROUP BY ALL
        ) GROUP BY ALL ORDER BY ALL
        """
    ).fetchall()
    refused = warehouse.execute(
        """
        SELECT min(detail) FROM trace_quality
        WHERE "check" = 'round_evidence' AND status = 'absent'
        """
    ).fetchall()
    return Rounds(count, steady, evidence, dict(excluded), None if count else refused[0][0])


def read_quality(warehouse: duckdb.DuckDBPyConnection) -> tuple[QualityLine, ...]:
    """The trace-quality mart, worst first."""
    rows = warehouse.execute(
        """
        SELECT "check", rank, status, detail FROM trace_quality
        ORDER BY list_position(['poor', 'warning', 'absent', 'ok'], status), "check", rank
        """
    ).fetchall()
    return tuple(QualityLine(*row) for row in rows)


def _read_rank(warehouse: duckdb.DuckDBPyConnection, rank: int) -> RankAttribution:
    rounds, wall_ns = _one(
        warehouse,
        "SELECT count(*), sum(wall_ns)::BIGINT FROM rounds WHERE steady AND rank = ?",
        rank,
    )
    device, trustworthy = _one(
        warehouse,
        "SELECT device_name, idle_is_trustworthy FROM ranks JOIN completeness USING (rank)"
        " WHERE rank = ?",
        rank,
    )
    return RankAttribution(
        rank=rank,
        device_name=device,
        rounds=rounds,
        wall_ms_mean=wall_ns / rounds / NS_PER_MS if rounds else None,
        attribution=_lines_of_rounds(warehouse, rank, rounds)
        if rounds
        else _lines(warehouse, rank),
        idle=_idle(warehouse, rank, rounds) if rounds and trustworthy else (),
        idle_withheld_because=None if trustworthy else "too much of the capture is missing",
    )


def _lines_of_rounds(
    warehouse: duckdb.DuckDBPyConnection, rank: int, rounds: int
) -> tuple[AttributionLine, ...]:
    rows = warehouse.execute(
        """
        SELECT phase, draft_step, category, sum(kernels), sum(sum_ns), sum(exclusive_ns)
        FROM round_attribution JOIN rounds USING (rank, round_id)
        WHERE steady AND rank = ?
        GROUP BY ALL
        ORDER BY sum(exclusive_ns) DESC, phase, draft_step, category
        """,
        [rank],
    ).fetchall()
    return tuple(_line(row, rounds) for row in rows)


def _lines(warehouse: duckdb.DuckDBPyConnection, rank: int) -> tuple[AttributionLine, ...]:
    """Without rounds: the whole capture by category."""
    rows = warehouse.execute(
        """
        SELECT NULL, NULL, category, count(*), sum(end_ns - start_ns), sum(exclusive_ns)
        FROM (
          SELECT category, start_ns, end_ns, exclusive_ns FROM kernel_attribution WHERE rank = ?
          UNION ALL
          SELECT category, start_ns, end_ns, exclusive_ns FROM memory_attribution WHERE rank = ?
          UNION ALL
          SELECT category, start_ns, end_ns, exclusive_ns FROM graph_span_attribution WHERE rank = ?
        )
        GROUP BY category ORDER BY sum(exclusive_ns) DESC, category
        """,
        [rank, rank, rank],
    ).fetchall()
    return tuple(_line(row, 1) for row in rows)


def _line(row: tuple[Any, ...], rounds: int) -> AttributionLine:
    phase, draft_step, category, kernels, sum_ns, exclusive_ns = row
    return AttributionLine(
        phase=phase,
        draft_step=draft_step,
        category=category,
        kernels_per_round=int(kernels) / rounds,
        sum_ms=int(sum_ns) / rounds / NS_PER_MS,
        exclusive_ms=int(exclusive_ns) / rounds / NS_PER_MS,
    )


def _idle(warehouse: duckdb.DuckDBPyConnection, rank: int, rounds: int) -> tuple[IdleLine, ...]:
    rows = warehouse.execute(
        """
        SELECT cause, sum(idle_ns) FROM round_idle JOIN rounds USING (rank, round_id)
        WHERE steady AND rank = ?
        GROUP BY cause ORDER BY sum(idle_ns) DESC, cause
        """,
        [rank],
    ).fetchall()
    return tuple(IdleLine(cause, int(ns) / rounds / NS_PER_MS) for cause, ns in rows)


def _read_unclassified(warehouse: duckdb.DuckDBPyConnection) -> Unclassified:
    unknown_ns, all_ns = _one(
        warehouse,
        """
        SELECT coalesce(sum(end_ns - start_ns) FILTER (WHERE category = 'unclassified'), 0),
          coalesce(sum(end_ns - start_ns), 0)
        FROM (
          SELECT category, start_ns, end_ns FROM kernel_attribution
          UNION ALL
          SELECT category, start_ns, end_ns FROM graph_span_attribution
        )
        """,
    )
    rows = warehouse.execute(
        """
        SELECT name, sum(end_ns - start_ns) AS ns
        FROM (
          SELECT name, category, start_ns, end_ns FROM kernel_attribution
          UNION ALL
          SELECT 'graph replay (its kernels are hidden)', category, start_ns, end_ns
          FROM graph_span_attribution
        )
        WHERE category = 'unclassified' GROUP BY name ORDER BY ns DESC, name LIMIT 20
        """
    ).fetchall()
    names = tuple(UnclassifiedName(name, int(ns) / NS_PER_MS) for name, ns in rows)
    return Unclassified(int(unknown_ns) / int(all_ns) if all_ns else 0.0, names)


def _one(warehouse: duckdb.DuckDBPyConnection, sql: str, *arguments: object) -> Any:
    return warehouse.execute(sql, list(arguments)).fetchall()[0]
