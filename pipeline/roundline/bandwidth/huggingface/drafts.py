"""Draft modules from a config.json: multi-token prediction, EAGLE heads."""

from __future__ import annotations

from dataclasses import replace

from roundline.bandwidth.architecture import Architecture, Draft, Layer
from roundline.bandwidth.huggingface.config import Config, family_of
from roundline.bandwidth.huggingface.families import Family
from roundline.bandwidth.huggingface.formats import formats_of
from roundline.bandwidth.huggingface.kinds import expert_count
from roundline.bandwidth.huggingface.layers import layer_of, norm_size
from roundline.bandwidth.mixers import Attention
from roundline.bandwidth.quantization import WeightFormat, find_format
from roundline.errors import UsageError


def mtp_of(
    config: Config, family: Family, layers: tuple[Layer, ...], full: WeightFormat
) -> Draft | None:
    """The checkpoint's own multi-token-prediction module."""
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
            layer_of(config, family, kind, len(layers), is_sparse)
            for kind in kinds or ["full_attention"]
        ),
        norm_parameters=3 * norm_size(hidden, family),
        format_of=formats_of(config, full),
        weight_format=full,
        fuse_inputs=2,
        prefix=prefix,
        fuse_module="mtp.fc" if is_qwen else f"{prefix}eh_proj",
        depth=depth,
    )


_MTP_LETTERS = {"*": "full_attention", "M": "mamba", "-": "mlp", "E": "moe"}


def eagle_of(config: Config, target: Architecture, is_third: bool) -> Draft:
    """An EAGLE head; the third kind reads three hidden vectors and has its own vocabulary.

    Raises:
        UsageError: its hidden size is not the target's.
    """
    hidden = config.integer("hidden_size")
    if hidden != target.hidden:
        raise UsageError(
            f"{config.name}: hidden_size {hidden} of the draft head is not the target's "
            f"{target.hidden}"
        )
    family, full = family_of(config), find_format(config.dtype)
    layer = layer_of(config, family, "full_attention", 0, is_sparse=False)
    vocab = config.optional("draft_vocab_size") or target.vocab
    if is_third:
        layer = _with_two_inputs(layer)
    return Draft(
        name=config.name, hidden=hidden, layers=(layer,), norm_parameters=2 * hidden * is_third,
        format_of=formats_of(config, full), weight_format=full, fuse_inputs=3 if is_third else 2,
        own_vocab=vocab if is_third else None,
    )  # fmt: skip


def _with_two_inputs(layer: Layer) -> Layer:
    """EAGLE-3 reads the embedding beside the hidden vector."""
    mixers = tuple(replace(m, input_copies=2) for m in layer.mixers if isinstance(m, Attention))
    return replace(layer, mixers=mixers)
