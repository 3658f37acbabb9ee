"""Kernels of PyTorch itself and of NCCL, which every Python engine runs."""

from __future__ import annotations

from typing import Final

from roundline.simulate.ops import KernelName

_DIRECT_COPY: Final = (
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() "
    "const::{lambda()#7}::operator()() const::{lambda(float)#1}"
)
_OFFSETS: Final = (
    "TrivialOffsetCalculator<1, unsigned int>, TrivialOffsetCalculator<1, unsigned int>, "
    "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1>"
)
_ARGMAX: Final = (
    "at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4>"
)
_CAT: Final = "at::native::(anonymous namespace)::OpaqueType<2u>"


def vectorized(functor: str, operands: int, category: str) -> KernelName:
    """`vectorized_elementwise_kernel` of one functor over so many tensors."""
    array = f"std::array<char*, {operands}ul>"
    return KernelName(
        f"void at::native::vectorized_elementwise_kernel<4, {functor}, {array} >"
        f"(int, {functor}, {array})",
        category,
    )


GATHER_ROWS: Final = KernelName(
    "void at::native::vectorized_gather_kernel<16, long>"
    "(char*, char*, long*, int, long, long, long, long, bool)",
    "embedding",
)
CAST_TO_FLOAT: Final = KernelName(
    f"void at::native::unrolled_elementwise_kernel<{_DIRECT_COPY}, std::array<char*, 2ul>, 4, "
    f"{_OFFSETS} >(int, {_DIRECT_COPY}, std::array<char*, 2ul>, {_OFFSETS})",
    "copy",
)
CONCATENATE: Final = KernelName(
    f"void at::native::(anonymous namespace)::CatArrayBatchedCopy_contig<{_CAT}, unsigned int, 2, "
    f"64, 64>({_CAT}*, at::native::(anonymous namespace)::CatArrInputTensorMetadata<{_CAT}, "
    "unsigned int, 64, 64>, at::native::(anonymous namespace)::TensorSizeStride<unsigned int, "
    "4u>, int, unsigned int)",
    "copy",
)
COPY_BF16: Final = vectorized(
    "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}", 2, "copy"
)
SIGMOID: Final = vectorized(
    "at::native::sigmoid_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() "
    "const::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}",
    2,
    "elementwise",
)
MULTIPLY: Final = vectorized(
    "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
    "at::native::binary_internal::MulFunctor<float> >",
    3,
    "elementwise",
)
ADD_LONG: Final = vectorized("at::native::CUDAFunctor_add<long>", 3, "elementwise")
FILL_LONG: Final = vectorized("at::native::FillFunctor<long>", 1, "elementwise")
ARGMAX: Final = KernelName(
    f"void at::native::reduce_kernel<512, 1, {_ARGMAX} >({_ARGMAX})", "sampling"
)
TAKE: Final = KernelName(
    "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<"
    "at::native::index_kernel_impl<at::native::OpaqueType<8> >(at::TensorIteratorBase&, "
    "c10::ArrayRef<long>, c10::ArrayRef<long>)::{lambda(char*, char const*, long)#1}>"
    "(at::TensorIteratorBase&, c10::ArrayRef<long>, c10::ArrayRef<long>, "
    "at::native::index_kernel_impl<at::native::OpaqueType<8> >(at::TensorIteratorBase&, "
    "c10::ArrayRef<long>, c10::ArrayRef<long>)::{lambda(char*, char const*, long)#1} const&, "
    "bool)::{lambda(int)#1}>(long, at::native::gpu_index_kernel<at::native::index_kernel_impl<"
    "at::native::OpaqueType<8> >(at::TensorIteratorBase&, c10::ArrayRef<long>, "
    "c10::ArrayRef<long>)::{lambda(char*, char const*, long)#1}>(at::TensorIteratorBase&, "
    "c10::ArrayRef<long>, c10::ArrayRef<long>, at::native::index_kernel_impl<"
    "at::native::OpaqueType<8> >(at::TensorIteratorBase&, c10::ArrayRef<long>, "
    "c10::ArrayRef<long>)::{lambda(char*, char const*, long)#1} const&, bool)::{lambda(int)#1})",
    "index",
)
SOFTMAX_ROWS: Final = KernelName(
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, "
    "at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*, float const*, int)",
    "sampling",
)
TOP_K: Final = KernelName(
    "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>"
    "(at::cuda::detail::TensorInfo<float const, unsigned int>, unsigned int, unsigned int, bool, "
    "unsigned int, unsigned int, at::cuda::detail::TensorInfo<float, unsigned int>, unsigned int, "
    "at::cuda::detail::TensorInfo<long, unsigned int>, unsigned int, float*)",
    "sampling",
)

_NCCL: Final = "ncclDevKernelArgsStorage<4096ul>"
NCCL_ALL_REDUCE: Final = KernelName(
    f"ncclDevKernel_AllReduce_Sum_bf16_RING_LL({_NCCL})", "collective", "cudaLaunchKernelExC"
)
NCCL_ALL_GATHER: Final = KernelName(
    f"ncclDevKernel_AllGather_RING_LL({_NCCL})", "collective", "cudaLaunchKernelExC"
)
NCCL_BROADCAST: Final = KernelName(
    f"ncclDevKernel_Broadcast_RING_LL({_NCCL})", "collective", "cudaLaunchKernelExC"
)


def triton(name: str, category: str) -> KernelName:
    """A kernel compiled just in time: the bare name of its Python function."""
    return KernelName(name, category, "cuLaunchKernelEx")
