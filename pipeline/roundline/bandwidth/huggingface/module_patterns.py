"""Module names in exclude lists: classes, regular expressions, wildcards, parts of a path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from roundline.bandwidth.quantization import Tensor

_ROOTS: Final = frozenset({"model", "language_model", "text_model", "transformer", "backbone"})


def any_names(patterns: Iterable[str], tensor: Tensor) -> bool:
    """True where one of `patterns` names the tensor's module, or the fused matrix around it."""
    paths = (tensor.path, tensor.fused_path)
    return any(_names(pattern, path) for pattern in patterns for path in paths)


def _names(pattern: str, path: str) -> bool:
    """True where `pattern` is a class, a regex, a wildcard or a run of the path's components."""
    if pattern == "Linear":
        return True
    if pattern.startswith("re:"):
        return re.search(pattern[3:], path) is not None
    wanted, parts = _components(pattern), _components(path)
    starts = range(len(parts) - len(wanted) + 1)
    is_run = any(all(map(_fits, wanted, parts[start:][: len(wanted)])) for start in starts)
    return bool(wanted) and (is_run or _fits(".".join(wanted), ".".join(parts)))


def _components(path: str) -> tuple[str, ...]:
    parts = [part for part in path.split(".") if part]
    while len(parts) > 1 and parts[0] in _ROOTS:
        parts = parts[1:]
    return tuple(part for part in parts if part != "weight")


def _fits(wanted: str, part: str) -> bool:
    pattern = re.escape(wanted).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(pattern, part) is not None
