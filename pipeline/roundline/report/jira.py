"""The reconciliation as Jira wiki markup: finding first, ledger, evidence in a fold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from roundline.report.evidence import commands, queries, read_rows, sentence, setting
from roundline.report.ledger import COLUMNS, ledger_rows
from roundline.report.tabular import shorten, visible

if TYPE_CHECKING:
    from roundline.reconcile.reconciliation import Reconciliation

_CELL_LIMIT: Final = 300
_ESCAPES: Final = str.maketrans(
    {c: f"\\{c}" for c in "|{}[]*_^~+?!@#-"}
    | {"\\": "&#92;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
)
_MOODS: Final = {"reconciled": "(/)", "unexplained": "(!)", "insufficient evidence": "(?)"}


def render_jira(r: Reconciliation) -> str:
    """Wiki markup for a ticket; equal input gives equal bytes."""
    wall = r.slowest.wall_ms
    return "\n".join(
        [
            f"h2. {_MOODS[r.verdict.status]} {r.verdict.status.capitalize()}: {wall.mean:.2f} ms"
            " a round",
            f"{escape_jira(sentence(r.verdict.text))}.",
            "",
            f"{escape_jira(setting(r))}. Rank {r.slowest.rank}, the slowest of {len(r.ranks)};"
            f" {r.slowest.rounds} steady rounds of {r.rounds.count}, by"
            f" {escape_jira(r.rounds.evidence or '')}; median {wall.median:.2f} ms,"
            f" p10 {wall.p10:.2f}, p90 {wall.p90:.2f}.",
            "",
            "h3. Findings",
            *[f"# {escape_jira(sentence(finding.text))}" for finding in r.findings],
            "",
            "h3. Ledger",
            _table(COLUMNS, ledger_rows(r.ledger)),
            "",
            "h3. Residual by cause",
            _table(("cause", "ms a round"), [(c.cause, f"{c.ms:+.3f}") for c in r.causes]),
            "",
            *_throughput(r),
            "{expand:title=Evidence}",
            *_evidence(r),
            "{expand}",
            "",
        ]
    )


def escape_jira(text: str) -> str:
    """Text that Jira shows as it is: no column ends, no macro, link, image, mention or emphasis.

    A backslash hides the meaning of a character. The one sign that it cannot hide is another
    backslash (two of them break the line), so that one is written as an entity.
    """
    escaped = visible(text).translate(_ESCAPES)
    escaped = re.sub(r"(?<=\w)\\([\-_])(?=\w)", r"\1", escaped)  # inside words they do nothing
    escaped = re.sub(r"(?<=\s)\\([\-+])(?=\s)", r"\1", escaped)  # alone neither
    escaped = re.sub(r"^(h[1-6]|bq)\.", r"\1&#46;", escaped)
    escaped = re.sub(r"([:;])(?=[)(DPp|])|\((?=[/x!?yni*+\-]\)|on\)|off\))", _entity, escaped)
    return escaped.replace("://", ":\u200b//")


def _entity(match: re.Match[str]) -> str:
    return f"&#{ord(match.group(0))};"


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    heading = "||" + "||".join(map(escape_jira, columns)) + "||"
    lines = ["|" + "|".join(map(_cell, row)) + "|" for row in rows]
    return "\n".join([heading, *lines])


def _cell(value: object) -> str:
    """An empty cell holds a space: without it Jira reads a heading."""
    text = "" if value is None else str(value)
    return (
        text
        if re.fullmatch(r"[+-]?[\d.]+( %)?", text)
        else escape_jira(shorten(text, _CELL_LIMIT)) or " "
    )


def _throughput(r: Reconciliation) -> list[str]:
    a, t = r.acceptance, r.throughput
    if a is None:
        return []
    rates = [
        ("model", t.predicted_tokens_per_s),
        ("capture", t.measured_tokens_per_s),
        ("log", t.log_tokens_per_s),
    ]
    return [
        f"h3. Tokens per second at accept length {a.accept_len:.2f} of {a.max_len}"
        f" ({escape_jira(a.source)})",
        _table(
            ("source", "tok/s"), [(name, f"{rate:.2f}") for name, rate in rates if rate is not None]
        ),
        "",
    ]


def _evidence(r: Reconciliation) -> list[str]:
    sources = [(s.name, s.kind, s.bytes, s.sha256) for s in r.manifest.sources]
    return [
        "h4. Weight matrices",
        _table(("phase", "matrix", "reads", "MB", "µs", "GB/s", "of peak"), read_rows(r.slowest)),
        "h4. Assumptions of the model",
        *[f"* {escape_jira(sentence)}" for sentence in r.floor.assumptions],
        "h4. Quality of the capture",
        _table(
            ("check", "rank", "status", "detail"),
            [(q.check, q.rank, q.status, q.detail) for q in r.quality],
        ),
        "h4. Sources",
        _table(("file", "kind", "bytes", "SHA-256"), sources),
        *_code("Commands, to be run in the folder of the sources", "bash", commands(r)),
        *_code("Queries behind the findings", "sql", queries(r)),
    ]


def _code(title: str, language: str, lines: Sequence[str]) -> list[str]:
    """A code block; a brace pair that would end it early is set apart."""
    if not lines:
        return []
    safe = [visible(line).replace("{code", "{ code") for line in lines]
    return [f"h4. {title}", f"{{code:{language}}}", *safe, "{code}"]
