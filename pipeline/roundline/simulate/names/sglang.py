"""SGLang with FlashInfer: the kernels of its layers, drafts, verification and sampling."""

from __future__ import annotations

from typing import Final

from roundline.simulate.names import torch_names as t
from roundline.simulate.names.dialect import Dialect, Mode, Names
from roundline.simulate.names.gemm import GemmPicker
from roundline.simulate.ops import KernelName

_BF16: Final = "__nv_bfloat16"
_POINTERS: Final = f"{_BF16}*, {_BF16}*, {_BF16}*"
_NORM_ARGS: Final = f"({_POINTERS}, unsigned int, unsigned int, unsigned int, float, float)"
_VARIANT: Final = "flashinfer::DefaultAttention<false, false, false, false>"
_NO_ROPE: Final = "(flashinfer::PosEncodingMode)0"

_RMS_NORM: Final = KernelName(
    f"void flashinfer::norm::RMSNormKernel<8u, {_BF16}>{_NORM_ARGS}", "norm"
)
_ADD_RMS_NORM: Final = KernelName(
    f"void flashinfer::norm::FusedAddRMSNormKernel<8u, {_BF16}>{_NORM_ARGS}", "norm"
)
_ROPE: Final = KernelName(
    "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheEnhancedHeadParallelismKernel<false, "
    f"true, 64u, 8u, 8u, {_BF16}, long>({_BF16}*, {_BF16}*, {_BF16}*, {_BF16}*, {_BF16}*, "
    f"{_BF16}*, float*, long*, unsigned int, unsigned int, unsigned int, unsigned int, "
    "unsigned long, unsigned long, unsigned long, unsigned long)",
    "rope",
)
_STORE_KV: Final = KernelName(
    "void (anonymous namespace)::store_kv_cache_256x1<long>(unsigned long*, unsigned long*, "
    "long const*, unsigned long, unsigned long const*, unsigned long const*, unsigned long, "
    "unsigned long, unsigned long, unsigned long)",
    "kvcache",
)
_ACT: Final = KernelName(
    f"void flashinfer::activation::act_and_mul_kernel<{_BF16}, &(float silu<float>(float "
    f"const&))>({_BF16}*, {_BF16} const*, int)",
    "activation",
)
_PREFILL_ARGS: Final = f"{_NO_ROPE}, {_BF16}, {_BF16}, {_BF16}, float, int, {_VARIANT} >"
_PAGED_PREFILL: Final = KernelName(
    "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<"
    f"(flashinfer::MaskMode)1, 16u, 1u, 16u, 16u, 16u, 1u, 4u, {_PREFILL_ARGS}, PagedParams>"
    "(PagedParams)",
    "attention",
)
_RAGGED_PREFILL: Final = KernelName(
    "void flashinfer::BatchPrefillWithRaggedKVCacheKernel<flashinfer::KernelTraits<"
    f"(flashinfer::MaskMode)1, 128u, 2u, 2u, 16u, 16u, 4u, 1u, {_PREFILL_ARGS}, RaggedParams>"
    "(RaggedParams)",
    "attention",
)
_PAGED_DECODE: Final = KernelName(
    f"void flashinfer::BatchDecodeWithPagedKVCacheKernel<{_NO_ROPE}, 2u, 1u, 8u, 32u, 1u, 4u, "
    f"{_VARIANT}, Params>(Params)",
    "attention",
)
_LATENT_TRAITS: Final = (
    "Flash_fwd_kernel_traits_mla<576, 64, 64, 8, cutlass::bfloat16_t, cutlass::bfloat16_t, 512>"
)
_LATENT_ATTENTION: Final = KernelName(
    f"void flash::flash_fwd_splitkv_mla_kernel<{_LATENT_TRAITS}, false, flash::SharedStorageMLA<"
    f"{_LATENT_TRAITS} > >(flash::Flash_fwd_mla_params)",
    "attention",
)
_LATENT_COMBINE: Final = KernelName(
    "void flash::flash_fwd_splitkv_mla_combine_kernel<cutlass::bfloat16_t, float, long, 512, 32>"
    "(flash::Flash_fwd_mla_params)",
    "attention",
)
_LATENT_KV_WRITE: Final = t.triton("set_mla_kv_buffer_kernel", "kvcache")
_CUSTOM_ALL_REDUCE: Final = KernelName(
    f"void sglang::cross_device_reduce_1stage<{_BF16}, 2>(sglang::RankData*, "
    f"sglang::RankSignals, sglang::Signal*, {_BF16}*, int, int)",
    "collective",
)

ASSIGN_DRAFT_LOCS: Final = t.triton("assign_draft_cache_locs", "spec")
ASSIGN_EXTEND_LOCS: Final = t.triton("assign_extend_cache_locs", "spec")
DRAFT_KV_INDICES: Final = t.triton("generate_draft_decode_kv_indices", "attention")
KV_INDICES: Final = t.triton("create_flashinfer_kv_indices_triton", "attention")
FILL_BONUS: Final = t.triton("fill_bonus_tokens", "spec")
STATE_SCATTER: Final = t.triton("_fused_mamba_state_scatter_with_mask_kernel", "gdn")
RECONSTRUCT_TREE: Final = KernelName(
    "reconstructIndicesFromTreeMask(bool*, long*, long*, long*, long*, long*, int, int)", "spec"
)
BUILD_TREE: Final = KernelName(
    "build_tree_efficient(long*, int*, long*, bool*, long*, long*, long*, long*, int, int, int, "
    "int)",
    "spec",
)
VERIFY_GREEDY: Final = KernelName(
    "void VerifyTreeGreedy<int, long>(int*, int*, int*, long*, long*, long*, long*, long*, "
    "unsigned int, unsigned int, unsigned int)",
    "spec",
)
_CUB: Final = "cub::CUB_200802_SM_800_890_900_1000_1200"
_CUB_ARGS: Final = f"1024u, ({_CUB}::BlockScanAlgorithm)2, ({_CUB}::BlockReduceAlgorithm)2"
SOFTMAX: Final = KernelName(
    "void flashinfer::sampling::OnlineSoftmaxFusedKernel<1024u, 1u, float, false>"
    "(float*, float*, float*, float, unsigned int)",
    "sampling",
)
TOP_P_RENORM: Final = KernelName(
    f"void flashinfer::sampling::TopPRenormProbKernel<1024u, ({_CUB}::BlockReduceAlgorithm)2, "
    "2u, float>(float*, float*, float*, float, unsigned int)",
    "sampling",
)
VERIFY_SAMPLED: Final = KernelName(
    f"void flashinfer::sampling::TreeSpeculativeSamplingTargetOnly<{_CUB_ARGS}, 8u, true, float, "
    "int, long>(int*, int*, int*, long*, long*, long*, long*, float*, float*, float*, float*, "
    "unsigned int, unsigned int, unsigned int, unsigned int, float, float)",
    "spec",
)
SAMPLE_FROM_PROBABILITIES: Final = KernelName(
    f"void flashinfer::sampling::TopKTopPSamplingFromProbKernel<{_CUB_ARGS}, 8u, true, float, "
    "int>(float*, int*, float*, int*, float*, int, float, unsigned int, unsigned long, "
    "unsigned long)",
    "sampling",
)


def _attention(mode: Mode) -> Names:
    return {
        "decode": (_PAGED_DECODE,),
        "verify": (_PAGED_PREFILL,),
        "prefill": (_RAGGED_PREFILL,),
    }[mode]


def _gdn_prologue(mode: Mode) -> Names:
    split = t.triton("fused_qkvzba_split_reshape_cat_kernel", "gdn")
    conv = "_causal_conv1d_fwd_kernel" if mode == "prefill" else "_causal_conv1d_update_kernel"
    return (split, t.triton(conv, "gdn"))


def _recurrent(mode: Mode) -> Names:
    if mode != "prefill":
        return (t.triton("fused_sigmoid_gating_delta_rule_update_kernel", "gdn"),)
    chunked = (
        "fused_gdn_gating_kernel",
        "l2norm_fwd_kernel",
        "l2norm_fwd_kernel",
        "chunk_local_cumsum_scalar_kernel",
        "chunk_scaled_dot_kkt_fwd_kernel",
        "merge_16x16_to_64x64_inverse_kernel",
        "recompute_w_u_fwd_kernel",
        "chunk_gated_delta_rule_fwd_kernel_h_blockdim64",
        "chunk_fwd_kernel_o",
    )
    return tuple(t.triton(name, "gdn") for name in chunked)


def dialect(gemm: GemmPicker, *, custom_all_reduce: bool = True) -> Dialect:
    """SGLang's layers over the GEMMs of one GPU generation."""
    return Dialect(
        gemm=gemm,
        embedding=(t.GATHER_ROWS,),
        first_norm=(_RMS_NORM,),
        add_norm=(_ADD_RMS_NORM,),
        final_norm=(_ADD_RMS_NORM,),
        qk_norm=(_RMS_NORM, _RMS_NORM),
        rope=(_ROPE,),
        kv_write=(_STORE_KV,),
        attention=_attention,
        gate=(t.SIGMOID, t.MULTIPLY),
        activation=(_ACT,),
        all_reduce=_CUSTOM_ALL_REDUCE if custom_all_reduce else t.NCCL_ALL_REDUCE,
        all_gather=t.NCCL_ALL_GATHER,
        cast=(t.CAST_TO_FLOAT,),
        gdn_prologue=_gdn_prologue,
        recurrent=_recurrent,
        gated_norm=(t.triton("_layer_norm_fwd_1pass_kernel", "gdn"),),
        latent_attention=(_LATENT_ATTENTION, _LATENT_COMBINE),
        latent_kv_write=(_LATENT_KV_WRITE,),
        mamba_prologue=(t.triton("_causal_conv1d_update_kernel", "gdn"),),
        mamba=(t.triton("_selective_scan_update_kernel", "gdn"),),
        concatenate=(t.CONCATENATE,),
        route=(
            KernelName(
                f"void topkGatingSoftmax<{_BF16}, 4, 128, 4, 16>({_BF16} const*, bool const*, "
                f"float*, int, int*, int, int, int, bool, float, float const*)",
                "moe_routing",
            ),
            KernelName(
                "void moe_align_block_size_small_batch_expert_kernel<int, 256>(int const*, int*, "
                "int*, int*, int, int, unsigned long, bool, int)",
                "moe_routing",
            ),
        ),
        expert_gemm=(t.triton("fused_moe_kernel", "gemm"),),
        after_experts=(
            KernelName(
                "void moe_sum_reduce_warp_per_token_vec_kernel<8>(c10::BFloat16 const*, "
                "c10::BFloat16*, long, long, long, long, long, long, float)",
                "moe_routing",
            ),
        ),
        shared_gate=(t.SIGMOID, t.MULTIPLY),
    )
