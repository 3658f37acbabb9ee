"""Which rank each (source, process, device) is: stated by the source, or by order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from roundline.readers.contract import DeviceFacts, Diagnostic, ProcessFacts, SourceFacts


@dataclass(frozen=True)
class Rank:
    """One rank of the capture: `process_id` counts processes over all sources."""

    rank: int
    source_id: int
    process_id: int
    process: ProcessFacts
    device: DeviceFacts

    @property
    def evidence(self) -> str:
        """How the number was found; one that was taken already says nothing."""
        return self.process.rank_evidence if self.process.rank == self.rank else "order"


@dataclass(frozen=True)
class _Candidate:
    source_id: int
    process_id: int
    process: ProcessFacts
    device: DeviceFacts

    @property
    def key(self) -> tuple[object, ...]:
        """Sources in their order, and in one source by physical GPU."""
        device = self.device
        gpu = device.order or (device.device_id,)
        return self.source_id, gpu, self.process_id, device.device_id


def process_offsets(facts: Sequence[SourceFacts]) -> tuple[int, ...]:
    """What to add to a source's process ids to make them dense over the capture."""
    offsets, total = [], 0
    for source in facts:
        offsets.append(total)
        total += len(source.processes)
    return tuple(offsets)


def assign_ranks(facts: Sequence[SourceFacts]) -> tuple[tuple[Rank, ...], tuple[Diagnostic, ...]]:
    """Give every driven GPU a rank of its own; say what was doubtful."""
    candidates = sorted(_candidates(facts), key=lambda c: c.key)
    taken: dict[int, _Candidate] = {}
    unplaced: list[_Candidate] = []
    doubts: list[Diagnostic] = []
    for candidate in candidates:
        stated = candidate.process.rank
        if stated is None or stated in taken:
            unplaced.append(candidate)
        else:
            taken[stated] = candidate
        if stated is not None and taken[stated].process is not candidate.process:
            doubts.append(_duplicate(stated, taken[stated].source_id, candidate.source_id))
    free = (number for number in count() if number not in taken)
    for candidate in unplaced:
        taken[next(free)] = candidate
    ranks = tuple(
        Rank(number, c.source_id, c.process_id, c.process, c.device)
        for number, c in sorted(taken.items())
    )
    return ranks, (*doubts, *_missing(ranks), *_shared_devices(ranks))


def _candidates(facts: Sequence[SourceFacts]) -> Iterator[_Candidate]:
    for source_id, (source, offset) in enumerate(zip(facts, process_offsets(facts), strict=True)):
        processes = {process.process_id: process for process in source.processes}
        for device in source.devices:
            process = processes[device.process_id]
            yield _Candidate(source_id, offset + device.process_id, process, device)


def _duplicate(rank: int, first: int, second: int) -> Diagnostic:
    where = f"sources {first} and {second}" if first != second else f"two processes of {first}"
    return Diagnostic(
        "duplicate_rank", "error", 1,
        f"rank {rank} is stated by {where} of the manifest, the second got another number: ingest"
        " one window of each rank (prefill and decode apart)",
    )  # fmt: skip


def _missing(ranks: Sequence[Rank]) -> Iterator[Diagnostic]:
    sizes = {rank.process.world_size for rank in ranks if rank.process.world_size}
    stated = [rank for rank in ranks if rank.process.rank is not None]
    size = max(sizes, default=max((rank.rank + 1 for rank in stated), default=0))
    absent = sorted(set(range(size)) - {rank.rank for rank in ranks})
    if absent and stated:
        names = ", ".join(map(str, absent))
        yield Diagnostic(
            "missing_rank", "warning", len(absent),
            f"of {size} ranks these are absent: {names}; waiting cannot be told from transfer",
        )  # fmt: skip


def _shared_devices(ranks: Sequence[Rank]) -> Iterator[Diagnostic]:
    ids = [rank.device.device_id for rank in ranks]
    shared = sorted({id_ for id_ in ids if ids.count(id_) > 1})
    if shared:
        yield Diagnostic(
            "shared_device_id", "info", len(shared),
            f"several processes call their GPU device {', '.join(map(str, shared))};"
            " they are told apart by process",
        )  # fmt: skip
