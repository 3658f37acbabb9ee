"""Every engine that can be simulated, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from roundline.simulate.engines.llamacpp import LlamaCpp
from roundline.simulate.engines.plain import PlainDecode
from roundline.simulate.engines.setup import Program, Setup
from roundline.simulate.engines.sglang import SglangMtp
from roundline.simulate.engines.sglang_variants import (
    SglangAdaptive,
    SglangBlock,
    SglangNgram,
    SglangStandalone,
    SglangV1,
)
from roundline.simulate.engines.trtllm import TrtllmOneModel, TrtllmTwoModel
from roundline.simulate.engines.vllm import Vllm
from roundline.simulate.names import gemm, llamacpp, rocm, sglang, trtllm, vllm
from roundline.simulate.names.dialect import Dialect
from roundline.simulate.names.gemm import GemmPicker
from roundline.simulate.timeline import Gpu


class DialectMaker(Protocol):
    """Makes the dialect of an engine over the GEMMs of a GPU."""

    def __call__(self, gemm: GemmPicker, *, custom_all_reduce: bool = True) -> Dialect:
        """The dialect."""


@dataclass(frozen=True)
class Engine:
    """How to run an engine.

    Attributes:
        program: from a server's setup to its rounds.
        dialect: the kernels of its layers.
        drafts_with: `mtp` needs a target with an MTP layer, `any` may have a draft model too.
    """

    program: Callable[[Setup], Program]
    dialect: DialectMaker
    drafts_with: str | None = None


def _llamacpp_dialect(gemm: GemmPicker, *, custom_all_reduce: bool = True) -> Dialect:
    return llamacpp.dialect()


ENGINES: Final[dict[str, Engine]] = {
    "sglang-mtp": Engine(SglangMtp, sglang.dialect, "mtp"),
    "sglang-v1": Engine(SglangV1, sglang.dialect, "mtp"),
    "sglang-adaptive": Engine(SglangAdaptive, sglang.dialect, "mtp"),
    "sglang-standalone": Engine(SglangStandalone, sglang.dialect, "any"),
    "sglang-block": Engine(SglangBlock, sglang.dialect, "any"),
    "sglang-ngram": Engine(SglangNgram, sglang.dialect),
    "vllm": Engine(Vllm, vllm.dialect, "mtp"),
    "trtllm-one": Engine(TrtllmOneModel, trtllm.dialect, "mtp"),
    "trtllm-two": Engine(TrtllmTwoModel, trtllm.dialect, "any"),
    "llama.cpp": Engine(LlamaCpp, _llamacpp_dialect, "any"),
    "plain-graph": Engine(PlainDecode, sglang.dialect),
    "plain-eager": Engine(lambda setup: PlainDecode(setup, with_graph=False), sglang.dialect),
}


def dialect_of(engine: Engine, gpu: Gpu, *, custom_all_reduce: bool) -> Dialect:
    """The kernels of an engine on a GPU."""
    dialect = engine.dialect(_gemms_of(gpu), custom_all_reduce=custom_all_reduce)
    if gpu.vendor == "amd":
        return rocm.on_rocm(dialect, custom_all_reduce=custom_all_reduce)
    return dialect


def _gemms_of(gpu: Gpu) -> GemmPicker:
    """The GEMM library of a GPU generation."""
    if gpu.vendor == "amd":
        return gemm.cdna
    return gemm.hopper if gpu.compute_capability >= (9, 0) else gemm.ampere
