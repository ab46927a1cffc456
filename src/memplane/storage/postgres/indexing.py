"""Vector indexes of large spaces.

An index for all spaces would visit neighbours in every space to find those of one. So a large space gets an
index over its own rows, created without blocking readers or writers. A note in the space says that the index
exists; until then the space is loaded like any other.
"""

from typing import Any

import psycopg
from psycopg import Connection, errors, sql

from memplane.storage.postgres.migrate import SCHEMA
from memplane.storage.postgres.place import SpaceKey
from memplane.storage.postgres.statements import spoken
from memplane.storage.statements import named
from memplane.storage.vectors import searched

LARGE = 20_000
"""How many vectors of turns or memories make a space large: 15 MB of them, and as many rows to load."""
_DIMENSION_MAX = 4_000
"""Longer vectors have no index; a space with such vectors is loaded at any size."""
_LOCK = 0x4D454D51
_SORTS = ("memory_vector", "turn_vector")
_SQL = {
    name: spoken(query).encode()
    for name, query in named(("memplane.storage.postgres", ["indexing.sql"])).items()
}


def index_large_spaces(conninfo: str, *, large: int = LARGE) -> list[tuple[SpaceKey, int]]:
    """Create indexes for every space with this many vectors, and drop those of a space that shrank or uses
    another model now. Returns the spaces that got indexes, with the number of their model. Runs as the owner of
    the database, and does nothing if another process is doing it."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path = {SCHEMA}, public".encode())
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone()
        if row is None or not row[0]:
            return []
        for (broken,) in connection.execute(_SQL["broken_indexes"]).fetchall():
            connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(broken)))
        for tenant, space, model in connection.execute(_SQL["idle_indexes"], {"few": large // 4}).fetchall():
            _drop_index(connection, SpaceKey(tenant, space), model)
        done = []
        for tenant, space, model, dimension in connection.execute(
            _SQL["large_spaces"], {"large": large, "dimension": _DIMENSION_MAX}
        ).fetchall():
            place = SpaceKey(tenant, space)
            if _index(connection, place, model, dimension):
                done.append((place, model))
        return done


def _index(connection: Connection[Any], place: SpaceKey, model: int, dimension: int) -> bool:
    for table in _SORTS:
        connection.execute(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {_name(table, place, model)} "
            f"ON {table} USING hnsw ((vector::halfvec({dimension:d})) halfvec_ip_ops) "
            f"WHERE tenant = {place.tenant:d} AND space = {place.space:d} AND model = {model:d}".encode()
        )
        connection.execute(f"ANALYZE {table}".encode())
    try:
        connection.execute(
            "INSERT INTO meta (tenant, space, name, value) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (tenant, space, name) DO UPDATE SET value = excluded.value",
            (*place, searched(model), str(dimension)),
        )
    except errors.ForeignKeyViolation:  # the space was removed
        return False
    return True


def _drop_index(connection: Connection[Any], place: SpaceKey, model: int) -> None:
    """Drop the indexes of a space; its note first, so that no search uses an index that is about to be dropped."""
    connection.execute(
        "DELETE FROM meta WHERE tenant = %s AND space = %s AND name = %s", (*place, searched(model))
    )
    for table in _SORTS:
        connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {_name(table, place, model)}".encode())


def _name(table: str, place: SpaceKey, model: int) -> str:
    """The name by which `indexing.sql` finds an index."""
    return f"{table}_near_{place.tenant:d}_{place.space:d}_{model:d}"
