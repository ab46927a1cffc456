"""Spaces too large to be loaded: their vectors have an index of their own, and recall asks it.

One index for all spaces would look through the neighbours of everybody to find those of one. So a space that has grown
large gets its own, over its rows alone, made while others go on reading and writing; that it is there is noted among
the space's own values, and until then it is loaded like any other.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import psycopg
from psycopg import Connection, errors, sql

from memplane.storage.filter import Audience, Filter
from memplane.storage.index import Holders, NearMemory, TurnHead, Vector, VectorSearch
from memplane.storage.postgres import around
from memplane.storage.postgres.ahead import Listening, NoAnswer
from memplane.storage.postgres.migrate import SCHEMA
from memplane.storage.postgres.statements import PostgresStatements, kept
from memplane.storage.postgres.text import Vector as Column
from memplane.storage.sql import conditions
from memplane.storage.sql.view import NOTES, SqlReader
from memplane.storage.words import is_prefix

LARGE = 20_000
"""So many vectors of turns or memories make a space large: 15 MB of them, and as many rows to load."""
_DIMENSION_MAX = 4_000
"""Longer vectors have no index; a space with such is loaded, however large it is."""
_PREFIX_STEMS_MAX = 20
_LOCK = 0x4D454D51
_KNOWN_AROUND = {NOTES, ("models",), *around.KEYS}
_SORTS = ("memory_vector", "turn_vector")


class Place(NamedTuple):
    """The two numbers that every row of a space has."""

    tenant: int
    space: int

    def said(self) -> str:
        """For row-level security, until the end of the transaction."""
        return f"SET LOCAL memplane.tenant = '{self.tenant:d}'; SET LOCAL memplane.space = '{self.space:d}'"

    def locked(self) -> str:
        """A transaction in which nobody else writes to the space."""
        row = f"tenant = {self.tenant:d} AND number = {self.space:d}"
        return f"BEGIN; {self.said()}; SELECT 1 FROM space WHERE {row} FOR UPDATE"


class PostgresReader(SqlReader):
    """`SqlReader` of a space that may be large."""

    def __init__(self, statements: PostgresStatements, owner: str, place: Place) -> None:
        super().__init__(statements, owner)
        self._own = statements
        self._place = place

    def ahead(self, *work: Callable[[SqlReader], object]) -> None:
        listening = Listening(ruled=self._own.ruled)
        reader = PostgresReader(listening, self._owner, self._place)
        reader._seen = None if self._seen is None else dict(self._seen)
        for asking in work:
            with suppress(NoAnswer):
                asking(reader)
        if len(listening.noted) > 1:
            self._own.fetch_ahead(listening.noted)

    def _look_around(self, seen: dict[tuple[Any, ...], Any], asked: tuple[Any, ...]) -> None:
        """Whoever asks how far a space is asks for all of this: it comes with one trip."""
        if asked not in _KNOWN_AROUND:
            return
        (places,), models, notes = self._own.together([(name, {}) for name in ("around", "models", "notes")])
        seen |= around.parted(places)
        seen["models",] = models
        seen[NOTES] = dict(notes)
        self._own.ruled = bool(seen["ruled",][0])

    def vector_search(self, model: int) -> VectorSearch | None:
        dimension = self._note(_noted(model))
        return None if dimension is None else _Search(self._own, self._place, model, int(dimension))


class _Search:
    """See `VectorSearch`."""

    def __init__(self, statements: PostgresStatements, place: Place, model: int, dimension: int) -> None:
        self._statements = statements
        self._model = model
        self._written = (
            ("tenant", place.tenant),
            ("space", place.space),
            ("model", model),
            ("dimension", dimension),
        )

    def memories(self, vector: Vector, *, limit: int, audience: Audience | None) -> list[NearMemory]:
        where = conditions.told_to(audience) if audience is not None else conditions.Where()
        found = self._nearest("nearest_memories", where, limit, query=_column(vector))
        return [NearMemory(*row) for row in found]

    def turns(
        self, vector: Vector | None, *, limit: int, also: Sequence[int], audience: Audience | None
    ) -> list[tuple[TurnHead, float | None]]:
        where = conditions.of_turns(Filter(now=0, audience=audience))
        if vector is None:
            given = {**where.parameters, "also": list(also)}
            found = self._statements.filtered("large_heads", str(where), given)
        else:
            found = self._nearest("nearest_turns", where, limit, query=_column(vector), also=list(also))
        return [(TurnHead(*head), nearness) for *head, nearness in sorted(found)]

    def holders(self, stems: Sequence[str], *, turns: int, usual: float, each: int, best: int) -> Holders:
        names: dict[str, str] = {}
        for stem in stems:
            written = (
                self._statements.words.matching("turn", [stem])[:_PREFIX_STEMS_MAX]
                if is_prefix(stem)
                else [kept(stem)]
            )
            names.update(dict.fromkeys(written, stem))
        asked = {"stems": list(names), "turns": turns, "usual": usual, "each": each, "best": best}
        (_, written, counted, total, squares), *found = self._statements.all("large_holders", asked)
        counts = dict.fromkeys(stems, 0)
        for name, count in zip(written or (), counted or (), strict=True):
            counts[names[name]] += count
        held: dict[int, dict[str, int]] = {}
        for n, stems_held, times, _, _ in found:
            of_turn = held[n] = dict[str, int]()
            for name, count in zip(stems_held, times, strict=True):
                of_turn[names[name]] = of_turn.get(names[name], 0) + count
        return Holders(counts, held, total or 0.0, squares or 0.0)

    def around(self, numbers: Sequence[int], *, reach: int) -> list[int]:
        found = self._statements.all("large_around", {"numbers": list(numbers), "reach": reach})
        return [n for (n,) in found]

    def speakers(self, *, limit: int) -> list[str]:
        return [name for (name,) in self._statements.all("large_speakers", {"limit": limit})]

    def size(self) -> int:
        return int(self._statements.one("large_size")[0])

    def some_turns(self, *, sittings: int, each: int, pause: int) -> list[int]:
        last = self._statements.one("large_last")[0]
        asked = {"numbers": _spread(last, sittings), "each": each, "pause": pause}
        return [n for (n,) in self._statements.all("large_sittings", asked)]

    def some_memories(self, *, limit: int) -> list[str]:
        last = self._statements.one("large_last")[1]
        asked = {"numbers": _spread(last, limit), "model": self._model}
        return [id_ for (id_,) in self._statements.all("large_memories", asked)]

    def _nearest(self, query: str, where: conditions.Where, limit: int, /, **given: Any) -> list[Any]:
        written = (*self._written, ("limit", limit))
        return self._statements.nearest(query, str(where), written, {**where.parameters, **given})


def _spread(last: int, count: int) -> list[int]:
    return [last * number // count for number in range(count)]


def _column(vector: Vector) -> Column:
    return Column(vector.astype(np.float16).tobytes())


def _noted(model: int) -> str:
    return f"searched:{model}"


def index_large_spaces(conninfo: str, *, large: int = LARGE) -> list[tuple[Place, int]]:
    """Give every space with so many vectors indexes of its own, and take them from one that fell far below or uses
    another model by now; returns those that got some, with the number of their model. As the owner of the database;
    where somebody else is at it, nothing is done."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path = {SCHEMA}, public".encode())
        row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone()
        if row is None or not row[0]:
            return []
        for (broken,) in connection.execute(_BROKEN).fetchall():
            connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(sql.Identifier(broken)))
        for tenant, space, model in connection.execute(_IDLE, {"few": large // 4}).fetchall():
            _take_back(connection, Place(tenant, space), model)
        done = []
        for tenant, space, model, dimension in connection.execute(
            _LARGE_SPACES, {"large": large, "dimension": _DIMENSION_MAX}
        ).fetchall():
            place = Place(tenant, space)
            if _index(connection, place, model, dimension):
                done.append((place, model))
        return done


_BROKEN = """
SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE c.relnamespace = 'memplane'::regnamespace AND NOT i.indisvalid AND c.relname ~ '_near_[0-9]+_[0-9]+_[0-9]+$'
"""
_IDLE = """
WITH near AS (
    SELECT DISTINCT p[1]::integer AS tenant, p[2]::integer AS space, p[3]::integer AS model
    FROM pg_class c, regexp_match(c.relname, '_vector_near_([0-9]+)_([0-9]+)_([0-9]+)$') AS p
    WHERE c.relnamespace = 'memplane'::regnamespace AND c.relkind = 'i' AND p IS NOT NULL
)
SELECT tenant, space, model FROM near n
WHERE NOT EXISTS (
    SELECT 1 FROM meta d
    WHERE d.tenant = n.tenant AND d.space = n.space AND d.name = 'model' AND d.value = n.model::text
) OR (
    NOT EXISTS (SELECT 1 FROM memory_vector v WHERE v.tenant = n.tenant AND v.space = n.space OFFSET %(few)s LIMIT 1)
    AND NOT EXISTS (SELECT 1 FROM turn_vector v WHERE v.tenant = n.tenant AND v.space = n.space OFFSET %(few)s LIMIT 1)
)
"""
_LARGE_SPACES = """
SELECT s.tenant, s.number, m.n, m.dimension FROM space s
JOIN meta c ON c.tenant = s.tenant AND c.space = s.number AND c.name = 'model'
JOIN model m ON m.tenant = s.tenant AND m.space = s.number AND m.n = CAST(c.value AS integer)
WHERE m.dimension BETWEEN 2 AND %(dimension)s AND (
    to_regclass(format('memory_vector_near_%%s_%%s_%%s', s.tenant, s.number, m.n)) IS NULL
    OR to_regclass(format('turn_vector_near_%%s_%%s_%%s', s.tenant, s.number, m.n)) IS NULL
    OR NOT EXISTS (
        SELECT 1 FROM meta d WHERE d.tenant = s.tenant AND d.space = s.number AND d.name = 'searched:' || m.n
    )
) AND (
    EXISTS (SELECT 1 FROM memory_vector v WHERE v.tenant = s.tenant AND v.space = s.number OFFSET %(large)s - 1 LIMIT 1)
    OR EXISTS (SELECT 1 FROM turn_vector v WHERE v.tenant = s.tenant AND v.space = s.number OFFSET %(large)s - 1 LIMIT 1)
)
"""


def _index(connection: Connection[Any], place: Place, model: int, dimension: int) -> bool:
    for table in _SORTS:
        connection.execute(
            f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {table}_near_{place.tenant:d}_{place.space:d}_{model:d} "
            f"ON {table} USING hnsw ((vector::halfvec({dimension:d})) halfvec_ip_ops) "
            f"WHERE tenant = {place.tenant:d} AND space = {place.space:d} AND model = {model:d}".encode()
        )
        connection.execute(f"ANALYZE {table}".encode())
    try:
        connection.execute(
            "INSERT INTO meta (tenant, space, name, value) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (tenant, space, name) DO UPDATE SET value = excluded.value",
            (*place, _noted(model), str(dimension)),
        )
    except errors.ForeignKeyViolation:  # the space went meanwhile
        return False
    return True


def _take_back(connection: Connection[Any], place: Place, model: int) -> None:
    """The note first: nobody looks for an index that is about to go."""
    connection.execute(
        "DELETE FROM meta WHERE tenant = %s AND space = %s AND name = %s", (*place, _noted(model))
    )
    for table in _SORTS:
        index = f"{table}_near_{place.tenant:d}_{place.space:d}_{model:d}"
        connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index}".encode())
