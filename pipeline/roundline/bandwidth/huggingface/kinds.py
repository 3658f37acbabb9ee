"""Which layer is what: attention or recurrent, windowed or not, dense or sparse."""

from __future__ import annotations

from typing import Final

from roundline.bandwidth.huggingface.config import Config
from roundline.bandwidth.huggingface.families import Family
from roundline.errors import UsageError

_KINDS: Final = {
    "full_attention": "full_attention", "attention": "full_attention", "full": "full_attention",
    "global": "full_attention", "global_attention": "full_attention",
    "sliding_attention": "sliding_attention", "local_attention": "sliding_attention",
    "chunked_attention": "sliding_attention", "linear_attention": "linear_attention",
    "mamba": "mamba", "mamba2": "mamba", "hybrid": "hybrid", "conv": "conv", "mlp": "mlp",
    "moe": "moe", "M": "mamba", "*": "full_attention", "-": "mlp", "E": "moe",
}  # fmt: skip


def layer_kinds(config: Config, family: Family) -> tuple[str, ...]:
    """The kind of every layer, first to last.

    Raises:
        UsageError: a kind is unknown, or there are not as many as num_hidden_layers says.
    """
    listed = config.texts("layer_types", "layers_block_type", "hybrid_override_pattern")
    count = config.integer("num_hidden_layers", "n_layer", "num_layers", default=len(listed))
    if not count:
        raise UsageError(f"{config.name}: config.json lacks num_hidden_layers")
    if listed and len(listed) != count:
        raise UsageError(
            f"{config.name} contradicts itself: {len(listed)} layer types, "
            f"num_hidden_layers {count}"
        )
    if unknown := sorted(set(listed) - _KINDS.keys()):
        raise UsageError(f"{config.name}: layer type {unknown[0]!r} is unknown")
    if listed:
        return tuple(_KINDS[kind] for kind in listed)
    return tuple(_derived_kind(config, family, index) for index in range(count))


def _derived_kind(config: Config, family: Family, index: int) -> str:
    if family.parallel_mixers:
        return "hybrid"
    if config.model_type in ("mamba", "mamba2", "falcon_mamba", "granitemoehybrid"):
        return "mamba"
    if "attn_layer_indices" in config:
        return "full_attention" if index in config.integers("attn_layer_indices") else "mamba"
    if "attn_layer_period" in config:
        offset = config.integer("attn_layer_offset", default=0)
        is_attention = index % config.integer("attn_layer_period") == offset
        return "full_attention" if is_attention else "mamba"
    if "full_attn_idxs" in config:
        return "full_attention" if index in config.integers("full_attn_idxs") else "conv"
    if "linear_num_value_heads" in config:
        interval = config.integer("full_attention_interval", default=4)
        return "linear_attention" if (index + 1) % interval else "full_attention"
    return _windowed_kind(config, family, index)


def _windowed_kind(config: Config, family: Family, index: int) -> str:
    pattern = config.values.get("sliding_window_pattern")
    if isinstance(pattern, str):
        return "sliding_attention" if pattern[index % len(pattern)] == "L" else "full_attention"
    period = config.integer("sliding_window_pattern", default=family.window_period)
    if config.values.get("use_sliding_window") is False:
        return "full_attention"
    if config.flag("use_sliding_window"):
        first = config.integer("max_window_layers", default=0)
        return "sliding_attention" if index >= first else "full_attention"
    if not period:
        return "sliding_attention" if config.optional("sliding_window") else "full_attention"
    return "sliding_attention" if (index + 1) % period else "full_attention"


def window_of(config: Config, family: Family, kind: str, index: int) -> int | None:
    """Tokens that layer `index` can see; None for all."""
    if kind != "sliding_attention":
        return None
    return config.optional("sliding_window", "attention_chunk_size")


def moe_layers(config: Config, kinds: tuple[str, ...]) -> frozenset[int]:
    """Indexes of the layers whose feed-forward part is a mixture of experts."""
    indexes = range(len(kinds))
    if expert_count(config) < 2:
        return frozenset()
    if "moe" in kinds:
        return frozenset(i for i in indexes if kinds[i] == "moe")
    return frozenset(i for i in indexes if _is_sparse(config, i))


def _is_sparse(config: Config, index: int) -> bool:
    if listed := config.integers("moe_layers"):
        return index in listed
    frequencies = config.integers("moe_layer_freq")
    if frequencies:
        return bool(frequencies[index])
    if "expert_layer_period" in config:
        offset = config.integer("expert_layer_offset", default=0)
        return index % config.integer("expert_layer_period") == offset
    if "moe_layer_interval" in config:
        first = config.integer("moe_layer_start_index", default=0)
        return index >= first and (index + 1) % config.integer("moe_layer_interval") == 0
    step = config.integer("decoder_sparse_step", "interleave_moe_layer_step", default=1)
    dense_first = config.integer("first_k_dense_replace", "num_dense_layers", default=0)
    every = config.integer("moe_layer_freq", default=1)
    is_due = (index + 1) % max(step, 1) == 0 and index % max(every, 1) == 0
    return is_due and index >= dense_first and index not in config.integers("mlp_only_layers")


def expert_count(config: Config) -> int:
    """Routed experts of a sparse layer, 0 for a dense model."""
    return config.integer(
        "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", default=0
    )
