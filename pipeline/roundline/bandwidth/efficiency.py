"""What good software reaches: the fractions of peak and latencies behind `expected`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from roundline.bandwidth.hardware import Gpu
from roundline.errors import UsageError


@dataclass(frozen=True)
class Efficiency:
    """Fractions of the datasheet bandwidth, and latencies in ns.

    A weight read takes max(bytes / (gemm x peak), latency + bytes / (stream x peak)): a large one
    reaches a fraction of peak, a small one is ruled by its start. Defaults come from public
    measurements: GDDR 0.90 and HBM 0.85 for large bf16 GEMMs, 0.80 where 4-bit weights are
    unpacked (0.65 to 0.80 are reported, and whole steps reach 0.77), 3 to 5 us to start a kernel,
    0.7 to 1.5 us for one node of a graph.

    Raises:
        UsageError: a fraction is outside (0, 1] or a latency is negative.
    """

    gemm: Fraction
    gemm_unpacking: Fraction
    stream: Fraction
    kernel_latency_ns: int = 4_000
    node_latency_ns: int = 1_100

    def __post_init__(self) -> None:
        for name in ("gemm", "gemm_unpacking", "stream"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise UsageError(f"efficiency {name} {float(value):g} is outside 0 to 1")
        if self.kernel_latency_ns < 0 or self.node_latency_ns < 0:
            raise UsageError("a latency cannot be negative")

    def weight_read_ns(self, floor_ns: Fraction, unpacks: bool) -> Fraction:
        """Expected time of one weight read of which the floor is known."""
        large = floor_ns / (self.gemm_unpacking if unpacks else self.gemm)
        return max(large, self.small_read_ns(floor_ns))

    def small_read_ns(self, floor_ns: Fraction) -> Fraction:
        """Expected time of a kernel that streams: its start, then its bytes."""
        return self.kernel_latency_ns + floor_ns / self.stream


def default_efficiency(gpu: Gpu) -> Efficiency:
    """Defaults by kind of memory; the stream fraction is measured where a measurement is known."""
    gemm = Fraction(90 if gpu.memory_type.startswith("GDDR") else 85, 100)
    stream = gpu.stream_fraction
    return Efficiency(
        gemm=min(gemm, stream), gemm_unpacking=min(Fraction(80, 100), stream), stream=stream
    )
