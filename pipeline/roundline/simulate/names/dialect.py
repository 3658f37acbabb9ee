"""The kernels that an engine runs for each part of a forward pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from roundline.simulate.names.gemm import GemmPicker
from roundline.simulate.ops import KernelName

Mode = Literal["decode", "verify", "prefill"]
Names = tuple[KernelName, ...]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One engine on one GPU generation. Tuples run in order; an empty tuple is fused elsewhere.

    Attributes:
        before_gemm: what precedes every weight GEMM (the quantisation of its input).
        first_norm: norm of the first layer, which has no residual to add.
        add_norm: residual add and norm between blocks.
        qk: from the projection to the attention: query and key norms, rotary embedding.
        attention: the attention of a pass by mode.
        gate: output gate of a gated attention.
        activation: between gate_up and down.
        gdn_prologue: between the input projections and the recurrence.
        recurrent: the recurrence by mode.
        latent_attention: attention over the compressed cache of latent attention.
        latent_kv_write: its cache write.
        mamba_prologue: between the input projection and the state update of a Mamba layer.
        mamba: its state update.
        route: expert routing after the router GEMM.
        after_experts: combination of expert outputs.
        cast: from bf16 logits to float.
    """

    gemm: GemmPicker
    embedding: Names
    first_norm: Names
    add_norm: Names
    final_norm: Names
    qk_norm: Names
    rope: Names
    kv_write: Names
    attention: Callable[[Mode], Names]
    gate: Names
    activation: Names
    all_reduce: KernelName
    all_gather: KernelName
    cast: Names
    gdn_prologue: Callable[[Mode], Names]
    recurrent: Callable[[Mode], Names]
    gated_norm: Names
    concatenate: Names
    before_gemm: Names = field(default=())
    latent_attention: Names = field(default=())
    latent_kv_write: Names = field(default=())
    mamba_prologue: Names = field(default=())
    mamba: Names = field(default=())
    route: Names = field(default=())
    expert_gemm: Names = field(default=())
    after_experts: Names = field(default=())
    shared_gate: Names = field(default=())
