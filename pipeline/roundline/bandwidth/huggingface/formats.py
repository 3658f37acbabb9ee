"""Weight and state formats that a config.json names."""

from __future__ import annotations

from roundline.bandwidth.huggingface.config import Config
from roundline.bandwidth.huggingface.quantization import read_quantization
from roundline.bandwidth.quantization import FormatOf, Tensor, WeightFormat, find_format


def formats_of(config: Config, full: WeightFormat) -> FormatOf:
    """How each weight of the checkpoint is stored; `full` where it is not quantised."""
    quantization = config.table("quantization_config") or config.table("compression_config")
    if quantization:
        return read_quantization(quantization, full)

    def unquantised(tensor: Tensor) -> WeightFormat:
        return full

    return unquantised


def state_format_of(config: Config) -> WeightFormat | None:
    """The dtype of recurrent states, None where the config leaves it to the engine."""
    name = next(
        (config.values[k] for k in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype") if k in config), ""
    )
    return find_format(name) if name and name != "auto" else None
