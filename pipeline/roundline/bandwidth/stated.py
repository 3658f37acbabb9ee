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


@dataclass(frozen=True)
class StatedModel:
    """Terms in ms as stated, and the total that was stated beside them (None: their sum)."""

    terms_ms: tuple[tuple[str, float], ...]
    total_ms: float | None = None

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


@dataclass(frozen=True)
class StatedCheck:
    """A stated model against a measured window; times in ms."""

    model: StatedModel
    accept_len: float
    measured_tokens_per_s: float
    measured_ms: float
    predicted_tokens_per_s: float
    implied_accept_len: float

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


def check_stated(
    model: StatedModel, accept_len: float, tokens_per_s: float, requests: int = 1
) -> StatedCheck:
    """Hold a stated model against accept length and throughput of one window.

    Raises:
        UsageError: a stated time is negative, or the model claims no time at all.
    """
    if any(ms < 0 for _, ms in model.terms_ms) or model.round_ms <= 0:
        raise UsageError("a stated model needs terms of at least 0 ms and a total above 0 ms")
    return StatedCheck(
        model=model,
        accept_len=accept_len,
        measured_tokens_per_s=tokens_per_s,
        measured_ms=speculation.round_ms(accept_len, tokens_per_s, requests),
        predicted_tokens_per_s=speculation.tokens_per_s(accept_len, model.round_ms, requests),
        implied_accept_len=speculation.implied_accept_len(model.round_ms, tokens_per_s, requests),
    )


def read_ms(size_gb: float, hbm_gbps: Fraction, fraction: float = 1.0) -> float:
    """Time in ms to read `size_gb` GB at a fraction of a bandwidth in GB/s."""
    return 1000 * size_gb / (float(hbm_gbps) * fraction)
