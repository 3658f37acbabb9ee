"""One decode round: bytes, floors and counts, term by term."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundline.bandwidth.architecture import Parallelism, load_model
from roundline.bandwidth.catalogue import load_draft
from roundline.bandwidth.communication import choose_costs
from roundline.bandwidth.efficiency import Efficiency, default_efficiency
from roundline.bandwidth.hardware import find_gpu
from roundline.bandwidth.quantization import find_format
from roundline.bandwidth.round_floor import RoundFloor, Workload, predict
from roundline.bandwidth.switches import engine_switches
from roundline.bandwidth.weight_formats import stored_as
from roundline.bandwidth.worth import speculation_worth
from roundline.errors import UnknownNameError, UsageError


def _predict(model="qwen3.6-27b", gpu="RTX A6000", engine="sglang", tp=2, **workload) -> RoundFloor:
    return predict(
        load_model(model), find_gpu(gpu), Workload(parallel=Parallelism(tp), **workload),
        engine_switches(engine),
    )  # fmt: skip


@pytest.fixture(scope="module")
def worked() -> RoundFloor:
    """Qwen3.6-27B, bf16, two RTX A6000, three draft steps, context 240."""
    return _predict(context=240, draft_steps=3)


def test_weights_of_the_worked_example(worked):
    """25.625 GB and 33.37 ms: body and lm_head, the embedding not."""
    weights = worked.term("weights")
    assert weights.bytes / 1e9 == pytest.approx(25.625, abs=0.0005)
    assert weights.floor_ms == pytest.approx(33.37, abs=0.005)


def test_draft_passes_of_the_worked_example(worked):
    """1.7486 GB each with fc replicated; three of them take 6.83 ms."""
    assert [p.weight_bytes for p in worked.draft_passes] == [worked.mtp_pass_bytes] * 3
    assert worked.mtp_pass_bytes / 1e9 == pytest.approx(1.7486, abs=0.00005)
    assert worked.term("draft").floor_ms == pytest.approx(6.83, abs=0.005)
    assert [p.tokens for p in worked.draft_passes] == [1, 1, 4]


def test_state_of_the_worked_example(worked):
    """75.50 MB per GPU, touched seven times: 0.69 ms."""
    assert worked.state_bytes == 75_497_472
    assert worked.state_passes == 7
    assert worked.term("gdn").floor_ms == pytest.approx(0.69, abs=0.005)


def test_total_of_the_worked_example(worked):
    """31.41 GB and 40.9 ms a round, of which 567 GB/s were reached in 55.4 ms."""
    assert worked.bytes / 1e9 == pytest.approx(31.41, abs=0.005)
    assert worked.floor_ms == pytest.approx(40.89, rel=0.0005)
    assert worked.bytes / 55.4e6 == pytest.approx(567, rel=0.001)


def test_counts_of_the_worked_example(worked):
    """What a trace of one round must contain."""
    counts = worked.counts
    assert (counts.lm_head_reads, counts.all_reduces, counts.all_gathers) == (4, 138, 4)
    gemms = {}
    for gemm in counts.gemms:
        gemms[gemm.matrix] = gemms.get(gemm.matrix, 0) + gemm.count
    assert gemms == {
        "gate_up": 67, "down": 67, "in_proj_qkvz": 48, "in_proj_ba": 48, "gdn_out": 48,
        "qkv": 19, "o": 19, "fc": 3, "lm_head": 4,
    }  # fmt: skip


def test_message_sizes_of_the_worked_example(worked):
    """40,960 bytes in the target, 10,240 in a draft step of one token."""
    sizes = {
        (m.phase, m.message_bytes) for m in worked.counts.messages if m.collective == "all_reduce"
    }
    assert sizes == {("verify", 40_960), ("draft", 10_240), ("draft", 40_960)}


def test_the_hand_made_model_is_another_throughput(worked):
    """The ceiling at 3.08 is 75.3 tok/s, far from the 55.59 that were measured."""
    assert worked.tokens_per_s_at(3.08, "floor") == pytest.approx(75.3, abs=0.05)
    assert worked.tokens_per_s_at(3.08) < worked.tokens_per_s_at(3.08, "floor")


def test_vllm_slices_fc_and_gathers_it():
    """Half the fc, one gather more per draft pass, one state slot per token."""
    vllm = _predict(engine="vllm", context=240, draft_steps=3)
    assert vllm.mtp_pass_bytes / 1e9 == pytest.approx(1.696, abs=0.0005)
    assert vllm.counts.all_gathers == 4 + 3
    assert vllm.state_passes == 5


def test_what_drafting_must_earn(worked):
    """A round of three drafts costs about 1.2 plain steps, a fourth draft about 5 % of it."""
    worth = speculation_worth(worked)
    assert worth is not None
    assert worth.break_even_len == pytest.approx(1.22, abs=0.05)
    assert worth.next_step_cost == pytest.approx(0.055, abs=0.01)
    assert speculation_worth(_predict()) is None


def test_plain_decode_touches_a_state_twice():
    """Read and written once each, whatever the engine."""
    for engine in ("sglang", "vllm", "trtllm", "llama.cpp"):
        assert _predict(engine=engine).state_passes == 2


def test_state_passes_may_be_given():
    """A switch that is given overrules the engine."""
    switches = replace(engine_switches("sglang"), state_passes=3)
    floor = predict(
        load_model("qwen3.6-27b"), find_gpu("RTX A6000"),
        Workload(draft_steps=3, parallel=Parallelism(2)), switches,
    )  # fmt: skip
    assert floor.term("gdn").bytes == 3 * floor.state_bytes + 2 * floor.conv_state_bytes


@pytest.mark.parametrize("batch", [1, 4, 16])
def test_the_state_of_a_hybrid_grows_with_the_batch(batch):
    """At batch 16 and three draft steps the state is a third of the weights."""
    floor = _predict(batch=batch, draft_steps=3)
    assert floor.state_bytes == batch * 75_497_472
    assert floor.term("weights").bytes == _predict(draft_steps=3).term("weights").bytes
    if batch == 16:
        assert 7 * floor.state_bytes / 1e9 == pytest.approx(8.5, abs=0.05)


def test_the_state_has_the_engines_dtype_where_the_config_names_none():
    """A Mamba hybrid keeps float32 states in SGLang and bf16 states in vLLM."""
    model = replace(load_model("qwen3.6-27b"), state_format=None)
    gpu, workload = find_gpu("H200"), Workload()
    sglang, vllm = (
        predict(model, gpu, workload, engine_switches(name)).state_bytes
        for name in ("sglang", "vllm")
    )
    assert sglang == 2 * vllm


def test_kv_is_read_by_context_and_batch():
    """131,072 bytes a token of Llama-3.1-8B, halved by an 8-bit cache, nothing at context 0."""
    assert _predict("llama-3.1-8b", tp=1).term("attention").bytes == 0
    long = _predict("llama-3.1-8b", tp=1, context=1000, batch=3)
    assert long.term("attention").bytes == 3 * 1000 * 131_072
    switches = replace(engine_switches("sglang"), kv_format=find_format("fp8"))
    small = predict(load_model("llama-3.1-8b"), find_gpu("RTX A6000"),
                    Workload(batch=3, context=1000), switches)  # fmt: skip
    assert 2 * small.term("attention").bytes == long.term("attention").bytes


def test_a_window_bounds_the_cache():
    """Half of gpt-oss's layers read at most 128 tokens."""
    per_layer = 2 * 8 * 64 * 2
    floor = _predict("gpt-oss-20b", gpu="H200", tp=1, context=8192)
    assert floor.term("attention").bytes == 12 * per_layer * (8192 + 128)


def test_duplicated_kv_heads_do_not_shrink():
    """At TP 8 a GPU caches one of 4 heads: as much as at TP 4."""
    assert _predict(tp=4).kv_bytes_per_token == _predict(tp=8).kv_bytes_per_token == 16_384


def test_verification_reads_more_experts():
    """Four tokens at batch 1 touch nearly four times the experts of one."""
    plain = _predict("qwen3.5-35b-a3b", gpu="H200", tp=1)
    verify = _predict("qwen3.5-35b-a3b", gpu="H200", tp=1, draft_steps=3)
    expert = next(m for m in plain.matrices if m.name == "expert_gate_up")
    assert expert.experts_read(1) == 8
    assert float(expert.experts_read(4)) == pytest.approx(30.5, abs=0.05)
    assert verify.term("weights").bytes > 1.8 * plain.term("weights").bytes
    assert any("independently" in sentence for sentence in verify.assumptions)


def test_a_tree_verifies_more_tokens_than_its_depth():
    """M is num_draft_tokens, and messages and states follow it."""
    tree = _predict(draft_steps=3, num_draft_tokens=8)
    assert tree.state_passes == 11
    assert {m.message_bytes for m in tree.counts.messages if m.phase == "verify"} == {
        8 * 2 * 5120, 8 * 2 * 248_320,
    }  # fmt: skip


def test_ngram_drafts_cost_no_pass():
    """The target verifies, nothing drafts."""
    floor = _predict("llama-3.1-8b", tp=1, draft_steps=4, drafter="ngram")
    assert floor.draft_passes == ()
    assert floor.term("draft").bytes == 0
    assert floor.counts.lm_head_reads == 1
    assert floor.workload.verify_tokens == 5


def test_a_missing_draft_layer_is_named():
    """The message offers the three ways out."""
    with pytest.raises(UsageError, match=r"no draft layer.*--draft-model.*ngram.*--draft-steps 0"):
        _predict("llama-3.1-8b", tp=1, draft_steps=3)


def test_a_separate_model_drafts_with_its_own_weights():
    """gpt-fast's 7B in int4 for a 70B in int4: speculation pays from accept length 1.4 on."""
    target = stored_as(load_model("llama-2-70b"), "int4_g32")
    draft = stored_as(load_model("llama-2-7b"), "int4_g32")
    head = load_draft("llama-2-7b", target)
    model = replace(target, draft=replace(head, format_of=draft.format_of))
    floor = predict(model, find_gpu("A100 SXM 80GB"), Workload(context=105, draft_steps=4),
                    engine_switches("gpt-fast"))  # fmt: skip
    assert floor.mtp_pass_bytes / 1e9 == pytest.approx(6.607 * 0.625, rel=0.01)
    plain = predict(target, floor.gpu, Workload(context=105), floor.switches)
    assert 1.3 < floor.floor_ms / plain.floor_ms < 1.5


def test_one_gpu_exchanges_nothing():
    """No messages, no links, no time."""
    floor = _predict(tp=1, draft_steps=3)
    assert floor.links is None
    assert (floor.counts.all_reduces, floor.counts.all_gathers) == (0, 0)
    assert floor.term("collective").expected_ns == 0


def test_both_conventions_of_a_published_bandwidth():
    """gpt-fast counts the embedding and a replicated head: 955.8 and 1481.8 GB/s as printed."""
    for model, tp, rate, printed in (
        ("llama-2-7b", 4, 254.02, 955.83),
        ("llama-2-70b", 2, 21.32, 1481.87),
        ("llama-2-70b", 8, 62.5, 1135.29),
    ):
        floor = _predict(model, gpu="A100 SXM 80GB", engine="gpt-fast", tp=tp, context=105)
        assert floor.all_parameter_bytes * rate / 1e9 == pytest.approx(printed, rel=0.001)
        assert floor.term("weights").bytes < floor.all_parameter_bytes


def test_what_does_not_fit_is_said():
    """A 27B in bf16 needs more than one 48 GB card."""
    assert any("do not fit" in sentence for sentence in _predict(tp=1).assumptions)
    assert not any("do not fit" in sentence for sentence in _predict(tp=2).assumptions)


def test_a_batch_above_the_ridge_is_bound_by_compute():
    """The floor stays bytes over bandwidth; the expected time does not."""
    small, large = (_predict("llama-3.1-8b", tp=1, batch=batch) for batch in (1, 2048))
    assert large.term("weights").floor_ns == small.term("weights").floor_ns
    assert large.term("weights").expected_ns > 5 * small.term("weights").expected_ns
    assert any("ridge" in sentence for sentence in large.assumptions)


def test_small_matrices_are_ruled_by_their_start():
    """in_proj_ba takes its latency, gate_up its bytes."""
    efficiency = default_efficiency(find_gpu("RTX A6000"))
    tiny, large = Fraction(491_520, 768), Fraction(178_257_920, 768)
    assert efficiency.weight_read_ns(tiny, unpacks=False) > 5 * tiny
    assert efficiency.weight_read_ns(large, unpacks=False) == large / Fraction(9, 10)
    assert efficiency.weight_read_ns(large, unpacks=True) > large / Fraction(9, 10)


@pytest.mark.parametrize("fraction", [Fraction(0), Fraction(-1), Fraction(11, 10)])
def test_an_efficiency_is_a_fraction(fraction):
    """Nothing runs faster than the datasheet."""
    with pytest.raises(UsageError):
        Efficiency(fraction, Fraction(1), Fraction(1))


@pytest.mark.parametrize(
    "numbers",
    [
        {"batch": 0},
        {"context": -1},
        {"draft_steps": -1},
        {"num_draft_tokens": 4},
        {"draft_steps": 3, "num_draft_tokens": 3},
    ],
)
def test_a_workload_makes_sense(numbers):
    """Each number that cannot be is named."""
    with pytest.raises(UsageError, match="--"):
        Workload(**numbers)


@pytest.mark.parametrize("length", [0.5, 4.5])
def test_throughput_needs_a_possible_length(worked, length):
    """An accept length lies between 1 and K + 1."""
    with pytest.raises(UsageError, match="accept length"):
        worked.tokens_per_s_at(length)


def test_an_unknown_engine_is_refused():
    """The known ones are listed."""
    with pytest.raises(UnknownNameError, match="sglang"):
        engine_switches("gguf-server")


def test_random_sampling_broadcasts():
    """Three broadcasts a round in SGLang at TP > 1, none alone."""
    switches = replace(engine_switches("sglang"), sampling_broadcasts=3)
    for tp, expected in ((2, 3), (1, 0)):
        floor = predict(load_model("qwen3.6-27b"), find_gpu("H200"),
                        Workload(parallel=Parallelism(tp)), switches)  # fmt: skip
        assert floor.counts.broadcasts == expected


workloads = st.builds(
    Workload,
    batch=st.integers(1, 64),
    context=st.integers(0, 5000),
    draft_steps=st.integers(0, 5),
    parallel=st.sampled_from([Parallelism(n) for n in (1, 2, 4, 8)]),
)


@given(workloads, st.sampled_from(["sglang", "vllm", "trtllm", "llama.cpp", "gpt-fast"]))
def test_terms_add_up_and_expected_never_beats_the_floor(workload, engine):
    """Integers add up exactly; what is expected takes at least the floor."""
    gpu = find_gpu("H100 80GB HBM3")
    floor = predict(load_model("qwen3.6-27b"), gpu, workload, engine_switches(engine))
    assert sum(term.floor_ns for term in floor.terms) == floor.floor_ns
    assert sum(term.bytes for term in floor.terms) == floor.bytes
    for term in floor.terms:
        assert term.floor_ns == round(Fraction(term.bytes) / gpu.hbm_gbps)
        assert term.expected_ns >= term.floor_ns
    parts = sum(part.bytes for each in floor.draft_passes for part in each.parts)
    assert parts == floor.term("draft").bytes


@given(workloads)
def test_changing_nothing_changes_nothing(workload):
    """The same question has the same answer, defaults spelled out or not."""
    model, gpu, switches = load_model("qwen3.6-27b"), find_gpu("H200"), engine_switches("vllm")
    costs = choose_costs(gpu, workload.parallel.tp, switches.collective_kernel)
    spelled = predict(model, gpu, workload, switches, default_efficiency(gpu), costs)
    assert predict(model, gpu, workload, switches).terms == spelled.terms


@given(workloads, st.fractions(Fraction(100), Fraction(9000), max_denominator=10))
def test_floors_scale_with_bandwidth(workload, gbps):
    """Bytes do not depend on the GPU; floors are inverse to its bandwidth."""
    model, switches = load_model("qwen3.6-27b"), engine_switches("sglang")
    gpu = find_gpu("H200")
    one, two = (predict(model, g, workload, switches) for g in (gpu, gpu.with_bandwidth(gbps)))
    assert one.bytes == two.bytes
    assert two.floor_ns == pytest.approx(one.bytes / float(gbps), abs=10)
