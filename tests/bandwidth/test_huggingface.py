"""Config files of many families give the parameter counts of their published checkpoints."""

from __future__ import annotations

import json

import pytest

from roundline.bandwidth.architecture import Architecture, Parallelism, load_model
from roundline.bandwidth.catalogue import load_draft, model_entries
from roundline.bandwidth.huggingface import read_config
from roundline.errors import UsageError


def _decoder(model_type, hidden, inner, layers, heads, kv_heads, vocab, tied=False, **more):
    return {
        "model_type": model_type, "hidden_size": hidden, "intermediate_size": inner,
        "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "vocab_size": vocab, "tie_word_embeddings": tied, **more,
    }  # fmt: skip


def _mamba2(prefix, heads, head_dim, state, groups, **more):
    names = {"mamba": ("n_heads", "d_head", "d_state", "n_groups"),
             "nemotron": ("num_heads", "head_dim", "", "")}[prefix]  # fmt: skip
    if prefix == "nemotron":
        return {"mamba_num_heads": heads, "mamba_head_dim": head_dim, "ssm_state_size": state,
                "n_groups": groups, "conv_kernel": 4, "use_conv_bias": True, **more}  # fmt: skip
    values = dict(zip(names, (heads, head_dim, state, groups), strict=True))
    return {f"mamba_{k}": v for k, v in values.items()} | {"mamba_d_conv": 4} | more


def _granite_types():
    return ["attention" if i in (5, 15, 25, 35) else "mamba" for i in range(40)]


MLA = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
NANO_V2 = "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-"
NANO_3 = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"

FAMILIES = {
    "mistral-7b": (_decoder("mistral", 4096, 14336, 32, 32, 8, 32000, sliding_window=4096),
                   7_241_732_096),
    "mixtral-8x7b": (_decoder("mixtral", 4096, 14336, 32, 32, 8, 32000, num_local_experts=8,
                              num_experts_per_tok=2), 46_702_792_704),
    "qwen2.5-7b": (_decoder("qwen2", 3584, 18944, 28, 28, 4, 152064, use_sliding_window=False,
                            sliding_window=131072), 7_615_616_512),
    "qwen2.5-0.5b": (_decoder("qwen2", 896, 4864, 24, 14, 2, 151936, True), 494_032_768),
    "qwen1.5-moe": (_decoder("qwen2_moe", 2048, 5632, 24, 16, 16, 151936, num_experts=60,
                             num_experts_per_tok=4, moe_intermediate_size=1408,
                             shared_expert_intermediate_size=5632), 14_315_784_192),
    "llama-3.2-1b": (_decoder("llama", 2048, 8192, 16, 32, 8, 128256, True, head_dim=64),
                     1_235_814_400),
    "gemma-7b": (_decoder("gemma", 3072, 24576, 28, 16, 16, 256000, True, head_dim=256),
                 8_537_680_896),
    "gemma-2-9b": (_decoder("gemma2", 3584, 14336, 42, 16, 8, 256000, True, head_dim=256,
                            sliding_window=4096), 9_241_705_984),
    "gemma-3-1b": (_decoder("gemma3_text", 1152, 6912, 26, 4, 1, 262144, True, head_dim=256,
                            sliding_window=512), 999_885_952),
    "gemma-3-27b": ({"model_type": "gemma3", "text_config": {
        "model_type": "gemma3_text", "hidden_size": 5376, "intermediate_size": 21504,
        "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16,
        "head_dim": 128, "sliding_window": 1024}}, 27_009_346_304),
    "gemma-3-4b": ({"model_type": "gemma3", "text_config": {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
        "num_hidden_layers": 34, "sliding_window": 1024}}, 3_880_263_168),
    "pythia-6.9b": (_decoder("gpt_neox", 4096, 16384, 32, 32, 32, 50432, attention_bias=True),
                    6_857_302_016),
    "phi-2": (_decoder("phi", 2560, 10240, 32, 32, 32, 51200), 2_779_683_840),
    "phi-3-mini": (_decoder("phi3", 3072, 8192, 32, 32, 32, 32064, sliding_window=2047),
                   3_821_079_552),
    "phi-3.5-moe": (_decoder("phimoe", 4096, 6400, 32, 32, 8, 32064, num_local_experts=16,
                             num_experts_per_tok=2, attention_bias=True, lm_head_bias=True),
                    41_873_153_344),
    "starcoder2-7b": (_decoder("starcoder2", 4608, 18432, 32, 36, 4, 49152, True, use_bias=True),
                      7_173_923_840),
    "olmo-2-7b": (_decoder("olmo2", 4096, 11008, 32, 32, 32, 100352), 7_298_617_344),
    "olmoe": (_decoder("olmoe", 2048, 1024, 16, 16, 16, 50304, num_experts=64,
                       num_experts_per_tok=8), 6_919_161_856),
    "glm-4-9b": (_decoder("glm4", 4096, 13696, 40, 32, 2, 151552, head_dim=128,
                          attention_bias=True), 9_400_279_040),
    "deepseek-v2-lite": (_decoder("deepseek_v2", 2048, 10944, 27, 16, 16, 102400,
                                  q_lora_rank=None, n_routed_experts=64, n_shared_experts=2,
                                  num_experts_per_tok=6, moe_intermediate_size=1408,
                                  first_k_dense_replace=1, **MLA), 15_706_484_224),
    "command-r": (_decoder("cohere", 8192, 22528, 40, 64, 64, 256000, True), 34_980_831_232),
    "seed-oss": (_decoder("seed_oss", 5120, 27648, 64, 80, 8, 155136, head_dim=128,
                          attention_bias=True, attention_out_bias=False), 36_151_104_512),
    "smollm3": (_decoder("smollm3", 2048, 11008, 36, 16, 4, 128256, True), 3_075_098_624),
    "lfm2-1.2b": (_decoder("lfm2", 2048, 12288, 16, 32, 8, 65536, True, conv_L_cache=3,
                           full_attn_idxs=[2, 5, 8, 10, 12, 14]), 1_170_340_608),
    "jamba": (_decoder("jamba", 4096, 14336, 32, 32, 8, 65536, num_experts=16,
                       num_experts_per_tok=2, attn_layer_period=8, attn_layer_offset=4,
                       expert_layer_period=2, expert_layer_offset=1, mamba_d_state=16,
                       mamba_d_conv=4, mamba_expand=2, mamba_dt_rank=256), 51_570_323_328),
    "bamba-9b": (_decoder("bamba", 4096, 14336, 32, 32, 8, 128256, attn_layer_indices=[9, 18, 27],
                          **_mamba2("mamba", 128, 64, 128, 1)), 9_780_235_392),
    "falcon-h1-0.5b": (_decoder("falcon_h1", 1024, 2048, 36, 8, 2, 32784, head_dim=64,
                                mamba_d_ssm=1536, mamba_rms_norm=False,
                                **_mamba2("mamba", 24, 64, 128, 1)), 521_411_104),
    "granite-4-h-tiny": (_decoder("granitemoehybrid", 1536, 512, 40, 12, 4, 100352, True,
                                  num_local_experts=64, num_experts_per_tok=6,
                                  shared_intermediate_size=1024, layer_types=_granite_types(),
                                  **_mamba2("mamba", 48, 64, 128, 1)), 6_939_037_248),
    "granite-4-h-micro": (_decoder("granitemoehybrid", 2048, 8192, 40, 32, 8, 100352, True,
                                   num_local_experts=0, num_experts_per_tok=0,
                                   shared_intermediate_size=8192, layer_types=_granite_types(),
                                   **_mamba2("mamba", 64, 64, 128, 1)), 3_191_396_096),
    "nemotron-nano-9b-v2": (_decoder("nemotron_h", 4480, 15680, 56, 40, 8, 131072, head_dim=128,
                                     hybrid_override_pattern=NANO_V2,
                                     **_mamba2("nemotron", 128, 80, 128, 8)), 8_888_227_328),
    "nemotron-3-nano": (_decoder("nemotron_h", 2688, 1856, 52, 32, 2, 131072, head_dim=128,
                                 hybrid_override_pattern=NANO_3, n_routed_experts=128,
                                 num_experts_per_tok=6, moe_intermediate_size=1856,
                                 moe_shared_expert_intermediate_size=3712, n_shared_experts=1,
                                 **_mamba2("nemotron", 64, 64, 128, 8)), 31_577_940_288),
    "mamba-codestral": ({"model_type": "mamba2", "hidden_size": 4096, "num_hidden_layers": 64,
                         "vocab_size": 32768, "num_heads": 128, "head_dim": 64, "state_size": 128,
                         "n_groups": 8, "conv_kernel": 4, "expand": 2, "use_conv_bias": True,
                         "tie_word_embeddings": False}, 7_285_403_648),
    "kimi-k2": (_decoder("kimi_k2", 7168, 18432, 61, 64, 64, 163840, q_lora_rank=1536,
                         n_routed_experts=384, n_shared_experts=1, num_experts_per_tok=8,
                         moe_intermediate_size=2048, first_k_dense_replace=1, **MLA),
                1_026_408_232_448),
}  # fmt: skip


def _read(name: str) -> Architecture:
    return read_config(FAMILIES[name][0], name, "test")


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_of_a_family(name):
    """The count is that of the published checkpoint, to the parameter."""
    assert _read(name).parameters.text == FAMILIES[name][1]


def test_layer_types_of_hybrids():
    """Recurrent layers are told from attention whatever the config calls them."""
    assert _read("jamba").layer_types.count("attention") == 4
    assert _read("bamba-9b").layer_types.count("mamba") == 29
    assert set(_read("falcon-h1-0.5b").layer_types) == {"attention+mamba"}
    nano = _read("nemotron-nano-9b-v2").layer_types
    assert (nano.count("mamba"), nano.count("attention"), nano.count("mlp")) == (27, 4, 25)


def test_windows_alternate():
    """Gemma 2 sees a window in every other layer, Gemma 3 in five of six, Mistral in all."""
    windows = {
        name: [layer.mixers[0].window for layer in _read(name).layers]
        for name in ("gemma-2-9b", "gemma-3-1b", "mistral-7b", "qwen2.5-7b")
    }
    assert windows["gemma-2-9b"][:4] == [4096, None, 4096, None]
    assert windows["gemma-3-1b"][:6] == [512] * 5 + [None]
    assert set(windows["mistral-7b"]) == {4096}
    assert set(windows["qwen2.5-7b"]) == {None}


def test_a_multimodal_config_nests_its_decoder(tmp_path):
    """text_config holds the shapes, the outer object the formats and the vision tower."""
    flat = dict(model_entries()["qwen3.6-27b"]["config"])
    vision = flat.pop("vision_config")
    nested = {"model_type": "qwen3_5", "text_config": flat, "vision_config": vision,
              "quantization_config": {"quant_method": "fp8"}}  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(nested))
    model = load_model(path)
    assert model.parameters == load_model("qwen3.6-27b").parameters
    formats = {(m.module, m.name): m.format for m in model.weight_matrices()}
    assert formats["target", "gate_up"] == "fp8"
    assert formats["draft", "fc"] == formats["target", "lm_head"] == "bf16"


def test_a_tied_head_is_read_and_stored_once():
    """lm_head is read every pass though the checkpoint has no tensor of that name."""
    model = _read("llama-3.2-1b")
    assert model.tied
    head = next(m for m in model.weight_matrices() if m.name == "lm_head")
    assert head.bytes == 2 * 128256 * 2048
    assert model.checkpoint_bytes == 2 * 1_235_814_400


def test_published_checkpoint_sizes():
    """total_size of the index files of two MXFP4 checkpoints, to the byte."""
    assert load_model("gpt-oss-120b").checkpoint_bytes == 65_248_815_744
    assert load_model("gpt-oss-20b").checkpoint_bytes == 13_761_264_768


def test_a_separate_draft_leaves_the_checkpoint_alone():
    """The target's own draft module stays in its parameters when another model drafts."""
    from dataclasses import replace

    target = load_model("qwen3.6-27b")
    other = replace(target, draft=load_draft("qwen3.5-9b", target))
    assert other.parameters == target.parameters
    assert other.checkpoint_bytes == target.checkpoint_bytes


def test_an_unknown_family_is_read_as_a_llama_and_said():
    """The note tells the user to compare the parameter count."""
    model = read_config(_decoder("brandnew", 4096, 14336, 32, 32, 8, 32000), "x", "test")
    assert model.parameters.text == 7_241_732_096
    assert any("brandnew" in note for note in model.notes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": "big"}, "hidden_size"),
        ({"vocab_size": -1}, "vocab_size"),
        ({"num_key_value_heads": 5}, "KV heads"),
        ({"num_key_value_heads": 0}, "KV heads"),
        ({"layer_types": ["full_attention"] * 3}, "contradicts"),
        ({"layer_types": ["telepathy"] * 32}, "telepathy"),
        ({"num_local_experts": 4, "num_experts_per_tok": 5}, "experts per token"),
        ({"num_attention_heads": 30, "num_key_value_heads": 30}, "head_dim"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"linear_attn_config": {"kda_layers": [1]}}, "Kimi"),
        ({"torch_dtype": "posit16"}, "posit16"),
    ],
)
def test_an_unusable_config_is_refused(changes, message):
    """One line names the key that is missing, contradictory or unknown."""
    document = _decoder("llama", 4096, 14336, 32, 32, 8, 32000) | changes
    document = {key: value for key, value in document.items() if value is not None}
    with pytest.raises(UsageError, match=message):
        read_config(document, "x", "test").weight_matrices()


@pytest.mark.parametrize("text", ["", "[]", "{", '"config"'])
def test_a_file_that_is_no_config_is_refused(tmp_path, text):
    """The path is in the message."""
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="config"):
        load_model(path)


def test_an_eagle3_head_reads_two_inputs_and_its_own_vocabulary(tmp_path):
    """One layer over embedding and hidden vector, fc over three hidden vectors, a small lm_head."""
    head = _decoder("llama", 4096, 14336, 1, 32, 8, 128256, draft_vocab_size=32000)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(head | {"architectures": ["LlamaForCausalLMEagle3"]}))
    target = load_model("llama-3.1-8b")
    draft = load_draft(str(path), target)
    from dataclasses import replace

    matrices = {
        m.name: m
        for m in replace(target, draft=draft).weight_matrices(Parallelism())
        if m.module == "draft"
    }
    assert matrices["qkv"].k == 8192
    assert (matrices["fc"].k, matrices["fc"].n) == (3 * 4096, 4096)
    assert matrices["lm_head"].n == 32000


def test_a_whole_model_may_draft():
    """A separate draft reads all of its layers and its own head each pass."""
    from dataclasses import replace

    target = load_model("llama-2-70b")
    model = replace(target, draft=load_draft("llama-2-7b", target))
    reads = [m for m in model.weight_matrices() if m.module == "draft"]
    assert sum(m.read_bytes(1) for m in reads) / 1e9 == pytest.approx(13.21, abs=0.005)
    assert model.parameters == target.parameters
    assert model.checkpoint_bytes == target.checkpoint_bytes
