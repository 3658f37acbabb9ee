"""`quantization_config` of a Hugging Face model: which weights are stored how.

The exclude list decides as much as the method: lm_head, routers, multi-token prediction and vision
usually stay at full precision. A config that contradicts itself is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from roundline.bandwidth.huggingface.module_patterns import any_names
from roundline.bandwidth.quantization import (
    FORMATS,
    FULL_PRECISION,
    FormatOf,
    Tensor,
    WeightFormat,
    block_float8,
    find_format,
    grouped,
)
from roundline.errors import UsageError

_EXCLUDE_KEYS: Final = (
    "modules_to_not_convert", "ignore", "ignored_layers", "exclude_modules", "exclude",
    "llm_int8_skip_modules", "exclude_layers",
)  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """Weights whose module one of `targets` names are stored as `stored`."""

    targets: tuple[str, ...]
    stored: WeightFormat


@dataclass(frozen=True)
class QuantizedCheckpoint:
    """Formats by tensor: the first rule that fits, unless excluded; else `full`."""

    method: str
    rules: tuple[Rule, ...]
    excluded: tuple[str, ...]
    full: WeightFormat
    skips_draft: bool
    skips_head: bool

    def format_of(self, tensor: Tensor) -> WeightFormat:
        """The format of one tensor.

        Raises:
            UsageError: its rows do not divide into the groups of its format.
        """
        if self._keeps_full(tensor):
            return self.full
        stored = next((r.stored for r in self.rules if any_names(r.targets, tensor)), self.full)
        if stored.group and self.method in _STRICT_GROUPS and tensor.columns_in % stored.group:
            raise UsageError(
                f"quantization_config: groups of {stored.group} do not divide the "
                f"{tensor.columns_in} inputs of {tensor.path}: exclude it or correct group_size"
            )
        return stored

    def _keeps_full(self, tensor: Tensor) -> bool:
        return (
            tensor.matrix in FULL_PRECISION
            or (tensor.matrix == "lm_head" and self.skips_head)
            or (tensor.matrix == "fc" and "Linear" in self._targets)
            or (tensor.is_draft and self.skips_draft)
            or any_names(self.excluded, tensor)
        )

    @property
    def _targets(self) -> frozenset[str]:
        return frozenset(target for rule in self.rules for target in rule.targets)


_STRICT_GROUPS: Final = frozenset({"gptq", "awq", "auto-round", "hqq"})


def read_quantization(config: Mapping[str, Any], full: WeightFormat) -> FormatOf:
    """Formats by tensor of one `quantization_config`; `full` is the model's own dtype.

    Raises:
        UsageError: the method is unknown or the config contradicts itself.
    """
    _refuse_contradictions(config)
    method = _method(config)
    reader = _READERS.get(method)
    if reader is None:
        raise UsageError(
            f"quantization_config: method {method!r} is unknown (known: {', '.join(_READERS)}); "
            "give --weight-format"
        )
    checkpoint = QuantizedCheckpoint(
        method=method,
        rules=tuple(reader(config)),
        excluded=tuple(_excluded(config)),
        full=full,
        skips_draft=method in _BODY_ONLY,
        skips_head=not config.get("lm_head", False) and method not in _HEAD_BY_LIST,
    )
    return checkpoint.format_of


# Methods whose tools quantise decoder layers only, and methods that list lm_head when they skip it.
_BODY_ONLY: Final = frozenset({"gptq", "awq", "auto-round", "hqq", "bitsandbytes", "mxfp4"})
_HEAD_BY_LIST: Final = frozenset({"compressed-tensors", "modelopt", "quark", "exl2", "exl3"})


def _method(config: Mapping[str, Any]) -> str:
    method = config.get("quant_method") or config.get("quant_type")
    if method is None and "quantization" in config:
        method = "modelopt"
    if method is None and ("load_in_4bit" in config or "load_in_8bit" in config):
        method = "bitsandbytes"
    if method is None:
        raise UsageError("quantization_config names no quant_method: give --weight-format")
    plain = str(method).lower().replace("_", "-")
    plain = "modelopt" if plain.startswith("modelopt") else plain
    return {"intel/auto-round": "auto-round", "fbgemm-fp8": "fp8", "gptqmodel": "gptq"}.get(
        plain, plain
    )


def _linear(stored: WeightFormat) -> list[Rule]:
    return [Rule(("Linear",), stored)]


def _fp8(config: Mapping[str, Any]) -> list[Rule]:
    block = config.get("weight_block_size")
    if not block:
        return _linear(FORMATS["fp8"])
    if len(block) != 2:
        raise UsageError(f"quantization_config: weight_block_size {block} is not rows x columns")
    return _linear(block_float8(*map(int, block)))


def _integer(config: Mapping[str, Any]) -> list[Rule]:
    """GPTQ, AWQ and their kin: packed integers with a scale, and a zero point unless symmetric."""
    bits = int(_required(config, "bits", "w_bit", "nbits"))
    group = int(config.get("group_size", config.get("q_group_size", 128)))
    if bits == 16:
        return []
    if group == -1:
        return _linear(WeightFormat(f"int{bits}", Fraction(bits), unpacks=bits < 8))
    # Both tools write packed zero points even where all are equal.
    return _linear(grouped(f"int{bits}_g{group}", bits, group, zero_bits=bits))


def _bitsandbytes(config: Mapping[str, Any]) -> list[Rule]:
    if not config.get("load_in_4bit"):
        return _linear(FORMATS["int8"])
    if not config.get("bnb_4bit_use_double_quant"):
        return _linear(FORMATS["nf4"])
    bits = 4 + Fraction(8, 64) + Fraction(32, 64 * 256)
    return _linear(WeightFormat("nf4_double", bits, 64, unpacks=True))


def _compressed_tensors(config: Mapping[str, Any]) -> list[Rule]:
    groups = config.get("config_groups") or {}
    if not groups:
        raise UsageError("quantization_config: compressed-tensors without config_groups")
    return [_compressed_group(name, group) for name, group in sorted(groups.items())]


def _compressed_group(name: str, group: Mapping[str, Any]) -> Rule:
    weights = group.get("weights")
    targets = tuple(group.get("targets") or ("Linear",))
    if not weights:
        return Rule(targets, FORMATS["bf16"])
    bits, kind = int(weights.get("num_bits", 8)), weights.get("type", "int")
    strategy, size = weights.get("strategy"), weights.get("group_size")
    if strategy in ("group", "tensor_group") and not size:
        raise UsageError(f"quantization_config: {name} has strategy {strategy} and no group_size")
    if strategy == "block":
        return Rule(targets, block_float8(*map(int, weights["block_structure"])))
    if kind == "float" and bits == 4:
        return Rule(targets, _float4(int(size or 16)))
    if size and int(size) > 0:
        zero_bits = 0 if weights.get("symmetric", True) else bits
        suffix = "" if zero_bits else "_sym"
        stored = grouped(f"int{bits}_g{size}{suffix}", bits, int(size), zero_bits=zero_bits)
        return Rule(targets, FORMATS["mxfp8"] if kind == "float" else stored)
    plain = FORMATS["fp8"] if kind == "float" else _whole(bits)
    return Rule(targets, plain)


def _whole(bits: int) -> WeightFormat:
    return WeightFormat(f"int{bits}", Fraction(bits), unpacks=bits < 8)


def _float4(group: int) -> WeightFormat:
    by_group = {16: FORMATS["nvfp4"], 32: FORMATS["mxfp4"]}
    if group not in by_group:
        raise UsageError(f"quantization_config: 4-bit floats have groups of 16 or 32, not {group}")
    return by_group[group]


def _modelopt(config: Mapping[str, Any]) -> list[Rule]:
    inner = config.get("quantization", config)
    if layers := inner.get("quantized_layers"):
        return [Rule((path,), _algorithm(entry)) for path, entry in sorted(layers.items())]
    return _linear(_algorithm(inner))


def _algorithm(entry: Mapping[str, Any]) -> WeightFormat:
    name = _required(entry, "quant_algo").lower()
    group = entry.get("group_size")
    if "nvfp4" in name and int(group or 16) != 16:
        raise UsageError(f"quantization_config: {name} has groups of 16, not {group}")
    if "nvfp4" in name:
        return FORMATS["nvfp4"]
    if "mxfp4" in name or "mxfp8" in name:
        return FORMATS["mxfp4" if "mxfp4" in name else "mxfp8"]
    if name.startswith(("w4a16", "w4a8", "int4")):
        return grouped("int4_sym", 4, int(group or 128))
    if "fp8" in name:
        return block_float8() if "block" in name or "pb" in name else FORMATS["fp8"]
    return find_format("int8" if name.startswith(("w8", "int8")) else name)


def _mxfp4(config: Mapping[str, Any]) -> list[Rule]:
    # The method quantises expert weights only, whatever the exclude list says.
    return [Rule(("mlp.experts",), FORMATS["mxfp4"])]


def _quark(config: Mapping[str, Any]) -> list[Rule]:
    weight = (config.get("global_quant_config") or {}).get("weight") or {}
    dtype = str(weight.get("dtype", ""))
    if dtype.startswith("fp4"):
        return _linear(_float4(int(weight.get("group_size") or 32)))
    return _linear(find_format("fp8" if dtype.startswith("fp8") else dtype))


def _mean_bits(config: Mapping[str, Any]) -> list[Rule]:
    bits = _required(config, "bits")
    head = str(config.get("head_bits", bits))
    return [
        Rule(("lm_head",), find_format(f"{head}bpw")),
        Rule(("Linear",), find_format(f"{bits}bpw")),
    ]


_READERS: Final[dict[str, Callable[[Mapping[str, Any]], Iterable[Rule]]]] = {
    "fp8": _fp8,
    "gptq": _integer,
    "awq": _integer,
    "auto-round": _integer,
    "hqq": _integer,
    "bitsandbytes": _bitsandbytes,
    "compressed-tensors": _compressed_tensors,
    "modelopt": _modelopt,
    "mxfp4": _mxfp4,
    "quark": _quark,
    "eetq": lambda config: _linear(FORMATS["int8"]),
    "exl2": _mean_bits,
    "exl3": _mean_bits,
}


def _refuse_contradictions(config: Mapping[str, Any]) -> None:
    method = str(config.get("quant_method", "")).lower()
    bits = config.get("bits", config.get("w_bit"))
    algorithm = str(config.get("quant_algo", "")).lower()
    conflicts = {
        "load_in_4bit and load_in_8bit": config.get("load_in_4bit") and config.get("load_in_8bit"),
        f"quant_method {method} with bits {bits}": bits is not None
        and (("fp8" in method and bits != 8) or (method == "mxfp4" and bits != 4)),
        f"awq with bits {bits}": method == "awq" and bits not in (None, 4, 8),
        f"gptq with bits {bits}": method == "gptq" and bits not in (None, 2, 3, 4, 8),
        f"fp8 with fmt {config.get('fmt')}": method == "fp8"
        and not str(config.get("fmt") or "e4m3").lower().startswith(("e4m3", "e5m2", "float8")),
        f"quant_algo {algorithm} with 4-bit config_groups": "fp8" in algorithm
        and "w4" not in algorithm
        and any((g.get("weights") or {}).get("num_bits") == 4 for g in _groups(config)),
        f"quant_algo {algorithm} with 8-bit config_groups": "nvfp4" in algorithm
        and any((g.get("weights") or {}).get("num_bits") == 8 for g in _groups(config)),
        f"quant_method {method} with quant_algo {algorithm}": bool(algorithm)
        and method in ("gptq", "awq", "fp8", "mxfp4", "bitsandbytes")
        and method not in algorithm,
    }
    for text, is_conflict in conflicts.items():
        if is_conflict:
            raise UsageError(
                f"quantization_config contradicts itself: {text}; correct it or give "
                "--weight-format"
            )


def _groups(config: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (config.get("config_groups") or {}).values()


def _required(config: Mapping[str, Any], *names: str) -> str:
    for name in names:
        if config.get(name) is not None:
            return str(config[name])
    raise UsageError(f"quantization_config lacks {names[0]}: give --weight-format")


def _excluded(config: Mapping[str, Any]) -> Iterable[str]:
    for source in (config, config.get("quantization") or {}):
        for key in _EXCLUDE_KEYS:
            yield from source.get(key) or ()
    for pattern, override in (config.get("dynamic") or {}).items():
        if pattern.startswith("-:"):
            yield "re:" + pattern[2:]
        elif (override or {}).get("bits") == 16:
            yield "re:" + pattern.removeprefix("+:")
    for name, override in (config.get("extra_config") or {}).items():
        if (override or {}).get("bits", 0) >= 16:
            yield name
