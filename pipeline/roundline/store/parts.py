"""Parts: what one reader wrote of one source, unsorted, before the capture is assembled."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from roundline.readers.contract import part_schema
from roundline.store.encoding import parquet_encoding

_ROW_GROUP: Final = 65_536


class PartSink:
    """Writes the batches of one source to one Parquet file per table below `folder`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._pending: dict[str, list[pa.Table]] = {}
        self._pending_rows: dict[str, int] = {}

    def write(self, table: str, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows; small batches are gathered into row groups of a useful size."""
        if not batch.num_rows:
            return
        self._pending.setdefault(table, []).append(_conform(batch, part_schema(table)))
        self._pending_rows[table] = self._pending_rows.get(table, 0) + batch.num_rows
        if self._pending_rows[table] >= _ROW_GROUP:
            self._flush(table)

    def _flush(self, table: str) -> None:
        rows = pa.concat_tables(self._pending.pop(table))
        self._pending_rows[table] = 0
        if table not in self._writers:
            schema, path = part_schema(table), self._folder / f"{table}.parquet"
            self._writers[table] = pq.ParquetWriter(
                path, schema, compression="none", **parquet_encoding(schema)
            )
        self._writers[table].write_table(rows)

    def __enter__(self) -> PartSink:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            for table in list(self._pending):
                self._flush(table)
        for writer in self._writers.values():
            writer.close()


def _conform(batch: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.Table:
    """The batch with exactly the schema's columns; what was left out is NULL."""
    table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
    names = set(table.column_names)
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
