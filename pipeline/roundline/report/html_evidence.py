"""Tables of what was measured: weight reads, idle sources, collectives, kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from roundline.report.evidence import read_rows
from roundline.report.html_markup import Child, name
from roundline.report.html_tables import Column, Table, rows
from roundline.report.ledger import number

if TYPE_CHECKING:
    from roundline.reconcile.measured import MeasuredRank
    from roundline.reconcile.reconciliation import Reconciliation

_ROWS: Final = 160  # of all ranks together
_NAME_LIMIT: Final = 160


def reads_table(r: Reconciliation) -> Table:
    """One row per rank, phase and matrix."""
    limit = max(_ROWS // len(r.ranks), 24)
    cells = [
        (str(rank.rank), *row, f"{m.reads_per_round * m.mean_ms:.3f}")
        for rank in r.ranks
        for m, row in zip(rank.matrices[:limit], read_rows(rank), strict=False)
    ]
    return Table(
        id="reads",
        caption="Weight reads: one row per rank, phase and matrix",
        columns=[
            Column("rank", numeric=True),
            Column("phase"),
            Column("matrix"),
            Column("reads", numeric=True, meaning="reads a round"),
            Column("MB", numeric=True, meaning="bytes of one read, in 10⁶ bytes"),
            Column("µs", numeric=True, meaning="mean time of one read"),
            Column("GB/s", numeric=True, meaning="achieved bandwidth"),
            Column("of peak", numeric=True),
            Column("ms a round", numeric=True),
        ],
        groups=rows(cells),
    )


def idle_table(r: Reconciliation) -> Table:
    """One row per rank, cause, phase and host function; the smallest of a rank together."""
    limit = max(_ROWS // len(r.ranks), 8)
    return Table(
        id="idle-sources",
        caption="Idle time: one row per rank, cause, phase and what the host was doing",
        columns=[
            Column("rank", numeric=True),
            Column("cause"),
            Column("before", meaning="phase of the work that ended the gap"),
            Column("host in", meaning="innermost range open on the launching thread"),
            Column("ms a round", numeric=True),
        ],
        groups=rows([row for rank in r.ranks for row in _idle_rows(rank, limit)]),
    )


def _idle_rows(rank: MeasuredRank, limit: int) -> Iterator[tuple[Child, ...]]:
    for source in rank.idle[:limit]:
        host = name(source.host_range, _NAME_LIMIT) if source.host_range else None
        yield str(rank.rank), source.cause, source.phase, host, f"{source.ms:.4f}"
    rest = rank.idle[limit:]
    if rest:
        text = f"{len(rest)} smaller sources"
        yield str(rank.rank), text, None, None, f"{sum(source.ms for source in rest):.4f}"


def collectives_table(r: Reconciliation) -> Table:
    """One row per rank and phase."""
    return Table(
        id="collective-times",
        caption="Collectives: one row per rank and phase, means a round",
        columns=[
            Column("rank", numeric=True),
            Column("phase"),
            *[Column(title, numeric=True) for title in ("count", "ms", "transfer ms", "wait ms")],
        ],
        groups=rows(
            [
                (
                    str(rank.rank), c.phase, f"{c.count:g}", f"{c.duration_ms:.3f}",
                    number(c.transfer_ms, 3), number(c.wait_ms, 3),
                )
                for rank in sorted(r.ranks, key=lambda rank: rank.rank)
                for c in rank.collectives
            ]
        ),
    )  # fmt: skip


def kernels_table(r: Reconciliation) -> Table:
    """The kernels that take most of the slowest rank's rounds."""
    return Table(
        id="kernel-times",
        caption=f"Kernels of rank {r.slowest.rank} that take most: one row per name and phase",
        columns=[
            Column("kernel"),
            Column("phase"),
            Column("category"),
            Column("calls", numeric=True, meaning="calls a round"),
            Column("ms a round", numeric=True, meaning="time that it alone is charged for"),
        ],
        groups=rows(
            [
                (name(k.name, _NAME_LIMIT), k.phase, k.category, f"{k.calls:g}", f"{k.ms:.3f}")
                for k in r.pictures.kernels
            ]
        ),
    )
