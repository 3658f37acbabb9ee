"""Vision towers: resident, and never read while text is decoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def vision_parameters(vision: Mapping[str, Any]) -> int | None:
    """Parameters of a Qwen3-VL tower (also in Qwen3.5 and 3.6); None for any other."""
    keys = ("depth", "hidden_size", "intermediate_size", "out_hidden_size", "patch_size",
            "num_position_embeddings", "spatial_merge_size", "temporal_patch_size")  # fmt: skip
    if not all(isinstance(vision.get(key), int) for key in keys):
        return None
    depth, hidden, inner, out, patch, positions, merge, frames = (vision[key] for key in keys)
    pixels = int(vision.get("in_channels", 3)) * frames * patch**2
    attention = 4 * hidden * (hidden + 1)
    mlp = 2 * hidden * inner + hidden + inner
    merged = hidden * merge**2
    merger = merged * (merged + 1) + (merged + 1) * out
    deep = len(vision.get("deepstack_visual_indexes") or ()) * (merger + 2 * merged)
    blocks = depth * (attention + mlp + 4 * hidden)
    return int((pixels + 1 + positions) * hidden + blocks + merger + 2 * hidden + deep)
