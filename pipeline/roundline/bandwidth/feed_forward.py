"""Feed-forward layers: dense, and mixtures of experts with their shared part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from roundline.bandwidth.shapes import (
    Linear,
    Parallelism,
    Part,
    Routing,
    Sharding,
    linear,
    split,
)


class FeedForward(Protocol):
    """What the model needs to know of a feed-forward layer; one sum over GPUs each."""

    def linears(self, parallel: Parallelism) -> tuple[Linear, ...]:
        """Its weight matrices on one GPU."""

    def vectors(self, parallel: Parallelism) -> int:
        """Parameters on one GPU outside the matrices."""

    def vectors_read(self, parallel: Parallelism, tokens: int) -> int:
        """Those that one pass over `tokens` tokens reads."""


@dataclass(frozen=True)
class Dense:
    """A plain MLP; `gated` has a gate beside the up projection (SwiGLU, GeGLU)."""

    hidden: int
    intermediate: int
    gated: bool = True
    bias: bool = False

    def linears(self, parallel: Parallelism) -> tuple[Linear, ...]:
        """gate_up (up where there is no gate) and down."""
        inner = split(self.intermediate, parallel.tp, "intermediate channels")
        return _pair(self.hidden, inner, self.gated, "", "mlp", "column", "row")

    def vectors(self, parallel: Parallelism) -> int:
        """Biases."""
        inner = split(self.intermediate, parallel.tp, "intermediate channels")
        return (inner * (1 + self.gated) + self.hidden) * self.bias

    def vectors_read(self, parallel: Parallelism, tokens: int) -> int:
        """All of them."""
        return self.vectors(parallel)


@dataclass(frozen=True)
class Experts:
    """A router, `experts` of which each token takes `per_token`, and shared experts.

    `latent` is the width that experts work in where it is not the hidden size (Nemotron 3 Super).
    """

    hidden: int
    intermediate: int
    experts: int
    per_token: int
    shared_intermediate: int = 0
    shared_gate: bool = False
    gated: bool = True
    router_bias: bool = False
    expert_bias: bool = False
    latent: int | None = None

    def linears(self, parallel: Parallelism) -> tuple[Linear, ...]:
        """router, expert_gate_up, expert_down, shared_gate_up, shared_down, shared_gate."""
        router = linear("router", self.hidden, "mlp.gate", self.experts, "replicated")
        return (router, *self._latent(), *self._routed(parallel), *self._shared(parallel))

    def vectors(self, parallel: Parallelism) -> int:
        """Biases of the router and of the experts, all resident."""
        resident = split(self.experts, parallel.ep, "experts", "ep")
        return self.experts * self.router_bias + resident * self._expert_vectors(parallel)

    def vectors_read(self, parallel: Parallelism, tokens: int) -> int:
        """The router's and those of the experts that the tokens reach."""
        touched = Routing(self.experts, self.per_token, parallel.ep).distinct(tokens)
        return self.experts * self.router_bias + round(touched * self._expert_vectors(parallel))

    def _expert_vectors(self, parallel: Parallelism) -> int:
        inner = split(self.intermediate, parallel.expert_tp, "expert channels")
        return (inner * (1 + self.gated) + (self.latent or self.hidden)) * self.expert_bias

    def _routed(self, parallel: Parallelism) -> tuple[Linear, ...]:
        inner = split(self.intermediate, parallel.expert_tp, "expert channels")
        width = self.latent or self.hidden
        routing = Routing(self.experts, self.per_token, parallel.ep)
        pair = _pair(width, inner, self.gated, "expert_", "mlp.experts.0", "expert", "expert")
        return tuple(
            Linear(m.name, m.k, m.parts, m.sharding, f"mlp.experts.{_last(m.fused)}", routing)
            for m in pair
        )

    def _shared(self, parallel: Parallelism) -> tuple[Linear, ...]:
        if not self.shared_intermediate:
            return ()
        inner = split(self.shared_intermediate, parallel.tp, "shared expert channels")
        module = "mlp.shared_expert" if self.shared_gate else "mlp.shared_experts"
        pair = _pair(self.hidden, inner, self.gated, "shared_", module, "column", "row")
        gate = linear("shared_gate", self.hidden, "mlp.shared_expert_gate", 1, "replicated")
        return (*pair, gate) if self.shared_gate else pair

    def _latent(self) -> tuple[Linear, ...]:
        if self.latent is None:
            return ()
        return (
            linear("latent_in", self.hidden, "mlp.fc1_latent_proj", self.latent, "replicated"),
            linear("latent_out", self.latent, "mlp.fc2_latent_proj", self.hidden, "replicated"),
        )


def _pair(
    hidden: int, inner: int, gated: bool, prefix: str, module: str, into: Sharding, out: Sharding
) -> tuple[Linear, Linear]:
    name, fused = (f"{prefix}gate_up", "gate_up_proj") if gated else (f"{prefix}up", "up_proj")
    gate = (Part(f"{module}.gate_proj", inner),) if gated else ()
    parts = (*gate, Part(f"{module}.up_proj", inner))
    down = linear(f"{prefix}down", inner, f"{module}.down_proj", hidden, out)
    return Linear(name, hidden, parts, into, f"{module}.{fused}"), down


def _last(module: str) -> str:
    return module.rsplit(".", 1)[-1]
