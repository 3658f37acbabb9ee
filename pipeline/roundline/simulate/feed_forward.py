"""What feed-forward blocks run: dense ones, and experts behind a router."""

from __future__ import annotations

from dataclasses import replace

from roundline.simulate.mixers import beside
from roundline.simulate.ops import Op
from roundline.simulate.pass_kernels import PassKernels
from roundline.simulate.shapes import Experts, Matrix


def feed_forward(kernels: PassKernels) -> list[Op]:
    """The block of one layer, from its first projection to the sum over ranks."""
    experts = kernels.model.experts
    ops = _dense(kernels) if experts is None else _sparse(kernels, experts)
    return ops + kernels.all_reduce()


def _dense(kernels: PassKernels) -> list[Op]:
    model, tp = kernels.model, kernels.tp
    ops = kernels.gemm(model.gate_up(tp)) + kernels.small(kernels.dialect.activation)
    return ops + kernels.gemm(model.down(tp))


def _sparse(kernels: PassKernels, experts: Experts) -> list[Op]:
    """On a side stream the shared expert runs while the routed ones do; their sum joins both."""
    routed = _routed(kernels, experts)
    if not experts.shared_intermediate:
        return routed
    shared = _shared(kernels, experts.shared_intermediate // kernels.tp)
    if not kernels.side_stream:
        return routed + shared
    return [*beside(shared), *routed[:-1], replace(routed[-1], joins=True)]


def _routed(kernels: PassKernels, experts: Experts) -> list[Op]:
    dialect, hidden = kernels.dialect, kernels.model.hidden
    width, read = experts.intermediate // kernels.tp, experts.distinct(kernels.rows)
    ops = kernels.gemm(Matrix("router", hidden, experts.count)) + kernels.small(dialect.route)
    ops += kernels.weight_read(dialect.expert_gemm, Matrix("experts", hidden, 2 * width, read))
    ops += kernels.small(dialect.activation)
    ops += kernels.weight_read(dialect.expert_gemm, Matrix("experts", width, hidden, read))
    return ops + kernels.small(dialect.after_experts)


def _shared(kernels: PassKernels, width: int) -> list[Op]:
    dialect, hidden = kernels.dialect, kernels.model.hidden
    ops = kernels.gemm(Matrix("shared_gate_up", hidden, 2 * width))
    ops += kernels.small(dialect.activation) + kernels.gemm(Matrix("shared_down", width, hidden))
    return ops + kernels.small(dialect.shared_gate)
