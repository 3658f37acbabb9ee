"""Classifies kernel names with the warehouse's own relations, and reads the labelled names."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from roundline.store.schemas import TABLES
from roundline.warehouse.build import create
from roundline.warehouse.connection import connect
from roundline.warehouse.parameters import Parameters, parameter_tables
from roundline.warehouse.relations import closure, load_relations, sql_root

EXTRA_NAMES: Final = Path(__file__).with_name("extra_names.csv")


@dataclass(frozen=True)
class Labelled:
    """A kernel name and the class that a person gave it."""

    name: str
    category: str


@dataclass(frozen=True)
class Classified:
    """A kernel name and the class that the rules give it."""

    name: str
    normal_name: str
    category: str
    subcategory: str | None
    rule: str | None


@dataclass(frozen=True)
class Rule:
    """One line of the rule file."""

    rule: str
    category: str
    subcategory: str
    pattern: str
    why: str


def rules() -> list[Rule]:
    """The built-in rules in order of precedence."""
    path = sql_root() / "rules" / "kernel_rules.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return [Rule(**row) for row in csv.DictReader(file)]


def corpus(shared: Path) -> list[Labelled]:
    """Labelled names of the reference corpus; undecidable ones must stay unclassified."""
    return _labelled(shared / "kernels" / "kernels.csv")


def extra_names() -> list[Labelled]:
    """Names of kernel families that the corpus lacks, labelled by what their code does."""
    return _labelled(EXTRA_NAMES)


def _labelled(path: Path) -> list[Labelled]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    undecidable = {"other": "unclassified", "ambiguous": "unclassified"}
    return [
        Labelled(row["name"], undecidable.get(row["category"], row["category"])) for row in rows
    ]


def classify(names: Sequence[str]) -> list[Classified]:
    """The class of every name, in the order given."""
    return list(_classified(tuple(names)))


@cache
def _classified(names: tuple[str, ...]) -> tuple[Classified, ...]:
    connection = _warehouse(names)
    rows = connection.execute(
        """
        SELECT name, normal_name, category, subcategory, rule
        FROM int_kernel_classes
        JOIN stg_kernel_names USING (name_id, name)
        ORDER BY name_id
        """
    ).fetchall()
    connection.close()
    return tuple(Classified(*row) for row in rows)


def _warehouse(names: Sequence[str]) -> duckdb.DuckDBPyConnection:
    connection = connect()
    raw = {
        "names": [{"name_id": i, "name": name} for i, name in enumerate(names)],
        "kernels": [
            {"kernel_id": i, "rank": 0, "process_id": 0, "start_ns": i, "end_ns": i, "name_id": i}
            for i, _ in enumerate(names)
        ],
    }
    for table, rows in raw.items():
        connection.register("incoming", pa.Table.from_pylist(rows, schema=TABLES[table]))
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")
        connection.unregister("incoming")
    macro = sql_root() / "macros" / "normalise_kernel_name.sql"
    connection.execute(macro.read_text(encoding="utf-8"))
    for parameter in parameter_tables(Parameters()):
        parameter.create(connection)
    for relation in closure(["int_kernel_classes"], load_relations()):
        create(connection, relation)
    return connection
