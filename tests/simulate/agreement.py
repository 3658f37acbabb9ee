"""Holds what a warehouse says of a simulated capture against the capture's own truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import duckdb

from roundline.readers.ingest import IngestOptions, ingest
from roundline.simulate.session import Format, SimulateOptions, simulate, write_capture
from roundline.simulate.timeline import Kernel
from roundline.simulate.truth import CaptureTruth, Round
from roundline.store import open_store
from roundline.warehouse.build import open_warehouse


class Comparison:
    """A capture that was written, ingested and attributed, beside its truth."""

    def __init__(
        self, options: SimulateOptions, folder: Path, format_: Format = "nsys-sqlite", **how: Any
    ) -> None:
        capture = simulate(options)
        self.truth = write_capture(options, capture, folder / "capture", format_, **how)
        self._stack = ExitStack()
        self.warehouse = self._stack.enter_context(attributed(folder / "capture", folder / "store"))
        [[first_ns]] = self.rows("SELECT min(start_ns) FROM kernels")
        kernels = (a for _, a in capture.activities() if isinstance(a, Kernel))
        self.shift_ns = first_ns - min(kernel.start_ns for kernel in kernels)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of one statement."""
        return self.warehouse.execute(sql).fetchall()

    def close(self) -> None:
        """Let go of the warehouse."""
        self._stack.close()


def attributed(capture: Path, store: Path) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """Ingest every capture file of a folder and attribute it."""
    sources = sorted(p for p in capture.iterdir() if p.suffix in (".sqlite", ".gz", ".json"))
    ingest([p for p in sources if p.name != "truth.json"], store, IngestOptions())
    return open_warehouse(open_store(store))


def true_spans(truth: CaptureTruth) -> list[tuple[int, int, int]]:
    """(rank, start, end) of every round."""
    return [(r.rank, r.start_ns, r.end_ns) for r in truth.rounds]


def true_work(rounds: Iterable[Round]) -> Counter[tuple[Any, ...]]:
    """Exclusive time by (rank, round, phase, draft step, category)."""
    return Counter(
        {
            (r.rank, r.round_id, w.phase, w.draft_step, w.category): w.exclusive_ns
            for r in rounds
            for w in r.work
            if w.exclusive_ns
        }
    )


def true_idle(rounds: Iterable[Round]) -> Counter[tuple[Any, ...]]:
    """Idle time by (rank, round, phase, cause)."""
    return Counter(
        {(r.rank, r.round_id, i.phase, i.cause): i.idle_ns for r in rounds for i in r.idle}
    )
