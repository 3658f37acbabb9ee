"""The same model stored in another weight format."""

from __future__ import annotations

from roundline.bandwidth import gguf
from roundline.bandwidth.architecture import Architecture
from roundline.bandwidth.feed_forward import Experts
from roundline.bandwidth.mixers import Attention
from roundline.bandwidth.quantization import FormatOf, Tensor, WeightFormat, find_format, uniform


def stored_as(
    model: Architecture, weight_format: str | None, head_format: str | None = None
) -> Architecture:
    """`model` with its weights in `weight_format` (None: as its config says).

    A GGUF file type (Q4_K_M, Q4_0 ...) mixes formats as llama.cpp's quantiser does. Any other
    format holds for every GEMM but routers, lm_head included unless `head_format` is given.

    Raises:
        UnknownNameError: a format that nobody knows.
    """
    if weight_format is None:
        format_of = model.format_of
    elif gguf.is_file_type(weight_format):
        format_of = _recipe(model, weight_format)
    else:
        body = find_format(weight_format)
        format_of = uniform(body, body, model.weight_format)
    if head_format is not None:
        format_of = _with_head(format_of, find_format(head_format))
    return model.with_formats(format_of, model.weight_format)


def _with_head(format_of: FormatOf, head: WeightFormat) -> FormatOf:
    def headed(tensor: Tensor) -> WeightFormat:
        return head if tensor.matrix == "lm_head" else format_of(tensor)

    return headed


def _recipe(model: Architecture, file_type: str) -> FormatOf:
    attention = [m for x in model.layers for m in x.mixers if isinstance(m, Attention)]
    groups = attention[0].query_heads // attention[0].kv_heads if attention else 1
    experts = [f.experts for x in model.layers if isinstance(f := x.feed_forward, Experts)]
    is_llama_70b = len(model.layers) == 80 and groups > 1
    return gguf.recipe(file_type, groups, max(experts, default=0), is_llama_70b)
