"""The same kernel as Nsight Systems spells it: another demangler, another style.

Differences that matter to whoever classifies names: typed template integers, unnamed namespaces,
lambdas, `const` before the type, spaced pointers, joined closing angles, and parameters of
templates named `T1`, `T2` … where torch prints their types.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

_SCALARS: Final = frozenset(
    ("bool", "char", "int", "long", "float", "double", "unsigned int", "unsigned long", "void *")
)
_LITERAL: Final = re.compile(r"(?<=[<,( ])(\d+)(ul|u|l)?(?=[,>])")
_INTEGER_TYPES: Final = {None: "int", "u": "unsigned int", "ul": "unsigned long", "l": "long"}


@cache
def nsight_spelling(name: str) -> str:
    """The demangled name as Nsight prints it; names without C++ syntax stay as they are."""
    if "(" not in name and "<" not in name:
        return name
    function, parameters = _split_parameters(name)
    is_template = function.rstrip().endswith(">")
    shown = _parameters(parameters, is_template)
    return _restyle(function) + (f"({shown})" if shown is not None else "")


@cache
def nsight_short_name(name: str) -> str:
    """The last identifier of the function, without namespaces, templates and parameters."""
    function, _ = _split_parameters(name)
    bare = re.sub(r"\s+", " ", _without_templates(function)).strip()
    bare = re.sub(r"\(anonymous namespace\)|<unnamed>", "", bare)
    return bare.rpartition("::")[2].rpartition(" ")[2]


def _split_parameters(name: str) -> tuple[str, str | None]:
    """Cut off the outermost trailing parameter list."""
    if not name.endswith(")"):
        return name, None
    depth = 0
    for index in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[index], 0)
        if depth == 0:
            return name[:index], name[index + 1 : -1]
    return name, None


def _parameters(parameters: str | None, is_template: bool) -> str | None:
    if parameters is None:
        return None
    shown = [_restyle(part) for part in _top_level(parameters)]
    if not is_template:
        return ", ".join(shown)
    return ", ".join(
        part if part in _SCALARS else f"T{number}" for number, part in enumerate(shown, start=1)
    )


def _top_level(parameters: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for index, character in enumerate(parameters):
        depth += {"<": 1, "(": 1, "{": 1, ">": -1, ")": -1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(parameters[start:index].strip())
            start = index + 1
    return [*parts, parameters[start:].strip()] if parameters.strip() else []


def _restyle(text: str) -> str:
    text = text.replace("(anonymous namespace)", "<unnamed>")
    text = re.sub(r"\{lambda\(([^{}]*)\)#(\d+)\}", r"[lambda(\1) (instance \2)]", text)
    text = _LITERAL.sub(lambda m: f"({_INTEGER_TYPES[m[2]]}){m[1]}", text)
    text = re.sub(
        r"(?<=[<,( ])(true|false)(?=[,>])", lambda m: f"(bool){int(m[1] == 'true')}", text
    )
    text = re.sub(r"([\w:]+(?:<[^<>]*>)?) const(?=[*&,>]|$)", r"const \1", text)
    text = re.sub(r"(?<=[\w>])([*&]+)", r" \1", text)
    return re.sub(r"> >", ">>", re.sub(r"> >", ">>", text))


def _without_templates(text: str) -> str:
    out, depth = [], 0
    for character in text:
        depth += character == "<"
        if depth == 0:
            out.append(character)
        depth -= character == ">"
    return "".join(out)
