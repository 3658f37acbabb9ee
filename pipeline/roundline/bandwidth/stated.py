"""A model that somebody made by hand, held against its own sum, its throughput and a measurement.

A tok/s that agrees proves nothing: two numbers, the round time and the accept length, make it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from roundline.bandwidth import speculation
from roundline.errors import UsageError

TOLERANCE = 0.10  # of the measured round
_ROUNDING_MS = 0.05
_ROUNDING_LEN = 0.005
_NEAR = 0.02  # of a throughput, or of the ceiling


@dataclass(frozen=True)
class StatedModel:
    """Terms in ms as stated, and the total that was stated beside them (None: their sum).

    Statements beside the model, where there are any: the throughput that it was said to mean, the
    longest accept length, and the share of the ceiling (the weights alone at their stated time)
    that the server was said to reach.
    """

    terms_ms: tuple[tuple[str, float], ...]
    total_ms: float | None = None
    tokens_per_s: float | None = None
    max_len: float | None = None
    ceiling_fraction: float | None = None

    @property
    def sum_ms(self) -> float:
        """Sum of the listed terms."""
        return sum(ms for _, ms in self.terms_ms)

    @property
    def round_ms(self) -> float:
        """The round time that the model claims."""
        return self.sum_ms if self.total_ms is None else self.total_ms

    @property
    def not_itemised_ms(self) -> float:
        """What the total holds beyond the listed terms; negative where they exceed it."""
        return self.round_ms - self.sum_ms

    @property
    def ceiling_term(self) -> tuple[str, float] | None:
        """The term that alone makes the ceiling: `weights`, else the largest; None without one."""
        named = [term for term in self.terms_ms if term[0] == "weights"]
        return named[0] if named else max(self.terms_ms, key=lambda term: term[1], default=None)


@dataclass(frozen=True)
class Statement:
    """One statement of a model: what was said, what follows from the numbers, and both in words."""

    subject: str
    stated: float
    found: float
    holds: bool
    text: str


@dataclass(frozen=True)
class StatedCheck:
    """A stated model against a measured window; times in ms.

    `max_len` is the longest accept length that the draft steps allow, None where they are unknown.
    """

    model: StatedModel
    accept_len: float
    measured_tokens_per_s: float
    measured_ms: float
    predicted_tokens_per_s: float
    implied_accept_len: float
    max_len: int | None = None

    @property
    def unexplained_ms(self) -> float:
        """Measured minus stated round time."""
        return self.measured_ms - self.model.round_ms

    @property
    def unexplained_fraction(self) -> float:
        """Share of the measured round that the model does not explain."""
        return self.unexplained_ms / self.measured_ms

    @property
    def agrees(self) -> bool:
        """True within 10 % of the measured round; a lower bound of evidence, not a validation."""
        return abs(self.unexplained_fraction) <= TOLERANCE

    def statements(self) -> Iterator[Statement]:
        """The statements beside the model, each held against what follows from the numbers."""
        yield from (s for s in (self._throughput(), self._max_len(), self._ceiling()) if s)

    def _throughput(self) -> Statement | None:
        stated, found = self.model.tokens_per_s, self.predicted_tokens_per_s
        if stated is None:
            return None
        holds = abs(stated - found) <= _NEAR * found
        return _statement(
            "tokens per second", stated, found, holds, f"{stated:g} tok/s",
            f"{self.model.round_ms:.1f} ms at accept length {self.accept_len:g} are"
            f" {found:.1f} tok/s",
        )  # fmt: skip

    def _max_len(self) -> Statement | None:
        stated, found = self.model.max_len, self.max_len
        if stated is None or found is None:
            return None
        return _statement(
            "maximum accept length", stated, found, abs(stated - found) <= _ROUNDING_LEN,
            f"a maximum accept length of {stated:g}",
            f"{found - 1} draft steps and the bonus token make {found:.1f}",
        )  # fmt: skip

    def _ceiling(self) -> Statement | None:
        stated, term = self.model.ceiling_fraction, self.model.ceiling_term
        if stated is None or term is None:
            return None
        found = term[1] / self.measured_ms
        return _statement(
            "fraction of the ceiling", stated, found, abs(stated - found) <= _NEAR,
            f"{100 * stated:g} % of the ceiling",
            f"{term[0]} alone are {term[1]:.2f} ms, {100 * found:.1f} % of the measured"
            f" {self.measured_ms:.1f} ms",
        )  # fmt: skip

    def findings(self) -> Iterator[str]:
        """What does not add up, in sentences."""
        model = self.model
        if model.terms_ms and abs(model.not_itemised_ms) > _ROUNDING_MS:
            yield (
                f"the listed terms sum to {model.sum_ms:.2f} ms, the stated total is "
                f"{model.round_ms:.2f} ms: {model.not_itemised_ms:+.2f} ms are not itemised"
            )
        yield (
            f"model {model.round_ms:.1f} ms, measured {self.measured_ms:.1f} ms, residual "
            f"{self.unexplained_ms:+.1f} ms ({100 * self.unexplained_fraction:+.1f} % of the round)"
            f"{'' if self.agrees else ': unexplained'}"
        )
        if not self.agrees:
            yield (
                f"at accept length {self.accept_len:g} the model means "
                f"{self.predicted_tokens_per_s:.1f} tok/s; the measured "
                f"{self.measured_tokens_per_s:.2f} would need {self.implied_accept_len:.2f}"
            )
        yield from (statement.text for statement in self.statements())


def _statement(
    subject: str, stated: float, found: float, holds: bool, said: str, follows: str
) -> Statement:
    verdict = "holds" if holds else "is wrong"
    return Statement(subject, stated, found, holds, f"the statement of {said} {verdict}: {follows}")


def check_stated(
    model: StatedModel,
    accept_len: float,
    tokens_per_s: float,
    requests: int = 1,
    draft_steps: int | None = None,
) -> StatedCheck:
    """Hold a stated model against accept length and throughput of one window.

    Raises:
        UsageError: a stated time is negative, the model claims no time at all, or a share of the
            ceiling without a term that makes one.
    """
    if model.ceiling_fraction is not None and model.ceiling_term is None:
        raise UsageError("a share of the ceiling needs the term that makes it: weights")
    if any(ms < 0 for _, ms in model.terms_ms) or model.round_ms <= 0:
        raise UsageError("a stated model needs terms of at least 0 ms and a total above 0 ms")
    return StatedCheck(
        model=model,
        accept_len=accept_len,
        measured_tokens_per_s=tokens_per_s,
        measured_ms=speculation.round_ms(accept_len, tokens_per_s, requests),
        predicted_tokens_per_s=speculation.tokens_per_s(accept_len, model.round_ms, requests),
        implied_accept_len=speculation.implied_accept_len(model.round_ms, tokens_per_s, requests),
        max_len=None if draft_steps is None else draft_steps + 1,
    )


def read_ms(size_gb: float, hbm_gbps: Fraction, fraction: float = 1.0) -> float:
    """Time in ms to read `size_gb` GB at a fraction of a bandwidth in GB/s."""
    return 1000 * size_gb / (float(hbm_gbps) * fraction)
