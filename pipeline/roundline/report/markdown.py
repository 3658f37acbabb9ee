"""The reconciliation for a ticket: finding first, ledger, evidence in a fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roundline.report.evidence import commands, queries, read_rows, sentence, setting
from roundline.report.ledger import COLUMNS, ledger_rows
from roundline.report.tabular import escape_markdown, render, visible

if TYPE_CHECKING:
    from roundline.reconcile.reconciliation import Reconciliation


def render_markdown(r: Reconciliation) -> str:
    """GitHub-flavoured Markdown; equal input gives equal bytes."""
    wall = r.slowest.wall_ms
    text = escape_markdown
    return "\n".join(
        [
            f"# {r.verdict.status.capitalize()}: {wall.mean:.2f} ms a round",
            "",
            f"{text(sentence(r.verdict.text))}.",
            "",
            f"{text(visible(setting(r)))}. Rank {r.slowest.rank}, the slowest of {len(r.ranks)};"
            f" {r.slowest.rounds} steady rounds of {r.rounds.count}, by {r.rounds.evidence};"
            f" median {wall.median:.2f} ms, p10 {wall.p10:.2f}, p90 {wall.p90:.2f}.",
            "",
            "## Findings",
            "",
            *[f"{n}. {text(sentence(f.text))}" for n, f in enumerate(r.findings, 1)],
            "",
            "## Ledger",
            "",
            render(COLUMNS, ledger_rows(r.ledger), "markdown"),
            "## Residual by cause",
            "",
            render(
                ("cause", "ms a round"), [(c.cause, f"{c.ms:+.3f}") for c in r.causes], "markdown"
            ),
            *_throughput(r),
            "<details><summary>Evidence</summary>",
            "",
            *_evidence(r),
            "</details>",
            "",
        ]
    )


def _throughput(r: Reconciliation) -> list[str]:
    a, t = r.acceptance, r.throughput
    if a is None:
        return []
    rows = [
        ("model", t.predicted_tokens_per_s),
        ("capture", t.measured_tokens_per_s),
        ("log", t.log_tokens_per_s),
    ]
    cells = [(source, f"{rate:.2f}") for source, rate in rows if rate is not None]
    return [
        f"## Tokens per second at accept length {a.accept_len:.2f} of {a.max_len} ({a.source})",
        "",
        render(("source", "tok/s"), cells, "markdown"),
    ]


def _evidence(r: Reconciliation) -> list[str]:
    return [
        "Weight matrices",
        "",
        render(
            ("phase", "matrix", "reads", "MB", "µs", "GB/s", "of peak"),
            read_rows(r.slowest),
            "markdown",
        ),
        "Assumptions of the model",
        "",
        *[f"- {escape_markdown(sentence)}" for sentence in r.floor.assumptions],
        "",
        "Quality of the capture",
        "",
        render(
            ("check", "rank", "status", "detail"),
            [(q.check, q.rank, q.status, q.detail) for q in r.quality],
            "markdown",
        ),
        "Queries behind the findings",
        "",
        "```sql",
        *queries(r),
        "```",
        "",
        "Sources",
        "",
        render(
            ("file", "kind", "bytes", "SHA-256"),
            [(s.name, s.kind, s.bytes, s.sha256) for s in r.manifest.sources],
            "markdown",
        ),
        *_commands(r),
    ]


def _commands(r: Reconciliation) -> list[str]:
    lines = commands(r)
    if not lines:
        return []
    return ["In the folder of the sources:", "", "```bash", *map(visible, lines), "```", ""]
