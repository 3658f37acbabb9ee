"""The HTML report: complete, harmless, reachable for everyone, the same every time."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import Node, parse, table_rows

from roundline.reconcile.reconciliation import Reconciliation
from roundline.report.assets import asset
from roundline.report.html import render_html
from roundline.report.html_markup import element, name, number


@pytest.fixture(scope="module")
def page(result: Reconciliation) -> Node:
    """The page of the bundled capture."""
    return parse(render_html(result))


def test_plain_text_is_escaped_wherever_it_is_placed() -> None:
    """Children and attributes cannot end their element."""
    made = element("td", "<b>&", title="\"'<>")
    assert made == '<td title="&quot;&#x27;&lt;&gt;">&lt;b&gt;&amp;</td>'


def test_a_name_is_cut_isolated_and_shows_its_control_characters() -> None:
    """Right-to-left overrides and escapes become visible, long names end in a mark."""
    assert name("a\u202eb\x1b", 50) == "<bdi>a\\u202eb\\x1b</bdi>"
    assert len(name("x" * 20_000, 100)) == len("<bdi></bdi>") + 100


def test_coordinates_are_short_and_never_minus_zero() -> None:
    """Two decimals at most."""
    assert [number(v) for v in (0.0, -0.001, 1.5, 33.333, 100)] == ["0", "0", "1.5", "33.33", "100"]


def test_the_page_asks_nothing_of_the_network_and_allows_only_its_own_script(page: Node) -> None:
    """No address anywhere; the policy names the hash of the one script and the one style."""
    (script,), (style,) = page.all("script"), page.all("style")
    policy = next(m.attributes["content"] for m in page.all("meta") if "http-equiv" in m.attributes)
    for text, kind in (
        (script.children[0].own_text, "script"),
        (style.children[0].own_text, "style"),
    ):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    for node in _elements(page):
        assert not {"src", "style", "action"} & node.attributes.keys()
        assert node.attributes.get("href", "#").startswith("#")
        assert not [key for key in node.attributes if key.startswith("on")]
    assert "url(" not in style.text
    assert "@import" not in style.text


def test_hostile_names_stay_text(hostile: Reconciliation) -> None:
    """The elements of the page are the same kinds as without them, and the page stays small."""
    text = render_html(hostile)
    page = parse(text)
    assert len(page.all("script")) == 1
    assert page.all("script")[0].text == asset("report.js").strip()
    assert not page.all("img")
    assert "<script>alert(1)</script>" in page.all("main")[0].text
    assert not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069]", text)
    assert len(text.encode()) < 1_000_000


def test_every_ledger_line_is_in_table_and_picture(result: Reconciliation, page: Node) -> None:
    """The numbers of the ledger, and a bar with its own words for each."""
    rows = {row[0]: row for row in table_rows(page, f"ledger-{result.slowest.rank}")}
    titles = [title.text for title in page.all("title")]
    for line in result.ledger.lines:
        assert rows[line.term][4] == f"{line.measured_ms:.3f}"
        if line.measured_ms:
            assert f"{line.term}: measured {line.measured_ms:.3f} ms" in titles


def test_the_timeline_shows_every_rank_phase_category_and_cause(
    result: Reconciliation, page: Node
) -> None:
    """Whatever took time in the drawn round has a stretch that names it."""
    titles = " ".join(title.text for title in page.all("title"))
    texts = [text.text for text in page.all("text")]
    assert len(result.pictures.timelines) == 2
    for timeline in result.pictures.timelines:
        assert any(text.startswith(f"rank {timeline.rank}, round") for text in texts)
        for time in timeline.times:
            assert f"{'idle: ' if time.idle else ''}{time.label}: " in titles
            assert f"{time.phase}{f' {time.draft_step}' if time.draft_step else ''}: " in titles


def test_outliers_are_named_with_the_term_that_differs(page: Node) -> None:
    """The profiler flushed in round 4: it stands out on both ranks, by idle time."""
    assert [[*row[:2], row[4]] for row in table_rows(page, "outliers")] == [
        ["0", "4", "idle"],
        ["1", "4", "idle"],
    ]


def test_tables_say_what_they_are_and_what_their_headings_head(page: Node) -> None:
    """A caption, column and row scopes, and a region that the keyboard can scroll."""
    tables = page.all("table")
    assert len(tables) > 10
    for table in tables:
        (caption,) = table.all("caption")
        assert caption.text
        for heading in table.all("th"):
            assert heading.attributes["scope"] in ("col", "row")
        assert all(row.all("th") for row in table.all("tr"))
    regions = [d for d in page.all("div") if d.attributes.get("class") == "scroll"]
    assert len(regions) == len(tables)
    assert all(r.attributes["tabindex"] == "0" for r in regions)


def test_pictures_have_a_title_and_a_description(page: Node) -> None:
    """What a picture shows is told in words, by ids that exist once."""
    ids = [node.attributes["id"] for node in _elements(page) if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    pictures = [svg for svg in page.all("svg") if svg.attributes.get("role") == "img"]
    assert len(pictures) >= 5
    for picture in pictures:
        labels = picture.attributes["aria-labelledby"].split()
        assert len(labels) == 2
        assert set(labels) <= set(ids)
        assert all(picture.all(tag)[0].text for tag in ("title", "desc"))


def test_landmarks_and_headings_are_in_order(page: Node) -> None:
    """One main with labelled sections; the navigation reaches each; a link skips it."""
    (main,) = page.all("main")
    sections = [node for node in main.children if node.tag == "section"]
    links = [a.attributes["href"] for a in page.all("nav")[0].all("a")]
    assert links == [f"#{section.attributes['id']}" for section in sections]
    assert len(page.all("h1")) == len(page.all("header")) == len(page.all("footer")) == 1
    assert page.all("a")[0].attributes["href"] == "#findings"
    assert page.all("html")[0].attributes["lang"] == "en"


def test_the_report_names_sources_and_commands(result: Reconciliation, page: Node) -> None:
    """Hashes of the files, and command lines without the paths of this machine."""
    text = page.all("main")[0].text
    assert all(source.sha256 in text for source in result.manifest.sources)
    assert "roundline report store --log server.log --model qwen3.6-27b --context 240" in text
    assert str(Path(__file__).parents[2]) not in text


def test_a_normal_report_is_small(result: Reconciliation) -> None:
    """Two ranks of a thousand kernels a round fit in 300 KB."""
    assert len(render_html(result).encode()) < 300_000


@pytest.mark.parametrize("suffix", ["html", "jira", "svg", "md"])
def test_same_capture_same_bytes(report_store: Path, tmp_path: Path, suffix: str) -> None:
    """Two processes with other hash seeds write equal files."""
    written = []
    for seed in ("1", "2"):
        target = tmp_path / f"{seed}.{suffix}"
        subprocess.run(
            [sys.executable, "-m", "roundline", "report", str(report_store),
             "--model", "qwen3.6-27b", "-o", str(target), "-q"],
            env={**os.environ, "PYTHONHASHSEED": seed}, check=True,
        )  # fmt: skip
        written.append(target.read_bytes())
    assert written[0] == written[1]


def _elements(node: Node) -> list[Node]:
    return [node, *[below for child in node.children for below in _elements(child)]]
