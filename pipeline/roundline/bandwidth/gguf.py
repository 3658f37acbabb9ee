"""What llama.cpp's quantiser stores: a file type mixes formats by tensor and by layer.

The rules are those of `llama_tensor_get_type` in llama.cpp without an importance matrix.
"""

from __future__ import annotations

from typing import Final

from roundline.bandwidth.quantization import (
    FORMATS,
    FULL_PRECISION,
    FormatOf,
    Tensor,
    WeightFormat,
)

# file type -> format of a tensor that no rule names
FILE_TYPES: Final = {
    "q2_k": "q2_k", "q3_k_s": "q3_k", "q3_k_m": "q3_k", "q3_k_l": "q3_k",
    "q4_k_s": "q4_k", "q4_k_m": "q4_k", "q5_k_s": "q5_k", "q5_k_m": "q5_k", "q6_k": "q6_k",
    "q4_0": "q4_0", "q4_1": "q4_1", "q5_0": "q5_0", "q5_1": "q5_1", "q8_0": "q8_0",
    "iq4_nl": "iq4_nl", "iq4_xs": "iq4_xs",
}  # fmt: skip

# A row that 256 does not divide cannot be a k-quant and falls back to blocks of 32.
_FALLBACK: Final = {
    "q2_k": "iq4_nl", "q3_k": "iq4_nl", "iq4_xs": "iq4_nl", "q4_k": "q5_0", "q5_k": "q5_1",
    "q6_k": "q8_0",
}  # fmt: skip


def is_file_type(name: str) -> bool:
    """True for names such as Q4_K_M that stand for a mixture."""
    return _normal(name) in FILE_TYPES


def recipe(name: str, query_groups: int, experts: int, is_llama_70b: bool) -> FormatOf:
    """Formats by tensor of the file type `name`.

    Args:
        name: file type, such as Q4_K_M.
        query_groups: query heads per KV head.
        experts: routed experts, 0 for a dense model.
        is_llama_70b: 80 layers of grouped attention, which llama.cpp treats apart.
    """
    file_type = _normal(name)

    def format_of(tensor: Tensor) -> WeightFormat:
        if tensor.matrix in FULL_PRECISION - {"embedding"}:
            return FORMATS["fp32"]
        stored = _stored(file_type, tensor, query_groups, experts, is_llama_70b)
        fits = tensor.columns_in % (FORMATS[stored].group or 1) == 0
        return FORMATS[stored if fits else _FALLBACK.get(stored, "fp16")]

    return format_of


def _stored(file_type: str, tensor: Tensor, groups: int, experts: int, is_70b: bool) -> str:
    default = FILE_TYPES[file_type]
    last = tensor.path.rsplit(".", 1)[-1]
    if tensor.matrix == "lm_head":
        return default if default == "q8_0" else "q6_k"
    if tensor.layer is None:
        return default
    if last == "v_proj":
        return _value(file_type, default, tensor, groups, experts, is_70b)
    if last == "k_proj" and experts == 8:
        return "q8_0"
    if last == "down_proj":
        return _down(file_type, default, tensor)
    if last == "o_proj":
        return _output(file_type, default, experts)
    if last == "qkv_proj":
        return {"q3_k_m": "q4_k", "q3_k_l": "q4_k", "q4_k_m": "q5_k", "q5_k_m": "q6_k"}.get(
            file_type, default
        )
    return default


def _value(
    file_type: str, default: str, tensor: Tensor, groups: int, experts: int, is_70b: bool
) -> str:
    layer = tensor.layer or 0
    stored = default
    if file_type == "q2_k":
        stored = "q4_k" if groups >= 4 else "q3_k"
    elif file_type == "q3_k_m":
        stored = "q5_k" if layer < 2 else "q4_k"
    elif file_type == "q3_k_l" or (file_type in ("iq4_nl", "iq4_xs") and groups >= 4):
        stored = "q5_k"
    elif file_type in ("q4_k_m", "q5_k_m") and _gets_more_bits(tensor):
        stored = "q6_k"
    elif file_type == "q4_k_s" and layer < 4:
        stored = "q5_k"
    if is_70b and stored in ("q3_k", "q4_k"):
        stored = "q5_k"
    return "q8_0" if experts == 8 else stored


def _down(file_type: str, default: str, tensor: Tensor) -> str:
    layer = tensor.layer or 0
    if file_type == "q2_k":
        return "q3_k"
    if file_type == "q3_k_m":
        return "q5_k" if layer < tensor.layers // 16 else "q4_k"
    if file_type == "q3_k_l":
        return "q5_k"
    if file_type in ("q4_k_m", "q5_k_m") and _gets_more_bits(tensor):
        return "q6_k"
    if file_type == "q4_k_s" and layer < tensor.layers // 8:
        return "q5_k"
    return default


def _output(file_type: str, default: str, experts: int) -> str:
    if experts == 8:
        small = file_type.startswith(("q2_k", "q3_k_s", "q3_k_m", "q4_k", "iq4"))
        return "q5_k" if small else default
    return {"q2_k": "q3_k", "q3_k_m": "q4_k", "q3_k_l": "q5_k"}.get(file_type, default)


def _gets_more_bits(tensor: Tensor) -> bool:
    """The first and last eighth of the layers and every third between."""
    layer, eighth = tensor.layer or 0, tensor.layers // 8
    return layer < eighth or layer >= 7 * tensor.layers // 8 or (layer - eighth) % 3 == 2


def _normal(name: str) -> str:
    return name.strip().lower().replace("-", "_").removesuffix("_gguf").removesuffix(" gguf")
