"""`roundline doctor`."""

from __future__ import annotations

from pathlib import Path

import click

from roundline.cli._capture import open_capture, sources_argument
from roundline.cli._output import emit
from roundline.cli.options import force_option, format_option, output_option
from roundline.errors import SourceError


@click.command()
@sources_argument
@format_option()
@output_option
@force_option
def command(
    sources: tuple[Path, ...],
    store_path: Path | None,
    format_: str,
    output: Path | None,
    force: bool,
) -> None:
    """Say what a capture lacks, what that blocks, and which command would capture it."""
    from roundline.report.diagnosis import render_diagnosis
    from roundline.warehouse.build import open_warehouse
    from roundline.warehouse.diagnosis import diagnose, diagnose_unusable

    try:
        store = open_capture(sources, store_path)
    except SourceError as error:
        unusable = diagnose_unusable(error)
        if unusable is None:
            raise
        emit(render_diagnosis(unusable, format_), output, force=force)
        return
    with open_warehouse(store) as warehouse:
        diagnosis = diagnose(store, warehouse)
    emit(render_diagnosis(diagnosis, format_), output, force=force)
