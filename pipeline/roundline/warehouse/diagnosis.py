"""What a capture lacks, what that blocks, and the exact command that would capture it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import duckdb

from roundline.errors import NoGpuActivityError, SourceError, TruncatedSourceError

if TYPE_CHECKING:
    from roundline.store import Store

NSYS: Final = (
    "nsys profile --trace-fork-before-exec=true --cuda-graph-trace=node -t cuda,nvtx"
    " --cuda-flush-interval=250 --delay 60 --duration 30 -o capture SERVER …"
)
TORCH: Final = (
    'curl -X POST HOST:PORT/start_profile -H "Content-Type: application/json" -d'
    ' \'{"num_steps": 10, "activities": ["CPU", "GPU"], "with_stack": false}\''
)


@dataclass(frozen=True)
class Remedy:
    """What a finding's code means for the analysis and how to get rid of it."""

    severity: str
    blocks: tuple[str, ...]
    fix: str


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or missing in a capture."""

    code: str
    severity: str
    text: str
    blocks: tuple[str, ...]
    fix: str


@dataclass(frozen=True)
class Completeness:
    """Ratios between 0 and 1; None where the capture has nothing to compare."""

    eager_launches_with_kernel: float | None
    replays_complete: float | None
    ranges_with_gpu: float | None


@dataclass(frozen=True)
class Diagnosis:
    """The whole answer of `roundline doctor`."""

    capabilities: dict[str, str]
    completeness: Completeness
    findings: tuple[Finding, ...]


REMEDIES: Final[dict[str, Remedy]] = {
    "graph_level_trace": Remedy(
        "error", ("attribution", "weight matrices", "idle"),
        f"record graph nodes: add --cuda-graph-trace=node, as in: {NSYS}",
    ),
    "dropped_records": Remedy(
        "error", ("idle", "completeness"),
        f"flush buffers more often: add --cuda-flush-interval=250, as in: {NSYS}",
    ),
    "no_gpu_activity": Remedy("error", ("everything",), f"capture the GPU: {NSYS}; or: {TORCH}"),
    "no_ranges": Remedy(
        "info", ("phases by ranges", "idle by host function"),
        "rounds still rest on graphs and kernels; for ranges trace NVTX (-t cuda,nvtx), or use the"
        f" PyTorch profiler: {TORCH}",
    ),
    "ranges_lost": Remedy(
        "warning", ("phases by ranges",),
        "python nvtx 0.2.12 and newer loses ranges under nsys 2024.2 and older: use nvtx 0.2.11 or"
        " a newer nsys",
    ),
    "open_ranges": Remedy("info", (), "stop the capture after the ranges have closed"),
    "truncated": Remedy(
        "warning", ("rounds near the end",), "capture again and let the profiler finish writing"
    ),
    "malformed_events": Remedy("warning", (), "upgrade torch: newer writers escape names"),
    "implausible_duration": Remedy("warning", ("idle",), "look at the events named here"),
    "invalid_time": Remedy("warning", ("idle",), "look at the events named here"),
    "start_skew": Remedy("info", (), "collectives before every rank is recorded are left unpaired"),
    "clock_unknown": Remedy(
        "info", ("matching logs by time",), "use torch 2.4 or newer, or Nsight Systems"
    ),
    "missing_rank": Remedy(
        "warning", ("transfer and wait of collectives",), "add the file of the rank named here"
    ),
    "duplicate_rank": Remedy("error", ("per-rank results",), "give one file per rank"),
    "shared_device_id": Remedy("info", (), "ranks are told apart by process, not by device"),
    "empty_steps": Remedy("warning", ("rounds",), "start the profiler while requests are running"),
    "no_decode": Remedy(
        "error", ("rounds", "reconcile"),
        f"capture while requests are decoding, several rounds at least: {TORCH}",
    ),
    "mixed_prefill": Remedy(
        "info", (), "rounds with a prefill are left out of the means; send no new requests"
    ),
    "filtered_export": Remedy("warning", ("completeness",), "export without --tables/--times"),
    "interrupted_export": Remedy("error", ("everything",), "export again and let it finish"),
    "unknown_schema": Remedy("warning", (), "check the numbers; newer Roundline may know it"),
    "unknown_gpu": Remedy(
        "warning", ("bandwidth model",), "name it: --gpu NAME, or give its peak: --hbm-gbps N"
    ),
    "interleaved_writers": Remedy("error", ("everything",), "let every rank write its own file"),
    "unnamed_kernels": Remedy("warning", ("kernel classes",), "upgrade torch"),
}  # fmt: skip


def diagnose(store: Store, warehouse: duckdb.DuckDBPyConnection) -> Diagnosis:
    """Everything that the store's diagnostics and the marts say about the capture's quality."""
    findings = {finding.code: finding for finding in _from_marts(warehouse)}
    for finding in _from_store(warehouse):
        findings.setdefault(finding.code, finding)
    order = {"error": 0, "warning": 1, "info": 2}
    return Diagnosis(
        capabilities=dict(store.manifest.capabilities),
        completeness=_completeness(warehouse),
        findings=tuple(sorted(findings.values(), key=lambda f: (order[f.severity], f.code))),
    )


def diagnose_unusable(error: SourceError) -> Diagnosis | None:
    """What can be said of a source that cannot be ingested; None if it is no capture at all."""
    codes = {NoGpuActivityError: "no_gpu_activity", TruncatedSourceError: "truncated"}
    code = codes.get(type(error))
    if code is None:
        return None
    nothing = Completeness(None, None, None)
    return Diagnosis({}, nothing, (finding(code, str(error), "error"),))


def finding(code: str, text: str, severity: str | None = None) -> Finding:
    """A finding with what its code blocks and how to fix it."""
    remedy = REMEDIES.get(code, Remedy("warning", (), "see the text"))
    return Finding(code, severity or remedy.severity, text, remedy.blocks, remedy.fix)


def _from_store(warehouse: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    rows = warehouse.execute(
        """
        SELECT code, severity, sum(count)::BIGINT, string_agg(detail, '; ' ORDER BY detail)
        FROM diagnostics GROUP BY code, severity ORDER BY code, severity
        """
    ).fetchall()
    for code, severity, count, detail in rows:
        yield finding(code, f"{detail} ({count:,} times)" if count > 1 else detail, severity)


def _from_marts(warehouse: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    for check, rank, status, detail in warehouse.execute(
        'SELECT "check", rank, status, detail FROM trace_quality ORDER BY ALL'
    ).fetchall():
        if status == "poor" and check == "graph_nodes":
            yield finding("graph_level_trace", f"rank {rank}: {detail}")
        elif status == "poor" and check != "unclassified_time":
            yield finding("dropped_records", f"rank {rank}: {detail}; gaps are no idle time")
        elif status == "absent" and check == "round_evidence":
            yield finding("no_decode", f"rank {rank}: {detail}")
    (prefills,) = warehouse.execute(
        "SELECT count(*) FROM rounds WHERE excluded_because = 'prefill'"
    ).fetchall()[0]
    if prefills:
        yield finding("mixed_prefill", f"{prefills} rounds hold a prefill")


def _completeness(warehouse: duckdb.DuckDBPyConnection) -> Completeness:
    # a graph launch of which nothing was recorded left no replay behind: it counts as incomplete
    recorded, launches, full, replays = warehouse.execute(
        """
        SELECT sum(eager_recorded), sum(eager_launches),
          sum(replays_full), sum(replays + graph_launches - graph_recorded)
        FROM completeness
        """
    ).fetchall()[0]
    ranges = warehouse.execute(
        "SELECT ranges_with_gpu, ranges_with_launch FROM range_completeness"
    ).fetchall()[0]
    return Completeness(
        eager_launches_with_kernel=_ratio(recorded, launches),
        replays_complete=_ratio(full, replays),
        ranges_with_gpu=_ratio(*ranges),
    )


def _ratio(part: Any, whole: Any) -> float | None:
    return int(part) / int(whole) if whole else None
