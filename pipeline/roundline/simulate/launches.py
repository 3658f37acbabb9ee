"""What launching costs, and what a launched op becomes on the timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roundline.simulate.ops import Op
from roundline.simulate.timeline import Activity, Kernel, MemoryOp, Truth

# streams by lane, as torch and CUDA number them: eager ones and those of captured graphs
_EAGER_STREAMS: Final = (7, 20, 27)
_GRAPH_STREAMS: Final = (7, 34, 41)


@dataclass(frozen=True, kw_only=True)
class HostCosts:
    """What hosts and launches cost, in nanoseconds.

    Attributes:
        python_ns: interpreter time before each eager launch.
        launch_ns: an eager launch call.
        launch_latency_ns: from the start of a launch call to the earliest start on the GPU.
        graph_call_ns: a graph launch call, plus `graph_call_per_node_ns` for each node.
        graph_latency_ns: from the start of a graph launch call to its first node, plus
            `graph_latency_per_node_ns` for each node.
        graph_gap_ns: between two nodes of a replay.
        eager_gap_ns: between two queued eager activities.
        sync_return_ns: from the end of GPU work to the return of a synchronisation.
        jitter: relative spread of every duration.
    """

    python_ns: int = 9_000
    launch_ns: int = 4_200
    launch_latency_ns: int = 6_500
    graph_call_ns: int = 28_000
    graph_call_per_node_ns: int = 180
    graph_latency_ns: int = 21_000
    graph_latency_per_node_ns: int = 90
    graph_gap_ns: int = 800
    eager_gap_ns: int = 1_100
    sync_return_ns: int = 7_000
    jitter: float = 0.015


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch call as one of its activities sees it."""

    correlation_id: int
    reaches_gpu_ns: int
    gap_ns: int
    graph_id: int | None = None
    graph_node: int | None = None

    def at_node(self, node: int) -> Launch:
        """The launch of one node of a graph."""
        return Launch(self.correlation_id, self.reaches_gpu_ns, self.gap_ns, self.graph_id, node)


def hip_name(name: str) -> str:
    """The HIP call for a CUDA call; `cu*` driver calls launch modules."""
    if name.startswith("cuda"):
        return "hip" + name.removeprefix("cuda").replace("LaunchKernelExC", "LaunchKernel")
    return "hipModuleLaunchKernel" if name.startswith("cu") else name


def activity_of(op: Op, launch: Launch, start_ns: int, end_ns: int, truth: Truth) -> Activity:
    """The record of `op` once it has run."""
    streams = _EAGER_STREAMS if launch.graph_id is None else _GRAPH_STREAMS
    stream_id = streams[op.lane]
    if op.kind == "kernel":
        return Kernel(
            start_ns=start_ns,
            end_ns=end_ns,
            stream_id=stream_id,
            correlation_id=launch.correlation_id,
            truth=truth,
            graph_id=launch.graph_id,
            graph_node=launch.graph_node,
            name=op.name,
            grid=op.grid,
            block=op.block,
        )
    return MemoryOp(
        start_ns=start_ns,
        end_ns=end_ns,
        stream_id=stream_id,
        correlation_id=launch.correlation_id,
        truth=truth,
        graph_id=launch.graph_id,
        graph_node=launch.graph_node,
        kind=op.kind,
        size_bytes=op.size_bytes,
        copy_kind=op.copy_kind,
    )
