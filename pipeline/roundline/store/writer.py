"""Assembles the parts of all sources into the tables of one store, sorted, with dense ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roundline.errors import StoreError
from roundline.readers.contract import DENSE_IDS, Diagnostic, SourceFacts
from roundline.store.encoding import parquet_encoding
from roundline.store.ranks import Rank, process_offsets
from roundline.store.schemas import SORT_KEYS, TABLES
from roundline.warehouse.connection import connect, identifier, quote

_ROW_GROUP: Final = 122_880
_BATCH: Final = 65_536
_MEMORY_LIMITS: Final = ("96MB", "512MB", "2GB")
_TIMES: Final = ("start_ns", "end_ns")


@dataclass(frozen=True)
class Part:
    """One source's parts and what was learnt of it."""

    folder: Path
    facts: SourceFacts

    def file(self, table: str) -> Path | None:
        """The part of a table; None when the source had no rows of it."""
        path = self.folder / f"{table}.parquet"
        return path if path.is_file() else None


def assemble(
    folder: Path,
    parts: Sequence[Part],
    ranks: Sequence[Rank],
    spill: Path,
) -> dict[str, int]:
    """Write every raw table but `diagnostics` below `folder` and return its number of rows.

    Raises:
        StoreError: it takes more memory than any capture should.
    """
    for limit in _MEMORY_LIMITS:
        try:
            rows = _assemble(folder, parts, ranks, spill, limit)
        except duckdb.OutOfMemoryException:
            continue  # millions of distinct names do not fit the first limit
        rows["devices"] = _write_rows(folder, "devices", map(_device_row, ranks))
        rows["processes"] = _write_rows(folder, "processes", _process_rows(parts))
        return rows
    raise StoreError(
        f"assembling takes more than {_MEMORY_LIMITS[-1]} of memory: ingest fewer sources at once"
    )


def _assemble(
    folder: Path, parts: Sequence[Part], ranks: Sequence[Rank], spill: Path, memory_limit: str
) -> dict[str, int]:
    connection = connect(spill, memory_limit)
    try:
        connection.execute("SET threads = 1")
        _create_maps(connection, parts, ranks)
        rows = {"names": _write(connection, folder, "names", _names(parts))}
        for table in (*DENSE_IDS, "overheads", "log_windows"):
            rows[table] = _write(connection, folder, table, _events(table, parts))
            _hold_count(table, parts, rows[table])
    finally:
        connection.close()
    return rows


def write_diagnostics(folder: Path, diagnostics: Sequence[tuple[Diagnostic, int | None]]) -> int:
    """Write the table of what must be known, each with the index of its source, and count it."""
    return _write_rows(folder, "diagnostics", map(_diagnostic_row, diagnostics))


def _hold_count(table: str, parts: Sequence[Part], written: int) -> None:
    """Nothing is lost between parts and store."""
    files = [path for part in parts if (path := part.file(table))]
    read = sum(pq.read_metadata(path).num_rows for path in files)
    if read != written:
        raise StoreError(
            f"{read} rows of {table} were read but {written} could be placed: a defect of"
            " Roundline, please report this capture"
        )


def _create_maps(
    connection: duckdb.DuckDBPyConnection, parts: Sequence[Part], ranks: Sequence[Rank]
) -> None:
    """Maps from what a source knows to what the capture knows."""
    connection.execute(
        "CREATE TABLE rank_map (process_id INTEGER, device_id INTEGER, rank INTEGER)"
    )
    for rank in ranks:
        connection.execute(
            "INSERT INTO rank_map VALUES (?, ?, ?)",
            [rank.process_id, rank.device.device_id, rank.rank],
        )
    connection.execute(
        """
        CREATE VIEW host_rank AS
        SELECT process_id, min(rank) AS rank FROM rank_map GROUP BY process_id HAVING count(*) = 1
        """
    )
    names = _union("names", parts, ["name_id", "name", "short_name"])
    if names is None:
        connection.execute("CREATE TABLE name_map (source INTEGER, local INTEGER, name_id INTEGER)")
        return
    connection.execute(
        f"""
        CREATE TABLE name_map AS
        SELECT source, name_id AS local,
          (dense_rank() OVER (ORDER BY name, short_name) - 1)::INTEGER AS name_id
        FROM ({names})
        """
    )


def _names(parts: Sequence[Part]) -> str | None:
    names = _union("names", parts, ["name_id", "name", "short_name"])
    if names is None:
        return None
    return f"""
        SELECT m.name_id, any_value(n.name) AS name, any_value(n.short_name) AS short_name
        FROM ({names}) AS n
        JOIN name_map AS m ON m.source = n.source AND m.local = n.name_id
        GROUP BY m.name_id ORDER BY m.name_id
    """


def _events(table: str, parts: Sequence[Part]) -> str | None:
    """A SELECT of one raw table without its dense id, in the order that the store promises."""
    fields = [field.name for field in TABLES[table] if field.name != DENSE_IDS.get(table)]
    local = [name for name in fields if name not in ("rank", "source_id")]
    events = _union(table, parts, local)
    if events is None:
        return None
    columns = {name: f"e.{identifier(name)}" for name in fields}
    joins = ""
    if "source_id" in columns:
        columns["source_id"] = "e.source"
    if "name_id" in columns:
        columns["name_id"] = "m.name_id"
        joins += " JOIN name_map AS m ON m.source = e.source AND m.local = e.name_id"
    if "rank" in columns:
        columns["rank"] = "r.rank"
        joins += (
            " JOIN rank_map AS r ON r.process_id = e.process_id AND r.device_id = e.device_id"
            if "device_id" in columns
            else " LEFT JOIN host_rank AS r ON r.process_id = e.process_id"
        )
    selected = ", ".join(f"{value} AS {identifier(name)}" for name, value in columns.items())
    keys = dict.fromkeys((*SORT_KEYS[table], *fields))  # a total order: same input, same bytes
    order = ", ".join(f"{identifier(key)} NULLS FIRST" for key in keys)
    return f"SELECT {selected} FROM ({events}) AS e{joins} ORDER BY {order}"


def _union(table: str, parts: Sequence[Part], columns: Sequence[str]) -> str | None:
    """All parts of a table, with processes dense over the capture and times on one clock."""
    selects = []
    offsets = process_offsets([part.facts for part in parts])
    clocks = clock_offsets([part.facts for part in parts])
    for source, (part, offset, clock) in enumerate(zip(parts, offsets, clocks, strict=True)):
        path = part.file(table)
        if path is None:
            continue
        selected = [_shifted(column, offset, clock) for column in columns]
        source_file = f"read_parquet({quote(str(path))})"
        selects.append(f"SELECT {source} AS source, {', '.join(selected)} FROM {source_file}")
    return " UNION ALL ".join(selects) if selects else None


def _shifted(column: str, process_offset: int, clock_offset_ns: int) -> str:
    name = identifier(column)
    if column == "process_id" and process_offset:
        return f"({name} + {process_offset})::INTEGER AS {name}"
    if column in _TIMES and clock_offset_ns:
        return f"{name} + {clock_offset_ns} AS {name}"
    return name


def clock_offsets(facts: Sequence[SourceFacts]) -> tuple[int, ...]:
    """What to add to a source's times: they become Unix times when every source knows its own."""
    bases = [source.wall_clock_base_ns for source in facts]
    timed = [base for source, base in zip(facts, bases, strict=True) if source.processes]
    if any(base is None for base in timed):
        return tuple(0 for _ in facts)
    return tuple(base or 0 for base in bases)


def _write(
    connection: duckdb.DuckDBPyConnection, folder: Path, table: str, select: str | None
) -> int:
    """Stream a SELECT into the table's Parquet file, numbering rows where it has a dense id."""
    schema, id_ = TABLES[table], DENSE_IDS.get(table)
    rows = 0
    with _parquet(folder, table) as writer:
        if select is None:
            return 0
        for batch in connection.sql(select).to_arrow_reader(_BATCH):
            columns = {name: batch.column(name) for name in batch.schema.names}
            if id_ is not None:
                columns[id_] = _numbered(rows, batch.num_rows)
            arrays = [columns[field.name].cast(field.type) for field in schema]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema), _ROW_GROUP)
            rows += batch.num_rows
    return rows


def _numbered(first: int, count: int) -> pa.Array:
    return pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count), start=first - 1)


def _write_rows(folder: Path, table: str, rows: Any) -> int:
    """Write a small table from dictionaries, in its promised order."""
    ordered = sorted(rows, key=lambda row: tuple(_sortable(row[key]) for key in SORT_KEYS[table]))
    with _parquet(folder, table) as writer:
        writer.write_table(pa.Table.from_pylist(ordered, schema=TABLES[table]))
    return len(ordered)


def _sortable(value: Any) -> tuple[bool, Any]:
    return (value is not None, value)


@contextmanager
def _parquet(folder: Path, table: str) -> Iterator[pq.ParquetWriter]:
    path, schema = folder / f"{table}.parquet", TABLES[table]
    encoding = parquet_encoding(schema)
    with pq.ParquetWriter(
        path, schema, compression="zstd", compression_level=1, **encoding
    ) as writer:
        yield writer


def _device_row(rank: Rank) -> dict[str, Any]:
    device = rank.device
    return {
        "rank": rank.rank,
        "process_id": rank.process_id,
        "device_id": device.device_id,
        "name": device.name,
        "memory_bandwidth_bytes_per_s": device.memory_bandwidth_bytes_per_s,
        "memory_bytes": device.memory_bytes,
        "l2_bytes": device.l2_bytes,
        "sm_count": device.sm_count,
        "compute_capability": device.compute_capability,
        "rank_evidence": rank.evidence,
        "device_evidence": device.device_evidence,
    }


def _process_rows(parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    facts = [part.facts for part in parts]
    clocks = clock_offsets(facts)
    for source_id, (source, offset) in enumerate(zip(facts, process_offsets(facts), strict=True)):
        base = source.wall_clock_base_ns
        for process in source.processes:
            yield {
                "process_id": offset + process.process_id,
                "source_id": source_id,
                "pid": process.pid,
                "world_size": process.world_size,
                "wall_clock_base_ns": None if base is None else base - clocks[source_id],
            }


def _diagnostic_row(item: tuple[Diagnostic, int | None]) -> dict[str, Any]:
    diagnostic, source_id = item
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "count": diagnostic.count,
        "detail": diagnostic.detail,
        "source_id": source_id,
    }
