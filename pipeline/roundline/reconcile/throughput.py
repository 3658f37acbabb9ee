"""Tokens per second, always with the acceptance that they rest on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from roundline.bandwidth import speculation
from roundline.bandwidth.acceptance import Acceptance, check_acceptance
from roundline.store.schemas import TABLES


@dataclass(frozen=True)
class LogSummary:
    """The usable windows of a server log, weighted by their rounds.

    `dropped` counts windows by why they say nothing of a decode round.
    """

    engine: str
    windows: int
    dropped: dict[str, int]
    round_ms: float | None
    accept_len: float | None
    accept_rate: float | None
    tokens_per_s: float | None
    running_requests: int | None
    context_tokens: int | None


@dataclass(frozen=True)
class AcceptanceUsed:
    """The acceptance that throughput rests on, what it means and where it came from."""

    accept_len: float
    accept_rate: float | None
    max_len: int
    definition: str | None
    source: str
    findings: tuple[str, ...]


@dataclass(frozen=True)
class Throughput:
    """Tokens per second of all requests; None where a number is missing."""

    predicted_tokens_per_s: float | None
    measured_tokens_per_s: float | None
    log_tokens_per_s: float | None


def read_log(
    warehouse: duckdb.DuckDBPyConnection, more: pa.Table | None = None
) -> LogSummary | None:
    """Summarise the store's `log_windows` and `more` of them; None when there are none."""
    table = TABLES["log_windows"].empty_table() if more is None else more
    warehouse.register("more_windows", table)
    rows = warehouse.execute(
        """
        SELECT engine, round_ms, accept_len, accept_rate, gen_tokens_per_s, running_requests,
          coalesce(rounds, 1), unusable_because, fields
        FROM (SELECT * FROM log_windows UNION ALL BY NAME SELECT * FROM more_windows)
        ORDER BY source_id, line
        """
    ).fetchall()
    if not rows:
        return None
    usable = [row for row in rows if row[7] is None]
    dropped: dict[str, int] = {}
    for row in rows:
        if row[7] is not None:
            dropped[row[7]] = dropped.get(row[7], 0) + 1
    requests = [row[5] for row in usable if row[5] is not None]
    return LogSummary(
        engine=rows[0][0],
        windows=sum(row[1] is not None for row in usable),
        dropped=dropped,
        round_ms=_weighted(usable, 1),
        accept_len=_weighted(usable, 2) or _from_fields(usable, "mean_accept_len"),
        accept_rate=_weighted(usable, 3),
        tokens_per_s=_weighted(usable, 4),
        running_requests=max(requests) if requests else None,
        context_tokens=_context(usable),
    )


def _weighted(rows: list[tuple[Any, ...]], column: int) -> float | None:
    pairs = [(row[column], row[6]) for row in rows if row[column] is not None]
    weight = sum(rounds for _, rounds in pairs)
    return sum(value * rounds for value, rounds in pairs) / weight if weight else None


def _from_fields(rows: list[tuple[Any, ...]], key: str) -> float | None:
    values = [json.loads(row[8] or "{}").get(key) for row in rows]
    numbers = [value for value in values if isinstance(value, int | float)]
    return sum(numbers) / len(numbers) if numbers else None


def _context(rows: list[tuple[Any, ...]]) -> int | None:
    """Cached tokens of one request, where the engine prints those of all that run."""
    total = _from_fields(rows, "full_tokens") or _from_fields(rows, "tokens")
    running = [row[5] for row in rows if row[5]]
    return round(total / max(running)) if total and running else None


def choose_acceptance(
    draft_steps: int,
    accept_len: float | None,
    accept_rate: float | None,
    log: LogSummary | None,
) -> AcceptanceUsed | None:
    """The user's acceptance, else the log's; None when nobody states one.

    Raises:
        UsageError: the numbers are impossible for that many draft steps.
    """
    if accept_len is not None:
        checked = check_acceptance(draft_steps, accept_len, accept_rate)
        return _used(checked, "given")
    if log is not None and log.accept_len is not None:
        return _used(check_acceptance(draft_steps, log.accept_len, log.accept_rate), "log")
    if draft_steps == 0:
        return _used(check_acceptance(0, 1.0), "plain decode")
    return None


def _used(acceptance: Acceptance, source: str) -> AcceptanceUsed:
    definition = acceptance.definition
    return AcceptanceUsed(
        accept_len=acceptance.accept_len,
        accept_rate=acceptance.accept_rate,
        max_len=acceptance.max_len,
        definition=f"{definition.name}: {definition.formula}" if definition else None,
        source=source,
        findings=acceptance.findings,
    )


def throughput(
    acceptance: AcceptanceUsed | None,
    expected_ms: float,
    measured_ms: float,
    batch: int,
    log: LogSummary | None,
) -> Throughput:
    """Predicted and measured rates at one and the same acceptance."""
    log_rate = log.tokens_per_s if log else None
    if acceptance is None:
        return Throughput(None, None, log_rate)
    length = acceptance.accept_len
    return Throughput(
        speculation.tokens_per_s(length, expected_ms, batch) if expected_ms else None,
        speculation.tokens_per_s(length, measured_ms, batch) if measured_ms else None,
        log_rate,
    )
