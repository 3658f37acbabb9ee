"""Bytes per weight are exact, scales included."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roundline.bandwidth import gguf
from roundline.bandwidth.architecture import Parallelism, load_model
from roundline.bandwidth.quantization import FORMATS, find_format, grouped
from roundline.bandwidth.weight_formats import stored_as
from roundline.errors import UnknownNameError, UsageError


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("bf16", "16"), ("float16", "16"), ("torch.bfloat16", "16"), ("fp8", "8"),
        ("fp8_block128x128", "8.001953125"), ("int8", "8"), ("int4_g128", "4.15625"),
        ("int4_g128_sym", "4.125"), ("int4-g64", "4.3125"), ("int4_g32", "5"),
        ("int4_g16", "5.25"), ("int4_group256", "4.078125"), ("nvfp4", "4.5"), ("mxfp4", "4.25"),
        ("q4_0", "4.5"), ("Q4_K", "4.5"), ("q6_K", "6.5625"), ("q8_0", "8.5"), ("q5_k", "5.5"),
        ("q2_k", "2.625"), ("iq4_xs", "4.25"), ("4.65bpw", "4.65"), ("nf4", "4.5"),
    ],
)  # fmt: skip
def test_bits_per_weight(name, bits):
    """Every format counts its scales and zero points."""
    assert find_format(name).bits == Fraction(bits)


def test_an_unknown_format_lists_the_known_ones():
    """A typo is answered with names."""
    with pytest.raises(UnknownNameError, match="nvfp4"):
        find_format("nvpf4")


def test_a_group_holds_weights():
    """A group size of zero is refused, not divided by."""
    with pytest.raises(UsageError):
        grouped("int4", 4, 0)


def test_bytes_round_up():
    """A last partial byte is a byte."""
    assert FORMATS["mxfp4"].bytes_of(33) == 18
    assert FORMATS["fp8_block128x128"].bytes_of(128 * 128) == 16388


# Sizes of published files; what is not tensors is the same header for every type of one model.
LLAMA_2_7B = {
    "Q3_K_S": 2948304576, "Q3_K_M": 3298004672, "Q3_K_L": 3597110976, "Q4_0": 3825807040,
    "Q4_K_S": 3856739904, "Q4_K_M": 4081004224, "Q5_0": 4651691712, "Q5_K_M": 4783156928,
    "Q6_K": 5529194176, "Q8_0": 7161089728,
}  # fmt: skip


def _tensor_bytes(model: str, file_type: str) -> int:
    stored = stored_as(load_model(model), file_type)
    embedding = FORMATS[gguf.FILE_TYPES[file_type.lower()]]
    return (
        sum(matrix.resident_bytes for matrix in stored.weight_matrices())
        + embedding.bytes_of(stored.vocab * stored.hidden)
        + 4 * stored.vectors(Parallelism())
    )


def test_gguf_mixtures_are_those_of_the_published_files():
    """Every file of Llama-2-7B is the predicted tensors and one and the same vocabulary."""
    headers = [size - _tensor_bytes("llama-2-7b", name) for name, size in LLAMA_2_7B.items()]
    assert max(headers) < 800_000
    assert max(headers) - min(headers) <= 128  # alignment


def test_gguf_mixtures_know_the_70b_and_another_vocabulary():
    """Two more models, one of which llama.cpp treats apart."""
    assert 4_920_734_272 - _tensor_bytes("llama-3.1-8b", "Q4_K_M") == pytest.approx(7.8e6, rel=0.1)
    assert 42_520_393_152 - _tensor_bytes("llama-3.1-70b", "Q4_K_M") == pytest.approx(
        7.8e6, rel=0.1
    )


def test_a_row_that_256_does_not_divide_falls_back():
    """896 inputs hold no k-quant super-block."""
    format_of = gguf.recipe("Q4_K_M", 7, 0, is_llama_70b=False)
    from roundline.bandwidth.quantization import Tensor

    tensor = Tensor("model.layers.5.self_attn.q_proj", "", "qkv", 896, 5, 24)
    assert format_of(tensor).name == "q5_0"


def test_a_head_may_be_stored_apart():
    """`--head-format` changes lm_head, in the target and where the draft shares it."""
    model = stored_as(load_model("qwen3.6-27b"), "fp8", "bf16")
    formats = {(m.module, m.name): m.format for m in model.weight_matrices()}
    assert formats["target", "lm_head"] == formats["draft", "lm_head"] == "bf16"
    assert formats["target", "gate_up"] == formats["draft", "gate_up"] == "fp8"


def test_a_router_keeps_its_precision():
    """A wrong route costs more than the bytes saved."""
    model = stored_as(load_model("qwen3-30b-a3b"), "int4_g128")
    formats = {m.name: m.format for m in model.weight_matrices()}
    assert formats["router"] == "bf16"
    assert formats["expert_gate_up"] == "int4_g128"


def test_a_gguf_file_stores_its_embedding_in_the_files_type():
    """Checkpoint bytes of a mixture are those of the file but for norms and vocabulary."""
    assert stored_as(load_model("llama-3.1-8b"), "Q4_K_M").checkpoint_bytes == pytest.approx(
        4_920_734_272, rel=0.002
    )
