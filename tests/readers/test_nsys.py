"""Nsight exports of every version and container are read the same, or refused with a reason."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from nsys_exports import (
    KERNEL,
    MEMCPY,
    RUNTIME,
    STRINGS,
    call,
    global_id,
    kernel,
    metadata,
    nvtx,
    two_processes,
    write_arrowdir,
    write_parquetdir,
    write_sqlite,
)

from roundline.errors import NoGpuActivityError, SourceError
from roundline.readers.contract import ReadOptions
from roundline.readers.ingest import IngestOptions, ingest
from roundline.store import Store, open_store
from roundline.store.schemas import TABLES

Ingest = Callable[..., Store]
SCHEMAS = sorted((Path(__file__).parents[3] / "shared" / "schemas" / "nsys").glob("*.sql"))


@pytest.fixture
def ingested(tmp_path: Path) -> Ingest:
    """Ingest tables, given as rows, or an export that was written already."""
    numbers = iter(range(100))

    def run(source: Path | dict[str, Any], **read: bool) -> Store:
        number = next(numbers)
        if isinstance(source, dict):
            source = write_sqlite(tmp_path / f"export{number}.sqlite", source)
        target = tmp_path / f"store{number}"
        ingest([source], target, IngestOptions(read=ReadOptions(**read)))
        return open_store(target)

    return run


def rows(store: Store, table: str) -> list[dict[str, Any]]:
    """All rows of a raw table."""
    return pq.read_table(store.table_path(table)).to_pylist()


def column(store: Store, table: str, name: str) -> list[Any]:
    """One column of a raw table."""
    return [row[name] for row in rows(store, table)]


def columns_of(export: Path, table: str) -> set[str]:
    """Columns of a table of a SQLite export; empty when it is missing."""
    with closing(sqlite3.connect(export)) as connection:
        return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def codes(store: Store) -> dict[str, tuple[str, int]]:
    """Severity and count by code."""
    return {d.code: (d.severity, d.count) for d in store.manifest.diagnostics}


def small(**tables: Any) -> dict[str, Any]:
    """One process with one launched kernel, and what else a test needs."""
    return {
        "StringIds": list(STRINGS), KERNEL: [kernel(1)], RUNTIME: [call(1)],
    } | tables  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda path: path.stem)
def test_every_export_schema_is_read(schema: Path, tmp_path: Path, ingested: Ingest) -> None:
    """What a version has room for comes back; what it has not is NULL or absent."""
    ddl = schema.read_text()
    if "StringIds" not in ddl:  # a transcript of some tables only
        ddl += "CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT);"
    tables = two_processes() | metadata(EXPORT_SCHEMA_VERSION=schema.stem.split("_")[3])
    export = write_sqlite(tmp_path / "export.sqlite", tables, ddl)
    columns = columns_of(export, KERNEL)
    if not columns:
        with pytest.raises(NoGpuActivityError):
            ingested(export)
        return
    store = ingested(export)
    kernels = rows(store, "kernels")
    assert len(kernels) == 14
    assert store.manifest.kernel_ns == 14 * 300
    assert {k["shared_memory_bytes"] for k in kernels} == {1040}
    assert {k["graph_node_id"] for k in kernels} == {None, *((7 << 32) | i for i in range(10, 14))}
    assert {k["graph_id"] for k in kernels} == ({None, 7} if "graphId" in columns else {None})
    assert len(rows(store, "api_calls")) == 11
    assert set(column(store, "api_calls", "name")) == {"cudaLaunchKernel", "cudaGraphLaunch"}
    assert store.manifest.ranks == (0, 1)


def test_containers_give_the_same_store(tmp_path: Path, ingested: Ingest) -> None:
    """SQLite, parquetdir and arrowdir of one capture become the same bytes."""
    tables = two_processes()
    stores = [
        ingested(write_sqlite(tmp_path / "a.sqlite", tables)),
        ingested(write_parquetdir(tmp_path / "a_pqtdir", tables)),
        ingested(write_arrowdir(tmp_path / "a_arwdir", tables)),
    ]
    for table in TABLES:
        first, *others = [store.table_path(table).read_bytes() for store in stores]
        assert all(other == first for other in others), table


def test_ids_of_processes_never_meet(ingested: Ingest) -> None:
    """Equal correlation ids of two processes join only inside their process."""
    store = ingested(two_processes())
    calls = {(c["process_id"], c["correlation_id"]) for c in rows(store, "api_calls")}
    kernels = [(k["process_id"], k["correlation_id"]) for k in rows(store, "kernels")]
    assert len(kernels) == 14
    assert set(kernels) <= calls
    assert len(calls) == 11


def test_ranks_follow_the_physical_gpu(ingested: Ingest) -> None:
    """Both processes say device 0; the export maps them to GPUs 1 and 0."""
    store = ingested(two_processes())
    pids = dict(zip(column(store, "processes", "process_id"), column(store, "processes", "pid"),
                    strict=True))  # fmt: skip
    devices = rows(store, "devices")
    assert [pids[device["process_id"]] for device in devices] == [200, 100]
    assert {device["device_evidence"] for device in devices} == {"mapped"}
    assert {device["memory_bandwidth_bytes_per_s"] for device in devices} == {768_096_000_000}
    assert "shared_device_id" in codes(store)


def test_ranks_of_mpi_win(ingested: Ingest) -> None:
    """Where MPI was traced its ranks are the ranks."""
    ranks = [{"globalTid": global_id(pid, pid), "rank": rank} for pid, rank in ((100, 0), (200, 1))]
    devices = rows(ingested(two_processes() | {"MPI_RANKS": ranks}), "devices")
    assert {device["rank_evidence"] for device in devices} == {"metadata"}
    assert [device["process_id"] for device in devices] == [0, 1]


def test_a_bandwidth_beyond_reason_is_unknown(ingested: Ingest) -> None:
    """A memory bandwidth that no GPU has is NULL, not a number to divide by."""
    tables = two_processes()
    tables["TARGET_INFO_GPU"] = [{**gpu, "memoryBandwidth": 768} for gpu in
                                 tables["TARGET_INFO_GPU"]]  # fmt: skip
    assert set(column(ingested(tables), "devices", "memory_bandwidth_bytes_per_s")) == {None}


def test_ranges_keep_message_domain_and_open_end(ingested: Ingest) -> None:
    """Inline and registered messages, domains per process, an end that never came."""
    store = ingested(two_processes())
    names = {row["name_id"]: row["name"] for row in rows(store, "names")}
    ranges = {names[r["name_id"]]: r for r in rows(store, "ranges")}
    assert set(ranges) == {"step 1", "registered", "step 3", "step 4"}
    assert ranges["step 3"]["end_ns"] is None
    assert ranges["step 4"]["domain"] == "decode"
    assert ranges["step 1"]["domain"] is None
    assert codes(store)["open_ranges"] == ("info", 1)


def test_a_range_that_ends_with_the_capture_was_open(ingested: Ingest) -> None:
    """Exporters end open ranges at the capture's duration; the end is not measured."""
    tables = small(NVTX_EVENTS=[nvtx(1, end=90_000)], ANALYSIS_DETAILS=[{"duration": 90_000}])
    assert column(ingested(tables), "ranges", "end_ns") == [None]


def test_successor_tables_are_found(ingested: Ingest) -> None:
    """A table with a version number behind its name is that table."""
    assert len(rows(ingested(small(NVTX_EVENTS_V3=[nvtx(1)])), "ranges")) == 1


def test_ranges_lost_by_tool_mismatch_are_said(ingested: Ingest) -> None:
    """Only bookkeeping rows of NVTX: the ranges were lost, not unused."""
    domain = nvtx(1, eventType=75, end=None)
    assert "ranges_lost" in codes(ingested(small(NVTX_EVENTS=[domain])))


@pytest.mark.parametrize("shift_ns", [0, 1_755_000_000_000_000_000])
def test_a_normalised_export_has_the_same_times(ingested: Ingest, shift_ns: int) -> None:
    """What --ts-normalize added is taken off again before the wall clock is added."""
    base = 1_755_000_000_000_000_000
    moved = kernel(1)
    moved |= {"start": moved["start"] + shift_ns, "end": moved["end"] + shift_ns}
    tables = small(**{KERNEL: [moved], RUNTIME: []}) | metadata(
        EXPORT_CONFIG_TIME_SHIFT=str(shift_ns)
    )
    tables["TARGET_INFO_SESSION_START_TIME"] = [{"utcEpochNs": base}]
    assert column(ingested(tables), "kernels", "start_ns") == [base + 1_000]


def test_times_before_zero_are_kept_and_said(ingested: Ingest) -> None:
    """Warm-up before the capture's zero is an event like others."""
    store = ingested(small(**{KERNEL: [kernel(1, start=-500, end=-100)]}))
    assert column(store, "kernels", "start_ns") == [-500]
    assert codes(store)["invalid_time"] == ("info", 1)


def test_an_end_before_the_start_is_no_duration(ingested: Ingest) -> None:
    """Such a kernel is kept with no duration, and counted."""
    store = ingested(small(**{KERNEL: [kernel(1), kernel(2, end=5)]}))
    assert store.manifest.kernel_ns == 300
    assert codes(store)["implausible_duration"] == ("warning", 1)


def test_events_without_a_time_are_counted(ingested: Ingest) -> None:
    """A kernel without an end is left out and said."""
    store = ingested(small(**{KERNEL: [kernel(1), kernel(2, end=None)]}))
    assert store.manifest.tables["kernels"] == 1
    assert codes(store)["invalid_time"] == ("warning", 1)


def test_correlation_zero_is_no_correlation(ingested: Ingest) -> None:
    """0 never joins."""
    store = ingested(small(**{KERNEL: [kernel(1, correlationId=0, graphNodeId=0)]}))
    assert column(store, "kernels", "correlation_id") == [None]
    assert column(store, "kernels", "graph_node_id") == [None]


def test_a_cut_export_without_processes_still_joins(ingested: Ingest) -> None:
    """Kernels that name no process belong to the only one there is."""
    bare = {k: v for k, v in kernel(1).items() if k != "globalPid"}
    store = ingested(small(**{KERNEL: [bare]}))
    assert column(store, "kernels", "process_id") == column(store, "api_calls", "process_id")


def test_the_sentinel_of_no_process_is_no_process(tmp_path: Path, ingested: Ingest) -> None:
    """The vendor's 0xFE00… reads the same from signed and unsigned columns."""
    tables = small(**{KERNEL: [kernel(1, globalPid=-144115188075855872)], RUNTIME: []})
    for export in (write_sqlite(tmp_path / "s.sqlite", tables),
                   write_parquetdir(tmp_path / "p", tables)):  # fmt: skip
        assert column(ingested(export), "processes", "pid") == [None]


def test_kernels_without_names_are_an_error(ingested: Ingest) -> None:
    """A filtered export without StringIds keeps times but says that names are gone."""
    store = ingested({KERNEL: [kernel(1)]})
    assert column(store, "names", "name") == ["unknown"]
    assert codes(store)["unnamed_kernels"] == ("error", 1)


def test_string_zero_is_a_name(ingested: Ingest) -> None:
    """Id 0 of StringIds is a real string."""
    store = ingested(small(**{KERNEL: [kernel(1, demangledName=0)]}))
    assert "zero is a name" in column(store, "names", "name")


@pytest.mark.parametrize("mode", ["Graph", None])
def test_hidden_replays_are_said_without_a_graph_table(ingested: Ingest, mode: str | None) -> None:
    """Graph launches whose kernels are nowhere: old exporters have no table for their spans."""
    capture = [{"name": "CUDA_GRAPH_TRACE_OPTIONS:MODE", "value": mode}] if mode else []
    tables = small(**{RUNTIME: [call(1), call(2, nameId=4)]}, META_DATA_CAPTURE=capture)
    store = ingested(tables)
    assert codes(store)["graph_level_trace"] == ("error", 1)
    assert store.manifest.capabilities["kernels"] == "partial"


def test_replays_are_told_by_correlation_where_nodes_are_not_named(ingested: Ingest) -> None:
    """A hand-cut export without graph columns is no graph-level capture."""
    tables = small(
        **{RUNTIME: [call(2, nameId=4)], KERNEL: [kernel(2), kernel(3, correlationId=2)]}
    )
    assert "graph_level_trace" not in codes(ingested(tables))


def test_a_process_whose_kernels_are_missing_is_named(ingested: Ingest) -> None:
    """A process that launches without any GPU record was forked, or lost its records."""
    store = ingested(small(**{RUNTIME: [call(1), call(2, 200), call(3, 200)]}))
    (finding,) = [d for d in store.manifest.diagnostics if d.code == "no_gpu_activity"]
    assert "process 200 launched 2 times" in finding.detail


def test_records_that_stop_before_the_launches_are_said(ingested: Ingest) -> None:
    """Launches go on for seconds after the last kernel: records were dropped."""
    late = call(2, start=5_000_000_000, end=5_000_000_100)
    assert "dropped_records" in codes(ingested(small(**{RUNTIME: [call(1), late]})))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CUPTI dropped 12 records. Some CUPTI events might be missing.", "dropped_records"),
        ("Number of incomplete CUPTI events dropped: 3.", "dropped_records"),
        ("NVTX payload extension is incompatible.", "ranges_lost"),
    ],
)
def test_what_the_profiler_reported_becomes_a_finding(
    ingested: Ingest, text: str, code: str
) -> None:
    """The text decides, whatever severity the tool gave it."""
    event = {"timestamp": 1, "timestampType": 2, "severity": 1, "text": text}
    assert code in codes(ingested(small(DIAGNOSTIC_EVENT=[event])))


def test_profiler_reports_that_mean_nothing_are_ignored(ingested: Ingest) -> None:
    """No incomplete events dropped is no finding."""
    text = "Number of incomplete CUPTI events dropped: 0."
    assert "dropped_records" not in codes(ingested(small(DIAGNOSTIC_EVENT=[{"text": text}])))


def test_an_interrupted_directory_is_said(tmp_path: Path, ingested: Ingest) -> None:
    """An exporter that died left valid files; the last table is missing."""
    tables = two_processes()
    del tables["PROCESSES"]
    store = ingested(write_parquetdir(tmp_path / "cut", tables))
    assert "interrupted_export" in codes(store)


def test_a_filtered_directory_is_filtered_not_interrupted(tmp_path: Path, ingested: Ingest) -> None:
    """A table filter explains what is missing."""
    tables = small() | metadata(EXPORT_PARAM_TABLES_TO_EXPORT="CUPTI,StringIds")
    found = codes(ingested(write_parquetdir(tmp_path / "filtered", tables)))
    assert "filtered_export" in found
    assert "interrupted_export" not in found


def test_a_file_of_an_interrupted_directory_may_be_empty(tmp_path: Path, ingested: Ingest) -> None:
    """The file that was being written has 0 or 4 bytes; the others are read."""
    folder = write_parquetdir(tmp_path / "torn", two_processes())
    (folder / "NVTX_EVENTS.parquet").write_bytes(b"PAR1")
    store = ingested(folder)
    assert store.manifest.tables["kernels"] == 14
    assert "interrupted_export" in codes(store)


@pytest.mark.parametrize(("version", "is_known"), [("3.28.1", True), ("3.99.0", False)])
def test_newer_minor_schemas_are_read_with_a_warning(
    ingested: Ingest, version: str, is_known: bool
) -> None:
    """Above the newest known minor version there is a warning, and the data."""
    store = ingested(small() | metadata(EXPORT_SCHEMA_VERSION=version))
    assert ("unknown_schema" not in codes(store)) == is_known


def test_an_unknown_major_schema_needs_consent(ingested: Ingest) -> None:
    """Another major version is refused, and read on demand."""
    tables = small() | metadata(EXPORT_SCHEMA_VERSION="4.0.0")
    with pytest.raises(SourceError, match=r"4\.0\.0"):
        ingested(tables)
    assert "unknown_schema" in codes(ingested(tables, lenient=True))


def test_no_cuda_at_all_is_refused(ingested: Ingest) -> None:
    """NVTX alone is no capture of a GPU."""
    with pytest.raises(NoGpuActivityError, match="no GPU events"):
        ingested({"NVTX_EVENTS": [nvtx(1)], "StringIds": list(STRINGS)})


def test_text_in_an_integer_column_is_located(ingested: Ingest) -> None:
    """SQLite is weakly typed: the message names table, column and row; empty text is NULL."""
    blank = ingested(small(**{KERNEL: [kernel(1, registersPerThread="")]}))
    assert column(blank, "kernels", "registers_per_thread") == [None]
    with pytest.raises(SourceError, match=rf"{KERNEL}.start row 2 holds 'soon'"):
        ingested(small(**{KERNEL: [kernel(1), kernel(2, start="soon")]}))


def test_bad_utf8_and_nul_in_names_survive(ingested: Ingest) -> None:
    """Names are data: undecodable bytes are replaced, NULs kept."""
    strings = [*STRINGS, {"id": 9, "value": b"bad \xff name"}, {"id": 10, "value": "nul\0name"}]
    tables = small(**{KERNEL: [kernel(1, demangledName=9), kernel(2, demangledName=10)]})
    names = column(ingested(tables | {"StringIds": strings}), "names", "name")
    assert {"bad \ufffd name", "nul\0name"} <= set(names)


def test_a_value_beyond_its_column_is_an_error_not_a_traceback(ingested: Ingest) -> None:
    """A grid of 2^40 blocks exists nowhere."""
    with pytest.raises(SourceError, match="out of range"):
        ingested(small(**{KERNEL: [kernel(1, gridX=1 << 40)]}))


def test_environment_and_process_list_never_enter_a_store(tmp_path: Path, ingested: Ingest) -> None:
    """Secrets of the captured machine stay in the export."""
    secret = "hunter2-token"
    tables = two_processes() | {
        "META_DATA_CAPTURE": [{"name": "ENVIRONMENT_VARIABLE", "value": f"KEY={secret}"}],
        "TARGET_INFO_SYSTEM_ENV": [{"name": "Hostname", "value": secret}],
    }
    tables["StringIds"] = [*STRINGS, {"id": 99, "value": f"KEY={secret}"}]
    store = ingested(write_sqlite(tmp_path / "secret.sqlite", tables))
    for file in store.path.iterdir():
        assert secret.encode() not in file.read_bytes()
    assert str(tmp_path) not in (store.path / "manifest.json").read_text()


def test_a_view_is_no_table_of_an_export(tmp_path: Path) -> None:
    """A stranger's view may have no end; only tables are read."""
    export = write_sqlite(tmp_path / "view.sqlite", {"StringIds": list(STRINGS)})
    with closing(sqlite3.connect(export)) as connection:
        connection.execute(
            f"CREATE VIEW {KERNEL} AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT"
            ' start + 1 FROM n) SELECT start, start + 1 AS "end" FROM n'
        )
        connection.commit()
    with pytest.raises(NoGpuActivityError):
        ingest([export], tmp_path / "s", IngestOptions())


def test_progress_rises_to_the_size_of_the_file(tmp_path: Path) -> None:
    """Bytes done never fall, and end at the size."""
    tables = small(**{KERNEL: [kernel(i) for i in range(1, 9_000)]})
    export = write_sqlite(tmp_path / "export.sqlite", tables)
    seen: list[tuple[int, int]] = []
    options = IngestOptions(progress=lambda done, total: seen.append((done, total)))
    ingest([export], tmp_path / "s", options)
    size = export.stat().st_size
    assert seen == sorted(seen)
    assert {total for _, total in seen} == {size}
    assert seen[-1] == (size, size)
    assert len({done for done, _ in seen}) > 3


@pytest.mark.parametrize("kind", list(range(15)))
def test_copy_kinds_have_names(ingested: Ingest, kind: int) -> None:
    """Every copy kind gets a name; unknown ones are `other`."""
    copy = kernel(1) | {"bytes": 8, "copyKind": kind}
    store = ingested(small(**{MEMCPY: [copy]}))
    named = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP", 11: "HtoD", 12: "DtoH",
             13: "DtoD"}  # fmt: skip
    assert column(store, "memory_ops", "copy_kind") == [named.get(kind, "other")]
