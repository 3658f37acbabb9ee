"""Collectives: t = alpha + beta x bytes per kernel kind and link, from public measurements or fits.

A duration in a trace also contains the wait for the slower rank; these are costs of the transfer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from roundline.bandwidth.hardware import Gpu
from roundline.errors import UsageError

Link = Literal["nvlink", "pcie", "host", "network"]
Kernel = Literal["nccl", "custom"]


@dataclass(frozen=True)
class CollectiveCost:
    """Time of one collective: `alpha_ns` + `beta_ns_per_byte` x message bytes."""

    kernel: str
    link: str
    alpha_ns: Fraction
    beta_ns_per_byte: Fraction
    source: str

    def time_ns(self, message_bytes: int) -> Fraction:
        """Duration of one collective over `message_bytes`, exact."""
        return self.alpha_ns + self.beta_ns_per_byte * message_bytes


@dataclass(frozen=True)
class Fit:
    """A fitted cost; `worst` is the largest miss relative to its sample, over `samples`."""

    cost: CollectiveCost
    samples: int
    worst: float


@dataclass(frozen=True)
class LinkCosts:
    """The costs that one configuration uses for its two collectives.

    `bulk` is what an engine falls back to where a message is too large for its own all-reduce.
    """

    all_reduce: CollectiveCost
    all_gather: CollectiveCost
    bulk: CollectiveCost | None = None

    def all_reduce_for(self, message_bytes: int) -> CollectiveCost:
        """The cheaper all-reduce for one message."""
        choices = [cost for cost in (self.all_reduce, self.bulk) if cost is not None]
        return min(choices, key=lambda cost: cost.time_ns(message_bytes))


def _cost(
    kernel: str, link: str, alpha_us: str, beta_us_per_kb: str, source: str
) -> CollectiveCost:
    # us per KB (1000 bytes) is ns per byte.
    return CollectiveCost(kernel, link, Fraction(alpha_us) * 1000, Fraction(beta_us_per_kb), source)


MEASURED: Final = {
    "nccl-pcie-4": _cost("nccl", "pcie", "19.0", "0.170", "haohervchb/sglang-V100 pull 2"),
    "custom-pcie-4": _cost("custom", "pcie", "2.8", "0.28", "haohervchb/sglang-V100 pull 2"),
    "nccl-nvlink-8": _cost("nccl", "nvlink", "21.0", "0.011", "Triton-distributed #57"),
    "custom-nvlink-2": _cost("custom", "nvlink", "3.9", "0.016", "sgl-project/sglang#2904"),
    "custom-nvlink-8": _cost("custom", "nvlink", "7.0", "0.027", "sgl-project/sglang#2904"),
    "gather-nccl-pcie-2": _cost("nccl", "pcie", "7.8", "0.070", "flashinfer-ai/flashinfer#5023"),
    "nccl-host-8": _cost("nccl", "host", "54", "0.170", "NVIDIA/nccl#1439; beta as on PCIe"),
    "nccl-network-2": _cost("nccl", "network", "24", "0.64", "dgx-spark-playbooks pull 103"),
}

# NCCL's own tuning table for one ring step and its base, in us (NCCL 2.28, src/graph/tuning.cc).
_RING_BASE_US: Final = {"LL": "6.6", "LL128": "14.0", "Simple": "8.4"}
_RING_STEP_US: Final = {
    ("LL", "nvlink"): "0.47", ("LL", "pcie"): "1.0", ("LL128", "pcie"): "2.5",
    ("Simple", "pcie"): "5.7", ("LL", "network"): "2.7",
}  # fmt: skip


def nccl_ring(gpus: int, link: Link, bus_gbps: Fraction, protocol: str = "LL") -> CollectiveCost:
    """NCCL's own model of a ring all-reduce: base + 2(n - 1) steps + traffic over the bus.

    Each GPU moves 2(n - 1)/n of the message; LL carries one flag word per data word, so it reaches
    half of `bus_gbps` (GB/s, one direction).

    Raises:
        UsageError: NCCL's table has no such protocol and link.
    """
    if (protocol, link) not in _RING_STEP_US:
        raise UsageError(f"no NCCL step time for {protocol} over {link}")
    steps = 2 * (gpus - 1)
    alpha_us = Fraction(_RING_BASE_US[protocol]) + steps * Fraction(_RING_STEP_US[protocol, link])
    usable = bus_gbps / 2 if protocol == "LL" else bus_gbps
    beta = Fraction(steps, gpus) / usable
    return CollectiveCost(f"nccl {protocol}", link, alpha_us * 1000, beta, "NCCL tuning model")


def choose_costs(
    gpu: Gpu,
    gpus: int,
    preferred: Kernel,
    *,
    link: Link | None = None,
    kernel: Kernel | None = None,
) -> LinkCosts | None:
    """Costs of the collectives among `gpus` GPUs; None for one.

    Args:
        gpu: decides the link where none is given: NVLink where it is built in, PCIe otherwise (an
            optional bridge is not assumed).
        gpus: GPUs of one replica.
        preferred: the engine's all-reduce, used where peer access allows it: over NVLink, or
            between exactly two GPUs.
        link: overrules the GPU's.
        kernel: overrules the engine's.
    """
    if gpus == 1:
        return None
    link = link or ("nvlink" if gpu.has_nvlink else "pcie")
    peers = link == "nvlink" or (link == "pcie" and gpus == 2)
    return default_costs(gpus, link, kernel or (preferred if peers else "nccl"))


def default_costs(gpus: int, link: Link, kernel: Kernel) -> LinkCosts:
    """Costs for `gpus` GPUs over a link, the nearest public measurement scaled to their number.

    The kernel's name in a trace decides which applies; without a trace it is an assumption.
    """
    gather = _gather(gpus, link)
    if kernel == "nccl":
        return LinkCosts(_nccl(gpus, link), gather)
    return LinkCosts(_custom(gpus, link), gather, bulk=_nccl(gpus, link))


# GPUs of the measurement, below which NCCL's own model is nearer; GB/s of one direction.
_MEASURED_GPUS: Final = {"pcie": 4, "nvlink": 8}
_BUS_GBPS: Final = {"pcie": Fraction(16), "nvlink": Fraction(150)}


def _nccl(gpus: int, link: Link) -> CollectiveCost:
    if link in _BUS_GBPS and gpus < _MEASURED_GPUS[link]:
        return nccl_ring(gpus, link, _BUS_GBPS[link])
    return _MEASURED_NCCL[link]


_MEASURED_NCCL: Final = {
    "pcie": MEASURED["nccl-pcie-4"],
    "nvlink": MEASURED["nccl-nvlink-8"],
    "host": MEASURED["nccl-host-8"],
    "network": MEASURED["nccl-network-2"],
}


def _custom(gpus: int, link: Link) -> CollectiveCost:
    if link == "nvlink":
        two, eight = MEASURED["custom-nvlink-2"], MEASURED["custom-nvlink-8"]
        return _between(two, eight, Fraction(gpus - 2, 6))
    if link != "pcie":
        raise UsageError(f"a custom all-reduce needs peer access, which {link} does not give")
    four = MEASURED["custom-pcie-4"]
    # One-shot: each GPU pushes its message to every other one.
    beta = four.beta_ns_per_byte * Fraction(gpus - 1, 3)
    return CollectiveCost("custom", "pcie", four.alpha_ns, beta, four.source)


def _between(low: CollectiveCost, high: CollectiveCost, weight: Fraction) -> CollectiveCost:
    alpha = low.alpha_ns + weight * (high.alpha_ns - low.alpha_ns)
    beta = low.beta_ns_per_byte + weight * (high.beta_ns_per_byte - low.beta_ns_per_byte)
    return CollectiveCost(low.kernel, low.link, alpha, beta, low.source)


def _gather(gpus: int, link: Link) -> CollectiveCost:
    if link == "pcie" and gpus == 2:
        return MEASURED["gather-nccl-pcie-2"]
    return _nccl(gpus, link)


def fit(samples: Sequence[tuple[int, int]], kernel: str = "fit", link: str = "trace") -> Fit:
    """Least squares through (message bytes, duration ns); beta is never negative.

    One message size alone cannot separate alpha from beta: its mean becomes alpha.

    Raises:
        UsageError: there are no samples.
    """
    if not samples:
        raise UsageError("a collective cost needs at least one paired collective")
    count = len(samples)
    mean_bytes = Fraction(sum(size for size, _ in samples), count)
    mean_ns = Fraction(sum(duration for _, duration in samples), count)
    spread = sum((size - mean_bytes) ** 2 for size, _ in samples)
    joint = sum((size - mean_bytes) * (ns - mean_ns) for size, ns in samples)
    beta = max(Fraction(joint) / spread, Fraction(0)) if spread else Fraction(0)
    alpha = mean_ns - beta * mean_bytes
    cost = CollectiveCost(kernel, link, alpha, beta, f"least squares over {count} collectives")
    misses = (abs(float(cost.time_ns(size) - ns)) / ns for size, ns in samples if ns)
    return Fit(cost, count, max(misses, default=0.0))
