"""What a process says to PostgreSQL, and how PostgreSQL would do it."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import Connection, Cursor
from psycopg.types import TypeInfo

from memplane.storage.postgres.connections import SESSION_SETTINGS
from memplane.storage.postgres.migrate import ROLE, SCHEMA, tables
from memplane.storage.postgres.text import Vector, adapt

_PLANNING = {
    name: value
    for name, value in SESSION_SETTINGS.items()
    if name.startswith(("enable_", "random_", "jit", "max_parallel_"))
}
"""The settings that decide how a statement is planned."""
_TIMES = {"at", "created", "updated", "time_from", "time_until"}
"""No two of them are alike, as a rule."""

Said = tuple[str, Any]
"""A statement and its parameters."""


@contextmanager
def watched() -> Iterator[list[Said]]:
    """Everything that is said within the block, in order. `executemany` counts once: it is one round trip."""
    said: list[Said] = []
    execute, many = Connection.execute, Cursor.executemany

    def one(self: Connection[Any], query: Any, params: Any = None, **options: Any) -> Any:
        said.append((_text(query), params))
        return execute(self, query, params, **options)

    def several(self: Cursor[Any], query: Any, params_seq: Any, **options: Any) -> None:
        rows = list(params_seq)
        said.append((_text(query), rows[0]))
        many(self, query, rows, **options)

    Connection.execute, Cursor.executemany = one, several  # type: ignore[method-assign]
    try:
        yield said
    finally:
        Connection.execute, Cursor.executemany = execute, many  # type: ignore[method-assign]


@contextmanager
def trips() -> Iterator[list[str]]:
    """How often somebody waited for the server within the block, and for what first."""
    made: list[str] = []
    execute, many = Connection.execute, Cursor.executemany
    last: list[object] = [None]

    def waited(connection: Connection[Any], query: Any) -> None:
        pipeline = connection._pipeline
        if pipeline is None or pipeline is not last[0]:
            made.append(_text(query))
        last[0] = pipeline

    def one(self: Connection[Any], query: Any, params: Any = None, **options: Any) -> Any:
        waited(self, query)
        return execute(self, query, params, **options)

    def several(self: Cursor[Any], query: Any, params_seq: Any, **options: Any) -> None:
        waited(self.connection, query)
        many(self, query, params_seq, **options)

    Connection.execute, Cursor.executemany = one, several  # type: ignore[method-assign]
    try:
        yield made
    finally:
        Connection.execute, Cursor.executemany = execute, many  # type: ignore[method-assign]


def _text(query: Any) -> str:
    return query.decode() if isinstance(query, bytes) else str(query)


def copied(connection: Connection[Any], *, spaces: int, times: int, alike: bool = True) -> None:
    """Every row of the one space so many times, and all of that again in so many other spaces of other tenants; where
    these are not `alike`, they have each row but once."""
    connection.execute(f"SET search_path = {SCHEMA}, public".encode())
    connection.execute("SET session_replication_role = replica")
    for table in tables(connection):
        columns, again = _columns(connection, table)
        grow = (
            f"INSERT INTO {table} (tenant, space, {columns}) SELECT tenant, space, {again} "
            f"FROM {table}, generate_series(2, {times}) AS k WHERE space <= 1000 ON CONFLICT DO NOTHING"
        )
        spread = (
            f"INSERT INTO {table} (tenant, space, {columns}) SELECT tenant + k % 10, space + k, {columns} "
            f"FROM {table}, generate_series(1001, 1000 + {spaces}) AS k"
        )
        if table in {"meta", "model"}:
            grow = "SELECT"
        for statement in (grow, spread) if alike else (spread, grow):
            connection.execute(statement.encode())
    connection.execute("ANALYZE")


def _columns(connection: Connection[Any], table: str) -> tuple[str, str]:
    """Those that are written, and what to write for the same row once more: every key has to be another."""
    found = connection.execute(
        "SELECT quote_ident(a.attname), a.atttypid::regtype::text, EXISTS (SELECT 1 FROM pg_index i "
        "WHERE i.indrelid = a.attrelid AND i.indisunique AND a.attnum = ANY(i.indkey)) FROM pg_attribute a "
        "WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' "
        "AND a.attname NOT IN ('tenant', 'space') ORDER BY a.attnum",
        (table,),
    ).fetchall()
    numbers = [name for name, kind, unique in found if kind == "bigint" and (unique or name in _TIMES)]
    texts = [name for name, kind, unique in found if unique and kind == "text" and name != "stem"]
    again = {name: f"{name} + k * 2560000" for name in numbers}
    if not any(unique for _, kind, unique in found if kind == "bigint") or table in {"ledger", "memory"}:
        again |= {name: f"{name} || '-' || k" for name in texts}
    names = [name for name, _, _ in found]
    return ", ".join(names), ", ".join(again.get(name, name) for name in names)


@contextmanager
def explaining(
    url: str, *, tenant: int, space: int, sorts: bool = True
) -> Iterator[Callable[[Said], dict[str, Any]]]:
    """Gives the plan of a statement, in the role of the spaces, in this one, without looking at its parameters."""
    with psycopg.connect(url, autocommit=True) as connection:
        kind = TypeInfo.fetch(connection, "halfvec")
        assert kind is not None
        adapt(connection, kind)
        connection.execute("; ".join(f"SET {name} = {value}" for name, value in _PLANNING.items()).encode())
        connection.execute(
            f"SET search_path = {SCHEMA}, public; SET plan_cache_mode = force_generic_plan; SET enable_sort = {sorts}; "
            f"SET memplane.tenant = '{tenant}'; SET memplane.space = '{space}'; SET ROLE {ROLE}".encode()
        )

        def plan(said: Said) -> dict[str, Any]:
            query, parameters = said
            row = connection.execute(
                f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {_numbered(query, parameters)}".encode()
            ).fetchone()
            assert row is not None
            told = row[0] if isinstance(row[0], list) else json.loads(row[0])
            top: dict[str, Any] = told[0]["Plan"]
            return top

        yield plan


def _numbered(query: str, parameters: Any) -> str:
    """Without its parameters, but for what kind each is of."""
    given = parameters or ()
    places = list(given) if isinstance(given, dict) else list(range(len(given)))
    upcoming = iter(places)

    def written(match: re.Match[str]) -> str:
        if match.group() == "%%":
            return "%"
        place = match.group(1) or next(upcoming)
        kind = _kind(given[place])
        return f"${places.index(place) + 1}" + (f"::{kind}" if kind else "")

    return re.sub(r"%(?:\((\w+)\))?s|%%", written, query)


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return f"{_kind(value[0]) if value else 'text'}[]"
    if isinstance(value, Vector):
        return "halfvec"
    kinds = {bool: "boolean", int: "bigint", float: "double precision", bytes: "bytea"}
    return "" if value is None else kinds.get(type(value), "text")


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every step of a plan."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)
