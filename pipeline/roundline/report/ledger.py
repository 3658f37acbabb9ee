"""The ledger as rows and as a document, for every renderer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from roundline.report.documents import document

if TYPE_CHECKING:
    from roundline.reconcile.ledger import Ledger, LedgerPart
    from roundline.reconcile.reconciliation import Reconciliation

COLUMNS = ("term", "GB", "floor ms", "expected ms", "measured ms", "GB/s", "of peak", "residual ms")
PART_MARK = "· "


def ledger_rows(ledger: Ledger, *, parts: bool = True) -> list[tuple[str | None, ...]]:
    """One row per line and part, formatted; the last row holds the totals."""
    rows: list[tuple[str | None, ...]] = []
    for line in ledger.lines:
        rows.append(
            (
                line.term,
                number(line.bytes / 1e9 if line.bytes else None, 3),
                number(line.floor_ms, 3),
                number(line.expected_ms, 3),
                number(line.measured_ms, 3),
                number(line.achieved_gbps, 0),
                share(line.fraction_of_peak),
                signed(line.residual_ms),
            )
        )
        rows += map(_part_row, line.parts if parts else ())
    return [*rows, _total_row(ledger)]


def _part_row(part: LedgerPart) -> tuple[str | None, ...]:
    residual = None if part.expected_ms is None else part.measured_ms - part.expected_ms
    return (
        f"{PART_MARK}{part.part}", None, number(part.floor_ms, 3), number(part.expected_ms, 3),
        number(part.measured_ms, 3), None, None, signed(residual),
    )  # fmt: skip


def _total_row(ledger: Ledger) -> tuple[str | None, ...]:
    totals = ledger.totals
    size = sum(line.bytes or 0 for line in ledger.lines)
    return (
        "total",
        number(size / 1e9, 3),
        number(totals.floor_ms, 3),
        number(totals.expected_ms, 3),
        number(totals.measured_ms, 3),
        number(size / totals.measured_ms / 1e6 if totals.measured_ms else None, 0),
        share(totals.floor_ms / totals.measured_ms if totals.measured_ms else None),
        signed(totals.residual_ms),
    )


def number(value: float | None, digits: int) -> str | None:
    """A number with fixed decimals, or nothing."""
    return None if value is None else f"{value:.{digits}f}"


def signed(value: float | None) -> str | None:
    """A difference with its sign."""
    return None if value is None else f"{value:+.3f}"


def share(value: float | None) -> str | None:
    """A fraction as per cent."""
    return None if value is None else f"{100 * value:.1f} %"


def reconciliation_document(r: Reconciliation) -> str:
    """The `roundline.reconcile/1` document."""
    return document("reconcile", **dict(_parts(r)))


def _parts(r: Reconciliation) -> Iterator[tuple[str, Any]]:
    yield "rank", r.slowest.rank
    yield (
        "rounds",
        {
            "count": r.rounds.count,
            "steady": r.rounds.steady,
            "evidence": r.rounds.evidence,
            "excluded": r.rounds.excluded,
            "wall_ms": asdict(r.slowest.wall_ms),
        },
    )
    yield "ledger", [asdict(line) for line in r.ledger.lines]
    yield "totals", asdict(r.ledger.totals)
    yield "residual_causes", [asdict(cause) for cause in r.causes]
    yield "acceptance", asdict(r.acceptance) if r.acceptance else None
    yield "throughput", asdict(r.throughput)
    yield "verdict", asdict(r.verdict)
    yield "findings", [asdict(finding) for finding in r.findings]
    yield "weight_matrices", [asdict(read) for read in r.slowest.matrices]
    yield "collectives", [asdict(times) for times in r.slowest.collectives]
    yield "idle", [asdict(source) for source in r.slowest.idle]
    yield "ranks", [
        {"rank": m.rank, "device_name": m.device_name, "rounds": m.rounds,
         "wall_ms": asdict(m.wall_ms), "ledger": [asdict(line) for line in ledger.lines]}
        for m, ledger in zip(r.ranks, r.ledgers, strict=True)
    ]  # fmt: skip
    yield "log", asdict(r.log) if r.log else None
    yield "model", _model(r)
    yield "quality", [asdict(line) for line in r.quality]


def _model(r: Reconciliation) -> dict[str, Any]:
    floor = r.floor
    return {
        "name": floor.model.name,
        "gpu": floor.gpu.key,
        "hbm_gbps": float(floor.gpu.hbm_gbps),
        "engine": floor.switches.engine,
        "tp": floor.workload.parallel.tp,
        "draft_steps": floor.workload.draft_steps,
        "batch": floor.workload.batch,
        "context": floor.workload.context,
        "assumptions": list(floor.assumptions),
    }
