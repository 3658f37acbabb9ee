"""Where the residual comes from, as causes that add up to it."""

from __future__ import annotations

from dataclasses import dataclass

from roundline.reconcile.ledger import Ledger, LedgerLine


@dataclass(frozen=True)
class ResidualCause:
    """One cause and its share of the residual; negative where software beat the expectation."""

    cause: str
    ms: float


def residual_causes(ledger: Ledger) -> tuple[ResidualCause, ...]:
    """The ledger's residual split by cause, biggest first; the causes add up to it."""
    causes = [cause for line in ledger.lines for cause in _of_line(line) if cause.ms]
    return tuple(sorted(causes, key=lambda cause: (-cause.ms, cause.cause)))


def _of_line(line: LedgerLine) -> list[ResidualCause]:
    if line.term == "idle":
        return _idle(line)
    if line.term == "collective":
        return _collective(line)
    if line.expected_ms is None:
        return [ResidualCause(f"{line.term} (not in the model)", line.residual_ms)]
    return [ResidualCause(f"{line.term} beyond expectation", line.residual_ms)]


def _idle(line: LedgerLine) -> list[ResidualCause]:
    return [ResidualCause(f"idle: {part.part}", part.measured_ms) for part in line.parts]


def _collective(line: LedgerLine) -> list[ResidualCause]:
    wait = sum(part.measured_ms for part in line.parts if part.part == "wait")
    return [
        ResidualCause("collective: waiting for the slower rank", wait),
        ResidualCause("collective beyond expectation", line.residual_ms - wait),
    ]
