"""TensorRT-LLM: one line per iteration; the device time printed is that of the one before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from roundline.readers.logs.lines import (
    BATCH_CHANGED,
    NOT_TIMED,
    PREFILL,
    Line,
    MalformedLineError,
    Window,
    as_json,
    integer,
    number,
)

_PAIR: Final = re.compile(r"'?([A-Za-z_]\w*)'?\s*[=:]\s*([^,{}\s]+(?:\s?(?:ms|s)\b)?)")
_ITERATION: Final = re.compile(r"\biter\s*=\s*(\d+)")


@dataclass(slots=True)
class _Iteration:
    line: Line
    number: int
    rank: int
    scheduled: int | None
    context: int
    generation_tokens: int
    host_ms: float | None
    device_ms_before: float | None
    states_device_time: bool
    accept_len: float | None
    batch_changed: bool

    @property
    def draft_steps(self) -> int | None:
        """(1 + draft length) tokens for each generation request."""
        requests = (self.scheduled or 0) - self.context
        tokens = self.generation_tokens
        return tokens // requests - 1 if requests > 0 and tokens % requests == 0 else None


class TrtllmParser:
    """Iteration lines of every rank that prints them."""

    def __init__(self) -> None:
        self._pending: dict[int, _Iteration] = {}

    def owns(self, text: str) -> bool:
        """Whether the line is an iteration line."""
        return "iter" in text and ("states" in text or "host_step_time" in text) and bool(
            _ITERATION.search(text)
        )  # fmt: skip

    def feed(self, line: Line) -> Iterator[Window]:
        """The iteration before, which this line times."""
        iteration = self._iteration(line)
        before = self._pending.get(iteration.rank)
        self._pending[iteration.rank] = iteration
        if before is not None:
            follows = iteration.number == before.number + 1
            yield _window(before, iteration.device_ms_before if follows else None)

    def finish(self) -> Iterator[Window]:
        """The last iterations; nothing times them."""
        for iteration in self._pending.values():
            yield _window(iteration, None)

    def _iteration(self, line: Line) -> _Iteration:
        pairs = dict(_PAIR.findall(line.text))
        count = integer(pairs.get("iter"))
        context = integer(pairs.get("num_ctx_requests"))
        tokens = integer(pairs.get("num_generation_tokens"))
        if count is None or context is None or tokens is None:
            raise MalformedLineError(line.text)
        rank = integer(pairs.get("global_rank")) or 0
        before = self._pending.get(rank)
        return _Iteration(
            line=line, number=count, rank=rank,
            scheduled=integer(pairs.get("num_scheduled_requests")), context=context,
            generation_tokens=tokens, host_ms=_milliseconds(pairs, "host_step_time")
            or _milliseconds(pairs, "elapsed_time"),
            device_ms_before=_milliseconds(pairs, "prev_device_step_time"),
            states_device_time="prev_device_step_time" in pairs,
            accept_len=number(pairs.get("acceptance_length")),
            batch_changed=before is not None and before.generation_tokens not in (0, tokens),
        )  # fmt: skip


def _milliseconds(pairs: dict[str, str], key: str) -> float | None:
    """`12.3ms`, `0.0123s` or a bare number of seconds."""
    text = pairs.get(key, "")
    value = number(text)
    if value is None:
        return None
    return value if text.endswith("ms") else value * 1000


def _window(iteration: _Iteration, device_ms: float | None) -> Window:
    # the oldest versions time the loop alone, which in steady decoding is the round
    loop_ms = iteration.host_ms if not iteration.states_device_time else None
    round_ms = device_ms if device_ms is not None else loop_ms
    reason = _reason(iteration, round_ms)
    fields: dict[str, Any] = {
        "timestamp": iteration.line.timestamp, "iter": iteration.number,
        "host_step_ms": iteration.host_ms,
        "device_step_ms_of_previous": iteration.device_ms_before, "device_step_ms": device_ms,
        "ctx_requests": iteration.context, "generation_tokens": iteration.generation_tokens,
        "draft_steps": iteration.draft_steps,
    }  # fmt: skip
    return Window(
        line=iteration.line.number, engine="trtllm", kind="iter", fields=as_json(fields),
        wall_clock_ns=iteration.line.wall_clock_ns, dp_rank=None,
        running_requests=iteration.scheduled,
        accept_len=iteration.accept_len, rounds=1 if reason is None else None,
        round_ms=round_ms if reason is None else None, unusable_because=reason,
    )  # fmt: skip


def _reason(iteration: _Iteration, round_ms: float | None) -> str | None:
    if iteration.context or not iteration.generation_tokens:
        return PREFILL
    if iteration.batch_changed:
        return BATCH_CHANGED
    return NOT_TIMED if round_ms is None else None
