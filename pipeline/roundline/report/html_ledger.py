"""The ledger as bars: floor, expected and measured of every term on one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roundline.report.html_markup import Child, Markup, element, join
from roundline.report.html_tables import Column, Table
from roundline.report.ledger import COLUMNS, PART_MARK, ledger_rows
from roundline.report.svg import Drawing, axis, bar, label

if TYPE_CHECKING:
    from roundline.reconcile.ledger import Ledger

_ROW: Final = 46.0
_MEANINGS: Final = {
    "GB": "bytes that must be read, in 10⁹ bytes",
    "floor ms": "bytes divided by the datasheet bandwidth; nothing runs faster",
    "expected ms": "what good software reaches",
    "measured ms": "mean over the steady rounds",
    "of peak": "floor divided by measured",
    "residual ms": "measured minus expected",
}
_KEYS: Final = (
    ("b-floor", "floor"),
    ("b-expected", "expected"),
    ("b-measured", "measured"),
    ("b-over", "beyond expected"),
)


def ledger_drawing(ledger: Ledger) -> Drawing:
    """One group of three bars per term, the whole round first; terms that are zero are left out."""
    totals = ledger.totals
    lines: list[tuple[str, float | None, float | None, float]] = [
        ("round", totals.floor_ms, totals.expected_ms, totals.measured_ms)
    ]
    lines += [
        (line.term, line.floor_ms, line.expected_ms, line.measured_ms)
        for line in ledger.lines
        if line.measured_ms or line.expected_ms
    ]
    limit = max(max(measured, expected or 0.0) for _, _, expected, measured in lines) or 1.0
    rows = [_term(_ROW * i, limit, *line) for i, line in enumerate(lines)]
    bottom = _ROW * len(lines)
    return Drawing(
        id="ledger-picture",
        title="Predicted against measured, per term",
        description="; ".join(_words(*line) for line in lines),
        height=bottom + 20,
        shapes=join([axis(limit, 0, bottom, "ms"), *rows]),
        keys=_KEYS,
    )


def _term(
    top: float,
    limit: float,
    term: str,
    floor: float | None,
    expected: float | None,
    measured: float,
) -> Markup:
    within = min(measured, expected or 0.0)
    over = measured - within
    shapes: list[Child] = [
        label(0, top + 13, term, class_="name"),
        label(1, top + 13, *_figures(expected, measured), text_anchor="end"),
        bar(
            0, (floor or 0.0) / limit, top + 19, 5, "b-floor",
            f"{term}: floor {floor or 0:.3f} ms",
        ),
        bar(
            0, (expected or 0.0) / limit, top + 25, 5, "b-expected",
            f"{term}: expected {expected or 0:.3f} ms",
        ),
        bar(0, within / limit, top + 31, 8, "b-measured", f"{term}: measured {measured:.3f} ms"),
        bar(
            within / limit, over / limit, top + 31, 8, "b-over",
            f"{term}: {over:.3f} ms beyond expected",
        ) if over > 0 else None,
    ]  # fmt: skip
    return join(shapes)


def _figures(expected: float | None, measured: float) -> tuple[Child, ...]:
    difference = measured - (expected or 0.0)
    return (element("tspan", f"{measured:.2f} ms", class_="name"), f" {difference:+.2f}")


def _words(term: str, floor: float | None, expected: float | None, measured: float) -> str:
    predicted = "not predicted" if expected is None else f"expected {expected:.2f} ms"
    floor_text = "" if floor is None else f", floor {floor:.2f} ms"
    return f"{term}: measured {measured:.2f} ms, {predicted}{floor_text}"


def ledger_table(ledger: Ledger) -> Table:
    """The ledger with its parts; parts stay with their term when it is sorted."""
    *lines, total = ledger_rows(ledger)
    groups: list[list[tuple[str | None, ...]]] = []
    for row in lines:
        if (row[0] or "").startswith(PART_MARK):
            groups[-1].append(row)
        else:
            groups.append([row])
    return Table(
        id=f"ledger-{ledger.rank}",
        caption=f"Ledger of rank {ledger.rank}: one row per term and its parts, means a round",
        columns=[
            Column(title, numeric=i > 0, meaning=_MEANINGS.get(title))
            for i, title in enumerate(COLUMNS)
        ],
        groups=groups,
        total=total,
    )
