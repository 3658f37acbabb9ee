"""Tables that sort and copy: the script finds them by class and needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roundline.report.html_markup import NAME_LIMIT, Child, Markup, element, join
from roundline.report.tabular import shorten


@dataclass(frozen=True)
class Column:
    """A heading; `numeric` columns align right and sort by value. `meaning` is its tooltip."""

    title: str
    numeric: bool = False
    meaning: str | None = None


Cells = Sequence[Child]


@dataclass(frozen=True)
class Table:
    """A table with groups of rows that stay together when it is sorted.

    Attributes:
        id: anchor, and what `#sort=ID:COLUMN:asc` names.
        caption: what one row is.
        columns: headings.
        groups: rows; the first row of a group decides where it goes.
        total: a last row that is not sorted.
    """

    id: str
    caption: str
    columns: Sequence[Column]
    groups: Sequence[Sequence[Cells]]
    total: Cells | None = None


def rows(cells: Sequence[Cells]) -> list[list[Cells]]:
    """Rows that sort one by one."""
    return [[row] for row in cells]


def render_table(table: Table) -> Markup:
    """The table in a region that scrolls sideways where it does not fit."""
    grouped = any(len(group) > 1 for group in table.groups)
    bodies = [join(_row(table, row) for row in group) for group in table.groups]
    caption_id = f"{table.id}-caption"
    content = element(
        "table",
        element("caption", element("span", table.caption), id=caption_id),
        element("thead", element("tr", *map(_heading, table.columns))),
        *([element("tbody", body) for body in bodies] if grouped else [element("tbody", *bodies)]),
        element("tfoot", _row(table, table.total)) if table.total else None,
        id=table.id,
        class_="sortable",
    )
    return element(
        "div", content, class_="scroll", role="region", tabindex="0", aria_labelledby=caption_id
    )


def _heading(column: Column) -> Markup:
    return element(
        "th",
        column.title,
        scope="col",
        title=column.meaning,
        class_="n" if column.numeric else None,
    )


def _cell(cell: Child) -> Child:
    return cell if cell is None or isinstance(cell, Markup) else shorten(cell, NAME_LIMIT)


def _row(table: Table, cells: Cells) -> Markup:
    first, *others = cells
    return element(
        "tr",
        element("th", _cell(first), scope="row", class_="n" if table.columns[0].numeric else None),
        *[
            element("td", _cell(cell), class_="n" if column.numeric else None)
            for cell, column in zip(others, table.columns[1:], strict=True)
        ],
    )
