"""Shapes of the simulated models: which layers a pass runs and which matrices it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from roundline.errors import UnknownNameError

Mixer = Literal["attention", "gdn", "mamba"]
WEIGHT_BYTES: Final = 2  # bf16


@dataclass(frozen=True)
class Matrix:
    """A weight matrix as one GPU reads it: `k` inputs, `n` outputs, `copies` read per use."""

    name: str
    k: int
    n: int
    copies: int = 1

    @property
    def size_bytes(self) -> int:
        """Bytes of one read."""
        return self.k * self.n * self.copies * WEIGHT_BYTES


@dataclass(frozen=True, kw_only=True)
class Attention:
    """A full-attention mixer; `gated` doubles the query projection by an output gate."""

    q_heads: int
    kv_heads: int
    head_dim: int
    gated: bool = False

    def qkv(self, hidden: int, tp: int) -> Matrix:
        """The fused projection; KV heads are replicated beyond their number."""
        kv_heads = max(self.kv_heads, tp) // tp
        q_heads = self.q_heads // tp * (2 if self.gated else 1)
        return Matrix("qkv", hidden, (q_heads + 2 * kv_heads) * self.head_dim)

    def output(self, hidden: int, tp: int) -> Matrix:
        """The output projection."""
        return Matrix("o", self.q_heads * self.head_dim // tp, hidden)

    def kv_bytes_per_token(self, tp: int) -> int:
        """Keys and values of one layer on one GPU."""
        return 2 * (max(self.kv_heads, tp) // tp) * self.head_dim * WEIGHT_BYTES


@dataclass(frozen=True, kw_only=True)
class LatentAttention:
    """Latent attention (MLA): one compressed KV vector for all heads, replicated over ranks."""

    heads: int
    q_rank: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    value_dim: int

    def compressions(self, hidden: int) -> Matrix:
        """Down-projections of queries and of keys and values, fused."""
        return Matrix("qkv_a", hidden, self.q_rank + self.kv_rank + self.rope_dim)

    def queries(self, tp: int) -> Matrix:
        """Up-projection of the queries."""
        return Matrix("q_b", self.q_rank, self.heads // tp * (self.nope_dim + self.rope_dim))

    def expansions(self, tp: int) -> tuple[Matrix, Matrix]:
        """Up-projections of keys and of values, each absorbed into a batched GEMM."""
        heads = self.heads // tp
        return (
            Matrix("kv_b", self.kv_rank, heads * self.nope_dim),
            Matrix("kv_b", self.kv_rank, heads * self.value_dim),
        )

    def output(self, hidden: int, tp: int) -> Matrix:
        """The output projection."""
        return Matrix("o", self.heads * self.value_dim // tp, hidden)

    def kv_bytes_per_token(self) -> int:
        """The compressed vector of one layer, the same on every GPU."""
        return (self.kv_rank + self.rope_dim) * WEIGHT_BYTES


@dataclass(frozen=True, kw_only=True)
class Mamba:
    """A Mamba-2 mixer with a state of heads x head_dim x state_dim in float32."""

    heads: int
    head_dim: int
    state_dim: int
    groups: int

    def inputs(self, hidden: int, tp: int) -> Matrix:
        """The fused projection of gate, input, B, C and step."""
        inner = self.heads * self.head_dim
        width = 2 * inner + 2 * self.groups * self.state_dim + self.heads
        return Matrix("ssm_in", hidden, width // tp)

    def output(self, hidden: int, tp: int) -> Matrix:
        """The output projection."""
        return Matrix("ssm_out", self.heads * self.head_dim // tp, hidden)

    def state_bytes(self, tp: int) -> int:
        """Recurrent state of one layer and one sequence on one GPU."""
        return self.heads * self.head_dim * self.state_dim * 4 // tp


@dataclass(frozen=True, kw_only=True)
class GatedDeltaNet:
    """A recurrent mixer with a state of v_heads x head_dim x head_dim in float32."""

    k_heads: int
    v_heads: int
    head_dim: int = 128

    def qkvz(self, hidden: int, tp: int) -> Matrix:
        """The fused projection of query, key, value and gate."""
        return Matrix(
            "in_proj_qkvz", hidden, 2 * (self.k_heads + self.v_heads) * self.head_dim // tp
        )

    def ba(self, hidden: int, tp: int) -> Matrix:
        """The projection of beta and decay."""
        return Matrix("in_proj_ba", hidden, 2 * self.v_heads // tp)

    def output(self, hidden: int, tp: int) -> Matrix:
        """The output projection."""
        return Matrix("gdn_out", self.v_heads * self.head_dim // tp, hidden)

    def state_bytes(self, tp: int) -> int:
        """Recurrent state of one layer and one sequence on one GPU."""
        return self.v_heads * self.head_dim * self.head_dim * 4 // tp


@dataclass(frozen=True, kw_only=True)
class Experts:
    """A sparse feed-forward block: `used` of `count` experts per token, maybe a shared one."""

    count: int
    used: int
    intermediate: int
    shared_intermediate: int = 0

    def distinct(self, tokens: int) -> int:
        """Experts that `tokens` tokens read under independent routing (at least `used`)."""
        missed = (1 - self.used / self.count) ** tokens
        return max(self.used, round(self.count * (1 - missed)))


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """A decoder: layers in order, what they are made of, and its head."""

    name: str
    hidden: int
    vocabulary: int
    layers: tuple[Mixer, ...]
    attention: Attention | LatentAttention
    gdn: GatedDeltaNet | None = None
    mamba: Mamba | None = None
    intermediate: int = 0
    experts: Experts | None = None
    qk_norm: bool = True
    has_mtp: bool = False

    def gate_up(self, tp: int) -> Matrix:
        """Fused gate and up projection of a dense feed-forward block."""
        return Matrix("gate_up", self.hidden, 2 * self.intermediate // tp)

    def down(self, tp: int) -> Matrix:
        """Down projection of a dense feed-forward block."""
        return Matrix("down", self.intermediate // tp, self.hidden)

    def lm_head(self, tp: int) -> Matrix:
        """Vocabulary projection."""
        return Matrix("lm_head", self.hidden, self.vocabulary // tp)

    def fc(self) -> Matrix:
        """MTP projection of embedding and hidden state; replicated on every rank."""
        return Matrix("fc", 2 * self.hidden, self.hidden)


def _hybrid(layers: int, every: int = 4) -> tuple[Mixer, ...]:
    return tuple("attention" if i % every == every - 1 else "gdn" for i in range(layers))


_SHAPES: Final = {
    shape.name: shape
    for shape in (
        ModelShape(
            name="qwen3.6-27b",
            hidden=5120,
            vocabulary=248_320,
            layers=_hybrid(64),
            attention=Attention(q_heads=24, kv_heads=4, head_dim=256, gated=True),
            gdn=GatedDeltaNet(k_heads=16, v_heads=48),
            intermediate=17_408,
            has_mtp=True,
        ),
        ModelShape(
            name="qwen3.5-4b",
            hidden=2560,
            vocabulary=248_320,
            layers=_hybrid(32),
            attention=Attention(q_heads=16, kv_heads=4, head_dim=256, gated=True),
            gdn=GatedDeltaNet(k_heads=16, v_heads=32),
            intermediate=9216,
            has_mtp=True,
        ),
        ModelShape(
            name="qwen3-0.6b",
            hidden=1024,
            vocabulary=151_936,
            layers=("attention",) * 28,
            attention=Attention(q_heads=16, kv_heads=8, head_dim=128),
            intermediate=3072,
        ),
        ModelShape(
            name="llama-3.2-1b",
            hidden=2048,
            vocabulary=128_256,
            layers=("attention",) * 16,
            attention=Attention(q_heads=32, kv_heads=8, head_dim=64),
            intermediate=8192,
            qk_norm=False,
        ),
        ModelShape(
            name="qwen3-8b",
            hidden=4096,
            vocabulary=151_936,
            layers=("attention",) * 36,
            attention=Attention(q_heads=32, kv_heads=8, head_dim=128),
            intermediate=12_288,
        ),
        ModelShape(
            name="llama-3.1-8b",
            hidden=4096,
            vocabulary=128_256,
            layers=("attention",) * 32,
            attention=Attention(q_heads=32, kv_heads=8, head_dim=128),
            intermediate=14_336,
            qk_norm=False,
        ),
        ModelShape(
            name="qwen3-30b-a3b",
            hidden=2048,
            vocabulary=151_936,
            layers=("attention",) * 48,
            attention=Attention(q_heads=32, kv_heads=4, head_dim=128),
            experts=Experts(count=128, used=8, intermediate=768),
        ),
        ModelShape(
            name="qwen3-next-80b-a3b",
            hidden=2048,
            vocabulary=151_936,
            layers=_hybrid(48),
            attention=Attention(q_heads=16, kv_heads=2, head_dim=256, gated=True),
            gdn=GatedDeltaNet(k_heads=16, v_heads=32),
            experts=Experts(count=512, used=10, intermediate=512, shared_intermediate=512),
            has_mtp=True,
        ),
        ModelShape(
            name="deepseek-v3-lite",
            hidden=2048,
            vocabulary=129_280,
            layers=("attention",) * 27,
            attention=LatentAttention(
                heads=16, q_rank=768, kv_rank=512, nope_dim=128, rope_dim=64, value_dim=128
            ),
            experts=Experts(count=64, used=6, intermediate=1408, shared_intermediate=2816),
            has_mtp=True,
        ),
        ModelShape(
            name="mamba-hybrid-8b",
            hidden=4096,
            vocabulary=131_072,
            layers=tuple("attention" if i % 8 == 4 else "mamba" for i in range(40)),
            attention=Attention(q_heads=32, kv_heads=8, head_dim=128),
            mamba=Mamba(heads=128, head_dim=64, state_dim=128, groups=8),
            intermediate=12_288,
            qk_norm=False,
        ),
    )
}
SHAPE_NAMES: Final = tuple(_SHAPES)


def shape_of(name: str) -> ModelShape:
    """The shape of the model called `name`.

    Raises:
        UnknownNameError: no such shape.
    """
    if name not in _SHAPES:
        raise UnknownNameError("model", name, _SHAPES, f"simulate knows {', '.join(_SHAPES)}")
    return _SHAPES[name]
