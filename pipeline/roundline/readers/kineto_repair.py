"""Repairs of single malformed events, each made only when the strict decoder refuses the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

_LIMIT_BYTES: Final = 1 << 18
_CONTROL: Final = re.compile(rb"[\x00-\x1f]")
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_ANY_STRING: Final = re.compile(_STRING, re.DOTALL)
_STRING_OR_WORD: Final = re.compile(
    _STRING + rb"|-?\b(?:nan|inf|infinity)\b", re.DOTALL | re.IGNORECASE
)
_BAD_ESCAPE: Final = re.compile(rb'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')
_SURROGATES: Final = re.compile(
    rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
# a string value ends at the quote that is followed by the next key or the end of its object
_VALUE: Final = re.compile(
    rb'("[\w .%()/-]{1,64}"\s*:\s*")(.*?)("\s*(?=,\s*"[\w .%()/-]{1,64}"\s*:|\}))', re.DOTALL
)
_QUOTE: Final = re.compile(rb'\\.|"', re.DOTALL)
_STRUCTURE: Final = re.compile(_STRING + rb"|[{}\[\]]", re.DOTALL)
_CATEGORY: Final = re.compile(rb'"cat"\s*:\s*"([^"\\]{1,64})"')


def repaired(event: bytes) -> Iterator[tuple[bytes, str]]:
    """Ever more repaired texts of one event, each with what was repaired last."""
    if len(event) > _LIMIT_BYTES:
        return
    for repair, reason in _REPAIRS:
        mended = repair(event)
        if mended != event:
            event = mended
            yield event, reason


def category_of(event: bytes) -> str | None:
    """Category that a malformed event names."""
    match = _CATEGORY.search(event)
    return match[1].decode("utf-8", "replace") if match else None


def end_of_object(text: bytes, start: int) -> int:
    """Offset after the object that begins at `start`; 0 if it is not closed."""
    depth = 0
    for match in _STRUCTURE.finditer(text, start):
        character = match[0]
        if character in (b"{", b"["):
            depth += 1
        elif character in (b"}", b"]"):
            depth -= 1
            if depth <= 0:
                return match.end() if depth == 0 else 0
    return 0


def _valid_utf8(event: bytes) -> bytes:
    return event.decode("utf-8", "replace").encode()


def _escaped_control(event: bytes) -> bytes:
    def escape(control: re.Match[bytes]) -> bytes:
        return b"\\u%04x" % control[0][0]

    def inside(string: re.Match[bytes]) -> bytes:
        return _CONTROL.sub(escape, string[0])

    return _ANY_STRING.sub(inside, event)


def _valid_escapes(event: bytes) -> bytes:
    return _BAD_ESCAPE.sub(lambda m: m[0] if m[1] else b"\\\\", event)


def _paired_surrogates(event: bytes) -> bytes:
    return _SURROGATES.sub(lambda m: m[1] or b"\\ufffd", event)


def _numbers(event: bytes) -> bytes:
    return _STRING_OR_WORD.sub(lambda m: m[0] if m[0].startswith(b'"') else b"null", event)


def _escaped_quotes(event: bytes) -> bytes:
    def escape(quote: re.Match[bytes]) -> bytes:
        return b'\\"' if quote[0] == b'"' else quote[0]

    return _VALUE.sub(lambda m: m[1] + _QUOTE.sub(escape, m[2]) + m[3], event)


_REPAIRS: Final[tuple[tuple[Callable[[bytes], bytes], str], ...]] = (
    (_valid_utf8, "invalid UTF-8"),
    (_escaped_control, "a raw control character inside a string"),
    (_valid_escapes, "an invalid escape inside a string"),
    (_paired_surrogates, "half a surrogate pair"),
    (_numbers, "a number that JSON does not know"),
    (_escaped_quotes, "an unescaped quote inside a string"),
    (_escaped_control, "a raw control character inside a string"),
    (_valid_escapes, "an invalid escape inside a string"),
)
