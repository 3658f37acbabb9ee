"""`roundline predict` prints what the library says."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pytest

from roundline.cli import main

WORKED = [
    "predict", "--model", "qwen3.6-27b", "--gpu", "RTX A6000", "--tp", "2", "--draft-steps", "3",
    "--context", "240", "--batch", "1",
]  # fmt: skip


def _run(capsys, *args):
    code = main([*args])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def _document(capsys, *args):
    code, out, err = _run(capsys, *args, "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_the_worked_example(capsys):
    """Every figure of the acceptance, from the command line."""
    document = _document(
        capsys, *WORKED, "--accept-len", "3.08", "--round-ms", "42.4", "--tokens-per-s", "55.59"
    )
    terms = {term["term"]: term for term in document["terms"]}
    assert document["schema"] == "roundline.predict/1"
    assert terms["weights"]["bytes"] / 1e9 == pytest.approx(25.625, abs=0.0005)
    assert terms["weights"]["floor_ms"] == pytest.approx(33.37, abs=0.005)
    assert document["mtp_pass_bytes"] / 1e9 == pytest.approx(1.7486, abs=0.00005)
    assert terms["draft"]["floor_ms"] == pytest.approx(6.83, abs=0.005)
    assert document["counts"]["lm_head_reads"] == 4
    assert document["counts"]["allreduces"] == 138
    assert document["state_bytes"] / 1e6 == pytest.approx(75.50, abs=0.005)
    assert document["parameters"]["text"] == 26_895_998_464
    assert document["checkpoint_bytes"] == 55_562_855_904
    rows = [(round(c["round_ms"], 1), round(c["tokens_per_s"], 1)) for c in document["conversions"]]
    assert rows == [(42.4, 72.6), (55.4, 55.6), (42.4, 55.6)]
    assert document["conversions"][2]["accept_len"] == pytest.approx(2.36, abs=0.005)


def test_totals_are_the_sum_of_the_terms(capsys):
    """In bytes exactly, in ms to the last digit that a float keeps."""
    document = _document(capsys, *WORKED)
    for key in ("bytes", "floor_ms", "expected_ms"):
        total = sum(term[key] for term in document["terms"])
        assert total == pytest.approx(document["totals"][key], rel=1e-12)


def test_accept_lengths_default_to_all_whole_ones(capsys):
    """1 to K + 1, each with a throughput."""
    document = _document(capsys, *WORKED)
    assert list(document["tokens_per_s_at"]) == ["1", "2", "3", "4"]


def test_csv_is_the_terms_alone(capsys):
    """stdout is data: a header and one row per term and the total."""
    code, out, _ = _run(capsys, *WORKED, "--format", "csv")
    rows = list(csv.reader(io.StringIO(out)))
    assert code == 0
    assert [row[0] for row in rows] == [
        "term", "weights", "attention", "gdn", "collective", "elementwise", "draft", "total",
    ]  # fmt: skip


def test_the_table_states_its_assumptions(capsys):
    """A reader sees model, hardware, counts and what was assumed."""
    code, out, _ = _run(capsys, *WORKED)
    assert code == 0
    for text in ("RTX A6000", "768 GB/s", "138 all-reduces", "stored as bf16", "26,895,998,464"):
        assert text in out


@pytest.mark.parametrize(
    ("options", "change"),
    [
        (["--engine", "vllm"], lambda d: d["counts"]["allgathers"] == 7),
        (["--fc", "sharded"], lambda d: d["mtp_pass_bytes"] < 1.7e9),
        (["--state-passes", "2"], lambda d: d["switches"]["state_passes"] == 2),
        (["--weight-format", "fp8"], lambda d: d["totals"]["bytes"] < 17e9),
        (["--weight-format", "int4_g128", "--head-format", "bf16"],
         lambda d: {m["format"] for m in d["matrices"]} == {"int4_g128", "bf16"}),
        (["--kv-format", "fp8"], lambda d: d["kv_bytes_per_token"] == 16_384),
        (["--state-format", "bf16"], lambda d: d["state_bytes"] == 37_748_736),
        (["--num-draft-tokens", "8"], lambda d: d["switches"]["state_passes"] == 11),
        (["--hbm-gbps", "1.536TB/s"], lambda d: round(d["totals"]["floor_ms"], 2) == 20.45),
        (["--gemm-fraction", "0.5"], lambda d: d["totals"]["expected_ms"] > 80),
        (["--alpha-us", "54"], lambda d: d["switches"]["all_reduce"]["alpha_us"] == 54),
        (["--collective", "nccl"], lambda d: "nccl" in d["switches"]["all_reduce"]["kernel"]),
        (["--sampling", "random"], lambda d: d["counts"]["broadcasts"] == 3),
        (["--drafter", "ngram"], lambda d: d["draft"]["passes"] == 0),
        (["--head", "replicated"], lambda d: d["counts"]["allgathers"] == 0),
        (["--draft-vocab", "32000"], lambda d: 2.4 < d["terms"][5]["floor_ms"] < 2.6),
        (["--draft-model", "qwen3.5-9b"], lambda d: d["mtp_pass_bytes"] > 7e9),
    ],
)  # fmt: skip
def test_every_switch_has_an_option(capsys, options, change):
    """An option changes what it names."""
    assert change(_document(capsys, *WORKED, *options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "qwen9", "--gpu", "RTX A6000"], "unknown model"),
        (["--model", "qwen3-8b", "--gpu", "H100"], "H100 NVL"),
        (["--model", "qwen3-8b", "--gpu", "RTX 9090"], "--hbm-gbps"),
        (["--model", "qwen3-8b"], "no GPU"),
        (["--model", "qwen3-8b", "--gpu", "RTX A6000", "--tp", "3"], "does not divide"),
        (["--model", "qwen3-8b", "--gpu", "RTX A6000", "--draft-steps", "3"], "no draft layer"),
        (["--model", "qwen3-8b", "--gpu", "RTX A6000", "--accept-len", "3"], "above 1"),
        (["--model", "qwen3-8b", "--gpu", "RTX A6000", "--weight-format", "q9"], "weight format"),
        (["--model", "qwen3-8b", "--gpu", "RTX A6000", "--engine", "x"], "unknown engine"),
        (["--model", "qwen3-8b", "--gpu", "RTX A6000", "--round-ms", "42"], "--accept-len"),
        (["--model", "qwen3-8b", "--gpu", "RTX A6000", "--hbm-gbps", "fast"], "3.35TB/s"),
        (["--model", "qwen3-8b", "--gpu", "RTX A6000", "--batch", "0"], "--batch"),
    ],
)
def test_a_wrong_question_is_one_line_and_exit_code_2(capsys, options, message):
    """stdout stays empty, stderr says what was seen and what to do."""
    code, out, err = _run(capsys, "predict", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_hand_made_model_is_checked(capsys):
    """The worked example's own model: 13 ms unexplained, 72.6 tok/s at its accept length."""
    terms = {"weights": 35.16, "kv": 0.02, "gdn": 0.09, "allreduce": 1.0, "draft": 5.56}
    stated = [part for name, ms in terms.items() for part in ("--stated", f"{name}={ms}")]
    window = ["--stated-total-ms", "42.4", "--accept-len", "3.08", "--tokens-per-s", "55.59"]
    (check,) = _document(capsys, *WORKED, *stated, *window)["stated"]
    assert check["status"] == "unexplained"
    assert check["unexplained_ms"] == pytest.approx(13.0, abs=0.05)
    assert check["predicted_tokens_per_s"] == pytest.approx(72.6, abs=0.05)
    assert "13.0 ms" in _run(capsys, *WORKED, *stated, *window)[1]


def test_wrong_statements_of_a_hand_made_model_are_named(capsys):
    """72.6 tok/s is not 55, the maximum is 4.0 and not 3.7, 63.5 % of the ceiling is not 95 %."""
    stated = ["--stated", "weights=35.16", "--stated-total-ms", "42.4", "--stated-tokens-per-s",
              "55", "--stated-max-len", "3.7", "--stated-ceiling", "0.95"]  # fmt: skip
    window = ["--accept-len", "3.08", "--tokens-per-s", "55.59"]
    (check,) = _document(capsys, *WORKED, *stated, *window)["stated"]
    assert check["status"] == "unexplained"
    found = {s["subject"]: (round(s["found"], 3), s["holds"]) for s in check["statements"]}
    assert found["maximum accept length"] == (4, False)
    assert found["fraction of the ceiling"] == (0.635, False)
    assert found["tokens per second"][0] == pytest.approx(72.6, abs=0.05)
    out = _run(capsys, *WORKED, *stated, *window)[1]
    for text in (
        "42.4 ms at accept length 3.08 are 72.6 tok/s",
        "make 4.0",
        "63.5 %",
        "unexplained",
    ):
        assert text in out


def test_right_statements_hold(capsys):
    """What follows from the numbers is not called wrong."""
    stated = ["--stated", "weights=35.16", "--stated-total-ms", "42.4", "--stated-tokens-per-s",
              "72.6", "--stated-max-len", "4", "--stated-ceiling", "0.63"]  # fmt: skip
    window = ["--accept-len", "3.08", "--tokens-per-s", "55.59"]
    (check,) = _document(capsys, *WORKED, *stated, *window)["stated"]
    assert [s["holds"] for s in check["statements"]] == [True, True, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--stated", "weights=35"], "--accept-len"),
        (["--stated-max-len", "3.7"], "--accept-len"),
        (
            [
                "--stated-total-ms",
                "42",
                "--stated-ceiling",
                "0.9",
                "--accept-len",
                "3",
                "--tokens-per-s",
                "55",
            ],
            "weights",
        ),
        (["--stated", "weights", "--accept-len", "3", "--tokens-per-s", "55"], "TERM=MS"),
    ],
)
def test_a_hand_made_model_needs_a_window(capsys, options, message):
    """Terms without a measurement, or without a number, are a usage error."""
    code, out, err = _run(capsys, *WORKED, *options)
    assert (code, out) == (2, "")
    assert message in err


def test_the_document_may_go_to_a_file(capsys, tmp_path):
    """`-o` writes it, and refuses to replace one without --force."""
    path = tmp_path / "predict.json"
    options = [*WORKED, "--format", "json", "-o", str(path)]
    assert _run(capsys, *options)[0] == 0
    assert json.loads(path.read_text())["model"] == "qwen3.6-27b"
    assert _run(capsys, *options)[0] == 2
    assert _run(capsys, *options, "--force")[0] == 0


def test_prediction_loads_no_database():
    """The arithmetic needs neither DuckDB nor data frames."""
    code = (
        "import sys; from roundline.cli import main; "
        f"main({[*WORKED, '--format', 'csv']!r}); "
        "sys.exit(any(m in sys.modules for m in ('duckdb', 'polars', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
