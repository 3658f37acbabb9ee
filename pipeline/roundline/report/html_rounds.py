"""Round times in order and as a histogram, outliers marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from roundline.report.html_markup import Child, Markup, element, join, name, number
from roundline.report.html_tables import Column, Table, rows
from roundline.report.svg import Drawing, at, bar, label

if TYPE_CHECKING:
    from roundline.reconcile.measured import MeasuredRank, WallTime
    from roundline.reconcile.spread import RankSpread, RoundTime

_TOP, _HEIGHT = 24.0, 110.0
_PLOT: Final = 0.78  # width of the rounds in order; the histogram has the rest
_HISTOGRAM: Final = 0.82
_COLUMNS: Final = 240  # rounds beyond that share a column
_BINS: Final = 22

Scale = Callable[[float], float]


def spread_drawing(spread: RankSpread, wall: WallTime) -> Drawing:
    """One mark per round (or per column of rounds, from its shortest to its longest)."""
    steady = [r for r in spread.rounds if r.excluded_because is None]
    low, high = min(r.wall_ns for r in steady), max(r.wall_ns for r in steady)
    margin = max((high - low) // 12, 1000)
    y = _scale((low - margin) / 1e6, (high + margin) / 1e6)
    count = len(spread.rounds)
    shapes: list[Child] = [
        label(0, 13, f"rank {spread.rank}", class_="name"),
        bar(0, _PLOT, y(wall.p90), max(y(wall.p10) - y(wall.p90), 1), "band",
            f"p10 {wall.p10:.3f} ms to p90 {wall.p90:.3f} ms"),
        _level(y(wall.median), "median"),
        _marks([r for r in spread.rounds if r.excluded_because], count, y, "excluded"),
        _marks(steady, count, y, "steady"),
        *_outliers(spread, count, y),
        *_histogram([r.wall_ns / 1e6 for r in steady], (low - margin) / 1e6, (high + margin) / 1e6),
        label(1, 13, f"median {wall.median:.2f}, p10 {wall.p10:.2f}, p90 {wall.p90:.2f} ms",
              text_anchor="end"),
        label(0, _TOP + _HEIGHT + 14, f"{count} rounds in order", class_="axis"),
        label(1, _TOP + _HEIGHT + 14, f"{low / 1e6:.2f} to {high / 1e6:.2f} ms", class_="axis",
              text_anchor="end"),
    ]  # fmt: skip
    return Drawing(
        id=f"spread-picture-{spread.rank}",
        title=f"Round times of rank {spread.rank}",
        description=_words(spread, wall, len(steady)),
        height=_TOP + _HEIGHT + 20,
        shapes=join(shapes),
    )


def _scale(low: float, high: float) -> Scale:
    def y(ms: float) -> float:
        inside = min(max(ms, low), high)
        return _TOP + _HEIGHT * (1 - (inside - low) / (high - low))

    return y


def _level(y: float, class_: str) -> Markup:
    return element("line", x1="0", x2=at(_PLOT), y1=y, y2=y, class_=class_)


def _place(position: int, count: int) -> float:
    return (position + 0.5) / count


def _marks(rounds: Sequence[RoundTime], count: int, y: Scale, class_: str) -> Markup | None:
    """Vertical strokes with round ends, so that a single round is a dot."""
    if not rounds:
        return None
    columns: dict[int, list[int]] = {}
    per_column = -(-count // _COLUMNS)
    for r in rounds:
        columns.setdefault(r.round_id // per_column, []).append(r.wall_ns)
    width = -(-count // per_column)
    path = "".join(
        f"M{number(1000 * _place(column, width))} {number(y(max(walls) / 1e6))}"
        f"V{number(y(min(walls) / 1e6))}"
        for column, walls in sorted(columns.items())
    )
    bottom = _TOP + _HEIGHT + 4
    density = "dense" if per_column > 1 else "sparse"
    return element(
        "svg", element("path", d=Markup(path), class_=f"mark {class_} {density}"),
        x="0", y="0", width=at(_PLOT), height=bottom,
        viewbox=f"0 0 1000 {number(bottom)}", preserveaspectratio="none",
    )  # fmt: skip


def _outliers(spread: RankSpread, count: int, y: Scale) -> Iterable[Markup]:
    for o in spread.outliers:
        title = (
            f"round {o.round_id}: {o.wall_ms:.3f} ms, {o.above_median_ms:+.3f} from the median;"
            f" {o.term} {o.term_above_mean_ms:+.3f} from its mean"
        )
        x = _PLOT * _place(min(o.round_id, count - 1), count)
        yield element(
            "circle", element("title", title), cx=at(x), cy=y(o.wall_ms), r=5, class_="outlier"
        )


def _histogram(walls: Sequence[float], low: float, high: float) -> Iterable[Markup]:
    counts = [0] * _BINS
    for wall in walls:
        counts[min(int(_BINS * (wall - low) / (high - low)), _BINS - 1)] += 1
    step = _HEIGHT / _BINS
    for i, count in enumerate(counts):
        if count:
            frm, to = (low + (high - low) * (i + k) / _BINS for k in (0, 1))
            yield bar(
                _HISTOGRAM, (1 - _HISTOGRAM) * count / max(counts),
                _TOP + _HEIGHT - step * (i + 1), step - 1, "histogram",
                f"{count} rounds of {frm:.3f} to {to:.3f} ms",
            )  # fmt: skip


def _words(spread: RankSpread, wall: WallTime, steady: int) -> str:
    return (
        f"{steady} steady rounds of {len(spread.rounds)}: mean {wall.mean:.2f} ms, median"
        f" {wall.median:.2f}, p10 {wall.p10:.2f}, p90 {wall.p90:.2f}; {spread.outlier_count}"
        f" outliers outside {spread.low_fence_ms:.2f} to {spread.high_fence_ms:.2f} ms"
    )


def spread_table(ranks: Sequence[MeasuredRank], spreads: Sequence[RankSpread]) -> Table:
    """One row per rank."""
    titles = ("mean", "median", "p10", "p90", "low fence", "high fence")
    return Table(
        id="ranks",
        caption="Round times: one row per rank, ms over the steady rounds",
        columns=[
            Column("rank", numeric=True),
            Column("GPU"),
            Column("steady", numeric=True),
            *[Column(title, numeric=True) for title in titles],
            Column("outliers", numeric=True, meaning="steady rounds outside the fences"),
        ],
        groups=rows(
            [
                (str(m.rank), name(m.device_name or ""), str(m.rounds), *[f"{ms:.3f}" for ms in (
                    m.wall_ms.mean, m.wall_ms.median, m.wall_ms.p10, m.wall_ms.p90,
                    s.low_fence_ms, s.high_fence_ms)], str(s.outlier_count))
                for m, s in zip(ranks, spreads, strict=True)
            ]
        ),
    )  # fmt: skip


def outlier_table(spreads: Sequence[RankSpread]) -> Table | None:
    """One row per outlier; None when there is none."""
    cells = [
        (
            str(spread.rank), str(o.round_id), f"{o.wall_ms:.3f}", f"{o.above_median_ms:+.3f}",
            o.term, f"{o.term_above_mean_ms:+.3f}",
        )
        for spread in spreads
        for o in spread.outliers
    ]  # fmt: skip
    if not cells:
        return None
    return Table(
        id="outliers",
        caption="Outliers: one row per steady round outside the fences, with the term that"
        " differs most",
        columns=[
            Column("rank", numeric=True),
            Column("round", numeric=True),
            Column("ms", numeric=True),
            Column("from median", numeric=True),
            Column("term"),
            Column("term from its mean", numeric=True),
        ],
        groups=rows(cells),
    )
