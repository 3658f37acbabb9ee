"""The fault cases distilled from public reports: each is ingested as a user would."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roundline.cli import main
from roundline.readers.contract import ReadOptions
from roundline.readers.ingest import IngestOptions, IngestResult, ingest
from roundline.store import Store, open_store
from roundline.warehouse.attribution import Attribution, read_attribution
from roundline.warehouse.build import open_warehouse

Ingest = Callable[..., IngestResult]


@pytest.fixture
def cases(shared: Path) -> Path:
    """Folder of the cases."""
    return shared / "cases"


@pytest.fixture
def ingested(cases: Path, tmp_path: Path) -> Callable[..., Store]:
    """Ingest cases by name into a store."""

    def run(*names: str, **read: bool) -> Store:
        options = IngestOptions(read=ReadOptions(**read))
        ingest([cases / name for name in names], tmp_path / "store", options)
        return open_store(tmp_path / "store")

    return run


def ask(store: Store, sql: str) -> list[tuple[Any, ...]]:
    """Rows of a query over raw tables and marts."""
    with open_warehouse(store) as warehouse:
        return warehouse.execute(sql).fetchall()


def attribution_of(store: Store) -> Attribution:
    """What `roundline attribute` would show."""
    with open_warehouse(store) as warehouse:
        return read_attribution(warehouse)


def codes(store: Store) -> set[str]:
    """Codes of the store's diagnostics."""
    return {diagnostic.code for diagnostic in store.manifest.diagnostics}


def test_t01_a_raw_control_character_costs_nothing(ingested: Callable[..., Store]) -> None:
    """Both kernels are kept, and one warning names the file and the byte."""
    store = ingested("T01_ctrl_char.json")
    assert (store.manifest.tables["kernels"], store.manifest.kernel_ns) == (2, 30_000)
    warnings = [d for d in store.manifest.diagnostics if d.code == "malformed_events"]
    assert [d.count for d in warnings] == [1]
    assert "byte" in warnings[0].detail
    assert "control character" in warnings[0].detail


def test_t03_a_truncated_trace_is_refused(
    cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default the message says truncated, after how many events, and nothing is written."""
    target = tmp_path / "store"
    assert main(["ingest", str(cases / "T03_truncated.json"), "-o", str(target)]) == 3
    message = capsys.readouterr().err
    assert "truncated" in message
    assert "3 complete events" in message
    assert list(tmp_path.iterdir()) == []


def test_t03_a_truncated_trace_can_be_salvaged(ingested: Callable[..., Store]) -> None:
    """With the option what is complete is kept, and the store carries the mark."""
    store = ingested("T03_truncated.json", allow_truncated=True)
    assert (store.manifest.tables["kernels"], store.manifest.kernel_ns) == (1, 10_000)
    assert store.manifest.truncated
    assert "truncated" in codes(store)


def test_t08_metadata_alone_is_no_capture(
    cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only metadata rows: no GPU events, said in one line, nothing written."""
    target = tmp_path / "store"
    assert main(["ingest", str(cases / "T08_metadata_only.json"), "-o", str(target)]) == 3
    assert "no GPU events" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_t13_overlapping_kernels_are_both_kept(ingested: Callable[..., Store]) -> None:
    """Sum and union of overlapping kernels are two numbers."""
    store = ingested("T13_pdl_overlap.json")
    sums = ask(store, "SELECT kernels, kernel_sum_ns, kernel_busy_ns FROM ranks")
    assert sums == [(2, 20_000, 18_000)]


def test_t16_two_bases_are_one_clock(ingested: Callable[..., Store]) -> None:
    """Ranks with different bases, before and after the events, meet at the same nanosecond."""
    store = ingested("T16_rank0.json", "T16_rank1.json")
    starts = ask(store, "SELECT rank, start_ns FROM kernels ORDER BY rank")
    assert starts == [(0, 1755400000001000000), (1, 1755400000001000000)]
    assert "missing_rank" not in codes(store)


def test_t18_replayed_kernels_belong_to_their_launch(ingested: Callable[..., Store]) -> None:
    """Five kernels of one launch are one replay of the step, and the launch is charged once."""
    store = ingested("T18_graph_replay.json")
    launches = ask(store, "SELECT kernels, host_ns FROM graph_launches")
    assert launches == [(5, 30_000)]
    step = ask(store, "SELECT sum(end_ns - start_ns)::BIGINT, count(DISTINCT replay_id)"
                      " FROM kernel_attribution WHERE replay_id IS NOT NULL")  # fmt: skip
    assert step == [(125_000, 1)]


def test_t19_under_recording_withholds_idle(ingested: Callable[..., Store]) -> None:
    """One of ten launches has kernels: coverage says so and no idle time is shown."""
    store = ingested("T19_under_recorded.json")
    coverage = ask(store, "SELECT graph_launches, graph_recorded FROM completeness")
    assert coverage == [(10, 1)]
    (rank,) = attribution_of(store).ranks
    assert rank.idle == ()
    assert rank.idle_withheld_because


def test_t21_decode_markers_are_drafts_when_something_is_verified(
    ingested: Callable[..., Store],
) -> None:
    """Two rounds; drafts, verification and the unmarked extension add up to 44,100 us."""
    store = ingested("T21_same_step_names.json")
    rows = ask(store, "SELECT round_id, phase, sum(exclusive_ns)::BIGINT,"
                      " count(DISTINCT draft_step) FROM round_attribution"
                      " GROUP BY ALL ORDER BY ALL")  # fmt: skip
    parts = [("draft", 5_400_000, 3), ("draft_extend", 700_000, 1), ("verify", 38_000_000, 0)]
    assert rows == [(round_id, *part) for round_id in (0, 1) for part in parts]


def test_t26_names_have_the_stated_classes(cases: Path) -> None:
    """Names of the case file get its classes; `gemv` is a weight read like `gemm`."""
    from roundline.warehouse.explain import explain_name
    from roundline.warehouse.parameters import Parameters

    names = json.loads((cases / "T26_names.json").read_text())["names"]
    same = {"allreduce": "collective", "gemv": "gemm"}
    found = {name: explain_name(name, Parameters()).category for name in names}
    assert found == {name: same.get(class_, class_) for name, class_ in names.items()}


def test_t27_waiting_is_not_transfer(ingested: Callable[..., Store]) -> None:
    """The early rank waits 450 us; the transfer is 45 us on both."""
    store = ingested("T27_rank_skew")
    rows = ask(store, "SELECT rank, sum(transfer_ns)::BIGINT, sum(wait_ns)::BIGINT"
                      " FROM collectives GROUP BY rank ORDER BY rank")  # fmt: skip
    assert rows == [(0, 45_000, 450_000), (1, 45_000, 0)]


def test_t27_a_missing_rank_is_named(cases: Path, tmp_path: Path) -> None:
    """With rank 1 alone the store says that rank 0 is absent."""
    trace = next((cases / "T27_rank_skew").glob("*TP-1*"))
    result = ingest([trace], tmp_path / "store", IngestOptions())
    missing = [d.detail for d in result.diagnostics if d.code == "missing_rank"]
    assert len(missing) == 1
    assert "0" in missing[0]


def test_n01_correlation_ids_are_per_process(ingested: Callable[..., Store]) -> None:
    """Joining launches by (process, correlation) neither loses nor multiplies kernels."""
    store = ingested("N01_corr_collision.sqlite")
    joined = ask(store, "SELECT count(*), sum(k.end_ns - k.start_ns)::BIGINT FROM kernels AS k"
                        " JOIN api_calls AS a USING (process_id, correlation_id)")  # fmt: skip
    assert joined == [(6, 3_000)]


def test_n02_devices_are_told_apart_by_process(ingested: Callable[..., Store]) -> None:
    """Equal stream ids of two processes: 86 % busy on each device, zero-length kernels kept."""
    store = ingested("N02_same_stream_ids.sqlite")
    rows = ask(store, "SELECT round(100 * kernel_busy_ns / (last_end_ns - first_start_ns), 1)"
                      " FROM ranks ORDER BY rank")  # fmt: skip
    assert rows == [(86.0,), (86.0,)]
    assert ask(store, "SELECT count(*) FROM kernels WHERE start_ns = end_ns") == [(2,)]


def test_n04_a_graph_level_capture_is_not_idle(ingested: Callable[..., Store]) -> None:
    """Spans are counted as opaque time, the remedy is named, and idle time is withheld."""
    store = ingested("N04_graph_level.sqlite")
    assert "graph_level_trace" in codes(store)
    attribution = attribution_of(store)
    assert round(100 * attribution.unclassified.share, 2) == 99.85
    assert attribution.ranks[0].idle == ()
    details = [line.detail for line in attribution.quality if line.check == "graph_nodes"]
    assert details == [
        "graph-level capture: the kernels of 4 replays are hidden; a replay takes 40.000 ms"
    ]


def test_n05_a_capture_without_nvtx_is_a_capture(ingested: Callable[..., Store]) -> None:
    """Everything that needs no ranges works, and their absence is said."""
    store = ingested("N05_no_nvtx.sqlite")
    assert (store.manifest.tables["kernels"], store.manifest.kernel_ns) == (1, 1_000)
    assert store.manifest.capabilities["ranges"] == "absent"
    assert "no_ranges" in codes(store)
