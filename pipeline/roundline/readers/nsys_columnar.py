"""Nsight Systems `parquetdir` and `arrowdir` exports: one file per table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roundline.errors import SourceError
from roundline.readers.contract import Diagnostic, Progress, ReadOptions, Sink, SourceFacts
from roundline.readers.nsys import read_export

_BATCH: Final = 65_536
_DAMAGE: Final = (pa.ArrowException, OSError, UnicodeDecodeError)
_EMPTY: Final = 4  # bytes of a file that was opened and never written
_SUFFIXES: Final = (".parquet", ".arrow")


def read_nsys_columnar(
    path: Path, sink: Sink, options: ReadOptions, progress: Progress | None = None
) -> SourceFacts:
    """Read a directory export.

    Raises:
        SourceError: a file of it is damaged.
    """
    export = ColumnarExport(path)
    facts = read_export(export, sink, options)
    if progress is not None:
        progress(1, 1)
    return replace(facts, diagnostics=(*facts.diagnostics, *_interrupted(export, facts)))


def _interrupted(export: ColumnarExport, facts: SourceFacts) -> Iterator[Diagnostic]:
    """An exporter that dies leaves valid files but not all of them; PROCESSES comes last."""
    if export.empty:
        names = ", ".join(export.empty[:5])
        text = f"the export was interrupted: {names} are empty; export again"
        yield Diagnostic("interrupted_export", "error", len(export.empty), text)
    elif "PROCESSES" not in export.tables() and not _is_filtered(facts):
        text = "PROCESSES is missing: the export was interrupted, tables may be incomplete"
        yield Diagnostic("interrupted_export", "error", 1, text)


def _is_filtered(facts: SourceFacts) -> bool:
    return any(diagnostic.code == "filtered_export" for diagnostic in facts.diagnostics)


class ColumnarExport:
    """The tables of a directory export. Ids are unsigned there; they come out signed."""

    def __init__(self, path: Path) -> None:
        self.label = str(path)
        files = [
            file
            for file in sorted(path.iterdir())
            if file.suffix in _SUFFIXES and not file.is_symlink()
        ]
        self._files = {file.stem: file for file in files if file.stat().st_size > _EMPTY}
        self.empty = [file.name for file in files if file.stat().st_size <= _EMPTY]

    @cached_property
    def _columns(self) -> dict[str, frozenset[str]]:
        return {name: self._names(file) for name, file in self._files.items()}

    def tables(self) -> frozenset[str]:
        """Names of the tables that are there."""
        return frozenset(self._files)

    def columns(self, table: str) -> frozenset[str]:
        """Columns of a table; empty when the table is missing."""
        return self._columns.get(table, frozenset())

    def scan(self, table: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Batches of existing columns: integers as int64, text as string."""
        file = self._files[table]
        try:
            for batch in self._batches(file, columns):
                arrays = [_plain(batch.column(name)) for name in columns]
                yield pa.Table.from_arrays(arrays, names=list(columns))
        except _DAMAGE as error:
            raise SourceError(f"{file}: {error}: export again") from error

    def strings(self, ids: Sequence[int]) -> dict[int, str]:
        """Values of these ids in StringIds."""
        wanted = pa.array(sorted({id_ for id_ in ids if id_ is not None}), pa.int64())
        found: dict[int, str] = {}
        if not {"id", "value"} <= self.columns("StringIds"):
            return found
        for batch in self.scan("StringIds", ["id", "value"]):
            hits = batch.filter(pc.is_in(batch["id"], value_set=wanted))
            pairs = zip(hits["id"].to_pylist(), hits["value"].to_pylist(), strict=True)
            found |= {id_: value or "" for id_, value in pairs}
        return found

    @staticmethod
    def _names(file: Path) -> frozenset[str]:
        try:
            if file.suffix == ".parquet":
                return frozenset(pq.read_schema(file).names)
            with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as reader:
                return frozenset(reader.schema.names)
        except _DAMAGE as error:
            raise SourceError(f"{file}: {error}: the export is damaged, export again") from error

    @staticmethod
    def _batches(file: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if file.suffix == ".parquet":
            yield from pq.ParquetFile(file).iter_batches(_BATCH, columns=list(columns))
            return
        # an Arrow stream, in spite of the suffix
        with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as reader:
            yield from reader


def _plain(array: pa.Array) -> pa.Array:
    """Unsigned ids keep their bits as signed ones; other numbers widen; text stays."""
    array.validate()
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if array.type == pa.uint64():
        return array.view(pa.int64())
    if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
        return array.cast(pa.int64())
    return _text(array)


def _text(array: pa.Array) -> pa.Array:
    """Text whose undecodable bytes are replaced, as in exports of other containers."""
    binary = array.cast(pa.binary())
    binary.validate(full=True)
    try:
        text = binary.cast(pa.string())
        text.validate(full=True)
    except pa.ArrowInvalid:
        values = [v and v.decode("utf-8", errors="replace") for v in binary.to_pylist()]
        text = pa.array(values, pa.string())
    return text
