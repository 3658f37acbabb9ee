"""Bytes to time: the floor at the datasheet's bandwidth, and what good software reaches."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from roundline.bandwidth.architecture import WeightMatrix
from roundline.bandwidth.communication import CollectiveCost
from roundline.bandwidth.efficiency import Efficiency
from roundline.bandwidth.hardware import Gpu


@dataclass(frozen=True)
class Cost:
    """Bytes on one GPU, and their exact floor and expected time in ns."""

    bytes: int = 0
    floor: Fraction = Fraction(0)
    expected: Fraction = Fraction(0)

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.bytes + other.bytes, self.floor + other.floor, self.expected + other.expected
        )


@dataclass(frozen=True)
class Pricing:
    """What bytes cost on one GPU. GB/s is bytes per ns, so every time is an exact fraction."""

    gpu: Gpu
    efficiency: Efficiency

    def floor_ns(self, size_bytes: int) -> Fraction:
        """Time at the datasheet's bandwidth."""
        return Fraction(size_bytes) / self.gpu.hbm_gbps

    def weight(self, matrix: WeightMatrix, tokens: int) -> Cost:
        """All reads of a matrix in one pass over `tokens` tokens.

        Above the ridge the multiplication itself is slower than its reads; that is expected time,
        never floor.
        """
        size = matrix.read_bytes(tokens)
        floor = self.floor_ns(size)
        each = self.efficiency.weight_read_ns(floor / matrix.count, matrix.unpacks)
        return Cost(size, floor, matrix.count * max(each, self._compute_ns(matrix, tokens)))

    def vectors(self, size_bytes: int) -> Cost:
        """Parameters that other kernels read on their way."""
        floor = self.floor_ns(size_bytes)
        return Cost(size_bytes, floor, floor / self.efficiency.stream)

    def stream(self, size_bytes: int, kernels: int) -> Cost:
        """Caches or states that `kernels` kernels read, each from its start."""
        floor = self.floor_ns(size_bytes)
        latency = Fraction(kernels * self.efficiency.kernel_latency_ns)
        return Cost(size_bytes, floor, latency + floor / self.efficiency.stream)

    def nodes(self, count: int, size_bytes: int) -> Cost:
        """Small kernels between the large ones."""
        floor = self.floor_ns(size_bytes)
        return Cost(size_bytes, floor, Fraction(count * self.efficiency.node_latency_ns) + floor)

    def collective(self, cost: CollectiveCost, count: int, message_bytes: int) -> Cost:
        """`count` equal collectives. Messages cross the link and live in cache: no memory floor."""
        return Cost(expected=count * cost.time_ns(message_bytes))

    def ridge_tokens(self) -> Fraction | None:
        """Tokens above which a bf16 multiplication is bound by compute, not by memory."""
        tflops = self.gpu.bf16_tflops
        return tflops * 1000 / self.gpu.hbm_gbps if tflops else None

    def _compute_ns(self, matrix: WeightMatrix, tokens: int) -> Fraction:
        is_float8 = matrix.format.startswith(("fp8", "mxfp8"))
        tflops = (self.gpu.fp8_tflops if is_float8 else None) or self.gpu.bf16_tflops
        if not tflops:
            return Fraction(0)
        rows = Fraction(tokens)
        if matrix.routing:
            rows *= Fraction(matrix.routing.per_token, matrix.routing.gpus)
        return 2 * matrix.k * matrix.n * rows / (tflops * 1000)
