"""vLLM V1 with FlashAttention: its layers, its rejection sampler, its draft bookkeeping."""

from __future__ import annotations

from typing import Final

from roundline.simulate.names import torch_names as t
from roundline.simulate.names.dialect import Dialect, Mode, Names
from roundline.simulate.names.gemm import GemmPicker
from roundline.simulate.ops import KernelName

_BF16: Final = "c10::BFloat16"
_RMS_NORM: Final = KernelName(
    f"void vllm::rms_norm_kernel<{_BF16}, 8, 2, true>({_BF16}*, {_BF16} const*, long, long, "
    f"long, long, long, {_BF16} const*, long, float, int, int)",
    "norm",
)
_ADD_RMS_NORM: Final = KernelName(
    f"std::enable_if<((8)>(0))&&vllm::_typeConvert<{_BF16}>::exists, void>::type "
    f"vllm::fused_add_rms_norm_kernel<{_BF16}, 8, false>({_BF16}*, long, {_BF16}*, "
    f"{_BF16} const*, float, int, int, long)",
    "norm",
)
_ROPE: Final = KernelName(
    f"void vllm::rotary_embedding_kernel<{_BF16}, {_BF16}, true>(long const*, {_BF16}*, "
    f"{_BF16}*, {_BF16} const*, int, long, long, long, int, int, int, long, bool)",
    "rope",
)
_KV_WRITE: Final = KernelName(
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, "
    "(vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*, __nv_bfloat16 const*, __nv_bfloat16*, "
    "__nv_bfloat16*, long const*, long, long, long, long, long, int, int, int, float const*, "
    "float const*, int)",
    "kvcache",
)
_ACT: Final = KernelName(
    f"void vllm::act_and_mul_kernel<{_BF16}, __nv_bfloat162, &({_BF16} "
    f"vllm::silu_kernel<{_BF16}>({_BF16} const&)), &(__nv_bfloat162 "
    "vllm::packed_silu_kernel<__nv_bfloat162>(__nv_bfloat162 const&)), true, true, false, "
    f"false>({_BF16}*, {_BF16} const*, int)",
    "activation",
)
_TRAITS: Final = (
    "Flash_fwd_kernel_traits<256, 64, 64, 4, false, false, cutlass::bfloat16_t, "
    "Flash_kernel_traits<256, 64, 64, 4, cutlass::bfloat16_t> >"
)
_SPLIT_KV: Final = KernelName(
    f"void flash::flash_fwd_splitkv_kernel<{_TRAITS}, false, false, false, false, true, false, "
    "true, false>(flash::Flash_fwd_params)",
    "attention",
)
_SPLIT_KV_COMBINE: Final = KernelName(
    f"void flash::flash_fwd_splitkv_combine_kernel<{_TRAITS}, 4, 4, true>(flash::Flash_fwd_params)",
    "attention",
)
_LATENT_ATTENTION: Final = KernelName(
    "void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaMlaKernelTmaWarpspecialized<"
    "cute::tuple<cute::C<128>, cute::C<128>, cute::tuple<cute::C<512>, cute::C<64> > >, "
    "cutlass::bfloat16_t, float, cutlass::bfloat16_t, float> >(int)",
    "attention",
)
_LATENT_COMBINE: Final = KernelName(
    "void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaMlaReductionKernel<"
    "cutlass::bfloat16_t, float, float, 128ul, 512ul, 256> >(int)",
    "attention",
)
_LATENT_KV_WRITE: Final = KernelName(
    "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, __nv_bfloat16, "
    "(vllm::Fp8KVCacheDataType)0, false>(__nv_bfloat16 const*, __nv_bfloat16 const*, "
    "__nv_bfloat16*, long const*, int, int, int, int, int, int, int, float const*)",
    "kvcache",
)
_CUSTOM_ALL_REDUCE: Final = KernelName(
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, "
    "vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)",
    "collective",
)

SLOT_MAPPINGS: Final = t.triton("_compute_slot_mappings_kernel", "attention")
STEP_METADATA: Final = t.triton("eagle_step_slot_mapping_metadata_kernel", "spec")
PREPARE_INPUTS: Final = t.triton("eagle_prepare_inputs_padded_kernel", "spec")
PREPARE_NEXT_TOKEN: Final = t.triton("eagle_prepare_next_token_padded_kernel", "spec")
REJECTION_GREEDY: Final = t.triton("rejection_greedy_sample_kernel", "spec")
EXPAND: Final = t.triton("expand_kernel", "spec")
RECOVERED: Final = t.triton("sample_recovered_tokens_kernel", "spec")
REJECTION_RANDOM: Final = t.triton("rejection_random_sample_kernel", "spec")


def _attention(mode: Mode) -> Names:
    return (_SPLIT_KV, _SPLIT_KV_COMBINE) if mode != "prefill" else (_SPLIT_KV,)


def _gdn_prologue(mode: Mode) -> Names:
    conv = "_causal_conv1d_fwd_kernel" if mode == "prefill" else "_causal_conv1d_update_kernel"
    return (t.triton(conv, "gdn"),)


def _recurrent(mode: Mode) -> Names:
    if mode == "prefill":
        names = ("chunk_local_cumsum_scalar_kernel", "chunk_gated_delta_rule_fwd_kkt_solve_kernel")
        return tuple(t.triton(name, "gdn") for name in (*names, "chunk_fwd_kernel_o"))
    if mode == "decode":
        return (t.triton("fused_recurrent_gated_delta_rule_packed_decode_kernel", "gdn"),)
    return (t.triton("fused_sigmoid_gating_delta_rule_update_kernel", "gdn"),)


def dialect(gemm: GemmPicker, *, custom_all_reduce: bool = True) -> Dialect:
    """vLLM's layers over the GEMMs of one GPU generation."""
    return Dialect(
        gemm=gemm,
        embedding=(t.GATHER_ROWS,),
        first_norm=(_RMS_NORM,),
        add_norm=(_ADD_RMS_NORM,),
        final_norm=(_ADD_RMS_NORM,),
        qk_norm=(_RMS_NORM, _RMS_NORM),
        rope=(_ROPE,),
        kv_write=(_KV_WRITE,),
        attention=_attention,
        gate=(t.SIGMOID, t.MULTIPLY),
        activation=(_ACT,),
        all_reduce=_CUSTOM_ALL_REDUCE if custom_all_reduce else t.NCCL_ALL_REDUCE,
        all_gather=t.NCCL_ALL_GATHER,
        cast=(t.CAST_TO_FLOAT,),
        gdn_prologue=_gdn_prologue,
        recurrent=_recurrent,
        gated_norm=(t.triton("layer_norm_fwd_kernel", "gdn"),),
        latent_attention=(_LATENT_ATTENTION, _LATENT_COMBINE),
        latent_kv_write=(_LATENT_KV_WRITE,),
        mamba_prologue=(t.triton("_causal_conv1d_update_kernel", "gdn"),),
        mamba=(t.triton("_selective_scan_update_kernel", "gdn"),),
        concatenate=(t.CONCATENATE,),
        route=(
            KernelName(
                "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, 32, int, __nv_bfloat16>"
                "(__nv_bfloat16 const*, bool const*, float*, int, int*, int*, int, int, int, "
                "bool)",
                "moe_routing",
            ),
            KernelName(
                "void vllm::moe::moe_align_block_size_small_batch_expert_kernel<int>(int const*, "
                "int*, int*, int*, int, int, unsigned long, int)",
                "moe_routing",
            ),
        ),
        expert_gemm=(t.triton("fused_moe_kernel", "gemm"),),
        after_experts=(
            KernelName(
                f"void vllm::moe::moe_sum_kernel<{_BF16}, 8>({_BF16}*, {_BF16} const*, int)",
                "moe_routing",
            ),
        ),
        shared_gate=(t.SIGMOID, t.MULTIPLY),
    )
