"""What every engine's log has in common: lines, their time, and the windows that they state."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, Final, Protocol

_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9})\d*)?(Z|[+-]\d\d:?\d\d)?"
)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")

_COUNTS: Final = ("dp_rank", "running_requests", "queued_requests", "rounds")
_MEASURES: Final = ("gen_tokens_per_s", "accept_len", "accept_rate", "round_ms")

# Why a window says nothing of a decode round.
IDLE: Final = "idle"
PREFILL: Final = "prefill"
BATCH_CHANGED: Final = "batch_changed"
NOT_TIMED: Final = "not_timed"


class MalformedLineError(ValueError):
    """A line that an engine prints for each window, but not in any known shape."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log; `wall_clock_ns` reads a time without zone as UTC."""

    number: int
    text: str
    wall_clock_ns: int | None
    timestamp: str | None


@dataclass(frozen=True, slots=True)
class Window:
    """One row of `log_windows`; `fields` is a JSON object. Rates are of all running requests."""

    line: int
    engine: str
    kind: str
    fields: str
    wall_clock_ns: int | None = None
    dp_rank: int | None = None
    running_requests: int | None = None
    queued_requests: int | None = None
    gen_tokens_per_s: float | None = None
    accept_len: float | None = None
    accept_rate: float | None = None
    rounds: int | None = None
    round_ms: float | None = None
    unusable_because: str | None = None


def check_window(window: Window) -> None:
    """Refuse numbers that no server prints; a damaged line may hold any digits.

    Raises:
        MalformedLineError: a number is beyond its column, or not finite.
    """
    for name in _COUNTS:
        count = getattr(window, name)
        if count is not None and not 0 <= count < 1 << 31:
            raise MalformedLineError(f"{name} {count}")
    for name in _MEASURES:
        measure = getattr(window, name)
        if measure is not None and not isfinite(measure):
            raise MalformedLineError(f"{name} {measure}")


class LogParser(Protocol):
    """Turns one engine's lines into windows; what a window lacks may come with a later line."""

    def owns(self, text: str) -> bool:
        """Whether this engine prints such a line. Cheap: it is asked of every line."""

    def feed(self, line: Line) -> Iterator[Window]:
        """Windows that are settled once `line` is known.

        Raises:
            MalformedLineError: the line has no known shape.
        """

    def finish(self) -> Iterator[Window]:
        """Windows that no later line can change any more."""


def parse_line(number: int, raw: str) -> Line:
    """A line without colours, with the times that are printed on it.

    Collectors (Docker, Kubernetes) print a time with its zone before the engine's own, which has
    none: the first is exact and gives the wall clock, the last is the engine's.
    """
    text = _COLOUR.sub("", raw).rstrip()
    times = list(_TIME.finditer(text))
    if not times:
        return Line(number, text, None, None)
    exact = next((time for time in times if time[8]), times[-1])
    return Line(number, text, _unix_ns(exact), times[-1][0])


def _unix_ns(time: re.Match[str]) -> int | None:
    try:
        moment = datetime.fromisoformat(f"{time[1]}-{time[2]}-{time[3]}T{_clock(time)}+00:00")
    except ValueError:  # month 13: a number, not a time
        return None
    zone = time[8] or "Z"
    offset_s = 0
    if zone != "Z":
        minutes = int(zone[1:3]) * 60 + int(zone[-2:])
        offset_s = minutes * (-60 if zone[0] == "-" else 60)
    nanoseconds = int((time[7] or "0").ljust(9, "0"))
    unix_ns = (int(moment.timestamp()) - offset_s) * 1_000_000_000 + nanoseconds
    return unix_ns if 0 <= unix_ns < 1 << 63 else None


def _clock(time: re.Match[str]) -> str:
    return f"{time[4]}:{time[5]}:{time[6]}"


def number(text: str | None) -> float | None:
    """The number that a text begins with (`69.4%`, `12.3ms`); None where there is none."""
    match = re.match(r"\s*([+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)", text or "")
    return float(match[1]) if match else None


def integer(text: str | None) -> int | None:
    """As `number`, for counts."""
    value = number(text)
    return None if value is None else int(value)


def as_json(fields: dict[str, Any]) -> str:
    """Fields as a JSON object in their order, without those that were not printed."""
    printed = {key: value for key, value in fields.items() if value is not None}
    return json.dumps(printed, ensure_ascii=False)
