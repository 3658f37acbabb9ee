"""Hugging Face `config.json` -> `Architecture`, for every family of `families.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

from roundline.bandwidth.architecture import Architecture, Draft, Layer
from roundline.bandwidth.families import FAMILIES, FOREIGN_KEYS, Family
from roundline.bandwidth.feed_forward import Dense, Experts, FeedForward
from roundline.bandwidth.hf_config import Config, decoder_config
from roundline.bandwidth.hf_layers import layer_kinds, moe_layers, window_of
from roundline.bandwidth.mixers import (
    Attention,
    GatedDeltaNet,
    LatentAttention,
    Mamba1,
    Mamba2,
    Mixer,
    ShortConv,
)
from roundline.bandwidth.quantization import FormatOf, Tensor, WeightFormat, find_format
from roundline.bandwidth.quantization_config import read_quantization
from roundline.errors import UsageError


def read_config(document: Mapping[str, Any], name: str, source: str) -> Architecture:
    """The architecture that a config.json describes.

    Raises:
        UsageError: a shape is missing, contradictory or of an unknown kind.
    """
    config = decoder_config(document, name)
    family = _family(config)
    full = find_format(config.dtype)
    hidden, vocab = config.integer("hidden_size", "d_model"), config.integer("vocab_size")
    layers = _layers(config, family)
    mtp = _mtp(config, family, layers, full)
    return Architecture(
        name=name,
        hidden=hidden,
        vocab=vocab,
        tied=config.flag("tie_word_embeddings", default=family.tied),
        layers=layers,
        norm_parameters=_norm_size(hidden, family)
        + vocab * config.flag("lm_head_bias", default=family.head_bias),
        weight_format=full,
        format_of=_formats(config, full),
        mtp=mtp,
        draft=mtp,
        vision_parameters=_vision(config.table("vision_config")),
        has_vision="vision_config" in config,
        state_format=_state_format(config),
        source=source,
        notes=tuple(_notes(config)),
    )


def read_draft(document: Mapping[str, Any], name: str, target: Architecture) -> Draft:
    """A separate draft for `target`: an EAGLE head or a whole model.

    Raises:
        UsageError: as for `read_config`, or an EAGLE head of another hidden size.
    """
    config = decoder_config(document, name)
    kinds = " ".join(config.texts("architectures")).lower()
    if "eagle" in kinds or "draft_vocab_size" in config:
        return _eagle(config, target, is_third="eagle3" in kinds or "draft_vocab_size" in config)
    model = read_config(document, name, name)
    return Draft(
        name=name, hidden=model.hidden, layers=model.layers,
        norm_parameters=model.norm_parameters, format_of=model.format_of,
        weight_format=model.weight_format, own_vocab=model.vocab,
    )  # fmt: skip


def _family(config: Config) -> Family:
    if config.flag("is_encoder_decoder"):
        raise UsageError(f"{config.name}: an encoder-decoder has no decode round to predict")
    for key, what in FOREIGN_KEYS.items():
        if config.values.get(key):
            raise UsageError(f"{config.name}: {key} means {what}, which the model does not cover")
    if 0 in config.integers("attn_type_list"):
        raise UsageError(
            f"{config.name}: attn_type_list holds lightning attention, which the "
            "model does not cover"
        )
    return FAMILIES.get(config.model_type, Family())


def _notes(config: Config) -> list[str]:
    notes = []
    if config.model_type not in FAMILIES:
        notes.append(
            f"model_type {config.model_type!r} is unknown and read as a Llama-like decoder: "
            "compare the parameter count with the publisher's"
        )
    if "vision_config" in config and _vision(config.table("vision_config")) is None:
        notes.append("the vision tower is not counted in parameters and checkpoint bytes")
    quantization = config.table("quantization_config")
    if quantization.get("kv_cache_scheme") or "kv_cache_quant_algo" in str(quantization):
        notes.append("the checkpoint has scales for a quantised KV cache: see --kv-format")
    if find_format(config.dtype).name == "fp32":
        notes.append("weights are float32; engines serve them in 16 bits: see --weight-format")
    if "tie_word_embeddings" not in config:
        tied = FAMILIES.get(config.model_type, Family()).tied
        notes.append(f"tie_word_embeddings is not in the config and taken as {tied}")
    return notes


def _formats(config: Config, full: WeightFormat) -> FormatOf:
    quantization = config.table("quantization_config") or config.table("compression_config")
    if quantization:
        return read_quantization(quantization, full)

    def unquantised(tensor: Tensor) -> WeightFormat:
        return full

    return unquantised


def _state_format(config: Config) -> WeightFormat | None:
    name = next(
        (config.values[k] for k in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype") if k in config), ""
    )
    return find_format(name) if name and name != "auto" else None


def _layers(config: Config, family: Family) -> tuple[Layer, ...]:
    kinds = layer_kinds(config, family)
    sparse = moe_layers(config, kinds)
    return tuple(_layer(config, family, kind, i, i in sparse) for i, kind in enumerate(kinds))


def _layer(config: Config, family: Family, kind: str, index: int, is_sparse: bool) -> Layer:
    mixers = _mixers(config, family, kind, window_of(config, family, kind, index))
    is_single = config.model_type in ("nemotron_h", "mamba", "mamba2", "falcon_mamba")
    has_feed_forward = kind in ("mlp", "moe") or not is_single
    hidden = config.integer("hidden_size", "d_model")
    return Layer(
        mixers=mixers,
        feed_forward=_feed_forward(config, family, is_sparse) if has_feed_forward else None,
        norms=family.norms,
        norm_parameters=family.norms * _norm_size(hidden, family),
    )


def _norm_size(hidden: int, family: Family) -> int:
    return hidden * (1 + family.norm_bias)


def _mixers(config: Config, family: Family, kind: str, window: int | None) -> tuple[Mixer, ...]:
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


def _feed_forward(config: Config, family: Family, is_sparse: bool) -> FeedForward:
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


def expert_count(config: Config) -> int:
    """Routed experts of a sparse layer, 0 for a dense model."""
    return config.integer(
        "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", default=0
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


def _mtp(
    config: Config, family: Family, layers: tuple[Layer, ...], full: WeightFormat
) -> Draft | None:
    depth = config.integer(
        "mtp_num_hidden_layers", "num_nextn_predict_layers", "num_mtp_layers", default=family.mtp
    )
    if not depth:
        return None
    hidden = config.integer("hidden_size")
    is_qwen = config.model_type.startswith("qwen")
    prefix = "mtp.layers.0." if is_qwen else f"model.layers.{len(layers)}."
    pattern = config.texts("mtp_hybrid_override_pattern")
    kinds = [_MTP_LETTERS.get(letter, "full_attention") for letter in pattern]
    is_sparse = expert_count(config) > 0
    return Draft(
        name="mtp",
        hidden=hidden,
        layers=tuple(
            _layer(config, family, kind, len(layers), is_sparse)
            for kind in kinds or ["full_attention"]
        ),
        norm_parameters=3 * _norm_size(hidden, family),
        format_of=_formats(config, full),
        weight_format=full,
        fuse_inputs=2,
        prefix=prefix,
        fuse_module="mtp.fc" if is_qwen else f"{prefix}eh_proj",
        depth=depth,
    )


_MTP_LETTERS = {"*": "full_attention", "M": "mamba", "-": "mlp", "E": "moe"}


def _eagle(config: Config, target: Architecture, is_third: bool) -> Draft:
    hidden = config.integer("hidden_size")
    if hidden != target.hidden:
        raise UsageError(
            f"{config.name}: hidden_size {hidden} of the draft head is not the target's "
            f"{target.hidden}"
        )
    family, full = _family(config), find_format(config.dtype)
    layer = _layer(config, family, "full_attention", 0, is_sparse=False)
    vocab = config.optional("draft_vocab_size") or target.vocab
    if is_third:
        layer = _with_two_inputs(layer)
    return Draft(
        name=config.name, hidden=hidden, layers=(layer,), norm_parameters=2 * hidden * is_third,
        format_of=_formats(config, full), weight_format=full, fuse_inputs=3 if is_third else 2,
        own_vocab=vocab if is_third else None,
    )  # fmt: skip


def _with_two_inputs(layer: Layer) -> Layer:
    """EAGLE-3 reads the embedding beside the hidden vector."""
    mixers = tuple(replace(m, input_copies=2) for m in layer.mixers if isinstance(m, Attention))
    return replace(layer, mixers=mixers)


def _vision(vision: Mapping[str, Any]) -> int | None:
    """Parameters of a Qwen3-VL tower (also in Qwen3.5 and 3.6); None for any other."""
    keys = ("depth", "hidden_size", "intermediate_size", "out_hidden_size", "patch_size",
            "num_position_embeddings", "spatial_merge_size", "temporal_patch_size")  # fmt: skip
    if not all(isinstance(vision.get(key), int) for key in keys):
        return None
    depth, hidden, inner, out, patch, positions, merge, frames = (vision[key] for key in keys)
    pixels = int(vision.get("in_channels", 3)) * frames * patch**2
    attention = 4 * hidden * (hidden + 1)
    mlp = 2 * hidden * inner + hidden + inner
    merged = hidden * merge**2
    merger = merged * (merged + 1) + (merged + 1) * out
    deep = len(vision.get("deepstack_visual_indexes") or ()) * (merger + 2 * merged)
    blocks = depth * (attention + mlp + 4 * hidden)
    return int((pixels + 1 + positions) * hidden + blocks + merger + 2 * hidden + deep)
