"""Recurrent token mixers: gated delta net, Mamba, short convolution. See `mixers.Mixer`."""

from __future__ import annotations

from dataclasses import dataclass

from roundline.bandwidth.mixers import MixerKind
from roundline.bandwidth.shapes import Linear, Part, linear, split, split_or_copy


@dataclass(frozen=True)
class GatedDeltaNet:
    """Gated delta net of Qwen3-Next, 3.5 and 3.6: a matrix of state per value head."""

    hidden: int
    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int

    kind: MixerKind = "gdn"
    all_reduces: int = 1
    window: int | None = None

    def linears(self, tp: int) -> tuple[Linear, ...]:
        """in_proj_qkvz, in_proj_ba, gdn_out."""
        values, heads = self._values(tp), split(self.value_heads, tp, "value heads")
        names = ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a")
        columns = (self._conv_channels(tp), values, heads, heads)
        parts = tuple(Part(f"linear_attn.{n}", c) for n, c in zip(names, columns, strict=True))
        qkvz = Linear("in_proj_qkvz", self.hidden, parts[:2], "column", "linear_attn.in_proj_qkvz")
        ba = Linear("in_proj_ba", self.hidden, parts[2:], "column", "linear_attn.in_proj_ba")
        return (qkvz, ba, linear("gdn_out", values, "linear_attn.out_proj", self.hidden, "row"))

    def vectors(self, tp: int) -> int:
        """Convolution, A_log, dt_bias and the gated norm."""
        heads = split(self.value_heads, tp, "value heads")
        return self._conv_channels(tp) * self.conv_kernel + 2 * heads + self.value_dim

    def kv_elements(self, tp: int) -> int:
        """None: the state does not grow with context."""
        return 0

    def state_elements(self, tp: int) -> int:
        """A key_dim x value_dim matrix per value head."""
        return split(self.value_heads, tp, "value heads") * self.key_dim * self.value_dim

    def conv_state_elements(self, tp: int) -> int:
        """The last kernel - 1 inputs."""
        return self._conv_channels(tp) * (self.conv_kernel - 1)

    def _values(self, tp: int) -> int:
        return split(self.value_heads, tp, "value heads") * self.value_dim

    def _conv_channels(self, tp: int) -> int:
        keys = split(self.key_heads, tp, "key heads") * self.key_dim
        return 2 * keys + self._values(tp)


@dataclass(frozen=True)
class Mamba2:
    """Mamba-2 (Bamba, Granite 4, Falcon-H1, Nemotron-H): head_dim x state_dim per head."""

    hidden: int
    heads: int
    head_dim: int
    state_dim: int
    groups: int
    conv_kernel: int
    conv_bias: bool = True
    proj_bias: bool = False
    gated_norm: bool = True

    kind: MixerKind = "mamba"
    all_reduces: int = 1
    window: int | None = None

    def linears(self, tp: int) -> tuple[Linear, ...]:
        """ssm_in (gate, inputs, B, C and time steps) and ssm_out."""
        inner = self._heads(tp) * self.head_dim
        columns = inner + self._conv_channels(tp) + self._heads(tp)
        return (
            linear("ssm_in", self.hidden, "mamba.in_proj", columns, "column"),
            linear("ssm_out", inner, "mamba.out_proj", self.hidden, "row"),
        )

    def vectors(self, tp: int) -> int:
        """Convolution, A_log, D, dt_bias, the gated norm and biases."""
        heads, channels = self._heads(tp), self._conv_channels(tp)
        inner = heads * self.head_dim
        bias = (inner + channels + heads + self.hidden) * self.proj_bias
        conv = channels * (self.conv_kernel + self.conv_bias)
        return conv + 3 * heads + inner * self.gated_norm + bias

    def kv_elements(self, tp: int) -> int:
        """None: the state does not grow with context."""
        return 0

    def state_elements(self, tp: int) -> int:
        """A head_dim x state_dim matrix per head."""
        return self._heads(tp) * self.head_dim * self.state_dim

    def conv_state_elements(self, tp: int) -> int:
        """The last kernel - 1 inputs."""
        return self._conv_channels(tp) * (self.conv_kernel - 1)

    def _heads(self, tp: int) -> int:
        return split(self.heads, tp, "mamba heads")

    def _conv_channels(self, tp: int) -> int:
        groups = split_or_copy(self.groups, tp, "mamba groups")
        return self._heads(tp) * self.head_dim + 2 * groups * self.state_dim


@dataclass(frozen=True)
class Mamba1:
    """Mamba (Jamba): state_dim elements per inner channel; x_proj needs a sum of its own."""

    hidden: int
    inner: int
    state_dim: int
    rank: int
    conv_kernel: int
    conv_bias: bool = True
    proj_bias: bool = False
    inner_norms: bool = False

    kind: MixerKind = "mamba"
    all_reduces: int = 2
    window: int | None = None

    def linears(self, tp: int) -> tuple[Linear, ...]:
        """ssm_in, ssm_x, ssm_dt and ssm_out."""
        inner = self._inner(tp)
        selective = self.rank + 2 * self.state_dim
        return (
            linear("ssm_in", self.hidden, "mamba.in_proj", 2 * inner, "column"),
            linear("ssm_x", inner, "mamba.x_proj", selective, "row"),
            linear("ssm_dt", self.rank, "mamba.dt_proj", inner, "column"),
            linear("ssm_out", inner, "mamba.out_proj", self.hidden, "row"),
        )

    def vectors(self, tp: int) -> int:
        """Convolution, A_log, D, the bias of dt and optional norms and biases."""
        inner = self._inner(tp)
        norms = (self.rank + 2 * self.state_dim) * self.inner_norms
        bias = (2 * inner + self.hidden) * self.proj_bias
        per_channel = self.conv_kernel + self.conv_bias + self.state_dim + 2
        return inner * per_channel + norms + bias

    def kv_elements(self, tp: int) -> int:
        """None: the state does not grow with context."""
        return 0

    def state_elements(self, tp: int) -> int:
        """state_dim per inner channel."""
        return self._inner(tp) * self.state_dim

    def conv_state_elements(self, tp: int) -> int:
        """The last kernel - 1 inputs."""
        return self._inner(tp) * (self.conv_kernel - 1)

    def _inner(self, tp: int) -> int:
        return split(self.inner, tp, "mamba channels")


@dataclass(frozen=True)
class ShortConv:
    """Gated short convolution (LFM2): three input streams, no state beyond the convolution's."""

    hidden: int
    conv_kernel: int
    bias: bool = False

    kind: MixerKind = "conv"
    all_reduces: int = 1
    window: int | None = None

    def linears(self, tp: int) -> tuple[Linear, ...]:
        """conv_in and conv_out."""
        inner = split(self.hidden, tp, "convolution channels")
        return (
            linear("conv_in", self.hidden, "conv.in_proj", 3 * inner, "column"),
            linear("conv_out", inner, "conv.out_proj", self.hidden, "row"),
        )

    def vectors(self, tp: int) -> int:
        """The convolution and optional biases."""
        inner = split(self.hidden, tp, "convolution channels")
        return inner * self.conv_kernel + (4 * inner + self.hidden) * self.bias

    def kv_elements(self, tp: int) -> int:
        """None."""
        return 0

    def state_elements(self, tp: int) -> int:
        """None."""
        return 0

    def conv_state_elements(self, tp: int) -> int:
        """The last kernel - 1 inputs."""
        return split(self.hidden, tp, "convolution channels") * (self.conv_kernel - 1)
