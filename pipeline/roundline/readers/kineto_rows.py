"""Trace events to rows of parts, in batches of columns."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import pyarrow as pa

from roundline.readers.contract import Sink, part_schema
from roundline.readers.kineto_stream import Event
from roundline.readers.kineto_times import nanoseconds

_BATCH: Final = 65_536
_HOUR_NS: Final = 3600 * 10**9
_COPY: Final = re.compile(r"\b(HtoD|DtoH|DtoD|HtoH|PtoP)\b|(Host|Device)To(Host|Device)")
_API_VERSION: Final = re.compile(r"_v\d+(_pt[sd][sz])?$")


class GpuArgs(msgspec.Struct, rename={
    "external_id": "External id", "graph_id": "graph id", "graph_node_id": "graph node id",
    "registers": "registers per thread", "shared_memory": "shared memory",
    "in_device": "inDevice",
}):  # fmt: skip
    """Arguments of a GPU event that Roundline keeps; writers add others and leave some out."""

    device: Any = None
    in_device: Any = None
    context: Any = None
    stream: Any = None
    correlation: Any = None
    external_id: Any = None
    graph_id: Any = None
    graph_node_id: Any = None
    grid: Any = None
    block: Any = None
    registers: Any = None
    shared_memory: Any = None
    bytes: Any = None


class HostArgs(msgspec.Struct, rename={"external_id": "External id", "lower": "external id"}):
    """Arguments of a host event that Roundline keeps."""

    correlation: Any = None
    external_id: Any = None
    lower: Any = None
    stream: Any = None
    device: Any = None


_gpu_args: Final = msgspec.json.Decoder(GpuArgs).decode
_host_args: Final = msgspec.json.Decoder(HostArgs).decode


@dataclass
class Faults:
    """Events that are there but hard to believe."""

    invalid_time: int = 0
    implausible: int = 0
    unnamed: int = 0


@dataclass
class RowWriter:
    """Gathers rows and hands them to the sink in batches.

    `process_of` numbers processes by the label of a merged file ("" in an ordinary one).
    """

    sink: Sink
    with_python: bool
    faults: Faults = field(default_factory=Faults)
    processes: dict[str, int] = field(default_factory=dict)
    pids: dict[int, int] = field(default_factory=dict)
    devices: set[tuple[int, int]] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    graph_nodes: int = 0
    earliest_ns: int | None = None
    _names: dict[str, int] = field(default_factory=dict)
    _named: int = 0
    _rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Keep an event if it belongs into a part."""
        handler = _HANDLERS.get(event.cat)
        if handler is not None and event.ph == "X":
            handler(self, event)

    def finish(self) -> None:
        """Write what is left."""
        for table in list(self._rows):
            self._flush(table)
        self._flush_names()

    def kernel(self, event: Event) -> None:
        """A kernel."""
        times, args = self._times(event), self._gpu_args(event)
        if times is None:
            return
        process, device, stream = self._place(event, args)
        name = str(event.name)
        self.faults.unnamed += name in ("", "unknown")
        grid, block = _three(args.grid), _three(args.block)
        node = _id(args.graph_node_id)
        self.graph_nodes += node is not None
        self._add(
            "kernels",
            (process, *times, device, _int(args.context), stream, _id(args.correlation),
             _id(args.graph_id), node, self._name(name), *grid, *block, _int(args.registers),
             _int(args.shared_memory), _int(args.external_id)),
        )  # fmt: skip

    def memcpy(self, event: Event) -> None:
        """A copy."""
        match = _COPY.search(str(event.name))
        kind = "other"
        if match:
            kind = match[1] or f"{match[2][0]}to{match[3][0]}"
        self._memory_op(event, "memcpy", kind)

    def memset(self, event: Event) -> None:
        """A fill."""
        self._memory_op(event, "memset", None)

    def _memory_op(self, event: Event, kind: str, copy_kind: str | None) -> None:
        times, args = self._times(event), self._gpu_args(event)
        if times is None:
            return
        process, device, stream = self._place(event, args)
        self._add(
            "memory_ops",
            (process, *times, device, _int(args.context), stream, _id(args.correlation),
             _id(args.graph_id), _id(args.graph_node_id), kind, copy_kind, _int(args.bytes)),
        )  # fmt: skip

    def api_call(self, event: Event) -> None:
        """A CUDA or HIP call."""
        times, args = self._times(event), self._host_args(event)
        if times is not None:
            name = _API_VERSION.sub("", str(event.name))
            row = (self._process(event), _thread(event.tid), *times, name, _id(args.correlation))
            self._add("api_calls", row)

    def host_range(self, event: Event) -> None:
        """An operator, an annotation or a Python function."""
        if event.cat == "python_function" and not self.with_python:
            return
        times = self._times(event)
        if times is not None:
            kind = _RANGE_KINDS.get(event.cat, event.cat)
            external = _int(self._host_args(event).external_id)
            row = (self._process(event), _thread(event.tid), *times, self._name(str(event.name)),
                   kind, None, None, external)  # fmt: skip
            self._add("ranges", row)

    def gpu_range(self, event: Event) -> None:
        """An annotation that the profiler projected to a stream."""
        times, args = self._times(event), self._host_args(event)
        if times is not None:
            stream = _int(args.stream) if args.stream is not None else _thread(event.tid)
            external = _int(args.external_id)
            row = (self._process(event), None, *times, self._name(str(event.name)),
                   "gpu_annotation", None, stream, external)  # fmt: skip
            self._add("ranges", row)

    def overhead(self, event: Event) -> None:
        """The profiler's own work."""
        times = self._times(event)
        if times is not None:
            row = (self._process(event), _thread(event.tid), *times, str(event.name))
            self._add("overheads", row)

    def _times(self, event: Event) -> tuple[int, int] | None:
        start = nanoseconds(bytes(event.ts))
        duration = nanoseconds(bytes(event.dur)) if event.dur else 0
        if start is None or duration is None:
            self.faults.invalid_time += 1
            return None
        if duration < 0 or duration > _HOUR_NS:
            self.faults.implausible += 1
        if start == 0 and duration == 0:
            self.faults.invalid_time += 1
        if self.earliest_ns is None or start < self.earliest_ns:
            self.earliest_ns = start
        return start, start + max(duration, 0)

    def _gpu_args(self, event: Event) -> GpuArgs:
        try:
            return _gpu_args(event.args) if event.args else GpuArgs()
        except msgspec.DecodeError:
            return GpuArgs()

    def _host_args(self, event: Event) -> HostArgs:
        try:
            args = _host_args(event.args) if event.args else HostArgs()
        except msgspec.DecodeError:
            return HostArgs()
        if args.external_id is None:
            args.external_id = args.lower
        return args

    def _place(self, event: Event, args: GpuArgs) -> tuple[int, int, int | None]:
        """Process, device and stream of a GPU event; pid and tid stand in for missing arguments."""
        process = self._process(event, is_gpu=True)
        device = _int(args.device)
        if device is None:
            device = _int(args.in_device)
        if device is None:
            device = _thread(event.pid) or 0
        stream = _int(args.stream)
        self.devices.add((process, device))
        return process, device, stream if stream is not None else _thread(event.tid)

    def _process(self, event: Event, *, is_gpu: bool = False) -> int:
        """Processes of a merged file carry a label in every pid: "[TP00-DP00] 83"."""
        label = ""
        pid = bytes(event.pid)
        if pid.startswith(b'"['):
            label = pid[2:].partition(b"]")[0].decode(errors="replace")
        number = self.processes.setdefault(label, len(self.processes))
        if not is_gpu and number not in self.pids and pid.isdigit():
            self.pids[number] = int(pid)
        return number

    def _name(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _add(self, table: str, row: tuple[Any, ...]) -> None:
        rows = self._rows.setdefault(table, [])
        rows.append(row)
        if len(rows) >= _BATCH:
            self._flush(table)

    def _flush(self, table: str) -> None:
        rows = self._rows.pop(table, [])
        if not rows:
            return
        self.counts[table] = self.counts.get(table, 0) + len(rows)
        columns = zip(_COLUMNS[table], zip(*rows, strict=True), strict=True)
        schema = part_schema(table)
        arrays = {name: pa.array(values, schema.field(name).type) for name, values in columns}
        self.sink.write(table, pa.table(arrays))

    def _flush_names(self) -> None:
        names = list(self._names)
        for start in range(0, len(names), _BATCH):
            chunk = names[start : start + _BATCH]
            ids = pa.array(range(start, start + len(chunk)), pa.int32())
            text = [name.encode("utf-8", "replace").decode() for name in chunk]
            self.sink.write("names", pa.table({"name_id": ids, "name": pa.array(text)}))


_GPU: Final = ("process_id", "start_ns", "end_ns", "device_id", "context_id", "stream_id",
               "correlation_id", "graph_id", "graph_node_id")  # fmt: skip
_HOST: Final = ("process_id", "thread_id", "start_ns", "end_ns")
_COLUMNS: Final = {
    "kernels": (*_GPU, "name_id", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z",
                "registers_per_thread", "shared_memory_bytes", "external_id"),
    "memory_ops": (*_GPU, "kind", "copy_kind", "bytes"),
    "api_calls": (*_HOST, "name", "correlation_id"),
    "ranges": (*_HOST, "name_id", "kind", "domain", "stream_id", "external_id"),
    "overheads": (*_HOST, "kind"),
}  # fmt: skip
_RANGE_KINDS: Final = {"Operator": "cpu_op", "User_annotation": "user_annotation"}
_HANDLERS: Final[dict[str, Callable[[RowWriter, Event], None]]] = {
    "kernel": RowWriter.kernel, "Kernel": RowWriter.kernel,
    "gpu_memcpy": RowWriter.memcpy, "Memcpy": RowWriter.memcpy,
    "gpu_memset": RowWriter.memset, "Memset": RowWriter.memset,
    "cuda_runtime": RowWriter.api_call, "cuda_driver": RowWriter.api_call,
    "Runtime": RowWriter.api_call,
    "cpu_op": RowWriter.host_range, "Operator": RowWriter.host_range,
    "user_annotation": RowWriter.host_range, "python_function": RowWriter.host_range,
    "gpu_user_annotation": RowWriter.gpu_range, "overhead": RowWriter.overhead,
}  # fmt: skip


def _int(value: Any) -> int | None:
    """An integer that fits a column; writers put strings, floats and dictionaries there too."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if -(2**63) <= number < 2**63 else None


def _id(value: Any) -> int | None:
    """An id in which 0 means none."""
    return _int(value) or None


def _three(value: Any) -> tuple[int | None, int | None, int | None]:
    if isinstance(value, list) and len(value) == 3:
        return _small(value[0]), _small(value[1]), _small(value[2])
    return None, None, None


def _small(value: Any) -> int | None:
    number = _int(value)
    return number if number is not None and -(2**31) <= number < 2**31 else None


def _thread(raw: msgspec.Raw) -> int | None:
    """A thread, stream or device id: an integer, a string of digits, or "stream 7"."""
    text = bytes(raw).strip(b'"').removeprefix(b"stream ")
    return _int(text) if text.lstrip(b"-").isdigit() else None
