"""Renders `roundline capture`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from roundline.report.documents import document
from roundline.report.tabular import render

if TYPE_CHECKING:
    from roundline.capture.recipes import Recipe


def render_recipe(recipe: Recipe, format_: str) -> str:
    """Commands, annotations and notes in any table format, or a `roundline.capture/1` document."""
    if format_ == "json":
        return document("capture", **asdict(recipe))
    if format_ in ("csv", "markdown"):
        rows = [(step.purpose, step.command) for step in recipe.steps]
        return render(("purpose", "command"), rows, format_)
    lines = [line for step in recipe.steps for line in (f"# {step.purpose}", step.command, "")]
    if recipe.annotate:
        lines += ["# where phase annotations go", *recipe.annotate, ""]
    return "\n".join([*lines, "# mind", *recipe.notes, ""])
