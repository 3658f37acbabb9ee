"""Renders a calibration: every fit with its points, residuals and left-out errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from roundline.report.ledger import number
from roundline.report.tabular import render, visible

if TYPE_CHECKING:
    from roundline.reconcile.calibration import Calibration
    from roundline.reconcile.collective_fit import CollectiveFit
    from roundline.reconcile.line_fit import LineFit

_LINE_COLUMNS = ("read", "phase", "MB", "measured us", "fitted us", "residual us", "left out")
_COLLECTIVE_COLUMNS = ("phase", "KB", "a round", "measured us", "fitted us", "residual us")


def render_calibration(calibration: Calibration) -> str:
    """Fits, notes, and what the profile makes of the capture it was fitted on."""
    before, after = calibration.before, calibration.after
    return "\n".join(
        [
            *(text for fit in calibration.lines for text in _line(fit)),
            *(text for fit in calibration.collectives for text in _collective(fit)),
            *map(visible, calibration.notes),
            f"this capture is expected to take {before.expected_ms:.2f} ms without the profile,"
            f" {after.expected_ms:.2f} ms with it, of {after.measured_ms:.2f} ms measured",
            "a profile fits its own capture by construction: judge it by another one",
        ]
    )


def comments(calibration: Calibration) -> tuple[str, ...]:
    """Where a profile comes from, for the head of its file."""
    return (
        "Fitted by `roundline reconcile --calibrate`; use it with --profile on another capture.",
        *(f"{fit.name}: {_left_out(fit)}" for fit in calibration.lines),
    )


def _line(fit: LineFit) -> Iterator[str]:
    yield (
        f"{fit.name}: {fit.line.latency_ns / 1000:.2f} us + bytes at"
        f" {100 * float(fit.line.fraction):.1f} % of peak; {_left_out(fit)}"
    )
    rows = [
        (
            visible(p.sample.name), p.sample.phase, number(p.sample.bytes / 1e6, 3),
            number(p.sample.measured_ns / 1000, 2), number(p.fitted_ns / 1000, 2),
            f"{p.residual_ns / 1000:+.2f}", _percent(p.left_out_error),
        )
        for p in fit.points
    ]  # fmt: skip
    yield render(_LINE_COLUMNS, rows, "table")


def _left_out(fit: LineFit) -> str:
    error = fit.mean_left_out_error
    if error is None:
        return "too few sizes to leave one out"
    return f"leave-one-out error {100 * error:.1f} % (mean over {len(fit.points)} points)"


def _percent(fraction: float | None) -> str | None:
    return None if fraction is None else f"{100 * fraction:+.1f} %"


def _tested(fit: CollectiveFit) -> str:
    return "alpha and beta fit any two sizes exactly" if fit.sizes <= 2 else "residuals below"


def _collective(fit: CollectiveFit) -> Iterator[str]:
    cost = fit.fit.cost
    yield (
        f"{fit.operation} ({cost.kernel}): {float(cost.alpha_ns) / 1000:.2f} us +"
        f" {float(cost.beta_ns_per_byte):.4f} us/KB over {fit.fit.samples} transfers of"
        f" {fit.sizes} sizes, worst {100 * fit.fit.worst:.0f} %; {_tested(fit)}"
    )
    rows = [
        (
            p.phase, number(p.message_bytes / 1000, 2), number(p.count, 0),
            number(p.measured_ns / 1000, 2), number(p.fitted_ns / 1000, 2),
            f"{(p.measured_ns - p.fitted_ns) / 1000:+.2f}",
        )
        for p in fit.points
    ]  # fmt: skip
    yield render(_COLLECTIVE_COLUMNS, rows, "table")
