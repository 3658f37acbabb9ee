"""NVTX ranges of an Nsight export: message, domain, and an end where there was one."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from roundline.readers.nsys_export import NVTX
from roundline.readers.nsys_rows import PID_MASK, EventRows

_DOMAIN_CREATE: Final = 75
_NVTX_KINDS: Final = {59: "nvtx_push_pop", 60: "nvtx_start_end", 70: "nvtx_push_pop",
                      71: "nvtx_start_end"}  # fmt: skip


class RangeReader:
    """Reads the NVTX table into `ranges`; marks, categories and domains are no ranges."""

    def __init__(self, rows: EventRows) -> None:
        self.rows = rows

    def read(self) -> None:
        """Stream the ranges of every process and domain."""
        columns = ("start", "end", "eventType", "text", "textId", "globalTid", "domainId")
        domains = self._domains()
        for batch in self.rows.scan(NVTX, columns):
            if "start" not in batch.column_names:
                return
            if batch["start"].null_count:
                self.rows.counts.missing_times += batch["start"].null_count
                batch = batch.filter(batch["start"].is_valid())
            if "eventType" in batch.column_names:
                kinds = pa.array(list(_NVTX_KINDS), pa.int64())
                is_range = pc.fill_null(pc.is_in(batch["eventType"], value_set=kinds), False)
                self.rows.counts.nvtx_bookkeeping += batch.num_rows - (
                    pc.sum(is_range).as_py() or 0
                )
                batch = batch.filter(is_range)
            if batch.num_rows:
                self.rows.write("ranges", self._range_columns(batch, domains))

    def _range_columns(
        self, batch: pa.Table, domains: dict[tuple[int, int], str]
    ) -> dict[str, Any]:
        part = self.rows.host_columns(batch)
        part["kind"] = self._range_kinds(batch)
        part["end_ns"] = self._range_ends(batch, part["start_ns"])
        part["name_id"] = self._range_names(batch)
        if domains and "domainId" in batch.column_names:
            processes, ids = part["process_id"].to_pylist(), batch["domainId"].to_pylist()
            part["domain"] = pa.array(
                [domains.get((p, d)) for p, d in zip(processes, ids, strict=True)], pa.string()
            )
        return part

    @staticmethod
    def _range_kinds(batch: pa.Table) -> pa.Array:
        if "eventType" not in batch.column_names:
            return pa.array(["nvtx_push_pop"] * batch.num_rows, pa.string())
        types = pa.array(list(_NVTX_KINDS), pa.int64())
        kinds = pa.array(list(_NVTX_KINDS.values()), pa.string())
        return kinds.take(pc.index_in(batch["eventType"].combine_chunks(), value_set=types))

    def _range_ends(self, batch: pa.Table, starts: pa.Array) -> pa.Array:
        """Ends; a range that was still open ends with the capture or has no end at all."""
        ends = self.rows.time(batch, "end")
        if self.rows.metadata.duration_ns is not None:
            is_open = pc.equal(ends, self.rows.metadata.duration_ns)
            ends = pc.if_else(is_open, pa.scalar(None, pa.int64()), ends)
        self.rows.counts.open_ranges += ends.null_count
        return self.rows.forward(starts, ends)

    def _range_names(self, batch: pa.Table) -> pa.Array:
        """A registered message by its id, else the inline text, else nothing."""
        there = batch.column_names
        numbers = pa.nulls(batch.num_rows, pa.int32())
        if "textId" in there:
            numbers = self.rows.names.of_ids(batch["textId"])
        if "text" in there and numbers.null_count:
            numbers = pc.coalesce(numbers, self.rows.names.of_texts(batch["text"]))
        return numbers.fill_null(self.rows.names.of_text("")) if numbers.null_count else numbers

    def _domains(self) -> dict[tuple[int, int], str]:
        """Domain names by (process, domain): rows of type 75, numbered anew in each process."""
        columns = ("eventType", "globalTid", "domainId", "text", "textId")
        created = [
            {**dict.fromkeys(columns), **row}
            for batch in self.rows.scan(NVTX, columns)
            if "eventType" in batch.column_names
            for row in batch.filter(pc.equal(batch["eventType"], _DOMAIN_CREATE)).to_pylist()
        ]
        values = self.rows.export.strings([r["textId"] for r in created if r["textId"] is not None])
        return {
            (self.rows.processes.number(_pid(row["globalTid"])), row["domainId"]):
                values.get(row["textId"], "") if row["textId"] is not None else row["text"] or ""
            for row in created
        }  # fmt: skip


def _pid(global_tid: int | None) -> int | None:
    return None if global_tid is None else global_tid & PID_MASK
