"""What attribution says of a simulated capture is its truth, to the nanosecond."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from agreement import Comparison, difference

from roundline.simulate.session import Format, SimulateOptions

SMALL = SimulateOptions(rounds=3, model="qwen3.5-4b")
SERVERS: dict[str, tuple[Format, SimulateOptions]] = {
    "SGLang, graphs": ("nsys-sqlite", SMALL),
    "SGLang, graphs, torch": ("torch", SMALL),
    "SGLang, graphs, parquet": ("nsys-parquetdir", SMALL),
    "SGLang, ranges, torch": (
        "torch", replace(SMALL, ranges=True, cpu_ops=True, extend="eager"),
    ),
    "SGLang, sampled": ("nsys-sqlite", replace(SMALL, greedy=False)),
    "SGLang, MoE on Hopper": (
        "nsys-sqlite",
        replace(SMALL, model="qwen3-next-80b-a3b", gpu="h100", side_stream=True, overlap_ns=900),
    ),
    "SGLang, MI300X": ("torch", replace(SMALL, gpu="mi300x")),
    "SGLang, adaptive steps": ("nsys-sqlite", replace(SMALL, engine="sglang-adaptive", rounds=7)),
    "SGLang, one draft pass": ("nsys-sqlite", replace(SMALL, draft_steps=1)),
    "SGLang, n-grams": ("nsys-sqlite", replace(SMALL, engine="sglang-ngram")),
    "SGLang, warm-up, prompt and flush": (
        "nsys-sqlite", replace(SMALL, rounds=7, warm_up=2, prefill_after=(4,), flush_after=(3,)),
    ),
    "SGLang, prompt in piecewise graphs": (
        "nsys-sqlite", replace(SMALL, prefill_after=(1,), piecewise=True),
    ),
    "SGLang, latent attention": (
        "nsys-sqlite", replace(SMALL, model="deepseek-v3-lite", gpu="h100"),
    ),
    "vLLM": ("nsys-sqlite", replace(SMALL, engine="vllm")),
    "TensorRT-LLM, two models": (
        "nsys-sqlite",
        replace(
            SMALL, engine="trtllm-two", model="qwen3-8b", draft_model="qwen3-0.6b", ranges=True
        ),
    ),
    "llama.cpp": ("nsys-sqlite", replace(SMALL, engine="llama.cpp", tp=1)),
    "plain, Mamba": ("nsys-sqlite", replace(SMALL, engine="plain-graph", model="mamba-hybrid-8b")),
    "TensorRT-LLM, one model": ("nsys-sqlite", replace(SMALL, engine="trtllm-one", gpu="h100")),
    "TensorRT-LLM, one model, ranges": (
        "torch", replace(SMALL, engine="trtllm-one", ranges=True),
    ),
    "SGLang, block drafter, ranges": (
        "torch", replace(SMALL, engine="sglang-block", ranges=True),
    ),
    "plain, graph": ("nsys-sqlite", replace(SMALL, engine="plain-graph")),
    "plain, eager": (
        "nsys-sqlite", replace(SMALL, engine="plain-eager", model="qwen3-8b", tp=1),
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=list(SERVERS))
def comparison(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Comparison]:
    """Each server: written, ingested, attributed, beside its truth."""
    format_, options = SERVERS[request.param]
    compared = Comparison(options, tmp_path_factory.mktemp("capture"), format_)
    yield compared
    compared.close()


def test_rounds_have_the_boundaries_that_were_made(comparison: Comparison) -> None:
    """Every complete round is found, from anchor to anchor."""
    assert not comparison.missing


def test_exclusive_time_is_the_truth(comparison: Comparison) -> None:
    """By round, phase, draft step and category."""
    assert not difference(*comparison.work(), of=(1, 2, 3))


def test_idle_time_is_the_truth(comparison: Comparison) -> None:
    """By round, phase, cause, and what the host was doing while it was late."""
    assert not difference(*comparison.idle(), of=(0, 1, 2, 3))


def test_host_calls_are_the_truth(comparison: Comparison) -> None:
    """Launches, synchronisations and the time in them by round."""
    assert not difference(*comparison.host(), of=(0, 1))


def test_leads_of_graph_launches_are_the_truth(comparison: Comparison) -> None:
    """How long before each replay its call began."""
    true, found = comparison.leads()
    assert found == true


def test_transfer_and_waiting_are_the_truth(comparison: Comparison) -> None:
    """By round, over the ranks."""
    assert not difference(*comparison.meetings(), of=(1,))
