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
    from roundline.bandwidth.stated import StatedCheck, StatedModel
    from roundline.bandwidth.workload import Workload
    from roundline.report.prediction import Conversion


@click.command()
@model_options
@click.option("--accept-len", type=float, multiple=True,
              help="Accept length, bonus token included; may be repeated.")  # fmt: skip
@click.option("--round-ms", type=click.FloatRange(min=0, min_open=True),
              help="A round time to convert to tokens per second.")  # fmt: skip
@click.option("--tokens-per-s", type=click.FloatRange(min=0, min_open=True),
              help="A throughput to convert to a round time.")  # fmt: skip
@click.option("--stated", "stated_terms", multiple=True, metavar="TERM=MS",
              help="A term of a hand-made model to check; may be repeated.")  # fmt: skip
@click.option("--stated-total-ms", type=click.FloatRange(min=0, min_open=True),
              help="The round time that the hand-made model claims.")  # fmt: skip
@click.option("--stated-tokens-per-s", type=click.FloatRange(min=0, min_open=True),
              help="The throughput that the model was said to mean.")  # fmt: skip
@click.option("--stated-max-len", type=click.FloatRange(min=0),
              help="The longest accept length that was stated.")  # fmt: skip
@click.option("--stated-ceiling", type=click.FloatRange(min=0, max=1),
              help="The share of the ceiling (weights alone) that was stated, 0 to 1.")  # fmt: skip
@format_option()
@output_option
@force_option
def command(
    accept_len: tuple[float, ...],
    round_ms: float | None,
    tokens_per_s: float | None,
    stated_terms: tuple[str, ...],
    stated_total_ms: float | None,
    stated_tokens_per_s: float | None,
    stated_max_len: float | None,
    stated_ceiling: float | None,
    format_: str,
    output: Path | None,
    force: bool,
    **model: Any,  # the options of ModelOptions
) -> None:
    """Say what one decode round must read and what that must cost.

    Bytes, floor (bytes at the datasheet's bandwidth) and expected time (what good software
    reaches) per term, on one of the --tp GPUs. Print parameters and checkpoint bytes to compare
    with the publisher's.

    A model that somebody made by hand is checked with --stated against the window that it is
    about: its sum, its round time against the measured one, its throughput, and the statements
    beside it. It is unexplained where over 10 % of the measured round is missing.

    \b
      roundline predict --model qwen3.6-27b --gpu "RTX A6000" --tp 2 --draft-steps 3
        --stated weights=35.16 --stated kv=0.02 --stated gdn=0.09 --stated allreduce=1.0
        --stated draft=5.56 --stated-total-ms 42.4 --stated-tokens-per-s 55
        --stated-max-len 3.7 --stated-ceiling 0.95 --accept-len 3.08 --tokens-per-s 55.59
    """
    from roundline.bandwidth.stated import StatedModel
    from roundline.bandwidth.worth import speculation_worth
    from roundline.report.prediction import PredictionReport, render_prediction

    terms = tuple(map(_stated_term, stated_terms))
    stated = StatedModel(
        terms, stated_total_ms, stated_tokens_per_s, stated_max_len, stated_ceiling
    )
    prediction = predict_round(ModelOptions(**model))
    batch, most = prediction.workload.batch, prediction.max_accept_len
    report = PredictionReport(
        prediction=prediction,
        accept_lens=accept_len or tuple(map(float, range(1, most + 1))),
        conversions=conversions(accept_len, round_ms, tokens_per_s, batch),
        checks=stated_checks(stated, accept_len, tokens_per_s, prediction.workload),
        worth=speculation_worth(prediction),
    )
    emit(render_prediction(report, format_), output, force=force)


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


def stated_checks(
    model: StatedModel,
    accept_lens: tuple[float, ...],
    tokens_per_s: float | None,
    workload: Workload,
) -> tuple[StatedCheck, ...]:
    """The hand-made model of `--stated` against the throughput at each accept length."""
    from roundline.bandwidth.stated import StatedModel, check_stated

    if model == StatedModel(()):
        return ()
    if not accept_lens or tokens_per_s is None:
        raise UsageError("a stated model is checked against --accept-len and --tokens-per-s")
    return tuple(
        check_stated(model, length, tokens_per_s, workload.batch, workload.draft_steps)
        for length in accept_lens
    )


def _stated_term(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        return name, float(number)
    except ValueError:
        raise UsageError(f"--stated {text!r}: expected TERM=MS such as weights=35.16") from None
