"""What a what-if changes, and the predicted round with exactly that changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Final, cast, get_args

from roundline.bandwidth.architecture import Architecture
from roundline.bandwidth.communication import (
    CollectiveCost,
    Kernel,
    Link,
    LinkCosts,
    choose_costs,
)
from roundline.bandwidth.hardware import Gpu
from roundline.bandwidth.prediction import RoundFloor
from roundline.bandwidth.round_floor import predict
from roundline.bandwidth.weight_formats import stored_as
from roundline.bandwidth.workload import Workload
from roundline.errors import UsageError

GIVEN: Final = "given by the user"  # the source of a cost that comes from an option


@dataclass(frozen=True)
class Changes:
    """The named changes; None leaves a thing as it is.

    `all_reduce_ns` is what one all-reduce takes, whatever its size. `draft_format` keeps or
    changes the drafts' weights where `weight_format` is meant for the target alone. `idle_ms` is
    the idle time of a round: no model predicts it, so it changes only when it is named.
    """

    gpu: Gpu | None = None
    tp: int | None = None
    link: Link | None = None
    collective: Kernel | None = None
    all_reduce_ns: int | None = None
    draft_steps: int | None = None
    draft_vocab: int | None = None
    weight_format: str | None = None
    head_format: str | None = None
    draft_format: str | None = None
    context: int | None = None
    batch: int | None = None
    idle_ms: float | None = None

    def names(self) -> tuple[str, ...]:
        """What is named, in the order of the fields."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name) is not None)

    def rewires(self, floor: RoundFloor) -> bool:
        """True where the collectives need other costs than those of `floor`."""
        moves = self.tp is not None and self.tp != floor.workload.parallel.tp
        return moves or self.link is not None or self.collective is not None


def base_of(floor: RoundFloor, changes: Changes, seen: Kernel | None) -> RoundFloor:
    """The predicted round from which `changes` start.

    A table of public measurements says how collectives change. It must be that of the kernel in
    the capture, and the same on both sides where the links themselves change.
    """
    if floor.links is None:
        return floor
    kernel = seen or _kernel_of(floor.links)
    differs = kernel != _kernel_of(floor.links) and floor.links.all_reduce.source != GIVEN
    if not differs and not changes.rewires(floor):
        return floor
    tp, link = floor.workload.parallel.tp, _link_of(floor.links)
    links = choose_costs(floor.gpu, tp, kernel, link=link, kernel=kernel)
    return _repriced(floor, links=links)


def changed(base: RoundFloor, changes: Changes) -> RoundFloor:
    """The predicted round of `base` with the changes and nothing else; efficiencies are kept.

    Raises:
        UsageError: a change is impossible for this model.
    """
    gpu = changes.gpu or base.gpu
    workload = _workload(base.workload, changes)
    return _repriced(
        base,
        model=_model(base.model, changes),
        gpu=gpu,
        workload=workload,
        links=_links(base, changes, gpu, workload.parallel.tp),
    )


def _repriced(
    floor: RoundFloor,
    *,
    links: LinkCosts | None,
    model: Architecture | None = None,
    gpu: Gpu | None = None,
    workload: Workload | None = None,
) -> RoundFloor:
    return predict(
        model or floor.model, gpu or floor.gpu, workload or floor.workload, floor.switches,
        floor.efficiency, links,
    )  # fmt: skip


def _model(model: Architecture, changes: Changes) -> Architecture:
    stored = model
    if changes.weight_format or changes.head_format:
        stored = stored_as(model, changes.weight_format, changes.head_format)
    if changes.draft_format:
        stored = replace(stored, draft=stored_as(model, changes.draft_format).draft)
    if changes.draft_vocab is None:
        return stored
    if stored.draft is None:
        raise UsageError(f"{model.name} has no draft layer, so its draft has no vocabulary")
    return replace(stored, draft=replace(stored.draft, own_vocab=changes.draft_vocab))


def _workload(workload: Workload, changes: Changes) -> Workload:
    parts: dict[str, Any] = {
        name: value
        for name in ("draft_steps", "context", "batch")
        if (value := getattr(changes, name)) is not None
    }
    if parts.get("draft_steps", workload.draft_steps) != workload.draft_steps:
        parts["num_draft_tokens"] = None  # another number of steps drafts a chain
    if changes.tp is not None:
        parts["parallel"] = replace(workload.parallel, tp=changes.tp)
    return replace(workload, **parts)


def _links(base: RoundFloor, changes: Changes, gpu: Gpu, tp: int) -> LinkCosts | None:
    links = base.links
    if changes.rewires(base):
        link = changes.link or (_link_of(links) if links else None)
        preferred = _kernel_of(links) if links else base.switches.collective_kernel
        links = choose_costs(gpu, tp, preferred, link=link, kernel=changes.collective)
    if changes.all_reduce_ns is None:
        return links
    if links is None:
        raise UsageError("one GPU has no all-reduce to change: give --to-tp too")
    given = replace(
        links.all_reduce, alpha_ns=Fraction(changes.all_reduce_ns), beta_ns_per_byte=Fraction(0),
        source=GIVEN,
    )  # fmt: skip
    return replace(links, all_reduce=given, bulk=None)


def _link_of(links: LinkCosts) -> Link | None:
    link = links.all_reduce.link
    return cast("Link", link) if link in get_args(Link) else None


def _kernel_of(links: LinkCosts) -> Kernel:
    return "custom" if links.all_reduce.kernel == "custom" else "nccl"


def describe(changes: Changes, before: RoundFloor, after: RoundFloor) -> tuple[str, ...]:
    """Each named change as `what: from -> to`."""
    return tuple(_sentences(changes, before, after))


def _sentences(changes: Changes, before: RoundFloor, after: RoundFloor) -> Iterator[str]:
    for name in changes.names():
        if name == "all_reduce_ns":
            yield f"all-reduce: {(changes.all_reduce_ns or 0) / 1000:g} us each"
        elif name == "idle_ms":
            yield f"idle: {changes.idle_ms:g} ms a round"
        else:
            old, new = _value(name, before), _value(name, after)
            yield f"{name.replace('_', ' ')}: {old} -> {new}"


def _value(name: str, floor: RoundFloor) -> str:
    workload = floor.workload
    if name == "gpu":
        return f"{floor.gpu.device_names[0]} ({float(floor.gpu.hbm_gbps):g} GB/s)"
    if name == "tp":
        return str(workload.parallel.tp)
    if name in ("link", "collective"):
        return _cost(floor.links.all_reduce) if floor.links else "none"
    if name in ("draft_steps", "context", "batch"):
        return str(getattr(workload, name))
    if name == "draft_vocab":
        draft = floor.model.draft
        return str((draft and draft.own_vocab) or floor.model.vocab)
    return _formats(name, floor)


def _cost(cost: CollectiveCost) -> str:
    alpha, beta = float(cost.alpha_ns) / 1000, float(cost.beta_ns_per_byte)
    return f"{cost.kernel} over {cost.link}, {alpha:.1f} us + {beta:.3g} us/KB"


def _formats(name: str, floor: RoundFloor) -> str:
    """Formats of the GEMMs that the change of that name is about."""
    module = "draft" if name == "draft_format" else "target"
    stored = [
        m.format for m in floor.matrices
        if m.module == module and (m.name == "lm_head") == (name == "head_format")
    ]  # fmt: skip
    return "+".join(dict.fromkeys(stored)) or "none"
