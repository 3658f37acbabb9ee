"""Server logs of SGLang, vLLM, TensorRT-LLM and llama.cpp into `log_windows`.

Whatever a container, a log collector or Ray prints before an engine's text is passed over. A line
that cannot be read is counted, never guessed.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import astuple, fields
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from roundline.errors import SourceError
from roundline.readers.contract import (
    CAPABILITIES,
    Diagnostic,
    Progress,
    ReadOptions,
    Sink,
    SourceFacts,
    State,
    part_schema,
)
from roundline.readers.logs.lines import Window, check_window, parse_line
from roundline.readers.logs.llamacpp import LlamacppParser
from roundline.readers.logs.sglang import SglangParser
from roundline.readers.logs.trtllm import TrtllmParser
from roundline.readers.logs.vllm import VllmParser

_LINE_LIMIT: Final = 1 << 16  # bytes of a line that are looked at
_BATCH: Final = 8192
_COLUMNS: Final = tuple(field.name for field in fields(Window))


def read_server_log(
    path: Path, sink: Sink, options: ReadOptions, progress: Progress | None = None
) -> SourceFacts:
    """Read the statistics lines of one log, plain or gzipped.

    Raises:
        SourceError: the file cannot be inflated.
    """
    reading = _Reading()
    batch: list[Window] = []
    try:
        for window in reading.windows(path, progress):
            batch.append(window)
            if len(batch) == _BATCH:
                sink.write("log_windows", _table(batch))
                batch = []
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path}: {error}: the log is damaged, copy it again") from error
    if batch:
        sink.write("log_windows", _table(batch))
    capabilities: dict[str, State] = dict.fromkeys(CAPABILITIES, "absent")
    if reading.found:
        capabilities["log_windows"] = "present"
    return SourceFacts(
        producer=", ".join(sorted(reading.engines)) or "server log",
        producer_version=None, schema_version=None, wall_clock_base_ns=None, processes=(),
        devices=(), capabilities=capabilities, diagnostics=reading.diagnostics(),
    )  # fmt: skip


class _Reading:
    """One pass over a log, with what was found on the way."""

    def __init__(self) -> None:
        self.found = 0
        self.engines: set[str] = set()
        self._malformed = 0
        self._first_malformed = 0

    def windows(self, path: Path, progress: Progress | None) -> Iterator[Window]:
        """All windows, in no particular order."""
        parsers = (SglangParser(), VllmParser(), TrtllmParser(), LlamacppParser())
        for number, text in _lines(path, progress):
            for parser in parsers:
                if parser.owns(text):
                    windows = parser.feed(parse_line(number, text))
                    yield from self._counted(windows, number)
                    break
        for parser in parsers:
            yield from self._counted(parser.finish(), number=0)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Lines of an engine that could not be read."""
        if not self._malformed:
            return ()
        text = f"log lines of an unknown shape were passed over, first line {self._first_malformed}"
        return (Diagnostic("malformed_events", "warning", self._malformed, text),)

    def _counted(self, windows: Iterator[Window], number: int) -> Iterator[Window]:
        """Windows as they come, or one malformed line more."""
        try:
            for window in windows:
                check_window(window)
                self.found += 1
                self.engines.add(window.engine)
                yield window
        except (ValueError, ArithmeticError):  # numbers that are none, or beyond reason
            self._malformed += 1
            self._first_malformed = self._first_malformed or number


def _lines(path: Path, progress: Progress | None) -> Iterator[tuple[int, str]]:
    """Numbered lines, each cut to a bound: a log may hold one line without end."""
    size, done = path.stat().st_size, 0
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        file: IO[bytes] = gzip.open(raw) if is_gzip else raw  # type: ignore[assignment]  # noqa: SIM115
        number = 0
        while line := file.readline(_LINE_LIMIT):
            number += 1
            done += len(line)
            yield number, line.decode("utf-8", errors="replace")
            while line and not line.endswith(b"\n"):
                line = file.readline(_LINE_LIMIT)
                done += len(line)
            if progress is not None and number % _BATCH == 0:
                progress(min(done, size), size)
    if progress is not None:
        progress(size, size)


def _table(windows: list[Window]) -> pa.Table:
    schema = part_schema("log_windows")
    columns: list[tuple[Any, ...]] = list(zip(*map(astuple, windows), strict=True))
    arrays = [pa.array(columns[_COLUMNS.index(f.name)], f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
