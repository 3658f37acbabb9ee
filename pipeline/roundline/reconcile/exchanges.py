"""Collectives of the steady rounds by phase, operation and kernel: transfer apart from wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import duckdb

from roundline.bandwidth.communication import Kernel
from roundline.warehouse.attribution import NS_PER_MS

OPERATIONS: Final = {"allreduce": "all_reduce", "allgather": "all_gather"}


@dataclass(frozen=True)
class Exchange:
    """Equal collectives of one phase, per mean steady round of one rank.

    `operation` is `all_reduce`, `all_gather` or the name that the kernel gives. Where not every
    rank was captured, `paired` is False and waiting is part of `transfer_ms`; else `transfers_ns`
    are the single transfers of all steady rounds.
    """

    phase: str
    operation: str
    kernel: Kernel
    count: float
    transfer_ms: float
    wait_ms: float
    paired: bool = True
    transfers_ns: tuple[int, ...] = ()


def read_exchanges(warehouse: duckdb.DuckDBPyConnection, rank: int) -> tuple[Exchange, ...]:
    """The exchanges of a rank, the most frequent first."""
    rows = warehouse.execute(_EXCHANGES, {"rank": rank}).fetchall()
    return tuple(
        Exchange(
            phase=phase,
            operation=OPERATIONS.get(operation, operation),
            kernel="nccl" if is_nccl else "custom",
            count=count / rounds,
            transfer_ms=int(transfer) / rounds / NS_PER_MS,
            wait_ms=int(duration - transfer) / rounds / NS_PER_MS,
            paired=transfers is not None,
            transfers_ns=tuple(transfers or ()),
        )
        for phase, operation, is_nccl, rounds, count, transfers, transfer, duration in rows
    )


def kernel_seen(exchanges: tuple[Exchange, ...]) -> Kernel | None:
    """The kind of kernel that does most of the all-reduces; None where there are none."""
    counts: dict[Kernel, float] = {}
    for exchange in exchanges:
        if exchange.operation == "all_reduce":
            counts[exchange.kernel] = counts.get(exchange.kernel, 0.0) + exchange.count
    return max(counts.items(), key=lambda item: item[1])[0] if counts else None


_EXCHANGES = """
SELECT c.phase, operation, subcategory LIKE 'nccl%' AS is_nccl,
  (SELECT count(*) FROM rounds WHERE steady AND rank = $rank) AS rounds,
  count(*),
  CASE WHEN count(transfer_ns) = count(*) THEN list(transfer_ns ORDER BY collective_id) END,
  sum(coalesce(transfer_ns, duration_ns)),
  sum(duration_ns)
FROM collectives AS c
JOIN rounds USING (rank, round_id)
JOIN kernel_attribution AS k USING (rank, kernel_id)
WHERE steady AND rank = $rank
GROUP BY c.phase, operation, is_nccl
ORDER BY count(*) DESC, c.phase, operation, is_nccl
"""
