"""Typed decoding of Kineto events: only what becomes a column is turned into objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

EXACT_US: Final = float(1 << 43)  # below it a double still tells nanoseconds apart


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


def arguments(events: Iterable[Event]) -> list[Args]:
    """The arguments of events, empty ones where there are none."""
    return [event.args or _NO_ARGS for event in events]


class EventDecoder:
    """Decodes spans of events.

    Times are doubles as long as these tell nanoseconds apart (traces with a base). The first
    span with larger fractional times (19 digits, torch 2.3) switches to decimals for good.
    Only events with a duration (`ph` X) whose category `kinds` maps to something are kept;
    `seen` counts all.
    """

    def __init__(self, kinds: Mapping[str, str | None], *, lines: bool = False) -> None:
        self.seen = 0
        self._kinds = kinds
        self._lines = lines
        self._exact = False
        self._unpadded: bool | None = None
        self._any = msgspec.json.Decoder(float_hook=Decimal)
        self._set_decoders(None)

    def _set_decoders(self, hook: type[Decimal] | None) -> None:
        self._array = msgspec.json.Decoder(list[Event | None], float_hook=hook)
        self._line = msgspec.json.Decoder(Event | None, float_hook=hook)

    def __call__(self, span: bytes | memoryview) -> list[Event] | None:
        """The events of a span that are kept; None when it is malformed."""
        try:
            events = self._typed(span)
        except msgspec.ValidationError:
            return self._untyped(span)
        except _FAULTS:
            return None
        return self._padded(events) if self._exact else events

    def _typed(self, span: bytes | memoryview) -> list[Event]:
        events = self._decode(span)
        kept = self._kept(events)
        if not self._exact and any(type(e.ts) is float and e.ts >= EXACT_US for e in kept):
            self._exact = True
            self._set_decoders(Decimal)
            kept = self._kept(self._decode(span))
        self.seen += len(events)
        return kept

    def _kept(self, events: Iterable[Event | None]) -> list[Event]:
        kinds = self._kinds
        return [e for e in events if e is not None and kinds[e.cat] and e.ph == "X"]

    def _decode(self, span: bytes | memoryview) -> list[Event | None]:
        if self._lines:
            return self._line.decode_lines(span)
        return self._array.decode(_as_list(span))

    def _untyped(self, span: bytes | memoryview) -> list[Event] | None:
        """Values of unexpected types become NULL instead of losing their event."""
        try:
            if self._lines:
                values = self._any.decode_lines(span)
            else:
                values = self._any.decode(_as_list(span))
        except _FAULTS:
            return None
        self.seen += len(values)
        return self._kept(map(_event, values))

    def _padded(self, events: list[Event]) -> list[Event]:
        """Nightlies of March 2024 wrote 7 ns as `.7`; give such fractions their zeros back."""
        if self._unpadded is None:
            self._unpadded = is_unpadded([event.ts for event in events])
        if self._unpadded:
            for event in events:
                event.ts, event.dur = _with_zeros(event.ts), _with_zeros(event.dur)
        return events


def _as_list(span: bytes | memoryview) -> bytes:
    return b"".join((b"[", span, b"]"))


def is_unpadded(times: Sequence[Any]) -> bool:
    """Whether fractions of microseconds are nanosecond counts without leading zeros.

    Such a writer makes short fractions, keeps trailing zeros and never writes a leading one;
    a padded writer makes no short ones, and a writer of doubles strips trailing zeros.
    """
    fractions = [f for time in times if isinstance(time, Decimal) and (f := _fraction(time))]
    return (
        any(len(f) < 3 for f in fractions)
        and any(len(f) == 3 and f.endswith("0") for f in fractions)
        and not any(len(f) > 3 or (len(f) > 1 and f.startswith("0")) for f in fractions)
    )


def _fraction(time: Decimal) -> str:
    return str(time).partition(".")[2]


def _with_zeros(time: Any) -> Any:
    if not isinstance(time, Decimal) or not time.is_finite():
        return time
    whole, _, fraction = str(time).partition(".")
    return Decimal(f"{whole}.{fraction.rjust(3, '0')}")


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
    if isinstance(value, bool):
        return None
    if isinstance(value, int | str):
        return value
    return int(value) if isinstance(value, Decimal) and value.is_finite() else None
