"""The sections of the report: each a heading, a picture and the tables behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from roundline.report.evidence import sentence
from roundline.report.html_bars import collectives_drawing, idle_drawing, matrices_drawing
from roundline.report.html_evidence import collectives_table, idle_table, kernels_table, reads_table
from roundline.report.html_ledger import ledger_drawing, ledger_table
from roundline.report.html_markup import Child, Markup, element, join, name
from roundline.report.html_provenance import provenance, quality
from roundline.report.html_rounds import outlier_table, spread_drawing, spread_table
from roundline.report.html_tables import Column, Table, render_table, rows
from roundline.report.html_timeline import timeline_drawing, timeline_table
from roundline.report.svg import Drawing, figure_svg

if TYPE_CHECKING:
    from roundline.reconcile.measured import MeasuredRank
    from roundline.reconcile.reconciliation import Reconciliation


_DETAILED: Final = 8  # ranks with tables of their own
_READING: Final = (
    "Rounds from left to right in order of time: the dashed line is the median, the band reaches"
    " from p10 to p90, rings mark outliers, grey rounds are left out of the means and lie at the"
    " edge where they do not fit the scale. At the right, how many rounds took how long."
)


def sections(r: Reconciliation) -> Iterator[tuple[str, str, Markup]]:
    """(anchor, heading, content) of every section, the most telling first."""
    yield "findings", "Findings", _findings(r)
    yield "predicted", "Predicted against measured", _ledger(r)
    yield "timeline", "The round as a timeline", _timeline(r)
    yield "rounds", "All rounds", _rounds(r)
    yield "matrices", "Weight matrices", _matrices(r)
    yield "idle", "Idle time", _idle(r)
    if any(rank.collectives for rank in r.ranks):
        yield "collectives", "Collectives", _collectives(r)
    if r.acceptance is not None:
        yield "throughput", "Tokens per second", _throughput(r)
    yield "kernels", "Kernels", render_table(kernels_table(r))
    yield "quality", "Quality of the capture", quality(r)
    yield "provenance", "Provenance and how to reproduce", provenance(r)


def figure(drawing: Drawing, caption: str | None = None) -> Markup:
    """A picture with its legend and caption."""
    keys = [element("li", _swatch(class_), element("span", text)) for class_, text in drawing.keys]
    return element(
        "figure",
        element("ul", *keys, class_="legend") if keys else None,
        figure_svg(drawing),
        element("figcaption", caption) if caption else None,
    )


def _swatch(class_: str) -> Markup:
    square = element("rect", width="12", height="12", class_=class_)
    return element("svg", square, width="12", height="12", aria_hidden="true")


def note(*children: Child) -> Markup:
    """A paragraph."""
    return element("p", *children)


def _per_rank(
    r: Reconciliation, what: str, table_of: Callable[[MeasuredRank], Table]
) -> Iterator[Markup]:
    """The slowest rank's table, those of the next slower ones folded."""
    yield render_table(table_of(r.slowest))
    others = r.ranks[1:_DETAILED]
    if others:
        left_out = len(r.ranks) - 1 - len(others)
        more = f" (the {len(others)} next slower; {left_out} left out)" if left_out else ""
        summary = element("summary", f"{what} of the other ranks{more}")
        yield element("details", summary, *[render_table(table_of(rank)) for rank in others])


def _findings(r: Reconciliation) -> Markup:
    if not r.findings:
        return note("Nothing stands out.")
    return element(
        "ol", *[element("li", name(sentence(f.text), 500)) for f in r.findings], class_="findings"
    )


def _ledger(r: Reconciliation) -> Markup:
    causes = Table(
        id="causes",
        caption="Residual by cause: one row per cause, ms a round",
        columns=[Column("cause"), Column("ms", numeric=True)],
        groups=rows([(c.cause, f"{c.ms:+.3f}") for c in r.causes]),
        total=("residual", f"{r.ledger.totals.residual_ms:+.3f}"),
    )
    caption = (
        f"Rank {r.slowest.rank}, means over {r.slowest.rounds} steady rounds. The figure at the"
        " right is measured, and measured minus expected."
    )
    ledgers = {ledger.rank: ledger for ledger in r.ledgers}
    return join([
        figure(ledger_drawing(r.ledger), caption),
        *_per_rank(r, "Ledgers", lambda rank: ledger_table(ledgers[rank.rank])),
        render_table(causes),
    ])  # fmt: skip


def _timeline(r: Reconciliation) -> Markup:
    timelines = r.pictures.timelines
    cells = [t.cell_ns for t in timelines if t.cell_ns is not None]
    coarse = (
        f" Drawn in cells of {max(cells) / 1e3:.1f} µs, in which the longest is shown; the table"
        " is exact." if cells else ""
    )  # fmt: skip
    caption = (
        "Per rank: phases, categories and idle time by cause, of the steady round nearest to the"
        f" median. Every rank starts at its own anchor. The legend gives rank {timelines[0].rank}."
        + coarse
    )
    table = element(
        "details",
        element("summary", "The drawn round in numbers"),
        render_table(timeline_table(timelines)),
    )
    return join([figure(timeline_drawing(timelines), caption), table])


def _rounds(r: Reconciliation) -> Markup:
    spreads = r.pictures.spreads
    pictures = [
        figure(spread_drawing(spread, rank.wall_ms))
        for spread, rank in zip(spreads, r.ranks, strict=True)
    ]
    outliers = outlier_table(spreads)
    return join([
        note(_counts(r)), note(_READING), *pictures, render_table(spread_table(r.ranks, spreads)),
        render_table(outliers) if outliers else None,
    ])  # fmt: skip


def _counts(r: Reconciliation) -> str:
    excluded = ", ".join(f"{n} {why}" for why, n in r.rounds.excluded.items())
    return (
        f"{r.rounds.steady} of {r.rounds.count} rounds are steady, found by {r.rounds.evidence}"
        + (f"; left out: {excluded}." if excluded else ".")
    )


def _matrices(r: Reconciliation) -> Markup:
    peak = float(r.floor.gpu.hbm_gbps)
    drawing = matrices_drawing(r.slowest.matrices, peak, peak * float(r.floor.efficiency.gemm))
    if not any(rank.matrices for rank in r.ranks):
        return note("No multiplication could be given its weight matrix.")
    caption = f"Rank {r.slowest.rank}; the matrices that take most of the round first."
    return join([
        figure(drawing, caption)
        if drawing
        else note("Counts do not fit the model: reads have no bytes."),
        *_per_rank(r, "Weight reads", reads_table),
    ])  # fmt: skip


def _idle(r: Reconciliation) -> Markup:
    drawing = idle_drawing(r.ranks)
    withheld = [str(rank.rank) for rank in r.ranks if not rank.idle_is_trustworthy]
    caution = f"Too much of the capture is missing to trust gaps: rank {', '.join(withheld)}."
    return join([
        note(caution) if withheld else None,
        figure(drawing, "Mean idle time a round, by cause.") if drawing else None,
        *_per_rank(r, "Idle time", idle_table),
    ])  # fmt: skip


def _collectives(r: Reconciliation) -> Markup:
    drawing = collectives_drawing(r.ranks)
    caption = "Mean a round. Transfer is the shortest duration among the ranks, wait the rest."
    return join([
        figure(drawing, caption) if drawing else None, render_table(collectives_table(r)),
    ])  # fmt: skip


def _throughput(r: Reconciliation) -> Markup:
    a, t = r.acceptance, r.throughput
    assert a is not None
    rates = [
        ("model", t.predicted_tokens_per_s),
        ("capture", t.measured_tokens_per_s),
        ("log", t.log_tokens_per_s),
    ]
    table = Table(
        id="rates",
        caption="Tokens per second: one row per source",
        columns=[Column("source"), Column("tok/s", numeric=True)],
        groups=rows([(source, f"{rate:.2f}") for source, rate in rates if rate is not None]),
    )
    return join([
        note(f"At accept length {a.accept_len:.2f} of {a.max_len}, from {a.source}."
             " A match of these rates reconciles nothing by itself."),
        render_table(table),
    ])  # fmt: skip
