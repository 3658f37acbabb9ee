"""SGLang: `Decode batch` lines, one every N rounds, each a window that begins at the one before.

Printed throughput = tokens of all running requests since the line before / time since then, so
round time = accept length x running requests / throughput, if nothing else happened in between.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from roundline.readers.logs.lines import (
    BATCH_CHANGED,
    IDLE,
    PREFILL,
    Line,
    MalformedLineError,
    Window,
    as_json,
    integer,
    number,
)

_BATCH: Final = re.compile(r"\b(Decode|Prefill) batch(?:\s*\[(\d+)\])?\s*[.,:]?\s*(.*)")
_TAGS: Final = re.compile(r"\b(DP|PP|ATTN_CP|CP|MOE_DP|TP|EP)(\d+)\b")
_NAMES: Final = {
    "#running-req": "running", "#queue-req": "queue", "#token": "tokens",
    "#full token": "full_tokens", "#swa token": "swa_tokens", "mamba num": "mamba_num",
    "accept len": "accept_len", "accept rate": "accept_rate",
    "gen throughput (token/s)": "tok_s", "input throughput (token/s)": "input_tok_s",
    "#new-seq": "new_sequences", "#new-token": "new_tokens", "#cached-token": "cached_tokens",
    "#pending-token": "pending_tokens",
}  # fmt: skip
_COUNTS: Final = frozenset(
    {"running", "queue", "tokens", "full_tokens", "swa_tokens", "mamba_num", "new_sequences",
     "new_tokens", "cached_tokens", "pending_tokens"}
)  # fmt: skip
_HELD: Final = ("tokens", "full_tokens")
_INTERVAL: Final = 40  # rounds between two lines unless the server was told otherwise
_RUN_NS: Final = 600 * 10**9  # lines further apart do not belong to one stretch of decoding
_IDLE_RATIO: Final = 1.5  # a window this much slower than its neighbour holds more than rounds
_MAX_DRAFT_TOKENS: Final = 64
_PRINTED: Final = 0.005  # two decimals


@dataclass(slots=True)
class _Decode:
    """One decode line on its way to a window."""

    line: Line
    tags: dict[str, int]
    fields: dict[str, Any]
    after_prefill: bool
    reason: str | None = None
    rounds: float | None = None

    @property
    def running(self) -> int:
        return int(self.fields["running"])

    @property
    def tokens_per_round(self) -> float:
        return float(self.fields.get("accept_len") or 1.0) * self.running

    @property
    def round_ms(self) -> float | None:
        """Round time that throughput implies; None while nothing was generated."""
        rate = self.fields["tok_s"]
        return 1000 * self.tokens_per_round / rate if rate and self.running else None

    @property
    def held(self) -> tuple[str, int] | None:
        """Which token count was printed, and how many tokens are held."""
        return next(((key, self.fields[key]) for key in _HELD if key in self.fields), None)


@dataclass(slots=True)
class _Group:
    """The lines of one rank."""

    before: _Decode | None = None
    pending: _Decode | None = None
    prefilled: bool = False
    intervals: Counter[int] = field(default_factory=Counter)

    @property
    def interval(self) -> int:
        """Rounds between two lines: what most pairs of lines show."""
        return self.intervals.most_common(1)[0][0] if self.intervals else _INTERVAL


class SglangParser:
    """Decode and prefill lines of every version since 0.4."""

    def __init__(self) -> None:
        self._groups: dict[tuple[tuple[str, int], ...], _Group] = {}

    def owns(self, text: str) -> bool:
        """Whether the line is a batch line."""
        return "Decode batch" in text or "Prefill batch" in text

    def feed(self, line: Line) -> Iterator[Window]:
        """The window before, now that its successor is known; prefill lines at once."""
        match = _BATCH.search(line.text)
        if match is None:
            raise MalformedLineError(line.text)
        tags = {name: int(value) for name, value in _TAGS.findall(line.text[: match.start()])}
        fields = _fields(match[3])
        if match[2]:
            fields["iteration"] = int(match[2])
        group = self._groups.setdefault(tuple(sorted(tags.items())), _Group())
        if match[1] == "Prefill":
            group.prefilled = True
            yield _prefill(line, tags, fields)
        else:
            yield from self._decode(group, line, tags, fields)

    def finish(self) -> Iterator[Window]:
        """The last window of each rank."""
        for group in self._groups.values():
            yield from _settle(group, None)

    def _decode(
        self, group: _Group, line: Line, tags: dict[str, int], fields: dict[str, Any]
    ) -> Iterator[Window]:
        if fields.get("running") is None or fields.get("tok_s") is None:
            raise MalformedLineError(line.text)
        decode = _Decode(line, tags, fields, after_prefill=group.prefilled)
        group.prefilled = False
        _count_rounds(group, decode)
        yield from _settle(group, decode)
        group.pending = decode


def _fields(text: str) -> dict[str, Any]:
    """`key: value` pairs; known keys under their own names, the others under `extra` as text."""
    fields: dict[str, Any] = {}
    extra: dict[str, str] = {}
    for pair in text.split(","):
        key, colon, value = (part.strip() for part in pair.rpartition(":"))
        if not colon or not value:
            continue
        name = _NAMES.get(key)
        if name is not None:
            fields[name] = integer(value) if name in _COUNTS else number(value)
        elif key.endswith(" graph"):
            fields["cuda_graph"] = value.startswith("True")
        else:
            extra[key] = value
    fields = {key: value for key, value in fields.items() if value is not None}
    return {**fields, "extra": extra} if extra else fields


def _count_rounds(group: _Group, decode: _Decode) -> None:
    """Rounds of a window from the growth of the tokens held, where that can be seen."""
    before = group.pending
    grown = _growth(before, decode)
    if before is None or grown is None or grown <= 0 or decode.after_prefill:
        return
    if before.running != decode.running:
        return
    rounds = grown / decode.tokens_per_round
    decode.rounds = rounds
    is_usual = abs(rounds - _INTERVAL) <= 0.05 * _INTERVAL
    group.intervals[_INTERVAL if is_usual else max(round(rounds), 1)] += 1


def _growth(before: _Decode | None, decode: _Decode) -> int | None:
    """Tokens that a rank holds more than at the line before; None across runs or shapes."""
    if before is None or not _same_run(before, decode):
        return None
    old, new = before.held, decode.held
    if old is None or new is None or old[0] != new[0] or _shape(before) != _shape(decode):
        return None
    return new[1] - old[1]


def _shape(decode: _Decode) -> frozenset[str]:
    return frozenset(decode.fields) & _COUNTS


def _same_run(before: _Decode, after: _Decode) -> bool:
    old, new = before.line.wall_clock_ns, after.line.wall_clock_ns
    return old is None or new is None or 0 <= new - old <= _RUN_NS


def _settle(group: _Group, after: _Decode | None) -> Iterator[Window]:
    """Turn the pending line into a window, seen between its neighbours."""
    decode = group.pending
    if decode is None:
        return
    decode.reason = _reason(decode, group, after)
    yield _window(decode)
    group.before, group.pending = decode, None


def _reason(decode: _Decode, group: _Group, after: _Decode | None) -> str | None:
    """Why the window says nothing of a round; None when it does."""
    before = group.before if group.before and _same_run(group.before, decode) else None
    if decode.after_prefill and before is not None:
        return PREFILL
    if decode.round_ms is None:
        return IDLE
    if before is not None and before.running != decode.running:
        return BATCH_CHANGED
    expected = group.interval * decode.tokens_per_round
    grown = _growth(before, decode)
    if grown is not None and not 0.5 * expected <= grown <= 2 * expected:
        return BATCH_CHANGED
    if grown is None and decode.held is not None and decode.held[1] < expected:
        return IDLE  # more tokens in the window than its requests hold: they served others too
    return IDLE if _is_slow(decode, before, after) else None


def _is_slow(decode: _Decode, before: _Decode | None, after: _Decode | None) -> bool:
    own = decode.round_ms or 0.0
    for other in (before, after):
        if other is None or not _same_run(*sorted((decode, other), key=lambda d: d.line.number)):
            continue
        comparable = other.running == decode.running and _shape(other) == _shape(decode)
        if comparable and other.round_ms is not None and own > _IDLE_RATIO * other.round_ms:
            return True
    return False


def _window(decode: _Decode) -> Window:
    fields, usable = decode.fields, decode.reason is None
    details = {
        "timestamp": decode.line.timestamp,
        "tags": decode.tags or None,
        **fields,
        "draft_steps": draft_steps(fields.get("accept_len"), fields.get("accept_rate")),
        "rounds_in_window": round(decode.rounds, 1) if usable and decode.rounds else None,
    }
    return Window(
        line=decode.line.number, engine="sglang", kind="decode", fields=as_json(details),
        wall_clock_ns=decode.line.wall_clock_ns, dp_rank=decode.tags.get("DP"),
        running_requests=decode.running, queued_requests=fields.get("queue"),
        gen_tokens_per_s=fields["tok_s"], accept_len=fields.get("accept_len"),
        accept_rate=fields.get("accept_rate"),
        rounds=round(decode.rounds) if usable and decode.rounds else None,
        round_ms=decode.round_ms if usable else None, unusable_because=decode.reason,
    )  # fmt: skip


def _prefill(line: Line, tags: dict[str, int], fields: dict[str, Any]) -> Window:
    details = {"timestamp": line.timestamp, "tags": tags or None, **fields}
    return Window(
        line=line.number, engine="sglang", kind="prefill", fields=as_json(details),
        wall_clock_ns=line.wall_clock_ns, dp_rank=tags.get("DP"),
        running_requests=fields.get("running"), queued_requests=fields.get("queue"),
        unusable_because=PREFILL,
    )  # fmt: skip


def draft_steps(length: float | None, rate: float | None) -> int | None:
    """Draft tokens a round that a printed length and rate agree on; None when they do not settle.

    Versions print (L - 1) / (D - 1) or L / D for D verified tokens; the one that fits is meant.
    """
    if not length or not rate:
        return None
    fits = {
        drafts
        for drafts in range(1, _MAX_DRAFT_TOKENS)
        if _agrees((length - 1) / drafts, rate, drafts)
        or _agrees(length / (drafts + 1), rate, drafts + 1)
    }
    return fits.pop() if len(fits) == 1 else None


def _agrees(expected: float, printed: float, divisor: int) -> bool:
    return abs(expected - printed) <= _PRINTED + _PRINTED / divisor
