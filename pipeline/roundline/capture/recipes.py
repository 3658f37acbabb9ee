"""Exact commands that record a usable capture, per engine.

Sources: the engines' own documentation of their profilers and NVIDIA's of `nsys profile`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roundline.errors import UnknownNameError

_NSYS: Final = (
    "nsys profile --trace-fork-before-exec=true --cuda-graph-trace=node -t cuda,nvtx"
    " --cuda-flush-interval=250"
)


@dataclass(frozen=True)
class Step:
    """One command and what it is for."""

    purpose: str
    command: str


@dataclass(frozen=True)
class Recipe:
    """How to capture one engine; `annotate` lists where phase ranges go in its source."""

    engine: str
    steps: tuple[Step, ...]
    annotate: tuple[str, ...]
    notes: tuple[str, ...]


_EVERY_CAPTURE: Final = (
    "capture steady decoding: start the requests first, record some 20 rounds, send no new ones",
    "keep the server log of the same minutes: acceptance and untraced round time come from it",
    "graph nodes slow host-bound rounds by 5 to 20 %: compare with the log",
)

RECIPES: Final = {
    "sglang": Recipe(
        "sglang",
        (
            Step("Nsight Systems, 30 s after a minute of warm-up",
                 f"{_NSYS} --delay 60 --duration 30 -o capture"
                 " python -m sglang.launch_server …"),
            Step("PyTorch profiler of a running server, 10 rounds",
                 'curl -X POST HOST:PORT/start_profile -H "Content-Type: application/json"'
                 ' -d \'{"num_steps": 10, "activities": ["CPU", "GPU"], "with_stack": false}\''),
            Step("export", "nsys export --type sqlite capture.nsys-rep"),
        ),
        ("EAGLEDraftCudaGraphRunner.replay (draft)", "CudaGraphRunner.replay (verify)",
         "EagleVerifyInput.sample (sample)", "EAGLEWorkerV2._mamba_verify_update (commit)",
         "EagleDraftWorker._draft_extend_for_decode (draft_extend)"),
        ("set SGLANG_TORCH_PROFILER_DIR before the server starts",
         "a step of the PyTorch profiler is a round when speculating", *_EVERY_CAPTURE),
    ),
    "vllm": Recipe(
        "vllm",
        (
            Step("Nsight Systems, started and stopped through the API",
                 f"{_NSYS} --capture-range=cudaProfilerApi --capture-range-end repeat -o capture"
                 " vllm serve MODEL …"),
            Step("PyTorch profiler", "curl -X POST HOST:PORT/start_profile; sleep 3;"
                 " curl -X POST HOST:PORT/stop_profile"),
            Step("export", "nsys export --type sqlite capture.nsys-rep"),
        ),
        ("GPUModelRunner.execute_model (verify)", "RejectionSampler.forward (sample)",
         "GPUModelRunner.propose_draft_token_ids (draft)"),
        ("VLLM_NVTX_SCOPES_FOR_PROFILING=1 or VLLM_CUSTOM_SCOPES_FOR_PROFILING=1 emits ranges",
         *_EVERY_CAPTURE),
    ),
    "trtllm": Recipe(
        "trtllm",
        (
            Step("Nsight Systems over iterations 100 to 150",
                 f"TLLM_PROFILE_START_STOP=100-150 {_NSYS} -c cudaProfilerApi -o capture"
                 " trtllm-serve MODEL …"),
            Step("PyTorch profiler", "TLLM_PROFILE_START_STOP=100-150"
                 " TLLM_TORCH_PROFILE_TRACE=trace.json trtllm-serve MODEL …"),
            Step("export", "nsys export --type sqlite capture.nsys-rep"),
        ),
        ("PyTorchModelEngine.forward (verify)", "MTPWorker.forward (draft)"),
        ("older versions let all ranks write one trace file: give every rank its own",
         *_EVERY_CAPTURE),
    ),
    "llama.cpp": Recipe(
        "llama.cpp",
        (
            Step("Nsight Systems, 20 s after 30 s of warm-up",
                 f"{_NSYS} --delay 30 --duration 20 -o capture llama-server -m MODEL.gguf …"),
            Step("export", "nsys export --type sqlite capture.nsys-rep"),
        ),
        (),
        _EVERY_CAPTURE,
    ),
}  # fmt: skip


def recipe(engine: str) -> Recipe:
    """The recipe of an engine.

    Raises:
        UnknownNameError: there is none.
    """
    if engine.lower() not in RECIPES:
        raise UnknownNameError("engine", engine, RECIPES, f"known are {', '.join(RECIPES)}")
    return RECIPES[engine.lower()]
