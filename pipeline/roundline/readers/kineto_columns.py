"""Columns of Arrow arrays from typed events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from roundline.readers.kineto_events import Args, Event

_INT64: Final = 1 << 63
_CACHED: Final = 1 << 16
_NAME_CHARACTERS: Final = 16 << 20
_API_VERSION: Final = re.compile(r"(?:_v\d+)?(?:_ptsz|_ptds)?$")
_COPY: Final = re.compile(
    r"\b([HDPA])to([HDPA])\b|(Host|Device|Peer|Array)To(Host|Device|Peer|Array)"
)
_COPY_KINDS: Final = frozenset({"HtoD", "DtoH", "DtoD", "PtoP", "HtoH"})
_STREAM: Final = re.compile(r"(?:stream\s*)?(-?\d+)", re.IGNORECASE)
_NO_NUMBERS: Final = (
    pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError,
    TypeError, ValueError, OverflowError,
)  # fmt: skip


def exact_ns(value: Any) -> int | None:
    """Nanoseconds of a microsecond value in any form; None when it is no number."""
    if isinstance(value, str | float):
        try:
            value = Decimal(str(value).strip())
        except InvalidOperation:
            return None
    if isinstance(value, Decimal) and value.is_finite() and abs(value) < _INT64 // 1000:
        return round(value * 1000)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _INT64 // 1000:
        return value * 1000
    return None


def nanoseconds(values: Sequence[Any]) -> pa.Array:
    """int64 nanoseconds of microsecond values, exact to the last digit; NULL for no number.

    Doubles are taken apart at the microsecond: `round(us * 1000)` would be off by one for
    0.3 % of the values near 4e12 us.
    """
    try:
        us = pa.array(values, pa.float64())
        whole = pc.floor(us)
        rest = pc.round(pc.multiply(pc.subtract(us, whole), 1000.0))
        return pc.add(pc.multiply_checked(whole.cast(pa.int64()), 1000), rest.cast(pa.int64()))
    except _NO_NUMBERS:
        return pa.array([exact_ns(value) for value in values], pa.int64())


def integers(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Integers; NULL for what is none or does not fit."""
    try:
        return pa.array(values, type_)
    except _NO_NUMBERS:
        limit = 1 << (type_.bit_width - 1)
        return pa.array([_integer(value, limit) for value in values], type_)


def _integer(value: Any, limit: int) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, ArithmeticError):
        return None
    return number if -limit <= number < limit else None


def _positive(values: Iterable[Any]) -> pa.Array:
    """Ids in which 0 means none."""
    return integers([value or None for value in values], pa.int64())


def _stream(event: Event, args: Args) -> Any:
    """Stream that the arguments state, else the row of the event (`7` or `stream 7`)."""
    if args.stream is not None:
        return args.stream
    match = _STREAM.fullmatch(str(event.tid).strip())
    return int(match[1]) if match else None


def streams(events: Sequence[Event], args: Sequence[Args]) -> pa.Array:
    """Stream of each GPU event."""
    return integers([_stream(e, arg) for e, arg in zip(events, args, strict=True)], pa.int64())


def _device(event: Event, args: Args) -> int:
    """Device ordinal; the row of the event where the arguments do not state it."""
    for value in (args.device, args.in_device, event.pid):
        if type(value) is int and 0 <= value < 1 << 31:
            return value
        if isinstance(value, str) and value.isdecimal() and len(value) < 10:
            return int(value)
    return 0


def gpu_columns(events: Sequence[Event], args: Sequence[Args]) -> dict[str, pa.Array]:
    """Columns that kernels, copies and sets have in common, without times and process."""
    devices = [_device(event, arg) for event, arg in zip(events, args, strict=True)]
    return {
        "device_id": pa.array(devices, pa.int32()),
        "context_id": integers([arg.context for arg in args], pa.int64()),
        "stream_id": streams(events, args),
        "correlation_id": correlations(args),
        "graph_id": _positive(arg.graph_id for arg in args),
        "graph_node_id": _positive(arg.graph_node_id for arg in args),
    }


def kernel_columns(events: Sequence[Event], args: Sequence[Args]) -> dict[str, pa.Array]:
    """Columns of kernels, without times, process and name."""
    return {
        **gpu_columns(events, args),
        **_axes("grid", [arg.grid for arg in args]),
        **_axes("block", [arg.block for arg in args]),
        "registers_per_thread": integers([arg.registers for arg in args], pa.int32()),
        "shared_memory_bytes": integers([arg.shared_memory for arg in args], pa.int64()),
        "external_id": external_ids(args),
    }


def _axes(shape: str, values: Sequence[Any]) -> dict[str, pa.Array]:
    triples = [v if type(v) is list and len(v) == 3 else (None, None, None) for v in values]
    return {
        f"{shape}_{axis}": integers([triple[i] for triple in triples], pa.int32())
        for i, axis in enumerate("xyz")
    }


def correlations(args: Sequence[Args]) -> pa.Array:
    """Correlation ids; 0 is none."""
    return _positive(arg.correlation for arg in args)


def external_ids(args: Sequence[Args]) -> pa.Array:
    """`External id` in both spellings; 0 is none."""
    return _positive(arg.external_id or arg.old_external_id for arg in args)


def threads(events: Sequence[Event]) -> pa.Array:
    """Threads of the host; NULL for rows that have a label instead."""
    return integers([event.tid for event in events], pa.int64())


def api_name(name: str) -> str:
    """`cuMemcpyAsync_v2_ptsz` is `cuMemcpyAsync`."""
    return _API_VERSION.sub("", name, count=1)


def copy_kind(name: str) -> str:
    """HtoD, DtoH, DtoD, PtoP, HtoH or other, from `Memcpy HtoD (Pinned -> Device)` and kin."""
    match = _COPY.search(name)
    if not match:
        return "other"
    source, target = (match[1], match[2]) if match[1] else (match[3][0], match[4][0])
    kind = f"{source}to{target}"
    return kind if kind in _COPY_KINDS else "other"


class Cache(dict[Any, Any]):
    """A function of hashable values, computed once for each while they are not too many."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: Any) -> Any:
        if len(self) >= _CACHED:
            self.clear()
        value = self[key] = self._function(key)
        return value


class Names:
    """Local ids of names, handed out in order of appearance.

    Memory is bounded: a dictionary that has grown too large starts anew, and a name that comes
    again gets a second id, which the store unites with the first.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._first = 0
        self._written = 0
        self._characters = 0

    def ids(self, names: Iterable[str]) -> pa.Array:
        """One id per name."""
        ids, first = self._ids, self._first
        return pa.array([ids.setdefault(name, first + len(ids)) for name in names], pa.int32())

    def fresh(self) -> pa.RecordBatch | None:
        """The names that were added since the last call."""
        start, self._written = self._written, self._first + len(self._ids)
        if start == self._written:
            return None
        new = list(islice(self._ids, start - self._first, None))
        ids = pa.array(range(start, self._written), pa.int32())
        self._characters += sum(map(len, new))
        if self._characters > _NAME_CHARACTERS:
            self._ids, self._first, self._characters = {}, self._written, 0
        return pa.RecordBatch.from_arrays([ids, pa.array(new, pa.string())], ["name_id", "name"])
