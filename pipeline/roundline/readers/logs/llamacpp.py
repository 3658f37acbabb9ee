"""llama.cpp server: a block of timings for each request when it ends.

Every verify step emits one token beside the accepted drafts, so verify steps = generated tokens -
accepted tokens, and a round took the generation time divided by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from roundline.readers.logs.lines import (
    IDLE,
    PREFILL,
    Line,
    MalformedLineError,
    Window,
    as_json,
    number,
)

_TIMING: Final = re.compile(
    r"\b(prompt eval|eval) time\s*=\s*([\d.]+)\s*ms\s*/\s*(\d+)\s*(?:tokens|runs)"
    r"(?:.*?([\d.]+)\s*tokens per second)?"
)
_GRAPHS: Final = re.compile(r"graphs reused\s*=\s*(\d+)")
_DRAFT: Final = re.compile(
    r"draft acceptance(?: rate)?\s*=\s*([\d.]+)\s*\(\s*(\d+) accepted\s*/\s*(\d+) generated\)"
)
_MEAN: Final = re.compile(r"mean (?:acceptance length|len)\s*=\s*([\d.]+)")
_PER_POSITION: Final = re.compile(r"acceptance rate per position\s*=\s*\(([^)]*)\)")
_STATISTICS: Final = re.compile(r"statistics\s+(\S+?):\s*(#calls.*)")
_DURATIONS: Final = re.compile(r"dur\(b,g,a\)\s*=\s*([\d.]+),\s*([\d.]+),\s*([\d.]+)\s*ms")
_SLOT: Final = re.compile(r"\bid\s+(\d+)\s*\|\s*task\s+(-?\d+)")
_MARKS: Final = ("eval time", "graphs reused", "draft acceptance", "statistics draft")


@dataclass(slots=True)
class _Eval:
    window: Window
    ms: float
    tokens: int


class LlamacppParser:
    """Timing blocks; several slots may print theirs at once."""

    def __init__(self) -> None:
        self._pending: dict[str, _Eval] = {}
        self._slot = ""

    def owns(self, text: str) -> bool:
        """Whether the line belongs to a timing block."""
        return any(mark in text for mark in _MARKS)

    def feed(self, line: Line) -> Iterator[Window]:
        """Timings at once; a generation waits for the acceptance that may follow."""
        slot = _SLOT.search(line.text)
        if slot is not None:
            self._slot = slot[2]
        timing, draft = _TIMING.search(line.text), _DRAFT.search(line.text)
        graphs, statistics = _GRAPHS.search(line.text), _STATISTICS.search(line.text)
        if timing is not None:
            yield from self._timing(line, timing)
        elif draft is not None:
            yield from self._draft(line, draft)
        elif graphs is not None:
            yield _window(line, "graphs", {"reused": int(graphs[1])})
        elif statistics is not None:
            yield _window(line, "statistics", _statistics(statistics))
        else:
            raise MalformedLineError(line.text)

    def finish(self) -> Iterator[Window]:
        """Generations without drafts."""
        for slot in list(self._pending):
            yield from self._plain(slot)

    def _timing(self, line: Line, timing: re.Match[str]) -> Iterator[Window]:
        ms, tokens = float(timing[2]), int(timing[3])
        rate = number(timing[4])
        fields = {"ms": ms, "tokens": tokens, "tok_s": rate}
        if timing[1] == "prompt eval":
            yield from self._plain(self._slot)
            yield replace(_window(line, "prompt", fields), unusable_because=PREFILL)
            return
        yield from self._plain(self._slot)
        window = replace(_window(line, "eval", fields), gen_tokens_per_s=rate)
        self._pending[self._slot] = _Eval(window, ms, tokens)

    def _plain(self, slot: str) -> Iterator[Window]:
        """A generation that no acceptance followed: one token a round."""
        pending = self._pending.pop(slot, None)
        if pending is None:
            return
        if not pending.tokens or not pending.ms:
            yield replace(pending.window, unusable_because=IDLE)
            return
        round_ms = pending.ms / pending.tokens
        yield replace(pending.window, rounds=pending.tokens, round_ms=round_ms)

    def _draft(self, line: Line, draft: re.Match[str]) -> Iterator[Window]:
        accepted, drafted = int(draft[2]), int(draft[3])
        pending = self._pending.pop(self._slot, None)
        steps = pending.tokens - accepted if pending else 0
        fields = _draft_fields(line.text, float(draft[1]), accepted, drafted)
        length = fields.get("mean_accept_len") or (1 + accepted / steps if steps > 0 else None)
        round_ms = pending.ms / steps if pending and steps > 0 else None
        if pending is not None:
            yield pending.window
        yield replace(
            _window(line, "spec", fields),
            accept_len=length,
            accept_rate=float(draft[1]),
            rounds=steps if steps > 0 else None,
            round_ms=round_ms,
            unusable_because=None if round_ms else IDLE,
        )


def _draft_fields(text: str, rate: float, accepted: int, drafted: int) -> dict[str, Any]:
    mean, positions = _MEAN.search(text), _PER_POSITION.search(text)
    rates = [number(part) for part in positions[1].split(",")] if positions else []
    return {
        "accepted": accepted, "drafted": drafted, "draft_accept_rate": rate,
        "mean_accept_len": float(mean[1]) if mean else None,
        "per_position": [rate for rate in rates if rate is not None] or None,
        "draft_steps": len(rates) or None,
    }  # fmt: skip


def _statistics(match: re.Match[str]) -> dict[str, Any]:
    durations = _DURATIONS.search(match[2])
    return {
        "drafter": match[1],
        "begin_ms": float(durations[1]) if durations else None,
        "generate_ms": float(durations[2]) if durations else None,
        "accept_ms": float(durations[3]) if durations else None,
    }


def _window(line: Line, kind: str, fields: dict[str, Any]) -> Window:
    details = {"timestamp": line.timestamp, **fields}
    return Window(
        line=line.number, engine="llama.cpp", kind=kind, fields=as_json(details),
        wall_clock_ns=line.wall_clock_ns,
    )  # fmt: skip
