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

_ROWS: Final = 40
_NAME_LIMIT: Final = 160


def reads_table(rank: MeasuredRank) -> Table:
    """One row per phase and matrix of a rank."""
    cells = [
        (*row, f"{m.reads_per_round * m.mean_ms:.3f}")
        for m, row in zip(rank.matrices, read_rows(rank), strict=True)
    ][:_ROWS]
    return Table(
        id=f"reads-{rank.rank}",
        caption=f"Weight reads of rank {rank.rank}: one row per phase and matrix",
        columns=[
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


def idle_table(rank: MeasuredRank) -> Table:
    """One row per cause, phase and host function of a rank; the smallest together."""
    return Table(
        id=f"idle-{rank.rank}",
        caption=f"Idle time of rank {rank.rank}: one row per cause, phase and host function",
        columns=[
            Column("cause"),
            Column("before", meaning="phase of the work that ended the gap"),
            Column("ms a round", numeric=True),
            Column("host in", meaning="innermost range open on the launching thread"),
        ],
        groups=rows(list(_idle_rows(rank))),
    )


def _idle_rows(rank: MeasuredRank) -> Iterator[tuple[Child, ...]]:
    for source in rank.idle[:_ROWS]:
        host = name(source.host_range, _NAME_LIMIT) if source.host_range else None
        yield source.cause, source.phase, f"{source.ms:.4f}", host
    rest = rank.idle[_ROWS:]
    if rest:
        text = f"{len(rest)} smaller sources"
        yield text, None, f"{sum(source.ms for source in rest):.4f}", None


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
            Column("ms a round", numeric=True, meaning="time that it alone is charged for"),
            Column("calls", numeric=True, meaning="calls a round"),
            Column("phase"),
            Column("category"),
        ],
        groups=rows(
            [
                (name(k.name, _NAME_LIMIT), f"{k.ms:.3f}", f"{k.calls:g}", k.phase, k.category)
                for k in r.pictures.kernels
            ]
        ),
    )
