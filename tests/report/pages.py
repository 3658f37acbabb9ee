"""A page as a tree of what matters to tests, and a browser to open it in."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

VOID = {"meta", "br", "link", "col"}


@dataclass
class Node:
    """An element with its attributes, children and text."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    own_text: str = ""

    def all(self, tag: str) -> list[Node]:
        """Descendants of a tag, in document order."""
        found = [self] if self.tag == tag else []
        return found + [node for child in self.children for node in child.all(tag)]

    @property
    def text(self) -> str:
        """All text within."""
        return (self.own_text + "".join(child.text for child in self.children)).strip()


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("document")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {key: value or "" for key, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(Node("#text", own_text=data))


def parse(page: str) -> Node:
    """The tree of a page whose tags are all closed in order."""
    parser = _Parser()
    parser.feed(page)
    parser.close()
    assert parser.open == [parser.root]
    return parser.root


def table_rows(page: Node, id_: str) -> list[list[str]]:
    """Texts of the body rows of one table."""
    (table,) = [t for t in page.all("table") if t.attributes.get("id") == id_]
    return [
        [cell.text for cell in row.children if cell.tag in ("td", "th")]
        for body in table.all("tbody")
        for row in body.all("tr")
    ]


@dataclass(frozen=True)
class Visit:
    """What a browser made of a page."""

    dom: str
    console: tuple[str, ...]


def visit(page: Path, profile: Path, fragment: str = "", *options: str) -> Visit:
    """Open a page in headless Chromium without network; skips where there is no Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium: install Debian's package to test in a browser")
    done = subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr", f"--user-data-dir={profile}", "--virtual-time-budget=4000",
            *options, "--dump-dom", f"{page.as_uri()}{fragment}",
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    said = tuple(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return Visit(done.stdout, said)
