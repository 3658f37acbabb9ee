"""`roundline capture`."""

from __future__ import annotations

import click

from roundline.cli._output import emit
from roundline.cli.options import format_option


@click.command()
@click.argument("engine", metavar="ENGINE")
@format_option()
def command(engine: str, format_: str) -> None:
    """Say how to record a capture of ENGINE: sglang, vllm, trtllm or llama.cpp.

    Prints exact commands, and where phase annotations go in the engine's source
    (`from roundline.capture.annotate import phase`).
    """
    from roundline.capture.recipes import recipe
    from roundline.report.recipe import render_recipe

    emit(render_recipe(recipe(engine), format_), None)
