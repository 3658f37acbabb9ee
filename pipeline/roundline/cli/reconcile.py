"""`roundline reconcile`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from roundline.cli._calibrate import warn_of_own_profile, write_profile
from roundline.cli._capture import open_capture, sources_argument
from roundline.cli._model import model_options
from roundline.cli._output import emit
from roundline.cli._reconcile import claims_options, reconcile_capture
from roundline.cli.options import force_option, format_option, output_option
from roundline.errors import CheckFailedError


@click.command()
@sources_argument
@claims_options
@model_options
@click.option(
    "--fail-over",
    type=click.FloatRange(min=0),
    help="Exit with 1 when the residual exceeds this fraction of the round.",
)
@click.option(
    "--calibrate",
    type=click.Path(path_type=Path),
    help="Fit efficiencies and latencies to this capture and write them here, for --profile.",
)
@format_option()
@output_option
@force_option
def command(
    sources: tuple[Path, ...],
    store_path: Path | None,
    logs: tuple[Path, ...],
    accept_len: float | None,
    accept_rate: float | None,
    tolerance: float,
    fail_over: float | None,
    calibrate: Path | None,
    format_: str,
    output: Path | None,
    force: bool,
    **model: Any,  # the options of ModelOptions
) -> None:
    """Hold the measured round against the bandwidth model, term by term.

    GPU, --tp and --draft-steps are taken from the capture, --engine, --batch and --context from
    its log, when they are not given. The verdict rests on milliseconds a round, never on tokens
    per second.

    --calibrate shows its fits on stderr: points, residuals, and the error where a matrix was left
    out. A profile fits its own capture by construction; it is meant for `roundline predict` and
    other captures.
    """
    from roundline.report.reconciliation import render_reconciliation

    result = reconcile_capture(sources, store_path, logs, accept_len, accept_rate, tolerance, model)
    warn_of_own_profile(result, model["profile"])
    if calibrate is not None:
        write_profile(result, open_capture(sources, store_path), calibrate, force=force)
    emit(render_reconciliation(result, format_), output, force=force)
    residual = abs(result.ledger.totals.residual_fraction)
    if fail_over is not None and residual > fail_over:
        raise CheckFailedError(
            f"the residual is {residual:.1%} of the round, over the limit of {fail_over:.1%}"
        )
