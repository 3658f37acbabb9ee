"""The reconciliation for a ticket: finding first, ledger, evidence in a fold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roundline.report.ledger import COLUMNS, ledger_rows
from roundline.report.tabular import escape_markdown, render, visible

if TYPE_CHECKING:
    from roundline.reconcile.reconciliation import Reconciliation


def render_markdown(r: Reconciliation) -> str:
    """GitHub-flavoured Markdown; equal input gives equal bytes."""
    floor, wall = r.floor, r.slowest.wall_ms
    text = escape_markdown
    return "\n".join(
        [
            f"# {r.verdict.status.capitalize()}: {wall.mean:.2f} ms a round",
            "",
            f"{text(visible(r.verdict.text))}.",
            "",
            f"{text(floor.model.name)} on {floor.workload.parallel.tp} ×"
            f" {text(floor.gpu.device_names[0])}, {text(floor.switches.engine)},"
            f" {floor.workload.draft_steps} draft steps, batch {floor.workload.batch}, context"
            f" {floor.workload.context}. Rank {r.slowest.rank}, the slowest of {len(r.ranks)};"
            f" {r.slowest.rounds} steady rounds of {r.rounds.count}, by {r.rounds.evidence};"
            f" median {wall.median:.2f} ms, p10 {wall.p10:.2f}, p90 {wall.p90:.2f}.",
            "",
            "## Findings",
            "",
            *[f"{n}. {text(visible(f.text))}" for n, f in enumerate(r.findings, 1)],
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
    reads = [
        (
            m.phase, m.matrix, f"{m.reads_per_round:g}",
            f"{m.bytes / 1e6:.1f}" if m.bytes else None, f"{m.mean_ms * 1e3:.1f}",
            f"{m.achieved_gbps:.0f}" if m.achieved_gbps else None,
            f"{100 * m.fraction_of_peak:.1f} %" if m.fraction_of_peak else None,
        )
        for m in r.slowest.matrices
    ]  # fmt: skip
    queries = [line for f in r.findings for line in (f"-- {visible(f.text)}", f"{f.evidence};")]
    return [
        "Weight matrices",
        "",
        render(("phase", "matrix", "reads", "MB", "µs", "GB/s", "of peak"), reads, "markdown"),
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
        *queries,
        "```",
        "",
    ]
