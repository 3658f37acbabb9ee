"""What a model family fixes in its code and therefore leaves out of its config.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True)
class Family:
    """Traits of one `model_type`; the defaults are those of Llama.

    `norms` counts the norm weights of a layer. `window_period`: every n-th layer sees all tokens,
    the others a window (0: the window, if any, holds for all layers).
    """

    gated_mlp: bool = True
    norms: int = 2
    norm_bias: bool = False
    qkv_bias: bool = False
    output_bias_follows: bool = True
    all_biases: bool = False
    head_bias: bool = False
    qk_norm: Literal["none", "head", "full"] = "none"
    attention_gate: bool = False
    tied: bool = False
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    sinks: bool = False
    window_period: int = 0
    mtp: int = 0
    parallel_mixers: bool = False
    mamba_version: Literal[1, 2] = 2
    mamba_norm: bool = True
    inner_norms: bool = False


_LLAMA: Final = Family()
_QWEN3: Final = Family(qk_norm="head")
_QWEN3_HYBRID: Final = Family(qk_norm="head", attention_gate=True, shared_gate=True)
_DEEPSEEK: Final = Family(router_bias=True)
_GEMMA: Final = Family(tied=True)
_OLMO: Final = Family(qk_norm="full")
_LAYER_NORM: Final = Family(gated_mlp=False, norm_bias=True)

FAMILIES: Final[dict[str, Family]] = {
    **dict.fromkeys(
        (
            "llama", "llama4_text", "mistral", "ministral", "ministral3", "mixtral", "granite",
            "granitemoe", "granitemoeshared", "granitemoehybrid", "bamba", "phi3", "minicpm",
            "internlm2", "internlm3", "smollm3", "deepseek_v2", "baichuan", "ernie4_5", "helium",
        ),
        _LLAMA,
    ),
    **dict.fromkeys(("qwen2", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text",
                     "mimo"), Family(qkv_bias=True, output_bias_follows=False)),
    "qwen2_moe": Family(qkv_bias=True, output_bias_follows=False, shared_gate=True),
    **dict.fromkeys(("qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl_moe_text",
                     "hunyuan_v1_dense"), _QWEN3),
    "qwen3_next": Family(qk_norm="head", attention_gate=True, shared_gate=True, mtp=1),
    **dict.fromkeys(("qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"),
                    _QWEN3_HYBRID),
    **dict.fromkeys(("deepseek_v3", "kimi_k2", "deepseek_v32"), _DEEPSEEK),
    "dots1": Family(qk_norm="head", router_bias=True),
    "glm4": Family(norms=4, output_bias_follows=False),
    **dict.fromkeys(("glm4_moe", "glm4v_moe_text", "glm4_moe_lite"),
                    Family(router_bias=True, output_bias_follows=False)),
    "minimax_m2": Family(qk_norm="full", router_bias=True),
    "ernie4_5_moe": Family(router_bias=True),
    "gpt_oss": Family(expert_bias=True, router_bias=True, sinks=True, window_period=2),
    "gemma": _GEMMA,
    "gemma2": Family(tied=True, norms=4, window_period=2),
    **dict.fromkeys(("gemma3", "gemma3_text"),
                    Family(tied=True, norms=4, qk_norm="head", window_period=6)),
    "cohere": Family(tied=True, norms=1),
    "cohere2": Family(tied=True, norms=1, window_period=4),
    "olmo": Family(norms=0),
    "olmo2": _OLMO,
    "olmo3": Family(qk_norm="full", window_period=4),
    "olmoe": _OLMO,
    "exaone4": Family(qk_norm="head", window_period=4),
    "seed_oss": Family(output_bias_follows=False),
    "phi": Family(gated_mlp=False, norms=1, norm_bias=True, all_biases=True, head_bias=True),
    "gpt_neox": Family(gated_mlp=False, norm_bias=True, all_biases=True),
    "stablelm": Family(norm_bias=True),
    "arcee": Family(gated_mlp=False),
    "apertus": Family(gated_mlp=False, qk_norm="head"),
    "phimoe": Family(norm_bias=True),
    "starcoder2": Family(gated_mlp=False, norm_bias=True, tied=True),
    "nemotron": _LAYER_NORM,
    "nemotron_h": Family(gated_mlp=False, norms=1, router_bias=True),
    "falcon_h1": Family(parallel_mixers=True, mamba_norm=False),
    "jamba": Family(mamba_version=1, inner_norms=True),
    "mamba": Family(norms=1, tied=True, mamba_version=1),
    "falcon_mamba": Family(norms=1, tied=True, mamba_version=1),
    "mamba2": Family(norms=1, tied=False),
    **dict.fromkeys(("lfm2", "lfm2_moe"), Family(qk_norm="head", tied=True)),
}  # fmt: skip

# What transformers' own class supplies where a nested text_config leaves a key out.
CLASS_DEFAULTS: Final[dict[str, dict[str, int]]] = {
    "gemma3_text": {
        "vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
        "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 256, "sliding_window": 4096,
    },
    "llama": {
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
        "num_hidden_layers": 32, "num_attention_heads": 32,
    },
    "mistral": {
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    },
}  # fmt: skip

# Keys that betray a layer which the model does not know; a wrong number would come out silently.
FOREIGN_KEYS: Final = {
    "linear_attn_config": "Kimi delta attention",
    "num_mem_blocks": "shared attention blocks",
    "hidden_size_per_layer_input": "per-layer embeddings",
    "index_topk": "sparse attention with an indexer",
    "attention_hidden_size": "RWKV",
    "lru_width": "RG-LRU",
}
