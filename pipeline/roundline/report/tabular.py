"""Tables in four formats: aligned text, Markdown, CSV, JSON.

Cells come from captures of strangers. Text formats show control characters as escapes, so that
a kernel name can neither move the cursor nor break a row.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

Row = Sequence[object]

_CELL_LIMIT: Final = 120


def render(columns: Sequence[str], rows: Sequence[Row], format_: str) -> str:
    """`rows` under `columns` as `table`, `markdown`, `csv` or `json`; ends with a newline."""
    return {"table": _text, "markdown": _markdown, "csv": _csv, "json": _json}[format_](
        columns, rows
    )


def visible(text: str) -> str:
    """`text` with control and direction characters shown as escapes."""
    return "".join(c if _is_plain(c) else c.encode("unicode_escape").decode() for c in text)


def _is_plain(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def shorten(text: str, limit: int) -> str:
    """`text` cut to `limit` characters, with a mark where something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return visible(str(value))


def _text(columns: Sequence[str], rows: Sequence[Row]) -> str:
    cells = [[shorten(_cell(value), _CELL_LIMIT) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    right = _numeric(columns, rows)

    def line(parts: Sequence[str]) -> str:
        padded = (
            part.rjust(width) if is_right else part.ljust(width)
            for part, width, is_right in zip(parts, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([line(columns), rule, *map(line, cells)]) + "\n"


def _markdown(columns: Sequence[str], rows: Sequence[Row]) -> str:
    right = _numeric(columns, rows)
    marks = ["---:" if is_right else "---" for is_right in right]
    cells = [[escape_markdown(_cell(value)) for value in row] for row in rows]
    lines = [list(map(escape_markdown, columns)), marks, *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is: no column ends, no HTML, no emphasis, no links."""
    escaped = re.sub(r"([\\|`*\[\]<>~])", r"\\\1", text)
    # an underscore inside a word is harmless in GitHub's dialect, and names are full of them
    escaped = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", escaped)
    return escaped.replace("&", "&amp;").replace("://", ":\u200b//")


def _csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if value is None else value for value in row] for row in rows])
    return file.getvalue()


def _json(columns: Sequence[str], rows: Sequence[Row]) -> str:
    records = [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]
    return json.dumps(records, indent=2, ensure_ascii=False) + "\n"


def _plain(value: object) -> Any:
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _numeric(columns: Sequence[str], rows: Sequence[Row]) -> list[bool]:
    """Which columns hold numbers (or numbers with a unit) only."""
    return [all(_is_numeric(row[i]) for row in rows) for i in range(len(columns))]


def _is_numeric(value: object) -> bool:
    if value is None or isinstance(value, int | float):
        return True
    text = str(value).removesuffix(" %").removesuffix("%").strip()
    return text in ("", "–") or text.replace(".", "", 1).replace("-", "", 1).isdigit()
