"""Names of an Nsight export: string ids and inline texts, numbered as they are met."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from roundline.readers.contract import Sink
from roundline.readers.nsys_export import Export


class Names:
    """Numbers string ids and texts; only those that events refer to are ever looked up."""

    def __init__(self) -> None:
        self._ids: dict[int, int] = {}
        self._texts: dict[str, int] = {}
        self._short: dict[int, int] = {}

    def of_kernels(self, names: pa.ChunkedArray, shorts: pa.ChunkedArray | None) -> pa.Array:
        """Local name ids of kernels, from string ids; a short name belongs to its full name."""
        if shorts is not None:
            pairs = (
                pa.table({"name": names, "short": shorts})
                .group_by(["name"])
                .aggregate([("short", "min")])
            )
            for row in pairs.to_pylist():
                self._short.setdefault(row["name"], row["short_min"])
        return self.of_ids(names)

    def of_ids(self, ids: pa.ChunkedArray) -> pa.Array:
        """Local name ids of string ids."""
        values = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
        for value in pc.unique(values).to_pylist():
            self.of_id(value)
        known = pa.array(list(self._ids), pa.int64())
        numbers = pa.array(list(self._ids.values()), pa.int32())
        return numbers.take(pc.index_in(values, value_set=known))

    def of_id(self, value: int) -> int:
        """Local name id of one string id."""
        return self._ids.setdefault(value, len(self._ids) + len(self._texts))

    def of_text(self, text: str) -> int:
        """Local name id of an inline text."""
        return self._texts.setdefault(text, len(self._ids) + len(self._texts))

    def write(self, export: Export, sink: Sink) -> None:
        """Write the `names` part."""
        values = export.strings([*self._ids, *self._short.values()])
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
    return values.get(id_, "unknown") if id_ is not None else "unknown"
