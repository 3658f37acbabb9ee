"""Which rule gives a kernel name its class, and why."""

from __future__ import annotations

from dataclasses import dataclass

from roundline.warehouse.connection import connect
from roundline.warehouse.parameters import Parameters, parameter_tables
from roundline.warehouse.relations import sql_root


@dataclass(frozen=True)
class RuleMatch:
    """One rule that matches a name."""

    rule: str
    category: str
    subcategory: str
    pattern: str


@dataclass(frozen=True)
class Explanation:
    """A kernel name, its canonical spelling and all rules that match, the deciding one first."""

    name: str
    normal_name: str
    category: str
    matches: tuple[RuleMatch, ...]


def explain_name(name: str, parameters: Parameters) -> Explanation:
    """Classify one name as the warehouse would."""
    connection = connect()
    try:
        macro = sql_root() / "macros" / "normalise_kernel_name.sql"
        connection.execute(macro.read_text(encoding="utf-8"))
        for table in parameter_tables(parameters):
            table.create(connection)
        normal_name = connection.execute("SELECT normalise_kernel_name(?)", [name]).fetchall()[0][0]
        rows = connection.execute(
            """
            SELECT rule, category, subcategory, pattern FROM kernel_rules
            WHERE regexp_matches(?, pattern) ORDER BY rule_id
            """,
            [normal_name],
        ).fetchall()
    finally:
        connection.close()
    matches = tuple(RuleMatch(*row) for row in rows)
    category = matches[0].category if matches else "unclassified"
    return Explanation(name, normal_name, category, matches)
