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
from roundline.simulate.truth import Round
from roundline.store import open_store
from roundline.warehouse.build import open_warehouse

Key = tuple[Any, ...]


class Comparison:
    """A capture that was written, ingested and attributed, beside its truth.

    Rounds of truth and warehouse are matched by rank and boundaries, so that a round which one
    side lacks is seen in `missing` or `extra` and nowhere else.
    """

    def __init__(
        self, options: SimulateOptions, folder: Path, format_: Format = "nsys-sqlite", **how: Any
    ) -> None:
        capture = simulate(options)
        self.truth = write_capture(options, capture, folder / "capture", format_, **how)
        self._stack = ExitStack()
        store = attributed(folder / "capture", folder / "store")
        self.warehouse = self._stack.enter_context(store)
        [[first_ns]] = self.rows("SELECT min(start_ns) FROM kernels")
        kernels = (a for _, a in capture.activities() if isinstance(a, Kernel))
        self._shift_ns = first_ns - min(kernel.start_ns for kernel in kernels)
        self._match()

    def rows(self, sql: str) -> list[Key]:
        """Rows of one statement."""
        return self.warehouse.execute(sql).fetchall()

    def close(self) -> None:
        """Let go of the warehouse."""
        self._stack.close()

    def work(self) -> tuple[Counter[Key], Counter[Key]]:
        """Exclusive time by (round, phase, draft step, category): true and found."""
        true = Counter(
            {
                (_key(r), w.phase, w.draft_step, w.category): w.exclusive_ns
                for r in self.matched
                for w in r.work
                if w.exclusive_ns
            }
        )
        columns = "rank, round_id, phase, draft_step, category, exclusive_ns"
        return true, self._found(f"SELECT {columns} FROM round_attribution")

    def idle(self) -> tuple[Counter[Key], Counter[Key]]:
        """Idle time by (round, phase, cause, host range): true and found."""
        true = Counter(
            {
                (_key(r), i.phase, i.cause, i.host_range): i.idle_ns
                for r in self.matched
                for i in r.idle
            }
        )
        columns = "rank, round_id, phase, cause, host_range, idle_ns"
        return true, self._found(f"SELECT {columns} FROM round_idle")

    def host(self) -> tuple[Counter[Key], Counter[Key]]:
        """Launches, synchronisations and the time in them by round: true and found."""
        parts = ("launches", "launch_ns", "syncs", "sync_ns")
        true = Counter({(_key(r), p): getattr(r.host, p) for r in self.matched for p in parts})
        sql = " UNION ALL ".join(
            f"SELECT rank, round_id, '{part}', {part} FROM round_host" for part in parts
        )
        return +true, self._found(sql)

    def leads(self) -> tuple[list[Key], list[Key]]:
        """(rank, lead, host time, kernels) of every graph launch: true and found."""
        true = [(g.rank, g.lead_ns, g.host_ns, g.kernels) for g in self.truth.graph_launches]
        found = self.rows("SELECT rank, lead_ns, host_ns, kernels FROM graph_launches")
        return sorted(true), sorted(found)

    def meetings(self) -> tuple[Counter[Key], Counter[Key]]:
        """Transfer and waiting time by round: true and found."""
        true: Counter[Key] = Counter()
        keys = {(r.rank, r.round_id): _key(r) for r in self.matched}
        for meeting in self.truth.collectives:
            key = keys.get((meeting.rank, meeting.round_id or 0))
            if key is not None and meeting.round_id is not None:
                true[key, "transfer"] += meeting.transfer_ns or 0
                true[key, "wait"] += meeting.wait_ns or 0
        parts = " UNION ALL ".join(
            f"SELECT rank, round_id, '{part}', {part}_ns FROM collectives"
            for part in ("transfer", "wait")
        )
        return +true, self._found(parts)

    def _match(self) -> None:
        spans = self.rows("SELECT rank, round_id, start_ns, end_ns FROM rounds")
        self._ids = {
            (rank, round_id): (rank, start_ns - self._shift_ns, end_ns - self._shift_ns)
            for rank, round_id, start_ns, end_ns in spans
        }
        true = {_key(r) for r in self.truth.rounds}
        self.missing = true - set(self._ids.values())
        self.extra = set(self._ids.values()) - true
        self.matched = [r for r in self.truth.rounds if _key(r) not in self.missing]

    def _found(self, sql: str) -> Counter[Key]:
        keys = {_key(r) for r in self.matched}
        found: Counter[Key] = Counter()
        for rank, round_id, *group, value in self.rows(sql):
            key = self._ids.get((rank, round_id))
            if key in keys and value:
                found[key, *group] += value
        return found


def attributed(capture: Path, store: Path) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """Ingest every capture file of a folder and attribute it."""
    sources = [p for p in sorted(capture.iterdir()) if not p.name.startswith("truth")]
    ingest(sources, store, IngestOptions())
    return open_warehouse(open_store(store))


def difference(true: Counter[Key], found: Counter[Key], of: Iterable[int]) -> dict[Key, int]:
    """What was found too much (or, negative, too little), summed over rounds, by parts `of`."""
    off: Counter[Key] = Counter()
    for key in {*true, *found}:
        if true[key] != found[key]:
            off[tuple(key[part] for part in of)] += found[key] - true[key]
    return dict(off)


def _key(item: Round) -> Key:
    return item.rank, item.start_ns, item.end_ns
