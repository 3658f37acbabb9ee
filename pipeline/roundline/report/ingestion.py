"""Renders `roundline ingest`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from roundline.report.documents import document
from roundline.report.tabular import render

if TYPE_CHECKING:
    from roundline.readers.ingest import IngestResult


def render_ingestion(result: IngestResult, format_: str) -> str:
    """What was read, as a table, Markdown, CSV or a `roundline.ingest/1` document."""
    if format_ == "json":
        return document("ingest", **asdict(result))
    rows = [(name, count) for name, count in result.tables.items() if count]
    table = render(("table", "rows"), rows, format_)
    if format_ == "csv":
        return table
    missing = [name for name, state in result.capabilities.items() if state == "absent"]
    lines = [
        f"{result.store}: {len(result.sources)} sources, ranks {', '.join(map(str, result.ranks))}",
        f"{result.kernels:,} kernels, {result.kernel_ns / 1e6:,.3f} ms of kernel time",
        "",
        table,
    ]
    if missing:
        lines.append(f"not captured: {', '.join(missing)}")
    if result.truncated:
        lines.append("TRUNCATED: the writer of a source died before its end")
    return "\n".join(lines) + "\n"
