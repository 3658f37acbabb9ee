"""Names of an Nsight export: string ids and inline texts, numbered as they are met."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from roundline.readers.contract import Sink
from roundline.readers.nsys_export import Export

UNKNOWN: Final = "unknown"


class Names:
    """Numbers string ids and texts; only those that events refer to are ever looked up."""

    def __init__(self) -> None:
        self._ids: dict[int, int] = {}
        self._texts: dict[str, int] = {}
        self._short: dict[int, int] = {}
        self._kernels: set[int] = set()
        self.unnamed = 0

    def of_kernels(self, names: pa.ChunkedArray, shorts: pa.ChunkedArray | None) -> pa.Array:
        """Local name ids of kernels, from string ids; a short name belongs to its full name."""
        self._kernels.update(id_ for id_ in pc.unique(names).to_pylist() if id_ is not None)
        if shorts is not None:
            pairs = (
                pa.table({"name": names, "short": shorts})
                .group_by(["name"])
                .aggregate([("short", "min")])
            )
            for row in pairs.to_pylist():
                self._short.setdefault(row["name"], row["short_min"])
        numbers = self.of_ids(names)
        return numbers.fill_null(self.of_text(UNKNOWN)) if numbers.null_count else numbers

    def of_ids(self, ids: pa.ChunkedArray) -> pa.Array:
        """Local name ids of string ids; NULL where there is no id."""
        return _mapped(ids, self.of_id)

    def of_texts(self, texts: pa.ChunkedArray) -> pa.Array:
        """Local name ids of inline texts; NULL where there is no text."""
        return _mapped(texts, self.of_text)

    def of_id(self, value: int) -> int:
        """Local name id of one string id."""
        return self._ids.setdefault(value, len(self._ids) + len(self._texts))

    def of_text(self, text: str) -> int:
        """Local name id of an inline text."""
        return self._texts.setdefault(text, len(self._ids) + len(self._texts))

    def write(self, export: Export, sink: Sink) -> None:
        """Write the `names` part."""
        values = export.strings([*self._ids, *self._short.values()])
        self.unnamed = len(self._kernels - values.keys())
        rows: Iterable[tuple[int, str, str | None]] = [
            *((number, _value(values, id_), self._short_of(id_, values))
              for id_, number in self._ids.items()),
            *((number, text, None) for text, number in self._texts.items()),
        ]  # fmt: skip
        ids, names, shorts = zip(*rows, strict=True) if rows else ((), (), ())
        table = {"name_id": pa.array(ids, pa.int32()), "name": pa.array(names, pa.string()),
                 "short_name": pa.array(shorts, pa.string())}  # fmt: skip
        sink.write("names", pa.table(table))

    def _short_of(self, id_: int, values: dict[int, str]) -> str | None:
        short = self._short.get(id_)
        return None if short is None else _value(values, short)


def _value(values: dict[int, str], id_: int | None) -> str:
    return values.get(id_, UNKNOWN) if id_ is not None else UNKNOWN


def _mapped(values: pa.ChunkedArray | pa.Array, number_of: Callable[[Any], int]) -> pa.Array:
    """Numbers of values, asked for once for each distinct one."""
    flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    unique = pc.unique(flat).drop_null()
    numbers = pa.array([number_of(value) for value in unique.to_pylist()], pa.int32())
    return numbers.take(pc.index_in(flat, value_set=unique))
