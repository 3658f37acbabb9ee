"""From options to a capture: which server runs, what happens to it, and what gets recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from roundline.errors import UnknownNameError, UsageError
from roundline.simulate.costs import KernelCosts
from roundline.simulate.engines.registry import ENGINES, dialect_of
from roundline.simulate.engines.setup import Program, Setup
from roundline.simulate.gpus import gpu_of
from roundline.simulate.launches import HostCosts
from roundline.simulate.machine import Machine
from roundline.simulate.nsys_columnar_writer import Layout, write_nsys_directory
from roundline.simulate.nsys_writer import GraphMode, write_nsys_sqlite
from roundline.simulate.ops import Flush, Step
from roundline.simulate.shapes import ModelShape, shape_of
from roundline.simulate.timeline import Anchor, Capture, Gpu, Kernel, window
from roundline.simulate.torch_writer import TorchOptions, time_shift_ns, write_torch
from roundline.simulate.truth import CaptureTruth, truth_of
from roundline.simulate.truth_files import write_truth

Format = Literal["nsys-sqlite", "nsys-parquetdir", "nsys-arrowdir", "torch"]

_SUFFIXES: Final = {"parquetdir": "pqtdir", "arrowdir": "arwdir"}  # as nsys names them
_EPOCH_NS: Final = 1_778_580_840_000_000_000
_FIRST_NS: Final = 2_014_000_000
_WARM_UP_FACTOR: Final = 40.0  # compilation and first-touch make early rounds several times longer


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """What to simulate.

    Attributes:
        rounds: complete rounds in the capture, beside a partial one at either edge.
        piecewise: SGLang runs prompts in piecewise graphs.
        warm_up: of those rounds, how many at the start are slow.
        prefill_after: numbers of rounds that a prompt follows (it lies inside them).
        other_batch: numbers of rounds that run with one sequence more.
        flush_after: numbers of rounds at whose end the profiler flushes its buffers.
        cut: record from the middle of one verification to the middle of another; otherwise
            everything from the first launch on.
        own_device_ids: every process calls its GPU 0.
        cpu_ops: record torch operators around eager launches.
        host_factor: scales the host's own work between launches.
        host_ranges: record what the host works on between launches as ranges.
    """

    engine: str = "sglang-mtp"
    model: str = "qwen3.6-27b"
    gpu: str = "rtx-a6000"
    tp: int = 2
    draft_steps: int = 3
    batch: int = 1
    context: int = 240
    rounds: int = 6
    seed: int = 0
    extend: Literal["graph", "eager"] = "graph"
    greedy: bool = True
    fc_sharded: bool = False
    draft_model: str | None = None
    ranges: bool = False
    custom_all_reduce: bool = True
    side_stream: bool = False
    piecewise: bool = False
    overlap_ns: int = 0
    warm_up: int = 0
    prefill_after: tuple[int, ...] = ()
    other_batch: tuple[int, ...] = ()
    flush_after: tuple[int, ...] = ()
    cut: bool = True
    own_device_ids: bool = False
    cpu_ops: bool = False
    host_ranges: bool = False
    host_factor: float = 1.0


def simulate(
    options: SimulateOptions,
    *,
    kernel_costs: KernelCosts | None = None,
    host_costs: HostCosts | None = None,
) -> Capture:
    """Run a server and record it.

    Raises:
        UnknownNameError: unknown engine, model or GPU.
        UsageError: options that do not go together.
    """
    _check(options)
    gpu = gpu_of(options.gpu)
    costs = kernel_costs or KernelCosts(gpu=gpu)
    machine = Machine(
        gpu,
        options.tp,
        costs=host_costs,
        seed=options.seed,
        start_ns=_FIRST_NS,
        epoch_ns=_EPOCH_NS,
        own_device_ids=options.own_device_ids,
        with_cpu_ops=options.cpu_ops,
        with_host_ranges=options.host_ranges,
    )
    programs = _programs(options, costs)
    for number in range(-1, options.rounds + 1):
        machine.run(_round_steps(options, programs, number))
    capture = machine.capture()
    return _cut(capture) if options.cut else capture


def write_capture(
    options: SimulateOptions,
    capture: Capture,
    folder: Path,
    format_: Format = "nsys-sqlite",
    *,
    schema: str = "3.17.1",
    graphs: GraphMode = "node",
    torch_options: TorchOptions | None = None,
) -> CaptureTruth:
    """Write `capture` and its truth into `folder`, which is made if need be.

    Returns:
        The truth that was written.

    Raises:
        UsageError: no profiler of that format records this GPU.
    """
    if format_ != "torch" and capture.gpu.vendor == "amd":
        raise UsageError(f"Nsight Systems records no {capture.gpu.name}: choose format torch")
    folder.mkdir(parents=True, exist_ok=True)
    truth = truth_of(capture)
    shift_ns = 0
    if format_ == "torch":
        write_torch(capture, folder, torch_options)
        shift_ns = time_shift_ns(capture, torch_options)
    elif format_ == "nsys-sqlite":
        write_nsys_sqlite(capture, folder / "capture.sqlite", schema=schema, graphs=graphs)
    else:
        layout: Layout = "parquetdir" if format_ == "nsys-parquetdir" else "arrowdir"
        target = folder / f"capture_{_SUFFIXES[layout]}"
        write_nsys_directory(capture, target, layout, schema=schema, graphs=graphs)
    parameters: dict[str, Any] = {**_asked_for(options), "format": format_}
    write_truth(truth, capture, folder, parameters, shift_ns)
    return truth


def write_bulk(
    options: SimulateOptions,
    folder: Path,
    kernels: int,
    format_: Format = "nsys-sqlite",
    *,
    torch_options: TorchOptions | None = None,
) -> int:
    """Write a large capture by repeating a small one, in the memory of the small one.

    Args:
        options: the small capture.
        folder: the folder to write into.
        kernels: at least so many in all files together.
        format_: `nsys-sqlite` or `torch`.
        torch_options: what the writing torch knew.

    Returns:
        The number of kernels written.

    Raises:
        UsageError: another format.
    """
    if format_ not in ("nsys-sqlite", "torch"):
        raise UsageError(f"large captures are nsys-sqlite or torch, not {format_}")
    capture = simulate(replace(options, cut=False))
    each = sum(isinstance(activity, Kernel) for _, activity in capture.activities())
    times = -(-kernels // each)
    folder.mkdir(parents=True, exist_ok=True)
    if format_ == "torch":
        write_torch(capture, folder, torch_options, times=times)
    else:
        write_nsys_sqlite(capture, folder / "capture.sqlite", times=times)
    return each * times


def _asked_for(options: SimulateOptions) -> dict[str, Any]:
    """The options that are not the default."""
    usual = asdict(SimulateOptions())
    return {name: value for name, value in asdict(options).items() if value != usual[name]}


def _check(options: SimulateOptions) -> None:
    if options.engine not in ENGINES:
        advice = f"engines are {', '.join(ENGINES)}"
        raise UnknownNameError("engine", options.engine, ENGINES, advice)
    model, drafts_with = shape_of(options.model), ENGINES[options.engine].drafts_with
    if not model.has_mtp and not options.draft_model and drafts_with is not None:
        raise UsageError(
            f"engine {options.engine} drafts with an MTP layer and {model.name} has none: "
            "choose another --model or --engine, or a --draft-model where the engine takes one"
        )
    if drafts_with == "mtp" and options.draft_model:
        raise UsageError(f"engine {options.engine} takes no draft model: drop --draft-model")
    if options.engine == "llama.cpp" and options.tp > 1:
        raise UsageError("engine llama.cpp runs on one GPU here: pass --tp 1")
    if options.rounds < 1 or options.tp < 1 or options.draft_steps < 1 or options.batch < 1:
        raise UsageError("rounds, tp, draft steps and batch are at least 1")


def _programs(options: SimulateOptions, costs: KernelCosts) -> Callable[[int, bool], Program]:
    """Programs by batch and by whether the server is still warming up."""
    model, gpu = shape_of(options.model), gpu_of(options.gpu)
    setup = _setup(options, model, gpu, costs)
    made: dict[tuple[int, bool], Program] = {}

    def program(batch: int, warming_up: bool) -> Program:
        key = batch, warming_up
        if key not in made:
            factor = options.host_factor * (_WARM_UP_FACTOR if warming_up else 1.0)
            made[key] = ENGINES[options.engine].program(
                replace(setup, batch=batch, host_factor=factor)
            )
        return made[key]

    return program


def _setup(options: SimulateOptions, model: ModelShape, gpu: Gpu, costs: KernelCosts) -> Setup:
    return Setup(
        model=model,
        costs=costs,
        dialect=dialect_of(
            ENGINES[options.engine], gpu, custom_all_reduce=options.custom_all_reduce
        ),
        tp=options.tp,
        draft_steps=options.draft_steps,
        batch=options.batch,
        context=options.context,
        extend=options.extend,
        greedy=options.greedy,
        fc_sharded=options.fc_sharded,
        draft_model=shape_of(options.draft_model) if options.draft_model else None,
        ranges=options.ranges,
        side_stream=options.side_stream,
        piecewise=options.piecewise,
        overlap_ns=options.overlap_ns,
    )


def _round_steps(
    options: SimulateOptions, programs: Callable[[int, bool], Program], number: int
) -> list[Step]:
    warming_up = 0 <= number < options.warm_up
    has_other_batch = number in options.other_batch
    program = programs(options.batch + has_other_batch, warming_up)
    reason = None
    if warming_up:
        reason = "warm_up"
    elif number in options.prefill_after:
        reason = "prefill"
    elif has_other_batch:
        reason = "batch"
    steps = program.round(Anchor(reason), number)
    if number in options.prefill_after:
        steps += program.prefill()
    if number in options.flush_after:
        steps.append(Flush(650_000))
    return steps


def _cut(capture: Capture) -> Capture:
    """From the middle of the first verification to the middle of the last."""
    anchors = [a for a in capture.ranks[0].activities if a.truth.anchor is not None]
    verify = [a for a in capture.ranks[0].activities if a.truth.phase == "verify"]
    first = [a for a in verify if a.start_ns < anchors[1].start_ns]
    last = [a for a in verify if a.start_ns >= anchors[-1].start_ns]
    return window(capture, first[len(first) // 2].start_ns, last[len(last) // 2].start_ns)
