"""One rank at work: a host thread that launches, streams that execute, a profiler that records.

The host goes through its steps one after the other. An activity starts once its stream is free
and its launch has reached the GPU.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import assert_never

from roundline.simulate.launches import HostCosts, Launch, activity_of, hip_name
from roundline.simulate.ops import (
    MAIN_LANE,
    Begin,
    Close,
    Eager,
    Flush,
    Op,
    Open,
    Replay,
    Sync,
    Work,
)
from roundline.simulate.timeline import (
    Activity,
    Anchor,
    ApiCall,
    HostRange,
    Overhead,
    RangeKind,
    RankTrace,
    Truth,
)

_OPERATORS = {
    "gemm": "aten::mm",
    "copy": "aten::copy_",
    "memcpy": "aten::copy_",
    "memset": "aten::zero_",
    "elementwise": "aten::mul",
    "embedding": "aten::embedding",
    "index": "aten::index",
    "sampling": "aten::argmax",
    "collective": "c10d::allreduce_",
}


@dataclass
class Worker:
    """One rank: its host clock, its streams, and what its profiler has recorded."""

    rank: int
    device_id: int
    costs: HostCosts
    rng: random.Random
    host_ns: int
    with_cpu_ops: bool = False
    with_host_ranges: bool = False
    is_amd: bool = False
    correlation_id: int = 4_000  # on every rank alike: ids collide over processes, as they do
    lanes: dict[int, int] = field(default_factory=dict)
    previous: dict[int, tuple[int, int]] = field(default_factory=dict)
    graphs: dict[str, int] = field(default_factory=dict)
    pending: Anchor | None = None
    open_ranges: list[tuple[str, RangeKind, int]] = field(default_factory=list)
    activities: list[Activity] = field(default_factory=list)
    api_calls: list[ApiCall] = field(default_factory=list)
    ranges: list[HostRange] = field(default_factory=list)
    overheads: list[Overhead] = field(default_factory=list)

    @property
    def pid(self) -> int:
        """Operating-system process of the rank."""
        return 4_100 + 17 * self.rank

    @property
    def thread_id(self) -> int:
        """Thread that launches."""
        return self.pid + 3

    def jittered(self, duration_ns: int) -> int:
        """`duration_ns` with the spread of this rank, at least one nanosecond."""
        factor = min(max(self.rng.gauss(1.0, self.costs.jitter), 0.7), 1.6)
        return max(1, round(duration_ns * factor))

    def do(self, step: Begin | Sync | Work | Open | Close | Flush) -> None:
        """Steps that concern this host alone."""
        match step:
            case Begin():
                self.pending = step.anchor
            case Sync():
                self._synchronise(step.api)
            case Work():
                self._work(step)
            case Open():
                self.open_ranges.append((step.name, step.kind, self.host_ns))
                self.host_ns += 300
            case Close():
                self._close()
            case Flush():
                self._flush(step)
            case _:
                assert_never(step)

    def launch(self, step: Eager) -> Launch:
        """The call that launches one op."""
        python_ns = self.costs.python_ns if step.python_ns is None else step.python_ns
        self.host_ns += self.jittered(python_ns)
        start_ns = self.host_ns
        correlation_id = self._call(step.op.api, self.costs.launch_ns)
        if self.with_cpu_ops:
            began_ns = start_ns - min(1_500, self.costs.python_ns // 2)
            self._operator(_OPERATORS.get(step.op.category, "aten::empty"), began_ns)
        reaches_gpu_ns = start_ns + self.jittered(self.costs.launch_latency_ns)
        return Launch(correlation_id, reaches_gpu_ns, self.costs.eager_gap_ns)

    def launch_graph(self, step: Replay) -> Launch:
        """The call that launches a graph."""
        nodes_ns = self.costs.graph_call_per_node_ns * len(step.ops)
        self.host_ns += self.jittered(self.costs.python_ns)
        start_ns = self.host_ns
        correlation_id = self._call("cudaGraphLaunch", self.costs.graph_call_ns + nodes_ns)
        latency_ns = self.costs.graph_latency_ns
        latency_ns += self.costs.graph_latency_per_node_ns * len(step.ops)
        reaches_gpu_ns = start_ns + self.jittered(latency_ns)
        graph_id = self.graphs.setdefault(step.graph, 11 + 8 * len(self.graphs))
        return Launch(correlation_id, reaches_gpu_ns, self.costs.graph_gap_ns, graph_id)

    def ready_ns(self, op: Op, launch: Launch) -> int:
        """When `op` can start: its stream is free and its launch has arrived."""
        gap_ns = self.jittered(launch.gap_ns)
        waits_for = {op.lane, MAIN_LANE} | (set(self.lanes) if op.joins else set())
        free_ns = max(self.lanes.get(lane, 0) for lane in waits_for) + gap_ns
        if op.overlap_ns and op.lane in self.previous:
            start_ns, end_ns = self.previous[op.lane]
            free_ns = max(start_ns + 1, end_ns - op.overlap_ns)
        return max(free_ns, launch.reaches_gpu_ns)

    def record(
        self, op: Op, launch: Launch, start_ns: int, end_ns: int, collective_id: int | None
    ) -> None:
        """Put one activity on its stream."""
        self.previous[op.lane] = (start_ns, end_ns)
        self.lanes[op.lane] = max(end_ns, self.lanes.get(op.lane, 0))
        truth = Truth(
            category=op.category,
            phase=op.phase,
            draft_step=op.draft_step,
            matrix=op.matrix,
            layer=op.layer,
            collective_id=collective_id,
            anchor=self.pending,
        )
        self.pending = None
        self.activities.append(activity_of(op, launch, start_ns, end_ns, truth))

    def busy_until_ns(self) -> int:
        """When the last stream becomes free."""
        return max(self.lanes.values(), default=self.host_ns)

    def last_ns(self) -> int:
        """When host and GPU are both done."""
        return max(self.host_ns, self.busy_until_ns())

    def trace(self) -> RankTrace:
        """What the profiler of this process has recorded; ranges still open stay open."""
        still_open = [
            HostRange(
                start_ns=start_ns, end_ns=None, thread_id=self.thread_id, name=name, kind=kind
            )
            for name, kind, start_ns in self.open_ranges
        ]
        return RankTrace(
            rank=self.rank,
            pid=self.pid,
            device_id=self.device_id,
            activities=tuple(self.activities),
            api_calls=tuple(self.api_calls),
            ranges=tuple(self.ranges + still_open),
            overheads=tuple(self.overheads),
        )

    def _call(self, name: str, duration_ns: int) -> int:
        start_ns = self.host_ns
        self.host_ns += self.jittered(duration_ns)
        self.correlation_id += 1
        self.api_calls.append(
            ApiCall(
                start_ns=start_ns,
                end_ns=self.host_ns,
                thread_id=self.thread_id,
                name=hip_name(name) if self.is_amd else name,
                correlation_id=self.correlation_id,
            )
        )
        return self.correlation_id

    def _operator(self, name: str, start_ns: int, kind: RangeKind = "cpu_op") -> None:
        self.ranges.append(
            HostRange(
                start_ns=start_ns,
                end_ns=self.host_ns,
                thread_id=self.thread_id,
                name=name,
                kind=kind,
            )
        )

    def _synchronise(self, api: str) -> None:
        waited_ns = max(0, self.busy_until_ns() - self.host_ns)
        self._call(api, self.costs.sync_return_ns)
        call = self.api_calls[-1]
        self.host_ns += waited_ns
        self.api_calls[-1] = ApiCall(
            start_ns=call.start_ns,
            end_ns=self.host_ns,
            thread_id=call.thread_id,
            name=call.name,
            correlation_id=call.correlation_id,
        )

    def _work(self, step: Work) -> None:
        start_ns = self.host_ns
        self.host_ns += self.jittered(step.duration_ns)
        if step.label is not None and (self.with_cpu_ops or self.with_host_ranges):
            kind: RangeKind = "annotation" if self.with_host_ranges else "cpu_op"
            self._operator(step.label, start_ns, kind)

    def _close(self) -> None:
        name, kind, start_ns = self.open_ranges.pop()
        self.ranges.append(
            HostRange(
                start_ns=start_ns,
                end_ns=self.host_ns,
                thread_id=self.thread_id,
                name=name,
                kind=kind,
            )
        )
        self.host_ns += 200

    def _flush(self, step: Flush) -> None:
        start_ns = self.host_ns
        self.host_ns += self.jittered(step.duration_ns)
        self.overheads.append(
            Overhead(
                start_ns=start_ns, end_ns=self.host_ns, thread_id=self.thread_id, kind=step.kind
            )
        )
