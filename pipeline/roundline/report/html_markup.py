"""Markup that cannot be broken by what it shows: every plain string is escaped when it is placed.

Names in captures come from strangers. Only `element` makes `Markup`, and only `Markup` goes into a
document as it is; nothing from a capture ever reaches a script or a style.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final

from roundline.report.tabular import shorten, visible

NAME_LIMIT: Final = 300
TEXT_LIMIT: Final = 6_000  # longer than any text of our own
_VOID: Final = frozenset({"br", "meta", "link", "col"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child = Markup | str | None


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """One HTML or SVG element.

    Args:
        tag: its name.
        children: markup as it is, plain strings escaped, None left out.
        attributes: `class_` means `class`, other underscores are hyphens; None and False are left
            out, True stands without a value, numbers keep two decimals, markup (the path of a
            picture) stands as it is.
    """
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Markup(f"<{tag}{written}>")
    return Markup(f"<{tag}{written}>{join(children)}</{tag}>")


def join(children: Iterable[Child], separator: str = "") -> Markup:
    """Children one after the other."""
    return Markup(separator.join(_child(child) for child in children if child is not None))


def name(text: str, limit: int = NAME_LIMIT) -> Markup:
    """A name from a capture: its control characters shown, its direction kept to itself."""
    return element("bdi", shorten(visible(text), limit))


def number(value: float) -> str:
    """A coordinate with at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _child(child: Markup | str) -> str:
    return child if isinstance(child, Markup) else html.escape(_bounded(child), quote=False)


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    key = key.rstrip("_").replace("_", "-")
    key = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}.get(key, key)
    if value is True:
        return f" {key}"
    if isinstance(value, Markup):
        return f' {key}="{value}"'
    text = value if isinstance(value, str) else number(value)
    return f' {key}="{html.escape(_bounded(text))}"'


def _bounded(text: str) -> str:
    return shorten(visible(text), TEXT_LIMIT)
