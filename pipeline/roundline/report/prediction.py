"""Renders `roundline predict`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from roundline.report.documents import document
from roundline.report.tabular import render

if TYPE_CHECKING:
    from roundline.bandwidth.architecture import WeightMatrix
    from roundline.bandwidth.communication import CollectiveCost
    from roundline.bandwidth.hardware import Gpu
    from roundline.bandwidth.prediction import DraftPass, RoundFloor, Term
    from roundline.bandwidth.stated import StatedCheck
    from roundline.bandwidth.worth import SpeculationWorth

_COLUMNS = ("term", "GB", "floor ms", "expected ms", "share of floor")


@dataclass(frozen=True)
class Conversion:
    """Round time, accept length and throughput that belong together."""

    round_ms: float
    accept_len: float
    tokens_per_s: float


@dataclass(frozen=True)
class PredictionReport:
    """A prediction and what the user asked of it; `worth` is None in plain decode."""

    prediction: RoundFloor
    accept_lens: tuple[float, ...]
    conversions: tuple[Conversion, ...]
    checks: tuple[StatedCheck, ...]
    worth: SpeculationWorth | None


def render_prediction(report: PredictionReport, format_: str) -> str:
    """The prediction as a table, Markdown, CSV or a `roundline.predict/1` document."""
    if format_ == "json":
        return _document(report)
    table = render(_COLUMNS, list(_rows(report.prediction)), format_).rstrip()
    if format_ == "csv":
        return table
    heading, basis = _heading(report.prediction), _basis(report.prediction)
    return "\n".join([*heading, "", table, "", *_throughput(report), "", *basis])


def _rows(prediction: RoundFloor) -> Iterable[tuple[object, ...]]:
    yield from (_row(term, prediction.floor_ns) for term in prediction.terms)
    size, floor = f"{prediction.bytes / 1e9:.3f}", f"{prediction.floor_ms:.2f}"
    yield ("total", size, floor, f"{prediction.expected_ms:.2f}", "100.0 %")


def _row(term: Term, total_ns: int) -> tuple[object, ...]:
    share = 100 * term.floor_ns / total_ns if total_ns else 0.0
    size, floor = f"{term.bytes / 1e9:.3f}", f"{term.floor_ms:.2f}"
    return (term.term, size, floor, f"{term.expected_ms:.2f}", f"{share:.1f} %")


def _heading(prediction: RoundFloor) -> Iterable[str]:
    model, gpu, workload = prediction.model, prediction.gpu, prediction.workload
    sizes = model.parameters
    parts = [f"{sizes.text:,} text"]
    parts += [f"{sizes.mtp:,} draft"] if sizes.mtp else []
    parts += [f"{sizes.vision:,} vision"] if sizes.vision else []
    yield (
        f"{model.name} on {workload.parallel.tp} x {gpu.device_names[0]} "
        f"({float(gpu.hbm_gbps):g} GB/s each), {prediction.switches.engine}"
    )
    yield (
        f"batch {workload.batch}, context {workload.context}, {workload.draft_steps} draft steps, "
        f"{workload.verify_tokens} tokens verified"
    )
    yield f"parameters {' + '.join(parts)}; checkpoint {model.checkpoint_bytes:,} bytes"


def _throughput(report: PredictionReport) -> Iterable[str]:
    for length in report.accept_lens:
        expected = report.prediction.tokens_per_s_at(length)
        ceiling = report.prediction.tokens_per_s_at(length, "floor")
        yield f"at accept length {length:g}: {expected:.1f} tok/s expected, ceiling {ceiling:.1f}"
    for row in report.conversions:
        yield (
            f"{row.round_ms:.1f} ms a round at accept length {row.accept_len:.2f} "
            f"are {row.tokens_per_s:.2f} tok/s"
        )
    if worth := report.worth:
        yield (
            f"drafting pays above accept length {worth.break_even_len:.2f} (a plain step is "
            f"expected to take {worth.plain_ms:.1f} ms); a further step pays if it lengthens a "
            f"round by over {100 * worth.next_step_cost:.1f} %"
        )
    for check in report.checks:
        yield from check.findings()


def _basis(prediction: RoundFloor) -> Iterable[str]:
    counts = prediction.counts
    if prediction.draft_passes:
        size, passes = prediction.mtp_pass_bytes / 1e9, len(prediction.draft_passes)
        yield f"a draft pass reads {size:.4f} GB of weights, {passes} times a round"
    yield (
        f"a round reads lm_head {counts.lm_head_reads} times; {counts.all_reduces} all-reduces, "
        f"{counts.all_gathers} all-gathers"
    )
    if prediction.state_bytes:
        yield f"recurrent state {prediction.state_bytes / 1e6:.2f} MB per GPU"
    yield from prediction.assumptions


def _document(report: PredictionReport) -> str:
    prediction, accept_lens = report.prediction, report.accept_lens
    sizes = prediction.model.parameters
    return document(
        "predict",
        model=prediction.model.name,
        source=prediction.model.source,
        gpu=_gpu(prediction.gpu),
        workload=_workload(prediction),
        switches=_switches(prediction),
        terms=[_term(term) for term in prediction.terms],
        totals={
            "bytes": prediction.bytes,
            "floor_ms": prediction.floor_ms,
            "expected_ms": prediction.expected_ms,
        },
        parameters={
            "text": sizes.text, "mtp": sizes.mtp, "vision": sizes.vision, "total": sizes.total,
        },
        checkpoint_bytes=prediction.model.checkpoint_bytes,
        tokens_per_s_at={f"{x:g}": prediction.tokens_per_s_at(x) for x in accept_lens},
        floor_tokens_per_s_at={
            f"{x:g}": prediction.tokens_per_s_at(x, "floor") for x in accept_lens
        },
        max_accept_len=prediction.max_accept_len,
        conversions=[
            {"round_ms": c.round_ms, "accept_len": c.accept_len, "tokens_per_s": c.tokens_per_s}
            for c in report.conversions
        ],
        speculation=_worth(report.worth),
        stated=[_stated(check) for check in report.checks],
        draft={
            "passes": len(prediction.draft_passes),
            "pass_bytes": prediction.mtp_pass_bytes,
            "per_pass": [_draft_pass(draft_pass) for draft_pass in prediction.draft_passes],
        },
        mtp_pass_bytes=prediction.mtp_pass_bytes,
        state_bytes=prediction.state_bytes,
        conv_state_bytes=prediction.conv_state_bytes,
        kv_bytes_per_token=prediction.kv_bytes_per_token,
        resident_weight_bytes=prediction.resident_bytes,
        all_parameter_bytes=prediction.all_parameter_bytes,
        counts=_counts(prediction),
        matrices=[_matrix(matrix, prediction) for matrix in prediction.matrices],
        assumptions=list(prediction.assumptions),
    )  # fmt: skip


def _worth(worth: SpeculationWorth | None) -> dict[str, Any] | None:
    if worth is None:
        return None
    return {
        "plain_expected_ms": worth.plain_ms, "break_even_len": worth.break_even_len,
        "next_step_expected_ms": worth.next_round_ms - worth.round_ms,
        "next_step_cost": worth.next_step_cost,
    }  # fmt: skip


def _stated(check: StatedCheck) -> dict[str, Any]:
    return {
        "terms_ms": dict(check.model.terms_ms), "sum_ms": check.model.sum_ms,
        "total_ms": check.model.round_ms, "not_itemised_ms": check.model.not_itemised_ms,
        "measured_ms": check.measured_ms, "unexplained_ms": check.unexplained_ms,
        "unexplained_fraction": check.unexplained_fraction,
        "predicted_tokens_per_s": check.predicted_tokens_per_s,
        "measured_tokens_per_s": check.measured_tokens_per_s, "accept_len": check.accept_len,
        "implied_accept_len": check.implied_accept_len,
        "status": "agrees" if check.agrees else "unexplained", "findings": list(check.findings()),
        "statements": [asdict(statement) for statement in check.statements()],
    }  # fmt: skip


def _term(term: Term) -> dict[str, Any]:
    return {
        "term": term.term, "bytes": term.bytes, "floor_ms": term.floor_ms,
        "expected_ms": term.expected_ms,
    }  # fmt: skip


def _draft_pass(draft_pass: DraftPass) -> dict[str, Any]:
    return {
        "step": draft_pass.step,
        "tokens": draft_pass.tokens,
        "weight_bytes": draft_pass.weight_bytes,
        "parts": [_term(part) for part in draft_pass.parts],
    }


def _gpu(gpu: Gpu) -> dict[str, Any]:
    return {
        "key": gpu.key, "name": gpu.device_names[0], "hbm_gbps": float(gpu.hbm_gbps),
        "memory_gb": float(gpu.memory_gb), "memory_type": gpu.memory_type,
        "achievable_fraction": float(gpu.stream_fraction), "source": gpu.source,
        "confidence": gpu.confidence,
    }  # fmt: skip


def _workload(prediction: RoundFloor) -> dict[str, Any]:
    workload, parallel = prediction.workload, prediction.workload.parallel
    return {
        "batch": workload.batch, "context": workload.context, "draft_steps": workload.draft_steps,
        "verify_tokens": workload.verify_tokens, "drafter": workload.drafter,
        "tp": parallel.tp, "ep": parallel.ep, "dp": parallel.dp,
    }  # fmt: skip


def _switches(prediction: RoundFloor) -> dict[str, Any]:
    switches, efficiency, links = prediction.switches, prediction.efficiency, prediction.links
    return {
        "engine": switches.engine,
        "fc_replicated": switches.fc_replicated,
        "head_replicated": switches.head_replicated,
        "embedding_sharded": switches.embedding_sharded,
        "state_passes": prediction.state_passes,
        "kv_format": switches.kv_format.name,
        "draft_extend": switches.draft_extend,
        "efficiency": {
            "gemm": float(efficiency.gemm),
            "gemm_unpacking": float(efficiency.gemm_unpacking),
            "stream": float(efficiency.stream),
            "kernel_latency_us": efficiency.kernel_latency_ns / 1000,
            "node_latency_us": efficiency.node_latency_ns / 1000,
        },
        "all_reduce": _link(links.all_reduce) if links else None,
        "all_gather": _link(links.all_gather) if links else None,
    }


def _link(cost: CollectiveCost) -> dict[str, Any]:
    return {
        "kernel": cost.kernel, "link": cost.link, "alpha_us": float(cost.alpha_ns) / 1000,
        "beta_us_per_kb": float(cost.beta_ns_per_byte), "source": cost.source,
    }  # fmt: skip


def _counts(prediction: RoundFloor) -> dict[str, Any]:
    counts = prediction.counts
    gemms: dict[str, dict[str, int]] = {"verify": {}, "draft": {}}
    for gemm in counts.gemms:
        gemms[gemm.phase][gemm.matrix] = gemm.count
    return {
        "lm_head_reads": counts.lm_head_reads, "allreduces": counts.all_reduces,
        "allgathers": counts.all_gathers, "broadcasts": counts.broadcasts, "gemms": gemms,
        "messages": [
            {"collective": m.collective, "phase": m.phase, "count": m.count,
             "bytes": m.message_bytes}
            for m in counts.messages
        ],
    }  # fmt: skip


def _matrix(matrix: WeightMatrix, prediction: RoundFloor) -> dict[str, Any]:
    return {
        "name": matrix.name, "module": matrix.module, "k": matrix.k, "n": matrix.n,
        "sharding": matrix.sharding, "count": matrix.count, "format": matrix.format,
        "bytes": matrix.bytes, "floor_us": matrix.bytes / float(prediction.gpu.hbm_gbps) / 1000,
        "experts": matrix.routing.resident if matrix.routing else 1,
    }  # fmt: skip
