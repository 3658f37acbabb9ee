"""Source files as they are now: which bytes they are, and whether they changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from roundline.errors import SourceError
from roundline.readers.sniff import SourceKind
from roundline.store.manifest import ManifestSource


@dataclass(frozen=True)
class Source:
    """One source; `modified` is size and time of change of each of its files."""

    path: Path
    kind: SourceKind
    bytes: int
    sha256: str
    modified: tuple[int, ...]


def fingerprint(path: Path, kind: SourceKind) -> Source:
    """Hash a file, or the files of a directory in order of their names."""
    digest = hashlib.sha256()
    size = 0
    modified = _modified(path)
    for file in _files(path):
        if file is not path:
            digest.update(f"{file.name}\n".encode())
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
                size += len(chunk)
    return Source(path, kind, size, digest.hexdigest(), modified)


def _modified(path: Path) -> tuple[int, ...]:
    """Size and time of change of every file of a source."""
    states = (file.stat() for file in _files(path))
    return tuple(number for state in states for number in (state.st_size, state.st_mtime_ns))


def _files(path: Path) -> list[Path]:
    return sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]


def refuse_changed(sources: Sequence[Source]) -> None:
    """Make sure that what was read is what was hashed.

    Raises:
        SourceError: a file changed in the meantime.
    """
    for source in sources:
        if _modified(source.path) != source.modified:
            raise SourceError(f"{source.path} changed while it was read: capture, then ingest")


def has_changed(original: Path, source: ManifestSource, manifest: Path) -> bool:
    """Whether a source is another than the one that was read; hashed only if it is newer."""
    if sum(file.stat().st_size for file in _files(original)) != source.bytes:
        return True
    read_ns = manifest.stat().st_mtime_ns
    if all(file.stat().st_mtime_ns <= read_ns for file in _files(original)):
        return False
    return fingerprint(original, SourceKind(source.kind)).sha256 != source.sha256
