"""Bars with a name and a figure: weight matrices, idle time, collectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from roundline.reconcile.ledger import idle_by_cause
from roundline.report.html_markup import Child, join
from roundline.report.svg import Drawing, axis, bar, colour, label, rule

if TYPE_CHECKING:
    from roundline.reconcile.measured import MatrixRead, MeasuredRank

_ROW: Final = 34.0
_MATRICES: Final = 24
_COLLECTIVE_KEYS: Final = (
    ("b-measured", "transfer"),
    ("b-over", "wait for the slower rank"),
    ("b-floor", "not told apart"),
)


@dataclass(frozen=True)
class Row:
    """A bar made of pieces `(class, value, tooltip)`, its name and its figure."""

    name: str
    figure: str
    pieces: Sequence[tuple[str, float, str]]


def _rows(bars: Sequence[Row], limit: float) -> list[Child]:
    shapes: list[Child] = []
    for i, row in enumerate(bars):
        y, x = _ROW * i, 0.0
        shapes.append(label(0, y + 13, row.name, class_="name"))
        shapes.append(label(1, y + 13, row.figure, text_anchor="end"))
        for class_, value, title in row.pieces:
            shapes.append(bar(x / limit, value / limit, y + 18, 10, class_, title))
            x += value
    return shapes


def matrices_drawing(reads: Sequence[MatrixRead], peak: float, expected: float) -> Drawing | None:
    """Achieved GB/s of every labelled matrix; lines at the peak and at the expected rate."""
    known = [r for r in reads if r.achieved_gbps is not None][:_MATRICES]
    if not known:
        return None
    limit = max(peak, *[r.achieved_gbps or 0.0 for r in known])
    bars = [_matrix(r) for r in known]
    bottom = _ROW * len(bars)
    return Drawing(
        id="matrices-picture",
        title="Weight matrices by achieved bandwidth",
        description="; ".join(f"{row.name}: {row.figure}" for row in bars),
        height=bottom + 20,
        shapes=join([
            axis(limit, 0, bottom, "GB/s"), *_rows(bars, limit),
            *[
                rule(value / limit, _ROW * i + 16, _ROW * i + 30, class_)
                for i in range(len(bars))
                for value, class_ in ((expected, "at-expected"), (peak, "at-peak"))
            ],
        ]),
        keys=(
            ("b-measured", "achieved"), ("at-expected", f"expected: {expected:.0f} GB/s"),
            ("at-peak", f"peak: {peak:.0f} GB/s"),
        ),
    )  # fmt: skip


def _matrix(read: MatrixRead) -> Row:
    rate, ms = read.achieved_gbps or 0.0, read.reads_per_round * read.mean_ms
    figure = f"{rate:.0f} GB/s, {100 * (read.fraction_of_peak or 0.0):.0f} % of peak, {ms:.2f} ms"
    text = f"{read.phase} {read.matrix}"
    return Row(text, figure, [("b-measured", rate, f"{text}: {figure} a round")])


def idle_drawing(ranks: Sequence[MeasuredRank]) -> Drawing | None:
    """Idle time of every rank, stacked by cause."""
    bars = [_idle(rank) for rank in ranks if rank.idle_is_trustworthy]
    limit = max((sum(v for _, v, _ in row.pieces) for row in bars), default=0.0)
    if not limit:
        return None
    causes = {cause for rank in ranks for cause, _ in idle_by_cause(rank)}
    keys = tuple((colour(cause), cause) for cause in sorted(causes))
    return _stacked("idle-picture", "Idle time by cause", bars, limit, keys)


def _idle(rank: MeasuredRank) -> Row:
    pieces = [
        (colour(cause), ms, f"rank {rank.rank}: {cause} {ms:.3f} ms a round")
        for cause, ms in idle_by_cause(rank)
    ]
    return Row(f"rank {rank.rank}", f"{sum(ms for _, ms, _ in pieces):.2f} ms", pieces)


def collectives_drawing(ranks: Sequence[MeasuredRank]) -> Drawing | None:
    """Transfer and wait of every rank and phase; one grey bar where they cannot be told apart."""
    ordered = sorted(ranks, key=lambda rank: rank.rank)
    phases = sorted({c.phase or "" for rank in ordered for c in rank.collectives})
    bars = [row for phase in phases for rank in ordered for row in _collectives(rank, phase)]
    limit = max((sum(v for _, v, _ in row.pieces) for row in bars), default=0.0)
    if not limit:
        return None
    used = {class_ for row in bars for class_, _, _ in row.pieces}
    keys = tuple(key for key in _COLLECTIVE_KEYS if key[0] in used)
    return _stacked("collectives-picture", "Collectives per rank", bars, limit, keys)


def _collectives(rank: MeasuredRank, phase: str) -> list[Row]:
    rows = []
    for c in rank.collectives:
        if (c.phase or "") != phase:
            continue
        where = f"{phase or 'outside phases'}, rank {rank.rank}"
        if c.transfer_ms is None or c.wait_ms is None:
            pieces = [("b-floor", c.duration_ms, f"{where}: {c.duration_ms:.3f} ms")]
            figure = f"{c.duration_ms:.2f} ms"
        else:
            pieces = [
                ("b-measured", c.transfer_ms, f"{where}: transfer {c.transfer_ms:.3f} ms"),
                ("b-over", c.wait_ms, f"{where}: wait {c.wait_ms:.3f} ms"),
            ]
            figure = f"{c.transfer_ms:.2f} + {c.wait_ms:.2f} ms wait"
        rows.append(Row(where, figure, pieces))
    return rows


def _stacked(
    id_: str, title: str, bars: Sequence[Row], limit: float, keys: tuple[tuple[str, str], ...]
) -> Drawing:
    bottom = _ROW * len(bars)
    return Drawing(
        id=id_,
        title=title,
        description="; ".join(
            f"{row.name}: {row.figure} ({', '.join(t for _, _, t in row.pieces)})" for row in bars
        ),
        height=bottom + 20,
        shapes=join([axis(limit, 0, bottom, "ms"), *_rows(bars, limit)]),
        keys=keys,
    )
