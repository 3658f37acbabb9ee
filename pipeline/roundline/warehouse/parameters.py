"""What SQL must be told from outside: rules, and what a bandwidth model demands of a round.

Each parameter becomes a small table before any relation is created. SQL knows the tables;
it knows nothing of model files or formulas.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from roundline.errors import UsageError
from roundline.warehouse.connection import identifier
from roundline.warehouse.relations import sql_root

CATEGORIES: Final = (
    "gemm", "attention", "gdn", "collective", "norm", "rope", "activation", "elementwise",
    "quantize", "kvcache", "embedding", "sampling", "spec", "moe_routing", "copy", "index",
    "reduction", "weight_prep", "memcpy", "memset", "unclassified",
)  # fmt: skip


@dataclass(frozen=True)
class MatrixDemand:
    """One weight matrix as one forward pass of one module must read it on one GPU."""

    module: str  # `target` or `draft`
    matrix: str
    reads_per_pass: int
    bytes: int  # of one read, on one GPU


@dataclass(frozen=True)
class TermDemand:
    """One ledger term as the bandwidth model predicts it for one round on one GPU."""

    term: str
    bytes: int
    floor_ns: int
    expected_ns: int


@dataclass(frozen=True)
class Parameters:
    """Everything that SQL is told besides the store itself."""

    matrices: tuple[MatrixDemand, ...] = ()
    terms: tuple[TermDemand, ...] = ()
    peak_bytes_per_s: int | None = None
    user_rules: Path | None = None


@dataclass(frozen=True)
class ParameterTable:
    """A parameter as rows: name, column definitions and content."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create and fill the table."""
        connection.execute(f"CREATE TABLE {identifier(self.name)} ({', '.join(self.columns)})")
        if self.rows:
            marks = ", ".join("?" for _ in self.columns)
            connection.executemany(
                f"INSERT INTO {identifier(self.name)} VALUES ({marks})",
                [list(r) for r in self.rows],
            )


def parameter_tables(parameters: Parameters) -> tuple[ParameterTable, ...]:
    """The parameters as tables, rules of the user before the built-in ones."""
    rules = [*_user_rules(parameters.user_rules), *_built_in("kernel_rules")]
    return (
        _rule_table("kernel_rules", rules, ("rule", "category", "subcategory", "pattern")),
        _rule_table("range_rules", _built_in("range_rules"), ("rule", "phase", "pattern")),
        ParameterTable(
            "model_matrices",
            ("module VARCHAR", "matrix VARCHAR", "reads_per_pass INTEGER", "bytes BIGINT"),
            _tuples(parameters.matrices),
        ),
        ParameterTable(
            "model_terms",
            ("term VARCHAR", "bytes BIGINT", "floor_ns BIGINT", "expected_ns BIGINT"),
            _tuples(parameters.terms),
        ),
        ParameterTable(
            "model_gpu", ("peak_bytes_per_s BIGINT",), ((parameters.peak_bytes_per_s,),)
        ),
    )


def _rule_table(
    name: str, rules: Iterable[dict[str, str]], columns: Sequence[str]
) -> ParameterTable:
    rows = tuple((i, *(rule[c] for c in columns)) for i, rule in enumerate(rules))
    return ParameterTable(name, ("rule_id INTEGER", *(f"{c} VARCHAR" for c in columns)), rows)


def _tuples(items: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    return tuple(astuple(item) for item in items)


def _built_in(name: str) -> list[dict[str, str]]:
    with (sql_root() / "rules" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _user_rules(path: Path | None) -> list[dict[str, str]]:
    if path is None:
        return []
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for line, row in enumerate(rows, start=2):
        _check_rule(path, line, row)
    return rows


def _check_rule(path: Path, line: int, row: dict[str, str]) -> None:
    missing = [c for c in ("rule", "category", "subcategory", "pattern") if row.get(c) is None]
    if missing:
        raise UsageError(f"{path}:{line}: a kernel rule lacks {', '.join(missing)}")
    if row["category"] not in CATEGORIES:
        raise UsageError(
            f"{path}:{line}: no category {row['category']!r}, known are {', '.join(CATEGORIES)}"
        )
    try:
        re.compile(row["pattern"])
    except re.error as error:
        raise UsageError(
            f"{path}:{line}: pattern {row['pattern']!r} is no regular expression: {error}"
        ) from error
