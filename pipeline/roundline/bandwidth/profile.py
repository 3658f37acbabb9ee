"""Calibrated efficiencies and latencies: a TOML profile that a capture wrote and `predict` reads.

A profile is fitted on one capture. It reconciles that capture by construction, so it is worth
something only for another one.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from roundline.bandwidth.communication import CollectiveCost, LinkCosts
from roundline.bandwidth.efficiency import Efficiency, default_efficiency
from roundline.bandwidth.hardware import Gpu
from roundline.errors import UsageError

SCHEMA: Final = "roundline.profile/1"
_LIMIT_BYTES: Final = 10**6


@dataclass(frozen=True)
class FittedEfficiency(Efficiency):
    """A weight read takes its own start and then its bytes: time = latency + bytes/(eff x peak).

    `gemm` and `gemm_unpacking` hold for all sizes, `stream` and `kernel_latency_ns` for caches
    and states alone.
    """

    gemm_latency_ns: int = 0
    unpacking_latency_ns: int = 0

    def weight_read_ns(self, floor_ns: Fraction, unpacks: bool) -> Fraction:
        """Expected time of one weight read of which the floor is known."""
        if unpacks:
            return self.unpacking_latency_ns + floor_ns / self.gemm_unpacking
        return self.gemm_latency_ns + floor_ns / self.gemm


@dataclass(frozen=True)
class Line:
    """time = `latency_ns` + bytes / (`fraction` x peak)."""

    latency_ns: int
    fraction: Fraction


@dataclass(frozen=True)
class ProfiledCollective:
    """A fitted collective: `operation` is all_reduce or all_gather, among `gpus` GPUs."""

    operation: str
    gpus: int
    cost: CollectiveCost


@dataclass(frozen=True)
class Origin:
    """What a profile was fitted on; `sources` are names and SHA-256 sums of files."""

    gpu: str
    hbm_gbps: Fraction
    model: str
    engine: str
    tp: int
    draft_steps: int
    batch: int
    context: int
    rounds: int
    tool_version: str
    sources: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Profile:
    """What was fitted; None where the capture could not tell, so that defaults hold."""

    origin: Origin
    gemm: Line | None = None
    unpacking: Line | None = None
    stream: Line | None = None
    node_latency_ns: int | None = None
    collectives: tuple[ProfiledCollective, ...] = ()

    def efficiency(self, gpu: Gpu) -> Efficiency:
        """The fitted efficiency; the defaults of the GPU's memory where nothing was fitted."""
        default = default_efficiency(gpu)
        gemm = self.gemm or Line(default.kernel_latency_ns, default.gemm)
        unpacking = self.unpacking or Line(default.kernel_latency_ns, default.gemm_unpacking)
        stream = self.stream or Line(default.kernel_latency_ns, default.stream)
        nodes = self.node_latency_ns
        return FittedEfficiency(
            gemm=gemm.fraction,
            gemm_unpacking=unpacking.fraction,
            stream=stream.fraction,
            kernel_latency_ns=stream.latency_ns,
            node_latency_ns=default.node_latency_ns if nodes is None else nodes,
            gemm_latency_ns=gemm.latency_ns,
            unpacking_latency_ns=unpacking.latency_ns,
        )

    def links(self, default: LinkCosts | None, gpus: int) -> LinkCosts | None:
        """`default` with the fitted collectives, where they were fitted among as many GPUs."""
        fitted = {c.operation: c.cost for c in self.collectives if c.gpus == gpus}
        if default is None or not fitted:
            return default
        if "all_reduce" in fitted:
            default = replace(default, all_reduce=fitted["all_reduce"], bulk=None)
        return replace(default, all_gather=fitted.get("all_gather", default.all_gather))

    def sentence(self, gpu: Gpu, gpus: int) -> str:
        """What a prediction for `gpus` of a GPU rests on."""
        o = self.origin
        text = f"efficiencies fitted on {o.rounds} rounds of {o.model} on {o.tp} x {o.gpu}"
        if o.gpu not in gpu.device_names:
            text += f", another GPU than {gpu.device_names[0]}"
        if gpus > 1 and all(c.gpus != gpus for c in self.collectives):
            text += f"; it says nothing of collectives among {gpus} GPUs"
        return text


def read_profile(path: Path) -> Profile:
    """The profile in a TOML file.

    Raises:
        UsageError: it is no profile, or one of its numbers makes no sense.
    """
    data = path.read_bytes()[: _LIMIT_BYTES + 1]
    if len(data) > _LIMIT_BYTES:
        raise UsageError(f"{path.name} is larger than any profile")
    try:
        return _profile(tomllib.loads(data.decode(), parse_float=Decimal))
    except UsageError as error:
        raise UsageError(f"{path.name}: {error}") from None
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise UsageError(
            f"{path.name} is no profile of `roundline reconcile --calibrate`:"
            f" {type(error).__name__}: {error}"
        ) from None


def _profile(rows: Mapping[str, Any]) -> Profile:
    if rows["schema"] != SCHEMA:
        raise UsageError(f"schema {rows['schema']!r}, expected {SCHEMA!r}")
    origin = dict(rows["origin"])
    sources = tuple((s["name"], s["sha256"]) for s in origin.pop("sources"))
    lines = {name: _line(rows[name]) for name in ("gemm", "unpacking", "stream") if name in rows}
    nodes = rows.get("nodes")
    return Profile(
        Origin(**origin | {"hbm_gbps": Fraction(origin["hbm_gbps"]), "sources": sources}),
        node_latency_ns=None if nodes is None else _ns(nodes["latency_us"]),
        collectives=tuple(map(_collective, rows.get("collective", ()))),
        **lines,
    )


def _line(row: Mapping[str, Any]) -> Line:
    fraction = Fraction(row["fraction"])
    if not 0 < fraction <= 1:
        raise UsageError(f"fraction {float(fraction):g} is outside 0 to 1")
    return Line(_ns(row["latency_us"]), fraction)


def _ns(microseconds: Any) -> int:
    ns = round(1000 * Fraction(microseconds))
    if ns < 0:
        raise UsageError("a latency cannot be negative")
    return ns


def _collective(row: Mapping[str, Any]) -> ProfiledCollective:
    beta = Fraction(row["beta_us_per_kb"])
    if beta < 0:
        raise UsageError("beta_us_per_kb cannot be negative")
    cost = CollectiveCost(
        row["kernel"], row["link"], Fraction(_ns(row["alpha_us"])), beta, "fitted on a capture"
    )
    return ProfiledCollective(row["operation"], int(row["gpus"]), cost)


def dump_profile(profile: Profile, comments: tuple[str, ...] = ()) -> str:
    """The profile as TOML text under `comments`; equal profiles give equal bytes."""
    return "\n".join([*(f"# {line}" for line in comments), *_toml(profile)]) + "\n"


def _toml(p: Profile) -> Iterator[str]:
    yield f"schema = {_text(SCHEMA)}"
    for name, line in (("gemm", p.gemm), ("unpacking", p.unpacking), ("stream", p.stream)):
        if line is not None:
            yield from ("", f"[{name}]", f"fraction = {float(line.fraction):.6f}")
            yield f"latency_us = {line.latency_ns / 1000:.3f}"
    if p.node_latency_ns is not None:
        yield from ("", "[nodes]", f"latency_us = {p.node_latency_ns / 1000:.3f}")
    for c in p.collectives:
        yield from ("", "[[collective]]", f"operation = {_text(c.operation)}")
        yield f"kernel = {_text(c.cost.kernel)}"
        yield from (f"link = {_text(c.cost.link)}", f"gpus = {c.gpus}")
        yield f"alpha_us = {float(c.cost.alpha_ns) / 1000:.3f}"
        yield f"beta_us_per_kb = {float(c.cost.beta_ns_per_byte):.6f}"
    yield from _origin(p.origin)


def _origin(o: Origin) -> Iterator[str]:
    yield from ("", "[origin]", f"gpu = {_text(o.gpu)}", f"hbm_gbps = {float(o.hbm_gbps):.6f}")
    yield from (f"model = {_text(o.model)}", f"engine = {_text(o.engine)}")
    for name in ("tp", "draft_steps", "batch", "context", "rounds"):
        yield f"{name} = {getattr(o, name)}"
    yield f"tool_version = {_text(o.tool_version)}"
    sources = ", ".join(f"{{name = {_text(n)}, sha256 = {_text(s)}}}" for n, s in o.sources)
    yield f"sources = [{sources}]"


def _text(value: str) -> str:
    return json.dumps(value)  # a JSON string is a TOML basic string
