"""How long kernels take on a GPU: bytes over an achievable bandwidth, plus a latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roundline.simulate.shapes import Matrix
from roundline.simulate.timeline import Gpu

# Typical kernels of one decode row on a mid-size GPU, in ns: launch-bound, not byte-bound.
_SMALL_NS: Final = {
    "norm": 2_300,
    "rope": 2_000,
    "activation": 2_200,
    "elementwise": 1_700,
    "kvcache": 1_900,
    "copy": 2_000,
    "index": 2_300,
    "embedding": 2_400,
    "gdn": 2_700,
    "spec": 3_000,
    "sampling": 9_000,
    "moe_routing": 3_100,
    "quantize": 1_800,
    "attention": 2_600,
    "reduction": 2_500,
}


@dataclass(frozen=True, kw_only=True)
class KernelCosts:
    """Durations of kernels on one GPU.

    Attributes:
        gpu: the GPU.
        gemm_efficiency: fraction of peak bandwidth that a large weight GEMM reaches.
        lm_head_efficiency: the same for the vocabulary projection, if it differs.
        stream_efficiency: fraction that state and KV-cache kernels reach.
        gemm_latency_ns: fixed cost of a GEMM.
        alpha_ns: latency of a collective.
        beta_ns_per_kb: its time for each 1000 bytes.
    """

    gpu: Gpu
    gemm_efficiency: float = 0.90
    lm_head_efficiency: float | None = None
    stream_efficiency: float = 0.80
    gemm_latency_ns: int = 3_500
    alpha_ns: int = 6_000
    beta_ns_per_kb: int = 60

    def gemm_ns(self, matrix: Matrix) -> int:
        """Reading a weight matrix once."""
        efficiency = self.gemm_efficiency
        if matrix.name == "lm_head" and self.lm_head_efficiency is not None:
            efficiency = self.lm_head_efficiency
        return self.gemm_latency_ns + self._read_ns(matrix.size_bytes, efficiency)

    def small_ns(self, category: str, rows: int) -> int:
        """A kernel whose bytes do not matter."""
        return round(_SMALL_NS.get(category, 2_000) * (1 + min(rows, 512) * 0.02))

    def stream_ns(self, category: str, size_bytes: int) -> int:
        """A kernel that moves state or cache."""
        return _SMALL_NS.get(category, 2_000) + self._read_ns(size_bytes, self.stream_efficiency)

    def collective_ns(self, size_bytes: int) -> int:
        """A collective once every rank has arrived."""
        return self.alpha_ns + size_bytes * self.beta_ns_per_kb // 1000

    def _read_ns(self, size_bytes: int, efficiency: float) -> int:
        bytes_per_ns = self.gpu.memory_bandwidth_bytes_per_s / 1e9
        return round(size_bytes / (efficiency * bytes_per_ns))
