"""One capture against one model: the whole answer of `roundline reconcile`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundline.bandwidth.prediction import RoundFloor
from roundline.reconcile.demands import demands_of
from roundline.reconcile.findings import Finding, find
from roundline.reconcile.ledger import Ledger, build_ledger
from roundline.reconcile.measured import MeasuredRank, read_measured
from roundline.reconcile.residual import ResidualCause, residual_causes
from roundline.reconcile.spread import KernelTotal, RankSpread, read_kernels, read_spread
from roundline.reconcile.throughput import (
    AcceptanceUsed,
    LogSummary,
    Throughput,
    choose_acceptance,
    read_log,
    throughput,
)
from roundline.reconcile.timeline import RoundTimeline, read_timelines
from roundline.reconcile.verdict import DEFAULT_TOLERANCE, Verdict, judge
from roundline.warehouse.attribution import QualityLine, Rounds, read_quality, read_rounds
from roundline.warehouse.build import open_warehouse

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from roundline.store import Manifest, Store


@dataclass(frozen=True)
class CaptureFacts:
    """What a capture says of the server, for what the user leaves unsaid."""

    device_name: str | None
    ranks: int
    draft_passes: int
    engine: str | None
    running_requests: int | None
    context_tokens: int | None


@dataclass(frozen=True)
class Pictures:
    """What only a drawn report shows: a round instant by instant, the spread, the kernels.

    `timelines` and `spreads` have the slowest rank first; `kernels` are those of that rank.
    """

    timelines: tuple[RoundTimeline, ...]
    spreads: tuple[RankSpread, ...]
    kernels: tuple[KernelTotal, ...]


Predictor = Callable[[CaptureFacts], RoundFloor]


@dataclass(frozen=True)
class Claims:
    """What the user states beside the model; None is read off the log."""

    accept_len: float | None = None
    accept_rate: float | None = None
    tolerance: float = DEFAULT_TOLERANCE


@dataclass(frozen=True)
class Reconciliation:
    """Measured against predicted; `ranks` and `ledgers` have the slowest rank first."""

    floor: RoundFloor
    rounds: Rounds
    ranks: tuple[MeasuredRank, ...]
    ledgers: tuple[Ledger, ...]
    causes: tuple[ResidualCause, ...]
    acceptance: AcceptanceUsed | None
    log: LogSummary | None
    throughput: Throughput
    verdict: Verdict
    findings: tuple[Finding, ...]
    quality: tuple[QualityLine, ...]
    pictures: Pictures
    manifest: Manifest
    command: tuple[str, ...] = ()  # arguments that make this result again

    @property
    def slowest(self) -> MeasuredRank:
        """The rank whose rounds take longest."""
        return self.ranks[0]

    @property
    def ledger(self) -> Ledger:
        """The slowest rank's ledger."""
        return self.ledgers[0]


def reconcile(
    store: Store,
    predictor: Predictor,
    claims: Claims | None = None,
    log_windows: pa.Table | None = None,
) -> Reconciliation:
    """Hold the steady rounds of a store against the bandwidth model.

    Args:
        store: the capture, its log included where there is one.
        predictor: the model's round for what the capture shows.
        claims: acceptance and tolerance.
        log_windows: windows of server logs that are not in the store.

    Raises:
        EvidenceError: there are no steady rounds.
        UsageError: the acceptance is impossible, or the predictor refuses the capture.
    """
    with open_warehouse(store) as warehouse:
        ranks, log = read_measured(warehouse), read_log(warehouse, log_windows)
    floor = predictor(
        CaptureFacts(
            device_name=ranks[0].device_name,
            ranks=len(ranks),
            draft_passes=ranks[0].draft_passes,
            engine=log.engine if log else None,
            running_requests=log.running_requests if log else None,
            context_tokens=log.context_tokens if log else None,
        )
    )
    with open_warehouse(store, demands_of(floor)) as warehouse:
        ranks = read_measured(warehouse)
        rounds, quality = read_rounds(warehouse), read_quality(warehouse)
        pictures = _read_pictures(warehouse, ranks)
    return _assemble(
        claims or Claims(), floor, ranks, rounds, quality, log, pictures, store.manifest
    )


def _read_pictures(
    warehouse: duckdb.DuckDBPyConnection, ranks: tuple[MeasuredRank, ...]
) -> Pictures:
    return Pictures(
        timelines=read_timelines(warehouse),
        spreads=tuple(read_spread(warehouse, rank.rank) for rank in ranks),
        kernels=read_kernels(warehouse, ranks[0].rank),
    )


def _assemble(
    claims: Claims,
    floor: RoundFloor,
    ranks: tuple[MeasuredRank, ...],
    rounds: Rounds,
    quality: tuple[QualityLine, ...],
    log: LogSummary | None,
    pictures: Pictures,
    manifest: Manifest,
) -> Reconciliation:
    ledgers = tuple(build_ledger(rank, floor) for rank in ranks)
    totals, causes = ledgers[0].totals, residual_causes(ledgers[0])
    acceptance = choose_acceptance(
        floor.workload.draft_steps, claims.accept_len, claims.accept_rate, log
    )
    rates = throughput(
        acceptance, totals.expected_ms, totals.measured_ms, floor.workload.batch, log
    )
    return Reconciliation(
        floor=floor,
        rounds=rounds,
        ranks=ranks,
        ledgers=ledgers,
        causes=causes,
        acceptance=acceptance,
        log=log,
        throughput=rates,
        verdict=judge(ranks[0], floor, totals, causes, claims.tolerance),
        findings=find(ranks, ledgers[0], floor, acceptance, log),
        quality=quality,
        pictures=pictures,
        manifest=manifest,
    )
