"""Nsight Systems `.sqlite` exports, read with Python's sqlite3 and handed over as Arrow."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa

from roundline.errors import SourceError
from roundline.readers.contract import Progress, ReadOptions, Sink, SourceFacts
from roundline.readers.nsys import read_export
from roundline.readers.nsys_export import EVENT_TABLES

_FETCH: Final = 2_048  # rows whose Python objects stay in the processor's cache
_PIECES: Final = 32
_TEXT: Final = frozenset({"text", "name", "value"})
_IDS_PER_QUERY: Final = 500


def read_nsys_sqlite(
    path: Path, sink: Sink, options: ReadOptions, progress: Progress | None = None
) -> SourceFacts:
    """Read an export.

    Raises:
        SourceError: the database is damaged, or a column holds what it must not.
    """
    try:
        with closing(_connect(path)) as connection:
            facts = read_export(SqliteExport(path, connection, progress), sink, options)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise SourceError(
            f"{path}: {error}: the export is damaged or incomplete, export again"
        ) from error
    if progress is not None:
        progress(path.stat().st_size, path.stat().st_size)
    return facts


def _connect(path: Path) -> sqlite3.Connection:
    # immutable: no locks and no journal, so that read-only media work and nothing is written
    uri = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True)
    connection.text_factory = lambda data: data.decode("utf-8", errors="replace")
    return connection


class SqliteExport:
    """The tables of a SQLite export."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, progress: Progress | None = None
    ) -> None:
        self.label = str(path)
        self._connection = connection
        self._progress = progress
        self._size = path.stat().st_size
        self._rows_done = 0

    @cached_property
    def _columns(self) -> dict[str, frozenset[str]]:
        names = [
            row[0]
            # no views: a stranger's view may have no end
            for row in self._connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            )
        ]
        return {
            name: frozenset(
                row[1] for row in self._connection.execute(f"PRAGMA table_info({_quoted(name)})")
            )
            for name in names
        }

    def tables(self) -> frozenset[str]:
        """Names of the tables that are there."""
        return frozenset(self._columns)

    def columns(self, table: str) -> frozenset[str]:
        """Columns of a table; empty when the table is missing."""
        return self._columns.get(table, frozenset())

    def scan(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Batches of existing columns: integers as int64, text as string."""
        selected = ", ".join(map(_quoted, columns))
        cursor = self._connection.execute(f"SELECT {selected} FROM {_quoted(table)}")
        pieces: list[pa.Table] = []
        first_row = 0
        while fetched := cursor.fetchmany(_FETCH):
            arrays = [
                self._array(table, column, values, first_row)
                for column, values in zip(columns, zip(*fetched, strict=True), strict=True)
            ]
            pieces.append(pa.Table.from_arrays(arrays, names=list(columns)))
            first_row += len(fetched)
            self._advance(len(fetched))
            if len(pieces) == _PIECES:
                yield pa.concat_tables(pieces).combine_chunks()
                pieces = []
        if pieces:
            yield pa.concat_tables(pieces).combine_chunks()

    def _advance(self, rows: int) -> None:
        """Tell progress in bytes, by the share of rows that were read."""
        self._rows_done += rows
        if self._progress is not None and self._rows:
            share = min(self._rows_done / self._rows, 1.0)
            self._progress(int(share * self._size), self._size)

    @cached_property
    def _rows(self) -> int:
        """About how many rows of events there are, without counting them."""
        return sum(self._newest(table) for table in EVENT_TABLES if table in self._columns)

    def _newest(self, table: str) -> int:
        try:
            newest = self._connection.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0]
        except sqlite3.OperationalError:  # a table without row ids
            return 0
        return max(newest or 0, 0)

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """Values of these ids in StringIds."""
        if "StringIds" not in self._columns:
            return {}
        wanted = sorted({id_ for id_ in ids if id_ is not None})
        found: dict[int, str] = {}
        for start in range(0, len(wanted), _IDS_PER_QUERY):
            chunk = wanted[start : start + _IDS_PER_QUERY]
            marks = ", ".join("?" * len(chunk))
            query = f"SELECT id, value FROM StringIds WHERE id IN ({marks})"
            rows = self._connection.execute(query, chunk)
            found |= {id_: _text(value) or "" for id_, value in rows}
        return found

    def _array(self, table: str, column: str, values: tuple[Any, ...], first_row: int) -> pa.Array:
        if column in _TEXT:
            return pa.array(map(_text, values), pa.string())
        try:
            return pa.array(values, pa.int64())
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return pa.array(self._integers(table, column, values, first_row), pa.int64())

    def _integers(
        self, table: str, column: str, values: tuple[Any, ...], first_row: int
    ) -> list[int | None]:
        """SQLite is weakly typed: an integer column may hold empty text, or worse."""
        numbers: list[int | None] = []
        for row, value in enumerate(values, first_row + 1):
            if value is None or value == "":
                numbers.append(None)
                continue
            try:
                numbers.append(int(value))
            except (TypeError, ValueError):
                raise SourceError(
                    f"{self.label}: {table}.{column} row {row} holds {str(value)[:40]!r}, not an"
                    " integer: the export is damaged, export again"
                ) from None
        return numbers


def _text(value: Any) -> str | None:
    """Text of a cell: SQLite may hold anything in a text column."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return None if value is None else str(value)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
