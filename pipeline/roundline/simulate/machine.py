"""Runs the steps of an engine on every rank; collectives meet.

A collective ends on all ranks together, so that the rank that came first spins until the last
has come.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from roundline.simulate.launches import HostCosts, Launch
from roundline.simulate.ops import Eager, Op, Replay, Step
from roundline.simulate.timeline import COLLECTIVE, Capture, Gpu
from roundline.simulate.worker import Worker


class Machine:
    """Ranks that run the same steps, each with its own jitter.

    Args:
        gpu: the GPU of every rank.
        ranks: number of ranks, one process each.
        costs: of hosts and launches.
        seed: of all jitter.
        start_ns: the clock when the machine starts.
        own_device_ids: every process calls its GPU 0 (as with CUDA_VISIBLE_DEVICES).
        with_cpu_ops: record the operator around every eager launch, as torch does.
        with_host_ranges: record the host's own work as ranges, as hand-made annotations do.
    """

    def __init__(
        self,
        gpu: Gpu,
        ranks: int,
        *,
        costs: HostCosts | None = None,
        seed: int = 0,
        start_ns: int = 0,
        epoch_ns: int = 0,
        own_device_ids: bool = False,
        with_cpu_ops: bool = False,
        with_host_ranges: bool = False,
    ) -> None:
        self._gpu = gpu
        self._epoch_ns = epoch_ns
        self._start_ns = start_ns
        self._collectives = 0
        self._workers = [
            Worker(
                rank=rank,
                device_id=0 if own_device_ids else rank,
                costs=costs or HostCosts(),
                rng=random.Random(f"{seed}/{rank}"),
                host_ns=start_ns + 40_000 * rank,
                with_cpu_ops=with_cpu_ops,
                with_host_ranges=with_host_ranges,
                is_amd=gpu.vendor == "amd",
            )
            for rank in range(ranks)
        ]

    def run(self, steps: Iterable[Step]) -> None:
        """Execute steps after all that ran before."""
        for step in steps:
            match step:
                case Eager():
                    self._execute(step.op, [w.launch(step) for w in self._workers])
                case Replay():
                    self._replay(step)
                case _:
                    for worker in self._workers:
                        worker.do(step)

    def now_ns(self) -> int:
        """When the last activity so far ends."""
        return max(worker.busy_until_ns() for worker in self._workers)

    def capture(self) -> Capture:
        """Everything that has run."""
        return Capture(
            gpu=self._gpu,
            ranks=tuple(worker.trace() for worker in self._workers),
            epoch_ns=self._epoch_ns,
            start_ns=self._start_ns,
            end_ns=max(worker.last_ns() for worker in self._workers),
        )

    def _replay(self, step: Replay) -> None:
        launches = [worker.launch_graph(step) for worker in self._workers]
        for node, op in enumerate(step.ops):
            self._execute(op, [launch.at_node(node) for launch in launches])

    def _execute(self, op: Op, launches: list[Launch]) -> None:
        starts = [
            worker.ready_ns(op, launch)
            for worker, launch in zip(self._workers, launches, strict=True)
        ]
        durations = [worker.jittered(op.duration_ns) for worker in self._workers]
        ends = [start + duration for start, duration in zip(starts, durations, strict=True)]
        number = None
        if op.category == COLLECTIVE:
            number = self._collectives
            self._collectives += 1
            together_ns = max(starts) + min(durations)
            ends = [together_ns + worker.rng.randrange(200) for worker in self._workers]
        for worker, launch, start_ns, end_ns in zip(
            self._workers, launches, starts, ends, strict=True
        ):
            worker.record(op, launch, start_ns, end_ns, number)
