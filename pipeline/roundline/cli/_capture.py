"""STORE arguments: a store is opened, capture files are ingested first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from roundline.cli._output import talk

if TYPE_CHECKING:
    from roundline.store import Store

F = TypeVar("F", bound=Callable[..., Any])


def sources_argument(function: F) -> F:
    """SOURCES… plus `--store`, for every command that reads a capture."""
    function = click.option(
        "--store",
        "store_path",
        type=click.Path(path_type=Path),
        help="Where to put the store when the sources are capture files.",
    )(function)
    return click.argument(
        "sources",
        metavar="STORE|SOURCE...",
        nargs=-1,
        required=True,
        type=click.Path(path_type=Path),
    )(function)


def open_capture(sources: tuple[Path, ...], store_path: Path | None) -> Store:
    """The store that the arguments mean."""
    from roundline.readers.ingest import IngestOptions, open_or_ingest

    return open_or_ingest(sources, store_path, IngestOptions(notice=talk))
