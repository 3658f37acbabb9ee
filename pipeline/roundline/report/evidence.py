"""Rows and lines of evidence that several renderers show."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from roundline.report.ledger import number, share
from roundline.report.tabular import shorten, visible

if TYPE_CHECKING:
    from roundline.reconcile.measured import MeasuredRank
    from roundline.reconcile.reconciliation import Reconciliation


_SENTENCE_LIMIT: Final = 500


def setting(r: Reconciliation) -> str:
    """Model, GPU and workload in one line."""
    floor, workload = r.floor, r.floor.workload
    return (
        f"{floor.model.name} on {workload.parallel.tp} × {floor.gpu.device_names[0]}"
        f" ({float(floor.gpu.hbm_gbps):g} GB/s), {floor.switches.engine},"
        f" {workload.draft_steps} draft steps, batch {workload.batch}, context {workload.context}"
    )


def commands(r: Reconciliation) -> tuple[str, ...]:
    """Command lines that make this result again, to be run where the sources lie."""
    if not r.command:
        return ()
    arguments = shlex.join(r.command)
    return (f"roundline report {arguments} -o report.html", f"roundline reconcile {arguments}")


def sentence(text: str) -> str:
    """A sentence that may quote a name from the capture, in one line of bearable length."""
    return shorten(visible(text), _SENTENCE_LIMIT)


def queries(r: Reconciliation) -> tuple[str, ...]:
    """The SQL behind every finding, the finding as a comment above it."""
    return tuple(line for f in r.findings for line in (f"-- {sentence(f.text)}", f"{f.evidence};"))


def read_rows(rank: MeasuredRank) -> list[tuple[str | None, ...]]:
    """Weight reads of a rank: phase, matrix, reads a round, MB, µs, GB/s, share of the peak."""
    return [
        (
            m.phase, m.matrix, f"{m.reads_per_round:g}",
            number(m.bytes / 1e6 if m.bytes else None, 1), f"{m.mean_ms * 1e3:.1f}",
            number(m.achieved_gbps, 0), share(m.fraction_of_peak),
        )
        for m in rank.matrices
    ]  # fmt: skip
