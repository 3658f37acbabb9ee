"""`roundline report`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from roundline.cli._calibrate import warn_of_own_profile
from roundline.cli._capture import sources_argument
from roundline.cli._model import model_options
from roundline.cli._output import emit, talk
from roundline.cli._reconcile import claims_options, reconcile_capture
from roundline.cli.options import force_option, quiet_option


@click.command()
@sources_argument
@claims_options
@model_options
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write; its suffix is the format: .html, .md, .jira, .svg, .json, .csv, .txt.",
)
@force_option
@quiet_option
def command(
    sources: tuple[Path, ...],
    store_path: Path | None,
    logs: tuple[Path, ...],
    accept_len: float | None,
    accept_rate: float | None,
    tolerance: float,
    output: Path,
    force: bool,
    quiet: bool,
    **model: Any,  # the options of ModelOptions
) -> None:
    """Write a report to attach to a ticket: verdict, findings, ledger, evidence.

    The HTML report is one file that needs no network: pictures, tables that sort and copy,
    and the commands that make it again.
    """
    from roundline.report.reconciliation import format_of, render_reconciliation

    format_ = format_of(output)
    result = reconcile_capture(sources, store_path, logs, accept_len, accept_rate, tolerance, model)
    warn_of_own_profile(result, model["profile"])
    emit(render_reconciliation(result, format_), output, force=force)
    talk(f"wrote {output}", quiet=quiet)
