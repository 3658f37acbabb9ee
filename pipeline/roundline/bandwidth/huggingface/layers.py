"""Decoder layers from a config.json."""

from __future__ import annotations

from roundline.bandwidth.architecture import Layer
from roundline.bandwidth.huggingface.config import Config
from roundline.bandwidth.huggingface.families import Family
from roundline.bandwidth.huggingface.feed_forward import feed_forward_of
from roundline.bandwidth.huggingface.kinds import layer_kinds, moe_layers, window_of
from roundline.bandwidth.huggingface.mixers import mixers_of


def layers_of(config: Config, family: Family) -> tuple[Layer, ...]:
    """All decoder layers, first to last."""
    kinds = layer_kinds(config, family)
    sparse = moe_layers(config, kinds)
    return tuple(layer_of(config, family, kind, i, i in sparse) for i, kind in enumerate(kinds))


def layer_of(config: Config, family: Family, kind: str, index: int, is_sparse: bool) -> Layer:
    """One layer of that kind, with experts where `is_sparse`."""
    mixers = mixers_of(config, family, kind, window_of(config, family, kind, index))
    is_single = config.model_type in ("nemotron_h", "mamba", "mamba2", "falcon_mamba")
    has_feed_forward = kind in ("mlp", "moe") or not is_single
    hidden = config.integer("hidden_size", "d_model")
    return Layer(
        mixers=mixers,
        feed_forward=feed_forward_of(config, family, is_sparse) if has_feed_forward else None,
        norms=family.norms,
        norm_parameters=family.norms * norm_size(hidden, family),
    )


def norm_size(hidden: int, family: Family) -> int:
    """Parameters of one norm: a weight, and in LayerNorm a bias."""
    return hidden * (1 + family.norm_bias)
