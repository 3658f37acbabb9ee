"""Where results go: stdout, or a file that is complete or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from roundline.errors import UsageError


def emit(text: str | bytes, output: Path | None, *, force: bool = False) -> None:
    """Print `text`, or write it to `output` by way of a temporary file beside it."""
    if output is None:
        click.echo(text.rstrip("\n") if isinstance(text, str) else text)
        return
    if output.exists() and not force:
        raise UsageError(f"{output} exists: choose another name or add --force")
    data = text.encode() if isinstance(text, str) else text
    handle, temporary = tempfile.mkstemp(prefix=".roundline-", dir=output.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data if data.endswith(b"\n") else data + b"\n")
        Path(temporary).chmod(0o644)
        Path(temporary).replace(output)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def talk(message: str, *, quiet: bool = False) -> None:
    """Say something on stderr."""
    if not quiet:
        click.echo(message, err=True)
