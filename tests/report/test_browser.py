"""The HTML report in a real browser, without network."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import parse, table_rows, visit

from roundline.reconcile.reconciliation import Reconciliation
from roundline.report.html import render_html


@pytest.fixture(scope="module")
def page(result: Reconciliation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report as a file."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_html(result), encoding="utf-8")
    return path


def test_it_loads_without_a_word_on_the_console(page: Path, tmp_path: Path) -> None:
    """The policy lets the script run: every heading is a button, every table can be copied."""
    seen = visit(page, tmp_path)
    assert seen.console == ()
    tree = parse(seen.dom.replace("<!DOCTYPE html>", ""))
    headings = [th for head in tree.all("thead") for th in head.all("th")]
    assert headings
    assert all(len(th.all("button")) == 1 for th in headings)
    copies = [b for b in tree.all("button") if b.attributes.get("class") == "copy"]
    assert len(copies) >= len(tree.all("table"))
    assert all(b.attributes["aria-label"] for b in copies)


def test_hostile_names_do_nothing(hostile: Reconciliation, tmp_path: Path) -> None:
    """Neither runs what a name holds nor does the policy have to stop anything."""
    path = tmp_path / "hostile.html"
    path.write_text(render_html(hostile), encoding="utf-8")
    seen = visit(path, tmp_path / "profile")
    assert seen.console == ()
    assert not parse(seen.dom.replace("<!DOCTYPE html>", "")).all("img")


def test_a_link_opens_a_table_sorted(page: Path, tmp_path: Path) -> None:
    """By measured time, largest first; parts stay with their term; the heading says so."""
    seen = visit(page, tmp_path, "#sort=ledger-0:4:descending")
    tree = parse(seen.dom.replace("<!DOCTYPE html>", ""))
    rows = table_rows(tree, "ledger-0")
    terms = [(row[0], float(row[4])) for row in rows if not row[0].startswith("·")]
    assert terms == sorted(terms, key=lambda term: -term[1])
    assert [term for term, _ in terms][:3] == ["weights", "draft", "idle"]
    names = [row[0] for row in rows]
    assert names[names.index("collective") + 1 :][:2] == ["· transfer", "· wait"]
    sorted_by = [th for th in tree.all("th") if "aria-sort" in th.attributes]
    assert [(th.text, th.attributes["aria-sort"]) for th in sorted_by] == [
        ("measured ms", "descending")
    ]


def test_text_sorts_as_text_and_empty_cells_come_last(page: Path, tmp_path: Path) -> None:
    """The term column by name; the byte column with its empty cells at the end."""
    by_name = visit(page, tmp_path / "a", "#sort=causes:0:ascending")
    names = [row[0] for row in table_rows(parse(_body(by_name.dom)), "causes")]
    assert names == sorted(names)
    by_bytes = visit(page, tmp_path / "b", "#sort=ledger-0:1:ascending")
    sizes = [
        row[1]
        for row in table_rows(parse(_body(by_bytes.dom)), "ledger-0")
        if not row[0].startswith("·")
    ]
    filled = [float(size) for size in sizes if size]
    assert filled == sorted(filled)
    assert sizes[len(filled) :] == [""] * (len(sizes) - len(filled))
    assert len(filled) < len(sizes)


def test_nothing_sticks_out_on_a_phone(page: Path, tmp_path: Path) -> None:
    """The page itself does not scroll sideways; wide tables scroll within themselves."""
    narrow = tmp_path / "narrow.html"
    text = page.read_text(encoding="utf-8")
    start = text.index('<meta http-equiv="Content-Security-Policy"')
    text = text[:start] + text[text.index(">", start) + 1 :]
    probe = (
        "<script>document.body.setAttribute('data-width',"
        " document.documentElement.scrollWidth - innerWidth)</script></body>"
    )
    narrow.write_text(text.replace("</body>", probe), encoding="utf-8")
    seen = visit(narrow, tmp_path / "profile", "", "--window-size=500,900")
    (body,) = parse(_body(seen.dom)).all("body")
    assert int(body.attributes["data-width"]) <= 0


def _body(dom: str) -> str:
    return dom.replace("<!DOCTYPE html>", "")
