"""What a profiler would have recorded, as facts on one clock of integer nanoseconds.

A capture holds one trace per rank. Every GPU activity carries its truth: what the engine meant
by it. Truth never reaches a capture file; it is written beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

Phase = Literal["draft", "verify", "sample", "commit", "draft_extend", "prefill", "other"]
RangeKind = Literal["annotation", "cpu_op"]  # NVTX or record_function; operators of torch

COLLECTIVE: Final = "collective"


@dataclass(frozen=True, slots=True)
class Anchor:
    """Marks the activity that starts a round; says why the round is not a steady one."""

    excluded_because: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a GPU activity is, as the engine that launched it knows."""

    category: str
    phase: Phase = "other"
    draft_step: int | None = None
    matrix: str | None = None
    layer: int | None = None
    collective_id: int | None = None
    anchor: Anchor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """Something that ran on a GPU in `[start_ns, end_ns)`.

    `correlation_id` is the launching call within the process; all nodes of one graph replay
    share it. Graph fields are None outside graphs.
    """

    start_ns: int
    end_ns: int
    stream_id: int
    correlation_id: int
    truth: Truth
    graph_id: int | None = None
    graph_node: int | None = None

    @property
    def duration_ns(self) -> int:
        """Time of execution."""
        return self.end_ns - self.start_ns

    @property
    def replay_id(self) -> int | None:
        """The graph launch that it was part of, unique within the process."""
        return None if self.graph_id is None else self.correlation_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel(Activity):
    """A kernel; `name` is spelled as torch traces spell it."""

    name: str
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    registers_per_thread: int = 32
    shared_memory_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOp(Activity):
    """A copy or fill by the copy engine."""

    kind: Literal["memcpy", "memset"]
    size_bytes: int
    copy_kind: Literal["HtoD", "DtoH", "DtoD", "PtoP"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """A call of the CUDA or HIP API by a host thread."""

    start_ns: int
    end_ns: int
    thread_id: int
    name: str
    correlation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRange:
    """A named stretch of a host thread; `end_ns` is None when it was never closed."""

    start_ns: int
    end_ns: int | None
    thread_id: int
    name: str
    kind: RangeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """The profiler's own work, which holds its process up."""

    start_ns: int
    end_ns: int
    thread_id: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTrace:
    """One process driving one GPU, as `device_id` of what that process sees."""

    rank: int
    pid: int
    device_id: int
    activities: tuple[Activity, ...]
    api_calls: tuple[ApiCall, ...]
    ranges: tuple[HostRange, ...] = ()
    overheads: tuple[Overhead, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU model: its name as the driver prints it, and what profilers state of it."""

    name: str
    chip: str
    compute_capability: tuple[int, int]
    memory_bandwidth_bytes_per_s: int
    memory_bytes: int
    l2_bytes: int
    sm_count: int
    vendor: Literal["nvidia", "amd"] = "nvidia"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """All ranks of one recording.

    Attributes:
        epoch_ns: Unix time of the clock's zero.
        start_ns: when recording began.
        end_ns: when recording ended.
    """

    gpu: Gpu
    ranks: tuple[RankTrace, ...]
    epoch_ns: int
    start_ns: int
    end_ns: int

    def activities(self) -> Iterator[tuple[RankTrace, Activity]]:
        """Every GPU activity with its rank."""
        for trace in self.ranks:
            for activity in trace.activities:
                yield trace, activity


def window(capture: Capture, start_ns: int, end_ns: int) -> Capture:
    """The capture as recorded from `start_ns` to `end_ns` only.

    As profilers do: GPU activities not entirely inside are dropped, so are calls and ranges that
    began before; a range still open at the end never closes.
    """
    ranks = tuple(_window_of(trace, start_ns, end_ns) for trace in capture.ranks)
    return replace(capture, ranks=ranks, start_ns=start_ns, end_ns=end_ns)


def repetitions(capture: Capture, times: int) -> Iterator[Capture]:
    """The same recording `times` times in a row, each shifted behind the one before.

    Correlation ids go on counting. What is held in memory is one repetition.
    """
    period_ns = capture.end_ns - capture.start_ns
    ids = 1 + max(map(_last_id, capture.ranks), default=0)
    for number in range(times):
        yield _shifted(capture, number * period_ns, number * ids)


def _last_id(trace: RankTrace) -> int:
    calls = max((call.correlation_id for call in trace.api_calls), default=0)
    return max(calls, max((a.correlation_id for a in trace.activities), default=0))


def _shifted(capture: Capture, shift_ns: int, shift_ids: int) -> Capture:
    if shift_ns == 0:
        return capture
    ranks = tuple(_shifted_rank(trace, shift_ns, shift_ids) for trace in capture.ranks)
    return replace(
        capture,
        ranks=ranks,
        start_ns=capture.start_ns + shift_ns,
        end_ns=capture.end_ns + shift_ns,
    )


def _shifted_rank(trace: RankTrace, shift_ns: int, shift_ids: int) -> RankTrace:
    return replace(
        trace,
        activities=tuple(_launched_later(a, shift_ns, shift_ids) for a in trace.activities),
        api_calls=tuple(_launched_later(c, shift_ns, shift_ids) for c in trace.api_calls),
        ranges=tuple(
            replace(
                r,
                start_ns=r.start_ns + shift_ns,
                end_ns=None if r.end_ns is None else r.end_ns + shift_ns,
            )
            for r in trace.ranges
        ),
        overheads=tuple(
            replace(o, start_ns=o.start_ns + shift_ns, end_ns=o.end_ns + shift_ns)
            for o in trace.overheads
        ),
    )


_Launched = TypeVar("_Launched", Activity, ApiCall)


def _launched_later(item: _Launched, shift_ns: int, shift_ids: int) -> _Launched:
    return replace(
        item,
        start_ns=item.start_ns + shift_ns,
        end_ns=item.end_ns + shift_ns,
        correlation_id=item.correlation_id + shift_ids,
    )


def _window_of(trace: RankTrace, start_ns: int, end_ns: int) -> RankTrace:
    return replace(
        trace,
        activities=tuple(
            a for a in trace.activities if start_ns <= a.start_ns and a.end_ns <= end_ns
        ),
        api_calls=tuple(
            c for c in trace.api_calls if start_ns <= c.start_ns and c.end_ns <= end_ns
        ),
        ranges=tuple(
            r if r.end_ns is None or r.end_ns <= end_ns else replace(r, end_ns=None)
            for r in trace.ranges
            if start_ns <= r.start_ns < end_ns
        ),
        overheads=tuple(
            o for o in trace.overheads if start_ns <= o.start_ns and o.end_ns <= end_ns
        ),
    )
