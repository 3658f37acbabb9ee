"""Capture files say what the capture says, in the layout of the real writers."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from roundline.errors import UsageError
from roundline.readers.ingest import IngestOptions, ingest
from roundline.simulate.nsys_schema import PRODUCT_VERSIONS
from roundline.simulate.nsys_writer import write_nsys_sqlite
from roundline.simulate.session import SimulateOptions, simulate, write_bulk, write_capture
from roundline.simulate.timeline import Capture, Kernel, MemoryOp
from roundline.simulate.torch_writer import TorchOptions, base_time_ns, write_torch
from roundline.store import open_store
from roundline.warehouse.build import open_warehouse

OPTIONS = SimulateOptions(
    model="qwen3.5-4b", rounds=1, extend="eager", ranges=True, cpu_ops=True, flush_after=(0,)
)


@pytest.fixture(scope="module")
def capture() -> Capture:
    """One round of a small hybrid on two ranks."""
    return simulate(OPTIONS)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Rows of one statement."""
    with closing(sqlite3.connect(path)) as database:
        return database.execute(sql).fetchall()


@pytest.mark.parametrize("schema", PRODUCT_VERSIONS)
def test_tables_have_the_columns_of_their_version(
    schema: str, capture: Capture, shared: Path, tmp_path: Path
) -> None:
    """Every table that a published export of the version has, has the same columns in order."""
    write_nsys_sqlite(capture, tmp_path / "x.sqlite", schema=schema)
    [reference] = (shared / "schemas" / "nsys").glob(f"*_schema_{schema}_*.sql")
    with closing(sqlite3.connect(":memory:")) as known:
        known.executescript(reference.read_text())
        for (table,) in rows(tmp_path / "x.sqlite", "SELECT name FROM sqlite_master"):
            query = f"SELECT name, type, \"notnull\" FROM pragma_table_info('{table}')"
            expected = known.execute(query).fetchall()
            assert not expected or rows(tmp_path / "x.sqlite", query) == expected, table


def test_kernel_rows_carry_process_replay_and_node(capture: Capture, tmp_path: Path) -> None:
    """Start, end, process, correlation and graph node are as simulated."""
    write_nsys_sqlite(capture, tmp_path / "x.sqlite")
    expected = [
        (a.start_ns, a.end_ns, trace.pid, a.correlation_id, a.graph_node, trace.device_id)
        for trace, a in capture.activities()
        if isinstance(a, Kernel)
    ]
    found = rows(
        tmp_path / "x.sqlite",
        'SELECT start, "end", globalPid >> 24 & 16777215, correlationId, '
        "graphNodeId & 4294967295, deviceId FROM CUPTI_ACTIVITY_KIND_KERNEL",
    )
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_graph_mode_hides_nodes_behind_one_span(capture: Capture, tmp_path: Path) -> None:
    """As Nsight does by default: eager kernels stay, each replay is one span."""
    write_nsys_sqlite(capture, tmp_path / "x.sqlite", graphs="graph")
    kernels = rows(tmp_path / "x.sqlite", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    eager = [a for _, a in capture.activities() if isinstance(a, Kernel) and a.graph_id is None]
    assert kernels == [(len(eager),)]
    replays = {(t.rank, a.replay_id) for t, a in capture.activities() if a.replay_id is not None}
    spans = rows(tmp_path / "x.sqlite", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE")
    assert spans == [(len(replays),)]


def events(path: Path) -> dict[str, Any]:
    """A trace as JSON."""
    loaded: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return loaded


def test_torch_timestamps_keep_every_nanosecond(capture: Capture, tmp_path: Path) -> None:
    """Microseconds with three digits plus the base are the simulated Unix time."""
    first, _ = write_torch(capture, tmp_path)
    text = gzip.decompress(first.read_bytes()).decode()
    trace = json.loads(text, parse_float=lambda digits: int(digits.replace(".", "")))
    found = {
        (e["ts"] + trace["baseTimeNanoseconds"] - capture.epoch_ns, e["dur"], e["name"])
        for e in trace["traceEvents"]
        if e.get("cat") == "kernel"
    }
    expected = {
        (a.start_ns, a.duration_ns, a.name)
        for a in capture.ranks[0].activities
        if isinstance(a, Kernel)
    }
    assert found == expected
    assert base_time_ns(capture) % 7_889_238_000_000_000 == 0


def test_torch_traces_end_with_the_window(capture: Capture, tmp_path: Path) -> None:
    """The last event is the instant by which readers know that the file is complete."""
    for rank, path in enumerate(write_torch(capture, tmp_path)):
        trace = events(path)
        assert trace["traceEvents"][-1]["name"] == "Record Window End"
        assert trace["distributedInfo"]["rank"] == rank


def test_torch_shows_operators_where_nsight_does_not(capture: Capture, tmp_path: Path) -> None:
    """CPU operators are torch's own; annotations are in both formats."""
    first, _ = write_torch(capture, tmp_path)
    cats = {e.get("cat") for e in events(first)["traceEvents"]}
    assert {"kernel", "gpu_memcpy", "cuda_runtime", "cuda_driver", "ac2g"} <= cats
    assert {"cpu_op", "user_annotation", "overhead"} <= cats
    write_nsys_sqlite(capture, tmp_path / "x.sqlite")
    texts = {text for (text,) in rows(tmp_path / "x.sqlite", "SELECT text FROM NVTX_EVENTS")}
    assert "draft_extend" in texts
    assert not any(text.startswith("aten::") for text in texts)


def test_memory_ops_are_no_kernels(capture: Capture, tmp_path: Path) -> None:
    """Copies go into their own table and category."""
    write_nsys_sqlite(capture, tmp_path / "x.sqlite")
    copies = [a for _, a in capture.activities() if isinstance(a, MemoryOp) and a.copy_kind]
    found = rows(tmp_path / "x.sqlite", "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY")
    assert found == [(len(copies),)]


def test_the_same_capture_gives_the_same_bytes(capture: Capture, tmp_path: Path) -> None:
    """Neither file holds a time of writing or a path."""
    written = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_nsys_sqlite(capture, tmp_path / name / "x.sqlite")
        paths = [tmp_path / name / "x.sqlite", *write_torch(capture, tmp_path / name)]
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]


def test_graph_ids_are_optional(capture: Capture, tmp_path: Path) -> None:
    """Older torch writes no graph fields."""
    first, _ = write_torch(capture, tmp_path, TorchOptions(with_graph_ids=False))
    assert not any("graph id" in e.get("args", {}) for e in events(first)["traceEvents"])


def test_older_torch_writes_absolute_times(capture: Capture, tmp_path: Path) -> None:
    """Torch 2.3 has no base: timestamps are Unix time with three digits below microseconds."""
    options = TorchOptions(has_base=False, with_rank=False, python_depth=2)
    first, _ = write_torch(capture, tmp_path, options)
    trace = json.loads(gzip.decompress(first.read_bytes()), parse_float=str)
    assert not {"baseTimeNanoseconds", "distributedInfo"} & set(trace)
    kernel = next(e for e in trace["traceEvents"] if e.get("cat") == "kernel")
    launched = min(
        a.start_ns
        for a in capture.ranks[0].activities
        if a.correlation_id == kernel["args"]["correlation"]
    )
    assert int(kernel["ts"].replace(".", "")) == capture.epoch_ns + launched
    frames = [e for e in trace["traceEvents"] if e.get("cat") == "python_function"]
    assert len(frames) == 2 * len(capture.ranks[0].api_calls)


def test_nsight_records_no_amd_gpu(tmp_path: Path) -> None:
    """Such a capture does not exist, so none is written."""
    options = SimulateOptions(model="qwen3-0.6b", engine="plain-eager", gpu="mi300x", rounds=1)
    with pytest.raises(UsageError, match="choose format torch"):
        write_capture(options, simulate(options), tmp_path / "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("format_", ["nsys-sqlite", "torch"])
def test_a_repeated_recording_only_counts_on(format_: Any, tmp_path: Path) -> None:
    """Large captures are a small one again and again, with its times and ids shifted."""
    options = SimulateOptions(model="qwen3-0.6b", engine="plain-graph", rounds=1, tp=1)
    once = write_bulk(options, tmp_path / "once", 1, format_)
    assert write_bulk(options, tmp_path / "thrice", 2 * once + 1, format_) == 3 * once
    sources = list((tmp_path / "thrice").iterdir())
    result = ingest(sources, tmp_path / "store", IngestOptions())
    assert result.kernels == 3 * once
    with open_warehouse(open_store(tmp_path / "store")) as warehouse:
        [(calls, ids)] = warehouse.execute(
            "SELECT count(*), count(DISTINCT correlation_id) FROM api_calls"
        ).fetchall()
        [(rounds,)] = warehouse.execute("SELECT count(*) FROM rounds").fetchall()
    assert calls == ids > 0
    assert rounds >= 3 * 2
