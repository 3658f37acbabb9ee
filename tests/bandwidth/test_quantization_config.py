"""`quantization_config` decides what is stored how, and is refused where it contradicts itself."""

from __future__ import annotations

import json

import pytest

from roundline.bandwidth.architecture import load_model
from roundline.bandwidth.catalogue import model_entries
from roundline.bandwidth.huggingface import read_config
from roundline.errors import UsageError


def _formats(quantization, model="qwen3-8b", **changes):
    document = {**model_entries()[model]["config"], "quantization_config": quantization, **changes}
    matrices = read_config(document, model, "test").weight_matrices()
    return {(m.module, m.name): m.format for m in matrices}


def test_a_config_that_says_bfloat16_may_still_be_quantised():
    """torch_dtype is the dtype of what is not quantised."""
    formats = _formats({"quant_method": "fp8", "weight_block_size": [128, 128]})
    assert formats["target", "gate_up"] == "fp8_block128x128"
    assert formats["target", "lm_head"] == "bf16"


@pytest.mark.parametrize(
    "quantization",
    [
        {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
        {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False},
        {"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True},
    ],
    ids=lambda q: q["quant_method"],
)
def test_packed_integers_hold_for_layers_only(quantization):
    """lm_head and the draft module are not touched by these tools."""
    formats = _formats(quantization, "qwen3.6-27b")
    assert formats["target", "gate_up"] == "int4_g128"
    assert formats["target", "lm_head"] == formats["draft", "gate_up"] == "bf16"


def test_gptq_may_quantise_the_head():
    """It says so in the config."""
    formats = _formats({"quant_method": "gptq", "bits": 4, "group_size": 128, "lm_head": True})
    assert formats["target", "lm_head"] == "int4_g128"


@pytest.mark.parametrize(
    "excluded",
    [
        {"modules_to_not_convert": ["lm_head", "model.layers.0.mlp"]},
        {"ignored_layers": ["model.layers.0.mlp.gate_proj", "model.layers.0.mlp.up_proj",
                            "model.layers.0.mlp.down_proj"]},
        {"modules_to_not_convert": ["model.layers.0.mlp.*"]},
        {"exclude_modules": ["*.0.mlp*"]},
        {"ignore": [r"re:.*layers\.0\.mlp\..*"]},
        {"modules_to_not_convert": ["language_model.model.layers.0.mlp"]},
    ],
)  # fmt: skip
def test_every_spelling_of_an_exclude_list_is_understood(excluded):
    """Names, fused names, wildcards and regular expressions exclude the same layer."""
    document = {
        **model_entries()["qwen3-8b"]["config"],
        "quantization_config": {"quant_method": "fp8", **excluded},
    }
    matrices = read_config(document, "test", "test").weight_matrices()
    counts = {(m.name, m.format): m.count for m in matrices}
    assert counts["gate_up", "bf16"] == counts["down", "bf16"] == 1
    assert counts["gate_up", "fp8"] == counts["down", "fp8"] == 35
    assert counts["qkv", "fp8"] == 36


def test_an_excluded_layer_is_not_excluded_by_its_prefix():
    """`layers.1` does not mean layers 10 to 19, and `mlp.gate` is no `mlp.gate_proj`."""
    quantization = {
        "quant_method": "fp8", "modules_to_not_convert": ["model.layers.1", "mlp.gate"],
    }  # fmt: skip
    document = {**model_entries()["qwen3-8b"]["config"], "quantization_config": quantization}
    matrices = read_config(document, "test", "test").weight_matrices()
    counts = {(m.name, m.format): m.count for m in matrices}
    assert counts["gate_up", "fp8"] == 35
    assert counts["gate_up", "bf16"] == 1


def test_a_fused_exclusion_covers_its_parts():
    """`in_proj_ba` is one matrix of two tensors in Qwen3.5."""
    quantization = {"quant_method": "fp8", "modules_to_not_convert": ["linear_attn.in_proj_ba"]}
    formats = _formats(quantization, "qwen3.6-27b")
    assert formats["target", "in_proj_ba"] == "bf16"
    assert formats["target", "in_proj_qkvz"] == "fp8"


@pytest.mark.parametrize(
    ("weights", "stored"),
    [
        ({"num_bits": 8, "type": "float", "strategy": "channel"}, "fp8"),
        ({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]},
         "fp8_block128x128"),
        ({"num_bits": 8, "type": "int", "strategy": "channel"}, "int8"),
        ({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128,
          "symmetric": True}, "int4_g128_sym"),
        ({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32,
          "symmetric": False}, "int4_g32"),
        ({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}, "nvfp4"),
        ({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}, "mxfp4"),
    ],
)  # fmt: skip
def test_compressed_tensors_schemes(weights, stored):
    """Scheme by bits, type and strategy; lm_head follows the ignore list."""
    quantization = {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head"],
    }
    formats = _formats(quantization)
    assert formats["target", "gate_up"] == stored
    assert formats["target", "lm_head"] == "bf16"


def test_two_groups_have_two_formats():
    """A target regex takes its modules out of the other group."""
    quantization = {
        "quant_method": "compressed-tensors",
        "config_groups": {
            "group_0": {"targets": [r"re:.*self_attn.*"],
                        "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}},
            "group_1": {"targets": [r"re:.*mlp.*"],
                        "weights": {"num_bits": 4, "type": "float", "group_size": 16}},
        },
    }  # fmt: skip
    formats = _formats(quantization)
    assert formats["target", "qkv"] == "fp8"
    assert formats["target", "down"] == "nvfp4"
    assert formats["target", "lm_head"] == "bf16"


def test_mxfp4_holds_for_experts_only():
    """gpt-oss keeps attention, router and head in bf16."""
    formats = {m.name: m.format for m in load_model("gpt-oss-20b").weight_matrices()}
    assert formats["expert_gate_up"] == formats["expert_down"] == "mxfp4"
    assert formats["qkv"] == formats["router"] == formats["lm_head"] == "bf16"


def test_modelopt_writes_beside_the_config(tmp_path):
    """hf_quant_config.json is read where config.json says nothing."""
    config = dict(model_entries()["qwen3-8b"]["config"])
    (tmp_path / "config.json").write_text(json.dumps(config))
    beside = {"quantization": {"quant_algo": "NVFP4", "group_size": 16,
                               "exclude_modules": ["lm_head"]}}  # fmt: skip
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside))
    formats = {m.name: m.format for m in load_model(str(tmp_path)).weight_matrices()}
    assert formats["gate_up"] == "nvfp4"
    assert formats["lm_head"] == "bf16"


@pytest.mark.parametrize(
    "quantization",
    [
        {"quant_method": "fp8", "bits": 4},
        {"quant_method": "awq", "bits": 5, "group_size": 128},
        {"quant_method": "gptq", "bits": 4, "group_size": 0},
        {"quant_method": "gptq", "group_size": 128},
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": True},
        {"quant_method": "fp8", "fmt": "int4"},
        {"quant_method": "fp8", "weight_block_size": [128]},
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 32},
        {"quant_method": "modelopt", "quant_algo": "FP8",
         "config_groups": {"group_0": {"weights": {"num_bits": 4}}}},
        {"quant_method": "compressed-tensors"},
        {"quant_method": "compressed-tensors", "config_groups": {
            "group_0": {"weights": {"num_bits": 4, "type": "int", "strategy": "group"}}}},
        {"quant_method": "nobody-knows"},
        {"bits": 4},
    ],
    ids=str,
)  # fmt: skip
def test_a_contradiction_is_refused(quantization):
    """One line says what is wrong and names the way out."""
    with pytest.raises(UsageError, match=r"quantization_config|group_size"):
        _formats(quantization)


def test_groups_must_divide_the_rows():
    """A group size that the shapes cannot have is no number to compute with."""
    with pytest.raises(UsageError, match="groups of 96"):
        _formats({"quant_method": "gptq", "bits": 4, "group_size": 96})
