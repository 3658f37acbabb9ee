"""Published measurements follow from the model within their stated tolerance."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from roundline.bandwidth import speculation
from roundline.bandwidth.architecture import Parallelism, load_model
from roundline.bandwidth.hardware import find_gpu
from roundline.bandwidth.quantization import find_format
from roundline.bandwidth.round_floor import RoundFloor, Workload, predict
from roundline.bandwidth.switches import engine_switches
from roundline.bandwidth.weight_formats import stored_as

MODEL_DATA = Path(__file__).parents[3] / "shared" / "model"
GPUS = {
    "a100_80": "A100-SXM4-80GB", "a6000": "RTX A6000", "r3090": "RTX 3090", "r4090": "RTX 4090",
    "h100pcie": "H100 PCIe", "h100": "NVIDIA H100 80GB HBM3", "m4max": "Apple M4 Max",
}  # fmt: skip
FORMATS = {
    "bf16": "bf16", "int8 w-only (head int8 too)": "int8", "int4 g32": "int4_g32",
    "f16 gguf": "fp16", "q4_0 gguf (4.5 bit, head q6_K)": "q4_0",
    "int8 blk32 (28 GB bundle)": "int8_g32",
    # 17.2337 GB a token at context 0, of which 0.302 GB are two passes over the state.
    "quantised, 17.2 GB read per token (derived)": "5.285bpw",
}  # fmt: skip


def _rows(name: str) -> list[dict[str, str]]:
    path = MODEL_DATA / name
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _engine(row: dict[str, str]) -> str:
    engines = {"gptfast": "gpt-fast", "sglang": "sglang", "worked": "sglang"}
    return engines.get(row["id"].split("-")[0], "llama.cpp")


def _floor(row: dict[str, str]) -> RoundFloor:
    switches = engine_switches(_engine(row))
    if row["id"].startswith("ninfer"):  # the slope over context is that of an 8-bit cache
        from dataclasses import replace

        switches = replace(switches, kv_format=find_format("int8"))
    return predict(
        stored_as(load_model(row["model"]), FORMATS[row["weight_format"]]),
        find_gpu(GPUS[row["hardware"]]),
        Workload(
            batch=int(row["batch"]), context=int(row["ctx"]), draft_steps=int(row["draft_steps"]),
            parallel=Parallelism(int(row["tp"])),
        ),
        switches,
    )  # fmt: skip


PUBLISHED = _rows("published.csv")
by_id = pytest.mark.parametrize("row", PUBLISHED, ids=[row["id"] for row in PUBLISHED])


def test_the_tables_are_there(shared):
    """A moved table must not turn these tests into none."""
    assert len(_rows("published.csv")) == 17
    assert len(_rows("published_speculation.csv")) == 19
    assert shared == MODEL_DATA.parent


@by_id
def test_bytes_and_floor_of_a_published_row(row):
    """Within 2 % of the reference, or of the bundle size that the source states."""
    floor = _floor(row)
    assert floor.bytes / 1e9 == pytest.approx(float(row["bytes_per_gpu_gb"]), rel=0.02)
    assert floor.floor_ms == pytest.approx(float(row["floor_ms"]), rel=0.02)


@by_id
def test_measured_share_of_peak_of_a_published_row(row):
    """Floor over measured round time lies in the row's band; the round follows from tok/s."""
    length = float(row["accept_len"] or 1)
    measured_ms = speculation.round_ms(length, float(row["measured_tok_s"]), int(row["batch"]))
    assert measured_ms == pytest.approx(float(row["measured_round_ms"]), rel=0.001)
    low, high = map(float, row["expected_mbu_range"].split("-"))
    assert low <= _floor(row).floor_ms / measured_ms <= high


@by_id
def test_nothing_measured_beats_what_good_software_reaches(row):
    """An expected time above the measured one would call a real engine impossible."""
    assert _floor(row).expected_ms <= float(row["measured_round_ms"]) * 1.02


SPECULATION = _rows("published_speculation.csv")
with_tables = pytest.mark.usefixtures("shared")  # skips where the tables are absent


@with_tables
def test_speedups_are_ratios_of_throughput():
    """Printed speed-up = tok/s over baseline, to the printed digits."""
    rows = [row for row in SPECULATION if row["tok_s"] and row["baseline_tok_s"]]
    assert len(rows) == 10
    for row in rows:
        ratio = float(row["tok_s"]) / float(row["baseline_tok_s"])
        assert ratio == pytest.approx(float(row["printed_speedup"]), rel=0.025)


@with_tables
def test_round_over_plain_step_of_the_leaderboard():
    """Accept length over speed-up is the cost of a round in plain steps."""
    rows = [row for row in SPECULATION if row["id"].startswith("specbench")]
    assert rows
    for row in rows:
        stated = re.search(r"= (\d\.\d+)$", row["check"])
        cost = speculation.round_over_plain(float(row["accept_len"]), float(row["printed_speedup"]))
        assert stated is not None
        assert cost == pytest.approx(float(stated[1]), rel=0.025)


@with_tables
def test_the_sweep_over_draft_steps_is_linear_and_best_at_three():
    """8.952 + 0.751 K ms; speed-ups of the line within 2.5 % of the printed ones."""
    rows = [row for row in SPECULATION if row["id"].startswith("trtllm")]
    times = {
        int(row["k"]): speculation.round_ms(float(row["accept_len"]), float(row["tok_s"]))
        for row in rows
    }
    line = speculation.fit_rounds(times)
    assert line.base_ms == pytest.approx(8.952, abs=0.001)
    assert line.step_ms == pytest.approx(0.751, abs=0.001)
    assert line.is_linear
    for row in rows:
        length = float(row["accept_len"])
        speedup = speculation.speedup(length, times[0], line.round_ms(int(row["k"])))
        assert speedup == pytest.approx(float(row["printed_speedup"]), rel=0.025)
    assert speculation.best_steps({int(r["k"]): float(r["tok_s"]) for r in rows}) == 3


@with_tables
def test_a_printed_speedup_bounds_the_accept_length():
    """A round costs at least a plain step, so E is at least the speed-up: 1.92."""
    row = next(row for row in SPECULATION if row["id"] == "gptfast-70b-int4-spec")
    assert speculation.break_even_len(1.0, 1.0) * float(row["printed_speedup"]) == 1.92
    assert float(row["tok_s"]) / float(row["baseline_tok_s"]) == pytest.approx(1.92, abs=0.005)
