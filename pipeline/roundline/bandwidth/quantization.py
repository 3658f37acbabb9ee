"""Bytes per stored weight, scales and zero points included, as exact fractions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from roundline.errors import UnknownNameError, UsageError


@dataclass(frozen=True)
class WeightFormat:
    """How one weight matrix is stored.

    `bits` counts everything that is read per weight. `group` is the number of input columns that
    share a scale (None: one scale per tensor or channel, too few bytes to count). `unpacks` is
    true where a kernel must unpack several weights from a byte, which costs bandwidth.
    """

    name: str
    bits: Fraction
    group: int | None = None
    unpacks: bool = False

    def bytes_of(self, weights: int) -> int:
        """Bytes of `weights` weights, rounded up to a whole byte."""
        return -int(-weights * self.bits // 8)


@dataclass(frozen=True)
class Tensor:
    """One weight tensor of a checkpoint, as an exclude list or a recipe sees it.

    `path` and `fused_path` are module names ("model.layers.3.mlp.gate_proj" and the name of the
    fused matrix that holds it); `matrix` is Roundline's name; `layer` counts decoder layers and
    is None outside them. `is_draft` marks the multi-token-prediction module.
    """

    path: str
    fused_path: str
    matrix: str
    columns_in: int
    layer: int | None = None
    layers: int = 0
    is_draft: bool = False


FormatOf = Callable[[Tensor], WeightFormat]

# What nearly every checkpoint format keeps at full precision: a wrong route costs more than the
# few bytes saved, and of an embedding only a few rows are read.
FULL_PRECISION: Final = frozenset({"router", "shared_gate", "embedding"})


def _plain(name: str, bits: int) -> WeightFormat:
    return WeightFormat(name, Fraction(bits))


def block_float8(rows: int = 128, columns: int = 128) -> WeightFormat:
    """FP8 with one float32 scale per block of rows x columns."""
    bits = 8 + Fraction(32, rows * columns)
    return WeightFormat(f"fp8_block{rows}x{columns}", bits, columns)


def grouped(
    name: str, bits: int, group: int, scale_bits: int = 16, zero_bits: int = 0
) -> WeightFormat:
    """`bits`-bit integers or floats with a scale, and perhaps a zero point, per group."""
    if group < 1:
        raise UsageError(f"group_size {group}: a group holds at least one weight")
    return WeightFormat(
        name, bits + Fraction(scale_bits + zero_bits, group), group, unpacks=bits < 8
    )


def _gguf(name: str, block: int, block_bytes: int) -> WeightFormat:
    return WeightFormat(name, Fraction(8 * block_bytes, block), block, unpacks=block_bytes < block)


# Block sizes and bytes of ggml's type traits (ggml-common.h).
GGUF_TYPES: Final = {
    name: _gguf(name, block, block_bytes)
    for name, block, block_bytes in (
        ("q4_0", 32, 18), ("q4_1", 32, 20), ("q5_0", 32, 22), ("q5_1", 32, 24),
        ("q8_0", 32, 34), ("q8_1", 32, 36), ("iq4_nl", 32, 18), ("mxfp4_gguf", 32, 17),
        ("q2_k", 256, 84), ("q3_k", 256, 110), ("q4_k", 256, 144), ("q5_k", 256, 176),
        ("q6_k", 256, 210), ("q8_k", 256, 292), ("iq1_s", 256, 50), ("iq1_m", 256, 56),
        ("iq2_xxs", 256, 66), ("iq2_xs", 256, 74), ("iq2_s", 256, 82), ("iq3_xxs", 256, 98),
        ("iq3_s", 256, 110), ("iq4_xs", 256, 136), ("tq1_0", 256, 54), ("tq2_0", 256, 66),
    )
}  # fmt: skip

FORMATS: Final[dict[str, WeightFormat]] = {
    "fp32": _plain("fp32", 32),
    "bf16": _plain("bf16", 16),
    "fp16": _plain("fp16", 16),
    "fp8": _plain("fp8", 8),
    "fp8_block128x128": block_float8(),
    "int8": _plain("int8", 8),
    "int8_g32": grouped("int8_g32", 8, 32),
    "int8_g128": grouped("int8_g128", 8, 128),
    "int4": WeightFormat("int4", Fraction(4), unpacks=True),
    # AWQ and GPTQ pack a zero point beside the fp16 scale; symmetric packing has the scale alone.
    "int4_g32": grouped("int4_g32", 4, 32, zero_bits=16),
    "int4_g64": grouped("int4_g64", 4, 64, zero_bits=4),
    "int4_g128": grouped("int4_g128", 4, 128, zero_bits=4),
    "int4_g32_sym": grouped("int4_g32_sym", 4, 32),
    "int4_g64_sym": grouped("int4_g64_sym", 4, 64),
    "int4_g128_sym": grouped("int4_g128_sym", 4, 128),
    "nvfp4": grouped("nvfp4", 4, 16, scale_bits=8),
    "mxfp4": grouped("mxfp4", 4, 32, scale_bits=8),
    "mxfp8": grouped("mxfp8", 8, 32, scale_bits=8),
    "nf4": grouped("nf4", 4, 64, scale_bits=32),
    **GGUF_TYPES,
}

_ALIASES: Final = {
    "float32": "fp32", "f32": "fp32", "float": "fp32", "bfloat16": "bf16", "float16": "fp16",
    "f16": "fp16", "half": "fp16", "float8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "fp8_block": "fp8_block128x128",
    "w8a8": "int8", "w4a16": "int4_g128", "awq": "int4_g128", "gptq": "int4_g128",
    "int4_awq": "int4_g128", "int4_gptq": "int4_g128", "fp4": "nvfp4",
}  # fmt: skip


def find_format(name: str) -> WeightFormat:
    """The format called `name`, in any case and with `-` or `_`.

    Beside the registry: `intB_gN` for any group, and `4.65bpw` for a mixture whose mean is known.

    Raises:
        UnknownNameError: nobody knows it.
    """
    plain = _normal(name)
    found = FORMATS.get(_ALIASES.get(plain, plain)) or _parametrised(plain)
    if found is None:
        advice = f"known are {', '.join(FORMATS)}, and a mean such as 4.65bpw"
        raise UnknownNameError("weight format", name, FORMATS, advice)
    return found


def _parametrised(name: str) -> WeightFormat | None:
    if mean := re.fullmatch(r"(\d+(?:\.\d+)?)_?(?:bpw|bits?)", name):
        bits = Fraction(mean[1])
        return WeightFormat(f"{mean[1]}bpw", bits, unpacks=bits < 8) if bits else None
    if groups := re.fullmatch(r"int([2-8])_g(\d+)(_sym)?", name):
        bits_each = int(groups[1])
        return grouped(name, bits_each, int(groups[2]), zero_bits=0 if groups[3] else bits_each)
    return None


def _normal(name: str) -> str:
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    plain = plain.removeprefix("torch.").removesuffix("_gguf") if plain != "mxfp4_gguf" else plain
    return plain.replace("group", "g")


def uniform(body: WeightFormat, head: WeightFormat, full: WeightFormat) -> FormatOf:
    """One format for every GEMM, another for lm_head; routers stay at full precision."""

    def format_of(tensor: Tensor) -> WeightFormat:
        if tensor.matrix in FULL_PRECISION:
            return full
        return head if tensor.matrix == "lm_head" else body

    return format_of
