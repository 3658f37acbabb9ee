"""Writes a capture as `nsys export --type parquetdir` and `arrowdir` do: one file per table.

Types differ from SQLite and between the two, as exporters have it: identifiers of processes and
streams are unsigned in both; device and correlation are int64 in Parquet and uint32 in Arrow.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Literal

from roundline.simulate.nsys_writer import GraphMode, write_nsys_sqlite
from roundline.simulate.timeline import Capture

Layout = Literal["parquetdir", "arrowdir"]

_UNSIGNED: Final = frozenset(
    ("globalTid", "globalPid", "contextId", "streamId", "rangeId", "category", "domainId",
     "demangledName", "shortName", "nameId", "graphNodeId", "greenContextId")
)  # fmt: skip
_NARROW_IN_ARROW: Final = frozenset(
    ("deviceId", "correlationId", "textId", "eventType", "eventClass")
)
_SMALL: Final = frozenset(
    ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory",
     "dynamicSharedMemory", "sharedMemoryExecuted")
)  # fmt: skip
_ROW_GROUP: Final = 2048
_SIGN: Final = 1 << 63


def write_nsys_directory(
    capture: Capture,
    folder: Path,
    layout: Layout,
    *,
    schema: str = "3.17.1",
    graphs: GraphMode = "node",
) -> None:
    """Write `capture` into `folder`, one file per table.

    Args:
        capture: what was recorded.
        folder: the directory of the export, which is made if need be.
        layout: `parquetdir` or `arrowdir`.
        schema: export-schema version; the layouts exist from 3.7.2 on.
        graphs: as for SQLite.

    Raises:
        UnknownNameError: unknown schema version.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write: Callable[[Any, Path], None] = _parquet if layout == "parquetdir" else _arrow
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "export.sqlite"
        write_nsys_sqlite(capture, path, schema=schema, graphs=graphs)
        with closing(sqlite3.connect(path)) as database:
            for name, table in _tables(database, layout):
                write(table, folder / name)


def _tables(database: sqlite3.Connection, layout: Layout) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa

    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")
    for (name,) in names.fetchall():
        columns = database.execute(f"SELECT name, type FROM pragma_table_info('{name}')").fetchall()
        rows = database.execute(f"SELECT * FROM {name}").fetchall()
        fields = [(column, _type(name, column, declared, layout)) for column, declared in columns]
        arrays = [
            pa.array(_values(rows, place, type_), type_) for place, (_, type_) in enumerate(fields)
        ]
        yield name, pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _values(rows: list[tuple[Any, ...]], place: int, type_: Any) -> list[Any]:
    import pyarrow as pa

    if type_ != pa.uint64():
        return [row[place] for row in rows]
    return [None if row[place] is None else row[place] % (2 * _SIGN) for row in rows]


def _type(table: str, column: str, declared: str, layout: Layout) -> Any:
    import pyarrow as pa

    if declared == "TEXT":
        return pa.string()
    if declared == "REAL":
        return pa.float64()
    if column in _UNSIGNED:
        return pa.uint64()
    if column in _NARROW_IN_ARROW:
        return pa.uint32() if layout == "arrowdir" else pa.int64()
    return pa.int32() if column in _SMALL or (table, column) == ("StringIds", "id") else pa.int64()


def _parquet(table: Any, stem: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(
        table, stem.with_name(stem.name + ".parquet"), compression="none", row_group_size=_ROW_GROUP
    )


def _arrow(table: Any, stem: Path) -> None:
    """An IPC stream, in spite of what the file name suggests."""
    import pyarrow as pa

    with pa.ipc.new_stream(stem.with_name(stem.name + ".arrow"), table.schema) as out:
        out.write_table(table, max_chunksize=_ROW_GROUP)
