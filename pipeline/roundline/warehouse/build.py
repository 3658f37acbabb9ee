"""Creating relations and materialising marts, each only when what it rests on has changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb

from roundline.errors import RoundlineError
from roundline.store.schemas import TABLES
from roundline.warehouse.connection import connect, identifier, quote
from roundline.warehouse.parameters import Parameters, ParameterTable, parameter_tables
from roundline.warehouse.relations import (
    Relation,
    SqlContractError,
    closure,
    load_relations,
    sql_root,
)

if TYPE_CHECKING:
    from roundline.store import Store

_BUILD_FILE: Final = "build.json"


class CheckFailedInternallyError(RoundlineError):
    """An arithmetic identity does not hold: a defect of Roundline, never shown as a result."""


@contextmanager
def open_warehouse(
    store: Store, parameters: Parameters | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection in which every raw table and every mart of `store` is a relation.

    Marts that are missing or rest on something that has changed are computed first, checked
    and written below the store; a failure leaves the store's old marts as they were.

    Raises:
        CheckFailedInternallyError: a check in `sql/checks/` returned rows.
    """
    tables = parameter_tables(parameters or Parameters())
    relations = load_relations()
    marts = [relation for relation in relations if relation.layer == "marts"]
    prints = _fingerprints(store, relations, tables)
    current = _read_build(store)
    stale = [mart for mart in marts if not _is_current(store, mart, prints, current)]
    # a store whose marts are current is only read, and may lie where nobody can write
    with tempfile.TemporaryDirectory(prefix=".spill-", dir=store.path if stale else None) as spill:
        connection = connect(Path(spill))
        try:
            _create_raw(connection, store)
            _create_parameters(connection, tables)
            current_marts = [mart for mart in marts if mart not in stale]
            _create_marts_from_parquet(connection, store.marts_dir, current_marts)
            if stale:
                wanted = {mart.name: prints[mart.name] for mart in marts}
                _rebuild(connection, store, stale, relations, wanted)
            yield connection
        finally:
            connection.close()


def _is_current(
    store: Store, mart: Relation, prints: Mapping[str, str], current: Mapping[str, str]
) -> bool:
    written = (store.marts_dir / f"{mart.name}.parquet").is_file()
    return written and current.get(mart.name) == prints[mart.name]


def _fingerprints(
    store: Store, relations: Sequence[Relation], tables: Sequence[ParameterTable]
) -> dict[str, str]:
    """Per relation: a hash over its text and everything below it, down to the sources."""
    base = (store.path / "manifest.json").read_bytes()
    macros = b"".join(path.read_bytes() for path in _macro_files())
    root = hashlib.sha256(base + macros).hexdigest()
    prints = {table.name: _digest(root, repr(table)) for table in tables}
    for relation in relations:
        below = [prints.get(need, root) for need in relation.needs]
        prints[relation.name] = _digest(relation.select, *below)
    return prints


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


def _macro_files() -> list[Path]:
    return sorted((sql_root() / "macros").glob("*.sql"))


def _create_raw(connection: duckdb.DuckDBPyConnection, store: Store) -> None:
    for name in TABLES:
        source = f"read_parquet({quote(str(store.table_path(name)))})"
        connection.execute(f"CREATE VIEW {identifier(name)} AS SELECT * FROM {source}")
    for path in _macro_files():
        connection.execute(path.read_text(encoding="utf-8"))


def _create_parameters(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[ParameterTable]
) -> None:
    for table in tables:
        table.create(connection)


def _create_marts_from_parquet(
    connection: duckdb.DuckDBPyConnection, folder: Path, marts: Sequence[Relation]
) -> None:
    for mart in marts:
        name, path = identifier(mart.name), quote(str(folder / f"{mart.name}.parquet"))
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet({path})")
        _comment(connection, mart, "VIEW")


def _rebuild(
    connection: duckdb.DuckDBPyConnection,
    store: Store,
    stale: Sequence[Relation],
    relations: Sequence[Relation],
    prints: Mapping[str, str],
) -> None:
    """Compute the stale marts beside the old ones, hold the checks, then swap the whole folder."""
    new = Path(tempfile.mkdtemp(prefix=".marts-", dir=store.path))
    try:
        _compute(connection, stale, relations, new)
        written = {mart.name for mart in stale}
        if store.marts_dir.is_dir():
            for kept in store.marts_dir.glob("*.parquet"):
                if kept.stem in prints and kept.stem not in written:
                    os.link(kept, new / kept.name)
        (new / _BUILD_FILE).write_text(json.dumps(dict(prints), indent=1, sort_keys=True))
        _swap(new, store.marts_dir)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    _create_marts_from_parquet(connection, store.marts_dir, stale)


def _compute(
    connection: duckdb.DuckDBPyConnection,
    stale: Sequence[Relation],
    relations: Sequence[Relation],
    folder: Path,
) -> None:
    """Create the stale marts with what they need; what nobody needs any more is dropped."""
    views = connection.execute("SELECT view_name FROM duckdb_views()").fetchall()
    existing = {name for (name,) in views}
    missing = [r for r in relations if r.name not in existing]
    created = closure([mart.name for mart in stale], missing)
    last_uses = _last_uses(created)
    for index, relation in enumerate(created):
        create(connection, relation)
        if relation.layer == "marts":
            _write_mart(connection, relation, folder)
        for name in last_uses.get(index, ()):
            connection.execute(f"DROP TABLE {identifier(name)}")
    present = existing | {relation.name for relation in created}
    for check in (r for r in relations if r.layer == "checks"):
        if present.issuperset(check.needs):
            _hold(connection, check)


def _last_uses(created: Sequence[Relation]) -> dict[int, list[str]]:
    """Per position: the kept intermediate relations that nothing behind it reads, through views."""
    reader: dict[str, int] = {}
    for index, relation in reversed(list(enumerate(created))):
        read_until = index if relation.kept else reader.get(relation.name, index)
        for need in relation.needs:
            reader[need] = max(reader.get(need, -1), read_until)
    uses: dict[int, list[str]] = {}
    for relation in created:
        if relation.kept and relation.layer == "intermediate" and relation.name in reader:
            uses.setdefault(reader[relation.name], []).append(relation.name)
    return uses


def _write_mart(connection: duckdb.DuckDBPyConnection, mart: Relation, folder: Path) -> None:
    """Put a mart's rows into Parquet, in the order of its key, and go on with the file."""
    name, path = identifier(mart.name), quote(str(folder / f"{mart.name}.parquet"))
    order = ", ".join(map(identifier, mart.key)) or "ALL"
    connection.execute(
        f"COPY (SELECT * FROM {name} ORDER BY {order}) TO {path} (FORMAT parquet, COMPRESSION zstd)"
    )
    connection.execute(f"DROP TABLE {name}")
    _create_marts_from_parquet(connection, folder, [mart])


def create(connection: duckdb.DuckDBPyConnection, relation: Relation) -> None:
    """Create one relation and hold it against its header: names, types and grain.

    Raises:
        SqlContractError: the file and its header disagree, or its SELECT is wrong.
    """
    kind = "TABLE" if relation.kept else "VIEW"
    name = identifier(relation.name)
    try:
        connection.execute(f"CREATE {kind} {name} AS {relation.select}")
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error as error:
        raise SqlContractError(f"sql/{relation.layer}/{relation.name}.sql: {error}") from error
    found = [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {name}").fetchall()]
    declared = [(column.name, column.type) for column in relation.columns]
    if found != declared:
        wrong = [pair for pair in zip(found, declared, strict=False) if pair[0] != pair[1]]
        raise SqlContractError(
            f"sql/{relation.layer}/{relation.name}.sql: columns differ from the header:"
            f" {wrong or (found, declared)}"
        )
    if relation.layer == "marts" and relation.key:
        _hold_grain(connection, relation)
    _comment(connection, relation, kind)


def _hold_grain(connection: duckdb.DuckDBPyConnection, relation: Relation) -> None:
    keys = ", ".join(map(identifier, relation.key))
    row = connection.execute(
        f"SELECT {keys} FROM {identifier(relation.name)} GROUP BY ALL HAVING count(*) > 1 LIMIT 1"
    ).fetchall()
    if row:
        raise SqlContractError(
            f"{relation.name}: {row[0]} occurs twice, against '{relation.grain}'"
        )


def _hold(connection: duckdb.DuckDBPyConnection, check: Relation) -> None:
    rows = connection.execute(f"SELECT * FROM ({check.select}) LIMIT 3").fetchall()
    if rows:
        raise CheckFailedInternallyError(
            f"check {check.name} failed ({check.summary}): {rows}; please report this capture"
        )


def _comment(connection: duckdb.DuckDBPyConnection, relation: Relation, kind: str) -> None:
    name = identifier(relation.name)
    text = quote(f"{relation.summary} {relation.grain}.")
    connection.execute(f"COMMENT ON {kind} {name} IS {text}")
    for column in relation.columns:
        connection.execute(
            f"COMMENT ON COLUMN {name}.{identifier(column.name)} IS {quote(column.meaning)}"
        )


def _read_build(store: Store) -> dict[str, str]:
    path = store.marts_dir / _BUILD_FILE
    if not path.is_file():
        return {}
    loaded: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def _swap(new: Path, target: Path) -> None:
    old = new.with_name(new.name + ".old")
    if target.exists():
        target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)
