"""Options that describe a model, its GPUs and its engine, and what they amount to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from roundline.errors import UsageError

if TYPE_CHECKING:
    from roundline.bandwidth.architecture import Architecture
    from roundline.bandwidth.communication import LinkCosts
    from roundline.bandwidth.efficiency import Efficiency
    from roundline.bandwidth.hardware import Gpu
    from roundline.bandwidth.prediction import RoundFloor
    from roundline.bandwidth.profile import Profile
    from roundline.bandwidth.switches import EngineSwitches
    from roundline.bandwidth.workload import Workload

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class ModelOptions:
    """What `model_options` collects: model, hardware, engine and efficiencies."""

    model: str
    gpu: str | None
    hbm_gbps: str | None
    engine: str
    tp: int
    ep: int
    dp: int
    draft_steps: int
    num_draft_tokens: int | None
    drafter: Literal["model", "ngram"]
    draft_model: str | None
    draft_vocab: int | None
    context: int
    batch: int
    weight_format: str | None
    head_format: str | None
    kv_format: str | None
    state_format: str | None
    state_passes: int | None
    fc: str | None
    head: str | None
    sampling: str
    link: Literal["nvlink", "pcie", "host", "network"] | None
    collective: Literal["nccl", "custom"] | None
    alpha_us: float | None
    beta_us_per_kb: float | None
    gemm_fraction: float | None
    unpack_fraction: float | None
    stream_fraction: float | None
    kernel_latency_us: float | None
    node_latency_us: float | None
    profile: Path | None


_POSITIVE = click.IntRange(min=1)
_NATURAL = click.IntRange(min=0)

_OPTIONS = (
    click.option("--model", required=True, help="Catalogue name or a Hugging Face config.json."),
    click.option("--gpu", help='As the driver prints it, such as "NVIDIA RTX A6000".'),
    click.option("--hbm-gbps", help="Peak bandwidth instead of the datasheet's: 768, 3.35TB/s."),
    click.option("--engine", default="sglang", show_default=True,
                 help="Whose defaults hold: sglang, vllm, trtllm, llama.cpp, gpt-fast."),
    click.option("--tp", type=_POSITIVE, default=1, show_default=True, help="GPUs of one replica."),
    click.option("--ep", type=_POSITIVE, default=1, show_default=True,
                 help="How many of them divide the experts whole."),
    click.option("--dp", type=_POSITIVE, default=1, show_default=True,
                 help="Attention groups among them, each with its own requests."),
    click.option("--draft-steps", type=_NATURAL, default=0, show_default=True,
                 help="Draft passes a round, K."),
    click.option("--num-draft-tokens", type=_POSITIVE,
                 help="Tokens that one verification checks. [default: K + 1]"),
    click.option("--drafter", type=click.Choice(["model", "ngram"]), default="model",
                 show_default=True, help="What drafts; n-grams cost no pass."),
    click.option("--draft-model", help="A separate draft: EAGLE head or smaller model."),
    click.option("--draft-vocab", type=_POSITIVE,
                 help="Rows of the draft's own lm_head. [default: the target's head]"),
    click.option("--context", type=_NATURAL, default=0, show_default=True,
                 help="Cached tokens of each request."),
    click.option("--batch", type=_POSITIVE, default=1, show_default=True,
                 help="Running requests."),
    click.option("--weight-format", help="bf16, fp8, int4_g128, nvfp4, Q4_K_M ... "
                 "[default: as the config says]"),
    click.option("--head-format", help="Format of lm_head where it differs."),
    click.option("--kv-format", help="Format of the KV cache. [default: 16 bits]"),
    click.option("--state-format", help="Format of recurrent states."),
    click.option("--state-passes", type=_POSITIVE,
                 help="Reads and writes of a recurrent state a round. [default: by engine]"),
    click.option("--fc", type=click.Choice(["replicated", "sharded"]),
                 help="The draft's fc on several GPUs. [default: by engine]"),
    click.option("--head", type=click.Choice(["replicated", "sharded"]),
                 help="lm_head on several GPUs. [default: by engine]"),
    click.option("--sampling", type=click.Choice(["greedy", "random"]), default="greedy",
                 show_default=True, help="Random sampling broadcasts over GPUs in SGLang."),
    click.option("--link", type=click.Choice(["nvlink", "pcie", "host", "network"]),
                 help="What joins the GPUs. [default: NVLink where built in, else PCIe]"),
    click.option("--collective", type=click.Choice(["nccl", "custom"]),
                 help="All-reduce kernel. [default: by engine and link]"),
    click.option("--alpha-us", type=click.FloatRange(min=0), help="Latency of an all-reduce."),
    click.option("--beta-us-per-kb", type=click.FloatRange(min=0),
                 help="All-reduce time per KB of message."),
    click.option("--gemm-fraction", type=float, help="Of peak, for large weight reads."),
    click.option("--unpack-fraction", type=float, help="Of peak, where 4-bit weights unpack."),
    click.option("--stream-fraction", type=float, help="Of peak, for pure reads."),
    click.option("--kernel-latency-us", type=float, help="Start of a reading kernel."),
    click.option("--node-latency-us", type=float, help="A small kernel inside a graph."),
    click.option("--profile", type=click.Path(path_type=Path, exists=True, dir_okay=False),
                 help="Efficiencies and latencies that `reconcile --calibrate` wrote."),
)  # fmt: skip


def model_options(function: F) -> F:
    """The options of `ModelOptions`, in its order."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def find_device(options: ModelOptions) -> Gpu:
    """The GPU of `--gpu`, with the bandwidth of `--hbm-gbps` where given."""
    from roundline.bandwidth.hardware import custom_gpu, find_gpu, parse_bandwidth

    if options.hbm_gbps is None:
        if options.gpu is None:
            raise UsageError("no GPU: give --gpu, or its bandwidth with --hbm-gbps")
        return find_gpu(options.gpu)
    bandwidth = parse_bandwidth(options.hbm_gbps)
    try:
        known = find_gpu(options.gpu or "")
    except UsageError:
        return custom_gpu(options.gpu or "unnamed GPU", bandwidth)
    return known.with_bandwidth(bandwidth)


def find_model(options: ModelOptions) -> Architecture:
    """The model in its weight format, with the separate draft where one is given."""
    from roundline.bandwidth.architecture import load_model
    from roundline.bandwidth.catalogue import load_draft
    from roundline.bandwidth.weight_formats import stored_as

    model = stored_as(load_model(options.model), options.weight_format, options.head_format)
    if options.draft_model is not None:
        model = replace(model, draft=load_draft(options.draft_model, model))
    if options.draft_vocab is not None and model.draft is not None:
        model = replace(model, draft=replace(model.draft, own_vocab=options.draft_vocab))
    return model


def workload_of(options: ModelOptions) -> Workload:
    """Batch, context, drafts and GPUs."""
    from roundline.bandwidth.shapes import Parallelism
    from roundline.bandwidth.workload import Workload

    return Workload(
        batch=options.batch, context=options.context, draft_steps=options.draft_steps,
        num_draft_tokens=options.num_draft_tokens,
        parallel=Parallelism(options.tp, options.ep, options.dp),
        drafter=options.drafter,
    )  # fmt: skip


def engine(options: ModelOptions) -> EngineSwitches:
    """The engine's defaults, changed where options say so."""
    from roundline.bandwidth.quantization import find_format
    from roundline.bandwidth.switches import engine_switches

    switches = engine_switches(options.engine)
    changes: dict[str, Any] = {"state_passes": options.state_passes}
    if options.kv_format:
        changes["kv_format"] = find_format(options.kv_format)
    if options.state_format:
        changes["state_format"] = find_format(options.state_format)
    if options.fc:
        changes["fc_replicated"] = options.fc == "replicated"
    if options.head:
        changes["head_replicated"] = options.head == "replicated"
    if options.sampling == "random" and switches.engine == "sglang":
        changes["sampling_broadcasts"] = 3
    return replace(switches, **changes)


def efficiency(options: ModelOptions, gpu: Gpu) -> Efficiency:
    """The profile's, else the defaults of the GPU's memory, changed where options say so."""
    from roundline.bandwidth.efficiency import default_efficiency

    base = _profile(options.profile).efficiency(gpu) if options.profile else default_efficiency(gpu)
    fractions = {
        "gemm": options.gemm_fraction,
        "gemm_unpacking": options.unpack_fraction,
        "stream": options.stream_fraction,
    }
    latencies = {
        "kernel_latency_ns": options.kernel_latency_us,
        "node_latency_ns": options.node_latency_us,
    }
    changes: dict[str, Any] = {k: Fraction(str(v)) for k, v in fractions.items() if v is not None}
    changes |= {k: round(1000 * v) for k, v in latencies.items() if v is not None}
    return replace(base, **changes)


def links(
    options: ModelOptions, gpu: Gpu, workload: Workload, switches: EngineSwitches
) -> LinkCosts | None:
    """Costs of the collectives, changed where options say so; None on one GPU."""
    from roundline.bandwidth.communication import choose_costs

    costs = choose_costs(
        gpu, workload.parallel.tp, switches.collective_kernel,
        link=options.link, kernel=options.collective,
    )  # fmt: skip
    if options.profile is not None:
        costs = _profile(options.profile).links(costs, workload.parallel.tp)
    if costs is None or (options.alpha_us is None and options.beta_us_per_kb is None):
        return costs
    changes: dict[str, Any] = {"source": "given by the user"}
    if options.alpha_us is not None:
        changes["alpha_ns"] = Fraction(str(options.alpha_us)) * 1000
    if options.beta_us_per_kb is not None:
        changes["beta_ns_per_byte"] = Fraction(str(options.beta_us_per_kb))
    return replace(costs, all_reduce=replace(costs.all_reduce, **changes), bulk=None)


def predict_round(options: ModelOptions) -> RoundFloor:
    """The prediction that the options ask for."""
    from roundline.bandwidth.round_floor import predict

    gpu, switches, workload = find_device(options), engine(options), workload_of(options)
    floor = predict(
        find_model(options), gpu, workload, switches,
        efficiency(options, gpu), links(options, gpu, workload, switches),
    )  # fmt: skip
    if options.profile is None:
        return floor
    sentence = _profile(options.profile).sentence(gpu, workload.parallel.tp)
    return replace(floor, assumptions=(*floor.assumptions, sentence))


@cache
def _profile(path: Path) -> Profile:
    from roundline.bandwidth.profile import read_profile

    return read_profile(path)
