"""Nsight Systems exports, whatever the container: one protocol, one meaning of each table.

Tables and columns are probed, never assumed: a missing table means "not collected or filtered",
a missing column is NULL. Sources: the vendor's export schemas 2.7 to 3.28.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from roundline.errors import SourceError
from roundline.readers.contract import Diagnostic, Severity

NEWEST_MINOR: Final = 28
_MOST_ROWS: Final = 1_000_000  # of tables that describe the capture
KERNEL: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
RUNTIME: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPH_TRACE: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
NVTX: Final = "NVTX_EVENTS"
EVENT_TABLES: Final = (KERNEL, MEMCPY, MEMSET, RUNTIME, GRAPH_TRACE, NVTX)
NSYS_TABLES: Final = (*EVENT_TABLES, "StringIds")


class Export(Protocol):
    """Tables of one export."""

    @property
    def label(self) -> str:
        """Name for messages."""

    def tables(self) -> frozenset[str]:
        """Names of the tables that are there."""

    def columns(self, table: str) -> frozenset[str]:
        """Columns of a table; empty when the table is missing."""

    def scan(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Batches of existing columns: integers as signed int64, text as string."""

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """Values of these ids in StringIds."""


@dataclass(frozen=True)
class Metadata:
    """What an export says of itself; `shift_ns` was added to every time by the exporter."""

    product_version: str | None
    schema_version: str | None
    shift_ns: int
    tables_filter: str
    times_filter: str
    graph_mode: str | None
    utc_base_ns: int | None
    duration_ns: int | None


def read_metadata(export: Export) -> Metadata:
    """Read either metadata table, or none; keys may repeat and may be misspelt."""
    pairs: list[tuple[str, str]] = []
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE"):
        pairs += [
            (str(r["name"]), str(r["value"] or "")) for r in rows(export, table, "name", "value")
        ]
    values = dict(reversed(pairs))
    mode = [value for name, value in pairs if name.endswith("CUDA_GRAPH_TRACE_OPTIONS:MODE")]
    return Metadata(
        product_version=values.get("EXPORT_PRODUCT_VERSION"),
        schema_version=values.get("EXPORT_SCHEMA_VERSION"),
        shift_ns=_integer(values.get("EXPORT_CONFIG_TIME_SHIFT")) or 0,
        tables_filter=values.get("EXPORT_PARAM_TABLES_TO_EXPORT", ""),
        times_filter=values.get("EXPORT_PARAM_TIMES_TO_EXPORT", ""),
        graph_mode=mode[0] if mode else None,
        utc_base_ns=_single(export, "TARGET_INFO_SESSION_START_TIME", "utcEpochNs"),
        duration_ns=_single(export, "ANALYSIS_DETAILS", "duration"),
    )


def check_schema(export: Export, metadata: Metadata, *, lenient: bool) -> list[Diagnostic]:
    """Refuse an unknown major version, warn above the newest known minor.

    Raises:
        SourceError: the export is of another major version and `lenient` is off.
    """
    match = re.match(r"(\d+)\.(\d+)", metadata.schema_version or "")
    if not match:
        return []
    major, minor = int(match[1]), int(match[2])
    text = f"export schema {metadata.schema_version} is newer than 3.{NEWEST_MINOR}, which is known"
    if major > 3 and not lenient:
        raise SourceError(f"{export.label}: {text}; --lenient reads it all the same")
    if major > 3 or (major == 3 and minor > NEWEST_MINOR):
        return [Diagnostic("unknown_schema", "warning", 1, text)]
    return []


def rows(export: Export, table: str, *columns: str) -> list[dict[str, Any]]:
    """All rows of a small table; columns that do not exist are None.

    Raises:
        SourceError: the table is not small at all.
    """
    there = [column for column in columns if column in export.columns(table)]
    if not there:
        return []
    missing = dict.fromkeys(set(columns) - set(there))
    found: list[dict[str, Any]] = []
    for batch in export.scan(table, there):
        found += [{**missing, **row} for row in batch.to_pylist()]
        if len(found) > _MOST_ROWS:
            raise SourceError(
                f"{export.label}: {table} has over {_MOST_ROWS:,} rows: it is damaged"
            )
    return found


def resolve(export: Export, table: str) -> str:
    """The table of that name, or its newest numbered successor (`NVTX_EVENTS_V2`)."""
    if table in export.tables():
        return table
    successors = [
        (int(match[1]), name)
        for name in export.tables()
        if (match := re.fullmatch(rf"{re.escape(table)}_V(\d+)", name))
    ]
    return max(successors)[1] if successors else table


def _single(export: Export, table: str, column: str) -> int | None:
    found = rows(export, table, column)
    return _integer(found[0][column]) if found else None


def _integer(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


_DIAGNOSTIC_TEXTS: Final[tuple[tuple[str, str, Severity], ...]] = (
    (r"dropped (\d+) records", "dropped_records", "error"),
    (r"incomplete CUPTI events dropped: ([1-9]\d*)", "dropped_records", "error"),
    (r"[Cc]ouldn't allocate CUPTI buffers", "dropped_records", "error"),
    (r"Could not parse (\d+) CUPTI", "dropped_records", "error"),
    (r"Not all (CUDA|NVTX) events might have been collected", "dropped_records", "warning"),
    (r"will likely be truncated", "truncated", "warning"),
    (r"CUDA driver version .* is not supported", "dropped_records", "warning"),
    (r"CUDA profiling might have not been started correctly", "no_gpu_activity", "warning"),
    (r"No CUDA events collected", "no_gpu_activity", "info"),
    (r"CUDA hardware tracing is not supported", "dropped_records", "info"),
    (r"NVTX profiling might have not been started correctly", "ranges_lost", "info"),
    (r"NVTX payload extension is incompatible", "ranges_lost", "warning"),
)  # fmt: skip


def tool_diagnostics(export: Export, *, recorded: bool) -> list[Diagnostic]:
    """What the profiler itself reported, by text: its own severities are not reliable.

    A side process without GPU activity is no fault of a capture in which others were `recorded`.
    """
    found: dict[tuple[str, Severity], list[str]] = {}
    for row in rows(export, "DIAGNOSTIC_EVENT", "text"):
        text = str(row["text"] or "")
        for pattern, code, severity in _DIAGNOSTIC_TEXTS:
            if re.search(pattern, text):
                if recorded and code == "no_gpu_activity":
                    code, severity = "dropped_records", "info"
                found.setdefault((code, severity), []).append(" ".join(text.split())[:300])
                break
    return [
        Diagnostic(code, severity, len(texts), f"the profiler reported: {texts[0]}")
        for (code, severity), texts in found.items()
    ]  # fmt: skip


def filter_diagnostics(metadata: Metadata) -> list[Diagnostic]:
    """A filtered export lacks tables or times that the capture had."""
    filters = [f for f in (metadata.tables_filter, metadata.times_filter) if f.strip()]
    if not filters:
        return []
    text = f"the export was filtered: {', '.join(filters)[:200]}"
    return [Diagnostic("filtered_export", "warning", len(filters), text)]
