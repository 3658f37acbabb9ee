"""Writes a capture as torch's profiler does: one Chrome trace per rank, as its C++ writer lays it
out. GPU events first, each followed by its launch call and their flow; then operators, metadata
rows, and the instant that ends the window."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final, cast

from roundline.simulate.timeline import (
    Activity,
    ApiCall,
    Capture,
    HostRange,
    Kernel,
    MemoryOp,
    Overhead,
    RankTrace,
    repetitions,
)

# Kineto rounds the epoch down to a multiple of this to keep the digits of its timestamps few.
_BASE_STEP_NS: Final = 7_889_238 * 1_000_000_000
_COPY_NAMES: Final = {
    "HtoD": "Memcpy HtoD (Pinned -> Device)",
    "DtoH": "Memcpy DtoH (Device -> Pinned)",
    "DtoD": "Memcpy DtoD (Device -> Device)",
    "PtoP": "Memcpy PtoP (Device -> Device)",
}
_CBIDS: Final = {"cudaLaunchKernel": 211, "cudaGraphLaunch": 311, "cudaMemcpyAsync": 41}


@dataclass(frozen=True)
class TorchOptions:
    """What the writing torch knew.

    Attributes:
        with_graph_ids: graph and node ids of replayed kernels (torch 2.12 and CUDA 12).
        compress: write `.json.gz`.
        with_flows: arrows from launch to kernel.
        with_rank: the job's rank and size (`distributedInfo`).
        python_depth: Python frames recorded around every call (`with_stack`).
        has_base: timestamps are relative to a base that is written; else absolute (torch 2.3).
    """

    with_graph_ids: bool = True
    compress: bool = True
    with_flows: bool = True
    with_rank: bool = True
    python_depth: int = 0
    has_base: bool = True


def base_time_ns(capture: Capture) -> int:
    """`baseTimeNanoseconds` of the trace; a timestamp plus this is Unix time."""
    return (capture.epoch_ns + capture.start_ns) // _BASE_STEP_NS * _BASE_STEP_NS


def time_shift_ns(capture: Capture, options: TorchOptions | None = None) -> int:
    """What the timestamps of the trace add to the capture's own clock."""
    has_base = options is None or options.has_base
    return capture.epoch_ns - (base_time_ns(capture) if has_base else 0)


def write_torch(
    capture: Capture, folder: Path, options: TorchOptions | None = None, *, times: int = 1
) -> list[Path]:
    """Write one trace per rank into `folder`, named as SGLang names them.

    Args:
        capture: what was recorded.
        folder: where the traces go.
        options: what the writing torch knew.
        times: repeat the recording so often, in the memory of one repetition.

    Returns:
        The files in order of rank.
    """
    options = options or TorchOptions()
    suffix = ".trace.json.gz" if options.compress else ".trace.json"
    paths = []
    for trace in capture.ranks:
        path = folder / f"1755512345.67-TP-{trace.rank}-DECODE{suffix}"
        with _opened(path, compress=options.compress) as out:
            for piece in torch_text(capture, trace.rank, options, times=times):
                out.write(piece)
        paths.append(path)
    return paths


def torch_text(
    capture: Capture, rank: int, options: TorchOptions | None = None, *, times: int = 1
) -> Iterator[str]:
    """The trace of one rank, piece by piece."""
    options = options or TorchOptions()
    trace = next(trace for trace in capture.ranks if trace.rank == rank)
    yield from _head(capture, trace, options)
    shift_ns = time_shift_ns(capture, options)
    separator = "\n  {\n"
    one_rank = replace(capture, ranks=(trace,))
    for part in repetitions(one_rank, times):
        events = _Events(part, part.ranks[0], shift_ns, options)
        for event in events.recorded():
            yield separator + event + "\n  }"
            separator = ",\n  {\n"
        last = events
    for event in last.closing():
        yield separator + event + "\n  }"
    yield f'\n  ],\n  "traceName": {json.dumps(f"tmp_rank{rank}.json")}\n}}\n'


@contextmanager
def _opened(path: Path, *, compress: bool) -> Iterator[IO[str]]:
    with path.open("wb") as plain, ExitStack() as stack:
        binary: IO[bytes] | gzip.GzipFile = plain
        if compress:  # neither name nor time in the header: same input, same bytes
            packed = gzip.GzipFile("", "wb", compresslevel=6, fileobj=plain, mtime=0)
            binary = stack.enter_context(packed)
        text = io.TextIOWrapper(cast("IO[bytes]", binary), encoding="utf-8", newline="\n")
        yield stack.enter_context(text)


def _head(capture: Capture, trace: RankTrace, options: TorchOptions) -> Iterator[str]:
    major, minor = capture.gpu.compute_capability
    visible = trace.device_id + 1 if trace.device_id else 1
    properties = ",\n".join(
        f'    {{\n      "id": {number}, "name": {json.dumps(capture.gpu.name)}, '
        f'"totalGlobalMem": {capture.gpu.memory_bytes},\n'
        f'      "computeMajor": {major}, "computeMinor": {minor},\n'
        '      "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048,\n'
        '      "regsPerBlock": 65536, "warpSize": 32,\n'
        f'      "sharedMemPerBlock": 49152, "numSms": {capture.gpu.sm_count}\n    }}'
        for number in range(visible)
    )
    world = len(capture.ranks)
    job = {"backend": "nccl", "rank": trace.rank, "world_size": world, "nccl_version": "2.27.7"}
    yield f'\n  {{\n    "schemaVersion": 1,\n    "deviceProperties": [\n{properties}\n    ],\n'
    if capture.gpu.vendor == "amd":
        yield '      "roctracer_version": 4.1,\n      "hip_runtime_version": 70253211,\n'
    else:
        yield '      "cupti_version": 28,\n      "cuda_runtime_version": 12080,\n'
        yield '      "cuda_driver_version": 12080,\n'
    if options.with_rank:
        yield f'      "distributedInfo": {json.dumps(job)},\n'
    yield '      "record_shapes": 1,\n  "displayTimeUnit": "ms",\n'
    if options.has_base:
        yield f'  "baseTimeNanoseconds": {base_time_ns(capture)},\n'
    yield '  "traceEvents": ['


@dataclass(frozen=True)
class _Events:
    """All events of one rank in the writer's order, which is not the order of time."""

    capture: Capture
    trace: RankTrace
    shift_ns: int
    options: TorchOptions

    def recorded(self) -> Iterator[str]:
        """What happened: ranges, calls each followed by what they launched, overheads."""
        for number, item in enumerate(self.trace.ranges):
            yield self._range(item, number + 1)
        launched: dict[int, list[Activity]] = {}
        for activity in self.trace.activities:
            launched.setdefault(activity.correlation_id, []).append(activity)
        for call in self.trace.api_calls:
            yield from self._stack(call)
            yield from self._call(call, has_activity=call.correlation_id in launched)
            for activity in launched.pop(call.correlation_id, ()):
                yield from self._activity(activity)
        for orphans in launched.values():
            for activity in orphans:
                yield from self._activity(activity)
        for overhead in self.trace.overheads:
            yield self._overhead(overhead)

    def closing(self) -> Iterator[str]:
        """What the writer adds: process names and the end of the window."""
        yield from self._metadata_rows()
        yield self._window_end()

    def _us(self, time_ns: int) -> str:
        return _microseconds(time_ns + self.shift_ns)

    def _complete(
        self, cat: str, name: str, ids: str, start_ns: int, end_ns: int, args: str
    ) -> str:
        return (
            f'    "ph": "X", "cat": "{cat}", "name": {json.dumps(name)}, {ids},\n'
            f'    "ts": {self._us(start_ns)}, "dur": {_microseconds(end_ns - start_ns)},\n'
            f'    "args": {{\n      {args}\n    }}'
        )

    def _activity(self, activity: Activity) -> Iterator[str]:
        ids = f'"pid": {self.trace.device_id}, "tid": {activity.stream_id}'
        cat, name, args = self._described(activity)
        yield self._complete(cat, name, ids, activity.start_ns, activity.end_ns, args)
        if self.options.with_flows:
            yield (
                f'    "ph": "f", "id": {activity.correlation_id}, {ids}, '
                f'"ts": {self._us(activity.start_ns)},\n'
                '    "cat": "ac2g", "name": "ac2g", "bp": "e"'
            )

    def _described(self, activity: Activity) -> tuple[str, str, str]:
        where = (
            f'"device": {self.trace.device_id}, "context": 1,\n'
            f'      "stream": {activity.stream_id}, "correlation": {activity.correlation_id}'
        )
        if isinstance(activity, Kernel):
            return "kernel", activity.name, self._kernel_args(activity, where)
        assert isinstance(activity, MemoryOp)
        speed = activity.size_bytes / activity.duration_ns if activity.duration_ns else 0.0
        moved = f'"bytes": {activity.size_bytes}, "memory bandwidth (GB/s)": {speed:.6f}'
        if activity.copy_kind is None:
            return "gpu_memset", "Memset (Device)", f"{where},\n      {moved}"
        return "gpu_memcpy", _COPY_NAMES[activity.copy_kind], f"{where},\n      {moved}"

    def _kernel_args(self, kernel: Kernel, where: str) -> str:
        if self.capture.gpu.vendor == "amd":
            return _rocm_args(kernel, where.replace(' "context": 1,', ""))
        graph = ""
        if self.options.with_graph_ids:
            node = 0
            if kernel.graph_id is not None and kernel.graph_node is not None:
                node = kernel.graph_id << 32 | kernel.graph_node
            graph = f',\n      "graph id": {kernel.graph_id or 0}, "graph node id": {node}'
        return (
            f'"queued": 0, {where},\n'
            f'      "registers per thread": {kernel.registers_per_thread},\n'
            f'      "shared memory": {kernel.shared_memory_bytes},\n'
            '      "blocks per SM": 1.000000,\n      "warps per SM": 4.000000,\n'
            f'      "grid": {json.dumps(kernel.grid)},\n'
            f'      "block": {json.dumps(kernel.block)},\n'
            f'      "est. achieved occupancy %": 0{graph}'
        )

    def _call(self, call: ApiCall, *, has_activity: bool) -> Iterator[str]:
        is_driver = call.name.startswith("cu") and not call.name.startswith("cuda")
        cat = "cuda_driver" if is_driver else "cuda_runtime"
        ids = self._thread(call.thread_id)
        args = f'"cbid": {_CBIDS.get(call.name, 131)}, "correlation": {call.correlation_id}'
        yield self._complete(cat, call.name, ids, call.start_ns, call.end_ns, args)
        if has_activity and self.options.with_flows:
            yield (
                f'    "ph": "s", "id": {call.correlation_id}, {ids}, '
                f'"ts": {self._us(call.start_ns)},\n    "cat": "ac2g", "name": "ac2g"'
            )

    def _stack(self, call: ApiCall) -> Iterator[str]:
        """Frames around a call, the outermost first."""
        for depth in range(self.options.python_depth):
            margin_ns = 200 * (self.options.python_depth - depth)
            name = f"sglang/srt/layers/module_{depth}.py({10 + depth}): forward"
            parent = f'"Python parent id": {depth}, ' if depth else ""
            yield self._complete(
                "python_function",
                name,
                self._thread(call.thread_id),
                call.start_ns - margin_ns,
                call.end_ns + margin_ns,
                f'{parent}"Python id": {depth + 1}, "Ev Idx": {call.correlation_id}',
            )

    def _range(self, item: HostRange, number: int) -> str:
        cat = "user_annotation" if item.kind == "annotation" else "cpu_op"
        end_ns = self.capture.end_ns if item.end_ns is None else item.end_ns
        unfinished = ', "finished": false' if item.end_ns is None else ""
        args = f'"External id": {number}, "Record function id": 0, "Ev Idx": {number - 1}'
        ids = self._thread(item.thread_id)
        return self._complete(cat, item.name, ids, item.start_ns, end_ns, args + unfinished)

    def _overhead(self, item: Overhead) -> str:
        ids = f'"pid": -1, "tid": {item.thread_id}'
        return self._complete("overhead", item.kind, ids, item.start_ns, item.end_ns, "")

    def _thread(self, thread_id: int) -> str:
        return f'"pid": {self.trace.pid}, "tid": {thread_id}'

    def _metadata_rows(self) -> Iterator[str]:
        names = [(self.trace.pid, "python"), *((gpu, "python") for gpu in range(16))]
        for pid, name in names:
            yield (
                f'    "name": "process_name", "ph": "M", "ts": {self._us(self.capture.start_ns)}, '
                f'"pid": {pid}, "tid": 0,\n    "args": {{\n      "name": "{name}"\n    }}'
            )

    def _window_end(self) -> str:
        return (
            '    "name": "Record Window End", "ph": "i", "s": "g",\n'
            f'    "pid": "", "tid": "", "ts": {self._us(self.capture.end_ns)}'
        )


def _rocm_args(kernel: Kernel, where: str) -> str:
    """Replayed kernels have no launch record, hence no grid."""
    if kernel.graph_id is not None:
        return f'{where}, "kind": "Dispatch Task"'
    shape = f'"grid": {json.dumps(kernel.grid)}, "block": {json.dumps(kernel.block)}'
    return f'{where}, "kind": "Dispatch Kernel", {shape}'


def _microseconds(time_ns: int) -> str:
    return f"{time_ns // 1000}.{time_ns % 1000:03d}"
