"""The worked example as numbers: what was measured, without a capture."""

from __future__ import annotations

from fractions import Fraction

from roundline.bandwidth.architecture import load_model
from roundline.bandwidth.communication import CollectiveCost, LinkCosts
from roundline.bandwidth.efficiency import Efficiency
from roundline.bandwidth.hardware import find_gpu
from roundline.bandwidth.prediction import RoundFloor
from roundline.bandwidth.round_floor import predict
from roundline.bandwidth.shapes import Parallelism
from roundline.bandwidth.switches import engine_switches
from roundline.bandwidth.workload import Workload
from roundline.reconcile.exchanges import Exchange
from roundline.reconcile.measured import MeasuredPart, MeasuredRank, MeasuredTerm, WallTime

ACCEPT_LEN = 3.08
TOKENS_PER_S = 55.59
ROUND_MS = 1000 * ACCEPT_LEN / TOKENS_PER_S
ALL_REDUCE_US = 20

NINETY = Efficiency(
    gemm=Fraction(9, 10), gemm_unpacking=Fraction(9, 10), stream=Fraction(9, 10),
    kernel_latency_ns=0, node_latency_ns=0,
)  # fmt: skip


def predicted(
    gpu: str = "RTX A6000", tp: int = 2, draft_steps: int = 3, batch: int = 1, context: int = 240
) -> RoundFloor:
    """The model's round at 90 % of peak, every all-reduce taking 20 us and gathers nothing."""
    reduce = CollectiveCost("nccl", "pcie", Fraction(1000 * ALL_REDUCE_US), Fraction(0), "test")
    gather = CollectiveCost("nccl", "pcie", Fraction(0), Fraction(0), "test")
    return predict(
        load_model("qwen3.6-27b"), find_gpu(gpu),
        Workload(batch, context, draft_steps, parallel=Parallelism(tp)),
        engine_switches("sglang"), NINETY, LinkCosts(reduce, gather) if tp > 1 else None,
    )  # fmt: skip


def measured(floor: RoundFloor, round_ms: float = ROUND_MS) -> MeasuredRank:
    """A rank of which the priced terms take what the model expects and the rest is idle."""
    terms = [MeasuredTerm(term.term, term.expected_ms) for term in floor.terms]
    terms.append(MeasuredTerm("idle", round_ms - sum(term.ms for term in terms)))
    parts: dict[str, float] = {}
    for part in (part for draft_pass in floor.draft_passes for part in draft_pass.parts):
        name = "weights" if part.term == "lm_head" else part.term
        parts[name] = parts.get(name, 0.0) + part.expected_ms
    return MeasuredRank(
        rank=0, device_name=floor.gpu.device_names[0], reported_gbps=None, rounds=40,
        wall_ms=WallTime(round_ms, round_ms, round_ms, round_ms),
        draft_passes=floor.workload.draft_passes, terms=tuple(terms),
        draft_parts=tuple(MeasuredPart("draft", name, ms) for name, ms in parts.items()),
        idle=(), matrices=(), collectives=(), idle_is_trustworthy=True, unclassified_share=0.0,
    )  # fmt: skip


def exchanges() -> tuple[Exchange, ...]:
    """All-reduces of the round through NCCL, without waiting."""
    each_ms = ALL_REDUCE_US / 1000
    counts = {"verify": 129, "draft": 6, "draft_extend": 3}
    return tuple(
        Exchange(phase, "all_reduce", "nccl", count, count * each_ms, 0.0)
        for phase, count in counts.items()
    )
