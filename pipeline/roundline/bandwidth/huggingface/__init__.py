"""Hugging Face `config.json` -> `Architecture`, for every family of `families.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roundline.bandwidth.architecture import Architecture, Draft
from roundline.bandwidth.huggingface.config import Config, decoder_config, family_of
from roundline.bandwidth.huggingface.drafts import eagle_of, mtp_of
from roundline.bandwidth.huggingface.families import FAMILIES, Family
from roundline.bandwidth.huggingface.formats import formats_of, state_format_of
from roundline.bandwidth.huggingface.layers import layers_of, norm_size
from roundline.bandwidth.huggingface.vision import vision_parameters
from roundline.bandwidth.quantization import find_format


def read_config(document: Mapping[str, Any], name: str, source: str) -> Architecture:
    """The architecture that a config.json describes.

    Raises:
        UsageError: a shape is missing, contradictory or of an unknown kind.
    """
    config = decoder_config(document, name)
    family = family_of(config)
    full = find_format(config.dtype)
    hidden, vocab = config.integer("hidden_size", "d_model"), config.integer("vocab_size")
    layers = layers_of(config, family)
    mtp = mtp_of(config, family, layers, full)
    return Architecture(
        name=name,
        hidden=hidden,
        vocab=vocab,
        tied=config.flag("tie_word_embeddings", default=family.tied),
        layers=layers,
        norm_parameters=norm_size(hidden, family)
        + vocab * config.flag("lm_head_bias", default=family.head_bias),
        weight_format=full,
        format_of=formats_of(config, full),
        mtp=mtp,
        draft=mtp,
        vision_parameters=vision_parameters(config.table("vision_config")),
        has_vision="vision_config" in config,
        state_format=state_format_of(config),
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
        return eagle_of(config, target, is_third="eagle3" in kinds or "draft_vocab_size" in config)
    model = read_config(document, name, name)
    return Draft(
        name=name, hidden=model.hidden, layers=model.layers,
        norm_parameters=model.norm_parameters, format_of=model.format_of,
        weight_format=model.weight_format, own_vocab=model.vocab,
    )  # fmt: skip


def _notes(config: Config) -> list[str]:
    notes = []
    if config.model_type not in FAMILIES:
        notes.append(
            f"model_type {config.model_type!r} is unknown and read as a Llama-like decoder: "
            "compare the parameter count with the publisher's"
        )
    if "vision_config" in config and vision_parameters(config.table("vision_config")) is None:
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
