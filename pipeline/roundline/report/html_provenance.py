"""What the report rests on, and how to make it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roundline.report.evidence import commands, queries, setting
from roundline.report.html_markup import Child, Markup, element, join, name
from roundline.report.html_tables import Column, Table, render_table, rows

if TYPE_CHECKING:
    from roundline.reconcile.reconciliation import Reconciliation


def quality(r: Reconciliation) -> Markup:
    """Checks of the capture, what readers noticed, what was not captured."""
    checks = Table(
        id="checks",
        caption="Checks: one row per check and rank, the worst first",
        columns=[Column("check"), Column("rank", numeric=True), Column("status"), Column("detail")],
        groups=rows([(q.check, str(q.rank), _status(q.status), q.detail) for q in r.quality]),
    )
    notes = Table(
        id="notes",
        caption="What the readers noticed: one row per kind",
        columns=[
            Column("code"),
            Column("severity"),
            Column("count", numeric=True),
            Column("detail"),
        ],
        groups=rows(
            [
                (d.code, d.severity, str(d.count), name(d.detail))
                for d in r.manifest.diagnostics
            ]
        ),
    )  # fmt: skip
    lacking = [f"{key} ({state})" for key, state in r.manifest.capabilities.items()
               if state != "present"]  # fmt: skip
    return join([
        render_table(checks),
        render_table(notes) if r.manifest.diagnostics else None,
        element("p", f"Not or only partly captured: {', '.join(lacking)}.") if lacking else None,
    ])  # fmt: skip


def _status(status: str) -> Markup:
    return element("span", status, class_="good" if status == "ok" else "caution")


def provenance(r: Reconciliation) -> Markup:
    """Sources with their hashes, the model's parameters, commands and queries."""
    return join([_sources(r), _model(r), _reproduce(r), _queries(r)])


def _sources(r: Reconciliation) -> Markup:
    cells: list[tuple[Child, ...]] = [
        (
            name(s.name), s.kind, name(" ".join(filter(None, [s.producer, s.producer_version]))),
            str(s.bytes), element("code", s.sha256, class_="hash"),
        )
        for s in r.manifest.sources
    ]  # fmt: skip
    table = Table(
        id="sources",
        caption=f"Sources: one row per file, read by Roundline {r.manifest.tool_version}",
        columns=[
            Column("file"),
            Column("kind"),
            Column("producer"),
            Column("bytes", numeric=True),
            Column("SHA-256"),
        ],
        groups=rows(cells),
    )
    return render_table(table)


def _model(r: Reconciliation) -> Markup:
    assumptions = [element("li", text) for text in r.floor.assumptions]
    return join([
        element("h3", "Assumptions of the model"),
        element("ul", element("li", setting(r)), *assumptions),
    ])  # fmt: skip


def _reproduce(r: Reconciliation) -> Markup | None:
    if not r.command:
        return None
    return join([
        element("h3", "Commands"),
        element("p", "In the folder of the sources:"),
        _code("\n".join(commands(r)), "Commands that make this report again"),
    ])  # fmt: skip


def _queries(r: Reconciliation) -> Markup:
    content = _code("\n".join(queries(r)), "Queries behind the findings")
    return element(
        "details",
        element("summary", "Queries behind the findings, for ", element("code", "roundline query")),
        content,
    )


def _code(text: str, label: str) -> Markup:
    lines = [element("code", line) for line in text.split("\n")]
    return element(
        "pre", join(lines, "\n"), tabindex="0", role="region", aria_label=label, class_="copyable"
    )
