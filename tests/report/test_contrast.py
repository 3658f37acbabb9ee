"""Colours of the report keep the contrast that WCAG AA asks for, light and dark."""

from __future__ import annotations

import re

import pytest

from roundline.report.assets import asset

_SCHEMES = asset("colours.css").split("@media")
TEXT = ("text", "quiet", "link", "good", "caution")
SHAPES = ("floor", "measured", "over")


def colours(scheme: str) -> dict[str, str]:
    """Custom properties of a scheme."""
    block = _SCHEMES[0] if scheme == "light" else _SCHEMES[1]
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block))


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_black_on_white_is_the_greatest_contrast() -> None:
    """The measure itself."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable(scheme: str) -> None:
    """4.5 to 1 on the page and on cards."""
    found = colours(scheme)
    assert {(t, g): contrast(found[t], found[g]) for t in TEXT for g in ("back", "card")
            if contrast(found[t], found[g]) < 4.5} == {}  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_shapes_stand_out(scheme: str) -> None:
    """3 to 1 for what a picture tells by a bar."""
    found = colours(scheme)
    assert {s: contrast(found[s], found["back"]) for s in SHAPES
            if contrast(found[s], found["back"]) < 3} == {}  # fmt: skip


def test_names_on_phases_are_readable_in_both_schemes() -> None:
    """Phases have one colour and one text colour in light and dark."""
    style = asset("picture.css")
    text = re.search(r"text\.on-phase \{ fill: (#[0-9a-f]{6})", style)
    phases = re.findall(r"\.p-(\w+) \{ fill: (#[0-9a-f]{6})", style)
    assert text is not None
    assert len(phases) == 7
    assert {p: c for p, c in phases if contrast(text.group(1), c) < 4.5} == {}
