"""The picture as a file: well-formed, self-contained, and pictures in general."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from roundline.reconcile.reconciliation import Reconciliation
from roundline.report.html_picture import render_svg
from roundline.report.svg import at, strip, ticks

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("kind", ["result", "hostile"])
def test_the_file_is_well_formed_and_alone(kind: str, request: pytest.FixtureRequest) -> None:
    """An XML parser reads it; it holds no script and refers to nothing outside."""
    root = ET.fromstring(render_svg(request.getfixturevalue(kind)))
    assert root.tag == f"{SVG}svg"
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "line", "text", "tspan", "path"}
    assert not [key for element in root.iter() for key in element.attrib if "href" in key]


def test_the_file_shows_the_verdict(result: Reconciliation) -> None:
    """Its title is that of the report."""
    root = ET.fromstring(render_svg(result))
    assert root[0].text == f"Unexplained: {result.slowest.wall_ms.mean:.2f} ms a round"


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (55.3, [0, 10, 20, 30, 40, 50]),
        (1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.07, [0, 0.02, 0.04, 0.06]),
        (3350, [0, 1000, 2000, 3000]),
        (0, [0]),
    ],
)
def test_axes_have_round_values(limit: float, expected: list[float]) -> None:
    """Steps of 1, 2 or 5, and never more than six."""
    assert ticks(limit) == pytest.approx(expected)


def test_a_strip_draws_each_stretch_where_it_is() -> None:
    """Positions are relative to the one before; what is too short to see is one unit long."""
    drawn = strip([(0, 500), (600, 1000)], 1000, 0, 10, "c-gemm", "gemm")
    assert 'd="M0 .5m0 0h50000m10000 0h40000"' in drawn
    assert "h1" in strip([(0, 1)], 10**9, 0, 10, "c-gemm", "gemm")


def test_fractions_are_written_short() -> None:
    """Three decimals of a per cent."""
    assert [at(x) for x in (0, 1, 0.5, 1 / 3)] == ["0%", "100%", "50%", "33.333%"]
