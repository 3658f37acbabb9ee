"""Times of a torch trace: text of microseconds to exact integer nanoseconds."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

_EPOCH_US: Final = 10**15  # microseconds: later than 2001, so an absolute time


def nanoseconds(text: bytes) -> int | None:
    """Exact nanoseconds of a JSON number or string of microseconds; None if it is neither.

    A fraction of a nanosecond (digits that a double printed) is rounded to the nearest one.
    """
    text = text.strip(b' "')
    whole, point, fraction = text.partition(b".")
    if not point:
        return int(text) * 1000 if text.lstrip(b"-").isdigit() else _decimal(text)
    if len(fraction) <= 3 and fraction.isdigit() and whole.lstrip(b"-").isdigit():
        sign = -1 if whole.startswith(b"-") else 1
        return int(whole) * 1000 + sign * int(fraction.ljust(3, b"0"))
    return _decimal(text)


def _decimal(text: bytes) -> int | None:
    try:
        value = Decimal(text.decode("ascii", errors="replace"))
        return int((value * 1000).to_integral_value()) if value.is_finite() else None
    except (InvalidOperation, ValueError):
        return None


def is_absolute(start_ns: int) -> bool:
    """Whether times without a base are Unix times: microseconds since 1970, not since the start."""
    return start_ns >= _EPOCH_US * 1000
