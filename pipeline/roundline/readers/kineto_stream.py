"""A torch trace as a stream of whole events: inflated, cut and recovered in bounded memory.

A trace is cut at the last boundary between events that a buffer holds; that the part before it
decodes proves the cut. What does not decode is bisected down to the events at fault, which are
repaired or counted, so that one bad name costs one event's work and not the file's.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from roundline.errors import SourceError, TruncatedSourceError
from roundline.readers.contract import Progress

_READ: Final = 1 << 18
_INFLATED: Final = 1 << 20
_BUFFER: Final = 2 << 20
_EVENT_LIMIT: Final = 64 << 20  # no event is larger; a bomb is
_KEYS: Final = rb'"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s|cname|sf|stack|tts|tdur|finished)"'
_MERGES: Final = 8  # pieces that may turn out to be one event whose arguments look like events
_START: Final = re.compile(rb"\{\s*" + _KEYS)
_BOUNDARY: Final = re.compile(rb"\}(\s*,?\s*)(?=\{\s*" + _KEYS + rb")")
_ARRAY_END: Final = re.compile(rb"[}\[,]\s*\](?=\s*(?:,\s*\"|\}|$))")
_EVENTS_KEY: Final = re.compile(rb'"traceEvents"\s*:\s*\[')


class Event(msgspec.Struct, gc=False):
    """One trace event; times, ids and arguments stay raw text until somebody wants them."""

    ph: str = ""
    cat: str = ""
    name: Any = ""
    pid: msgspec.Raw = msgspec.Raw()
    tid: msgspec.Raw = msgspec.Raw()
    ts: msgspec.Raw = msgspec.Raw()
    dur: msgspec.Raw = msgspec.Raw()
    args: msgspec.Raw = msgspec.Raw()


_decode: Final = msgspec.json.Decoder(list[Event | None]).decode
_decode_one: Final = msgspec.json.Decoder(Event).decode


@dataclass
class Losses:
    """What had to be repaired or given up, with the byte offset of the first of each."""

    repaired: dict[str, tuple[int, int]] = field(default_factory=dict)
    rejected: int = 0
    rejected_gpu: int = 0
    first_rejected: int = 0
    header: str = ""

    def repair(self, kind: str, offset: int) -> None:
        """Count a repaired event."""
        count, first = self.repaired.get(kind, (0, offset))
        self.repaired[kind] = (count + 1, first)

    def reject(self, text: bytes, offset: int) -> None:
        """Count an event that could not be read."""
        if not self.rejected:
            self.first_rejected = offset
        self.rejected += 1
        self.rejected_gpu += bool(re.search(rb'"cat"\s*:\s*"(?:gpu_mem|[kK]ernel|Mem)', text))


class TraceStream:
    """The events of one file, in file order, and the metadata around them."""

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self.metadata: dict[str, Any] = {}
        self.losses = Losses()
        self.events = 0
        self.truncated = False
        self._progress = progress
        self._offset = 0
        self._gzip_cut = False
        self._lines = False

    def batches(self, *, allow_truncated: bool) -> Iterator[list[Event]]:
        """Lists of events; metadata is complete when the iterator is exhausted.

        Raises:
            SourceError: no trace, two writers in one file, or an event beyond all bounds.
            TruncatedSourceError: the file ends inside the events and that is not allowed.
        """
        chunks = self._inflated()
        buffer, in_array = self._head(chunks)
        if not in_array:
            raise SourceError(f"{self.path} is JSON without traceEvents: no torch-profiler trace")
        ended = False
        for chunk in chunks:
            buffer += chunk
            if len(buffer) < _BUFFER:
                continue
            events, buffer, ended = self._cut(buffer)
            if events:
                yield events
            if ended:
                break
            if len(buffer) > _EVENT_LIMIT:
                raise SourceError(
                    f"{self.path}: no end of an event within {_EVENT_LIMIT >> 20} MB before byte"
                    f" {self._offset + len(buffer)}: this is no trace"
                )
        if not ended:
            events, buffer, ended = self._last(buffer)
            if events:
                yield events
        self.truncated = not ended or self._gzip_cut
        if self.truncated and not allow_truncated:
            raise TruncatedSourceError(
                f"{self.path} is truncated after {self.events:,} complete events: its writer died;"
                " --allow-truncated keeps what is there"
            )
        self._tail(buffer + b"".join(self._bounded(chunks)))

    def _inflated(self) -> Iterator[bytes]:
        """The file's bytes, inflated where it is gzip, never more than a bounded piece at once."""
        size, done = self.path.stat().st_size, 0
        with self.path.open("rb") as file:
            raw = file.read(_READ)
            inflate: Any = zlib.decompressobj(31) if raw.startswith(b"\x1f\x8b") else None
            while raw:
                done += len(raw)
                if self._progress is not None:
                    self._progress(done, size)
                if inflate is None:
                    yield raw
                else:
                    inflate = yield from self._members(inflate, raw)
                raw = file.read(_READ)
        self._gzip_cut = inflate is not None and not inflate.eof

    def _members(self, inflate: Any, raw: bytes) -> Generator[bytes, None, Any]:
        """Inflate one read across members; padding and garbage after the last one are skipped."""
        while raw:
            if inflate.eof:
                raw = raw.lstrip(b"\x00")
                if not raw.startswith(b"\x1f\x8b"):
                    return inflate
                inflate = zlib.decompressobj(31)
            try:
                piece = inflate.decompress(raw, _INFLATED)
            except zlib.error as error:
                raise SourceError(f"{self.path}: damaged gzip ({error})") from error
            if piece:
                yield piece
            raw = inflate.unconsumed_tail or inflate.unused_data
        return inflate

    def _head(self, chunks: Iterator[bytes]) -> tuple[bytes, bool]:
        """Find where the events begin; the text before is metadata. Returns what follows."""
        head = b""
        for chunk in chunks:
            head += chunk
            text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
            if text.startswith(b"[") or (_START.match(text) and b'"ph"' in text[:4096]):
                self._lines = not text.startswith(b"[")
                body = text if self._lines else text[1:]
                self._offset = len(head) - len(body)
                return body, True
            for hit in _EVENTS_KEY.finditer(head):
                if self._is_head(head[: hit.start()]):
                    self._offset = hit.end()
                    return head[hit.end() :], True
            if len(head) > _EVENT_LIMIT:
                break
        return self._damaged_head(head)

    def _damaged_head(self, head: bytes) -> tuple[bytes, bool]:
        """A header that does not parse: keep the events, save what metadata can be told."""
        hit = _EVENTS_KEY.search(head)
        if hit is None:
            return b"", False
        self.losses.header = "the header is no valid JSON"
        self._salvage(head[: hit.start()])
        self._offset = hit.end()
        return head[hit.end() :], True

    def _is_head(self, text: bytes) -> bool:
        """Whether the text before `"traceEvents"` is the beginning of an object."""
        try:
            found = json.loads(text.decode("utf-8-sig") + '"traceEvents": 0}')
        except ValueError:
            return False
        self._merge(found)
        return True

    def _cut(self, buffer: bytes) -> tuple[list[Event], bytes, bool]:
        """Decode up to the last boundary, or up to the array's end if it is in the buffer."""
        cuts = self._last_boundaries(buffer)
        for cut in cuts:
            events = self._try(buffer[: cut.start() + 1])
            if events is not None:
                break
        else:
            until_end = self._until_end(buffer)
            if until_end is not None or not cuts:
                return until_end or ([], buffer, False)
            cut = cuts[0]
            events = self._recover(buffer[: cut.start() + 1], self._offset)
        self._offset += cut.end()
        self.events += len(events)
        return events, buffer[cut.end() :], False

    def _last_boundaries(self, buffer: bytes) -> list[re.Match[bytes]]:
        """The last few places where one event seems to end and another to begin, latest first."""
        found: list[re.Match[bytes]] = []
        end = len(buffer)
        while len(found) < _MERGES and (end := buffer.rfind(b"}", 0, end)) >= 0:
            match = _BOUNDARY.match(buffer, end)
            if match:
                found.append(match)
        return found

    def _last(self, buffer: bytes) -> tuple[list[Event], bytes, bool]:
        """What is left at the end of the file: the array's end, or a torn event."""
        until_end = self._until_end(buffer)
        if until_end is not None:
            return until_end
        stripped = buffer.rstrip(b"\x00 \t\r\n")
        if not stripped.rstrip(b",").strip():
            return [], b"", False
        whole = self._try(stripped.rstrip(b","))
        if whole is None:
            whole = self._recover(stripped, self._offset, torn=True)
        self.events += len(whole)
        # newline-delimited events have no array to end
        return whole, b"", self._lines and stripped.endswith(b"}")

    def _until_end(self, buffer: bytes) -> tuple[list[Event], bytes, bool] | None:
        """Events up to the end of the array and what follows it; None if it is not in here."""
        for match in _ARRAY_END.finditer(buffer):
            stop = match.end() - 1
            part = buffer[:stop].rstrip().removesuffix(b",")
            if not self._tail_is_metadata(buffer[match.end() :]):
                continue
            events = self._try(part)
            if events is None:
                events = self._recover(part, self._offset)
            self._offset += match.end()
            self.events += len(events)
            return events, buffer[match.end() :], True
        if not buffer.strip().removeprefix(b"]").strip(b"} \t\r\n"):
            return ([], b"", True) if b"]" in buffer else None
        return None

    @staticmethod
    def _tail_is_metadata(text: bytes) -> bool:
        """After the array come keys of the top level, never another event."""
        start = text.lstrip()
        return not _START.search(start[:256]) and b'"ph"' not in start[:4096]

    def _try(self, part: bytes) -> list[Event] | None:
        try:
            events = _decode(b"[" + part + b"]")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return [event for event in events if event is not None]

    def _recover(self, part: bytes, offset: int, *, torn: bool = False) -> list[Event]:
        """Bisect over event boundaries; leaves that fail are repaired or rejected."""
        if b'"schemaVersion"' in part and _EVENTS_KEY.search(part):
            raise SourceError(
                f"{self.path}: a second trace begins before byte {offset + len(part)}: interleaved"
                " writers wrote one file, capture with one file per rank"
            )
        cuts = [0, *(m.end() for m in _BOUNDARY.finditer(part)), len(part)]
        found: list[list[Event] | tuple[bytes, int]] = []
        self._bisect(part, cuts, offset, found)
        events: list[Event] = []
        while found:
            item = found.pop(0)
            if isinstance(item, list):
                events += item
                continue
            pieces = [item]
            while found and not isinstance(found[0], list):
                pieces.append(found.pop(0))  # type: ignore[arg-type]  # the loop has just checked
            events += self._mend(pieces, torn=torn and not found)
        return events

    def _bisect(
        self,
        part: bytes,
        cuts: list[int],
        offset: int,
        found: list[list[Event] | tuple[bytes, int]],
    ) -> None:
        text = part[cuts[0] : cuts[-1]].strip().removesuffix(b",").removeprefix(b",")
        decoded = self._try(text)
        if decoded is not None:
            found.append(decoded)
        elif len(cuts) > 2:
            middle = len(cuts) // 2
            self._bisect(part, cuts[: middle + 1], offset, found)
            self._bisect(part, cuts[middle:], offset, found)
        else:
            found.append((part[cuts[0] : cuts[-1]], offset + cuts[0]))

    def _mend(self, pieces: list[tuple[bytes, int]], *, torn: bool) -> list[Event]:
        """Neighbouring pieces that fail: parts of one event, or events at fault."""
        events: list[Event] = []
        while pieces:
            for length in range(1, min(_MERGES, len(pieces)) + 1):
                text = b"".join(piece for piece, _ in pieces[:length]).strip().strip(b",")
                whole = self._try(text)
                if whole is not None:
                    events += whole
                    del pieces[:length]
                    break
            else:
                piece, offset = pieces.pop(0)
                event = self._repair(piece.strip().strip(b","), offset)
                if event is not None:
                    events.append(event)
                elif pieces or not torn:
                    self.losses.reject(piece, offset)
        return events

    def _repair(self, text: bytes, offset: int) -> Event | None:
        repaired = text
        for kind, repair in _REPAIRS:
            repaired = repair(repaired)
            if repaired == text:
                continue
            try:
                event = _decode_one(repaired)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            self.losses.repair(kind, offset)
            return event
        return None

    def _bounded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        left = _EVENT_LIMIT
        for chunk in chunks:
            if left > 0:
                yield chunk[:left]
            left -= len(chunk)

    def _tail(self, text: bytes) -> None:
        """Metadata that stands after the events."""
        stripped = text.strip().removeprefix(b",").rstrip(b"\x00 \t\r\n")
        if not stripped or stripped == b"}":
            return
        try:
            self._merge(json.loads(b"{" + stripped))
        except ValueError:
            self._salvage(stripped)
            self.losses.header = self.losses.header or "the metadata after the events is damaged"

    def _merge(self, found: dict[str, Any]) -> None:
        self.metadata |= {key: value for key, value in found.items() if key != "traceEvents"}

    def _salvage(self, text: bytes) -> None:
        """Keys that matter, from metadata that does not parse."""
        base = re.search(rb'"baseTimeNanoseconds"\s*:\s*(\d+)', text)
        if base:
            self.metadata.setdefault("baseTimeNanoseconds", int(base[1]))
        rank = re.search(rb'"rank"\s*:\s*"?(\d+)', text)
        size = re.search(rb'"world_size"\s*:\s*"?(\d+)', text)
        if rank:
            info = {"rank": int(rank[1]), "world_size": int(size[1]) if size else None}
            self.metadata.setdefault("distributedInfo", info)


def _escape_controls(text: bytes) -> bytes:
    return re.sub(
        rb"[\x00-\x1f]", lambda m: b" " if m[0] in b"\t\r\n" else b"\\u%04x" % m[0][0], text
    )


def _drop_controls(text: bytes) -> bytes:
    return re.sub(rb"[\x00-\x1f]", b" ", text)


def _null_numbers(text: bytes) -> bytes:
    return re.sub(rb"(:\s*|[\[,]\s*)-?(?:NaN|nan|Infinity|inf)\b", rb"\1null", text)


def _valid_utf8(text: bytes) -> bytes:
    return text.decode("utf-8", errors="replace").encode("utf-8", errors="replace")


def _escape_backslashes(text: bytes) -> bytes:
    return re.sub(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})', rb"\\\\", text)


def _lone_surrogates(text: bytes) -> bytes:
    return re.sub(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}", rb"?", text)


def _escape_quotes(text: bytes) -> bytes:
    """Quotes inside the name: it ends where the next key of an event begins."""
    match = re.search(
        rb'("name"\s*:\s*")(.*)("\s*,\s*"(?:ph|cat|pid|tid|ts|dur|args)"\s*:)', text, re.DOTALL
    )
    if not match:
        return text
    end = re.search(rb'"\s*,\s*"(?:ph|cat|pid|tid|ts|dur|args)"\s*:', text[match.start(2) :])
    stop = match.start(2) + end.start() if end else match.end(2)
    name = text[match.start(2) : stop].replace(b'\\"', b'"').replace(b'"', b'\\"')
    return text[: match.start(2)] + name + text[stop:]


_REPAIRS: Final[tuple[tuple[str, Callable[[bytes], bytes]], ...]] = (
    ("a raw control character inside an event name", _escape_controls),
    ("a number that JSON does not have", _null_numbers),
    ("invalid UTF-8", _valid_utf8),
    ("an invalid escape", _escape_backslashes),
    ("a lone surrogate", _lone_surrogates),
    ("unescaped quotes in a name", _escape_quotes),
    ("control characters", _drop_controls),
)
