"""`roundline what-if` on the bundled capture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roundline.cli import main

CASE = Path(__file__).parents[2] / "traces" / "worked-example"
MODEL = ("--model", "qwen3.6-27b", "--context", "240", "--accept-len", "3.08")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The bundled capture as a store."""
    target = tmp_path_factory.mktemp("what-if") / "store"
    assert main(["ingest", str(CASE / "capture.sqlite"), "-o", str(target), "-q"]) == 0
    return str(target)


@pytest.fixture
def document(store, capsys):
    """Run the command and parse its document."""

    def run(*options):
        capsys.readouterr()
        assert main(["what-if", store, *MODEL, *options, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def test_nothing_named_is_the_measured_round(document):
    """Equal numbers, and a schema name."""
    found = document()
    assert found["schema"] == "roundline.what-if/1"
    assert found["totals"]["after_ms"] == found["totals"]["before_ms"]
    assert found["totals"]["before_ms"] == pytest.approx(55.32, abs=0.005)


def test_all_reduces_are_counted_from_the_capture(document):
    """138 all-reduces of about 19.3 us at 5 us each; gathers and waiting stay."""
    found = document("--to-allreduce-us", "5")
    (term,) = [term for term in found["terms"] if term["term"] == "collective"]
    parts = {part["part"]: part for part in term["parts"]}
    assert parts["all_reduce"]["after_ms"] == pytest.approx(129 * 0.005)
    assert parts["all_reduce"]["before_ms"] == pytest.approx(129 * 0.0194, rel=0.01)
    assert parts["wait"]["after_ms"] == parts["wait"]["before_ms"] > 0
    assert parts["all_gather"]["after_ms"] == parts["all_gather"]["before_ms"] > 0


@pytest.mark.parametrize(
    ("options", "changed"),
    [
        (["--to-gpu", "H100 SXM"], {"weights", "attention", "gdn", "draft"}),
        (["--to-hbm-gbps", "960"], {"weights", "attention", "gdn", "draft"}),
        (["--to-gpu", "a card of 2031", "--to-hbm-gbps", "9TB/s"], {"weights", "gdn"}),
        (["--to-link", "nvlink"], {"collective", "draft"}),
        (["--to-collective", "custom"], {"collective", "draft"}),
        (["--to-tp", "4"], {"weights", "attention", "gdn", "collective", "draft"}),
        (["--to-draft-vocab", "32000"], {"draft"}),
        (["--to-head-format", "fp8"], {"weights", "draft"}),
        (["--to-draft-format", "fp8"], {"draft"}),
        (["--to-context", "100000"], {"attention", "draft"}),
        (["--to-draft-steps", "0"], {"gdn", "collective", "draft"}),
    ],
)
def test_every_option_changes_what_it_names(document, options, changed):
    """The terms that follow move; idle time, sampling and copies never do."""
    moved = {t["term"] for t in document(*options)["terms"] if abs(t["change_ms"]) > 1e-3}
    assert changed <= moved
    assert not moved & {"idle", "sampling", "copy", "other", "unclassified"}


def test_the_table_says_bounds_and_what_is_held(store, capsys):
    """A reader sees both bounds, the held milliseconds, and the acceptance."""
    assert main(["what-if", store, *MODEL, "--to-draft-steps", "4"]) == 0
    out = capsys.readouterr().out
    for text in ("bounds, not promises", "held constant", "upper bound", "draft steps: 3 -> 4"):
        assert text in out


def test_an_unknown_gpu_is_a_usage_error(store, capsys):
    """One line on stderr, and nothing on stdout."""
    capsys.readouterr()
    assert main(["what-if", store, *MODEL, "--to-gpu", "RTX 9090"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
