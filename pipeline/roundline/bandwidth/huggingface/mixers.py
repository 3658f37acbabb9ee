"""Token mixers from a config.json: attention, gated delta net, Mamba, short convolution."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from roundline.bandwidth.huggingface.config import Config
from roundline.bandwidth.huggingface.families import Family
from roundline.bandwidth.mixers import Attention, LatentAttention, Mixer
from roundline.bandwidth.recurrent import GatedDeltaNet, Mamba1, Mamba2, ShortConv
from roundline.errors import UsageError


def mixers_of(config: Config, family: Family, kind: str, window: int | None) -> tuple[Mixer, ...]:
    """The mixers of a layer of that kind; none in a feed-forward layer of its own."""
    if kind in ("mlp", "moe"):
        return ()
    if kind == "hybrid":
        return (_attention(config, family, window), _mamba(config, family))
    if kind == "linear_attention":
        return (_gated_delta_net(config),)
    if kind == "mamba":
        return (_mamba(config, family),)
    if kind == "conv":
        kernel = config.integer("conv_L_cache", "conv_kernel", default=3)
        return (ShortConv(config.integer("hidden_size"), kernel, config.flag("conv_bias")),)
    return (_attention(config, family, window),)


def _attention(config: Config, family: Family, window: int | None) -> Mixer:
    if "kv_lora_rank" in config:
        return _latent_attention(config)
    heads = config.integer("num_attention_heads", "n_head", "attention_heads")
    kv_heads = config.integer("num_key_value_heads", "num_kv_heads", default=heads)
    if not kv_heads or heads % kv_heads:
        raise UsageError(
            f"{config.name}: {kv_heads} KV heads do not divide {heads} attention heads"
        )
    bias = config.flag("attention_bias", "use_qkv_bias", "use_bias", "qkv_bias")
    bias_out = config.flag("attention_out_bias", default=bias and family.output_bias_follows)
    return Attention(
        hidden=config.integer("hidden_size"),
        query_heads=heads,
        kv_heads=kv_heads,
        head_dim=_head_dim(config, heads),
        gated=config.flag("attn_output_gate", default=family.attention_gate),
        qk_norm=_qk_norm(config, family),
        qkv_bias=bias or family.qkv_bias or family.all_biases,
        output_bias=bias_out or family.all_biases,
        sinks=family.sinks,
        window=window,
    )


def _head_dim(config: Config, heads: int) -> int:
    given = config.optional("head_dim", "attention_head_dim")
    hidden = config.integer("hidden_size")
    if given is None and hidden % heads:
        raise UsageError(
            f"{config.name}: hidden_size {hidden} is no multiple of {heads} heads, give head_dim"
        )
    return given or hidden // heads


def _qk_norm(config: Config, family: Family) -> Literal["none", "head", "full"]:
    asked = config.flag("use_qk_norm", "qk_layernorm", default=False)
    if family.qk_norm != "none":
        return family.qk_norm
    # Llama 4 normalises without weights.
    return "head" if asked and config.model_type != "llama4_text" else "none"


def _latent_attention(config: Config) -> LatentAttention:
    return LatentAttention(
        hidden=config.integer("hidden_size"),
        heads=config.integer("num_attention_heads"),
        query_rank=config.optional("q_lora_rank"),
        kv_rank=config.integer("kv_lora_rank"),
        nope_dim=config.integer("qk_nope_head_dim"),
        rope_dim=config.integer("qk_rope_head_dim"),
        value_dim=config.integer("v_head_dim"),
        bias=config.flag("attention_bias"),
    )


def _gated_delta_net(config: Config) -> GatedDeltaNet:
    return GatedDeltaNet(
        hidden=config.integer("hidden_size"),
        key_heads=config.integer("linear_num_key_heads"),
        value_heads=config.integer("linear_num_value_heads"),
        key_dim=config.integer("linear_key_head_dim"),
        value_dim=config.integer("linear_value_head_dim"),
        conv_kernel=config.integer("linear_conv_kernel_dim", default=4),
    )


def _mamba(config: Config, family: Family) -> Mixer:
    hidden = config.integer("hidden_size", "d_model")
    conv = config.integer("mamba_d_conv", "conv_kernel", "mamba_conv_kernel", default=4)
    conv_bias = config.flag("mamba_conv_bias", "use_conv_bias", default=True)
    proj_bias = config.flag("mamba_proj_bias", "use_bias")
    state = config.integer("mamba_d_state", "ssm_state_size", "state_size", "mamba_state_dim")
    inner = _mamba_inner(config, hidden)
    if family.mamba_version == 1:
        rank = config.optional("mamba_dt_rank", "time_step_rank") or -(-hidden // 16)
        return Mamba1(hidden, inner, state, rank, conv, conv_bias, proj_bias, family.inner_norms)
    heads = config.integer("mamba_n_heads", "mamba_num_heads", "num_heads")
    head_dim = config.optional("mamba_d_head", "mamba_head_dim") or inner // heads
    return Mamba2(
        hidden, heads, head_dim, state, config.integer("mamba_n_groups", "n_groups", default=1),
        conv, conv_bias, proj_bias, config.flag("mamba_rms_norm", default=family.mamba_norm),
    )  # fmt: skip


def _mamba_inner(config: Config, hidden: int) -> int:
    expand = config.values.get("mamba_expand") or config.values.get("expand") or 2
    return config.optional("mamba_d_ssm", "d_inner") or int(Fraction(str(expand)) * hidden)
