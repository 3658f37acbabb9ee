"""`roundline ingest`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from roundline.cli._output import emit, talk
from roundline.cli.options import force_option, format_option, quiet_option

if TYPE_CHECKING:
    from roundline.readers.contract import Progress


@click.command()
@click.argument(
    "sources", metavar="SOURCE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "-o", "--output", "target", required=True, type=click.Path(path_type=Path),
    help="Directory of the new store.",
)  # fmt: skip
@click.option("--allow-truncated", is_flag=True, help="Keep what a dead writer left behind.")
@click.option("--lenient", is_flag=True, help="Go on when GPU events are damaged; count the loss.")
@click.option("--with-python", is_flag=True, help="Keep Python-stack events; they are many.")
@click.option(
    "--jobs", type=click.IntRange(min=1), default=1, show_default=True,
    help="Sources to read at the same time.",
)  # fmt: skip
@format_option()
@force_option
@quiet_option
def command(
    sources: tuple[Path, ...],
    target: Path,
    allow_truncated: bool,
    lenient: bool,
    with_python: bool,
    jobs: int,
    format_: str,
    force: bool,
    quiet: bool,
) -> None:
    """Read captures into a Parquet store.

    SOURCE is an Nsight Systems export (.sqlite, parquetdir, arrowdir) or report (.nsys-rep), a
    PyTorch-profiler trace (.json, .json.gz), a server log, or a directory of these. All of them
    become one capture; files are recognised by content.
    """
    from roundline.readers.contract import ReadOptions
    from roundline.readers.ingest import IngestOptions, ingest
    from roundline.report.ingestion import render_ingestion

    options = IngestOptions(
        read=ReadOptions(allow_truncated, lenient, with_python),
        jobs=jobs,
        force=force,
        progress=None if quiet else _progress(),
        notice=lambda message: talk(message, quiet=quiet),
    )
    result = ingest(sources, target, options)
    for diagnostic in result.diagnostics:
        if diagnostic.severity != "info":
            talk(f"{diagnostic.severity}: {diagnostic.detail} [{diagnostic.code}]", quiet=quiet)
    emit(render_ingestion(result, format_), None)


def _progress() -> Progress | None:
    """A line on stderr that moves, if stderr is a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        share = done / total if total else 1.0
        end = "\n" if done >= total else "\r"
        click.echo(f"read {share:6.1%} of {total / 1e6:,.0f} MB", err=True, nl=False)
        click.echo(end, err=True, nl=False)

    return show
