"""SQL under test over inline rows: real DuckDB, real relations, no files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import duckdb
import pyarrow as pa

from roundline.store.schemas import TABLES
from roundline.warehouse.build import create
from roundline.warehouse.connection import connect, identifier
from roundline.warehouse.parameters import Parameters, parameter_tables
from roundline.warehouse.relations import closure, load_relations, sql_root

Rows = Iterable[Mapping[str, Any]]


def warehouse_of(
    raw: Mapping[str, Rows], wanted: Iterable[str], given: Mapping[str, str] | None = None
) -> duckdb.DuckDBPyConnection:
    """Raw tables from rows, then `wanted` relations; `given` replaces relations by a SELECT."""
    connection = connect()
    for name, schema in TABLES.items():
        table = pa.Table.from_pylist(list(raw.get(name, [])), schema=schema)
        connection.register("incoming", table)
        connection.execute(f"CREATE TABLE {identifier(name)} AS SELECT * FROM incoming")
        connection.unregister("incoming")
    for path in sorted((sql_root() / "macros").glob("*.sql")):
        connection.execute(path.read_text(encoding="utf-8"))
    for parameter in parameter_tables(Parameters()):
        parameter.create(connection)
    given = given or {}
    for name, select in given.items():
        connection.execute(f"CREATE TABLE {identifier(name)} AS {select}")
    missing = [relation for relation in load_relations() if relation.name not in given]
    for relation in closure(wanted, missing):
        create(connection, relation)
    return connection


def kernel(start_ns: int, end_ns: int, *, name_id: int = 0, **fields: Any) -> dict[str, Any]:
    """A row of `kernels` with everything that a test does not care about filled in."""
    row = {"kernel_id": 0, "rank": 0, "process_id": 0, "stream_id": 7, "correlation_id": None}
    return {**row, "start_ns": start_ns, "end_ns": end_ns, "name_id": name_id, **fields}


def memory_op(start_ns: int, end_ns: int, **fields: Any) -> dict[str, Any]:
    """A row of `memory_ops`."""
    row = {"memory_op_id": 0, "rank": 0, "process_id": 0, "stream_id": 7, "kind": "memcpy"}
    return {**row, "start_ns": start_ns, "end_ns": end_ns, **fields}


def numbered(rows: Iterable[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """Rows in start order with dense ids, as the store keeps them."""
    ordered = sorted(rows, key=lambda row: (row["rank"], row["start_ns"]))
    return [{**row, key: index} for index, row in enumerate(ordered)]
