"""What an engine asks for: operations on the GPU, and steps of the host that launches them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from roundline.simulate.timeline import Anchor, Phase, RangeKind

MAIN_LANE = 0
SIDE_LANE = 1


@dataclass(frozen=True, slots=True)
class KernelName:
    """A kernel as torch traces spell it, what it does, and the API call that launches it."""

    name: str
    category: str
    api: str = "cudaLaunchKernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One kernel, copy or fill.

    Attributes:
        duration_ns: time it takes alone; for a collective, once every rank has arrived.
        lane: stream, by role; an op off the main lane forks from it, `joins` waits for it.
        overlap_ns: how long before the end of its predecessor it starts (programmatic
            dependent launch).
    """

    name: str
    category: str
    duration_ns: int
    kind: Literal["kernel", "memcpy", "memset"] = "kernel"
    phase: Phase = "other"
    draft_step: int | None = None
    matrix: str | None = None
    layer: int | None = None
    api: str = "cudaLaunchKernel"
    lane: int = MAIN_LANE
    joins: bool = False
    overlap_ns: int = 0
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    size_bytes: int = 0
    copy_kind: Literal["HtoD", "DtoH", "DtoD"] | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    """The next activity starts a round."""

    anchor: Anchor


@dataclass(frozen=True, slots=True)
class Eager:
    """One API call that launches one op; `python_ns` passes on the host before it."""

    op: Op
    python_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """One graph launch; `graph` names the executable graph over all of its replays."""

    graph: str
    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Sync:
    """The host waits until the GPU has nothing left to do."""

    api: str = "cudaStreamSynchronize"


@dataclass(frozen=True, slots=True)
class Work:
    """The host computes; `label` is the CPU operator that a torch trace shows for it."""

    duration_ns: int
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Open:
    """A range opens on the launching thread."""

    name: str
    kind: RangeKind = "annotation"


@dataclass(frozen=True, slots=True)
class Close:
    """The innermost range closes."""


@dataclass(frozen=True, slots=True)
class Flush:
    """The profiler holds the launching thread up."""

    duration_ns: int
    kind: str = "Buffer Flush"


Step = Begin | Eager | Replay | Sync | Work | Open | Close | Flush


def in_phase(ops: Iterable[Op], phase: Phase, draft_step: int | None = None) -> tuple[Op, ...]:
    """The same ops as part of one phase of the round."""
    return tuple(replace(op, phase=phase, draft_step=draft_step) for op in ops)


def eagerly(ops: Iterable[Op]) -> list[Step]:
    """One launch for each op."""
    return [Eager(op) for op in ops]


def copy(kind: Literal["HtoD", "DtoH", "DtoD"], size_bytes: int, *, phase: Phase = "other") -> Op:
    """A copy by the copy engine at PCIe speed within the host, at memory speed within the GPU."""
    speed = 300 if kind == "DtoD" else 12  # bytes per ns
    return Op(
        name=f"memcpy {kind}",
        category="memcpy",
        kind="memcpy",
        duration_ns=1_000 + size_bytes // speed,
        phase=phase,
        api="cudaMemcpyAsync",
        size_bytes=size_bytes,
        copy_kind=kind,
    )


def fill(size_bytes: int, *, phase: Phase = "other") -> Op:
    """A fill by the copy engine."""
    return Op(
        name="memset",
        category="memset",
        kind="memset",
        duration_ns=900 + size_bytes // 300,
        phase=phase,
        api="cudaMemsetAsync",
        size_bytes=size_bytes,
    )
