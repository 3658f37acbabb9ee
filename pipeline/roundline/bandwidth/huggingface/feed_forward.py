"""Feed-forward layers from a config.json: dense and mixtures of experts."""

from __future__ import annotations

from fractions import Fraction

from roundline.bandwidth.feed_forward import Dense, Experts, FeedForward
from roundline.bandwidth.huggingface.config import Config
from roundline.bandwidth.huggingface.families import Family
from roundline.bandwidth.huggingface.kinds import expert_count
from roundline.errors import UsageError


def feed_forward_of(config: Config, family: Family, is_sparse: bool) -> FeedForward:
    """The feed-forward part of a layer."""
    hidden = config.integer("hidden_size")
    if is_sparse:
        return _experts(config, family, hidden)
    keys = ["intermediate_size_mlp", "block_ff_dim", "intermediate_size", "ffn_hidden_size"]
    if config.model_type.startswith("granitemoe") and "shared_intermediate_size" in config:
        keys.insert(0, "shared_intermediate_size")
    bias = config.flag("mlp_bias", default=family.all_biases)
    bias = bias or (config.model_type == "starcoder2" and config.flag("use_bias", default=True))
    return Dense(hidden, _dense_width(config, keys), family.gated_mlp, bias)


def _dense_width(config: Config, keys: list[str]) -> int:
    width = config.integer(*keys)
    if config.model_type == "lfm2" and config.flag("block_auto_adjust_ff_dim", default=True):
        multiple = config.integer("block_multiple_of", default=256)
        scale = Fraction(str(config.values.get("block_ffn_dim_multiplier") or 1))
        width = -(-int(scale * (2 * width // 3)) // multiple) * multiple
    return width


def _experts(config: Config, family: Family, hidden: int) -> Experts:
    experts = expert_count(config)
    per_token = config.integer(
        "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_k", "moe_topk"
    )
    if not 0 < per_token <= experts:
        raise UsageError(
            f"{config.name} contradicts itself: {per_token} experts per token out of {experts}"
        )
    width = config.integer("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")
    return Experts(
        hidden=hidden,
        intermediate=width,
        experts=experts,
        per_token=per_token,
        shared_intermediate=_shared_width(config, width),
        shared_gate=family.shared_gate,
        gated=family.gated_mlp,
        router_bias=family.router_bias,
        expert_bias=family.expert_bias,
        latent=config.optional("moe_latent_size"),
    )


def _shared_width(config: Config, width: int) -> int:
    count = config.integer(
        "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", default=0
    )
    each = config.optional("moe_shared_expert_intermediate_size")
    if each is not None:
        return each * max(count, 1)
    whole = config.optional("shared_expert_intermediate_size", "shared_intermediate_size")
    if whole is not None:
        return whole
    return width if config.model_type == "llama4_text" else count * width
