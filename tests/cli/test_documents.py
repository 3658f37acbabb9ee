"""The JSON documents carry the keys that others rely on, and their numbers belong together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roundline.cli import main

CASE = Path(__file__).parents[2] / "traces" / "worked-example"
MODEL = ("--model", "qwen3.6-27b", "--log", str(CASE / "server.log"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled capture as a store."""
    target = tmp_path_factory.mktemp("documents") / "store"
    assert main(["ingest", str(CASE / "capture.sqlite"), "-o", str(target), "-q"]) == 0
    return target


@pytest.fixture
def document(store: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command on the store and parse its document."""

    def run(command: str, *options: str) -> dict[str, Any]:
        capsys.readouterr()
        assert main([command, str(store), *options, "--format", "json"]) == 0
        loaded: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert loaded["schema"] == f"roundline.{command}/1"
        return loaded

    return run


def test_attribute_adds_up_to_the_wall_time(document: Any) -> None:
    """Per rank, exclusive and idle milliseconds are the mean wall time."""
    found = document("attribute")
    assert set(found) >= {"rounds", "ranks", "unclassified"}
    assert set(found["rounds"]) >= {"count", "steady", "evidence", "excluded"}
    assert (found["rounds"]["evidence"], found["unclassified"]["share"]) == ("graphs", 0)
    for rank in found["ranks"]:
        parts = [line["exclusive_ms"] for line in rank["attribution"]]
        idle = [line["ms"] for line in rank["idle"]]
        assert sum(parts) + sum(idle) == pytest.approx(rank["wall_ms_mean"], abs=1e-9)
        assert set(rank["attribution"][0]) >= {
            "phase", "draft_step", "category", "kernels_per_round", "sum_ms", "exclusive_ms",
        }  # fmt: skip


def test_reconcile_names_where_the_13_ms_are(document: Any) -> None:
    """The ledger of the worked example: terms add up, causes add up, and tok/s decides nothing."""
    found = document("reconcile", *MODEL)
    ledger = {line["term"]: line for line in found["ledger"]}
    totals = found["totals"]
    assert sum(line["measured_ms"] for line in ledger.values()) == pytest.approx(
        found["rounds"]["wall_ms"]["mean"], abs=1e-9
    )
    assert sum(cause["ms"] for cause in found["residual_causes"]) == pytest.approx(
        totals["residual_ms"], abs=1e-9
    )
    assert found["verdict"]["status"] == "unexplained"
    assert ledger["weights"]["bytes"] == pytest.approx(25.625e9, rel=1e-4)
    assert found["rounds"]["wall_ms"]["mean"] - 42.4 == pytest.approx(13, abs=0.5)
    assert found["residual_causes"][0]["cause"] == "idle: host_late"
    assert found["acceptance"]["max_len"] == 4
    assert found["acceptance"]["source"] == "log"
    rates = found["throughput"]
    assert rates["measured_tokens_per_s"] == pytest.approx(rates["log_tokens_per_s"], rel=0.01)
    assert rates["predicted_tokens_per_s"] > rates["measured_tokens_per_s"]


def test_every_weight_read_fits_the_model(document: Any) -> None:
    """All matrices ran as often as the model demands, and none beats the memory bus."""
    found = document("reconcile", *MODEL)
    reads = {(m["phase"], m["matrix"]): m for m in found["weight_matrices"]}
    assert all(m["reads_per_round"] == m["demanded_per_round"] for m in reads.values())
    assert reads["verify", "gate_up"]["reads_per_round"] == 64
    assert reads["draft", "lm_head"]["reads_per_round"] == 2
    assert all(0 < m["fraction_of_peak"] <= 1 for m in reads.values() if m["bytes"] > 30e6)


def test_findings_lead_to_their_rows(document: Any, store: Path) -> None:
    """The SQL beside each finding runs in the sandbox and returns rows."""
    findings = document("reconcile", *MODEL)["findings"]
    assert findings
    for finding in findings:
        if "log_windows" not in finding["evidence"]:
            assert main(["query", str(store), finding["evidence"], "--format", "csv"]) == 0


def test_doctor_states_completeness(document: Any) -> None:
    """Ratios, capabilities, and findings with what they block and how to fix them."""
    found = document("doctor")
    assert found["completeness"] == {
        "eager_launches_with_kernel": 1.0, "replays_complete": 1.0, "ranges_with_gpu": None,
    }  # fmt: skip
    assert found["capabilities"]["kernels"] == "present"
    assert [finding["code"] for finding in found["findings"]] == ["no_ranges"]
    assert set(found["findings"][0]) >= {"code", "severity", "text", "blocks", "fix"}


def test_ingest_states_what_it_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Counts, ranks, raw kernel time and capabilities."""
    target = tmp_path / "store"
    arguments = ["ingest", str(CASE / "capture.sqlite"), "-o", str(target), "--format", "json"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "roundline.ingest/1"
    assert found["ranks"] == [0, 1]
    assert found["kernels"] == found["tables"]["kernels"] > 17_000
    assert (found["truncated"], found["capabilities"]["graph_nodes"]) == (False, "present")


def test_a_limit_on_the_residual_sets_the_exit_code(store: Path) -> None:
    """--fail-over turns an unexplained round into exit code 1."""
    arguments = ["reconcile", str(store), *MODEL, "--format", "json"]
    assert main([*arguments, "--fail-over", "0.05"]) == 1
    assert main([*arguments, "--fail-over", "0.5"]) == 0


@pytest.mark.parametrize("suffix", [".md", ".json", ".csv", ".txt"])
def test_reports_are_the_same_bytes_twice(suffix: str, store: Path, tmp_path: Path) -> None:
    """Same input, same bytes, in every format."""
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for path in (first, second):
        assert main(["report", str(store), *MODEL, "-o", str(path), "-q"]) == 0
    assert first.read_bytes() == second.read_bytes()
    assert str(tmp_path).encode() not in first.read_bytes()


def test_an_unknown_report_suffix_is_a_usage_error(store: Path, tmp_path: Path) -> None:
    """The suffix is the format; another one writes nothing."""
    target = tmp_path / "report.docx"
    assert main(["report", str(store), *MODEL, "-o", str(target)]) == 2
    assert not target.exists()
