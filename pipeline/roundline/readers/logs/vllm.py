"""vLLM V1: a throughput line every few seconds, followed by a speculation line.

The interval is what both print: tokens / (tokens per second). A round drafts k tokens for each
running request, so rounds = drafted / k, and with n requests the engine ran 1/n of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
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

_INTERVAL_S: Final = 10.0
_ENGINE: Final = re.compile(r"\bEngine (\d+)\b")
_TOKENS_PER_S: Final = re.compile(r"Avg (prompt|generation) throughput:\s*([\d.]+)")
_REQUESTS: Final = re.compile(r"\b(Running|Waiting):\s*(\d+)")
_SPEC: Final = {
    "mean_accept_len": re.compile(r"Mean acceptance length:\s*([\d.]+)"),
    "accepted_tok_s": re.compile(r"Accepted throughput:\s*([\d.]+)"),
    "drafted_tok_s": re.compile(r"Drafted throughput:\s*([\d.]+)"),
    "accepted": re.compile(r"Accepted:\s*(\d+) tokens"),
    "drafted": re.compile(r"Drafted:\s*(\d+) tokens"),
}
_PER_POSITION: Final = re.compile(r"Per-position acceptance rate:\s*([\d., ]+?)(?:,\s*[A-Z]|$)")
_RATE: Final = re.compile(r"[Dd]raft [Aa]cceptance rate:\s*([\d.]+)\s*%")
_MARKS: Final = ("Avg generation throughput", "Avg prompt throughput", "SpecDecoding metrics")


@dataclass(slots=True)
class _Throughput:
    line: Line
    engine_id: str | None
    prompt_tok_s: float
    gen_tok_s: float
    running: int
    waiting: int | None
    batch_changed: bool

    @property
    def reason(self) -> str | None:
        """Why the window says nothing of a round."""
        if not self.running or not self.gen_tok_s:
            return IDLE
        # a prompt shorter than one token for each token generated costs about a round or less
        if self.prompt_tok_s > self.gen_tok_s:
            return PREFILL
        return BATCH_CHANGED if self.batch_changed else None


class VllmParser:
    """Throughput and speculation lines of one server, of one or many engines."""

    def __init__(self) -> None:
        self._running: dict[str | None, int] = {}
        self._pending: _Throughput | None = None
        self._speculates = False

    def owns(self, text: str) -> bool:
        """Whether the line is a statistics line."""
        return any(mark in text for mark in _MARKS)

    def feed(self, line: Line) -> Iterator[Window]:
        """A throughput line is settled by what follows it."""
        if "SpecDecoding metrics" in line.text:
            yield from self._spec(line)
            return
        throughput = self._throughput(line)
        yield from self._settle()
        self._pending = throughput

    def finish(self) -> Iterator[Window]:
        """The last throughput line."""
        yield from self._settle()

    def _throughput(self, line: Line) -> _Throughput:
        rates = {name: float(value) for name, value in _TOKENS_PER_S.findall(line.text)}
        requests = {name: int(value) for name, value in _REQUESTS.findall(line.text)}
        if "generation" not in rates or "Running" not in requests:
            raise MalformedLineError(line.text)
        match = _ENGINE.search(line.text)
        engine_id = match[1] if match else None
        running = requests["Running"]
        before = self._running.get(engine_id, running)
        self._running[engine_id] = running
        return _Throughput(
            line, engine_id, rates.get("prompt", 0.0), rates["generation"], running,
            requests.get("Waiting"), before != running,
        )  # fmt: skip

    def _settle(self) -> Iterator[Window]:
        """A throughput line without a speculation line: plain decode, one token a round."""
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        plain = pending.reason is None and not self._speculates
        round_ms = 1000 * pending.running / pending.gen_tok_s if plain else None
        rounds = round(1000 * _INTERVAL_S / round_ms) if round_ms else None
        yield _throughput_window(pending, rounds, round_ms)

    def _spec(self, line: Line) -> Iterator[Window]:
        self._speculates = True
        fields = _spec_fields(line.text)
        throughput, self._pending = self._pending, None
        if throughput is not None:
            yield _throughput_window(throughput, None, None)
        yield _spec_window(line, fields, throughput)


def _spec_fields(text: str) -> dict[str, Any]:
    found = {key: pattern.search(text) for key, pattern in _SPEC.items()}
    fields: dict[str, Any] = {key: number(match[1]) for key, match in found.items() if match}
    if "accepted" not in fields or "drafted" not in fields:
        raise MalformedLineError(text)
    fields |= {key: int(fields[key]) for key in ("accepted", "drafted")}
    per_position = _PER_POSITION.search(text)
    rates = [number(rate) for rate in per_position[1].split(",")] if per_position else []
    fields["per_position"] = [rate for rate in rates if rate is not None] or None
    rate = _RATE.search(text)
    fields["draft_accept_rate"] = round(float(rate[1]) / 100, 6) if rate else None
    return fields


def _drafts(fields: dict[str, Any]) -> float | None:
    """How often drafts were verified, over all requests."""
    positions = len(fields["per_position"] or ())
    if positions:
        return float(fields["drafted"]) / positions
    length = fields.get("mean_accept_len")
    return fields["accepted"] / (length - 1) if length and length > 1 else None


def _accept_len(fields: dict[str, Any], drafts: float | None) -> float | None:
    """The length with the bonus token: versions before May 2025 left it out."""
    length: float | None = fields.get("mean_accept_len")
    if length is None or not drafts:
        return length
    accepted = fields["accepted"] / drafts
    excludes_bonus = abs(length - accepted) < abs(length - accepted - 1)
    return round(length + 1, 6) if excludes_bonus else length


def _interval_s(fields: dict[str, Any]) -> float:
    for count, rate in (("drafted", "drafted_tok_s"), ("accepted", "accepted_tok_s")):
        if fields[count] and fields.get(rate):
            return float(fields[count] / fields[rate])
    return _INTERVAL_S


def _spec_window(line: Line, fields: dict[str, Any], throughput: _Throughput | None) -> Window:
    drafts = _drafts(fields)
    running = throughput.running if throughput else None
    reason = throughput.reason if throughput else None
    if reason is None and not drafts:
        reason = IDLE
    rounds = drafts / (running or 1) if drafts and reason is None else None
    details = {
        "timestamp": line.timestamp, **fields,
        "draft_steps": len(fields["per_position"] or ()) or None,
    }  # fmt: skip
    return Window(
        line=line.number, engine="vllm", kind="spec", fields=as_json(details),
        wall_clock_ns=line.wall_clock_ns, dp_rank=_dp_rank(throughput),
        running_requests=running, accept_len=_accept_len(fields, drafts),
        accept_rate=fields["draft_accept_rate"], rounds=round(rounds) if rounds else None,
        round_ms=1000 * _interval_s(fields) / rounds if rounds else None,
        unusable_because=reason,
    )  # fmt: skip


def _throughput_window(
    throughput: _Throughput, rounds: int | None, round_ms: float | None
) -> Window:
    line = throughput.line
    fields = {
        "timestamp": line.timestamp, "engine_id": throughput.engine_id,
        "prompt_tok_s": throughput.prompt_tok_s, "gen_tok_s": throughput.gen_tok_s,
        "running": throughput.running, "waiting": throughput.waiting,
    }  # fmt: skip
    return Window(
        line=line.number, engine="vllm", kind="throughput", fields=as_json(fields),
        wall_clock_ns=line.wall_clock_ns, dp_rank=_dp_rank(throughput),
        running_requests=throughput.running, queued_requests=throughput.waiting,
        gen_tokens_per_s=throughput.gen_tok_s, rounds=rounds, round_ms=round_ms,
        unusable_because=throughput.reason,
    )  # fmt: skip


def _dp_rank(throughput: _Throughput | None) -> int | None:
    return integer(throughput.engine_id) if throughput else None
