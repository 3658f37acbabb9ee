"""`roundline simulate` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roundline.cli import main
from roundline.cli.simulate import ENGINES as NAMED
from roundline.simulate.engines.registry import ENGINES

SMALL = ["--engine", "plain-graph", "--model", "qwen3-0.6b", "--tp", "1", "--rounds", "1"]


def test_the_command_names_every_engine() -> None:
    """The choices of the option are the engines that there are."""
    assert set(NAMED) == set(ENGINES)


def test_a_folder_gets_capture_and_truth(tmp_path: Path) -> None:
    """The truth names the options that were not the default."""
    assert main(["simulate", "-o", str(tmp_path / "c"), *SMALL]) == 0
    names = {path.name for path in (tmp_path / "c").iterdir()}
    assert names == {"capture.sqlite", "truth.json", "truth.parquet"}
    truth = json.loads((tmp_path / "c" / "truth.json").read_text())
    assert truth["schema"] == "roundline.simulate/1"
    assert truth["parameters"] == {
        "engine": "plain-graph", "model": "qwen3-0.6b", "tp": 1, "rounds": 1,
        "format": "nsys-sqlite",
    }  # fmt: skip


def test_a_filled_folder_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --force nothing is overwritten."""
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["simulate", "-o", str(tmp_path), *SMALL]) == 2
    assert "--force" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_unknown_names_are_usage_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model or GPU that nobody knows is named, with what is known."""
    assert main(["simulate", "-o", str(tmp_path / "c"), "--model", "qwen3.6-28b"]) == 2
    assert "did you mean qwen3.6-27b" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()
