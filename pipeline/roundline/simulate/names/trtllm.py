"""TensorRT-LLM's PyTorch flow: its layers and its multi-token prediction."""

from __future__ import annotations

from typing import Final

from roundline.simulate.names import torch_names as t
from roundline.simulate.names.dialect import Dialect, Mode, Names
from roundline.simulate.names.gemm import GemmPicker
from roundline.simulate.ops import KernelName

_SPACE: Final = "tensorrt_llm::kernels"
_BF16: Final = "__nv_bfloat16"
_NORM: Final = KernelName(
    f"void flashinfer::norm::RMSNormKernel<8u, {_BF16}>({_BF16}*, {_BF16}*, {_BF16}*, unsigned "
    "int, unsigned int, unsigned int, float, float)",
    "norm",
)
_ADD_NORM: Final = KernelName(
    f"void flashinfer::norm::FusedAddRMSNormKernel<8u, {_BF16}>({_BF16}*, {_BF16}*, {_BF16}*, "
    "unsigned int, unsigned int, unsigned int, float, float)",
    "norm",
)
_ACT: Final = KernelName(
    f"void flashinfer::activation::act_and_mul_kernel<{_BF16}, &(float silu<float>(float "
    f"const&))>({_BF16}*, {_BF16} const*, int)",
    "activation",
)
_ROPE_AND_CACHE: Final = KernelName(
    f"void {_SPACE}::applyBiasRopeUpdateKVCacheV2<{_BF16}, {_BF16}, 256, false, "
    f"{_SPACE}::KVBlockArray, ({_SPACE}::RotaryPositionEmbeddingType)1, true>"
    f"({_SPACE}::QKVPreprocessingParams<{_BF16}, {_SPACE}::KVBlockArray>)",
    "rope",
)
_ALL_REDUCE: Final = KernelName(
    f"void {_SPACE}::oneShotAllReduceKernel<{_BF16}, 2, true, false>({_SPACE}::AllReduceParams)",
    "collective",
)
ACCEPT: Final = KernelName(
    f"void {_SPACE}::mtpAcceptDraftToken<{_BF16}>(int, int, int, int const*, int const*, int*, "
    "int*)",
    "spec",
)
PREPARE_DRAFTER: Final = KernelName(
    f"void {_SPACE}::mtpPrepareDrafterInputsKernel<{_BF16}>(int, int, int, int*, int*, "
    f"{_BF16}*, int const*)",
    "spec",
)
UPDATE_HIDDEN: Final = KernelName(
    f"void {_SPACE}::mtpUpdateHiddenStatesKernel<{_BF16}>(int, int, int, int const*, int const*, "
    f"{_BF16} const*)",
    "spec",
)


def _attention(mode: Mode) -> Names:
    if mode == "prefill":
        return (
            KernelName("fmha_v2_flash_attention_bf16_64_128_S_qkv_256_causal_sm90", "attention"),
        )
    generation = f"void {_SPACE}::mmha::masked_multihead_attention_kernel<{_BF16}, {_BF16}, 256>"
    return (
        KernelName(f"{generation}(Multihead_attention_params<{_BF16}, false>)", "attention"),
        KernelName(f"void {_SPACE}::fmhaReductionKernel<{_BF16}, 256>(float*)", "attention"),
    )


def _gdn_prologue(mode: Mode) -> Names:
    split = t.triton("fused_qkvzba_split_reshape_cat_kernel", "gdn")
    conv = "_causal_conv1d_fwd_kernel" if mode == "prefill" else "_causal_conv1d_update_kernel"
    return (split, t.triton(conv, "gdn"))


def _recurrent(mode: Mode) -> Names:
    name = (
        "chunk_fwd_kernel_o" if mode == "prefill" else "fused_recurrent_gated_delta_rule_fwd_kernel"
    )
    return (t.triton(name, "gdn"),)


def dialect(gemm: GemmPicker, *, custom_all_reduce: bool = True) -> Dialect:
    """TensorRT-LLM's layers over the GEMMs of one GPU generation."""
    return Dialect(
        gemm=gemm,
        embedding=(t.GATHER_ROWS,),
        first_norm=(_NORM,),
        add_norm=(_ADD_NORM,),
        final_norm=(_ADD_NORM,),
        qk_norm=(_NORM, _NORM),
        rope=(_ROPE_AND_CACHE,),
        kv_write=(),
        attention=_attention,
        gate=(t.SIGMOID, t.MULTIPLY),
        activation=(_ACT,),
        all_reduce=_ALL_REDUCE if custom_all_reduce else t.NCCL_ALL_REDUCE,
        all_gather=t.NCCL_ALL_GATHER,
        cast=(t.CAST_TO_FLOAT,),
        gdn_prologue=_gdn_prologue,
        recurrent=_recurrent,
        gated_norm=(t.triton("_layer_norm_fwd_1pass_kernel", "gdn"),),
        concatenate=(t.CONCATENATE,),
        route=(
            KernelName(
                f"void {_SPACE}::renormMoeRoutingKernel<{_BF16}, float, int, 128, 8>({_BF16}*, "
                "float*, int*, int)",
                "moe_routing",
            ),
        ),
        expert_gemm=(
            KernelName("bmm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x64x128u2_s5_et1", "gemm"),
        ),
        after_experts=(
            KernelName(
                f"void finalizeMoeRoutingKernel<{_BF16}, {_BF16}, true>({_BF16} const*, {_BF16}*, "
                "float const*, int const*, long, long, long const*)",
                "moe_routing",
            ),
        ),
        shared_gate=(t.SIGMOID, t.MULTIPLY),
    )
