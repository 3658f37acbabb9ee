"""Every file below sql/ keeps the contract of its header, and its layer keeps to its place."""

from __future__ import annotations

import re

import pytest
import sqlglot
from sqlglot import exp

from roundline.store.schemas import TABLES
from roundline.warehouse.parameters import Parameters, parameter_tables
from roundline.warehouse.relations import Relation, load_relations, sql_root

RELATIONS = {relation.name: relation for relation in load_relations()}
PARAMETERS = {table.name for table in parameter_tables(Parameters())}
each_relation = pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)


def references(relation: Relation) -> set[str]:
    """Tables that the SELECT really reads, common table expressions left out."""
    tree = sqlglot.parse_one(relation.select, dialect="duckdb")
    local = {cte.alias for cte in tree.find_all(exp.CTE)}
    tables = {table.name for table in tree.find_all(exp.Table) if table.name}
    macros = set(re.findall(r"flatten_ranges\('(\w+)'\)", relation.select))
    return (tables | macros) - local - {"flatten_ranges"}


@each_relation
def test_needs_are_the_real_references(relation: Relation) -> None:
    """`Needs:` names what the SELECT reads, no more and no less."""
    assert references(relation) == set(relation.needs)


@each_relation
def test_needs_exist(relation: Relation) -> None:
    """A relation only needs relations, raw tables or parameters that exist."""
    assert set(relation.needs) <= set(RELATIONS) | set(TABLES) | PARAMETERS


@each_relation
def test_layers_only_look_down(relation: Relation) -> None:
    """Only staging reads raw tables, and marts never read staging."""
    layers = {need: RELATIONS[need].layer for need in relation.needs if need in RELATIONS}
    raw = set(relation.needs) & set(TABLES)
    if relation.layer == "staging":
        assert not set(layers.values()) - {"staging"}
    else:
        assert not raw
    if relation.layer == "marts":
        assert "staging" not in layers.values()


@each_relation
def test_prefix_names_the_layer(relation: Relation) -> None:
    """The name of a relation says in which layer it lives."""
    prefixes = {"staging": "stg_", "intermediate": "int_", "checks": "check_", "marts": ""}
    prefix = prefixes[relation.layer]
    assert relation.name.startswith(prefix)
    if relation.layer == "marts":
        assert not relation.name.startswith(("stg_", "int_", "check_"))


@each_relation
def test_every_grain_is_stated(relation: Relation) -> None:
    """Every relation says one row per what."""
    assert relation.grain.startswith("one row")
    assert set(relation.key) <= {column.name for column in relation.columns}


@each_relation
def test_lines_fit(relation: Relation) -> None:
    """SQL keeps to 100 columns below its header."""
    assert max(map(len, relation.select.splitlines())) <= 100


def test_every_mart_is_checked() -> None:
    """Each arithmetic mart is the subject of at least one check."""
    checked = {need for r in RELATIONS.values() if r.layer == "checks" for need in r.needs}
    assert {"rounds", "round_attribution", "round_idle", "kernel_attribution"} <= checked


def test_sql_ships_without_python_packages() -> None:
    """sql/ is data: no __init__.py below it."""
    assert not list(sql_root().rglob("__init__.py"))
