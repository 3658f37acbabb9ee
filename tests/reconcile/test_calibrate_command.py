"""`reconcile --calibrate` writes a profile that `predict`, `reconcile` and `report` read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roundline.cli import main

CASE = Path(__file__).parents[2] / "traces" / "worked-example"
MODEL = ("--model", "qwen3.6-27b", "--context", "240")
PREDICT = ("predict", *MODEL, "--gpu", "RTX A6000", "--tp", "2", "--draft-steps", "3")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The bundled capture as a store."""
    target = tmp_path_factory.mktemp("calibrate") / "store"
    assert main(["ingest", str(CASE / "capture.sqlite"), "-o", str(target), "-q"]) == 0
    return str(target)


@pytest.fixture(scope="module")
def profile(store, tmp_path_factory):
    """A profile of the bundled capture."""
    path = tmp_path_factory.mktemp("profile") / "a6000.toml"
    assert main(["reconcile", store, *MODEL, "--calibrate", str(path), "-o", str(path) + "x"]) == 0
    return str(path)


def _json(capsys, *arguments):
    capsys.readouterr()
    assert main([*arguments, "--format", "json"]) == 0
    captured = capsys.readouterr()
    return json.loads(captured.out), captured.err


def test_the_fit_is_shown_beside_the_document(store, tmp_path, capsys):
    """stdout is the ledger alone; points, residuals and left-out errors are on stderr."""
    target = str(tmp_path / "profile.toml")
    document, err = _json(capsys, "reconcile", store, *MODEL, "--calibrate", target)
    assert document["schema"] == "roundline.reconcile/1"
    for text in ("leave-one-out error", "gate_up", "residual us", "all_reduce (nccl)"):
        assert text in err
    assert str(tmp_path) not in Path(target).read_text()


def test_predict_uses_the_profile(profile, capsys):
    """Expected collectives are those of the capture, and the basis is named."""
    plain, _ = _json(capsys, *PREDICT)
    fitted, _ = _json(capsys, *PREDICT, "--profile", profile)
    terms = {term["term"]: term["expected_ms"] for term in fitted["terms"]}
    assert terms["collective"] == pytest.approx(2.636, abs=0.01)
    assert terms["gdn"] == pytest.approx(1.423, rel=0.01)
    assert fitted["totals"]["floor_ms"] == plain["totals"]["floor_ms"]
    assert any("fitted on 7 rounds" in text for text in fitted["assumptions"])


def test_an_option_overrules_the_profile(profile, capsys):
    """What is written on the command line wins."""
    found, _ = _json(capsys, *PREDICT, "--profile", profile, "--alpha-us", "0",
                     "--beta-us-per-kb", "0", "--node-latency-us", "0")  # fmt: skip
    terms = {term["term"]: term["expected_ms"] for term in found["terms"]}
    assert terms["elementwise"] == pytest.approx(0, abs=0.001)
    assert found["switches"]["all_reduce"]["alpha_us"] == 0


def test_a_profile_of_the_same_capture_proves_nothing(store, profile, capsys):
    """It fits by construction, and the command says so."""
    _, err = _json(capsys, "reconcile", store, *MODEL, "--profile", profile)
    assert "proves nothing" in err


def test_an_existing_profile_is_kept(store, profile, capsys):
    """Without --force nothing is overwritten, and no ledger is printed."""
    capsys.readouterr()
    assert main(["reconcile", store, *MODEL, "--calibrate", profile]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--force" in err


def test_a_file_that_is_no_profile_is_refused(tmp_path, capsys):
    """One line that names it."""
    path = tmp_path / "notes.toml"
    path.write_text("answer = 42\n")
    assert main([*PREDICT, "--profile", str(path)]) == 2
    assert "notes.toml" in capsys.readouterr().err
