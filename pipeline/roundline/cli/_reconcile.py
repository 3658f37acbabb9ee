"""What `reconcile`, `report` and their kin share: a capture held against model options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from roundline.cli._capture import open_capture
from roundline.cli._model import ModelOptions, predict_round

if TYPE_CHECKING:
    from roundline.bandwidth.prediction import RoundFloor
    from roundline.reconcile.reconciliation import CaptureFacts, Reconciliation

F = TypeVar("F", bound=Callable[..., Any])

_CLAIMS = (
    click.option("--log", "logs", multiple=True, type=click.Path(path_type=Path, exists=True),
                 help="Server log of the same run; may be repeated."),
    click.option("--accept-len", type=float, help="Accept length, bonus token included."),
    click.option("--accept-rate", type=float, help="Accept rate as the engine prints it."),
    click.option("--tolerance", type=click.FloatRange(0, 1), default=0.1, show_default=True,
                 help="Residual that still reconciles, as a fraction of the round."),
)  # fmt: skip


def claims_options(function: F) -> F:
    """`--log`, acceptance and tolerance."""
    for option in reversed(_CLAIMS):
        function = option(function)
    return function


def reconcile_capture(
    sources: tuple[Path, ...],
    store_path: Path | None,
    logs: tuple[Path, ...],
    accept_len: float | None,
    accept_rate: float | None,
    tolerance: float,
    model: dict[str, Any],
) -> Reconciliation:
    """Open or ingest, then reconcile; model options that were not given come from the capture."""
    from roundline.readers.windows import read_log_windows
    from roundline.reconcile.reconciliation import Claims, reconcile

    options = ModelOptions(**model)
    given = _given()

    def predictor(facts: CaptureFacts) -> RoundFloor:
        return predict_round(_completed(options, given, facts))

    store = open_capture(sources, store_path)
    claims = Claims(accept_len, accept_rate, tolerance)
    result = reconcile(store, predictor, claims, read_log_windows(logs))
    return replace(result, command=_command(given))


def _given() -> frozenset[str]:
    """Names of the options that the user wrote."""
    context = click.get_current_context()
    default = (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    return frozenset(
        name for name in context.params if context.get_parameter_source(name) not in default
    )


_ABOUT_OUTPUT = frozenset({"output", "format_", "force", "quiet", "store_path", "fail_over"})


def _command(given: frozenset[str]) -> tuple[str, ...]:
    """Sources and options as written, for a report; files by name, as a path may name a user."""
    context = click.get_current_context()
    words: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in given or name in _ABOUT_OUTPUT:
            continue
        value = context.params[name]
        for each in value if isinstance(value, tuple) else (value,):
            option = [] if isinstance(parameter, click.Argument) else [parameter.opts[0]]
            words += [*option, _word(each)]
    return tuple(words)


def _word(value: object) -> str:
    if isinstance(value, str) and "/" in value and Path(value).exists():
        return Path(value).name
    return value.name if isinstance(value, Path) else str(value)


def _completed(options: ModelOptions, given: frozenset[str], facts: CaptureFacts) -> ModelOptions:
    from_capture: dict[str, Any] = {
        "gpu": facts.device_name,
        "tp": facts.ranks,
        "draft_steps": facts.draft_passes,
        "engine": facts.engine or options.engine,
        "batch": facts.running_requests or options.batch,
        "context": facts.context_tokens or options.context,
    }
    return replace(options, **{k: v for k, v in from_capture.items() if k not in given})
