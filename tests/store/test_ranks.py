"""Ranks are stated, or follow the order of sources and GPUs; what is doubtful is said."""

from __future__ import annotations

import pytest

from roundline.readers.contract import DeviceFacts, ProcessFacts, SourceFacts
from roundline.store.ranks import assign_ranks


def source(*ranks: int | None, gpus: tuple[int, ...] = (), world: int | None = None) -> SourceFacts:
    """A source with one process per rank, each driving one GPU."""
    numbers = gpus or tuple(range(len(ranks)))
    return SourceFacts(
        producer="test", producer_version=None, schema_version=None, wall_clock_base_ns=0,
        processes=tuple(
            ProcessFacts(i, 100 + i, rank, "order" if rank is None else "metadata", world)
            for i, rank in enumerate(ranks)
        ),
        devices=tuple(DeviceFacts(i, 0, order=(gpu,)) for i, gpu in enumerate(numbers)),
        capabilities={},
    )  # fmt: skip


def placed(*sources: SourceFacts) -> list[tuple[int, int]]:
    """(source, process) by rank; processes are counted over all sources."""
    ranks, _ = assign_ranks(sources)
    assert [rank.rank for rank in ranks] == sorted(rank.rank for rank in ranks)
    return [(rank.source_id, rank.process_id) for rank in ranks]


def codes(*sources: SourceFacts) -> list[str]:
    """Codes of what was doubtful."""
    return [doubt.code for doubt in assign_ranks(sources)[1]]


def test_stated_ranks_are_kept_in_any_order_of_sources() -> None:
    """Rank 1 may come first."""
    assert placed(source(1), source(0)) == [(1, 1), (0, 0)]


def test_one_source_is_ordered_by_physical_gpu() -> None:
    """Processes of one export follow their GPUs, not their ids."""
    assert placed(source(None, None, gpus=(3, 1))) == [(0, 1), (0, 0)]


def test_sources_follow_each_other() -> None:
    """Exports of two nodes: all GPUs of the first, then all of the second."""
    node = source(None, None, gpus=(0, 1))
    assert placed(node, node) == [(0, 0), (0, 1), (1, 2), (1, 3)]


def test_a_rank_that_is_stated_twice_is_an_error() -> None:
    """The second one gets the next free number and no evidence but its order."""
    ranks, doubts = assign_ranks([source(0), source(0), source(1)])
    assert [(rank.rank, rank.source_id) for rank in ranks] == [(0, 0), (1, 2), (2, 1)]
    assert [rank.evidence for rank in ranks] == ["metadata", "metadata", "order"]
    (duplicate,) = [doubt for doubt in doubts if doubt.code == "duplicate_rank"]
    assert (duplicate.severity, "sources 0 and 1" in duplicate.detail) == ("error", True)


@pytest.mark.parametrize(
    ("sources", "absent"),
    [
        ([source(1, world=2)], "0"),
        ([source(0, world=4), source(2, world=4)], "1, 3"),
        ([source(0), source(2)], "1"),
        ([source(0, world=1)], None),
        ([source(None)], None),
    ],
)
def test_missing_ranks_are_named(sources: list[SourceFacts], absent: str | None) -> None:
    """World size, or the highest rank seen, tells which ranks are not there."""
    missing = [doubt.detail for doubt in assign_ranks(sources)[1] if doubt.code == "missing_rank"]
    assert [f"are absent: {absent};" in detail for detail in missing] == [True] * len(missing)
    assert bool(missing) == (absent is not None)


def test_two_processes_on_device_zero_are_told_apart() -> None:
    """Both call their GPU device 0, and the store says so."""
    assert "shared_device_id" in codes(source(None, None))
