"""What speculation is worth: expected lengths, break-even, a further step, round time <-> tok/s.

The accept length E is the mean number of tokens per request and round, the bonus token included.
The names of `acceptance` are part of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from roundline.bandwidth.acceptance import (
    DEFINITIONS,
    PER_DRAFT,
    PER_VERIFIED,
    Acceptance,
    RateDefinition,
    check_acceptance,
    length_from_counts,
    length_from_positions,
    length_includes_bonus,
    rate_definition,
    rate_from_counts,
)
from roundline.errors import UsageError

__all__ = [
    "DEFINITIONS", "PER_DRAFT", "PER_VERIFIED", "Acceptance", "LinearRound", "MarginalStep",
    "RateDefinition", "best_steps", "break_even_len", "check_acceptance", "constant_from_length",
    "fit_rounds", "implied_accept_len", "length_from_constant", "length_from_counts",
    "length_from_positions", "length_includes_bonus", "leviathan_speedup", "marginal_step",
    "rate_definition", "rate_from_counts", "round_ms", "round_over_plain", "speedup",
    "tokens_per_s",
]  # fmt: skip


def length_from_constant(rate: float, draft_steps: int) -> float:
    """Accept length where every position is accepted with `rate`: (1 - a^(K+1)) / (1 - a).

    An upper bound for longer drafts: real rates fall with the position.
    """
    return sum(rate**step for step in range(draft_steps + 1))


def constant_from_length(accept_len: float, draft_steps: int) -> float:
    """The constant rate a that explains an accept length; the inverse of the above.

    Raises:
        UsageError: the length is outside 1 to K + 1.
    """
    if not 1 <= accept_len <= draft_steps + 1:
        raise UsageError(f"accept length {accept_len:g} is outside 1 to {draft_steps + 1}")
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        below = length_from_constant(middle, draft_steps) < accept_len
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2


def round_ms(accept_len: float, tokens_per_s: float, requests: int = 1) -> float:
    """Round time in ms of a window: 1000 x L x running requests / (tokens per second).

    Exact where no prefill and no idle time lie in the window and the requests are constant.

    Raises:
        UsageError: the rate is not positive.
    """
    if tokens_per_s <= 0:
        raise UsageError(f"{tokens_per_s:g} tokens per second: no round time follows")
    return 1000 * accept_len * requests / tokens_per_s


def tokens_per_s(accept_len: float, round_ms: float, requests: int = 1) -> float:
    """Tokens per second of all requests at a round time in ms.

    Raises:
        UsageError: the round time is not positive.
    """
    if round_ms <= 0:
        raise UsageError(f"a round of {round_ms:g} ms: no throughput follows")
    return 1000 * accept_len * requests / round_ms


def implied_accept_len(round_ms: float, tokens_per_s: float, requests: int = 1) -> float:
    """The accept length at which a round time and a throughput agree."""
    return tokens_per_s * round_ms / (1000 * requests)


def speedup(accept_len: float, plain_ms: float, round_ms: float) -> float:
    """S = E x T_1 / T_K: tokens per second against decoding without drafts."""
    return accept_len * plain_ms / round_ms


def leviathan_speedup(accept_len: float, draft_steps: int, draft_cost: float) -> float:
    """E / (K c + 1), with c a draft pass in units of a plain step (Leviathan et al., 2023)."""
    return accept_len / (draft_steps * draft_cost + 1)


def break_even_len(plain_ms: float, round_ms: float) -> float:
    """Accept length above which speculation pays: T_K / T_1."""
    return round_ms / plain_ms


def round_over_plain(accept_len: float, speedup: float) -> float:
    """Round time in units of a plain step that a printed length and speed-up imply."""
    return accept_len / speedup


@dataclass(frozen=True)
class MarginalStep:
    """A further draft step: its relative gain in tokens and its relative cost in time."""

    gain: float
    cost: float

    @property
    def pays(self) -> bool:
        """True where c_{K+1} / E_K > T_d / T_K."""
        return self.gain > self.cost


def marginal_step(
    accept_len: float, next_position: float, draft_ms: float, round_ms: float
) -> MarginalStep:
    """What step K + 1 is worth: `next_position` is c_{K+1}, `draft_ms` the cost of the step."""
    return MarginalStep(next_position / accept_len, draft_ms / round_ms)


@dataclass(frozen=True)
class LinearRound:
    """T_K = base + K x step by least squares, in ms; `worst` is the largest relative miss."""

    base_ms: float
    step_ms: float
    worst: float

    def round_ms(self, draft_steps: int) -> float:
        """Round time of the line."""
        return self.base_ms + draft_steps * self.step_ms

    @property
    def is_linear(self) -> bool:
        """False where a sample lies more than 5 % off: do not extrapolate then."""
        return self.worst <= 0.05


def fit_rounds(round_ms_by_steps: Mapping[int, float]) -> LinearRound:
    """The line through measured round times in ms at several numbers of draft steps.

    Raises:
        UsageError: fewer than two different numbers of steps.
    """
    if len(round_ms_by_steps) < 2:
        raise UsageError("a line through round times needs two numbers of draft steps")
    steps, times = list(round_ms_by_steps), list(round_ms_by_steps.values())
    mean_step, mean_time = sum(steps) / len(steps), sum(times) / len(times)
    spread = sum((step - mean_step) ** 2 for step in steps)
    pairs = zip(steps, times, strict=True)
    slope = sum((step - mean_step) * (time - mean_time) for step, time in pairs) / spread
    base = mean_time - slope * mean_step
    misses = (abs(base + slope * k - t) / t for k, t in round_ms_by_steps.items())
    return LinearRound(base, slope, max(misses))


def best_steps(tokens_per_s_by_steps: Mapping[int, float]) -> int:
    """The number of draft steps with the highest throughput; the fewest on a tie."""
    if not tokens_per_s_by_steps:
        raise UsageError("no throughput to choose from")
    return max(sorted(tokens_per_s_by_steps), key=lambda k: tokens_per_s_by_steps[k])
