"""What token mixers run: attention, latent attention, gated delta net, Mamba."""

from __future__ import annotations

from dataclasses import replace

from roundline.simulate.ops import SIDE_LANE, Op
from roundline.simulate.pass_kernels import PassKernels
from roundline.simulate.shapes import Attention, GatedDeltaNet, LatentAttention, Mamba, Mixer


def mixer(kernels: PassKernels, kind: Mixer) -> list[Op]:
    """The mixer of one layer, from its first projection to the sum over ranks."""
    model = kernels.model
    if kind == "gdn" and model.gdn is not None:
        return _gdn(kernels, model.gdn)
    if kind == "mamba" and model.mamba is not None:
        return _mamba(kernels, model.mamba)
    if isinstance(model.attention, LatentAttention):
        return _latent_attention(kernels, model.attention)
    return _attention(kernels, model.attention)


def _attention(kernels: PassKernels, shape: Attention) -> list[Op]:
    dialect, hidden, tp = kernels.dialect, kernels.model.hidden, kernels.tp
    kv_bytes = kernels.batch * kernels.context * shape.kv_bytes_per_token(tp)
    ops = kernels.gemm(shape.qkv(hidden, tp))
    if kernels.model.qk_norm:
        ops += kernels.small(dialect.qk_norm)
    ops += kernels.small(dialect.rope) + kernels.small(dialect.kv_write)
    ops += kernels.moving(dialect.attention(kernels.mode), kv_bytes, base_ns=5_000)
    if shape.gated:
        ops += kernels.small(dialect.gate)
    return ops + kernels.gemm(shape.output(hidden, tp)) + kernels.all_reduce()


def _latent_attention(kernels: PassKernels, shape: LatentAttention) -> list[Op]:
    """With the key and value expansions absorbed into batched GEMMs around the attention."""
    dialect, hidden, tp = kernels.dialect, kernels.model.hidden, kernels.tp
    kv_bytes = kernels.batch * kernels.context * shape.kv_bytes_per_token()
    keys, values = shape.expansions(tp)
    ops = kernels.gemm(shape.compressions(hidden)) + kernels.small(dialect.qk_norm)
    ops += kernels.gemm(shape.queries(tp)) + kernels.gemm(keys)
    ops += kernels.small(dialect.rope) + kernels.small(dialect.latent_kv_write)
    ops += kernels.moving(dialect.latent_attention, kv_bytes, base_ns=6_000)
    return (
        ops + kernels.gemm(values) + kernels.gemm(shape.output(hidden, tp)) + kernels.all_reduce()
    )


def _gdn(kernels: PassKernels, shape: GatedDeltaNet) -> list[Op]:
    dialect, hidden, tp = kernels.dialect, kernels.model.hidden, kernels.tp
    state_bytes = kernels.batch * kernels.state_passes * shape.state_bytes(tp)
    first, *prologue = kernels.small(dialect.gdn_prologue(kernels.mode))
    ops = _gdn_inputs(kernels, shape)
    ops += [replace(first, joins=kernels.side_stream), *prologue]
    ops += kernels.moving(dialect.recurrent(kernels.mode), state_bytes)
    ops += kernels.small(dialect.gated_norm)
    return ops + kernels.gemm(shape.output(hidden, tp)) + kernels.all_reduce()


def _gdn_inputs(kernels: PassKernels, shape: GatedDeltaNet) -> list[Op]:
    large = kernels.gemm(shape.qkvz(kernels.model.hidden, kernels.tp))
    small = kernels.gemm(shape.ba(kernels.model.hidden, kernels.tp))
    return beside(small) + large if kernels.side_stream else large + small


def _mamba(kernels: PassKernels, shape: Mamba) -> list[Op]:
    dialect, hidden, tp = kernels.dialect, kernels.model.hidden, kernels.tp
    state_bytes = kernels.batch * kernels.state_passes * shape.state_bytes(tp)
    ops = kernels.gemm(shape.inputs(hidden, tp)) + kernels.small(dialect.mamba_prologue)
    ops += kernels.moving(dialect.mamba, state_bytes) + kernels.small(dialect.gated_norm)
    return ops + kernels.gemm(shape.output(hidden, tp)) + kernels.all_reduce()


def beside(ops: list[Op]) -> list[Op]:
    """The same ops on the side stream, forked from what ran before."""
    return [replace(op, lane=SIDE_LANE, overlap_ns=0) for op in ops]
