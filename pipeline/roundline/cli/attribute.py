"""`roundline attribute`."""

from __future__ import annotations

from pathlib import Path

import click

from roundline.cli._capture import open_capture, sources_argument
from roundline.cli._output import emit, talk
from roundline.cli.options import force_option, format_option, output_option, quiet_option


@click.command()
@sources_argument
@click.option(
    "--rules",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="CSV (rule,category,subcategory,pattern) of kernel rules that go before ours.",
)
@click.option(
    "--explain", metavar="NAME", help="Say which rule classifies this kernel name and why."
)
@format_option()
@output_option
@force_option
@quiet_option
def command(
    sources: tuple[Path, ...],
    store_path: Path | None,
    rules: Path | None,
    explain: str | None,
    format_: str,
    output: Path | None,
    force: bool,
    quiet: bool,
) -> None:
    """Cut a capture into rounds and say where their time went.

    Prints mean times per steady round by phase and category, idle time by cause, and the kernel
    names that have no class. Exclusive and idle times add up to the wall time of every round.
    """
    from roundline.report.attribution import render_attribution, render_explanation
    from roundline.warehouse.attribution import read_attribution
    from roundline.warehouse.build import open_warehouse
    from roundline.warehouse.explain import explain_name
    from roundline.warehouse.parameters import Parameters

    parameters = Parameters(user_rules=rules)
    if explain is not None:
        emit(render_explanation(explain_name(explain, parameters), format_), output, force=force)
        return
    store = open_capture(sources, store_path)
    with open_warehouse(store, parameters) as warehouse:
        attribution = read_attribution(warehouse)
    for line in attribution.quality:
        if line.status in ("poor", "warning"):
            talk(f"rank {line.rank}: {line.detail}", quiet=quiet)
    emit(render_attribution(attribution, format_), output, force=force)
