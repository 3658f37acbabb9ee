"""Windows of server logs that stay outside a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from roundline.errors import SourceError
from roundline.readers.contract import ReadOptions
from roundline.readers.server_log import read_server_log
from roundline.readers.sniff import SourceKind, sniff
from roundline.store.schemas import TABLES


class _Kept:
    """A sink that keeps the windows of one log, which are few."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []

    def write(self, table: str, batch: pa.RecordBatch | pa.Table) -> None:
        if table == "log_windows":
            whole = isinstance(batch, pa.Table)
            self.tables.append(batch if whole else pa.Table.from_batches([batch]))


def read_log_windows(paths: Sequence[Path]) -> pa.Table | None:
    """All windows of these logs, in the shape of the raw table; None without paths.

    Raises:
        SourceError: a file is no log of a supported engine.
    """
    if not paths:
        return None
    tables = [_windows(index, path) for index, path in enumerate(paths)]
    return pa.concat_tables(tables)


def _windows(index: int, path: Path) -> pa.Table:
    kind = sniff(path)
    if kind is not SourceKind.SERVER_LOG:
        raise SourceError(f"{path} is {kind.value}, not a server log")
    sink = _Kept()
    read_server_log(path, sink, ReadOptions())
    rows = [row for table in sink.tables for row in table.to_pylist()]
    return pa.Table.from_pylist(
        [{**row, "source_id": index} for row in rows], schema=TABLES["log_windows"]
    )
