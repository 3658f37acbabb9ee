"""GPUs by the name that the driver prints: datasheet and achievable bandwidth are two numbers."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any

from roundline.errors import UnknownNameError, UsageError

_ADVICE = "name the card as the driver prints it, or give its bandwidth with --hbm-gbps"
_UUID = re.compile(r"\(uuid[^)]*\)|^gpu \d+:")
_DECORATION = re.compile(
    r"\b(nvidia|amd|intel|apple|geforce|tesla|radeon|instinct|generation|gpu)\b|\((r|tm)\)"
)
_SEPARATORS = re.compile(r"[\s_\-/]+")
_MEMORY = re.compile(r"(\d+)g[b]?")


@dataclass(frozen=True)
class Measurement:
    """A bandwidth that somebody measured: `kind` says whether by a read kernel or a whole step."""

    gbps: Fraction
    fraction: Fraction
    kind: str

    @property
    def is_stream(self) -> bool:
        """A pure memory kernel, and so an upper bound for a GEMM; a decode step is not one."""
        return "kernel" in self.kind or "copy" in self.kind or "stream" in self.kind


@dataclass(frozen=True)
class Gpu:
    """One device as a profiler sees it. GB is 1e9 bytes; GB/s is bytes per nanosecond.

    `hbm_gbps` is the datasheet's peak, exact. `nvlink_gbps` counts both directions.
    """

    key: str
    device_names: tuple[str, ...]
    arch: str
    memory_gb: Fraction
    memory_type: str
    hbm_gbps: Fraction
    l2_bytes: int | None
    nvlink_gbps: Fraction
    link_note: str
    pcie: str
    bf16_tflops: Fraction | None
    fp8_tflops: Fraction | None
    measured: Measurement | None
    source: str
    confidence: str
    note: str

    @property
    def memory_bytes(self) -> int:
        """Device memory of the datasheet."""
        return int(self.memory_gb * 10**9)

    @property
    def stream_fraction(self) -> Fraction:
        """Fraction of peak that a pure read reaches: measured on this card, or of its kind."""
        if self.measured and self.measured.is_stream:
            return self.measured.fraction
        return Fraction(95, 100) if self.memory_type.startswith("GDDR") else Fraction(90, 100)

    @property
    def has_nvlink(self) -> bool:
        """True where every pair is linked by design: an optional bridge is not assumed."""
        return self.nvlink_gbps > 0 and "bridge" not in self.link_note

    def with_bandwidth(self, hbm_gbps: Fraction) -> Gpu:
        """The same device with the peak bandwidth that the user gives, in GB/s.

        Raises:
            UsageError: the bandwidth is not positive.
        """
        if hbm_gbps <= 0:
            raise UsageError(f"--hbm-gbps {float(hbm_gbps):g}: a bandwidth must be above zero")
        note = cross_check(self, hbm_gbps) if self.confidence != "user" else None
        return replace(
            self, hbm_gbps=hbm_gbps, source="given by the user", confidence="user", note=note or ""
        )


def find_gpu(name: str) -> Gpu:
    """The device called `name`: driver name, catalogue key or an unambiguous short name.

    Case, the vendor's prefix and separators do not matter. A whole name wins over a short one. A
    short name must be a run of whole words of one device's name ("A6000" is no part of "RTX 6000
    Ada"), and a memory size in it must be the device's own. Extra words name another product
    ("Laptop", "SUPER", "MIG 1g.10gb"), so they never match.

    Raises:
        UnknownNameError: nobody knows the name, or several devices share it.
    """
    found = _named(name)
    if len(found) == 1:
        return found[0]
    if found:
        candidates = ", ".join(sorted(gpu.device_names[0] for gpu in found))
        raise UnknownNameError("GPU", name, (), f"it may be {candidates}; {_ADVICE}")
    known = [alias.lower() for gpu in catalogue() for alias in (gpu.key, *gpu.device_names)]
    raise UnknownNameError("GPU", name, known, _ADVICE)


def custom_gpu(name: str, hbm_gbps: Fraction) -> Gpu:
    """A device outside the catalogue of which only the bandwidth is known, in GB/s."""
    gpu = Gpu(
        key="custom", device_names=(name,), arch="unknown", memory_gb=Fraction(0),
        memory_type="unknown", hbm_gbps=hbm_gbps, l2_bytes=None, nvlink_gbps=Fraction(0),
        link_note="unknown", pcie="unknown", bf16_tflops=None, fp8_tflops=None, measured=None,
        source="given by the user", confidence="user", note="",
    )  # fmt: skip
    return gpu.with_bandwidth(hbm_gbps)


_UNITS = {
    "": Fraction(1), "gb": Fraction(1), "tb": Fraction(1000), "mb": Fraction(1, 1000),
    "gib": Fraction(2**30, 10**9), "tib": Fraction(2**40, 10**9),
}  # fmt: skip


def parse_bandwidth(text: str) -> Fraction:
    """GB/s of a text such as "768", "3.35 TB/s" or "715 GiB/s"; GB is 1e9 bytes, exact.

    Raises:
        UsageError: it is no bandwidth above zero.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)(?:/s|ps)?", text.strip().lower())
    if match is None or match[2] not in _UNITS or not Fraction(match[1]):
        raise UsageError(f"bandwidth {text!r}: expected GB/s such as 768, 3.35TB/s or 715GiB/s")
    return Fraction(match[1]) * _UNITS[match[2]]


def cross_check(gpu: Gpu, reported_gbps: Fraction) -> str | None:
    """A sentence where another source's bandwidth of this device differs by over 2 %, else None."""
    ratio = float(reported_gbps / gpu.hbm_gbps)
    if abs(ratio - 1) <= 0.02:
        return None
    mixed = any(abs(ratio / unit - 1) < 0.01 for unit in (2**30 / 1e9, 1e9 / 2**30))
    hint = ": GiB were taken for GB" if mixed else ""
    return (
        f"{float(reported_gbps):g} GB/s is {100 * (ratio - 1):+.1f} % off the datasheet's "
        f"{float(gpu.hbm_gbps):g} GB/s of {gpu.device_names[0]}{hint}"
    )


@cache
def catalogue() -> tuple[Gpu, ...]:
    """All devices of `catalog/gpus.toml`."""
    text = files("roundline").joinpath("catalog/gpus.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text, parse_float=Decimal)
    return tuple(_from_row(key, row) for key, row in rows.items())


def _from_row(key: str, row: Mapping[str, Any]) -> Gpu:
    return Gpu(
        key=key,
        device_names=tuple(row["device_names"]),
        arch=row["arch"],
        memory_gb=Fraction(row["memory_gb"]),
        memory_type=row["memory_type"],
        hbm_gbps=Fraction(row["hbm_gbps"]),
        l2_bytes=int(row["l2_mb"] * 10**6) if "l2_mb" in row else None,
        nvlink_gbps=Fraction(row["nvlink_gbps"]),
        link_note=row["link_note"],
        pcie=row["pcie"],
        bf16_tflops=_optional(row, "bf16_tflops"),
        fp8_tflops=_optional(row, "fp8_tflops"),
        measured=_measurement(row),
        source=row["source"],
        confidence=row["confidence"],
        note=row["note"],
    )


def _optional(row: Mapping[str, Any], key: str) -> Fraction | None:
    return Fraction(row[key]) if key in row else None


def _measurement(row: Mapping[str, Any]) -> Measurement | None:
    if "measured_gbps" not in row:
        return None
    return Measurement(
        Fraction(row["measured_gbps"]), Fraction(row["measured_fraction"]), row["measured_kind"]
    )


def _words(name: str) -> tuple[str, ...]:
    plain = _DECORATION.sub(" ", _UUID.sub(" ", name.lower()))
    words = _SEPARATORS.sub(" ", plain).split()
    return tuple(re.sub(r"^sxm\d$", "sxm", word) for word in words)


def _aliases(gpu: Gpu) -> tuple[tuple[str, ...], ...]:
    return tuple(map(_words, (gpu.key, *gpu.device_names)))


def _named(name: str) -> list[Gpu]:
    words = _words(name)
    exact = [gpu for gpu in catalogue() if words in _aliases(gpu)]
    if exact or not words:
        return exact
    short, memory_gb = _without_memory(words)
    for fits in (tuple.__eq__, _ends, _occurs):
        found = [
            gpu for gpu in catalogue()
            if (memory_gb is None or memory_gb == gpu.memory_gb)
            and any(fits(short, _bare(alias, gpu)) for alias in _aliases(gpu))
        ]  # fmt: skip
        if found:
            return found
    return []


def _without_memory(words: tuple[str, ...]) -> tuple[tuple[str, ...], int | None]:
    sizes = [int(size[1]) for word in words if (size := _MEMORY.fullmatch(word))]
    return tuple(w for w in words if not _MEMORY.fullmatch(w)), sizes[0] if sizes else None


def _bare(alias: tuple[str, ...], gpu: Gpu) -> tuple[str, ...]:
    size = str(gpu.memory_gb)
    return tuple(word for word in alias if word != size and not _MEMORY.fullmatch(word))


def _ends(short: tuple[str, ...], alias: tuple[str, ...]) -> bool:
    return bool(short) and alias[-len(short) :] == short


def _occurs(short: tuple[str, ...], alias: tuple[str, ...]) -> bool:
    starts = range(len(alias) - len(short) + 1)
    return bool(short) and any(alias[i : i + len(short)] == short for i in starts)
