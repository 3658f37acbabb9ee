"""SQL that users type: one statement, read-only, nothing outside the store, bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb

from roundline.errors import UnknownNameError, UsageError
from roundline.store.schemas import TABLES
from roundline.warehouse.build import open_warehouse
from roundline.warehouse.connection import identifier, quote
from roundline.warehouse.relations import Column, load_relations

if TYPE_CHECKING:
    from roundline.store import Store


@dataclass(frozen=True)
class QueryResult:
    """Column names and rows of one statement."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class TableDescription:
    """One table that a query may use."""

    name: str
    meaning: str
    columns: tuple[Column, ...]


@contextmanager
def open_sandbox(store: Store, memory_limit: str = "1GB") -> Iterator[duckdb.DuckDBPyConnection]:
    """A locked connection with one view per raw table and mart, over Parquet of the store only."""
    with open_warehouse(store):
        pass  # the marts are now current
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "memory_limit": memory_limit,
            "temp_directory": "",
        }
    )
    try:
        for name in TABLES:
            _create_view(connection, name, str(store.table_path(name)))
        for table in describe_marts():
            _create_view(connection, table.name, str(store.marts_dir / f"{table.name}.parquet"))
            _comment(connection, table)
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"SET allowed_directories = [{quote(str(store.path.resolve()))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


def run_query(connection: duckdb.DuckDBPyConnection, sql: str) -> QueryResult:
    """Run one reading statement.

    Raises:
        UsageError: `sql` is not exactly one SELECT, or DuckDB refuses it.
    """
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise UsageError(f"SQL: {_first_line(error)}") from error
    if len(statements) != 1:
        raise UsageError(f"SQL: expected one statement, found {len(statements)}")
    kind = statements[0].type.name
    if kind != "SELECT":
        raise UsageError(f"SQL: a store is read-only, {kind} statements are refused")
    try:
        cursor = connection.execute(statements[0])
        columns = tuple(column[0] for column in cursor.description or ())
        return QueryResult(columns, tuple(cursor.fetchall()))
    except duckdb.Error as error:
        raise UsageError(f"SQL: {_first_line(error)}") from error


def describe_tables() -> tuple[TableDescription, ...]:
    """Marts first, then raw tables, each with the meaning of every column."""
    raw = (
        TableDescription(
            name,
            f"Raw table `{name}` as the readers stored it.",
            tuple(
                Column(field.name, str(field.type).upper(), field.metadata[b"meaning"].decode())
                for field in schema
            ),
        )
        for name, schema in TABLES.items()
    )
    return (*describe_marts(), *raw)


def describe_marts() -> tuple[TableDescription, ...]:
    """The public marts with their documentation, sorted by name."""
    marts = sorted((r for r in load_relations() if r.layer == "marts"), key=lambda r: r.name)
    return tuple(TableDescription(m.name, f"{m.summary} {m.grain}.", m.columns) for m in marts)


def describe_table(name: str) -> TableDescription:
    """One table by name."""
    tables = {table.name: table for table in describe_tables()}
    if name not in tables:
        raise UnknownNameError("table", name, tables, "`roundline query STORE --list` shows all")
    return tables[name]


def _create_view(connection: duckdb.DuckDBPyConnection, name: str, path: str) -> None:
    connection.execute(
        f"CREATE VIEW {identifier(name)} AS SELECT * FROM read_parquet({quote(path)})"
    )


def _comment(connection: duckdb.DuckDBPyConnection, table: TableDescription) -> None:
    view = identifier(table.name)
    connection.execute(f"COMMENT ON VIEW {view} IS {quote(table.meaning)}")
    for column in table.columns:
        target = f"{view}.{identifier(column.name)}"
        connection.execute(f"COMMENT ON COLUMN {target} IS {quote(column.meaning)}")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
