"""Random Nsight captures: every container and schema gives back exactly the rows put in."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nsys_exports import (
    KERNEL,
    RUNTIME,
    STRINGS,
    global_id,
    write_arrowdir,
    write_parquetdir,
    write_sqlite,
)

from roundline.readers.ingest import IngestOptions, ingest
from roundline.store import Store, open_store
from roundline.store.schemas import TABLES

PIDS = (100, 200, 16_000_000)
TIMES = st.integers(-1_000, 10**12)
SMALL = st.integers(1, 5)


@st.composite
def kernels(draw: st.DrawFn) -> dict[str, Any]:
    """One kernel row of any process, inside or outside a graph."""
    start = draw(TIMES)
    node = draw(st.none() | st.integers(1, 2**40))
    return {
        "start": start, "end": start + draw(st.integers(0, 10**6)),
        "deviceId": draw(st.integers(0, 1)), "contextId": draw(SMALL),
        "streamId": draw(SMALL), "correlationId": draw(st.integers(0, 9)),
        "globalPid": global_id(draw(st.sampled_from(PIDS)), hardware=draw(st.just(200))),
        "demangledName": draw(st.integers(0, 5)), "shortName": 2,
        "gridX": draw(SMALL), "gridY": 1, "gridZ": 1, "blockX": 32, "blockY": 1, "blockZ": 1,
        "registersPerThread": draw(st.integers(0, 255)), "staticSharedMemory": draw(SMALL),
        "dynamicSharedMemory": draw(SMALL), "graphNodeId": node,
    }  # fmt: skip


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    """One API row, backtrace rows among them."""
    start = draw(TIMES)
    pid = draw(st.sampled_from(PIDS))
    return {
        "start": start, "end": start + draw(st.integers(0, 10**6)),
        "eventClass": draw(st.sampled_from((0, 1, 67))),
        "globalTid": global_id(pid, draw(SMALL), hardware=200),
        "correlationId": draw(st.integers(0, 9)), "nameId": draw(st.sampled_from((3, 4))),
        "returnValue": 0,
    }  # fmt: skip


def expected_kernels(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What the store must hold of kernel rows: an oracle in four lines."""
    names = {row["id"]: row["value"] for row in STRINGS}
    return sorted(
        (r["start"], r["end"], r["globalPid"] >> 24 & 0xFFFFFF, r["deviceId"], r["streamId"],
         r["correlationId"] or -1, r["graphNodeId"] or -1, names[r["demangledName"]],
         r["staticSharedMemory"] + r["dynamicSharedMemory"], r["gridX"])
        for r in rows
    )  # fmt: skip


def stored_kernels(store: Store) -> list[tuple[Any, ...]]:
    """Kernel rows of a store in the same shape."""

    def read(table: str) -> list[dict[str, Any]]:
        return pq.read_table(store.table_path(table)).to_pylist()

    names = {row["name_id"]: row["name"] for row in read("names")}
    pids = {row["process_id"]: row["pid"] for row in read("processes")}
    return sorted(
        (r["start_ns"], r["end_ns"], pids[r["process_id"]], r["device_id"], r["stream_id"],
         r["correlation_id"] or -1, r["graph_node_id"] or -1, names[r["name_id"]],
         r["shared_memory_bytes"], r["grid_x"])
        for r in read("kernels")
    )  # fmt: skip


def store_of(source: Path) -> Store:
    """Ingest beside the source."""
    target = source.with_name(f"{source.name}.roundline")
    ingest([source], target, IngestOptions())
    return open_store(target)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(kernels(), min_size=1, max_size=30), st.lists(calls(), max_size=30))
def test_every_row_comes_back_from_every_container(
    kernel_rows: list[dict[str, Any]], call_rows: list[dict[str, Any]]
) -> None:
    """No row is lost, doubled or changed, and the container leaves no trace in the store."""
    tables = {"StringIds": list(STRINGS), KERNEL: kernel_rows, RUNTIME: call_rows,
              "PROCESSES": [{"pid": 1}]}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        stores = [
            store_of(write_sqlite(Path(folder) / "a.sqlite", tables)),
            store_of(write_parquetdir(Path(folder) / "b_pqtdir", tables)),
            store_of(write_arrowdir(Path(folder) / "c_arwdir", tables)),
        ]
        assert stored_kernels(stores[0]) == expected_kernels(kernel_rows)
        real_calls = sum(row["eventClass"] != 67 for row in call_rows)
        assert stores[0].manifest.tables["api_calls"] == real_calls
        for table in TABLES:
            contents = {store.table_path(table).read_bytes() for store in stores}
            assert len(contents) == 1, table


@settings(max_examples=8, deadline=None)
@given(st.lists(kernels(), min_size=2, max_size=20), st.randoms(use_true_random=False))
def test_the_order_of_rows_means_nothing(rows: list[dict[str, Any]], random_: Any) -> None:
    """Exports are not sorted; the store is, and does not show in which order rows came."""
    shuffled = list(rows)
    random_.shuffle(shuffled)
    with tempfile.TemporaryDirectory() as folder:
        stores = [
            store_of(write_sqlite(Path(folder) / name, {"StringIds": list(STRINGS), KERNEL: part}))
            for name, part in (("a.sqlite", rows), ("b.sqlite", shuffled))
        ]
        columns = [f.name for f in TABLES["kernels"] if f.name != "process_id"]
        first, second = (
            pq.read_table(store.table_path("kernels"), columns=columns) for store in stores
        )
        assert first.equals(second)
