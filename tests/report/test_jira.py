"""The Jira report: finding first, tables that keep their columns, names that stay names."""

from __future__ import annotations

import re

import pytest

from roundline.reconcile.reconciliation import Reconciliation
from roundline.report.jira import escape_jira, render_jira


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", r"a\|b"),
        ("{code}", r"\{code\}"),
        ("[~all]", r"\[\~all\]"),
        ("*bold*", r"\*bold\*"),
        ("!x.png!", r"\!x.png\!"),
        ("a\\b", "a&#92;b"),
        ("a & b", "a &amp; b"),
        ("<b>", "&lt;b&gt;"),
        ("_emphasis_", r"\_emphasis\_"),
        ("host_late", "host_late"),
        ("draft-extend", "draft-extend"),
        ("https://x", "https:\u200b//x"),
        ("h1. title", "h1&#46; title"),
        ("line\nbreak", "line&#92;nbreak"),
        ("fine :)", "fine &#58;)"),
    ],
)
def test_text_is_shown_as_it_is(text: str, shown: str) -> None:
    """Signs that mean something to Jira lose it; those inside words had none."""
    assert escape_jira(text) == shown


def test_it_opens_with_the_verdict(result: Reconciliation) -> None:
    """The first line says how long a round takes, the second why."""
    first, second, *_ = render_jira(result).splitlines()
    assert first == f"h2. (!) Unexplained: {result.slowest.wall_ms.mean:.2f} ms a round"
    assert second.startswith("a round takes")


@pytest.mark.parametrize("kind", ["result", "hostile"])
def test_every_row_has_the_cells_of_its_heading(kind: str, request: pytest.FixtureRequest) -> None:
    """Also where names hold bars, braces and line breaks."""
    lines = render_jira(request.getfixturevalue(kind)).splitlines()
    columns, rows = 0, 0
    for line in lines:
        if line.startswith("||"):
            columns = len(re.findall(r"(?<!\\)\|\|", line)) - 1
        elif line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) - 1 == columns, line[:200]
            rows += 1
    assert rows > 60


def test_macros_are_only_our_own(hostile: Reconciliation) -> None:
    """One fold, two blocks of code that end where they should, whatever the names hold."""
    text = render_jira(hostile)
    opened = re.findall(r"(?<!\\)\{(\w+)(?::[^}]*)?\}", _outside_code(text))
    assert opened == ["expand", "expand"]
    assert text.count("{code:") == 2
    assert text.count("{code}") == 2
    assert len(text) < 500_000  # commands and queries are whole, names are cut


def _outside_code(text: str) -> str:
    return re.sub(r"\{code:\w+\}.*?\{code\}", "", text, flags=re.DOTALL)
