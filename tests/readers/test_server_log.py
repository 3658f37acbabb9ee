"""Server logs become windows of decoding; what says nothing of a round is named, not guessed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundline.readers.contract import ReadOptions, SourceFacts
from roundline.readers.server_log import read_server_log
from roundline.readers.sniff import SourceKind, sniff

Rows = dict[int, dict[str, Any]]

SGLANG = (
    "[2026-06-01 12:00:{second:02d} TP0] Decode batch, #running-req: {running}, #token: {tokens},"
    " token usage: 0.01, accept len: {length:.2f}, accept rate: 0.65, cuda graph: True,"
    " gen throughput (token/s): {rate:.2f}, #queue-req: 0"
)
VLLM = (
    "INFO 08-17 19:55:36 [loggers.py:310] Engine 000: Avg prompt throughput: {prompt} tokens/s,"
    " Avg generation throughput: {rate} tokens/s, Running: {running} reqs, Waiting: 0 reqs"
)
VLLM_SPEC = (
    "INFO 08-17 19:55:36 [metrics.py:101] SpecDecoding metrics: Mean acceptance length: {length},"
    " Accepted throughput: {accepted_rate:.2f} tokens/s, Drafted throughput: {drafted_rate:.2f}"
    " tokens/s, Accepted: {accepted} tokens, Drafted: {drafted} tokens, Per-position acceptance"
    " rate: 0.800, 0.700, Avg Draft acceptance rate: 75.0%"
)


class Collected:
    """A sink that keeps rows by line."""

    def __init__(self) -> None:
        self.rows: Rows = {}

    def write(self, table: str, batch: pa.RecordBatch | pa.Table) -> None:
        """Keep the batch."""
        assert table == "log_windows"
        for row in batch.to_pylist():
            fields = json.loads(row.pop("fields"))
            self.rows[row["line"]] = {**fields, **row}


def read(path: Path) -> tuple[Rows, SourceFacts]:
    """Windows by line, and what was learnt of the log."""
    sink = Collected()
    return sink.rows, read_server_log(path, sink, ReadOptions())


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., Path]:
    """Write lines to a log."""

    def write(*lines: str) -> Path:
        path = tmp_path / "server.log"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def decode(second: int = 0, **values: Any) -> str:
    """One SGLang decode line."""
    defaults = {"running": 1, "tokens": 1000, "length": 3.0, "rate": 60.0}
    return SGLANG.format(second=second, **(defaults | values))


def expectations(shared: Path) -> list[tuple[str, dict[str, Any]]]:
    """Every expected record of the sample logs."""
    expected = json.loads((shared / "logs" / "EXPECTED.json").read_text())
    return [(name, record) for name, log in expected.items() for record in log["records"]]


def test_sample_logs_give_their_expected_values(shared: Path) -> None:
    """Every value that the samples' list of expectations names is found on its line."""
    prose = {"line", "shape", "reason", "check", "accept_rate_formula", "extra"}
    checked = 0
    for name, record in expectations(shared):
        rows, _ = read(shared / "logs" / name)
        row = rows[record["line"]]
        for key, value in record.items():
            if key in prose:
                continue
            if key == "usable_for_round_time":
                assert (row["unusable_because"] is None) == value, (name, record)
            elif key == "rounds_in_window":
                assert row[key] == pytest.approx(value, abs=0.1)
            elif key == "round_ms":
                assert row[key] == pytest.approx(value, abs=0.02), (name, record)
            else:
                assert row.get(key) == value, (name, record["line"], key)
            checked += 1
    assert checked > 150


def test_samples_are_recognised_as_logs(shared: Path) -> None:
    """Every sample is a log, whatever its first character."""
    for path in (shared / "logs").glob("*.log"):
        assert sniff(path) is SourceKind.SERVER_LOG


def test_mean_round_time_of_two_requests(shared: Path) -> None:
    """Throughput is of both requests together, so a round is length x 2 / throughput."""
    rows, _ = read(shared / "logs" / "sglang_run_bs2.log")
    times = [row["round_ms"] for row in rows.values()]
    assert sum(times) / len(times) == pytest.approx(60.37, abs=0.01)


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-06-01T12:00:01.5Z stderr F ",
        "(Scheduler pid=77, ip=10.0.0.1) ",
        "\x1b[36m(worker)\x1b[0m ",
        '{"log":"',
        "sglang-0  | ",
    ],
)
def test_what_a_collector_prints_in_front_is_passed_over(
    log: Callable[..., Path], prefix: str
) -> None:
    """Prefixes of containers, Ray and collectors change nothing of a window."""
    plain, _ = read(log(decode(1), decode(3, tokens=1120)))
    path = log(prefix + decode(1), prefix + decode(3, tokens=1120))
    assert sniff(path) is SourceKind.SERVER_LOG
    rows, _ = read(path)
    assert [rows[2][k] for k in ("round_ms", "rounds")] == [plain[2]["round_ms"], 40]


def test_a_time_with_a_zone_is_exact(log: Callable[..., Path]) -> None:
    """The collector's time has a zone and gives the wall clock; the engine's has none."""
    rows, _ = read(log("2026-06-01T14:00:01.250+02:00 stderr F " + decode(9)))
    assert rows[1]["wall_clock_ns"] == 1780315201250000000
    assert rows[1]["timestamp"] == "2026-06-01 12:00:09"


def test_a_window_with_a_prefill_has_no_round_time(log: Callable[..., Path]) -> None:
    """A prefill between two decode lines spoils the second, and only it."""
    prefill = (
        "[2026-06-01 12:00:02 TP0] Prefill batch, #new-seq: 1, #new-token: 900, #cached-token: 0,"
        " token usage: 0.00, #running-req: 0, #queue-req: 0"
    )
    rows, _ = read(log(decode(1), prefill, decode(3, tokens=1120, rate=40), decode(5, tokens=1240)))
    assert [rows[n]["unusable_because"] for n in (1, 2, 3, 4)] == [None, "prefill", "prefill", None]
    assert rows[3]["round_ms"] is None


def test_a_window_in_which_the_batch_changed_has_no_round_time(log: Callable[..., Path]) -> None:
    """The line on which the number of requests differs from the line before is not used."""
    rows, _ = read(
        log(decode(1), decode(3, running=2, tokens=2240, rate=118), decode(5, running=2,
            tokens=2480, rate=119))
    )  # fmt: skip
    assert [rows[n]["unusable_because"] for n in (1, 2, 3)] == [None, "batch_changed", None]


def test_another_request_of_the_same_number_is_seen(log: Callable[..., Path]) -> None:
    """Tokens held fall although one request runs: it is another request."""
    rows, _ = read(log(decode(1), decode(3, tokens=1120), decode(6, tokens=300, rate=50)))
    assert rows[3]["unusable_because"] == "batch_changed"


def test_idle_time_in_a_window_is_seen(log: Callable[..., Path]) -> None:
    """A window many times slower than its neighbours held idle time."""
    rows, _ = read(
        log(decode(1), decode(3, tokens=1120), decode(59, tokens=1240, rate=2.1))
    )  # fmt: skip
    assert rows[3]["unusable_because"] == "idle"


def test_another_log_interval_is_found(log: Callable[..., Path]) -> None:
    """Rounds between lines follow from the tokens held, not from the default of 40."""
    rows, _ = read(log(*(decode(s, tokens=1000 + 30 * s) for s in range(1, 6))))
    assert [rows[n]["rounds"] for n in (2, 3, 4, 5)] == [10] * 4
    assert all(row["unusable_because"] is None for row in rows.values())


def test_ranks_of_one_log_do_not_mix(log: Callable[..., Path]) -> None:
    """Lines of two data-parallel ranks interleave; each follows its own line before."""
    lines = [
        decode(s, tokens=tokens + 60 * s).replace("TP0", f"DP{rank} TP0")
        for s in (1, 3, 5)
        for rank, tokens in ((0, 1000), (1, 9000))
    ]
    rows, _ = read(log(*lines))
    assert [rows[n]["dp_rank"] for n in range(1, 7)] == [0, 1] * 3
    assert all(row["unusable_because"] is None for row in rows.values())


@pytest.mark.parametrize(
    ("length", "rate", "steps"), [(3.08, 0.69, 3), (3.08, 0.77, 3), (2.5, None, None)]
)
def test_both_rate_formulas_give_the_draft_steps(
    log: Callable[..., Path], length: float, rate: float | None, steps: int | None
) -> None:
    """(L-1)/(D-1) and L/D are told apart by the numbers."""
    line = decode(length=length)
    shown = line.replace(
        " accept rate: 0.65,", "" if rate is None else f" accept rate: {rate:.2f},"
    )
    rows, _ = read(log(shown))
    assert rows[1].get("draft_steps") == steps


def test_vllm_rounds_are_shared_by_requests(log: Callable[..., Path]) -> None:
    """Two requests and k = 2: 800 drafted tokens in 10 s are 200 rounds of the engine."""
    spec = VLLM_SPEC.format(
        length=2.5, accepted=600, drafted=800, accepted_rate=60.0, drafted_rate=80.0
    )
    rows, _ = read(log(VLLM.format(prompt=0.0, rate=100.0, running=2), spec))
    assert (rows[2]["rounds"], rows[2]["round_ms"]) == (200, pytest.approx(50.0))


def test_vllm_length_without_the_bonus_is_corrected(log: Callable[..., Path]) -> None:
    """Early versions print accepted / drafts; the stored length counts the bonus token."""
    spec = VLLM_SPEC.format(
        length=1.5, accepted=600, drafted=800, accepted_rate=60.0, drafted_rate=80.0
    )
    rows, _ = read(log(VLLM.format(prompt=0.0, rate=100.0, running=1), spec))
    assert rows[2]["accept_len"] == 2.5


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        ({"running": 1}, {"running": 2}, "batch_changed"),
        ({"running": 1}, {"running": 0, "rate": 0.0}, "idle"),
        ({"running": 1}, {"running": 1, "prompt": 900.0}, "prefill"),
        ({"running": 1}, {"running": 1}, None),
    ],
)
def test_vllm_windows_that_say_nothing_are_named(
    log: Callable[..., Path], before: dict[str, Any], now: dict[str, Any], reason: str | None
) -> None:
    """Change of batch, idle time and prefill are read from the line and the line before."""
    defaults = {"prompt": 0.0, "rate": 50.0}
    rows, _ = read(log(*(VLLM.format(**(defaults | v)) for v in (before, now))))
    assert rows[2]["unusable_because"] == reason


def test_vllm_without_speculation_has_one_token_a_round(log: Callable[..., Path]) -> None:
    """Plain decode of two requests at 100 tokens/s takes 20 ms a round."""
    rows, _ = read(log(*[VLLM.format(prompt=0.0, rate=100.0, running=2)] * 2))
    assert rows[2]["round_ms"] == pytest.approx(20.0)


def test_trtllm_device_time_belongs_to_the_iteration_before(shared: Path) -> None:
    """Iteration 1 took what iteration 2 prints; the last one is not timed."""
    rows, _ = read(shared / "logs" / "trtllm_iter.log")
    assert {row["iter"]: row.get("device_step_ms") for row in rows.values()} == {
        0: 54.2, 1: 12.1, 2: 12.0, 3: None,
    }  # fmt: skip
    assert [row["unusable_because"] for row in rows.values()] == [
        "prefill", None, None, "not_timed",
    ]  # fmt: skip
    assert rows[2]["draft_steps"] == 3


def test_trtllm_oldest_lines_time_the_loop(log: Callable[..., Path]) -> None:
    """Before device times were printed, the loop time is the round time of steady decoding."""
    line = (
        "iter = {n}, global_rank = 0, rank = 0, currank_total_requests = 1/1, elapsed_time ="
        " 0.0125s, timestamp = 2025-02-03 04:05:07, num_scheduled_requests: 1, states ="
        " {{'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 1}}"
    )
    rows, _ = read(log(line.format(n=1), line.format(n=2)))
    assert [row["round_ms"] for row in rows.values()] == [12.5, 12.5]


def test_llamacpp_verify_steps_are_generated_less_accepted(shared: Path) -> None:
    """600 tokens of which 400 were drafts took 200 steps of 60 ms."""
    rows, _ = read(shared / "logs" / "llamacpp_server.log")
    assert (rows[5]["rounds"], rows[5]["round_ms"], rows[5]["accept_rate"]) == (200, 60.0, 0.66667)


@pytest.mark.parametrize(
    "draft",
    [
        "draft acceptance rate = 0.57576 (  171 accepted /   297 generated)",
        "draft acceptance = 0.57576 (  171 accepted /   297 generated), mean len =  2.73",
    ],
)
def test_llamacpp_shapes_of_acceptance(log: Callable[..., Path], draft: str) -> None:
    """Old and new acceptance lines give the same steps and a length with the bonus token."""
    timing = "slot print_timing: id  0 | task 7 | eval time = 5400.00 ms / 270 tokens"
    rows, _ = read(log(timing, draft))
    assert rows[2]["rounds"] == 99
    assert rows[2]["accept_len"] == pytest.approx(2.73, abs=0.01)


def test_llamacpp_without_drafts_decodes_plainly(log: Callable[..., Path]) -> None:
    """Without an acceptance line every token is a round."""
    rows, _ = read(log("       eval time =   2000.00 ms /   100 runs   (   20.00 ms per token)"))
    assert (rows[1]["rounds"], rows[1]["round_ms"]) == (100, 20.0)


def test_lines_of_an_unknown_shape_are_counted(log: Callable[..., Path]) -> None:
    """A line that cannot be read is one counted diagnostic with its number."""
    rows, facts = read(log(decode(1), "[2026-06-01 12:00:03 TP0] Decode batch, garbled"))
    assert list(rows) == [1]
    (diagnostic,) = facts.diagnostics
    assert (diagnostic.code, diagnostic.count) == ("malformed_events", 1)
    assert "line 2" in diagnostic.detail


def test_a_compressed_log_is_read(log: Callable[..., Path]) -> None:
    """A rotated log may be gzipped."""
    path = log(decode(1))
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert sniff(path) is SourceKind.SERVER_LOG
    assert read(path)[0][1]["accept_len"] == 3.0


def test_windows_far_behind_the_head_are_found(log: Callable[..., Path]) -> None:
    """A server prints a long start-up before its first window."""
    assert sniff(log("loading weights " * 60_000, decode(1))) is SourceKind.SERVER_LOG


def test_a_line_without_end_is_bounded(log: Callable[..., Path]) -> None:
    """A line of megabytes is passed over and does not shift the numbers of those behind it."""
    rows, _ = read(log(decode(1), "x" * 3_000_000, decode(3, tokens=1120)))
    assert sorted(rows) == [1, 3]


def windows_of(*lines: str) -> list[dict[str, Any]]:
    """Windows of a log of these lines, in their order."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        path.write_text("\n".join(lines) + "\n")
        rows, facts = read(path)
    assert facts.diagnostics == ()
    return [rows[number] for number in sorted(rows)]


SGLANG_HEADS = (
    "[2025-05-01 10:00:00] ",
    "[2025-05-01 10:00:00 DP3 TP0] ",
    "[2026-05-01 10:00:00.125 DP3 PP0 ATTN_CP0 MOE_DP0 TP0 EP0] ",
    "(Scheduler pid=77, ip=10.0.0.1) [2026-05-01 10:00:00 TP0] ",
)
SGLANG_SHAPES = {
    "0.4.6": "Decode batch. #running-req: {running}, #token: {tokens}, token usage: 0.01,"
    " accept len: {length:.2f}, cuda graph: True, gen throughput (token/s): {rate:.2f},"
    " #queue-req: {queue}",
    "0.5.2": "Decode batch. #running-req: {running}, #token: {tokens}, token usage: 0.01,"
    " accept len: {length:.2f}, pre-allocated usage: 0.02, cuda graph: True,"
    " gen throughput (token/s): {rate:.2f}, #queue-req: {queue}, ",
    "0.5.4": "Decode batch [812], #running-req: {running}, #token: {tokens}, token usage: 0.01,"
    " accept len: {length:.2f}, accept rate: {share:.2f}, cuda graph: True,"
    " gen throughput (token/s): {rate:.2f}, #queue-req: {queue}, ",
    "hybrid": "Decode batch, #running-req: {running}, #full token: {tokens}, full token usage:"
    " 0.01, mamba num: 6, mamba usage: 0.10, accept len: {length:.2f}, accept rate: {share:.2f},"
    " npu graph: True, gen throughput (token/s): {rate:.2f}, #queue-req: {queue}",
    "sliding": "Decode batch, #running-req: {running}, #full token: {tokens}, full token usage:"
    " 0.01, #swa token: 99, swa token usage: 0.02, accept len: {length:.2f}, accept rate:"
    " {share:.2f}, cuda graph: True, gen throughput (token/s): {rate:.2f}, #queue-req: {queue},"
    " est. decode TFLOPS/s (per GPU): 1.50, est. read BW (GB/s per GPU): 611.20,"
    " est. write BW (GB/s per GPU): 2.00, fwd occupancy: 99.1%, cap len: 4.00",
}


@pytest.mark.parametrize("shape", SGLANG_SHAPES)
@given(
    head=st.sampled_from(SGLANG_HEADS),
    running=st.integers(1, 512),
    queue=st.integers(0, 10_000),
    spare=st.integers(0, 10**6),
    length=st.integers(100, 1600).map(lambda hundredths: hundredths / 100),
    share=st.integers(0, 100).map(lambda hundredths: hundredths / 100),
    rate=st.integers(1, 10**7).map(lambda hundredths: hundredths / 100),
)
def test_sglang_values_come_back_from_every_shape(shape: str, head: str, **values: Any) -> None:
    """What a version prints is what is read, and the round time is L x running / throughput."""
    running, length, rate = values["running"], values["length"], values["rate"]
    tokens = 40 * 16 * running + values["spare"]  # room for what the window generated
    (row,) = windows_of(head + SGLANG_SHAPES[shape].format(tokens=tokens, **values))
    assert (row["running"], row["queue"], row["tok_s"]) == (running, values["queue"], rate)
    assert row["accept_len"] == length
    assert row["accept_rate"] == (values["share"] if "share" in SGLANG_SHAPES[shape] else None)
    assert row.get("tokens", row.get("full_tokens")) == tokens
    assert row["dp_rank"] == (3 if "DP3" in head else None)
    assert row["round_ms"] == pytest.approx(1000 * length * running / rate)


VLLM_HEADS = ("INFO 08-17 19:55:36 ", "\x1b[36m(APIServer pid=1)\x1b[0;0m INFO 08-17 19:55:36 ")


@given(
    head=st.sampled_from(VLLM_HEADS),
    running=st.integers(1, 256),
    rounds=st.integers(20, 1000),
    rates=st.lists(st.integers(0, 1000), min_size=1, max_size=8),
)
def test_vllm_values_come_back(head: str, running: int, rounds: int, rates: list[int]) -> None:
    """Drafted tokens over draft length and requests are the rounds of the ten seconds."""
    drafts, per_position = rounds * running, [rate / 1000 for rate in sorted(rates, reverse=True)]
    drafted = drafts * len(rates)
    accepted = round(drafts * sum(per_position))
    throughput = (
        f"{head}[loggers.py:310] Engine 004: Avg prompt throughput: 0.0 tokens/s, Avg generation"
        f" throughput: {(accepted + drafts) / 10:.1f} tokens/s, Running: {running} reqs,"
        " Waiting: 2 reqs, GPU KV cache usage: 1.2%, Prefix cache hit rate: 0.0%"
    )
    spec = (
        f"{head}[metrics.py:101] SpecDecoding metrics: Mean acceptance length:"
        f" {1 + accepted / drafts:.2f}, Accepted throughput: {accepted / 10:.2f} tokens/s, Drafted"
        f" throughput: {drafted / 10:.2f} tokens/s, Accepted: {accepted} tokens, Drafted: {drafted}"
        f" tokens, Per-position acceptance rate: {', '.join(f'{r:.3f}' for r in per_position)},"
        f" Avg Draft acceptance rate: {100 * accepted / drafted:.1f}%"
    )
    first, second = windows_of(throughput, spec)
    assert (first["running"], first["waiting"], first["dp_rank"]) == (running, 2, 4)
    assert (second["accepted"], second["drafted"]) == (accepted, drafted)
    assert (second["per_position"], second["draft_steps"]) == (per_position, len(rates))
    assert second["accept_len"] == pytest.approx(1 + accepted / drafts, abs=0.005)
    assert second["rounds"] == rounds
    assert second["round_ms"] == pytest.approx(10_000 / rounds, rel=0.001)


def test_vllm_oldest_speculation_line_gives_no_round_time() -> None:
    """Without length, throughput or positions nobody can tell how many rounds there were."""
    spec = (
        "INFO 05-01 10:00:00 [metrics.py:80] SpecDecoding metrics: Draft acceptance rate: 69.4%,"
        " Accepted: 379 tokens, Drafted: 546 tokens"
    )
    _, row = windows_of(VLLM.format(prompt=0.0, rate=58.7, running=1), spec)
    assert (row["accepted"], row["drafted"], row["accept_rate"]) == (379, 546, 0.694)
    assert (row["accept_len"], row["rounds"], row["round_ms"]) == (None, None, None)


TRTLLM_SHAPES = {
    "middle": "iter = {n}, global_rank = 0, rank = 0, currank_total_requests = 1/1,"
    " host_step_time = {host}ms, prev_device_step_time = {device}, timestamp = 2026-05-12"
    " 10:14:56, num_scheduled_requests: {requests}, states = {{'num_ctx_requests': 0,"
    " 'num_ctx_tokens': 0, 'num_generation_tokens': {tokens}}}",
    "newest": "iter = {n}, global_rank = 0, rank = 0, currank_total_requests = 1/1,"
    " kv_cache_util = 0.12, adp_dummy_requests = 0, host_step_time = {host}ms,"
    " prev_device_step_time = {device}, timestamp = 2026-05-12 10:14:56,"
    " num_scheduled_requests: {requests}, acceptance_length: 3.08, states ="
    " {{'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': {tokens}}}",
}


@pytest.mark.parametrize("shape", TRTLLM_SHAPES)
@given(
    times=st.lists(st.integers(1, 10**8), min_size=1, max_size=6),
    host=st.integers(1, 10**8),
    requests=st.integers(1, 64),
    steps=st.integers(0, 7),
)
def test_trtllm_values_come_back(
    shape: str, times: list[int], host: int, requests: int, steps: int
) -> None:
    """Each iteration took what the next one prints, and the last one is not timed."""
    devices = ["N/A", *(f"{time / 1000}ms" for time in times)]
    fixed = {"host": host / 1000, "requests": requests, "tokens": requests * (1 + steps)}
    rows = windows_of(
        *(
            "[05/12/2026-10:14:56] [TRT-LLM] [RANK 0] [I] "
            + TRTLLM_SHAPES[shape].format(n=n, device=device, **fixed)
            for n, device in enumerate(devices)
        )
    )
    assert [row["round_ms"] for row in rows] == [*(pytest.approx(t / 1000) for t in times), None]
    assert {row["draft_steps"] for row in rows} == {steps}
    assert {row["host_step_ms"] for row in rows} == {host / 1000}
    assert {row["running_requests"] for row in rows} == {requests}


LLAMACPP_SHAPES = {
    "old": "draft acceptance rate = {rate:.5f} ({accepted:5d} accepted / {drafted:5d} generated)",
    "plain": "draft acceptance = {rate:.5f} ({accepted:5d} accepted / {drafted:5d} generated)",
    "long": "draft acceptance = {rate:.5f} ({accepted:5d} accepted / {drafted:5d} generated),"
    " mean acceptance length = {length:5.2f}, acceptance rate per position = (0.800, 0.500)",
    "short": "draft acceptance = {rate:.5f} ({accepted:5d} accepted / {drafted:5d} generated),"
    " mean len = {length:5.2f}",
}


@pytest.mark.parametrize("shape", LLAMACPP_SHAPES)
@given(
    steps=st.integers(1, 5000),
    drafted=st.integers(1, 20_000),
    share=st.floats(0, 1),
    ms=st.integers(1, 10**9).map(lambda hundredths: hundredths / 100),
)
def test_llamacpp_values_come_back(
    shape: str, steps: int, drafted: int, share: float, ms: float
) -> None:
    """Tokens less accepted drafts are the verify steps, and they shared the generation time."""
    accepted = int(share * drafted)
    tokens, length = steps + accepted, 1 + accepted / steps
    timing = (
        "slot print_timing: id  3 | task 71 | \n"
        f"       eval time = {ms:10.2f} ms / {tokens:5d} tokens ({ms / tokens:8.2f} ms per token,"
        f" {1000 * tokens / ms:8.2f} tokens per second)"
    )
    draft = LLAMACPP_SHAPES[shape].format(
        rate=accepted / drafted, accepted=accepted, drafted=drafted, length=length
    )
    first, second = windows_of(timing, draft)
    assert (first["ms"], first["tokens"]) == (ms, tokens)
    assert (second["accepted"], second["drafted"], second["rounds"]) == (accepted, drafted, steps)
    assert second["round_ms"] == pytest.approx(ms / steps)
    assert second["accept_len"] == pytest.approx(length, abs=0.0051)
