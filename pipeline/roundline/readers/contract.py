"""The seam between readers and ingest: what a reader is given and what it hands over.

A reader streams Arrow batches of *parts* into a sink. A part has the columns of its raw table
(`roundline.store.schemas`) except the dense id and `rank`, which only the whole capture knows:

* `process_id` counts the processes of this source from 0,
* `name_id` counts the names of this source from 0, in any order,
* times are integer nanoseconds on the source's own clock, in any order.

Columns may be left out of a batch when they are nullable; the sink fills them with NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

import pyarrow as pa

from roundline.store.schemas import TABLES

State = Literal["present", "partial", "absent"]
Severity = Literal["info", "warning", "error"]
Progress = Callable[[int, int], None]  # bytes read, bytes in all

CAPABILITIES: Final = (
    "kernels", "memory_ops", "graph_nodes", "graph_spans", "api_calls", "ranges", "overheads",
    "gpu_identity", "wall_clock", "log_windows",
)  # fmt: skip
DENSE_IDS: Final = {
    "kernels": "kernel_id", "memory_ops": "memory_op_id", "graph_spans": "graph_span_id",
    "api_calls": "api_call_id", "ranges": "range_id",
}  # fmt: skip
PART_TABLES: Final = (*DENSE_IDS, "names", "overheads", "log_windows")


def part_schema(table: str) -> pa.Schema:
    """Columns of a part: those of the raw table without what only the whole capture knows."""
    hidden = {DENSE_IDS.get(table), "rank", "source_id"}
    return pa.schema([field for field in TABLES[table] if field.name not in hidden])


@dataclass(frozen=True)
class ReadOptions:
    """How forgiving to be, and whether to keep Python-stack events."""

    allow_truncated: bool = False
    lenient: bool = False
    with_python: bool = False


@dataclass(frozen=True)
class Diagnostic:
    """Something that a user must know of this source; `code` is stable."""

    code: str
    severity: Severity
    count: int
    detail: str


@dataclass(frozen=True)
class ProcessFacts:
    """One process of a source. `rank` is what the source states, with how it was found."""

    process_id: int
    pid: int | None
    rank: int | None = None
    rank_evidence: str = "order"
    world_size: int | None = None


@dataclass(frozen=True)
class DeviceFacts:
    """One GPU that a process used. `order` sorts ranks that no source states, e.g. (gpu, pid)."""

    process_id: int
    device_id: int
    name: str | None = None
    memory_bandwidth_bytes_per_s: int | None = None
    memory_bytes: int | None = None
    l2_bytes: int | None = None
    sm_count: int | None = None
    compute_capability: str | None = None
    device_evidence: str = "absent"
    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class SourceFacts:
    """What a reader learnt of a source beside its events.

    `wall_clock_base_ns` is the Unix time of the source clock's zero, None when unknown; 0 when
    its times are Unix times already.
    """

    producer: str
    producer_version: str | None
    schema_version: str | None
    wall_clock_base_ns: int | None
    processes: tuple[ProcessFacts, ...]
    devices: tuple[DeviceFacts, ...]
    capabilities: dict[str, State]
    diagnostics: tuple[Diagnostic, ...] = ()
    truncated: bool = False


class Sink(Protocol):
    """Where a reader's batches go; nothing is held in memory beyond a row group."""

    def write(self, table: str, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows of one part."""


class Reader(Protocol):
    """Reads one source file (or directory) of one format."""

    def __call__(
        self, path: Path, sink: Sink, options: ReadOptions, progress: Progress | None = None
    ) -> SourceFacts:
        """Stream every event of `path` into `sink`.

        Raises:
            SourceError: the source is damaged, or not what the sniffer took it for.
        """
