"""llama.cpp's CUDA backend with 8-bit weights: every GEMM quantises its input first."""

from __future__ import annotations

from typing import Final

from roundline.simulate.names.dialect import Dialect, Mode, Names
from roundline.simulate.ops import KernelName
from roundline.simulate.shapes import Matrix

_NORM: Final = KernelName(
    "void rms_norm_f32<1024, true, false>(float const*, float*, int, long, long, long, float, "
    "float const*, long, long, long, uint3, uint3, uint3, uint3)",
    "norm",
)
_ADD: Final = KernelName(
    "void k_bin_bcast<&(op_add(float, float)), float, float, float>(float const*, float const*, "
    "float*, int, int, int, uint3, uint3, uint3, uint3, uint3, int, int, int, int, int, int)",
    "elementwise",
)
_GATE: Final = KernelName(
    "void unary_gated_op_kernel<&(ggml_cuda_op_sigmoid_single(float)), float>(float const*, "
    "float const*, float*, long, long, long, long)",
    "activation",
)
_SILU: Final = KernelName(
    "void unary_gated_op_kernel<&(ggml_cuda_op_silu_single(float)), float>(float const*, float "
    "const*, float*, long, long, long, long)",
    "activation",
)
_ROPE: Final = KernelName(
    "void rope_neox<true, false, float, float>(float const*, float*, int, int, int, int, int, "
    "int const*, float, float, float, rope_corr_dims, float, float const*, long const*, int)",
    "rope",
)
_SET_ROWS: Final = KernelName(
    "void k_set_rows<float, long, __half>(float const*, long const*, __half*, long, long, long, "
    "long, long, long, long, long, long, long, long, long, long)",
    "kvcache",
)
_QUANTIZE: Final = KernelName(
    "quantize_q8_1(float const*, void*, long, long, long, long, long, unsigned int, unsigned int)",
    "quantize",
)
_GET_ROWS: Final = KernelName(
    "void k_get_rows_float<float, float>(float const*, int const*, float*, long, long, long, "
    "long, long, long, long, long, long, long)",
    "embedding",
)
_CONCAT: Final = KernelName(
    "void concat_f32_dim0(float const*, float const*, float*, int, int)", "copy"
)
_COMBINE: Final = KernelName(
    "void flash_attn_combine_results<256>(float const*, float2 const*, float*, int)", "attention"
)
_MMQ: Final = KernelName(
    "void mul_mat_q<(ggml_type)8, 128, false>(char const*, int const*, int const*, int const*, "
    "float*, float*, int, int, int, int, int, int, int, int, int, int, int, int, int, int, int)",
    "gemm",
)


def _gemm(rows: int, _matrix: Matrix) -> Names:
    if rows > 8:
        return (_MMQ,)
    return (
        KernelName(
            f"void mul_mat_vec_q<(ggml_type)8, {rows}, false, false>(void const*, void const*, int "
            "const*, ggml_cuda_mm_fusion_args_device, float*, unsigned int, uint3, unsigned int, "
            "unsigned int, unsigned int, uint3, unsigned int, unsigned int, unsigned int, uint3, "
            "unsigned int, unsigned int, unsigned int)",
            "gemm",
        ),
    )


def _attention(mode: Mode) -> Names:
    if mode == "decode":
        name = "void flash_attn_ext_vec<256, 1, (ggml_type)1, (ggml_type)1, false>(char const*)"
        return (KernelName(name, "attention"), _COMBINE)
    name = "void flash_attn_ext_f16<256, 256, 8, 4, false, false>(char const*, char const*)"
    return (KernelName(name, "attention"), _COMBINE)


def _gdn_prologue(_mode: Mode) -> Names:
    conv = "void ssm_conv_f32<128, 4>(float const*, float const*, int, int, int, float*, int)"
    norm = "void l2_norm_f32<32>(float const*, float*, int, long, long, long, float)"
    return (KernelName(conv, "gdn"), KernelName(norm, "gdn"), KernelName(norm, "gdn"))


def _recurrent(_mode: Mode) -> Names:
    name = "void gated_delta_net_cuda<128, false>(float const*, float const*, float const*, float*)"
    return (KernelName(name, "gdn"),)


def dialect() -> Dialect:
    """llama.cpp's layers; one GPU, so nothing is exchanged."""
    nothing = KernelName("ggml_cuda_ar_kernel", "collective")
    return Dialect(
        gemm=_gemm,
        before_gemm=(_QUANTIZE,),
        embedding=(_GET_ROWS,),
        first_norm=(_NORM,),
        add_norm=(_ADD, _NORM),
        final_norm=(_ADD, _NORM),
        qk_norm=(_NORM, _NORM),
        rope=(_ROPE, _ROPE),
        kv_write=(_SET_ROWS, _SET_ROWS),
        attention=_attention,
        gate=(_GATE,),
        activation=(_SILU,),
        all_reduce=nothing,
        all_gather=nothing,
        cast=(),
        gdn_prologue=_gdn_prologue,
        recurrent=_recurrent,
        gated_norm=(_NORM, _GATE),
        concatenate=(_CONCAT,),
    )
