"""Pictures as small SVG of our own.

Plotting libraries were weighed and left: the pictures are bars, strips and dots; a library would
bring a megabyte of script into every report or a dependency that draws differently from version to
version, and neither gives text that stays readable at the width of a phone. Here widths are per
cent of whatever room there is and text keeps its size, colours are classes so that dark mode and
print need no second picture, and equal input gives equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from roundline.report.html_markup import Child, Markup, element, join, number

CATEGORIES: Final = (
    "gemm", "attention", "gdn", "collective", "norm", "rope", "activation", "elementwise",
    "quantize", "kvcache", "embedding", "sampling", "spec", "moe_routing", "copy", "index",
    "reduction", "weight_prep", "memcpy", "memset",
)  # fmt: skip
PHASES: Final = ("draft", "verify", "sample", "commit", "draft_extend", "prefill", "other")
CAUSES: Final = (
    "host_late", "launch_latency", "in_graph", "dependency", "profiler", "unknown",
)  # fmt: skip


def colour(label: str) -> str:
    """The class that colours a category, phase or cause; unknown ones share one."""
    for prefix, known in (("c", CATEGORIES), ("p", PHASES), ("i", CAUSES)):
        if label in known:
            return f"{prefix}-{label}"
    return "c-unclassified"


def phase_colour(phase: str) -> str:
    """The class that colours a phase."""
    return f"p-{phase}" if phase in PHASES else "p-other"


@dataclass(frozen=True)
class Drawing:
    """Shapes over a width that is not known yet and a height in pixels.

    `description` says in words what the picture shows, for those who do not see it; `keys` are
    the (class, text) pairs of its legend.
    """

    id: str
    title: str
    description: str
    height: float
    shapes: Markup
    keys: tuple[tuple[str, str], ...] = ()


def figure_svg(drawing: Drawing) -> Markup:
    """The drawing as an image for a page."""
    title, description = f"{drawing.id}-title", f"{drawing.id}-desc"
    return element(
        "svg",
        element("title", drawing.title, id=title),
        element("desc", drawing.description, id=description),
        drawing.shapes,
        width="100%", height=drawing.height, role="img",
        aria_labelledby=f"{title} {description}",
    )  # fmt: skip


def at(fraction: float) -> str:
    """A fraction of the width."""
    return f"{100 * fraction:.3f}".rstrip("0").rstrip(".") + "%"


def bar(
    x: float, width: float, y: float, height: float, class_: str, title: str | None = None
) -> Markup:
    """A rectangle; `x` and `width` are fractions of the width, `y` and `height` pixels."""
    return element(
        "rect", element("title", title) if title else None,
        x=at(x), width=at(width), y=y, height=height, class_=class_,
    )  # fmt: skip


def label(x: float, y: float, *text: Child, class_: str | None = None, **more: str) -> Markup:
    """Text at a fraction of the width."""
    return element("text", *text, x=at(x), y=y, class_=class_, **more)


def rule(x: float, top: float, bottom: float, class_: str) -> Markup:
    """A vertical line at a fraction of the width."""
    return element("line", x1=at(x), x2=at(x), y1=top, y2=bottom, class_=class_)


def box(x: float, width: float, y: float, height: float, *children: Child) -> Markup:
    """Children in a part of the width; what does not fit is cut off."""
    return element("svg", *children, x=at(x), width=at(width), y=y, height=height)


def strip(
    pieces: Iterable[tuple[int, int]], full: int, y: float, height: float, class_: str, title: str
) -> Markup:
    """Many stretches `[start, end)` of one kind along a line of length `full`, as one path.

    The line has a height of one unit and the picture stretches it, so a stretch costs ten bytes.
    """
    scale = 100_000 / full if full else 0.0
    path, pen = ["M0 .5"], 0
    for start, end in pieces:
        left, right = round(start * scale), max(round(end * scale), round(start * scale) + 1)
        path.append(f"m{left - pen} 0h{right - left}")
        pen = right
    return element(
        "svg",
        element("path", element("title", title), d=Markup("".join(path)), class_=f"strip {class_}"),
        x="0", width="100%", y=y, height=height,
        viewbox="0 0 100000 1", preserveaspectratio="none",
    )  # fmt: skip


def ticks(limit: float, at_most: int = 6) -> list[float]:
    """Round values from 0 up to `limit`, at most so many steps of 1, 2 or 5 times a power of 10."""
    if limit <= 0:
        return [0.0]
    power = 10.0**-9
    while True:
        for factor in (1, 2, 5):
            step = factor * power
            if limit / step <= at_most:
                return [step * i for i in range(int(limit / step) + 1)]
        power *= 10


def axis(limit: float, top: float, bottom: float, unit: str) -> Markup:
    """Vertical grid lines with their values below."""
    values = ticks(limit)
    shapes: list[Child] = []
    for value in values:
        x = value / limit if limit else 0.0
        anchor = "start" if x == 0 else "end" if x > 0.96 else "middle"
        text = f"{value:g} {unit}" if value == values[-1] else f"{value:g}"
        shapes += [
            rule(x, top, bottom, "grid"),
            label(x, bottom + 13, text, class_="axis", text_anchor=anchor),
        ]
    return join(shapes)


def legend(
    entries: Sequence[tuple[str, str]], top: float, columns: int = 4
) -> tuple[Markup, float]:
    """(class, text) pairs in columns; returns the shapes and the height they take."""
    shapes: list[Child] = []
    for index, (class_, text) in enumerate(entries):
        x, y = (index % columns) / columns, top + 18 * (index // columns)
        inner = join([
            element("rect", x="0", y="2", width="10", height="10", class_=class_),
            element("text", text, x="15", y="11"),
        ])  # fmt: skip
        shapes.append(box(x, 1 / columns, y, 18, inner))
    return join(shapes), 18.0 * -(-len(entries) // columns)


def coordinates(points: Iterable[tuple[float, float]]) -> str:
    """Points of a path."""
    return " ".join(f"{number(x)},{number(y)}" for x, y in points)
