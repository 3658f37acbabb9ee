"""The verdict: reconciled, unexplained, or insufficient evidence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from roundline.bandwidth.prediction import RoundFloor
from roundline.reconcile.findings import verify_wait_known
from roundline.reconcile.ledger import Totals
from roundline.reconcile.measured import MeasuredRank
from roundline.reconcile.residual import ResidualCause

Status = Literal["reconciled", "unexplained", "insufficient evidence"]
DEFAULT_TOLERANCE: Final = 0.10
_UNCLASSIFIED_LIMIT: Final = 0.05


@dataclass(frozen=True)
class Verdict:
    """The status and the sentence that says what it rests on."""

    status: Status
    text: str
    tolerance: float
    missing_evidence: tuple[str, ...]


def judge(
    measured: MeasuredRank,
    floor: RoundFloor,
    totals: Totals,
    causes: tuple[ResidualCause, ...],
    tolerance: float,
) -> Verdict:
    """Judge one rank's ledger. Tokens per second play no part in it."""
    missing = tuple(_missing(measured, floor))
    numbers = (
        f"a round takes {totals.measured_ms:.2f} ms, {totals.expected_ms:.2f} ms are expected"
        f" (floor {totals.floor_ms:.2f} ms): residual {totals.residual_ms:+.2f} ms,"
        f" {100 * totals.residual_fraction:+.1f} % of the round"
    )
    if missing:
        return Verdict(
            "insufficient evidence",
            f"{numbers}; not judged: {'; '.join(missing)}",
            tolerance,
            missing,
        )
    if abs(totals.residual_fraction) <= tolerance:
        return Verdict("reconciled", f"{numbers}, within {100 * tolerance:g} %", tolerance, ())
    biggest = ", ".join(f"{cause.cause} {cause.ms:.2f} ms" for cause in causes[:3])
    return Verdict("unexplained", f"{numbers}; biggest causes: {biggest}", tolerance, ())


def _missing(measured: MeasuredRank, floor: RoundFloor) -> Iterator[str]:
    if not measured.idle_is_trustworthy:
        yield "records were dropped, so gaps are no idle time"
    if measured.unclassified_share > _UNCLASSIFIED_LIMIT:
        yield f"{100 * measured.unclassified_share:.1f} % of the time has no class"
    if measured.draft_passes != floor.workload.draft_passes:
        yield (
            f"the capture has {measured.draft_passes} draft passes a round, the model"
            f" {floor.workload.draft_passes}"
        )
    if floor.workload.parallel.tp > 1 and not verify_wait_known(measured):
        yield "not every rank was captured, so waiting cannot be told from transfer"
    yield from _misfits(measured)


def _misfits(measured: MeasuredRank) -> Iterator[str]:
    """Matrices that ran another number of times than the model demands."""
    for read in measured.matrices:
        demanded = read.demanded_per_round
        if demanded is not None and read.reads_per_round != demanded:
            yield (
                f"{read.matrix} in {read.phase} is read {read.reads_per_round:g} times, the model"
                f" demands {demanded:g}"
            )
