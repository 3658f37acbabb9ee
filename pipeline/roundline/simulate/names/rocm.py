"""What ROCm builds run instead of CUDA-only kernels; over-long C++ names stay mangled there."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from roundline.simulate.names.dialect import Dialect, Mode, Names
from roundline.simulate.ops import KernelName

_NORM: Final = KernelName(
    "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_"
    "S4_diiiiiiib",
    "norm",
)
_ADD_NORM: Final = KernelName(
    "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_"
    "S4_diiiiiiib",
    "norm",
)
_ACT: Final = KernelName(
    "_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluIS2_ES3_"
    "S5_EEEEvPS3_PS4_i",
    "activation",
)
_ROPE: Final = KernelName(
    "void rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, "
    "c10::BFloat16*, c10::BFloat16 const*, int, long, long, long, int, int, int)",
    "rope",
)
_PAGED: Final = KernelName(
    "void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, __hip_bfloat16, "
    "(vllm::Fp8KVCacheDataType)0, 1, 256, 256, false, 6, 1, ck_tile::ComposedAttention<0u, false> "
    ">(__hip_bfloat16 const*, __hip_bfloat16 const*, __hip_bfloat16 const*, float, int const*)",
    "attention",
)
_PAGED_REDUCE: Final = KernelName(
    "void paged_attention_ll4mi_reduce_kernel<__hip_bfloat16, __hip_bfloat16, 256, 256, 256, 1, "
    "false>(__hip_bfloat16*, float const*, float const*, __hip_bfloat16 const*, int const*)",
    "attention",
)
_EXTEND: Final = KernelName("_fwd_kernel", "attention", "hipModuleLaunchKernel")
_ALL_REDUCE: Final = KernelName(
    "void aiter::cross_device_reduce_1stage<__hip_bfloat16, 2>(aiter::RankData*, "
    "aiter::RankSignals, aiter::Signal*, __hip_bfloat16*, int, int)",
    "collective",
)


def _attention(mode: Mode) -> Names:
    return (_PAGED, _PAGED_REDUCE) if mode == "decode" else (_EXTEND,)


def on_rocm(dialect: Dialect, *, custom_all_reduce: bool) -> Dialect:
    """The same engine built for AMD GPUs."""
    return replace(
        dialect,
        first_norm=(_NORM,),
        add_norm=(_ADD_NORM,),
        final_norm=(_ADD_NORM,),
        qk_norm=(_NORM, _NORM),
        rope=(_ROPE,),
        activation=(_ACT,),
        attention=_attention,
        all_reduce=_ALL_REDUCE if custom_all_reduce else dialect.all_reduce,
    )
