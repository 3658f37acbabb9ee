"""`roundline predict`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from roundline.cli._model import ModelOptions, model_options, predict_round
from roundline.cli._output import emit
from roundline.cli.options import force_option, format_option, output_option
from roundline.errors import UsageError

if TYPE_CHECKING:
    from roundline.report.prediction import Conversion


@click.command()
@model_options
@click.option("--accept-len", type=float, multiple=True,
              help="Accept length, bonus token included; may be repeated.")  # fmt: skip
@click.option("--round-ms", type=click.FloatRange(min=0, min_open=True),
              help="A round time to convert to tokens per second.")  # fmt: skip
@click.option("--tokens-per-s", type=click.FloatRange(min=0, min_open=True),
              help="A throughput to convert to a round time.")  # fmt: skip
@format_option()
@output_option
@force_option
def command(
    accept_len: tuple[float, ...],
    round_ms: float | None,
    tokens_per_s: float | None,
    format_: str,
    output: Path | None,
    force: bool,
    **model: Any,  # noqa: ANN401  # the options of ModelOptions
) -> None:
    """Say what one decode round must read and what that must cost.

    Bytes, floor (bytes at the datasheet's bandwidth) and expected time (what good software
    reaches) per term, on one of the --tp GPUs. Print parameters and checkpoint bytes to compare
    with the publisher's.
    """
    from roundline.report.prediction import render_prediction

    prediction = predict_round(ModelOptions(**model))
    steps, batch = prediction.workload.draft_steps, prediction.workload.batch
    lengths = accept_len or tuple(float(n) for n in range(1, steps + 2))
    converted = conversions(accept_len, round_ms, tokens_per_s, batch)
    emit(render_prediction(prediction, lengths, converted, format_), output, force=force)


def conversions(
    accept_lens: tuple[float, ...],
    round_ms: float | None,
    tokens_per_s: float | None,
    batch: int,
) -> tuple[Conversion, ...]:
    """Each given round time or throughput at each accept length; both together give a length."""
    from roundline.bandwidth import speculation
    from roundline.report.prediction import Conversion

    if (round_ms or tokens_per_s) and not accept_lens and not (round_ms and tokens_per_s):
        raise UsageError("a conversion needs --accept-len, or both --round-ms and --tokens-per-s")
    rows = []
    for length in accept_lens:
        if round_ms:
            rate = speculation.tokens_per_s(length, round_ms, batch)
            rows.append(Conversion(round_ms, length, rate))
        if tokens_per_s:
            time = speculation.round_ms(length, tokens_per_s, batch)
            rows.append(Conversion(time, length, tokens_per_s))
    if round_ms and tokens_per_s:
        length = speculation.implied_accept_len(round_ms, tokens_per_s, batch)
        rows.append(Conversion(round_ms, length, tokens_per_s))
    return tuple(rows)
