"""Shapes give parameters, matrices and bytes: the vectors of public models, exact where known."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundline.bandwidth.architecture import Architecture, Parallelism, load_model
from roundline.bandwidth.catalogue import model_entries
from roundline.bandwidth.shapes import Routing
from roundline.bandwidth.weight_formats import stored_as
from roundline.errors import UnknownNameError, UsageError

MODELS = sorted(model_entries())


def _read_gb(model: Architecture, tp: int, module: str = "target") -> float:
    """GB that one GPU reads per token at batch 1, norms included."""
    parallel = Parallelism(tp)
    matrices = [m for m in model.weight_matrices(parallel) if m.module == module]
    if module == "draft":
        return sum(m.read_bytes(1) for m in matrices if m.name != "lm_head") / 1e9
    vectors = model.weight_format.bytes_of(model.vectors_read(parallel, 1))
    return (sum(m.read_bytes(1) for m in matrices) + vectors) / 1e9


def test_the_27b_is_exact():
    """Parameters and checkpoint bytes are those of the published checkpoint, to the byte."""
    model = load_model("qwen3.6-27b")
    counts = model.parameters
    assert (counts.text, counts.mtp, counts.vision) == (26_895_998_464, 424_699_392, 460_730_096)
    assert counts.total == 27_781_427_952
    assert model.checkpoint_bytes == 55_562_855_904
    body = counts.text - 2 * model.vocab * model.hidden
    assert body == 24_353_201_664


def test_the_parts_of_a_layer_are_exact():
    """MLP, gated delta net, attention and norms of one layer of the 27B."""
    model, alone = load_model("qwen3.6-27b"), Parallelism()
    recurrent, attention = model.layers[0], model.layers[3]
    assert recurrent.feed_forward is not None
    assert sum(m.weights for m in recurrent.feed_forward.linears(alone)) == 267_386_880
    for layer, size in ((recurrent, 115_876_064), (attention, 104_858_112)):
        mixer = layer.mixers[0]
        assert sum(m.weights for m in mixer.linears(1)) + mixer.vectors(1) == size
    assert recurrent.norm_parameters == 10_240


def test_layer_types_of_the_27b():
    """Every fourth layer is full attention, the others are recurrent."""
    types = load_model("qwen3.6-27b").layer_types
    assert len(types) == 64
    assert types[:4] == ("gdn", "gdn", "gdn", "attention")
    assert types.count("attention") == 16


@pytest.mark.parametrize(
    ("name", "module", "sharding", "k", "n", "count", "bytes_"),
    [
        ("in_proj_qkvz", "target", "column", 5120, 8192, 48, 83_886_080),
        ("in_proj_ba", "target", "column", 5120, 48, 48, 491_520),
        ("gdn_out", "target", "row", 3072, 5120, 48, 31_457_280),
        ("qkv", "target", "column", 5120, 7168, 16, 73_400_320),
        ("o", "target", "row", 3072, 5120, 16, 31_457_280),
        ("gate_up", "target", "column", 5120, 17408, 64, 178_257_920),
        ("down", "target", "row", 8704, 5120, 64, 89_128_960),
        ("lm_head", "target", "vocab", 5120, 124_160, 1, 1_271_398_400),
        ("fc", "draft", "replicated", 10240, 5120, 1, 104_857_600),
        ("qkv", "draft", "column", 5120, 7168, 1, 73_400_320),
        ("lm_head", "draft", "vocab", 5120, 124_160, 1, 1_271_398_400),
    ],
)
def test_matrices_of_the_27b_on_two_gpus(name, module, sharding, k, n, count, bytes_):
    """K, N and counts identify GEMMs in a trace, so they are exact."""
    matrices = load_model("qwen3.6-27b").weight_matrices(Parallelism(2))
    found = next(m for m in matrices if (m.name, m.module) == (name, module))
    assert (found.sharding, found.k, found.n, found.count, found.bytes) == (
        sharding, k, n, count, bytes_,
    )  # fmt: skip


def test_a_sliced_fc_is_half_on_two_gpus():
    """vLLM slices the draft's fc by columns, SGLang copies it."""
    model = load_model("qwen3.6-27b")
    sliced = model.weight_matrices(Parallelism(2), fc_replicated=False)
    assert next(m.bytes for m in sliced if m.name == "fc") == 52_428_800


@pytest.mark.parametrize("key", MODELS)
def test_parameter_counts_are_the_published_ones(key):
    """Within 1 % of the publisher's number, which counts the text model or all of it."""
    counts, published = load_model(key).parameters, model_entries()[key]["published_parameters_b"]
    nearest = min((counts.text, counts.text + counts.mtp, counts.total),
                  key=lambda count: abs(count / 1e9 - published))  # fmt: skip
    assert nearest / 1e9 == pytest.approx(published, rel=0.01)


def test_every_model_of_the_table_is_in_the_catalogue(shared):
    """21 models, under the table's keys and Hugging Face's names."""
    with (shared / "model" / "models.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["key"] for row in rows} == set(MODELS)
    for row in rows:
        assert load_model(row["hf_id"]).parameters == load_model(row["key"]).parameters


# GB per GPU and token in bf16 at TP 1, 2, 4, 8; GB of a draft step at TP 2 without lm_head.
READS = {
    "qwen3.6-27b": ((51.25, 25.63, 12.81, 6.45), 0.477),
    "qwen3.5-9b": ((15.87, 7.94, 3.97, 2.00), 0.277),
    "qwen3-next-80b-a3b": ((7.13, 3.61, 1.87, 1.00), 0.081),
    "qwen3.5-35b-a3b": ((5.89, 2.97, 1.52, 0.79), 0.073),
    "qwen3.5-122b-a10b": ((18.02, 9.05, 4.58, 2.35), 0.203),
    "qwen3.5-397b-a17b": ((32.66, 16.46, 8.39, 4.35), 0.315),
    "qwen3-32b": ((63.97, 31.98, 15.99, 8.00), None),
    "llama-3.1-70b": ((139.01, 69.50), None),
    "deepseek-v3": ((73.25, 37.66, 19.86, 10.96), 0.808),
    "glm-4.5": ((65.71, 32.93), 0.455),
    "glm-4.5-air": ((25.61, 12.83), 0.333),
    "gpt-oss-120b": ((10.27,), None),
    "gpt-oss-20b": ((7.22,), None),
    "qwen3-8b": ((15.14,), None),
    "llama-2-7b": ((13.21,), None),
    "llama-2-13b": ((25.70,), None),
    "llama-2-70b": ((137.43,), None),
    "llama-3.1-8b": ((15.01,), None),
    "qwen3-30b-a3b": ((6.08,), None),
    "qwen3-235b-a22b": ((43.14,), None),
}


@pytest.mark.parametrize("key", READS)
def test_bytes_read_per_token(key):
    """All digits of the reference table, at every number of GPUs."""
    reads, draft = READS[key]
    model = stored_as(load_model(key), "bf16")
    for tp, expected in zip((1, 2, 4, 8), reads, strict=False):
        assert _read_gb(model, tp) == pytest.approx(expected, abs=0.0051)
    if draft is not None:
        assert _read_gb(model, 2, "draft") == pytest.approx(draft, abs=0.00051)


@pytest.mark.parametrize(
    ("key", "bytes_"),
    [
        ("qwen3.6-27b", 65_536), ("qwen3.5-9b", 32_768), ("qwen3.5-35b-a3b", 20_480),
        ("qwen3-next-80b-a3b", 24_576), ("qwen3.5-122b-a10b", 24_576),
        ("qwen3.5-397b-a17b", 30_720), ("qwen3-8b", 147_456), ("qwen3-32b", 262_144),
        ("llama-2-7b", 524_288), ("llama-3.1-8b", 131_072), ("llama-3.1-70b", 327_680),
        ("glm-4.5", 376_832), ("glm-4.5-air", 188_416), ("gpt-oss-120b", 73_728),
        ("gpt-oss-20b", 49_152), ("deepseek-v3", 70_272),
    ],
)  # fmt: skip
def test_kv_bytes_per_token(key, bytes_):
    """Bytes of one token in all layers, in bf16."""
    layers = load_model(key).layers
    assert 2 * sum(m.kv_elements(1) for layer in layers for m in layer.mixers) == bytes_


@pytest.mark.parametrize(
    ("key", "megabytes"),
    [
        ("qwen3.6-27b", 150.99), ("qwen3.5-9b", 50.3), ("qwen3.5-35b-a3b", 62.9),
        ("qwen3-next-80b-a3b", 75.5), ("qwen3.5-122b-a10b", 151.0), ("qwen3.5-397b-a17b", 188.7),
    ],
)  # fmt: skip
def test_recurrent_state(key, megabytes):
    """float32 state of one sequence in all recurrent layers."""
    layers = load_model(key).layers
    elements = sum(m.state_elements(1) for layer in layers for m in layer.mixers)
    assert 4 * elements / 1e6 == pytest.approx(megabytes, abs=0.05)


def test_latent_attention_is_the_same_on_every_gpu():
    """The compressed vector and the projections that make it are not sliced."""
    model = load_model("deepseek-v3")
    for tp in (1, 8):
        matrices = {m.name: m for m in model.weight_matrices(Parallelism(tp))}
        assert (matrices["q_a"].n, matrices["kv_a"].n) == (1536, 576)
        assert sum(m.kv_elements(tp) for x in model.layers for m in x.mixers) == 61 * 576


def test_kv_heads_beyond_the_gpus_are_duplicated():
    """At TP 8 each GPU of a 4-head model keeps one head, twice in all."""
    matrices = {m.name: m for m in load_model("qwen3.6-27b").weight_matrices(Parallelism(8))}
    assert matrices["qkv"].n == 3 * 256 * 2 + 2 * 256


@pytest.mark.parametrize(
    ("key", "tp", "what"),
    [
        ("qwen3.6-27b", 5, "heads"),
        ("qwen3.6-27b", 3, "key heads"),
        ("glm-4.5", 12, "KV heads"),
        ("gpt-oss-20b", 128, "query heads"),
    ],
)
def test_gpus_that_do_not_divide_a_dimension_are_refused(key, tp, what):
    """The message says which dimension."""
    with pytest.raises(UsageError, match=what):
        load_model(key).weight_matrices(Parallelism(tp))


@pytest.mark.parametrize("degrees", [(0, 1, 1), (4, 3, 1), (4, 1, 3), (4, 0, 1)])
def test_parallel_degrees_make_sense(degrees):
    """EP and DP divide the GPUs of TP."""
    with pytest.raises(UsageError):
        Parallelism(*degrees)


def test_expert_parallelism_keeps_experts_whole():
    """At EP 8 a GPU holds an eighth of the experts, at TP 8 an eighth of each."""
    model = load_model("qwen3-235b-a22b")
    sliced = {m.name: m for m in model.weight_matrices(Parallelism(8))}["expert_gate_up"]
    whole = {m.name: m for m in model.weight_matrices(Parallelism(8, ep=8))}["expert_gate_up"]
    assert whole.n == 8 * sliced.n
    assert whole.resident_bytes == sliced.resident_bytes
    assert whole.read_bytes(1) == sliced.read_bytes(1)


def test_attention_groups_copy_attention_weights():
    """DP attention reads all of attention on every GPU, and no more of the experts."""
    model = load_model("deepseek-v3")
    sliced = {m.name: m for m in model.weight_matrices(Parallelism(8))}
    copied = {m.name: m for m in model.weight_matrices(Parallelism(8, dp=8))}
    assert copied["o"].bytes == 8 * sliced["o"].bytes
    assert copied["expert_down"] == sliced["expert_down"]


@pytest.mark.parametrize(("tokens", "distinct"), [(1, 8.0), (4, 30.5)])
def test_distinct_experts(tokens, distinct):
    """256 experts, 8 a token: four tokens read nearly four times as many."""
    assert float(Routing(256, 8).distinct(tokens)) == pytest.approx(distinct, abs=0.05)


@given(st.integers(1, 512), st.data())
def test_distinct_experts_are_bounded(experts, data):
    """Never fewer than one token's, never more than there are, and never falling with tokens."""
    routing = Routing(experts, data.draw(st.integers(1, experts)))
    tokens = data.draw(st.integers(1, 64))
    assert routing.per_token <= routing.distinct(tokens) <= routing.distinct(tokens + 1) <= experts


@given(st.sampled_from(MODELS), st.sampled_from([1, 2, 4]), st.integers(1, 8))
def test_more_gpus_never_read_more_each(key, tp, tokens):
    """Bytes per GPU fall or stay when the number of GPUs doubles."""
    model = load_model(key)
    fewer, more = (
        sum(m.read_bytes(tokens) for m in model.weight_matrices(Parallelism(n)))
        for n in (tp, 2 * tp)
    )
    assert more <= fewer


def test_an_unknown_model_names_its_neighbours():
    """A typo is answered with names and with the other way to give a model."""
    with pytest.raises(UnknownNameError, match=r"qwen3\.6-27b.*config\.json"):
        load_model("qwen3.6-72b")
