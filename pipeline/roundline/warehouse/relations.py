"""The SQL files below `sql/`: one bare SELECT under a header that states its contract.

    -- What the rows are, in a sentence or two.
    -- Grain: one row per kernel (kernel_id)
    -- Needs: int_activities, int_rounds
    -- Kept: table
    -- Columns:
    --   kernel_id BIGINT  dense over the store

`Grain` names its key in parentheses (none for a single row); `Kept: table` computes the
relation once instead of each time it is read. Marts are always computed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

from roundline.errors import RoundlineError

LAYERS: Final = ("staging", "intermediate", "marts", "checks")
_COLUMN = re.compile(r"^  (\w+) +([A-Z]+(?:\([\d, ]+\))?(?:\[\])?)  +(\S.*)$")


class SqlContractError(RoundlineError):
    """A file below `sql/` breaks its own header: a defect of Roundline, not of the input."""


@dataclass(frozen=True)
class Column:
    """One declared column."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Relation:
    """One SQL file: its declared contract and its SELECT."""

    name: str
    layer: str
    summary: str
    grain: str
    key: tuple[str, ...]
    needs: tuple[str, ...]
    kept: bool
    columns: tuple[Column, ...]
    select: str


@cache
def sql_root() -> Path:
    """Where `sql/` lies: inside the installed package, or beside `pipeline/` in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "sql", package.parents[1] / "sql"):
        if (candidate / "rules" / "kernel_rules.csv").is_file():
            return candidate
    raise SqlContractError(f"no sql/ folder near {package}: the installation is incomplete")


@cache
def load_relations() -> tuple[Relation, ...]:
    """Every relation below `sql/`, in an order in which each can be created."""
    found = {
        relation.name: relation
        for layer in LAYERS
        for relation in map(read_relation, sorted((sql_root() / layer).glob("*.sql")))
    }
    graph = {name: [n for n in r.needs if n in found] for name, r in found.items()}
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise SqlContractError(f"sql/: relations need each other: {error.args[1]}") from error
    return tuple(found[name] for name in order)


def closure(names: Iterable[str], relations: Sequence[Relation]) -> tuple[Relation, ...]:
    """`names` and everything they need, in creation order."""
    by_name = {relation.name: relation for relation in relations}
    wanted: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in by_name and name not in wanted:
            wanted.add(name)
            pending.extend(by_name[name].needs)
    return tuple(relation for relation in relations if relation.name in wanted)


def read_relation(path: Path) -> Relation:
    """Parse one SQL file; SqlContractError names what its header lacks."""
    header, select = _split(path.read_text(encoding="utf-8"))
    fields, columns = _fields(header), _columns(header)
    for required in ("Grain", "Needs"):
        if required not in fields:
            raise SqlContractError(f"{path.name}: the header lacks `{required}:`")
    if not columns:
        raise SqlContractError(f"{path.name}: the header declares no columns")
    key = re.search(r"\(([^)]*)\)", fields["Grain"])
    return Relation(
        name=path.stem,
        layer=path.parent.name,
        summary=" ".join(_summary(header)),
        grain=fields["Grain"],
        key=_names(key.group(1)) if key else (),
        needs=_names(fields["Needs"]),
        kept=fields.get("Kept") == "table" or path.parent.name == "marts",
        columns=columns,
        select=select,
    )


def _split(text: str) -> tuple[list[str], str]:
    lines = text.splitlines()
    length = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    header = [line.removeprefix("--").removeprefix(" ") for line in lines[:length]]
    return header, "\n".join(lines[length:]).strip().rstrip(";")


def _fields(header: Sequence[str]) -> dict[str, str]:
    pairs = (re.match(r"^([A-Z][a-z]+): (.+)$", line) for line in header)
    return {pair.group(1): pair.group(2).strip() for pair in pairs if pair}


def _summary(header: Sequence[str]) -> list[str]:
    end = next((i for i, line in enumerate(header) if line.startswith("Grain:")), len(header))
    return [line.strip() for line in header[:end] if line.strip()]


def _columns(header: Sequence[str]) -> tuple[Column, ...]:
    start = header.index("Columns:") + 1 if "Columns:" in header else len(header)
    matches = map(_COLUMN.match, header[start:])
    return tuple(Column(*match.groups()) for match in matches if match)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in re.split(r"[,\s]+", text.strip()) if name and name != "-")
