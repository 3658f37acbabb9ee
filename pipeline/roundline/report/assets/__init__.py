"""Style sheets and the one script of the HTML report."""

from __future__ import annotations

from importlib.resources import files


def asset(name: str) -> str:
    """The text of a file in this folder."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
