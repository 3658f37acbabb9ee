"""Captures that are shipped with the project: each by name, made by one command."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Final

from roundline.errors import UnknownNameError
from roundline.simulate.costs import KernelCosts
from roundline.simulate.gpus import gpu_of
from roundline.simulate.launches import HostCosts
from roundline.simulate.session import SimulateOptions, simulate, write_capture
from roundline.simulate.sglang_log import LogWindow, sglang_log
from roundline.simulate.truth import CaptureTruth


@dataclass(frozen=True, kw_only=True)
class Case:
    """A capture with its server log."""

    options: SimulateOptions
    kernel_costs: KernelCosts
    host_costs: HostCosts
    first_line: datetime
    windows: tuple[LogWindow, ...]


# Qwen3.6-27B in BF16 on two RTX A6000 without peer access, three MTP steps, draft-extend eager
# (FlashInfer on sm86 in SGLang 0.5.12). A model by hand said 42.4 ms a round; it takes 55.4.
_WORKED_EXAMPLE: Final = Case(
    options=SimulateOptions(
        engine="sglang-mtp",
        model="qwen3.6-27b",
        gpu="rtx-a6000",
        tp=2,
        draft_steps=3,
        rounds=7,
        seed=27,
        extend="eager",
        custom_all_reduce=False,
        flush_after=(4,),
    ),
    kernel_costs=KernelCosts(
        gpu=gpu_of("rtx-a6000"), gemm_efficiency=0.909, alpha_ns=17_000, beta_ns_per_kb=60
    ),
    host_costs=HostCosts(
        graph_call_ns=60_000,
        graph_call_per_node_ns=270,
        graph_latency_per_node_ns=135,
        graph_gap_ns=850,
    ),
    first_line=datetime(2026, 5, 12, 10, 13, 57, tzinfo=UTC),
    windows=(
        LogWindow(tokens=148, idle_s=49.0),
        LogWindow(tokens=123),
        LogWindow(tokens=122),
        LogWindow(tokens=123),
    ),
)
# A 4B hybrid with three NEXTN steps on one GH200, node-level tracing: the public study whose
# author found 3 ms a round outside graphs, graph launches that lead by 45 and 400 us, and a
# vocabulary projection that is 17 % of the cycle, three quarters of it in the drafts.
_NEXTN_STUDY: Final = Case(
    options=SimulateOptions(
        engine="sglang-mtp",
        model="qwen3.5-4b",
        gpu="gh200",
        tp=1,
        draft_steps=3,
        rounds=20,
        seed=4,
        host_factor=1.35,
        host_ranges=True,
    ),
    kernel_costs=KernelCosts(
        gpu=gpu_of("gh200"), gemm_efficiency=0.2175, lm_head_efficiency=0.40, gemm_latency_ns=5_000
    ),
    host_costs=HostCosts(
        graph_call_ns=250_000,
        graph_latency_ns=0,
        graph_latency_per_node_ns=810,
        graph_gap_ns=1_300,
    ),
    first_line=datetime(2026, 5, 12, 10, 14, 0, tzinfo=UTC),
    windows=(LogWindow(tokens=110), LogWindow(tokens=112), LogWindow(tokens=111)),
)
CASES: Final = {"worked-example": _WORKED_EXAMPLE, "nextn-study": _NEXTN_STUDY}


def write_case(name: str, folder: Path) -> CaptureTruth:
    """Write a shipped capture: `capture.sqlite`, `server.log` and the truth.

    Raises:
        UnknownNameError: no such case.
    """
    if name not in CASES:
        raise UnknownNameError("case", name, CASES, f"cases are {', '.join(CASES)}")
    case = CASES[name]
    capture = simulate(case.options, kernel_costs=case.kernel_costs, host_costs=case.host_costs)
    truth = write_capture(case.options, capture, folder)
    steady = [r.wall_ns for r in truth.rounds if r.excluded_because is None]
    lines = sglang_log(
        case.first_line,
        fmean(steady) / 1e6,
        case.windows,
        draft_tokens=case.options.draft_steps + 1,
    )
    (folder / "server.log").write_text("".join(lines), encoding="utf-8")
    return truth
