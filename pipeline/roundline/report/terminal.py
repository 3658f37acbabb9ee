"""The reconciliation for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roundline.report.ledger import COLUMNS, ledger_rows
from roundline.report.tabular import render, visible

if TYPE_CHECKING:
    from roundline.reconcile.reconciliation import Reconciliation


def render_terminal(r: Reconciliation) -> str:
    """Verdict first, then the ledger of the slowest rank, causes and findings."""
    return "\n".join(
        [
            f"{r.verdict.status.upper()}: {visible(r.verdict.text)}",
            "",
            *_setting(r),
            "",
            render(COLUMNS, ledger_rows(r.ledger), "table"),
            "residual by cause, ms a round",
            *[f"  {cause.ms:+8.3f}  {cause.cause}" for cause in r.causes],
            "",
            *_throughput(r),
            "findings",
            *[f"  {number}. {visible(f.text)}" for number, f in enumerate(r.findings, 1)],
            "",
        ]
    )


def _setting(r: Reconciliation) -> list[str]:
    floor, wall = r.floor, r.slowest.wall_ms
    excluded = ", ".join(f"{n} {why}" for why, n in r.rounds.excluded.items())
    return [
        f"{floor.model.name} on {floor.workload.parallel.tp} x {floor.gpu.device_names[0]}"
        f" ({float(floor.gpu.hbm_gbps):g} GB/s), {floor.switches.engine},"
        f" {floor.workload.draft_steps} draft steps, batch {floor.workload.batch},"
        f" context {floor.workload.context}",
        f"rank {r.slowest.rank} (slowest of {len(r.ranks)}): {r.slowest.rounds} steady rounds of"
        f" {r.rounds.count} by {r.rounds.evidence}"
        + (f", left out: {excluded}" if excluded else ""),
        f"round time mean {wall.mean:.3f} ms, median {wall.median:.3f},"
        f" p10 {wall.p10:.3f}, p90 {wall.p90:.3f}",
    ]


def _throughput(r: Reconciliation) -> list[str]:
    if r.acceptance is None:
        return ["tokens per second: no acceptance given (--accept-len, or --log)", ""]
    a, t = r.acceptance, r.throughput
    rates = [
        f"{label} {rate:.2f} tok/s"
        for label, rate in (
            ("model", t.predicted_tokens_per_s),
            ("capture", t.measured_tokens_per_s),
            ("log", t.log_tokens_per_s),
        )
        if rate is not None
    ]
    return [
        f"at accept length {a.accept_len:.2f} of {a.max_len} ({a.source}): {', '.join(rates)}",
        "",
    ]
