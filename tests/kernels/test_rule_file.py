"""The rule file itself: legal, ordered, general, and without dead lines."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from classifier import Classified, classify, corpus, extra_names, rules

from roundline.warehouse.connection import connect
from roundline.warehouse.parameters import CATEGORIES

MAX_SHARE_OF_SINGLE_NAME_RULES = 0.04
MAX_SHARE_OF_SINGLE_FUNCTION_RULES = 0.05
MAX_RULES_PER_CORPUS_NAME = 0.25


@pytest.fixture(scope="module")
def decided(shared: Path) -> list[Classified]:
    """Every labelled name with the rule that decides it, the corpus first."""
    return classify([x.name for x in [*corpus(shared), *extra_names()]])


def test_each_pattern_compiles() -> None:
    """Each pattern is a regular expression of the engine that runs it, and none matches all."""
    connection = connect()
    matched = {
        rule.rule: connection.execute("SELECT regexp_matches('§', ?)", [rule.pattern]).fetchone()
        for rule in rules()
    }
    connection.close()
    assert set(matched.values()) == {(False,)}


def test_rules_are_named_and_worded_once() -> None:
    """Names and patterns occur once, categories are known, and every rule says why."""
    listed = rules()
    assert max(Counter(r.rule for r in listed).values()) == 1
    assert max(Counter(r.pattern for r in listed).values()) == 1
    assert {r.category for r in listed} == set(CATEGORIES)
    assert all(r.subcategory and r.why for r in listed)


def test_patterns_speak_the_canonical_spelling() -> None:
    """A pattern with a capital letter could never match a name in lower case."""
    literal = {r.rule: re.sub(r"\\[A-Za-z]", "", r.pattern) for r in rules()}
    assert [rule for rule, text in literal.items() if text != text.lower()] == []


def test_each_rule_decides_a_known_name(decided: list[Classified]) -> None:
    """No rule is dead: each decides a name of the corpus or of the families beside it."""
    assert {r.rule for r in rules()} - {c.rule for c in decided} == set()


def test_rules_are_patterns_and_no_list_of_names(decided: list[Classified], shared: Path) -> None:
    """Few names of the corpus depend on a rule that decides them alone."""
    known = corpus(shared)
    names = Counter(c.rule for c in decided)
    functions = defaultdict(set)
    for c in decided:
        functions[c.rule].add(c.normal_name.partition("<")[0])
    in_corpus = [c.rule for c in decided[: len(known)]]
    alone = sum(names[rule] == 1 for rule in in_corpus) / len(known)
    one_function = sum(len(functions[rule]) == 1 for rule in in_corpus) / len(known)
    assert alone <= MAX_SHARE_OF_SINGLE_NAME_RULES
    assert one_function <= MAX_SHARE_OF_SINGLE_FUNCTION_RULES
    assert len(rules()) <= MAX_RULES_PER_CORPUS_NAME * len(known)
