"""The decode lines that an SGLang server prints beside a capture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

ROUNDS_PER_LINE: Final = 40  # SGLang's decode_log_interval


@dataclass(frozen=True, kw_only=True)
class LogWindow:
    """Forty rounds: the tokens that they emitted and the idle time before the first."""

    tokens: int
    idle_s: float = 0.0


def sglang_log(
    first_line: datetime, round_ms: float, windows: Sequence[LogWindow], *, draft_tokens: int
) -> Iterator[str]:
    """One line for each window, as SGLang from 0.5.11 prints it for a hybrid model.

    Args:
        first_line: time of the first line, to the second.
        round_ms: time of a round.
        windows: what each line covers; throughput is tokens over wall time since the line before.
        draft_tokens: tokens verified per round (draft steps + 1); rates count drafts only.
    """
    printed_at, in_cache = first_line, 0
    for number, window in enumerate(windows):
        seconds = ROUNDS_PER_LINE * round_ms / 1000 + window.idle_s
        if number:
            printed_at += timedelta(seconds=seconds)
        in_cache += window.tokens
        accept_len = window.tokens / ROUNDS_PER_LINE
        yield (
            f"[{printed_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} TP0] Decode batch, #running-req: 1, "
            f"#full token: {in_cache}, full token usage: 0.00, mamba num: 3, mamba usage: 0.05, "
            f"accept len: {accept_len:.2f}, "
            f"accept rate: {(accept_len - 1) / (draft_tokens - 1):.2f}, cuda graph: True, "
            f"gen throughput (token/s): {window.tokens / seconds:.2f}, #queue-req: 0\n"
        )
