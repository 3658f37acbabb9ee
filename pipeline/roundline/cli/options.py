"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

TABLE_FORMATS = ("table", "json", "csv", "markdown")


def format_option(default: str = "table") -> Callable[[F], F]:
    return click.option(
        "--format", "format_", type=click.Choice(TABLE_FORMATS), default=default,
        show_default=True, help="How to print the result.",
    )  # fmt: skip


def output_option(function: F) -> F:
    return click.option(
        "-o", "--output", type=click.Path(path_type=Path), help="Write here instead of stdout."
    )(function)


def force_option(function: F) -> F:
    return click.option("--force", is_flag=True, help="Replace an existing output.")(function)


def quiet_option(function: F) -> F:
    return click.option("-q", "--quiet", is_flag=True, help="No talk on stderr.")(function)
