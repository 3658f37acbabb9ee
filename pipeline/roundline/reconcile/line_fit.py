"""time = latency + bytes / (fraction x peak), by least squares of the relative error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from roundline.bandwidth.profile import Line


@dataclass(frozen=True)
class Sample:
    """A kind of read: its floor at the datasheet's bandwidth and what it took, ns each."""

    name: str
    phase: str
    bytes: int
    floor_ns: float
    measured_ns: float


@dataclass(frozen=True)
class FitPoint:
    """A sample, the fit there, and the fit without any sample of that name (None: too few)."""

    sample: Sample
    fitted_ns: float
    left_out_ns: float | None

    @property
    def residual_ns(self) -> float:
        """Measured minus fitted."""
        return self.sample.measured_ns - self.fitted_ns

    @property
    def left_out_error(self) -> float | None:
        """Relative error of the fit that had not seen this name."""
        if self.left_out_ns is None:
            return None
        return self.left_out_ns / self.sample.measured_ns - 1


@dataclass(frozen=True)
class LineFit:
    """A fitted line with its points, the largest first."""

    name: str
    line: Line
    points: tuple[FitPoint, ...]

    @property
    def mean_left_out_error(self) -> float | None:
        """Mean of the absolute left-out errors; None with fewer than three sizes."""
        errors = [abs(e) for p in self.points if (e := p.left_out_error) is not None]
        return sum(errors) / len(errors) if errors else None


def fit_line(name: str, samples: Sequence[Sample], default: Fraction | None = None) -> LineFit:
    """The line through samples, with a latency of at least 0 and a fraction of at most 1.

    Args:
        name: of the fit.
        samples: at least one.
        default: the fraction where one size alone cannot tell it from the latency; where None,
            that size is taken to be all bandwidth.
    """
    line = _line(samples, default)
    ordered = sorted(samples, key=lambda s: (-s.bytes, s.name, s.phase))
    points = (FitPoint(s, _at(line, s), _left_out(s, samples, default)) for s in ordered)
    return LineFit(name, line, tuple(points))


def _left_out(sample: Sample, samples: Sequence[Sample], default: Fraction | None) -> float | None:
    others = [other for other in samples if other.name != sample.name]
    if len({other.bytes for other in others}) < 2:
        return None
    return _at(_line(others, default), sample)


def _at(line: Line, sample: Sample) -> float:
    return line.latency_ns + sample.floor_ns / float(line.fraction)


def _line(samples: Sequence[Sample], default: Fraction | None) -> Line:
    """Weighted least squares; a bound that is hit is kept, and the other number fitted to it."""
    if len({sample.bytes for sample in samples}) < 2:
        slope = float(1 / default) if default else _slope_through_zero(samples)
    else:
        slope = _slope(samples)
    slope = max(slope, 1.0)
    latency = _mean_rest(samples, slope)
    if latency < 0:
        latency, slope = 0.0, max(_slope_through_zero(samples), 1.0)
    return Line(round(latency), 1 / Fraction(slope))


def _weights(samples: Sequence[Sample]) -> list[float]:
    """1 / t^2: every size counts by its relative error, small matrices as much as lm_head."""
    return [1 / sample.measured_ns**2 for sample in samples]


def _slope(samples: Sequence[Sample]) -> float:
    weights = _weights(samples)
    rows = list(zip(weights, samples, strict=True))
    total = sum(weights)
    mean_x = sum(w * s.floor_ns for w, s in rows) / total
    mean_t = sum(w * s.measured_ns for w, s in rows) / total
    spread = sum(w * (s.floor_ns - mean_x) ** 2 for w, s in rows)
    return sum(w * (s.floor_ns - mean_x) * (s.measured_ns - mean_t) for w, s in rows) / spread


def _slope_through_zero(samples: Sequence[Sample]) -> float:
    rows = list(zip(_weights(samples), samples, strict=True))
    joint = sum(w * s.floor_ns * s.measured_ns for w, s in rows)
    return joint / sum(w * s.floor_ns**2 for w, s in rows)


def _mean_rest(samples: Sequence[Sample], slope: float) -> float:
    rows = list(zip(_weights(samples), samples, strict=True))
    rest = sum(w * (s.measured_ns - slope * s.floor_ns) for w, s in rows)
    return rest / sum(w for w, _ in rows)
