"""Renders `roundline what-if`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from roundline.report.documents import document
from roundline.report.ledger import PART_MARK, number, signed
from roundline.report.tabular import render, visible

if TYPE_CHECKING:
    from roundline.reconcile.what_if import Rate, WhatIf, WhatIfLine, WhatIfPart

COLUMNS = ("term", "measured ms", "after ms", "at best ms", "change ms", "how")


def render_what_if(result: WhatIf, format_: str) -> str:
    """The what-if as a table, Markdown, CSV or a `roundline.what-if/1` document."""
    if format_ == "json":
        return _document(result)
    rows = [*_rows(result), _row("total", result, "")]
    table = render(COLUMNS, rows, format_)
    if format_ == "csv":
        return table
    mark = "- " if format_ == "markdown" else "  "
    return "\n".join(
        [
            *[f"what if {visible(change)}" for change in result.changes or ("nothing changes",)],
            "",
            _headline(result),
            "",
            table,
            *_rates(result),
            "",
            *[mark + visible(text) for text in (*result.held, *result.assumptions)],
            "",
        ]
    )


def _headline(r: WhatIf) -> str:
    return (
        f"round {r.before_ms:.2f} ms -> {r.after_ms:.2f} ms at constant efficiency,"
        f" {r.at_best_ms:.2f} ms where the changed memory terms reach their floor;"
        " bounds, not promises"
    )


def _rows(result: WhatIf) -> Iterator[tuple[str | None, ...]]:
    for line in result.lines:
        yield _row(line.term, line, line.basis)
        if len(line.parts) > 1:
            yield from (_row(f"{PART_MARK}{p.part}", p, p.basis) for p in line.parts)


def _row(name: str, times: WhatIf | WhatIfLine | WhatIfPart, basis: str) -> tuple[str | None, ...]:
    return (
        visible(name),
        number(times.before_ms, 3),
        number(times.after_ms, 3),
        number(times.at_best_ms, 3),
        signed(times.after_ms - times.before_ms),
        basis,
    )


def _rates(r: WhatIf) -> Iterator[str]:
    if r.after.tokens_per_s is None:
        yield f"tokens per second: accept length {r.after.accept_basis} (--accept-len, or --log)"
        return
    if r.before.tokens_per_s is not None:
        yield f"before: {_rate(r.before)}"
    yield f"after: {_rate(r.after)}; at best {r.at_best.tokens_per_s or 0:.2f} tok/s"


def _rate(rate: Rate) -> str:
    return (
        f"{rate.tokens_per_s or 0:.2f} tok/s at accept length {rate.accept_len or 0:.2f}"
        f" ({rate.accept_basis})"
    )


def _document(r: WhatIf) -> str:
    return document(
        "what-if",
        rank=r.rank,
        changes=list(r.changes),
        terms=[
            {**_times(line), "term": line.term, "basis": line.basis,
             "parts": [asdict(part) for part in line.parts if part.part]}
            for line in r.lines
        ],
        totals={**_times(r), "floor_after_ms": r.floor_after_ms},
        throughput={"before": asdict(r.before), "after": asdict(r.after),
                    "at_best": asdict(r.at_best)},
        held=list(r.held),
        assumptions=list(r.assumptions),
    )  # fmt: skip


def _times(times: WhatIf | WhatIfLine) -> dict[str, Any]:
    return {
        "before_ms": times.before_ms, "after_ms": times.after_ms, "at_best_ms": times.at_best_ms,
        "change_ms": times.after_ms - times.before_ms,
    }  # fmt: skip
