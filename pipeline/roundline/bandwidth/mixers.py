"""Token mixers: what they have in common, attention and latent attention.

Every mixer says what one GPU holds and touches when `tp` GPUs share it: its matrices, its other
parameters, the KV elements of one token and the recurrent elements of one sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from roundline.bandwidth.shapes import Linear, Part, linear, split, split_or_copy

MixerKind = Literal["attention", "gdn", "mamba", "conv"]


class Mixer(Protocol):
    """What the model needs to know of a token mixer."""

    @property
    def kind(self) -> MixerKind:
        """Its place in `Architecture.layer_types`."""

    @property
    def all_reduces(self) -> int:
        """Sums over GPUs that one pass needs."""

    @property
    def window(self) -> int | None:
        """Tokens that it can see; None for all, and for what has no KV cache."""

    def linears(self, tp: int) -> tuple[Linear, ...]:
        """Its weight matrices on one GPU."""

    def vectors(self, tp: int) -> int:
        """Parameters on one GPU outside the matrices: norms, biases, convolution."""

    def kv_elements(self, tp: int) -> int:
        """Cached elements per token on one GPU."""

    def state_elements(self, tp: int) -> int:
        """Recurrent elements per sequence on one GPU."""

    def conv_state_elements(self, tp: int) -> int:
        """Elements of the convolution's sliding inputs per sequence on one GPU."""


@dataclass(frozen=True)
class Attention:
    """Multi-head attention with grouped KV heads.

    `gated`: q_proj also yields an output gate and is doubled. `qk_norm`: a norm weight per head
    dimension ("head"), over the whole projection ("full"), or none. `input_copies`: projections
    read this many concatenated hidden vectors (2 in EAGLE-3).
    """

    hidden: int
    query_heads: int
    kv_heads: int
    head_dim: int
    gated: bool = False
    qk_norm: Literal["none", "head", "full"] = "none"
    qkv_bias: bool = False
    output_bias: bool = False
    sinks: bool = False
    window: int | None = None
    input_copies: int = 1

    kind: MixerKind = "attention"
    all_reduces: int = 1

    def linears(self, tp: int) -> tuple[Linear, ...]:
        """qkv (gate included) and o."""
        query, kv = self._query(tp), self._kv(tp)
        parts = (
            Part("self_attn.q_proj", query * (2 if self.gated else 1)),
            Part("self_attn.k_proj", kv),
            Part("self_attn.v_proj", kv),
        )
        fan_in = self.hidden * self.input_copies
        return (
            Linear("qkv", fan_in, parts, "column", "self_attn.qkv_proj"),
            linear("o", query, "self_attn.o_proj", self.hidden, "row"),
        )

    def vectors(self, tp: int) -> int:
        """Biases, query and key norms, sinks."""
        query, kv = self._query(tp), self._kv(tp)
        bias = (query * (2 if self.gated else 1) + 2 * kv) * self.qkv_bias
        norm = {"none": 0, "head": 2 * self.head_dim, "full": query + kv}[self.qk_norm]
        sinks = query // self.head_dim * self.sinks
        return bias + norm + sinks + self.hidden * self.output_bias

    def kv_elements(self, tp: int) -> int:
        """K and V of the heads that this GPU keeps."""
        return 2 * self._kv(tp)

    def state_elements(self, tp: int) -> int:
        """None: attention has a cache, no state."""
        return 0

    def conv_state_elements(self, tp: int) -> int:
        """None."""
        return 0

    def _query(self, tp: int) -> int:
        return split(self.query_heads, tp, "query heads") * self.head_dim

    def _kv(self, tp: int) -> int:
        return split_or_copy(self.kv_heads, tp, "KV heads") * self.head_dim


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek): one compressed KV vector for all heads.

    The compressed vector and the projections that make it are replicated on every GPU.
    """

    hidden: int
    heads: int
    query_rank: int | None
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int
    bias: bool = False

    kind: MixerKind = "attention"
    all_reduces: int = 1
    window: int | None = None

    def linears(self, tp: int) -> tuple[Linear, ...]:
        """q_a, q_b (or one q without compression), kv_a, kv_b, o."""
        heads = split(self.heads, tp, "query heads")
        query = heads * (self.nope_dim + self.rope_dim)
        up, values = heads * (self.nope_dim + self.value_dim), heads * self.value_dim
        compressed = self.kv_rank + self.rope_dim
        return (
            *self._query(query),
            linear("kv_a", self.hidden, "self_attn.kv_a_proj_with_mqa", compressed, "replicated"),
            linear("kv_b", self.kv_rank, "self_attn.kv_b_proj", up, "column"),
            linear("o", values, "self_attn.o_proj", self.hidden, "row"),
        )

    def _query(self, columns: int) -> tuple[Linear, ...]:
        if self.query_rank is None:
            return (linear("q", self.hidden, "self_attn.q_proj", columns, "column"),)
        return (
            linear("q_a", self.hidden, "self_attn.q_a_proj", self.query_rank, "replicated"),
            linear("q_b", self.query_rank, "self_attn.q_b_proj", columns, "column"),
        )

    def vectors(self, tp: int) -> int:
        """Norms of the two compressed vectors; biases of the down projections and of o."""
        rank = self.query_rank or 0
        bias = (rank + self.kv_rank + self.rope_dim + self.hidden) * self.bias
        return rank + self.kv_rank + bias

    def kv_elements(self, tp: int) -> int:
        """The compressed vector, the same on every GPU."""
        return self.kv_rank + self.rope_dim

    def state_elements(self, tp: int) -> int:
        """None."""
        return 0

    def conv_state_elements(self, tp: int) -> int:
        """None."""
        return 0
