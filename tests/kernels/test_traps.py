"""Names that mislead: a word in them points at the wrong class."""

from __future__ import annotations

import pytest
from classifier import classify

REDUCE = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::{}<float> > >"
)

TRAPS = {
    # a reduction in PyTorch is no collective
    REDUCE.format("MeanOps"): "reduction",
    REDUCE.format("ArgMaxOps"): "sampling",
    # the second kernel of a split operation belongs to the first
    "void cublasLt::splitKreduce_kernel<32, 16, int, float>(x)": "gemm",
    "void mul_mat_q_stream_k_fixup<(ggml_type)8, 16, false>(x)": "gemm",
    "_reduce_block_fp8_split_k": "gemm",
    "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<float> > >(x)": "gemm",
    "void reduce_1Block_kernel<float, 128, 7, cublasGemvTensor<float> >(x)": "gemm",
    # an activation in the name of a GEMM is its epilogue
    "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8": "gemm",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_gelu_kernel": "gemm",
    # CUTLASS launches everything
    "void cutlass::device_kernel<flash::FlashAttnFwdSm90<int> >(T1::Params)": "attention",
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int> >(T1::Params)": "gemm",
    "kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__t": "norm",
    "kernel_cutlass_kernel_flash_attncuteflash_fwdFlashAttentionForwardSm90_object": "attention",
    "kernel_cutlass_kernel___main__PersistentDenseGemmKernel_object_at__TiledMMA": "gemm",
    "void cutlass::Kernel<cutlass::gemm::kernel::DefaultFmhaGrouped<int> >(T1)": "attention",
    "void cutlass::Kernel<cutlass::reduction::kernel::ReduceSplitK<int> >(T1::Params)": "gemm",
    "void ck_tile::kentry<2, ck_tile::gfx9_t, ck_tile::FmhaFwdKernel<int> >(x)": "attention",
    "_ZN5flash24flash_fwd_splitkv_kernelI23Flash_fwd_kernel_traitsILi128E": "attention",
    "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_9ArgMaxOpsIfEEE": "sampling",
    "_ZL13mul_mat_vec_qIL9ggml_type12ELi1ELb0EEvPKvS2_PKiPfjjjjjj": "gemm",
    # Inductor names the producers of a fused kernel as well
    "triton_red_fused__to_copy_add_marlin_gemm_mean_mul_pow_rsqrt_2": "norm",
    "triton_poi_fused_marlin_gemm_mul_silu_slice_1": "activation",
    "triton_poi_fused_add_all_reduce_bitwise_and_embedding_ge_lt_masked_fill_mul_1": "embedding",
    "triton_poi_fused_0": "unclassified",
    # one word, several trades
    "void deep_gemm::sm90_tf32_hc_prenorm_gemm_impl<24u>(x)": "gemm",
    "void deep_gemm::sm90_fp8_paged_mqa_logits<1u, 64u>(x)": "attention",
    "_layer_norm_fwd_1pass_kernel": "gdn",
    "l2norm_fwd_kernel": "gdn",
    "_fwd_kernel": "attention",
    "_fwd_kernel_ep_gather": "moe_routing",
    "_fwd_kv_parallel": "gdn",
    "void flash::prepare_varlen_num_blocks_kernel<4, false>(x)": "attention",
    "create_flashinfer_kv_indices_triton": "attention",
    "_gemma_rmsnorm_kernel": "norm",
    "void flashinfer::norm::RMSNormKernel<16u, __nv_bfloat16>(x)": "norm",
    "void hadacore::hadamard_transform_kernel<1l>(x)": "quantize",
    "void at::native::elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<int> >(x)": (
        "elementwise"
    ),
    "gemm_draft_extend": "gemm",
    "gemm_verify": "gemm",
    "draft_attention_kernel": "attention",
    "ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(x)": "collective",
    # near misses of collectives
    "cross_entropy_loss_f32": "unclassified",
    "void at::native::(anonymous namespace)::cross_kernel<float>(x)": "elementwise",
    "void FusedAddRMSNorm<float>(x)": "norm",
    "void allreduce_fusion_kernel_oneshot_lamport<__nv_bfloat16, 2>(x)": "collective",
    "one_shot_all_reduce_norm_kernel": "collective",
    "cross_attention_kernel": "attention",
    "broadcast_add_kernel": "elementwise",
    "void fbgemm_gpu::quantizeQKVPerHead<float>(x)": "quantize",
    # what is done goes before what it is for
    "void tensorrt_llm::kernels::updateSparseKvCacheAfterFmha<float, 128>(x)": "kvcache",
    "kv_cache_rope_append": "rope",
    "flash_attn_rope_fwd_kernel": "attention",
    "fused_gemm_silu_mul_kernel": "gemm",
    "attn_out_proj_gemm": "gemm",
    "_wan_rmsnorm_silu_kernel": "norm",
    "scale_activations_per_token_kernel": "quantize",
    # probes, load time, and copies printed as kernels
    "nopClusterDiscoveryTool": "unclassified",
    "nopHardwareDetection": "unclassified",
    "void cub::EmptyKernel<void>()": "unclassified",
    "void marlin::awq_marlin_repack_kernel<256, 4>(x)": "weight_prep",
    "void machete::prepack_B_kernel<128>(x)": "weight_prep",
    "__amd_rocclr_copyBuffer": "memcpy",
    "__amd_rocclr_fillBufferAligned": "memset",
    # names that say nothing
    "device_kernel": "unclassified",
    "Kernel2": "unclassified",
    "kernel": "unclassified",
    "void softmax_warp_forward<float, float, float, 9, false, false>(x)": "unclassified",
    "saxpy(int, float, float*, float*)": "unclassified",
    "property_kernel": "unclassified",
    "": "unclassified",
}

# What the attribution reads from subcategories.
ROLES = {
    "_causal_conv1d_update_kernel": "conv",
    "fused_recurrent_gated_delta_rule_fwd_kernel": "recurrent",
    "chunk_gated_delta_rule_fwd_kernel_h_blockdim64": "chunk",
    "kda_decode_fusion_many_heads_kernel": "kda_recurrent",
    "_fused_mamba_state_scatter_with_mask_kernel": "state_commit",
    "_layer_norm_fwd_1pass_kernel": "norm_gated",
    "_fwd_kernel_stage2": "combine",
    "get_mla_metadata_kernel": "metadata",
    "void splitKreduce_kernel<32, 16, int>(x)": "splitk_reduce",
    "void router_gemm_kernel_bf16_output<128>(x)": "router",
    "gate_up_gemm_kernel": "gemm",
    "fused_moe_kernel": "moe_gemm",
    "build_tree_efficient": "tree_build",
    "void VerifyTreeGreedy<int, long>(x)": "verify",
    "rejection_greedy_sample_kernel": "rejection",
    "_draft_topk1_finalize_kernel": "draft_topk",
    "fill_bonus_tokens": "bookkeeping",
    "assign_draft_cache_locs": "draft_cache_locs",
    "void mul_mat_vec_q<(ggml_type)8, 1, false, false>(x)": "ggml_mmvq",
    "ncclDevKernel_AllGather_RING_LL(x)": "nccl_allgather",
    "ncclDevKernel_Broadcast_RING_LL(x)": "nccl_broadcast",
}


def test_traps() -> None:
    """Each misleading name gets the class of what it does, or none."""
    names = list(TRAPS)
    assert {c.name: c.category for c in classify(names)} == TRAPS


def test_roles() -> None:
    """The kinds of kernels that rounds and matrices are found by are told apart."""
    assert {c.name: c.subcategory for c in classify(list(ROLES))} == ROLES


HOSTILE = [
    "x" * 20_000,
    "(" * 20_000,
    ")" * 20_000,
    "<" * 20_000,
    "void " * 5_000,
    "std::enable_if<" * 2_000,
    "a" * 10_000 + "gemm" + "(b<c" * 2_000,
    "_ZN" + "9" * 20_000,
    "at::native::" * 2_000,
    "triton_poi_fused_" + "add_" * 5_000 + "0",
    "gemm'; DROP TABLE names; --",
    'gemm"<script>alert(1)</script>',
    "gemm\n\n\tkernel\r\n",
    "gemm[.*+?^${}()|\\",
    "\\1\\2$1(?i)",
    "gemm\u0000kernel",
    "内核_gemm_été",
    "   ",
]


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name[:20]))
def test_hostile_names_are_only_names(name: str) -> None:
    """A name of any length and content gets one class, and what it says decides."""
    (given,) = classify([name])
    assert given.name == name
    assert given.category == ("gemm" if "gemm" in name[:4_000] else given.category)
    assert len(given.normal_name) <= 4_100


def test_the_end_of_an_endless_name_is_not_read() -> None:
    """What a name says after four thousand characters does not count."""
    (given,) = classify(["x" * 4_000 + "gemm"])
    assert given.category == "unclassified"
