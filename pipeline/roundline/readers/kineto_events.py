"""Typed decoding of Kineto events, and their columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

EXACT_US: Final = float(1 << 43)  # below it a double still tells nanoseconds apart
HOUR_NS: Final = 3_600_000_000_000
_INT64: Final = 1 << 63
_API_VERSION: Final = re.compile(r"(?:_v\d+)?(?:_ptsz|_ptds)?$")
_COPY: Final = re.compile(
    r"\b([HDPA])to([HDPA])\b|(Host|Device|Peer|Array)To(Host|Device|Peer|Array)"
)
_COPY_KINDS: Final = frozenset({"HtoD", "DtoH", "DtoD", "PtoP", "HtoH"})
_STREAM: Final = re.compile(r"\s*(?:stream)?\s*(-?\d+)", re.IGNORECASE)


class Args(msgspec.Struct, gc=False):
    """The arguments that become columns; all are optional, and of any type in bad files."""

    device: Any = None
    context: Any = None
    stream: Any = None
    correlation: Any = None
    grid: Any = None
    block: Any = None
    registers: Any = msgspec.field(name="registers per thread", default=None)
    shared_memory: Any = msgspec.field(name="shared memory", default=None)
    bytes: Any = None
    graph_id: Any = msgspec.field(name="graph id", default=None)
    graph_node_id: Any = msgspec.field(name="graph node id", default=None)
    external_id: Any = msgspec.field(name="External id", default=None)
    old_external_id: Any = msgspec.field(name="external id", default=None)
    in_device: Any = msgspec.field(name="inDevice", default=None)
    finished: Any = None


class Event(msgspec.Struct, gc=False):
    """One trace event; `ts` and `dur` are microseconds in whatever form the file has them."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: Any = None
    dur: Any = None
    args: Args | None = None


_NO_ARGS: Final = Args()
_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class EventDecoder:
    """Decodes spans of events. `exact` keeps every digit of a time, at some cost."""

    def __init__(self, *, lines: bool = False) -> None:
        self.lines = lines
        self.exact = False
        self._any = msgspec.json.Decoder(float_hook=Decimal)
        self._set_decoder()

    def _set_decoder(self) -> None:
        hook = Decimal if self.exact else None
        self._array = msgspec.json.Decoder(list[Event | None], float_hook=hook)
        self._line = msgspec.json.Decoder(Event | None, float_hook=hook)

    def __call__(self, span: bytes) -> list[Event | None] | None:
        """The events of a span; None when it is malformed."""
        try:
            events = self._strict(span)
            if not self.exact and any(
                type(event.ts) is float and event.ts >= EXACT_US for event in events if event
            ):
                self.exact = True
                self._set_decoder()
                events = self._strict(span)
        except msgspec.ValidationError:
            return self._lenient(span)
        except _FAULTS:
            return None
        return events

    def _strict(self, span: bytes) -> list[Event | None]:
        if self.lines:
            return self._line.decode_lines(span)
        return self._array.decode(b"[%b]" % span)

    def _lenient(self, span: bytes) -> list[Event | None] | None:
        """Values of unexpected types become NULL instead of losing their event."""
        try:
            if self.lines:
                values = self._any.decode_lines(span)
            else:
                values = self._any.decode(b"[%b]" % span)
        except _FAULTS:
            return None
        return [_event(value) for value in values]


def _event(value: Any) -> Event | None:
    if not isinstance(value, dict):
        return None
    args = value.get("args")
    return Event(
        ph=_text(value.get("ph")),
        cat=_text(value.get("cat")),
        name=_text(value.get("name")),
        pid=_label(value.get("pid")),
        tid=_label(value.get("tid")),
        ts=value.get("ts"),
        dur=value.get("dur"),
        args=_args(args) if isinstance(args, dict) else None,
    )


def _args(value: dict[str, Any]) -> Args:
    names = zip(Args.__struct_fields__, Args.__struct_encode_fields__, strict=True)
    return Args(**{field: value.get(key) for field, key in names})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _label(value: Any) -> int | str | None:
    if isinstance(value, int | str) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, Decimal) and value.is_finite() else None


def exact_ns(value: Any) -> int | None:
    """Nanoseconds of a microsecond value in any form; None when it is no number."""
    if isinstance(value, str | float):
        try:
            value = Decimal(str(value))
        except InvalidOperation:
            return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    if isinstance(value, Decimal) and (not value.is_finite() or abs(value) >= _INT64):
        return None
    nanoseconds = round(value * 1000)
    return nanoseconds if abs(nanoseconds) < _INT64 else None


def nanoseconds(values: Sequence[Any]) -> pa.Array:
    """int64 nanoseconds of microsecond values, exact to the last digit; NULL for no number."""
    try:
        us = pa.array(values, pa.float64())
        whole = pc.floor(us)
        rest = pc.round(pc.multiply(pc.subtract(us, whole), 1000.0))
        return pc.add(pc.multiply_checked(whole.cast(pa.int64()), 1000), rest.cast(pa.int64()))
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError):
        return pa.array([exact_ns(value) for value in values], pa.int64())


def integers(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Integers; NULL for what is none or does not fit."""
    try:
        return pa.array(values, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError):
        limit = 1 << (type_.bit_width - 1)
        return pa.array([_integer(value, limit) for value in values], type_)


def _integer(value: Any, limit: int) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        return None
    return number if -limit <= number < limit else None


def stream_of(event: Event, args: Args) -> Any:
    """Stream that the arguments state, else the row of the event (`7` or `stream 7`)."""
    if args.stream is not None:
        return args.stream
    match = _STREAM.match(str(event.tid))
    return int(match[1]) if match else None


def device_of(event: Event, args: Args) -> int:
    """Device ordinal; the row of the event where the arguments do not state it."""
    for value in (args.device, args.in_device, event.pid):
        if type(value) is int and 0 <= value < 1 << 31:
            return value
    return 0


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
    """A function of hashable values, computed once for each."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: Any) -> Any:
        value = self[key] = self._function(key)
        return value


class Names:
    """Local ids of names, handed out in order of appearance."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._written = 0

    def ids(self, names: Iterable[str]) -> pa.Array:
        """One id per name."""
        ids = self._ids
        return pa.array([ids.setdefault(name, len(ids)) for name in names], pa.int32())

    def fresh(self) -> pa.RecordBatch | None:
        """The names that were added since the last call."""
        first, self._written = self._written, len(self._ids)
        if first == self._written:
            return None
        new = list(islice(self._ids, first, None))
        ids = pa.array(range(first, self._written), pa.int32())
        return pa.RecordBatch.from_arrays([ids, pa.array(new, pa.string())], ["name_id", "name"])


def arguments(events: Iterable[Event]) -> list[Args]:
    """The arguments of events, empty ones where there are none."""
    return [event.args or _NO_ARGS for event in events]


def gpu_columns(events: Sequence[Event], args: Sequence[Args]) -> dict[str, pa.Array]:
    """Columns that kernels, copies and sets have in common, without times and process."""
    return {
        "device_id": pa.array(
            [device_of(event, arg) for event, arg in zip(events, args, strict=True)], pa.int32()
        ),
        "context_id": integers([arg.context for arg in args], pa.int64()),
        "stream_id": integers(
            [stream_of(event, arg) for event, arg in zip(events, args, strict=True)], pa.int64()
        ),
        "correlation_id": integers([arg.correlation or None for arg in args], pa.int64()),
        "graph_id": integers([arg.graph_id or None for arg in args], pa.int64()),
        "graph_node_id": integers([arg.graph_node_id or None for arg in args], pa.int64()),
    }


def kernel_columns(events: Sequence[Event], args: Sequence[Args]) -> dict[str, pa.Array]:
    """Columns of kernels, without times, process and name."""
    grids = [_triple(arg.grid) for arg in args]
    blocks = [_triple(arg.block) for arg in args]
    return {
        **gpu_columns(events, args),
        **{
            f"{shape}_{axis}": integers([triple[i] for triple in triples], pa.int32())
            for shape, triples in (("grid", grids), ("block", blocks))
            for i, axis in enumerate("xyz")
        },
        "registers_per_thread": integers([arg.registers for arg in args], pa.int32()),
        "shared_memory_bytes": integers([arg.shared_memory for arg in args], pa.int64()),
        "external_id": external_ids(args),
    }


def memory_columns(
    events: Sequence[Event], args: Sequence[Args], kind: str, copy_kinds: Cache
) -> dict[str, pa.Array]:
    """Columns of copies or sets, without times and process."""
    copies = [copy_kinds[e.name] if kind == "memcpy" else None for e in events]
    return {
        **gpu_columns(events, args),
        "kind": pa.array([kind] * len(events), pa.string()),
        "copy_kind": pa.array(copies, pa.string()),
        "bytes": integers([arg.bytes for arg in args], pa.int64()),
    }


def external_ids(args: Sequence[Args]) -> pa.Array:
    """`External id` in both spellings; 0 is none."""
    return integers([arg.external_id or arg.old_external_id or None for arg in args], pa.int64())


def thread_ids(events: Sequence[Event]) -> pa.Array:
    """Threads of the host; NULL for rows that have a label instead."""
    return integers([event.tid for event in events], pa.int64())


def _triple(value: Any) -> tuple[Any, Any, Any]:
    if type(value) is list and len(value) == 3:
        return value[0], value[1], value[2]
    return (None, None, None)
