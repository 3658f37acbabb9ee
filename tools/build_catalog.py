"""Write `roundline/catalog` from tables of hardware and model shapes.

    python tools/build_catalog.py TABLES

TABLES is a folder with `hardware.csv` and `models.csv`. The result is committed: a catalogue that
people read and correct, with the source of every number in its file. Models are written in the
vocabulary of Hugging Face's `config.json`, so that one reader understands both.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable
from pathlib import Path

CATALOG = Path(__file__).parents[1] / "pipeline" / "roundline" / "catalog"
Row = dict[str, str]

# A profiler sees each half of this board as a device of its own.
PER_DIE = {"mi250x": {"mem_gb": "64", "bw_gbs": "1638", "bf16_dense_tflops": "191.5", "l2_mb": "8"}}

MODEL_TYPES = {
    "qwen3.6-": "qwen3_5", "qwen3.5-": "qwen3_5", "qwen3-next": "qwen3_next", "qwen3-": "qwen3",
    "llama": "llama", "deepseek": "deepseek_v3", "glm-4.5": "glm4_moe", "gpt-oss": "gpt_oss",
}  # fmt: skip

# The vision tower of the 27B: read from its config.json; 460,730,096 parameters.
VISION_27B = {
    "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16,
    "temporal_patch_size": 2, "spatial_merge_size": 2, "in_channels": 3,
    "num_position_embeddings": 2304, "out_hidden_size": 5120,
}  # fmt: skip

# How the publisher stores the checkpoint, where that is not bf16.
NATIVE_FORMATS = {
    "deepseek-v3": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
    "gpt-oss-120b": {"quant_method": "mxfp4"},
    "gpt-oss-20b": {"quant_method": "mxfp4"},
}


def main(tables: Path) -> None:
    """Write gpus.toml and one file per model."""
    gpus = "\n".join(gpu_table(row) for row in read(tables / "hardware.csv"))
    header = (
        "# GPUs: datasheet numbers of one device as a profiler sees it. GB is 1e9 bytes.\n"
        "# `source` is where the numbers of a table come from; `measured_*` names its own kind.\n\n"
    )
    (CATALOG / "gpus.toml").write_text(header + gpus, encoding="utf-8")
    (CATALOG / "models").mkdir(exist_ok=True)
    for row in read(tables / "models.csv"):
        (CATALOG / "models" / f"{row['key']}.toml").write_text(model_file(row), encoding="utf-8")


def read(path: Path) -> list[Row]:
    """One dictionary per row of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def gpu_table(row: Row) -> str:
    """One `[key]` table."""
    row = row | PER_DIE.get(row["key"], {})
    l2_mb = re.match(r"[\d.]+", row["l2_mb"])
    fields = {
        "device_names": row["device_names"].split("|"),
        "arch": f"{row['vendor']} {row['arch']}",
        "memory_gb": Number(row["mem_gb"]),
        "memory_type": row["mem_type"],
        "hbm_gbps": Number(row["bw_gbs"]),
        "l2_mb": Number(l2_mb[0]) if l2_mb else None,
        "nvlink_gbps": Number(row["nvlink_gbs_total"] or "0"),
        "link_note": row["link_note"],
        "pcie": row["pcie"],
        "bf16_tflops": Number(row["bf16_dense_tflops"]),
        "fp8_tflops": Number(row["fp8_dense_tflops"]),
        "tdp_w": Number(row["tdp_w"]),
        "measured_gbps": Number(row["measured_bw_gbs"]),
        "measured_fraction": Number(row["measured_frac"]),
        "measured_kind": row["measured_kind"] or None,
        "source": row["spec_source"],
        "confidence": row["confidence"],
        "note": row["note"],
    }
    return f"[{row['key']}]\n" + "".join(toml_lines(fields.items()))


def model_file(row: Row) -> str:
    """One model: provenance, then the shapes under Hugging Face's names."""
    head = {
        "key": row["key"],
        "hf_id": row["hf_id"],
        "published_parameters_b": Number(row["published_params_b"]),
        "published_note": row["published_note"],
        "source": row["source"],
        "status": row["status"],
    }
    text = "".join(toml_lines(head.items())) + "\n[config]  # every number: see `source`\n"
    text += "".join(toml_lines(config(row).items()))
    if row["key"] in NATIVE_FORMATS:
        text += "\n[config.quantization_config]  # the publisher's config.json\n"
        text += "".join(toml_lines(NATIVE_FORMATS[row["key"]].items()))
    if row["key"] in ("qwen3.6-27b", "qwen3.5-27b"):
        text += "\n[config.vision_config]  # config.json of the 27B, total checked\n"
        text += "".join(toml_lines(VISION_27B.items()))
    return text


def config(row: Row) -> dict[str, object]:
    """The shapes of one model under the names that its own config.json uses."""
    is_moe = int(row["experts"]) > 0
    model_type = next(t for prefix, t in MODEL_TYPES.items() if row["key"].startswith(prefix))
    if is_moe and model_type in ("qwen3", "qwen3_5"):
        model_type += "_moe"
    return {
        "model_type": model_type,
        "hidden_size": Number(row["hidden"]),
        "intermediate_size": Number(row["inter"] if row["inter"] != "0" else row["moe_inter"]),
        "num_hidden_layers": Number(row["layers"]),
        "num_attention_heads": Number(row["n_heads"]),
        "num_key_value_heads": Number(row["n_kv_heads"]),
        "head_dim": Number(row["head_dim"]) if row["attn"] == "gqa" else None,
        "vocab_size": Number(row["vocab"]),
        "tie_word_embeddings": row["tie"] == "1",
        "torch_dtype": "bfloat16",
        **gated_delta_net(row),
        **(moe(row, model_type) if is_moe else {}),
        **attention_details(row, model_type),
    }


def gated_delta_net(row: Row) -> dict[str, object]:
    """Keys of the recurrent layers, empty for a plain transformer."""
    if not row["lin_v_heads"]:
        return {}
    return {
        "full_attention_interval": int(row["layers"]) // int(row["n_full"]),
        "linear_num_key_heads": Number(row["lin_k_heads"]),
        "linear_num_value_heads": Number(row["lin_v_heads"]),
        "linear_key_head_dim": Number(row["lin_k_dim"]),
        "linear_value_head_dim": Number(row["lin_v_dim"]),
        "linear_conv_kernel_dim": Number(row["conv_k"]),
        "mamba_ssm_dtype": row["ssm_dtype"],
        "attn_output_gate": row["attn_gate"] == "1",
        "mtp_num_hidden_layers": Number(row["mtp"]),
    }


def moe(row: Row, model_type: str) -> dict[str, object]:
    """Keys of the expert layers."""
    deepseek_like = model_type in ("deepseek_v3", "glm4_moe")
    count = {"gpt_oss": "num_local_experts"}.get(model_type, "num_experts")
    fields: dict[str, object] = {
        "n_routed_experts" if deepseek_like else count: Number(row["experts"]),
        "num_experts_per_tok": Number(row["topk"]),
        "moe_intermediate_size": Number(row["moe_inter"]) if model_type != "gpt_oss" else None,
    }
    if deepseek_like:
        fields["n_shared_experts"] = int(row["shared_inter"]) // int(row["moe_inter"])
        fields["first_k_dense_replace"] = Number(row["dense_first"])
        fields["num_nextn_predict_layers"] = Number(row["mtp"])
    elif int(row["shared_inter"] or 0):
        fields["shared_expert_intermediate_size"] = Number(row["shared_inter"])
    return fields


def attention_details(row: Row, model_type: str) -> dict[str, object]:
    """Latent attention, windows and the flags that differ inside a family."""
    if row["attn"] == "mla":
        names = {
            "q_lora_rank": "q_lora", "kv_lora_rank": "kv_lora", "qk_nope_head_dim": "qk_nope",
            "qk_rope_head_dim": "qk_rope", "v_head_dim": "v_dim",
        }  # fmt: skip
        return {name: Number(row[column]) for name, column in names.items()}
    fields: dict[str, object] = {}
    if row["sliding_window"]:
        fields["sliding_window"] = Number(row["sliding_window"])
    if row["qkv_bias"] == "1":
        fields["attention_bias"] = True
    if model_type == "glm4_moe":
        fields["use_qk_norm"] = row["qk_norm"] == "1"
    return fields


class Number(str):
    """A number in the table's own digits, so that none is lost on the way."""


def toml_lines(items: Iterable[tuple[str, object]]) -> Iterable[str]:
    """`name = value` for every field that is known."""
    for name, value in items:
        if value is not None and not (isinstance(value, Number) and value == ""):
            yield f"{name} = {toml(value)}\n"


def toml(value: object) -> str:
    """A TOML literal."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
