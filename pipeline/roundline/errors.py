"""Every error that Roundline raises on purpose.

    RoundlineError               exit code 3
    ├── UsageError               2  an option or argument has no meaning here
    │   └── UnknownNameError     2  a GPU, model, table or query that nobody knows
    ├── SourceError              3  a capture file is not understood or unusable
    │   ├── TruncatedSourceError 3  the writer died before the end
    │   └── NoGpuActivityError   3  nothing ran on a GPU in this capture
    ├── StoreError               3  a store is half-written, too new, or not a store
    ├── EvidenceError            3  the capture lacks what the analysis needs
    ├── CheckFailedError         1  a limit that the user set was exceeded
    └── ToolMissingError         4  an outside program is not installed

A message says what was seen, where, and what to do. It is one line.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class RoundlineError(Exception):
    """Base of all deliberate errors; `exit_code` is what the command line returns."""

    exit_code = 3


class UsageError(RoundlineError):
    """An option or argument has no meaning here."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that nobody knows, with the nearest known ones as a hint."""

    def __init__(self, kind: str, name: str, known: Iterable[str], advice: str) -> None:
        near = get_close_matches(name.lower(), sorted(known), n=3, cutoff=0.5)
        hint = f" (did you mean {', '.join(near)}?)" if near else ""
        super().__init__(f"unknown {kind} {name!r}{hint}: {advice}")


class SourceError(RoundlineError):
    """A capture file is not understood or unusable."""


class TruncatedSourceError(SourceError):
    """The writer of a capture file died before the end."""


class NoGpuActivityError(SourceError):
    """Nothing ran on a GPU in this capture."""


class StoreError(RoundlineError):
    """A store is half-written, too new, or not a store at all."""


class EvidenceError(RoundlineError):
    """The capture lacks what the requested analysis needs."""


class CheckFailedError(RoundlineError):
    """A limit that the user set was exceeded."""

    exit_code = 1


class ToolMissingError(RoundlineError):
    """An outside program is not installed."""

    exit_code = 4
