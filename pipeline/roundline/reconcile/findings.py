"""Findings: one sentence each, with ms a round, the rank, and the SQL that shows the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from roundline.bandwidth.hardware import cross_check
from roundline.bandwidth.prediction import RoundFloor
from roundline.reconcile.ledger import Ledger, idle_by_cause, verify_collectives
from roundline.reconcile.measured import MatrixRead, MeasuredRank
from roundline.reconcile.throughput import AcceptanceUsed, LogSummary

NOTICEABLE: Final = 0.005  # of the round; smaller things are rows, not findings


@dataclass(frozen=True)
class Finding:
    """A sentence; `ms` a round orders the findings, `evidence` is SQL that shows its rows."""

    text: str
    evidence: str
    ms: float


def find(
    ranks: tuple[MeasuredRank, ...],
    ledger: Ledger,
    floor: RoundFloor,
    acceptance: AcceptanceUsed | None,
    log: LogSummary | None,
) -> tuple[Finding, ...]:
    """Everything worth saying about the slowest rank, biggest first."""
    slowest = ranks[0]
    found = [
        *_idle(slowest),
        *_waits(ranks),
        *_matrices(slowest, floor),
        *_unpredicted(slowest, ledger),
        *_draft_heads(slowest),
        *_perturbation(slowest, log),
        *_acceptance(acceptance),
        *_bandwidth(slowest, floor),
    ]
    limit = NOTICEABLE * slowest.wall_ms.mean
    kept = [finding for finding in found if finding.ms >= limit or finding.ms == 0]
    return tuple(sorted(kept, key=lambda finding: (-finding.ms, finding.text)))


_IDLE_MEANING: Final = {
    "host_late": "the host had not yet called the launch of what comes next",
    "launch_latency": "a launch that came late also needs time to reach the GPU",
    "in_graph": "nodes of one graph replay start with a gap between them",
    "dependency": "work that was launched in time waited for something else",
    "profiler": "the profiler itself was at work",
    "unknown": "the capture has no API calls that would tell why",
}


def _idle(rank: MeasuredRank) -> Iterator[Finding]:
    for cause, ms in idle_by_cause(rank):
        sources = [source for source in rank.idle if source.cause == cause]
        biggest = max(sources, key=lambda source: source.ms)
        where = f", most of it before {biggest.phase} ({biggest.ms:.2f} ms"
        where += f" inside {biggest.host_range!r})" if biggest.host_range else ")"
        yield Finding(
            f"rank {rank.rank} is idle {ms:.2f} ms a round because {_IDLE_MEANING[cause]}{where}",
            "SELECT phase, host_range, sum(idle_ns) / 1e6 AS ms FROM round_idle JOIN rounds"
            f" USING (rank, round_id) WHERE steady AND rank = {rank.rank} AND cause = '{cause}'"
            " GROUP BY ALL ORDER BY ms DESC",
            ms,
        )


def _waits(ranks: tuple[MeasuredRank, ...]) -> Iterator[Finding]:
    waits = {
        rank.rank: sum(c.wait_ms or 0.0 for c in rank.collectives)
        for rank in ranks
        if any(c.wait_ms is not None for c in rank.collectives)
    }
    if len(waits) < 2:
        return
    waiting = max(waits, key=lambda rank: (waits[rank], -rank))
    late = min(waits, key=lambda rank: (waits[rank], rank))
    yield Finding(
        f"rank {waiting} waits {waits[waiting]:.2f} ms a round inside collectives for other ranks;"
        f" rank {late} arrives last most often (it waits {waits[late]:.2f} ms)",
        "SELECT rank, phase, count(*), sum(transfer_ns) / 1e6 AS transfer_ms,"
        " sum(wait_ns) / 1e6 AS wait_ms FROM collectives JOIN rounds USING (rank, round_id)"
        " WHERE steady GROUP BY ALL ORDER BY ALL",
        waits[waiting],
    )


def _matrices(rank: MeasuredRank, floor: RoundFloor) -> Iterator[Finding]:
    """The weight matrices that lose most against what large reads are expected to reach."""
    peak, efficiency = float(floor.gpu.hbm_gbps), float(floor.efficiency.gemm)
    losses = [
        (_lost_ms(read, peak * efficiency), read)
        for read in rank.matrices
        if read.bytes is not None
    ]
    for lost, read in sorted(losses, key=lambda pair: -pair[0])[:3]:
        if lost > 0:
            yield Finding(
                f"{read.matrix} in {read.phase} reads at {read.achieved_gbps:.0f} GB/s,"
                f" {100 * (read.fraction_of_peak or 0):.0f} % of peak; at {100 * efficiency:.0f} %"
                f" it would save {lost:.2f} ms a round ({read.reads_per_round:g} reads)",
                f"SELECT * FROM weight_reads WHERE rank = {rank.rank} AND matrix = '{read.matrix}'",
                lost,
            )


def _lost_ms(read: MatrixRead, gbps: float) -> float:
    return read.reads_per_round * (read.mean_ms - (read.bytes or 0) / gbps / 1e6)


def _unpredicted(rank: MeasuredRank, ledger: Ledger) -> Iterator[Finding]:
    for line in ledger.lines:
        if line.expected_ms is None and line.term != "idle" and line.measured_ms:
            yield Finding(
                f"{line.term} takes {line.measured_ms:.2f} ms a round that no bandwidth model"
                " predicts",
                "SELECT phase, category, sum(kernels) AS kernels, sum(exclusive_ns) / 1e6 AS ms"
                " FROM round_attribution JOIN rounds USING (rank, round_id) WHERE steady AND rank ="
                f" {rank.rank} AND phase NOT IN ('draft', 'draft_extend') GROUP BY ALL"
                " ORDER BY ms DESC",
                line.measured_ms,
            )


def _draft_heads(rank: MeasuredRank) -> Iterator[Finding]:
    heads = [r for r in rank.matrices if r.matrix == "lm_head" and r.phase.startswith("draft")]
    ms = sum(read.reads_per_round * read.mean_ms for read in heads)
    draft = rank.term_ms("draft")
    if ms and draft:
        yield Finding(
            f"lm_head is {100 * ms / draft:.0f} % of the drafts: {ms:.2f} ms a round; a smaller"
            " draft vocabulary would cut it",
            f"SELECT * FROM weight_reads WHERE rank = {rank.rank} AND matrix = 'lm_head'",
            ms,
        )


def _perturbation(rank: MeasuredRank, log: LogSummary | None) -> Iterator[Finding]:
    if log is None or log.round_ms is None:
        return
    difference = rank.wall_ms.mean - log.round_ms
    busy = rank.wall_ms.mean - rank.term_ms("idle")
    yield Finding(
        f"the log says {log.round_ms:.2f} ms a round, the capture {rank.wall_ms.mean:.2f} ms:"
        f" tracing changed it by {difference:+.2f} ms; without it about"
        f" {max(log.round_ms - busy, 0.0):.2f} ms of a round would be idle",
        "SELECT line, round_ms, accept_len, unusable_because FROM log_windows ORDER BY line",
        abs(difference),
    )


def _acceptance(acceptance: AcceptanceUsed | None) -> Iterator[Finding]:
    for text in acceptance.findings if acceptance else ():
        yield Finding(text, "SELECT line, accept_len, accept_rate FROM log_windows", 0.0)


def _bandwidth(rank: MeasuredRank, floor: RoundFloor) -> Iterator[Finding]:
    """The capture states the peak itself; a datasheet that differs is the wrong datasheet."""
    if rank.reported_gbps is None:
        return
    text = cross_check(floor.gpu, Fraction(rank.reported_gbps))
    if text:
        yield Finding(
            text, "SELECT rank, device_name, memory_bandwidth_bytes_per_s FROM ranks", 0.0
        )


def verify_wait_known(rank: MeasuredRank) -> bool:
    """True when the collectives of the target pass could be paired over ranks."""
    times = verify_collectives(rank)
    return times is None or times.wait_ms is not None
