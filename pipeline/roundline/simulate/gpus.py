"""GPUs that captures can be simulated on, as profilers describe them."""

from __future__ import annotations

from typing import Final

from roundline.errors import UnknownNameError
from roundline.simulate.timeline import Gpu

_GPUS: Final = {
    "rtx-a6000": Gpu(
        name="NVIDIA RTX A6000",
        chip="GA102",
        compute_capability=(8, 6),
        memory_bandwidth_bytes_per_s=768_096_000_000,
        memory_bytes=51_033_931_776,
        l2_bytes=6_291_456,
        sm_count=84,
    ),
    "h100": Gpu(
        name="NVIDIA H100 80GB HBM3",
        chip="GH100",
        compute_capability=(9, 0),
        memory_bandwidth_bytes_per_s=3_352_320_000_000,
        memory_bytes=85_029_158_912,
        l2_bytes=52_428_800,
        sm_count=132,
    ),
    "gh200": Gpu(
        name="NVIDIA GH200 480GB",
        chip="GH100",
        compute_capability=(9, 0),
        memory_bandwidth_bytes_per_s=4_022_784_000_000,
        memory_bytes=101_467_291_648,
        l2_bytes=62_914_560,
        sm_count=132,
    ),
    "mi300x": Gpu(
        name="AMD Instinct MI300X",
        chip="gfx942",
        compute_capability=(9, 4),
        memory_bandwidth_bytes_per_s=5_300_000_000_000,
        memory_bytes=206_141_652_992,
        l2_bytes=4_194_304,
        sm_count=304,
        vendor="amd",
    ),
}
GPU_NAMES: Final = tuple(_GPUS)


def gpu_of(name: str) -> Gpu:
    """The GPU called `name` here.

    Raises:
        UnknownNameError: nobody knows it.
    """
    if name not in _GPUS:
        raise UnknownNameError("GPU", name, _GPUS, f"simulate knows {', '.join(_GPUS)}")
    return _GPUS[name]
