"""The bytes of a trace file, decompressed in pieces of bounded size."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from roundline.errors import SourceError
from roundline.readers.contract import Progress

PIECE_BYTES: Final = 1 << 20

_MAGIC: Final = {
    b"\x28\xb5\x2f\xfd": "zstd-compressed: decompress it with `zstd -d`",
    b"\xfd7zXZ": "xz-compressed: decompress it with `xz -d`",
    b"BZh": "bzip2-compressed: decompress it with `bzip2 -d`",
    b"PK\x03\x04": "a zip archive: unpack it",
    b"\xff\xfe": "UTF-16 text: convert it to UTF-8",
    b"\xfe\xff": "UTF-16 text: convert it to UTF-8",
}
_GZIP: Final = b"\x1f\x8b"


class Pieces:
    """The decompressed bytes of a file; `damage` says why they ended before their time."""

    def __init__(self, path: Path, progress: Progress | None) -> None:
        self.damage: str | None = None
        self._path = path
        self._progress = progress
        self._size = path.stat().st_size

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            magic = file.read(6)
            file.seek(0)
            for prefix, what in _MAGIC.items():
                if magic.startswith(prefix):
                    raise SourceError(f"{self._path} is {what}, then read it again")
            yield from self._members(file) if magic.startswith(_GZIP) else self._plain(file)

    def _read(self, file: BinaryIO) -> bytes:
        data = file.read(PIECE_BYTES >> 2)
        if self._progress is not None:
            self._progress(file.tell(), self._size)
        return data

    def _plain(self, file: BinaryIO) -> Iterator[bytes]:
        while data := self._read(file):
            yield data

    def _members(self, file: BinaryIO) -> Iterator[bytes]:
        """Every gzip member; padding between them and garbage after them is passed over."""
        data = b""
        while data := data.lstrip(b"\0") or self._read(file):
            if not (stripped := data.lstrip(b"\0")):
                continue
            data = stripped if len(stripped) > 1 else stripped + self._read(file)
            if not data.startswith(_GZIP):
                return
            data = yield from self._member(file, data)

    def _member(self, file: BinaryIO, data: bytes) -> Generator[bytes, None, bytes]:
        inflater = zlib.decompressobj(wbits=31)
        try:
            while not inflater.eof:
                data = data or self._read(file)
                if not data:
                    yield inflater.flush()
                    self.damage = "the gzip stream ends before its trailer"
                    return b""
                yield inflater.decompress(data, PIECE_BYTES)
                data = inflater.unconsumed_tail
        except zlib.error as error:
            self.damage = f"the gzip stream is damaged ({error})"
            return b""
        return inflater.unused_data
