"""Models by name: the catalogue's TOML files, or a config.json on disk."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from roundline.bandwidth.architecture import Architecture, Draft
from roundline.bandwidth.huggingface import read_config, read_draft
from roundline.errors import UnknownNameError, UsageError

_ADVICE = "give a name of the catalogue, or the path of a Hugging Face config.json"


@cache
def model_entries() -> Mapping[str, Mapping[str, Any]]:
    """Catalogue key to file contents, sorted by key."""
    folder = files("roundline").joinpath("catalog/models")
    texts = (f.read_text(encoding="utf-8") for f in folder.iterdir() if f.name.endswith(".toml"))
    entries = [tomllib.loads(text) for text in texts]
    return {entry["key"]: entry for entry in sorted(entries, key=lambda entry: entry["key"])}


def read_model(name: str) -> Architecture:
    """See `architecture.load_model`."""
    if entry := _entry(name):
        source = f"{entry['source']} ({entry['status']})"
        return read_config(entry["config"], entry["key"], source)
    path = _config_path(name)
    return read_config(_json(path), path.parent.name or path.stem, path.name)


def load_draft(name: str, target: Architecture) -> Draft:
    """A separate draft: an EAGLE head or a whole smaller model, by name or config.json.

    Raises:
        UnknownNameError: neither a catalogue name nor an existing path.
        UsageError: as for `load_model`.
    """
    if entry := _entry(name):
        return read_draft(entry["config"], entry["key"], target)
    path = _config_path(name)
    return read_draft(_json(path), path.parent.name or path.stem, target)


def _entry(name: str) -> Mapping[str, Any] | None:
    wanted = name.lower()
    for key, entry in model_entries().items():
        hf_id = entry["hf_id"].lower()
        if wanted in (key, hf_id, hf_id.split("/")[-1]):
            return entry
    return None


def _config_path(name: str) -> Path:
    path = Path(name)
    path = path / "config.json" if path.is_dir() else path
    if path.is_file():
        return path
    raise UnknownNameError("model", name, model_entries(), _ADVICE)


def _json(path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not a JSON document ({error})") from None
    if not isinstance(document, dict):
        raise UsageError(f"{path}: a config.json holds an object, not a {type(document).__name__}")
    return _with_modelopt(document, path.parent)


def _with_modelopt(document: dict[str, Any], folder: Path) -> Mapping[str, Any]:
    """ModelOpt writes its formats into a file of their own beside config.json."""
    beside = folder / "hf_quant_config.json"
    if "quantization_config" in document or not beside.is_file():
        return document
    try:
        return document | {"quantization_config": json.loads(beside.read_text(encoding="utf-8"))}
    except ValueError as error:
        raise UsageError(f"{beside}: not a JSON document ({error})") from None
