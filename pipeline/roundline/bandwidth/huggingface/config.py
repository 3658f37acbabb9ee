"""Typed access to a Hugging Face `config.json`: one quantity, many spellings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from roundline.bandwidth.huggingface.families import CLASS_DEFAULTS, FAMILIES, FOREIGN_KEYS, Family
from roundline.errors import UsageError

_NESTED: Final = ("text_config", "llm_config", "language_config", "thinker_config")
_OUTER_WINS: Final = (
    "tie_word_embeddings", "quantization_config", "vision_config", "torch_dtype", "dtype",
)  # fmt: skip


@dataclass(frozen=True)
class Config:
    """The keys of one decoder; `name` appears in error messages."""

    values: Mapping[str, Any]
    name: str

    @property
    def model_type(self) -> str:
        """The family, in lower case."""
        return str(self.values.get("model_type") or "").lower()

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def integer(self, *keys: str, default: int | None = None) -> int:
        """The first of `keys` that is present, else the default.

        Raises:
            UsageError: none is present and there is no default, or it is no whole number >= 0.
        """
        value = self.optional(*keys)
        if value is None:
            value = default
        if value is None:
            raise UsageError(f"{self.name}: config.json lacks {' or '.join(keys)}")
        return value

    def optional(self, *keys: str) -> int | None:
        """As `integer`, None where no key is present."""
        for key in keys:
            value = self.values.get(key)
            if value is None or value == "auto":
                continue
            whole = isinstance(value, int | float) and not isinstance(value, bool)
            if not whole or value != int(value) or value < 0:
                raise UsageError(f"{self.name}: {key} is {value!r}, not a whole number")
            return int(value)
        return None

    def flag(self, *keys: str, default: bool = False) -> bool:
        """The first of `keys` that is present, as a truth value."""
        return next((bool(self.values[key]) for key in keys if key in self), default)

    def texts(self, *keys: str) -> list[str]:
        """The first of `keys` that holds a list or a pattern of letters."""
        return next((list(map(str, self.values[key])) for key in keys if self.values.get(key)), [])

    def integers(self, key: str) -> list[int]:
        """A list of whole numbers; empty where absent."""
        value = self.values.get(key) or []
        return [int(item) for item in value] if isinstance(value, list | tuple) else []

    def table(self, key: str) -> Mapping[str, Any]:
        """A nested object; empty where absent."""
        value = self.values.get(key)
        return value if isinstance(value, Mapping) else {}

    @property
    def dtype(self) -> str:
        """The dtype of unquantised weights."""
        dtype = self.values.get("torch_dtype") or self.values.get("dtype") or "bfloat16"
        return "bfloat16" if dtype == "auto" else str(dtype)


def decoder_config(document: Mapping[str, Any], name: str) -> Config:
    """The text decoder of a config; a multimodal one nests it."""
    values = dict(document)
    for key in _NESTED:
        nested = values.get(key)
        if isinstance(nested, Mapping):
            kept = {k: values[k] for k in _OUTER_WINS if values.get(k) is not None}
            supplied = CLASS_DEFAULTS.get(str(nested.get("model_type")), {})
            return decoder_config({**supplied, **_without(values, key), **nested, **kept}, name)
    return Config(values, name)


def family_of(config: Config) -> Family:
    """The traits of the config's model_type; Llama's where it is unknown.

    Raises:
        UsageError: the model has layers that Roundline does not cover.
    """
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


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k != key}
