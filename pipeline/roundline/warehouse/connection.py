"""Opening DuckDB, always offline and always bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

MEMORY_LIMIT: Final = "640MB"


def connect(
    spill: Path | None = None, memory_limit: str = MEMORY_LIMIT
) -> duckdb.DuckDBPyConnection:
    """An in-memory database that never downloads and spills to `spill` when memory runs out."""
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "memory_limit": memory_limit,
            "preserve_insertion_order": False,
            "temp_directory": str(spill) if spill else "",
        }
    )
    connection.execute("SET enable_progress_bar = false")
    return connection


def quote(text: str) -> str:
    """`text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """`name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
