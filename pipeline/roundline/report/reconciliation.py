"""Renders a reconciliation in any format, by format name or by file suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from roundline.errors import UsageError
from roundline.report.html import render_html
from roundline.report.html_picture import render_svg
from roundline.report.jira import render_jira
from roundline.report.ledger import COLUMNS, ledger_rows, reconciliation_document
from roundline.report.markdown import render_markdown
from roundline.report.tabular import render
from roundline.report.terminal import render_terminal

if TYPE_CHECKING:
    from roundline.reconcile.reconciliation import Reconciliation

Renderer = Callable[["Reconciliation"], str]


def _csv(result: Reconciliation) -> str:
    return render(COLUMNS, ledger_rows(result.ledger), "csv")


RENDERERS: Final[dict[str, Renderer]] = {
    "table": render_terminal,
    "markdown": render_markdown,
    "json": reconciliation_document,
    "csv": _csv,
    "html": render_html,
    "jira": render_jira,
    "svg": render_svg,
}
SUFFIXES: Final = {
    ".html": "html", ".md": "markdown", ".jira": "jira", ".json": "json", ".csv": "csv",
    ".svg": "svg", ".txt": "table",
}  # fmt: skip


def render_reconciliation(result: Reconciliation, format_: str) -> str:
    """The reconciliation in one of `RENDERERS`."""
    return RENDERERS[format_](result)


def format_of(path: Path) -> str:
    """The format that a file's suffix asks for.

    Raises:
        UsageError: no format has that suffix.
    """
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path.name}: a report ends in {', '.join(SUFFIXES)}")
    return SUFFIXES[path.suffix]
