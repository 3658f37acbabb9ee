"""The ledger: predicted against measured, term by term, for one rank.

Measured terms add up to the mean wall time of the steady rounds. A term that the model does not
predict (sampling, copies, idle time) has no floor and no expectation: all of it is residual.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from roundline.bandwidth.prediction import RoundFloor, Term
from roundline.reconcile.measured import CollectiveTime, MeasuredRank

TERMS: Final = (
    "weights", "attention", "gdn", "collective", "draft", "sampling", "elementwise", "copy",
    "unclassified", "other", "idle",
)  # fmt: skip

MEMORY_TERMS: Final = ("weights", "attention", "gdn", "draft")  # those that memory bandwidth rules


@dataclass(frozen=True)
class LedgerPart:
    """A share of a ledger line: a cause of idle time, transfer or wait, a part of the drafts."""

    part: str
    measured_ms: float
    floor_ms: float | None = None
    expected_ms: float | None = None


@dataclass(frozen=True)
class LedgerLine:
    """One term; None where the model says nothing. `fraction_of_peak` is floor / measured."""

    term: str
    bytes: int | None
    floor_ms: float | None
    expected_ms: float | None
    measured_ms: float
    achieved_gbps: float | None
    fraction_of_peak: float | None
    residual_ms: float
    parts: tuple[LedgerPart, ...] = ()


@dataclass(frozen=True)
class Totals:
    """Sums over the lines; the residual as a fraction is of the measured round."""

    floor_ms: float
    expected_ms: float
    measured_ms: float
    residual_ms: float
    residual_fraction: float


@dataclass(frozen=True)
class Ledger:
    """All lines of one rank, in the order of the terms, with their totals."""

    rank: int
    lines: tuple[LedgerLine, ...]
    totals: Totals

    def line(self, term: str) -> LedgerLine:
        """The line of a term."""
        return next(line for line in self.lines if line.term == term)


def build_ledger(measured: MeasuredRank, floor: RoundFloor) -> Ledger:
    """Set one rank's means against the prediction of one GPU."""
    predicted = {term.term: term for term in floor.terms}
    lines = tuple(
        _line(term, measured.term_ms(term), predicted.get(term), _parts(term, measured, floor))
        for term in TERMS
    )
    return Ledger(measured.rank, lines, _totals(lines))


def _line(
    term: str, measured_ms: float, predicted: Term | None, parts: tuple[LedgerPart, ...]
) -> LedgerLine:
    if predicted is None:
        return LedgerLine(term, None, None, None, measured_ms, None, None, measured_ms, parts)
    moves_bytes = bool(predicted.bytes) and term in MEMORY_TERMS and measured_ms > 0
    return LedgerLine(
        term=term,
        bytes=predicted.bytes,
        floor_ms=predicted.floor_ms,
        expected_ms=predicted.expected_ms,
        measured_ms=measured_ms,
        achieved_gbps=predicted.bytes / measured_ms / 1e6 if moves_bytes else None,
        fraction_of_peak=predicted.floor_ms / measured_ms if moves_bytes else None,
        residual_ms=measured_ms - predicted.expected_ms,
        parts=parts,
    )


def _parts(term: str, measured: MeasuredRank, floor: RoundFloor) -> tuple[LedgerPart, ...]:
    if term == "collective":
        return _collective_parts(measured)
    if term == "draft":
        return _draft_parts(measured, floor)
    if term == "idle":
        return tuple(LedgerPart(cause, ms) for cause, ms in idle_by_cause(measured))
    return ()


def idle_by_cause(measured: MeasuredRank) -> tuple[tuple[str, float], ...]:
    """Mean idle ms per cause, largest first."""
    causes: dict[str, float] = {}
    for source in measured.idle:
        causes[source.cause] = causes.get(source.cause, 0.0) + source.ms
    return tuple(sorted(causes.items(), key=lambda item: (-item[1], item[0])))


def verify_collectives(measured: MeasuredRank) -> CollectiveTime | None:
    """Collectives of the target pass; None when there are none."""
    return next((c for c in measured.collectives if c.phase == "verify"), None)


def _collective_parts(measured: MeasuredRank) -> tuple[LedgerPart, ...]:
    """Exclusive time split by the share of raw kernel time that was waiting."""
    times, exclusive = verify_collectives(measured), measured.term_ms("collective")
    if times is None or times.wait_ms is None or not times.duration_ms:
        return ()
    wait = exclusive * times.wait_ms / times.duration_ms
    return (LedgerPart("transfer", exclusive - wait), LedgerPart("wait", wait))


def _draft_parts(measured: MeasuredRank, floor: RoundFloor) -> tuple[LedgerPart, ...]:
    """GEMMs of the drafts are `weights` on the measured side, the lm_head included."""
    predicted: dict[str, list[Term]] = {}
    for draft_pass in floor.draft_passes:
        for part in draft_pass.parts:
            name = "weights" if part.term == "lm_head" else part.term
            predicted.setdefault(name, []).append(part)
    return tuple(
        LedgerPart(
            part.part,
            part.ms,
            _sum_ms(t.floor_ms for t in predicted.get(part.part, ())),
            _sum_ms(t.expected_ms for t in predicted.get(part.part, ())),
        )
        for part in measured.draft_parts
    )


def _sum_ms(values: Iterable[float]) -> float | None:
    listed = list(values)
    return sum(listed) if listed else None


def _totals(lines: Iterable[LedgerLine]) -> Totals:
    listed = list(lines)
    measured = sum(line.measured_ms for line in listed)
    residual = sum(line.residual_ms for line in listed)
    return Totals(
        floor_ms=sum(line.floor_ms or 0.0 for line in listed),
        expected_ms=sum(line.expected_ms or 0.0 for line in listed),
        measured_ms=measured,
        residual_ms=residual,
        residual_fraction=residual / measured if measured else 0.0,
    )
