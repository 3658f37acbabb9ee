"""Which GEMM kernels libraries pick for a weight matrix, by GPU generation and row count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from roundline.simulate.ops import KernelName
from roundline.simulate.shapes import Matrix

GemmPicker = Callable[[int, Matrix], tuple[KernelName, ...]]

_STRIDED: Final = "cublasGemvTensorStridedBatched<{}>"


def _gemvx(variant: int) -> KernelName:
    tensors = ", ".join(_STRIDED.format(t) for t in ("__nv_bfloat16 const",) * 2)
    params = f"cublasGemvParamsEx<int, {tensors}, {_STRIDED.format('__nv_bfloat16')}, float>"
    values = (
        f"__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, false, true, true, false, {variant}"
    )
    return _gemm(
        f"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, {values}, false, "
        f"{params} >({params})"
    )


def _gemm(name: str) -> KernelName:
    return KernelName(name, "gemm")


def _cutlass(tile: str) -> KernelName:
    return _gemm(f"void cutlass::Kernel2<{tile}>({tile}::Params)")


_SPLIT_K: Final = _gemm(
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, "
    "true, float, __nv_bfloat16, __nv_bfloat16, true, false, false>"
    "(cublasLt::cublasSplitKParams<float>, float const*, __nv_bfloat16 const*, float*, "
    "__nv_bfloat16*, float const*, float const*, __nv_bfloat16 const*, float const*, "
    "__nv_bfloat16*, void*, long, float*, int*, float*, float*, float const*, float const*, "
    "float const*, float const*, float const*)"
)


def ampere(rows: int, matrix: Matrix) -> tuple[KernelName, ...]:
    """cuBLAS 12 on sm80 and sm86: GEMV for one row, tensor cores for a few, large tiles beyond."""
    if rows == 1:
        return (_gemvx(6 if matrix.n < 8192 else 7),)
    if rows > 64:
        return (_gemm("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"),)
    if matrix.n <= 256:
        tile = "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8"
        return (_cutlass(tile), _SPLIT_K)
    if matrix.n <= 6144:
        sliced = "ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x6_tn"
        return (_gemm(sliced),)
    return (_gemm("ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x5_tn"),)


def hopper(rows: int, matrix: Matrix) -> tuple[KernelName, ...]:
    """cuBLAS 12 on sm90: nvjet for everything."""
    if rows > 64:
        return (_gemm("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT"),)
    if matrix.n <= 6144:
        return (_gemm("nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT"), _SPLIT_K)
    return (_gemm("nvjet_tst_64x8_64x16_4x1_v_bz_TNT"),)


def cdna(rows: int, matrix: Matrix) -> tuple[KernelName, ...]:
    """hipBLASLt and skinny kernels on MI300."""
    if rows <= 4 and matrix.n <= 8192:
        rows_4 = "int, int, int, int, int, int, __hip_bfloat16 const*, __hip_bfloat16 const*"
        name = f"void wvSplitK_hf_sml_<__hip_bfloat16, 64, 2, 16, 8, 2, {rows}>({rows_4})"
        return (KernelName(name, "gemm", "hipLaunchKernel"),)
    tile = "MT256x16x64" if rows <= 64 else "MT256x128x64"
    name = (
        f"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_{tile}_MI16x16x1_SN_LDSB1_AFC0_AFEM1_"
        "AFEM1_ASEM1_CLR1_CADS0_DTLA0_DTLB0_DTVA0_DTVB0_EPS0_FDSI0_GRPM1_GRVWA8_GRVWB8_GSUAMB_"
        "GLS0_ISA942_IU1_K1_LBSPPA512_LBSPPB512_LBSPPM0_LPA16_LPB16_LPM0_LRVW8_LWPMn1_MIAV0_"
        "MIWT4_1_MO40_NTn1_NTA0_NTB0_NTC0_NTD4_NEPBS0_NLCA1_NLCB1_ONLL1_PGR2_PLR1_PKA1_SIA3_"
        "SS1_SPO0_SRVW0_SSO0_SVW4_SK0_SKXCCM0_TLDS1_ULSGRO0_USL1_UIOFGRO0_USFGROn1_VSn1_VWA4_"
        "VWB1_WSGRA0_WSGRB0_WS64_WG64_4_1"
    )
    return (KernelName(name, "gemm", "hipExtModuleLaunchKernel"),)
