"""The report's two main pictures as one SVG file: the ledger, and the round as a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from roundline.report.assets import asset
from roundline.report.evidence import setting
from roundline.report.html_ledger import ledger_drawing
from roundline.report.html_markup import Child, Markup, element, join
from roundline.report.html_timeline import timeline_drawing
from roundline.report.svg import Drawing, label, legend

if TYPE_CHECKING:
    from roundline.reconcile.reconciliation import Reconciliation

_WIDTH: Final = 960
_MARGIN: Final = 24


def render_svg(r: Reconciliation) -> str:
    """A picture of fixed width for a ticket or a slide; equal input gives equal bytes."""
    title = f"{r.verdict.status.capitalize()}: {r.slowest.wall_ms.mean:.2f} ms a round"
    shapes: list[Child] = [
        label(0, 22, title, class_="title"),
        label(0, 44, f"{setting(r)}; rank {r.slowest.rank}"),
    ]
    y = 72.0
    for drawing in (ledger_drawing(r.ledger), timeline_drawing(r.pictures.timelines)):
        placed, used = _placed(drawing, y)
        shapes.append(placed)
        y += used
    inner = element("svg", *shapes, x=_MARGIN, y=_MARGIN, width=_WIDTH - 2 * _MARGIN, height=y)
    height = y + 2 * _MARGIN
    page = element(
        "svg",
        element("title", title, id="title"),
        element("desc", r.verdict.text, id="desc"),
        element("style", Markup(asset("colours.css") + asset("picture.css"))),
        element("rect", width="100%", height="100%", class_="page"),
        inner,
        xmlns="http://www.w3.org/2000/svg",
        viewbox=f"0 0 {_WIDTH} {height:g}", width=_WIDTH, height=height,
        role="img", aria_labelledby="title desc",
    )  # fmt: skip
    return f"{page}\n"


def _placed(drawing: Drawing, top: float) -> tuple[Markup, float]:
    keys, used = legend(drawing.keys, top + 22)
    body = element(
        "svg", drawing.shapes, x="0", y=top + 22 + used + 8, width="100%", height=drawing.height
    )
    heading = label(0, top + 10, drawing.title, class_="heading")
    return join([heading, keys, body]), used + drawing.height + 54
