"""Names in Nsight's spelling, pair by pair as published traces show them."""

from __future__ import annotations

import pytest

from roundline.simulate.names.spelling import nsight_short_name, nsight_spelling

PAIRS = (
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add"
        "<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add"
        "<c10::BFloat16>, std::array<char*, 3ul>)",
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add"
        "<c10::BFloat16>, std::array<char *, (unsigned long)3>>(int, T2, T3)",
    ),
    (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    ),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_x>(cutlass_80_tensorop_x::Params)",
        "void cutlass::Kernel2<cutlass_80_tensorop_x>(T1)",
    ),
    ("_causal_conv1d_update_kernel", "_causal_conv1d_update_kernel"),
    (
        "void (anonymous namespace)::store<true>(float const*)",
        "void <unnamed>::store<(bool)1>(T1)",
    ),
)


@pytest.mark.parametrize(("torch", "nsight"), PAIRS)
def test_a_name_becomes_what_nsight_prints(torch: str, nsight: str) -> None:
    """Typed integers, unnamed namespaces, joined brackets, numbered parameters."""
    assert nsight_spelling(torch) == nsight


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (PAIRS[0][0], "vectorized_elementwise_kernel"),
        (PAIRS[2][0], "Kernel2"),
        ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(int)", "kernel"),
        ("_causal_conv1d_update_kernel", "_causal_conv1d_update_kernel"),
    ],
)
def test_a_short_name_is_the_last_identifier(name: str, short: str) -> None:
    """Nsight's short name drops namespaces, templates and parameters."""
    assert nsight_short_name(name) == short
