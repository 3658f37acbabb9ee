"""How often the rules give a kernel name the class that a person gave it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from classifier import Labelled, classify, corpus, extra_names

MIN_CORPUS = 0.99
MIN_CATEGORY = 0.97
MIN_EXTRA = 0.95
MAX_EXTRA_WRONG = 0.03
MAX_UNCLASSIFIED_TIME = 0.005

# What each name of the shared case must become, in the words of this project.
CASE_CATEGORIES = {"allreduce": "collective", "gemv": "gemm"}


def accuracies(labelled: Sequence[Labelled]) -> dict[str, float]:
    """Share of names classified as labelled, per category."""
    given = classify([x.name for x in labelled])
    right = Counter(
        x.category for x, c in zip(labelled, given, strict=True) if x.category == c.category
    )
    return {k: right[k] / n for k, n in Counter(x.category for x in labelled).items()}


def wrong(labelled: Sequence[Labelled]) -> list[tuple[str, str, str]]:
    """Names whose class differs from the label: (name, label, class)."""
    given = classify([x.name for x in labelled])
    return [
        (x.name, x.category, c.category)
        for x, c in zip(labelled, given, strict=True)
        if x.category != c.category
    ]


def test_corpus_by_count(shared: Path) -> None:
    """At least 99 % of the labelled names get their class."""
    labelled = corpus(shared)
    missed = wrong(labelled)
    assert len(missed) <= (1 - MIN_CORPUS) * len(labelled), missed


def test_corpus_by_category(shared: Path) -> None:
    """No category is bought with another: each reaches 97 %."""
    assert {k: v for k, v in accuracies(corpus(shared)).items() if v < MIN_CATEGORY} == {}


def test_families_beside_the_corpus() -> None:
    """Names of other engines get their class too, and an unsure name is left unclassified."""
    labelled = extra_names()
    missed = wrong(labelled)
    confident = [m for m in missed if m[2] != "unclassified"]
    assert len(missed) <= (1 - MIN_EXTRA) * len(labelled), missed
    assert len(confident) <= MAX_EXTRA_WRONG * len(labelled), confident


def test_extra_names_are_many_and_new(shared: Path) -> None:
    """The families beside the corpus are not the corpus again."""
    names = [x.name for x in extra_names()]
    assert len(names) == len(set(names)) >= 150
    assert set(names).isdisjoint(x.name for x in corpus(shared))


def test_shared_case_of_names(shared: Path) -> None:
    """The names of the shared case get the classes that it demands."""
    document = json.loads((shared / "cases" / "T26_names.json").read_text(encoding="utf-8"))
    expected = {n: CASE_CATEGORIES.get(c, c) for n, c in document["names"].items()}
    assert {c.name: c.category for c in classify(list(expected))} == expected


@pytest.mark.parametrize(
    "trace",
    ["sglang_decode/sglang_Qwen3-8B_decode.json.gz", "vllm_decode_full/graph_execution.json.gz"],
)
def test_real_decode_is_classified(shared: Path, trace: str) -> None:
    """At most 0.5 % of the kernel time of a real decode trace stays without a class."""
    with gzip.open(shared / "traces" / "torch" / trace, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    time_us: Counter[str] = Counter()
    for event in events:
        if event.get("cat") == "kernel":
            time_us[event["name"]] += event["dur"]
    unclassified_us = sum(
        time_us[c.name] for c in classify(list(time_us)) if c.category == "unclassified"
    )
    assert unclassified_us <= MAX_UNCLASSIFIED_TIME * sum(time_us.values())
