"""What rounds asked of their hosts: launches, synchronisations, the lead of graph launches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from roundline.simulate.timeline import Activity, ApiCall, Kernel, RankTrace

_SYNCHRONISING = ("Synchronize", "cudaMemcpy", "hipMemcpy")


@dataclass(frozen=True, slots=True)
class RoundHost:
    """Host calls of one round: launches by what ran in it, synchronisations by when they began."""

    launches: int
    launch_ns: int
    syncs: int
    sync_ns: int


@dataclass(frozen=True, slots=True)
class GraphLaunch:
    """One replay whose launch call was recorded.

    `lead_ns` is how long before the replay started its call began, `host_ns` the time in it.
    """

    rank: int
    correlation_id: int
    lead_ns: int
    host_ns: int
    kernels: int


def round_host(
    trace: RankTrace, started: Iterable[Activity], start_ns: int, end_ns: int
) -> RoundHost:
    """Calls that launched `started`, and those that blocked the host in `[start_ns, end_ns)`."""
    wanted = {activity.correlation_id for activity in started}
    launches = [c for c in trace.api_calls if c.correlation_id in wanted]
    syncs = [c for c in trace.api_calls if is_sync(c) and start_ns <= c.start_ns < end_ns]
    return RoundHost(len(launches), _time_in(launches), len(syncs), _time_in(syncs))


def graph_launches(trace: RankTrace) -> Iterator[GraphLaunch]:
    """Every replay of a rank whose call was recorded, in order of the calls."""
    nodes: dict[int, list[Activity]] = {}
    for activity in trace.activities:
        if activity.replay_id is not None:
            nodes.setdefault(activity.replay_id, []).append(activity)
    for call in trace.api_calls:
        replay = nodes.get(call.correlation_id)
        if replay is not None:
            yield GraphLaunch(
                rank=trace.rank,
                correlation_id=call.correlation_id,
                lead_ns=min(node.start_ns for node in replay) - call.start_ns,
                host_ns=call.end_ns - call.start_ns,
                kernels=sum(isinstance(node, Kernel) for node in replay),
            )


def is_sync(call: ApiCall) -> bool:
    """Whether the call may block the host until the GPU is done."""
    return call.name.endswith(_SYNCHRONISING)


def _time_in(calls: Iterable[ApiCall]) -> int:
    return sum(call.end_ns - call.start_ns for call in calls)
