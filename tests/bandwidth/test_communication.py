"""Collectives cost a start and a share per byte."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundline.bandwidth.communication import (
    MEASURED,
    choose_costs,
    default_costs,
    fit,
    nccl_ring,
)
from roundline.bandwidth.hardware import find_gpu
from roundline.errors import UsageError


@pytest.mark.parametrize(
    ("key", "message_bytes", "microseconds"),
    [
        ("nccl-pcie-4", 10_000, 20.7),
        ("nccl-pcie-4", 80_000, 32.6),
        ("custom-pcie-4", 40_000, 14.0),
        ("nccl-nvlink-8", 40_000, 21.4),
        ("custom-nvlink-2", 80_000, 5.2),
        ("custom-nvlink-8", 40_000, 8.1),
        ("nccl-network-2", 40_000, 50),
    ],
)
def test_measured_costs(key, message_bytes, microseconds):
    """The points of the published fits."""
    assert float(MEASURED[key].time_ns(message_bytes)) / 1000 == pytest.approx(
        microseconds, rel=0.02
    )


def test_nccls_own_model_of_two_gpus_on_pcie():
    """12 to 17 us for 40 KB: base, two steps, and bytes over half the bus."""
    time = nccl_ring(2, "pcie", Fraction(16)).time_ns(40_960)
    assert nccl_ring(2, "pcie", Fraction(16)).alpha_ns == 8600
    assert 12_000 <= time <= 17_000


def test_ring_steps_grow_with_the_gpus():
    """2(n - 1) steps: 0.47 us each over NVLink."""
    two, eight = (nccl_ring(n, "nvlink", Fraction(150)).alpha_ns for n in (2, 8))
    assert eight - two == 12 * 470


def test_a_protocol_without_a_step_time_is_refused():
    """Nothing is invented where the table has no entry."""
    with pytest.raises(UsageError, match="LL128 over network"):
        nccl_ring(2, "network", Fraction(25), "LL128")


def test_a_one_shot_kernel_pushes_to_every_peer():
    """Traffic grows with the peers, the start does not."""
    two, four = (default_costs(n, "pcie", "custom").all_reduce for n in (2, 4))
    assert two.alpha_ns == four.alpha_ns
    assert 3 * two.beta_ns_per_byte == four.beta_ns_per_byte


def test_the_link_and_the_kernel_follow_gpu_and_number():
    """Custom kernels need NVLink, or exactly two GPUs; a bridge is not assumed."""
    a6000, h100 = find_gpu("RTX A6000"), find_gpu("H100 SXM")
    assert choose_costs(a6000, 1, "custom") is None
    for gpu, gpus, kernel, link in (
        (a6000, 2, "custom", "pcie"),
        (a6000, 4, "nccl", "pcie"),
        (h100, 8, "custom", "nvlink"),
    ):
        costs = choose_costs(gpu, gpus, "custom")
        assert costs is not None
        assert (costs.all_reduce.kernel, costs.all_reduce.link) == (kernel, link)
    slow = choose_costs(a6000, 2, "custom", link="host")
    assert slow is not None
    assert slow.all_reduce.alpha_ns == 54_000


def test_a_custom_kernel_needs_peer_access():
    """Asking for one over a network is an error, not a number."""
    with pytest.raises(UsageError, match="peer access"):
        default_costs(2, "network", "custom")


def test_large_messages_fall_back_to_nccl():
    """One-shot kernels win for decode messages and lose for bulk ones."""
    costs = default_costs(4, "pcie", "custom")
    assert costs.all_reduce_for(10_240).kernel == "custom"
    assert "nccl" in costs.all_reduce_for(2_000_000).kernel


@given(st.integers(1, 50_000), st.integers(0, 500), st.lists(st.integers(1, 10**6), min_size=2,
                                                             max_size=20, unique=True))  # fmt: skip
def test_a_fit_finds_its_line(alpha, beta, sizes):
    """Samples on a line give that line back, exactly."""
    found = fit([(size, alpha + beta * size) for size in sizes])
    assert (found.cost.alpha_ns, found.cost.beta_ns_per_byte) == (alpha, beta)
    assert found.worst == 0
    assert found.samples == len(sizes)


def test_one_size_gives_its_mean():
    """Start and share cannot be told apart; nothing is invented."""
    found = fit([(40_960, 7_000), (40_960, 9_000)])
    assert (found.cost.alpha_ns, found.cost.beta_ns_per_byte) == (8_000, 0)
    assert found.worst == pytest.approx(1 / 7)


def test_larger_messages_are_never_cheaper():
    """A falling line is noise: its share per byte is zero."""
    assert fit([(1000, 9_000), (2000, 7_000)]).cost.beta_ns_per_byte == 0


def test_a_fit_needs_samples():
    """No collectives, no cost."""
    with pytest.raises(UsageError):
        fit([])
