"""The text of a torch trace, in bounded memory: bytes in, spans of whole events out.

The document is never parsed as a whole. A buffer of a few MB is cut at its last event boundary
and decoded; a decode that succeeds proves that the cut was outside strings and nesting. What
fails is bisected over its boundaries until single events remain, which are repaired or counted
as lost.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final, Generic, TypeVar

from roundline.errors import SourceError
from roundline.readers.kineto_repair import category_of, end_of_object, repaired

Event = TypeVar("Event")
Decode = Callable[["bytes | memoryview"], "list[Event] | None"]

CHUNK_BYTES: Final = 1 << 20
LIMIT_BYTES: Final = 32 << 20  # of one event, and of the text before or after the events

_BLANK: Final = b" \t\r\n"
_BOUNDARY: Final = re.compile(rb"\}\s*(?:,\s*)*\{")
_SEPARATORS: Final = re.compile(rb"[\s,]*")
_COMMA_BEFORE: Final = re.compile(rb"\}\s*(?:,\s*)+$")
_BRACE_BEFORE: Final = re.compile(rb"\}\s*(?:,\s*)*$")
_ARRAY_END: Final = re.compile(rb"\}\s*(?:,\s*)*\](?=\s*(?:,|\}|$))")
_ONLY_END: Final = re.compile(rb"\s*(?:,\s*)*\]")
_MORE_EVENTS: Final = re.compile(rb'"traceEvents"\s*:\s*\[|"ph"\s*:\s*"[A-Za-z]"')
_SECOND_HEAD: Final = re.compile(rb'"traceEvents"\s*:\s*\[|"schemaVersion"\s*:\s*\d+\s*,')
_EVENT_START: Final = re.compile(rb'\{\s*"(?:ph|name|cat)"\s*:')
_ATTEMPTS: Final = 64
_SCANS: Final = 4
_STEPS: Final = 4096


@dataclass
class Losses:
    """What was wrong with events, and where in the decompressed text it began."""

    repaired: int = 0
    lost: dict[str | None, int] = field(default_factory=dict)
    first_offset: int | None = None
    reason: str = ""

    def note(self, offset: int, reason: str) -> None:
        """Remember where the first of them stands."""
        if self.first_offset is None:
            self.first_offset, self.reason = offset, reason


class EventStream(Generic[Event]):
    """Spans of whole events of an array (or of lines), decoded; then the text after them."""

    def __init__(
        self, path: Path, text: bytes, offset: int, pieces: Iterator[bytes], decode: Decode[Event]
    ) -> None:
        self.losses = Losses()
        self.ended = False
        self.tail = b""
        self._path = path
        self._text = text
        self._offset = offset
        self._pieces = pieces
        self._decode = decode

    def __iter__(self) -> Iterator[list[Event]]:
        wanted, more = CHUNK_BYTES, True
        while more and not self.ended:
            more = self._fill(wanted)
            before = len(self._text)
            yield from self._consume(_last_boundary(self._text), final=False)
            wanted = CHUNK_BYTES if len(self._text) < before else 2 * before
            self._refuse_endless(len(self._text))
        if not self.ended:
            yield from self._consume(len(self._text), final=True)
        self._read_tail()

    def _fill(self, wanted: int) -> bool:
        """Have `wanted` bytes at hand; False when the file has no more."""
        parts, size = [self._text], len(self._text)
        more = True
        while size < wanted and more:
            piece = next(self._pieces, None)
            more = piece is not None
            if piece and piece.strip(b"\0"):  # a crash leaves pages of NULs
                parts.append(piece)
                size += len(piece)
        self._text = b"".join(parts)
        return more

    def _consume(self, end: int, *, final: bool) -> Iterator[list[Event]]:
        text = self._text
        start = _separators(text)
        if start >= end:
            return
        events = self._decode(memoryview(text)[start:end])
        if events is not None:
            yield events
            used = end
        else:
            recovery = _Recovery(self._path, text[:end], self._offset, self._decode, self.losses)
            yield recovery.run(start, final=final)
            used = recovery.used
            self.ended = recovery.ended
        self._text = text[used:]
        self._offset += used

    def _refuse_endless(self, size: int) -> None:
        if size > LIMIT_BYTES:
            raise SourceError(
                f"{self._path}: no event ends within {LIMIT_BYTES >> 20} MB after byte"
                f" {self._offset}: this is no trace, or it is damaged; record it again"
            )

    def _read_tail(self) -> None:
        parts, size = [self._text], len(self._text)
        for piece in self._pieces:
            if size < LIMIT_BYTES:
                parts.append(piece)
                size += len(piece)
        self.tail = b"".join(parts).rstrip(b"\0")
        self._text = b""
        if self.ended and (match := _MORE_EVENTS.search(self.tail)):
            raise _second_trace(self._path, self._offset + match.start())


def _second_trace(path: Path, offset: int) -> SourceError:
    return SourceError(
        f"{path}: interleaved writers: a second trace begins near byte {offset};"
        " give every rank a file of its own"
    )


def _separators(text: bytes) -> int:
    match = _SEPARATORS.match(text)
    return match.end() if match else 0


def _last_boundary(text: bytes) -> int:
    """Where the last event but one ends; 0 if there is no boundary."""
    for pattern in (_COMMA_BEFORE, _BRACE_BEFORE):
        brace = len(text)
        for _ in range(_STEPS):
            brace = text.rfind(b"{", 0, brace)
            if brace <= 0:
                break
            start = max(0, brace - 256)
            if match := pattern.search(text[start:brace]):
                return start + match.start() + 1
    return 0


class _Recovery(Generic[Event]):
    """Reads what it can of a span that does not decode as a whole."""

    def __init__(
        self, path: Path, text: bytes, offset: int, decode: Decode[Event], losses: Losses
    ) -> None:
        self.ended = False
        self.used = len(text)
        self._path = path
        self._text = text
        self._offset = offset
        self._decode = decode
        self._losses = losses
        self._events: list[Event] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._resume = 0
        self._scans = _SCANS * len(text)  # bytes: a span of broken events stays linear
        self._stopped = False
        self._final = False

    def run(self, start: int, *, final: bool) -> list[Event]:
        """Events of the span; `ended` and `used` say how far it went."""
        self._final = final
        cuts = [(m.start() + 1, m.end() - 1) for m in _BOUNDARY.finditer(self._text, start)]
        self._starts = [start, *(after for _, after in cuts)]
        self._ends = [*(before for before, _ in cuts), len(self._text)]
        self._bisect(0, len(self._starts))
        return self._events

    def _bisect(self, first: int, last: int) -> None:
        first = max(first, bisect_left(self._starts, self._resume, first, last))
        if self._stopped or first >= last:
            return
        events = self._decode(self._text[self._starts[first] : self._ends[last - 1]])
        if events is not None:
            self._events += events
        elif last - first == 1:
            self._leaf(first)
        else:
            middle = (first + last) // 2
            self._bisect(first, middle)
            self._bisect(middle, last)

    def _leaf(self, index: int) -> None:
        start = self._starts[index]
        leaf = self._text[start : self._ends[index]]
        ends = list(islice(_ARRAY_END.finditer(leaf), _ATTEMPTS))
        if self._array_end(leaf, start, ends):
            return
        if match := _SECOND_HEAD.search(leaf, 0, ends[0].start() if ends else len(leaf)):
            raise _second_trace(self._path, self._offset + start + match.start())
        if self._mended_end(leaf, start, ends) or self._mended(leaf, start) or self._nested(index):
            return
        self._lose(index)

    def _array_end(self, leaf: bytes, start: int, ends: list[re.Match[bytes]]) -> bool:
        if match := _ONLY_END.match(leaf):
            return self._end_at(start + match.end(), [])
        for match in ends:
            events = self._decode(leaf[: match.start() + 1])
            if events is not None:
                return self._end_at(start + match.end(), events)
        return False

    def _mended_end(self, leaf: bytes, start: int, ends: list[re.Match[bytes]]) -> bool:
        for match in ends:
            if self._mended(leaf[: match.start() + 1], start):
                return self._end_at(start + match.end(), [])
        return False

    def _end_at(self, position: int, events: list[Event]) -> bool:
        self._events += events
        self.ended = self._stopped = True
        self.used = position
        return True

    def _mended(self, leaf: bytes, start: int) -> bool:
        for text, reason in repaired(leaf):
            events = self._decode(text)
            if events is not None:
                self._events += events
                self._losses.repaired += 1
                self._losses.note(self._offset + start, reason)
                return True
        return False

    def _nested(self, index: int) -> bool:
        """An event that holds `},{` itself: its end is where its braces balance."""
        start = self._starts[index]
        if self._scans <= 0:
            return False
        end = end_of_object(self._text, start)
        self._scans -= (end or len(self._text)) - start
        events = self._decode(self._text[start:end]) if end else None
        if events is None:
            return False
        self._events += events
        self._resume = end
        if match := _ONLY_END.match(self._text, end):
            return self._end_at(match.end(), [])
        following = bisect_left(self._ends, end)
        rest = self._text[end : self._ends[following]]
        if rest.strip(_BLANK + b",\0"):
            self._count_lost(rest, end)
        return True

    def _lose(self, index: int) -> None:
        start, end = self._starts[index], self._ends[index]
        leaf = self._text[start:end]
        if self._text.find(b'"ph"', end) < 0:
            closed = self._final and _ARRAY_END.search(leaf)
            if not closed:
                self._stopped = True  # cut by the end of this buffer, or of the file
                self.used = start
                return
            self._end_at(start + closed.end(), [])
            leaf = leaf[: closed.start() + 1]
        if not self._rescue_suffix(leaf, start):
            self._count_lost(leaf, start)

    def _rescue_suffix(self, leaf: bytes, start: int) -> bool:
        """A torn event may run into a whole one."""
        for match in islice(_EVENT_START.finditer(leaf, 1), _ATTEMPTS):
            events = self._decode(leaf[match.start() :])
            if events is not None:
                self._count_lost(leaf[: match.start()], start)
                self._events += events
                return True
        return False

    def _count_lost(self, text: bytes, start: int) -> None:
        category = category_of(text)
        self._losses.lost[category] = self._losses.lost.get(category, 0) + 1
        self._losses.note(self._offset + start, "text that is no event")
