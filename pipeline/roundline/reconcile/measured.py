"""What the steady rounds of one rank took, term by term, read off the marts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb

from roundline.errors import EvidenceError
from roundline.warehouse.attribution import NS_PER_MS


@dataclass(frozen=True)
class WallTime:
    """Distribution of round times over the steady rounds, in ms."""

    mean: float
    median: float
    p10: float
    p90: float


@dataclass(frozen=True)
class MeasuredTerm:
    """Mean time per steady round that a ledger term took."""

    term: str
    ms: float


@dataclass(frozen=True)
class MeasuredPart:
    """Mean time per steady round of one category inside a term."""

    term: str
    part: str
    ms: float


@dataclass(frozen=True)
class MatrixRead:
    """A weight matrix as the steady rounds read it; bytes only where the model's counts fit."""

    phase: str
    matrix: str
    reads_per_round: float
    demanded_per_round: float | None
    bytes: int | None
    mean_ms: float
    achieved_gbps: float | None
    fraction_of_peak: float | None


@dataclass(frozen=True)
class CollectiveTime:
    """Mean collective time per steady round: moving data, and waiting for slower ranks.

    `transfer_ms` is None when not every rank was captured.
    """

    phase: str
    count: float
    duration_ms: float
    transfer_ms: float | None
    wait_ms: float | None


@dataclass(frozen=True)
class IdleSource:
    """Mean idle time per steady round by cause and by what the host was doing."""

    cause: str
    phase: str
    host_range: str | None
    ms: float


@dataclass(frozen=True)
class MeasuredRank:
    """One rank's steady rounds; the terms add up to the mean wall time."""

    rank: int
    device_name: str | None
    reported_gbps: float | None
    rounds: int
    wall_ms: WallTime
    draft_passes: int
    terms: tuple[MeasuredTerm, ...]
    draft_parts: tuple[MeasuredPart, ...]
    idle: tuple[IdleSource, ...]
    matrices: tuple[MatrixRead, ...]
    collectives: tuple[CollectiveTime, ...]
    idle_is_trustworthy: bool
    unclassified_share: float

    def term_ms(self, term: str) -> float:
        """Mean ms of a term; 0 when nothing of it ran."""
        return sum(line.ms for line in self.terms if line.term == term)


def read_measured(warehouse: duckdb.DuckDBPyConnection) -> tuple[MeasuredRank, ...]:
    """Every rank with steady rounds, the slowest first.

    Raises:
        EvidenceError: no rank has a steady round.
    """
    ranks = warehouse.execute(
        """
        SELECT rank, count(*) FROM rounds WHERE steady
        GROUP BY rank ORDER BY avg(wall_ns) DESC, rank
        """
    ).fetchall()
    if not ranks:
        raise EvidenceError(_why_no_rounds(warehouse))
    return tuple(_read_rank(warehouse, rank, rounds) for rank, rounds in ranks)


def _why_no_rounds(warehouse: duckdb.DuckDBPyConnection) -> str:
    row = warehouse.execute(
        """
        SELECT string_agg(DISTINCT detail, '; ' ORDER BY detail) FROM trace_quality
        WHERE "check" = 'round_evidence' AND status = 'absent'
        """
    ).fetchall()
    reason = row[0][0] or "no round is steady, see `SELECT * FROM rounds`"
    return f"nothing to reconcile: {reason}; `roundline doctor` says how to capture it"


def _read_rank(warehouse: duckdb.DuckDBPyConnection, rank: int, rounds: int) -> MeasuredRank:
    def ask(sql: str) -> list[tuple[Any, ...]]:
        return warehouse.execute(sql, {"rank": rank}).fetchall()

    def mean_ms(total_ns: Any) -> float:
        return int(total_ns or 0) / rounds / NS_PER_MS

    device, gbps, trustworthy = ask(_DEVICE)[0]
    return MeasuredRank(
        rank=rank,
        device_name=device,
        reported_gbps=gbps,
        rounds=rounds,
        wall_ms=WallTime(*(float(value) / NS_PER_MS for value in ask(_WALL)[0])),
        draft_passes=ask(_DRAFT_PASSES)[0][0],
        terms=tuple(MeasuredTerm(term, mean_ms(ns)) for term, ns in ask(_TERMS)),
        draft_parts=tuple(
            MeasuredPart("draft", part, mean_ms(ns)) for part, ns in ask(_DRAFT_PARTS)
        ),
        idle=tuple(
            IdleSource(cause, phase, host_range, mean_ms(ns))
            for cause, phase, host_range, ns in ask(_IDLE)
        ),
        matrices=tuple(MatrixRead(*row) for row in ask(_MATRICES)),
        collectives=tuple(_collective(row, rounds) for row in ask(_COLLECTIVES)),
        idle_is_trustworthy=trustworthy,
        unclassified_share=float(ask(_UNCLASSIFIED)[0][0] or 0.0),
    )


def _collective(row: tuple[Any, ...], rounds: int) -> CollectiveTime:
    phase, count, duration, transfer, wait = row
    return CollectiveTime(
        phase=phase,
        count=count / rounds,
        duration_ms=int(duration) / rounds / NS_PER_MS,
        transfer_ms=None if transfer is None else int(transfer) / rounds / NS_PER_MS,
        wait_ms=None if wait is None else int(wait) / rounds / NS_PER_MS,
    )


_DEVICE = """
SELECT device_name, memory_bandwidth_bytes_per_s / 1e9, idle_is_trustworthy
FROM ranks JOIN completeness USING (rank) WHERE rank = $rank
"""

_WALL = """
SELECT avg(wall_ns), median(wall_ns), quantile_cont(wall_ns, 0.1), quantile_cont(wall_ns, 0.9)
FROM rounds WHERE steady AND rank = $rank
"""

_DRAFT_PASSES = "SELECT mode(draft_passes) FROM rounds WHERE steady AND rank = $rank"

_TERMS = """
SELECT term, sum(measured_ns) FROM round_terms JOIN rounds USING (rank, round_id)
WHERE steady AND rank = $rank GROUP BY term ORDER BY sum(measured_ns) DESC, term
"""

_DRAFT_PARTS = """
SELECT CASE
    WHEN category = 'gemm' THEN 'weights'
    WHEN category IN ('attention', 'kvcache') THEN 'attention'
    WHEN category IN ('memcpy', 'memset') THEN 'copy'
    WHEN category IN ('sampling', 'spec') THEN 'sampling'
    WHEN category IN ('gdn', 'collective', 'unclassified') THEN category
    ELSE 'elementwise'
  END AS part,
  sum(exclusive_ns)
FROM round_attribution JOIN rounds USING (rank, round_id)
WHERE steady AND rank = $rank AND phase IN ('draft', 'draft_extend')
GROUP BY part ORDER BY sum(exclusive_ns) DESC, part
"""

_IDLE = """
SELECT cause, phase, host_range, sum(idle_ns) FROM round_idle JOIN rounds USING (rank, round_id)
WHERE steady AND rank = $rank GROUP BY ALL
ORDER BY sum(idle_ns) DESC, cause, phase, host_range
"""

_MATRICES = """
SELECT phase, matrix, reads_per_round, demanded_per_round, bytes, mean_ns / 1e6,
  achieved_gbps, fraction_of_peak
FROM weight_reads WHERE rank = $rank ORDER BY reads_per_round * mean_ns DESC, phase, matrix
"""

_COLLECTIVES = """
SELECT phase, count(*), sum(duration_ns),
  CASE WHEN count(transfer_ns) = count(*) THEN sum(transfer_ns) END,
  CASE WHEN count(transfer_ns) = count(*) THEN sum(wait_ns) END
FROM collectives JOIN rounds USING (rank, round_id)
WHERE steady AND rank = $rank GROUP BY phase ORDER BY phase
"""

_UNCLASSIFIED = """
SELECT sum(exclusive_ns) FILTER (WHERE category = 'unclassified') / nullif(sum(exclusive_ns), 0)
FROM round_attribution JOIN rounds USING (rank, round_id)
WHERE steady AND rank = $rank
"""
