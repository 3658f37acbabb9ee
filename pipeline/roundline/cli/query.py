"""`roundline query`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from roundline.cli._capture import open_capture
from roundline.cli._output import emit
from roundline.cli.options import force_option, format_option, output_option
from roundline.errors import UsageError

if TYPE_CHECKING:
    import duckdb


@click.command()
@click.argument("source", metavar="STORE|SOURCE", type=click.Path(path_type=Path))
@click.argument("sql", required=False)
@click.option("--list", "list_", is_flag=True, help="Show the tables and what they mean.")
@click.option("--describe", metavar="TABLE", help="Show the columns of a table with their meaning.")
@click.option(
    "--store", "store_path", type=click.Path(path_type=Path), help="Where to put the store."
)
@format_option()
@output_option
@force_option
def command(
    source: Path,
    sql: str | None,
    list_: bool,
    describe: str | None,
    store_path: Path | None,
    format_: str,
    output: Path | None,
    force: bool,
) -> None:
    """Ask a store with SQL: one statement, or lines from stdin as in a shell.

    Read-only: a statement can neither write nor read outside the store.
    """
    from roundline.report.tabular import render
    from roundline.warehouse.sandbox import describe_table, describe_tables, open_sandbox, run_query

    if list_:
        rows = [(table.name, table.meaning) for table in describe_tables()]
        emit(render(("table", "meaning"), rows, format_), output, force=force)
        return
    if describe is not None:
        columns = describe_table(describe).columns
        cells = [(column.name, column.type, column.meaning) for column in columns]
        emit(render(("column", "type", "meaning"), cells, format_), output, force=force)
        return
    with open_sandbox(open_capture((source,), store_path)) as connection:
        if sql is None:
            _shell(connection, format_)
            return
        result = run_query(connection, sql)
        emit(render(result.columns, result.rows, format_), output, force=force)


def _shell(connection: duckdb.DuckDBPyConnection, format_: str) -> None:
    """Read statements that end with a semicolon; errors do not end the shell."""
    from roundline.report.tabular import render
    from roundline.warehouse.sandbox import run_query

    buffer = ""
    for line in sys.stdin:
        buffer += line
        if not buffer.rstrip().endswith(";"):
            continue
        try:
            result = run_query(connection, buffer)
            click.echo(render(result.columns, result.rows, format_))
        except UsageError as error:
            click.echo(f"roundline: {error}", err=True)
        buffer = ""
    if buffer.strip():
        result = run_query(connection, buffer)
        click.echo(render(result.columns, result.rows, format_))
