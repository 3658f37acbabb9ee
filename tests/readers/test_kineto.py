"""The torch-trace reader against published traces, distilled cases and written ones."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roundline.errors import SourceError, TruncatedSourceError
from roundline.readers import kineto_stream
from roundline.readers.contract import CAPABILITIES, ReadOptions, SourceFacts, part_schema
from roundline.readers.kineto import read_kineto
from roundline.readers.kineto_metadata import rank_of_file_name

BASE_NS = 1_755_400_000_000_000_000
GPUS = [{"id": 0, "name": "NVIDIA RTX A6000", "totalGlobalMem": 51041271808, "numSms": 84}]
HEAD = {"schemaVersion": 1, "deviceProperties": GPUS, "baseTimeNanoseconds": BASE_NS}


@dataclass
class MemorySink:
    """Keeps every batch, and holds it against the schema of its part."""

    batches: dict[str, list[pa.Table]] = field(default_factory=dict)

    def write(self, table: str, batch: pa.RecordBatch | pa.Table) -> None:
        """Keep a batch that fits its part."""
        schema = part_schema(table)
        for column in batch.schema:
            assert column.type == schema.field(column.name).type, (table, column.name)
        for required in schema:
            if not required.nullable:
                assert batch.column(required.name).null_count == 0, (table, required.name)
        self.batches.setdefault(table, []).append(pa.Table.from_batches([batch]))


@dataclass
class Reading:
    """What a reader handed over."""

    facts: SourceFacts
    tables: dict[str, list[dict[str, Any]]]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Rows of a part."""
        return self.tables.get(table, [])

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """Rows of kernels."""
        return self.rows("kernels")

    def name_of(self, row: dict[str, Any]) -> str:
        """Name of a row."""
        names = {entry["name_id"]: entry["name"] for entry in self.rows("names")}
        return names[row["name_id"]]

    def kernel_names(self) -> list[str]:
        """Names of the kernels, in order."""
        return [self.name_of(row) for row in self.kernels]

    def codes(self) -> dict[str, int]:
        """Counts of the warnings and errors."""
        return {d.code: d.count for d in self.facts.diagnostics if d.severity != "info"}


def read(path: Path, **options: bool) -> Reading:
    """The rows and facts of a trace."""
    sink = MemorySink()
    facts = read_kineto(path, sink, ReadOptions(**options))
    tables = {
        name: [row for batch in batches for row in batch.to_pylist()]
        for name, batches in sink.batches.items()
    }
    return Reading(facts, tables)


def kernel(index: int, name: str = "gemv", **changes: Any) -> dict[str, Any]:
    """A kernel of 2 us that starts at 10 us x `index`."""
    args = {"device": 0, "context": 1, "stream": 7, "correlation": index + 1}
    args |= {"grid": [64, 1, 1], "block": [128, 1, 1]} | changes.pop("args", {})
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7}
    return event | {"ts": 10.0 * index, "dur": 2.0, "args": args} | changes


def trace(path: Path, events: Sequence[Any], **metadata: Any) -> Path:
    """A trace file with the usual head."""
    path.write_text(json.dumps(HEAD | metadata | {"traceEvents": list(events)}))
    return path


# --- published traces -------------------------------------------------------------------------

TRACES = (
    "sglang_decode/sglang_Qwen3-8B_decode.json.gz",
    "vllm_decode_full/graph_execution.json.gz",
    "rope_profile.pt.trace.json",
    "resnet50_2021.pt.trace.json.gz",
    "cuda_graph_nccl.json.gz",
    "sglang_decode/capture_traces/bs_32_rank0.json.gz",
    *(f"dlrm_8rank/worker{rank}_step_12.pt.trace.json.gz" for rank in range(8)),
)
KIND_OF = {
    "kernel": "kernel", "Kernel": "kernel", "gpu_memcpy": "memcpy", "Memcpy": "memcpy",
    "gpu_memset": "memset", "Memset": "memset", "cuda_runtime": "api", "Runtime": "api",
    "user_annotation": "user_annotation", "gpu_user_annotation": "gpu_annotation",
    "cpu_op": "cpu_op", "Operator": "cpu_op", "python_function": "python_function",
}  # fmt: skip


def plain(path: Path) -> Counter[tuple[str, str | None, int, int]]:
    """(kind, name, start, duration) of a whole-document parse with decimal times."""
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    return Counter(
        (
            KIND_OF[event["cat"]],
            None if KIND_OF[event["cat"]] in ("memcpy", "memset") else event["name"],
            int(event["ts"] * 1000),
            int(event["dur"] * 1000),
        )
        for event in events
        if event["ph"] == "X" and event.get("cat") in KIND_OF
    )


def ours(reading: Reading) -> Counter[tuple[str, str | None, int, int]]:
    """The same of the rows that the reader handed over."""
    names = {entry["name_id"]: entry["name"] for entry in reading.rows("names")}
    found: Counter[tuple[str, str | None, int, int]] = Counter()
    for table in ("kernels", "memory_ops", "api_calls", "ranges"):
        for row in reading.rows(table):
            kind = {"kernels": "kernel", "api_calls": "api"}.get(table) or row["kind"]
            name = names[row["name_id"]] if "name_id" in row else row.get("name")
            found[kind, name, row["start_ns"], row["end_ns"] - row["start_ns"]] += 1
    return found


@pytest.mark.parametrize("name", TRACES)
def test_published_trace_equals_plain_parse(shared: Path, name: str) -> None:
    """Every event of a published trace is read, with its exact nanoseconds."""
    path = shared / "traces" / "torch" / name
    assert ours(read(path, with_python=True)) == plain(path)


@pytest.mark.parametrize("name", TRACES)
def test_published_trace_equals_measured_facts(shared: Path, name: str) -> None:
    """Counts, sums, devices, ranks and clocks agree with what was measured independently."""
    facts = json.loads((shared / "traces" / "facts.json").read_text())[f"torch/{name}"]
    reading = read(shared / "traces" / "torch" / name)
    kernels = reading.kernels
    assert len(kernels) == facts["kernels"]
    assert sum(k["end_ns"] - k["start_ns"] for k in kernels) == facts["kernel_sum_ns"]
    assert len(reading.rows("api_calls")) == facts["runtime_rows"]
    for device, expected in facts["per_device"].items():
        own = [k for k in kernels if f"device {k['device_id']}" == device]
        assert len(own) == expected["kernels"]
        assert min(k["start_ns"] for k in own) == expected["first_ns"]
        assert max(k["end_ns"] for k in own) == expected["last_ns"]
    for kind in ("memcpy", "memset"):
        ops = [op for op in reading.rows("memory_ops") if op["kind"] == kind]
        assert len(ops) == facts.get(kind, {}).get("rows", 0)
    base = facts["baseTimeNanoseconds"]
    assert reading.facts.wall_clock_base_ns == (0 if base is None else base)
    info = facts["distributedInfo"] or {}
    process = reading.facts.processes[0]
    assert (process.rank, process.world_size) == (info.get("rank"), info.get("world_size"))


def test_rocm_device_is_no_index(shared: Path) -> None:
    """Device 9 with one listed GPU is assumed to be that one; nameless GPUs stay nameless."""
    torch = shared / "traces" / "torch"
    (mi300,) = read(torch / TRACES[0]).facts.devices
    assert (mi300.device_id, mi300.name) == (9, "AMD Instinct MI300X")
    assert mi300.device_evidence == "assumed"
    (nameless,) = read(torch / TRACES[1]).facts.devices
    assert (nameless.name, nameless.device_evidence) == (None, "absent")


# --- distilled cases --------------------------------------------------------------------------


def test_control_character_is_repaired_with_offset(shared: Path) -> None:
    """T01: both kernels are kept, with one counted warning that names the byte offset."""
    path = shared / "cases" / "T01_ctrl_char.json"
    reading = read(path)
    assert sum(k["end_ns"] - k["start_ns"] for k in reading.kernels) == 30_000
    (warning,) = (d for d in reading.facts.diagnostics if d.severity == "warning")
    offset = path.read_bytes().index(b'{"ph": "X", "cat": "kernel"')
    assert (warning.code, warning.count) == ("malformed_events", 1)
    assert f"byte {offset}" in warning.detail
    assert "control character" in warning.detail


def test_truncated_trace_is_refused_or_marked(shared: Path) -> None:
    """T03: an error with the number of complete events; with the option, 1 kernel and a mark."""
    path = shared / "cases" / "T03_truncated.json"
    with pytest.raises(TruncatedSourceError, match="truncated after 3 complete events"):
        read(path)
    reading = read(path, allow_truncated=True)
    assert [k["end_ns"] - k["start_ns"] for k in reading.kernels] == [10_000]
    assert reading.facts.truncated
    assert "truncated" in reading.codes()


def test_trace_without_gpu_events_is_no_error_of_the_reader(shared: Path) -> None:
    """T08: rows without a duration become nothing; judging that is left to the ingest."""
    reading = read(shared / "cases" / "T08_metadata_only.json")
    assert reading.tables == {}
    assert reading.facts.devices == ()
    assert set(reading.facts.capabilities) == set(CAPABILITIES)


def test_overlap_on_one_stream_is_kept(shared: Path) -> None:
    """T13: two overlapping kernels of one stream stay two."""
    kernels = read(shared / "cases" / "T13_pdl_overlap.json").kernels
    assert [(k["start_ns"], k["end_ns"]) for k in kernels] == [(0, 10_000), (8_000, 18_000)]


@pytest.mark.parametrize("rank", [0, 1])
def test_base_is_read_on_either_side_of_the_events(shared: Path, rank: int) -> None:
    """T16: base + start is the same instant in both files, and ranks come from metadata."""
    reading = read(shared / "cases" / f"T16_rank{rank}.json")
    base = reading.facts.wall_clock_base_ns
    assert base is not None
    assert base + reading.kernels[0]["start_ns"] == 1_755_400_000_001_000_000
    process = reading.facts.processes[0]
    assert (process.rank, process.rank_evidence, process.world_size) == (rank, "metadata", 2)


def test_graph_replay_carries_correlation_and_nodes(shared: Path) -> None:
    """T18: five kernels share the launch's correlation and have graph nodes 1 to 5."""
    reading = read(shared / "cases" / "T18_graph_replay.json")
    (launch,) = reading.rows("api_calls")
    assert {k["correlation_id"] for k in reading.kernels} == {launch["correlation_id"]} == {100}
    assert [k["graph_node_id"] for k in reading.kernels] == [1, 2, 3, 4, 5]
    assert {k["graph_id"] for k in reading.kernels} == {9}
    assert reading.facts.capabilities["graph_nodes"] == "present"


@pytest.mark.parametrize(
    ("case", "kernels", "launches", "ranges"),
    [("T19_under_recorded", 5, 10, 10), ("T21_same_step_names", 10, 10, 8)],
)
def test_cases_with_launches(
    shared: Path, case: str, kernels: int, launches: int, ranges: int
) -> None:
    """T19 and T21: launches, kernels and markers arrive in full."""
    reading = read(shared / "cases" / f"{case}.json")
    counts = [len(reading.rows(table)) for table in ("kernels", "api_calls", "ranges")]
    assert counts == [kernels, launches, ranges]


def test_json_of_another_kind_is_named(shared: Path, tmp_path: Path) -> None:
    """T26 is no trace, and an execution trace is called one."""
    with pytest.raises(SourceError, match="no traceEvents"):
        read(shared / "cases" / "T26_names.json")
    path = tmp_path / "et.json"
    path.write_text('{"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": [{"id": 1}]}')
    with pytest.raises(SourceError, match="execution trace"):
        read(path)


@pytest.mark.parametrize("rank", [0, 1])
def test_rank_from_file_name(shared: Path, rank: int) -> None:
    """T27: nothing inside says the rank, so the file name does."""
    name = f"1755512345.67-TP-{rank}-DECODE.trace.json.gz"
    process = read(shared / "cases" / "T27_rank_skew" / name).facts.processes[0]
    assert (process.rank, process.rank_evidence) == (rank, "file_name")


# --- names, ranks, devices, processes ---------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("1755512345.67-TP-1-DECODE.trace.json.gz", 1),
        ("x-TP-3-DP-1-PP-0-EP-3-decode.trace.json.gz", 3),
        ("x-TP-1-PP-1.trace.json.gz", None),
        ("bs_32_rank0.json.gz", 0),
        ("graph_capture_rank_0.pt.trace.json.gz", 0),
        ("trace.json-rank-12.gz", 12),
        ("dp0_pp0_tp1_dcp0_ep0_rank5.1755512345.pt.trace.json", 5),
        ("worker3_step_12.pt.trace.json.gz", 3),
        ("host_4711.1755512345.pt.trace.json", None),
        ("http-3.json", None),
        ("qwen3-27b-tp2.json.gz", None),
        ("TP-2-bs1-1755512345.67-TP-0-DECODE.trace.json.gz", 0),
        ("llm-worker-3_4711.1755512345.pt.trace.json", None),
        ("host_dp0_pp0_tp1_dcp0.1755512345.pt.trace.json.gz", 1),
    ],
)
def test_rank_of_file_name(name: str, rank: int | None) -> None:
    """Engines write the rank in many ways, and some names state none."""
    assert rank_of_file_name(name) == rank


def test_merged_file_keeps_processes_apart(tmp_path: Path) -> None:
    """A label in every pid is a process of its own, so equal correlations do not collide."""
    labels = ["[TP00-DP00] 83", "[TP01-DP00] 84"]
    events = [
        event | {"pid": label}
        for label in labels
        for event in (
            kernel(0),
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 5, "ts": 0,
             "dur": 1, "args": {"correlation": 1}},
        )
    ]  # fmt: skip
    reading = read(trace(tmp_path / "merged.json", events))
    assert [k["process_id"] for k in reading.kernels] == [0, 1]
    assert [(p.pid, p.rank) for p in reading.facts.processes] == [(83, 0), (84, 1)]
    assert [(d.process_id, d.device_id) for d in reading.facts.devices] == [(0, 0), (1, 0)]


def test_world_size_may_be_text(tmp_path: Path) -> None:
    """The on-demand writer puts strings into distributedInfo."""
    info = {"rank": "3", "world_size": "8"}
    process = read(trace(tmp_path / "t.json", [kernel(0)], distributedInfo=info)).facts.processes[0]
    assert (process.rank, process.world_size) == (3, 8)


def test_old_spellings(tmp_path: Path) -> None:
    """Capitalised categories, `stream 7`, `external id`, inDevice, zero ids, API versions."""
    events = [
        kernel(0, cat="Kernel", tid="stream 9", args={"stream": None, "correlation": 0,
               "graph id": 0, "external id": 5, "registers per thread": 20}),
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy PtoP (Device -> Device)", "pid": 0,
         "tid": 7, "ts": 1, "dur": 1, "args": {"inDevice": 2, "fromDevice": 2, "bytes": 64,
         "memory bandwidth (GB/s)": "N/A"}},
        {"ph": "X", "cat": "gpu_memcpy", "name": "CopyHostToDevice", "pid": 2, "tid": 7, "ts": 1,
         "dur": 1, "args": {}},
        {"ph": "X", "cat": "Runtime", "name": "cuMemcpyAsync_v2_ptsz", "pid": 9, "tid": -3,
         "ts": 1, "dur": 1},
        {"ph": "X", "cat": "overhead", "name": "Buffer Flush", "pid": 9, "tid": 1, "ts": 1,
         "dur": 1},
        {"ph": "X", "cat": "user_annotation", "name": "open", "pid": 9, "tid": 1, "ts": 1,
         "dur": 9, "args": {"finished": False}},
        {"ph": "X", "cat": "gpu_user_annotation", "name": "step", "pid": 0, "tid": 7, "ts": 1,
         "dur": 9},
    ]  # fmt: skip
    reading = read(trace(tmp_path / "t.json", events))
    (row,) = reading.kernels
    assert (row["stream_id"], row["correlation_id"], row["graph_id"]) == (9, None, None)
    assert (row["external_id"], row["registers_per_thread"]) == (5, 20)
    copies = reading.rows("memory_ops")
    assert [(c["device_id"], c["copy_kind"], c["bytes"]) for c in copies] == [
        (2, "PtoP", 64), (2, "HtoD", None)
    ]  # fmt: skip
    (call,) = reading.rows("api_calls")
    assert (call["name"], call["thread_id"]) == ("cuMemcpyAsync", -3)
    assert reading.rows("overheads")[0]["kind"] == "Buffer Flush"
    opened, projected = reading.rows("ranges")
    assert opened["end_ns"] is None
    assert (projected["kind"], projected["stream_id"]) == ("gpu_annotation", 7)


def test_python_functions_are_kept_on_request(tmp_path: Path) -> None:
    """Stack events are most of a file; they become rows only when asked for."""
    event = {
        "ph": "X",
        "cat": "python_function",
        "name": "f",
        "pid": 1,
        "tid": 1,
        "ts": 1,
        "dur": 1,
    }
    path = trace(tmp_path / "t.json", [event, kernel(0)])
    assert read(path).rows("ranges") == []
    assert [r["kind"] for r in read(path, with_python=True).rows("ranges")] == ["python_function"]


# --- layouts ----------------------------------------------------------------------------------


def _pretty(events: Sequence[Any], metadata: dict[str, Any]) -> str:
    head = "".join(f"  {json.dumps(k)}: {json.dumps(v)},\n" for k, v in metadata.items())
    body = ",\n".join(f"  {{\n    {json.dumps(event)[1:-1]}\n  }}" for event in events)
    return "{\n" + head + '  "traceEvents": [\n' + body + "\n  ]}\n"


LAYOUTS: dict[str, Callable[[Sequence[Any], dict[str, Any]], str]] = {
    "kineto": _pretty,
    "compact": lambda e, m: json.dumps(m | {"traceEvents": e}, separators=(",", ":")),
    "tail": lambda e, m: json.dumps({"traceEvents": e} | m, indent=1, sort_keys=False),
    "lines": lambda e, m: "\n".join(map(json.dumps, e)) + "\n",
    "list": lambda e, m: json.dumps(e),
}
names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"]) | st.sampled_from('{}[],":\\ '),
    max_size=30,
)
times = st.integers(0, 7_889_238_000_000_000).map(lambda ns: Decimal(ns) / 1000)
events_of_any_kind = st.lists(
    st.builds(
        lambda cat, name, ts, dur, correlation, nested: {
            "ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 7, "ts": float(ts),
            "dur": float(dur), "args": {"correlation": correlation, "nested": nested},
        },
        st.sampled_from(["kernel", "cuda_runtime", "cpu_op"]),
        names,
        times,
        st.integers(0, 10**9).map(lambda ns: Decimal(ns) / 1000),
        st.integers(0, 2**70),
        st.lists(st.fixed_dictionaries({"a": st.integers()}), max_size=3),
    ),
    min_size=1,
    max_size=12,
)  # fmt: skip


@pytest.mark.parametrize("chunk", [64, 1 << 21])
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(events=events_of_any_kind)
def test_layouts_read_back_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, chunk: int, events: list[Any]
) -> None:
    """Whatever the writer's layout and wherever the spans are cut, the events are the same."""
    monkeypatch.setattr(kineto_stream, "CHUNK_BYTES", chunk)
    path = tmp_path / "t.json"
    path.write_text(LAYOUTS[layout](events, HEAD), encoding="utf-8")
    reading = read(path)
    assert "malformed_events" not in reading.codes()
    expected = Counter(
        (
            KIND_OF[e["cat"]],
            e["name"],
            round(Decimal(str(e["ts"])) * 1000),
            round(Decimal(str(e["dur"])) * 1000),
        )
        for e in events
        if e["cat"] != "cuda_runtime"
    )
    found = ours(reading)
    assert sum(n for (kind, *_), n in found.items() if kind == "api") == sum(
        e["cat"] == "cuda_runtime" for e in events
    )
    assert Counter({key: n for key, n in found.items() if key[0] != "api"}) == expected
