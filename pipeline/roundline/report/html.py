"""The report as one HTML file: no network, no font, no script but its own.

The page reads without the script, which only adds sorting and copying. A content security policy
allows that one script and that one style sheet by their hashes, so that nothing else could run
even if a name from a capture were ever placed unescaped.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from roundline.report.assets import asset
from roundline.report.evidence import setting
from roundline.report.html_markup import Markup, element
from roundline.report.html_sections import sections

if TYPE_CHECKING:
    from roundline.reconcile.reconciliation import Reconciliation


def render_html(r: Reconciliation) -> str:
    """The whole page; equal input gives equal bytes."""
    parts = list(sections(r))
    contents = [element("li", element("a", heading, href=f"#{id_}")) for id_, heading, _ in parts]
    body = element(
        "body",
        element("a", "Skip to the findings", href="#findings", class_="skip"),
        element("header", *_heading(r)),
        element("nav", element("ul", *contents), aria_label="Sections"),
        element("main", *[_section(*part) for part in parts]),
        element("footer", element("p", f"Made by Roundline {r.manifest.tool_version}.")),
        element("div", id="said", role="status", aria_live="polite"),
        element("script", _asset("report.js")),
    )
    page = element("html", _head(r), body, lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def style_sheet() -> Markup:
    """The page's style with that of its pictures."""
    return Markup(asset("colours.css") + asset("report.css") + asset("picture.css"))


def _asset(name: str) -> Markup:
    return Markup(asset(name))


def _head(r: Reconciliation) -> Markup:
    style, script = style_sheet(), _asset("report.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}';"
        " base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{_title(r)} - Roundline"),
        element("style", style),
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _title(r: Reconciliation) -> str:
    return f"{r.verdict.status.capitalize()}: {r.slowest.wall_ms.mean:.2f} ms a round"


def _heading(r: Reconciliation) -> list[Markup]:
    totals = r.ledger.totals
    figures = [
        ("measured", f"{totals.measured_ms:.2f} ms"),
        ("expected", f"{totals.expected_ms:.2f} ms"),
        ("floor", f"{totals.floor_ms:.2f} ms"),
        ("residual", f"{totals.residual_ms:+.2f} ms, {100 * totals.residual_fraction:+.1f} %"),
    ]
    return [
        element("h1", _title(r)),
        element("p", f"{_sentence(r.verdict.text)}.", class_=f"verdict {_mood(r)}"),
        element(
            "dl",
            *[element("div", element("dt", term), element("dd", value)) for term, value in figures],
            class_="figures",
        ),
        element("p", f"{setting(r)}. Rank {r.slowest.rank}, the slowest of {len(r.ranks)}."),
    ]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _mood(r: Reconciliation) -> str:
    return "good" if r.verdict.status == "reconciled" else "caution"


def _section(id_: str, heading: str, content: Markup) -> Markup:
    title = f"{id_}-heading"
    return element(
        "section", element("h2", heading, id=title), content, id=id_, aria_labelledby=title
    )
