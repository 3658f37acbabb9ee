"""What a prediction rests on, in sentences that a reader can check."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from roundline.bandwidth.architecture import Architecture, WeightMatrix
from roundline.bandwidth.communication import CollectiveCost, LinkCosts
from roundline.bandwidth.hardware import Gpu
from roundline.bandwidth.mixers import Attention
from roundline.bandwidth.shapes import Parallelism
from roundline.bandwidth.switches import EngineSwitches
from roundline.bandwidth.workload import Workload


def sentences(
    model: Architecture,
    gpu: Gpu,
    workload: Workload,
    switches: EngineSwitches,
    links: LinkCosts | None,
    matrices: tuple[WeightMatrix, ...],
    needed_bytes: int,
    state_passes: int,
    ridge: Fraction | None,
) -> Iterator[str]:
    """One sentence per assumption, the model's own notes first.

    `needed_bytes` is what one GPU must hold, `ridge` the tokens above which GEMMs compute longer
    than they read.
    """
    yield from model.notes
    yield f"weights are stored as {', '.join(_formats(matrices))}"
    if any(mixer.kind in ("gdn", "mamba") for layer in model.layers for mixer in layer.mixers):
        yield f"each recurrent state is read or written {state_passes} times a round"
    yield from _parallel(model, switches, links, workload.parallel)
    if any(matrix.routing for matrix in matrices):
        yield "experts are chosen independently and evenly: a real router touches fewer"
    if gpu.memory_bytes and needed_bytes > gpu.memory_bytes:
        yield (
            f"{needed_bytes / 1e9:.1f} GB of weights and caches do not fit the "
            f"{float(gpu.memory_gb):g} GB of one GPU"
        )
    if ridge is not None and workload.verify_rows > ridge:
        yield (
            f"{workload.verify_rows} rows a pass are above the ridge of {float(ridge):.0f}: large "
            "GEMMs are bound by compute, which expected times contain and floors do not"
        )
    if gpu.confidence == "user" and gpu.note:
        yield gpu.note
    if gpu.confidence == "low":
        yield f"the bandwidth of {gpu.device_names[0]} is of low confidence: {gpu.note}"


def _formats(matrices: tuple[WeightMatrix, ...]) -> Iterator[str]:
    names: dict[str, list[str]] = {}
    for matrix in matrices:
        names.setdefault(matrix.format, []).append(matrix.name)
    for stored, holders in names.items():
        yield stored if len(names) == 1 else f"{stored} ({', '.join(dict.fromkeys(holders))})"


def _parallel(
    model: Architecture, switches: EngineSwitches, links: LinkCosts | None, parallel: Parallelism
) -> Iterator[str]:
    if links is None:
        return
    yield f"an all-reduce costs {_cost(links.all_reduce)}"
    yield f"an all-gather costs {_cost(links.all_gather)}"
    heads = {m.kv_heads for x in model.layers for m in x.mixers if isinstance(m, Attention)}
    if heads and parallel.attention_tp > min(heads):
        yield f"KV heads are duplicated: {parallel.attention_tp} GPUs share {min(heads)} of them"
    if parallel.dp > 1 or parallel.ep > 1:
        yield "exchanges of attention groups and experts are counted as all-reduces"
    if switches.engine == "llama.cpp":
        yield (
            "this is llama.cpp's row split; by layers, its default, GPUs work one after the other: "
            "use --tp 1"
        )


def _cost(cost: CollectiveCost) -> str:
    return (
        f"{float(cost.alpha_ns) / 1000:.1f} us + {float(cost.beta_ns_per_byte):.3f} us/KB "
        f"({cost.kernel} over {cost.link}; {cost.source})"
    )
