"""The shipped capture is what its command writes and what its page says."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from statistics import fmean

import polars as pl
import pytest

from roundline.simulate.cases import write_case

BUNDLED = Path(__file__).parents[2] / "traces" / "worked-example"


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The case as the command writes it now."""
    folder = tmp_path_factory.mktemp("bundled")
    write_case("worked-example", folder)
    return folder


def dump(path: Path) -> list[str]:
    """Schema and rows of a database; the file itself names the SQLite that wrote it."""
    with closing(sqlite3.connect(path)) as database:
        return list(database.iterdump())


@pytest.mark.parametrize("name", ["server.log", "truth.json"])
def test_text_files_are_reproduced_to_the_byte(name: str, regenerated: Path) -> None:
    """The command in the README writes the shipped file."""
    assert (regenerated / name).read_bytes() == (BUNDLED / name).read_bytes()


def test_the_capture_is_reproduced_row_for_row(regenerated: Path) -> None:
    """Same tables, same rows in the same order."""
    assert dump(regenerated / "capture.sqlite") == dump(BUNDLED / "capture.sqlite")


def test_the_truth_of_every_activity_is_reproduced(regenerated: Path) -> None:
    """Same rows; Parquet files name the library that wrote them."""
    written, shipped = (pl.read_parquet(p / "truth.parquet") for p in (regenerated, BUNDLED))
    assert written.equals(shipped)


def test_headline_numbers_are_those_of_the_page() -> None:
    """Every figure of the page is the mean over the rounds of rank 0."""
    truth = json.loads((BUNDLED / "truth.json").read_text())
    rounds = [r for r in truth["rounds"] if r["rank"] == 0]
    page = (BUNDLED.parent / "README.md").read_text()

    def worked_ms(*phases: str, category: str | None = None) -> float:
        return (
            fmean(
                sum(
                    work["exclusive_ns"]
                    for work in r["attribution"]
                    if work["phase"] in phases and category in (None, work["category"])
                )
                for r in rounds
            )
            / 1e6
        )

    def idle_ms(*causes: str) -> float:
        return (
            fmean(
                sum(i["idle_ns"] for i in r["idle"] if not causes or i["cause"] in causes)
                for r in rounds
            )
            / 1e6
        )

    assert f"| round | {fmean(r['wall_ns'] for r in rounds) / 1e6:.2f} ms |" in page
    assert f"verification | {worked_ms('verify', category='gemm'):.2f} ms |" in page
    assert f"draft passes | {worked_ms('draft', 'draft_extend'):.2f} ms |" in page
    assert f"wait | {worked_ms('verify', category='collective'):.2f} ms |" in page
    assert f"| idle | {idle_ms():.2f} ms |" in page
    assert f"late | {idle_ms('host_late'):.2f} ms |" in page
    assert {r["collectives"]["count"] for r in rounds} == {138 + 4}


def test_the_log_agrees_with_the_capture() -> None:
    """Tokens per round over the round time are the printed throughput."""
    truth = json.loads((BUNDLED / "truth.json").read_text())
    wall_ms = fmean(r["wall_ns"] for r in truth["rounds"]) / 1e6
    last = (BUNDLED / "server.log").read_text().splitlines()[-1]
    assert "accept len: 3.08, accept rate: 0.69" in last
    assert f"gen throughput (token/s): {3.075 * 1000 / wall_ms:.2f}" in last


def test_the_bundle_is_small() -> None:
    """A checkout stays light: all shipped captures together within 3 MB."""
    assert sum(p.stat().st_size for p in BUNDLED.parent.rglob("*") if p.is_file()) <= 3_000_000
