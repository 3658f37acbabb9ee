"""Fits the model's efficiencies and latencies to a capture.

Weight reads give a fraction of peak and a latency, caches and states likewise, small kernels a
latency each, paired collectives alpha and beta. Idle time is fitted to nothing: it stays residual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from roundline.bandwidth.prediction import RoundFloor, Term
from roundline.bandwidth.pricing import Pricing
from roundline.bandwidth.profile import Origin, Profile, ProfiledCollective
from roundline.bandwidth.round_floor import predict
from roundline.errors import EvidenceError
from roundline.reconcile.collective_fit import CollectiveFit, fit_collectives
from roundline.reconcile.exchanges import Exchange
from roundline.reconcile.ledger import Totals, build_ledger
from roundline.reconcile.line_fit import LineFit, Sample, fit_line
from roundline.reconcile.measured import MatrixRead, MeasuredRank

if TYPE_CHECKING:
    from roundline.store import Manifest


@dataclass(frozen=True)
class Calibration:
    """A profile, the fits behind it, what could not be fitted and why.

    `before` and `after` are the ledger's totals of the capture itself without and with it.
    """

    profile: Profile
    lines: tuple[LineFit, ...]
    collectives: tuple[CollectiveFit, ...]
    notes: tuple[str, ...]
    before: Totals
    after: Totals


def calibrate(
    ranks: tuple[MeasuredRank, ...],
    floor: RoundFloor,
    exchanges: tuple[Exchange, ...],
    manifest: Manifest,
) -> Calibration:
    """Fit what the steady rounds of a capture can tell.

    Args:
        ranks: measured with the demands of `floor`, so that matrices have bytes; slowest first.
        floor: the prediction of the capture.
        exchanges: its collectives, paired over the ranks.
        manifest: of its store, for provenance.

    Raises:
        EvidenceError: the capture tells nothing that could be fitted.
    """
    notes: list[str] = []
    lines = tuple(_weight_fits(ranks, floor, notes)) + tuple(_stream_fit(ranks, floor, notes))
    collectives = fit_collectives(exchanges, floor, notes)
    by_name = {fit.name: fit.line for fit in lines}
    profile = Profile(
        origin=_origin(ranks, floor, manifest),
        gemm=by_name.get(WEIGHTS),
        unpacking=by_name.get(UNPACKED),
        stream=by_name.get(STREAMS),
        node_latency_ns=_node_latency_ns(ranks, floor, notes),
        collectives=tuple(
            ProfiledCollective(c.operation, floor.workload.parallel.tp, c.fit.cost)
            for c in collectives
        ),
    )
    if not lines and not collectives and profile.node_latency_ns is None:
        raise EvidenceError(f"nothing to calibrate with: {'; '.join(notes)}")
    return Calibration(
        profile, lines, collectives, tuple(notes),
        before=build_ledger(ranks[0], floor).totals,
        after=build_ledger(ranks[0], with_profile(floor, profile)).totals,
    )  # fmt: skip


WEIGHTS, UNPACKED, STREAMS = "weights", "weights that unpack", "caches and states"


def with_profile(floor: RoundFloor, profile: Profile) -> RoundFloor:
    """The same round as a profile expects it."""
    links = profile.links(floor.links, floor.workload.parallel.tp)
    return predict(
        floor.model, floor.gpu, floor.workload, floor.switches,
        profile.efficiency(floor.gpu), links,
    )  # fmt: skip


def _origin(ranks: tuple[MeasuredRank, ...], floor: RoundFloor, manifest: Manifest) -> Origin:
    workload = floor.workload
    return Origin(
        gpu=floor.gpu.device_names[0],
        hbm_gbps=floor.gpu.hbm_gbps,
        model=floor.model.name,
        engine=floor.switches.engine,
        tp=workload.parallel.tp,
        draft_steps=workload.draft_steps,
        batch=workload.batch,
        context=workload.context,
        rounds=ranks[0].rounds,
        tool_version=manifest.tool_version,
        sources=tuple((source.name, source.sha256) for source in manifest.sources),
    )


def _weight_fits(
    ranks: tuple[MeasuredRank, ...], floor: RoundFloor, notes: list[str]
) -> Iterator[LineFit]:
    ridge = Pricing(floor.gpu, floor.efficiency).ridge_tokens()
    if ridge is not None and floor.workload.verify_rows > ridge:
        notes.append("weights: multiplications over that many tokens are bound by compute")
        return
    groups: dict[str, list[Sample]] = {WEIGHTS: [], UNPACKED: []}
    for reads in _by_matrix(ranks):
        sample, name = _sample(reads, floor), _fit_name(reads[0], floor)
        if sample is None or name is None:
            notes.append(f"{reads[0].matrix} in {reads[0].phase}: bytes of a read are not certain")
        elif sample.measured_ns < sample.floor_ns:
            notes.append(f"{sample.name} in {sample.phase}: faster than the datasheet, left out")
        else:
            groups[name].append(sample)
    for name, samples in groups.items():
        if samples:
            yield fit_line(name, samples)


def _by_matrix(ranks: tuple[MeasuredRank, ...]) -> list[list[MatrixRead]]:
    """The same matrix and phase on every rank."""
    groups: dict[tuple[str, str], list[MatrixRead]] = {}
    for read in (read for rank in ranks for read in rank.matrices):
        groups.setdefault((read.phase, read.matrix), []).append(read)
    return [groups[key] for key in sorted(groups)]


def _sample(reads: list[MatrixRead], floor: RoundFloor) -> Sample | None:
    known = [read for read in reads if read.bytes]
    if not known or not all(read.mean_ms > 0 for read in known):
        return None
    size = known[0].bytes or 0
    mean_ns = 1e6 * sum(read.mean_ms for read in known) / len(known)
    return Sample(known[0].matrix, known[0].phase, size, size / float(floor.gpu.hbm_gbps), mean_ns)


def _fit_name(read: MatrixRead, floor: RoundFloor) -> str | None:
    """Which fit a matrix belongs to; None for routed experts and mixed formats."""
    module = "target" if read.phase == "verify" else "draft"
    found = [m for m in floor.matrices if (m.module, m.name) == (module, read.matrix)]
    if not found or any(m.routing for m in found) or len({m.unpacks for m in found}) > 1:
        return None
    return UNPACKED if found[0].unpacks else WEIGHTS


def _stream_fit(
    ranks: tuple[MeasuredRank, ...], floor: RoundFloor, notes: list[str]
) -> Iterator[LineFit]:
    samples = [
        sample
        for phase in ("verify", "draft")
        for term in ("attention", "gdn")
        if (sample := _stream_sample(ranks, floor, term, phase)) is not None
    ]
    if samples:
        yield fit_line(STREAMS, samples, default=floor.efficiency.stream)
    else:
        notes.append("caches and states: the rounds read none")


def _stream_sample(
    ranks: tuple[MeasuredRank, ...], floor: RoundFloor, term: str, phase: str
) -> Sample | None:
    """One layer's read of caches or states."""

    def predicted(of: RoundFloor) -> list[Term]:
        if phase == "verify":
            return [of.term(term)]
        return [part for each in of.draft_passes for part in each.parts if part.term == term]

    kernels = _kernels(floor, "kernel_latency_ns", predicted)
    measured_ms = sum(_stream_ms(rank, term, phase) for rank in ranks) / len(ranks)
    if not kernels or not measured_ms:
        return None
    size = sum(part.bytes for part in predicted(floor))
    each_ns = size / float(floor.gpu.hbm_gbps) / kernels
    return Sample(term, phase, round(size / kernels), each_ns, 1e6 * measured_ms / kernels)


def _stream_ms(rank: MeasuredRank, term: str, phase: str) -> float:
    if phase == "verify":
        return rank.term_ms(term)
    return sum(part.ms for part in rank.draft_parts if part.part == term)


def _node_latency_ns(
    ranks: tuple[MeasuredRank, ...], floor: RoundFloor, notes: list[str]
) -> int | None:
    """What one small kernel takes; gaps between the nodes of a graph stay idle time."""
    nodes = _kernels(floor, "node_latency_ns", lambda of: [of.term("elementwise")])
    measured_ns = 1e6 * sum(rank.term_ms("elementwise") for rank in ranks) / len(ranks)
    if not nodes or not measured_ns:
        notes.append("small kernels: the rounds have none")
        return None
    gaps_ms = sum(s.ms for rank in ranks for s in rank.idle if s.cause == "in_graph") / len(ranks)
    notes.append(
        f"{nodes} small kernels of the target take {measured_ns / nodes / 1000:.2f} us each; the"
        f" {gaps_ms:.2f} ms a round between the nodes of graphs stay idle time, expected by none"
    )
    return max(round((measured_ns - floor.term("elementwise").floor_ns) / nodes), 0)


def _kernels(floor: RoundFloor, latency: str, predicted: Callable[[RoundFloor], list[Term]]) -> int:
    """Kernels behind predicted terms: what 1000 ns more of each cost, in 1000 ns."""
    at = [
        sum(term.expected_ns for term in predicted(_at_latency(floor, latency, ns)))
        for ns in (0, 1000)
    ]
    return (at[1] - at[0]) // 1000


def _at_latency(floor: RoundFloor, latency: str, ns: int) -> RoundFloor:
    change: dict[str, Any] = {latency: ns}
    efficiency = replace(floor.efficiency, **change)
    return predict(floor.model, floor.gpu, floor.workload, floor.switches, efficiency, floor.links)
