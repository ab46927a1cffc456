"""The statements of a space and of the catalog in PostgreSQL, and its word index, which is tables of stems."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from psycopg import Connection, Cursor, errors

from memplane.errors import InvalidRequest
from memplane.storage import status
from memplane.storage.conditions import without_rulings
from memplane.storage.engine import Dialect, Indexed, Parameters, Request, Row
from memplane.storage.postgres.place import SpaceKey
from memplane.storage.postgres.text import Vector
from memplane.storage.statements import CATALOG, SPACE, load, named
from memplane.storage.tables import VECTOR_TABLES
from memplane.storage.words import index_key, is_prefix, prefix_of, stems_of

_LAST_CHARACTER = "\U0010ffff"
_PREFIX_STEMS_MAX = 1_000
_BREADTH_MIN, _BREADTH_MAX = 40, 1_000
_SPOKEN = re.compile(r"'(?:[^']|'')*'|::|:([a-z_]+\d*)\b|\?(\d*)|%")
_CONFLICT = re.compile(r"\bON CONFLICT \(")
_HINT = re.compile(r" INDEXED BY \w+")
_CROSS = re.compile(r"\bCROSS JOIN (\w+ \w+) (USING|ON)\b")
_AMONG = re.compile(r"\b(NOT )?IN \(SELECT value FROM unnest\((:\w+::\w+\[\])\) AS \w+ \(value\)\)")
_NUMBERED = "_"
"""The prefix of a parameter that a statement names by number."""


def _among(match: re.Match[str]) -> str:
    """An index can look up an array directly; a table of its values would need a join."""
    return f"<> ALL({match.group(2)})" if match.group(1) else f"= ANY({match.group(2)})"


def spoken(sql: str) -> str:
    """A statement with its parameters in the driver's syntax; text in quotes is kept."""

    def written(match: re.Match[str]) -> str:
        text = match.group()
        if match.group(1):
            return f"%({match.group(1)})s"
        if text.startswith("?"):
            return f"%({_NUMBERED}{match.group(2)})s" if match.group(2) else "%s"
        return text.replace("%", "%%")

    return _SPOKEN.sub(written, sql)


def _dialect(*, of_space: bool) -> Dialect:
    """Lists are arrays; SQLite's hints to its planner are left out."""

    def finish(sql: str) -> str:
        sql = _AMONG.sub(_among, _CROSS.sub(r"JOIN \1 \2", _HINT.sub("", sql)))
        return spoken(_CONFLICT.sub("ON CONFLICT (tenant, space, ", sql) if of_space else sql)

    return Dialect(
        texts="unnest(:{0}::text[]) AS {1} (value)",
        numbers="unnest(:{0}::bigint[]) AS {1} (value)",
        list_of="coalesce(json_agg({0})::text, '[]')",
        larger="greatest({0}, {1})",
        place_of="strpos({1}, {0})",
        # A zero character is not valid JSON in PostgreSQL, and one such row would fail every statement.
        member="replace({0}, '\\u0000', '\\ufffd')::json ->> '{1}'",
        # A column rather than a division: under row-level security, an expression that may fail serves no index.
        entry_of="{0}.seq",
        document_of="{0}.seq",
        no_bytes="''::bytea",
        finish=finish,
    )


_OWN = "memplane.storage.postgres"
SQL = load(
    _dialect(of_space=True),
    *SPACE,
    (_OWN, ["own.sql", "large.sql"]),
    {"status": status.statement(named(*SPACE, (_OWN, ["own.sql"])))},
)
CATALOG_DIALECT = _dialect(of_space=False)
CATALOG_SQL = load(CATALOG_DIALECT, *CATALOG, (_OWN, ["catalog.sql"]))
_NEAREST = named((_OWN, ["nearest.sql"]))
_VECTORS = frozenset(name for table in VECTOR_TABLES for name in (f"add_{table}", f"copy_{table}_add"))


@lru_cache(maxsize=4_096)
def _with_where(query: str, where: str, *, reviewed: bool) -> bytes:
    sql = SQL[query].replace("{where}", spoken(where))
    return (sql if reviewed else without_rulings(sql)).encode()


@lru_cache(maxsize=1_024)
def _written_out(query: str, where: str, written: tuple[tuple[str, int], ...]) -> bytes:
    sql = _NEAREST[query].replace("{where}", where)
    for name, number in written:
        sql = sql.replace(f"{{{name}}}", f"{number:d}")
    return spoken(sql).encode()


class _Statements:
    """The statements of a space, or of the catalog, as they are sent."""

    def __init__(self, sql: Mapping[str, str]) -> None:
        self.reviewed = {name: text.encode() for name, text in sql.items()}
        self.not_reviewed = {name: without_rulings(text).encode() for name, text in sql.items()}
        self.by_number = frozenset(name for name, text in sql.items() if f"%({_NUMBERED}1)s" in text)


_SPACE = _Statements(SQL)
_CATALOG = _Statements(CATALOG_SQL)


class PostgresConnection:
    """See `Connection`. Without a place, it is one of the catalog."""

    remote: ClassVar[bool] = True

    def __init__(self, connection: Connection[Any], place: SpaceKey | None) -> None:
        self._connection = connection
        self._place = place
        self._statements = _CATALOG if place is None else _SPACE
        self.reviewed = True

    @property
    def words(self) -> "PostgresFullText":
        return PostgresFullText(self)

    def execute(self, query: str, parameters: Parameters | Row = (), where: str | None = None) -> list[Any]:
        if query in _NEAREST:
            return self._nearest(query, where or "TRUE", parameters)
        cursor = self._sent(Request(query, parameters, where))
        return [] if cursor.description is None else cursor.fetchall()

    def execute_many(self, query: str, rows: Sequence[Row]) -> None:
        if not rows:
            return
        if query in _VECTORS:
            rows = [(*row[:-1], None if row[-1] is None else Vector(row[-1])) for row in rows]
        if len(rows) == 1:
            self._sent(Request(query, rows[0]))
            return
        given = [numbered(row) for row in rows] if query in self._statements.by_number else rows
        with _no_name_too_long(), self._connection.cursor() as cursor:
            cursor.executemany(self._statements.reviewed[query], given)

    def execute_batch(self, requests: Sequence[Request]) -> list[list[Any]]:
        if len(requests) == 1:
            return [self.execute(*requests[0])]
        with self._connection.pipeline():
            cursors = [self._sent(request) for request in requests]
        return [cursor.fetchall() for cursor in cursors]

    def _sent(self, request: Request) -> Cursor[Any]:
        query, parameters, where = request
        statements = self._statements
        if where is not None:
            sql = _with_where(query, where, reviewed=self.reviewed)
        else:
            sql = statements.reviewed[query] if self.reviewed else statements.not_reviewed[query]
        if query in statements.by_number and not isinstance(parameters, Mapping):
            parameters = numbered(parameters)
        with _no_name_too_long():
            return self._connection.execute(sql, parameters, binary=True)

    def _nearest(self, query: str, where: str, parameters: Parameters | Row) -> list[Any]:
        """A search among vectors, in the order of their index: a plan that sorts instead reads the whole space. An index of
        some rows serves only a statement that has the numbers of the space and the model written out."""
        assert self._place is not None
        assert isinstance(parameters, Mapping)
        written = tuple((name, int(parameters[name])) for name in ("model", "dimension", "limit"))
        place = (("tenant", self._place.tenant), ("space", self._place.space))
        given = {**parameters, "query": Vector(parameters["query"])}
        connection = self._connection
        with connection.pipeline():
            connection.execute("SET LOCAL enable_sort = off")
            connection.execute(f"SET LOCAL hnsw.ef_search = {_breadth(parameters['limit']):d}".encode())
            found = connection.execute(_written_out(query, where, written + place), given, binary=True)
            connection.execute("SET LOCAL enable_sort = on")
        return found.fetchall()


class _no_name_too_long:  # noqa: N801 - used like the function it would be
    """Long names fit into an index alone, but not always together. This is an error of the request, not of the
    database."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, errors.ProgramLimitExceeded):
            raise InvalidRequest(
                "these names are too long to be kept together; 1,000 bytes in UTF-8 each are always possible"
            ) from error


def _breadth(limit: int) -> int:
    """How many neighbours the search keeps at once; beyond that it continues with a new search."""
    return max(_BREADTH_MIN, min(limit, _BREADTH_MAX))


def numbered(row: Row) -> dict[str, Any]:
    return {f"{_NUMBERED}{number}": value for number, value in enumerate(row, start=1)}


class PostgresFullText:
    """See `FullText`. Plain tables of stems: their operators are those that row-level security lets an index serve, which
    those of PostgreSQL's own text search are not."""

    __slots__ = ("_connection",)

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def add(self, kind: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        rows: list[Row] = []
        for n, text in texts:
            stems = stems_of(text)
            rows += [(index_key(stem), n, times, len(stems)) for stem, times in Counter(stems).items()]
        if rows:
            stems, numbers, times, lengths = (list(column) for column in zip(*rows, strict=True))
            self._connection.execute(f"add_{kind}_words", (stems, numbers, times, lengths))

    def drop(self, kind: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        rows = [(index_key(stem), n) for n, text in texts for stem in set(stems_of(text))]
        if rows:
            stems, numbers = (list(column) for column in zip(*rows, strict=True))
            self._connection.execute(f"drop_{kind}_words", (stems, numbers))

    def clear(self) -> None:
        for kind in ("turn", "memory", "span"):
            self._connection.execute(f"clear_{kind}_words")

    def match(self, kind: Indexed, words: Sequence[str]) -> list[str]:
        stems: dict[str, None] = {}
        for word in words:
            found = (
                self._beginning(kind, prefix_of(word)) if is_prefix(word) else map(index_key, stems_of(word))
            )
            stems.update(dict.fromkeys(found))
        return list(stems)

    def occurrences(self, kind: Indexed, stems: Sequence[str]) -> dict[str, list[int]]:
        names = {index_key(stem): stem for stem in stems if not is_prefix(stem)}
        found = {stem: self._of_prefix(kind, stem) if is_prefix(stem) else list[int]() for stem in stems}
        if names:
            rows = self._connection.execute(f"{kind}_occurrences_of", {"stems": list(names)})
            for name, numbers, times in rows:
                pairs = zip(numbers, times, strict=True)
                found[names[name]] = (
                    numbers if max(times) == 1 else [n for n, count in pairs for _ in range(count)]
                )
        return found

    def frequencies(self, stems: Sequence[str]) -> Iterable[tuple[str, int]]:
        names = {index_key(stem): stem for stem in stems}
        for query in ("turn_frequency", "memory_frequency"):
            for stem, count in self._connection.execute(query, {"stems": list(names)}):
                yield names[stem], count

    def _of_prefix(self, kind: Indexed, stem: str) -> list[int]:
        first = prefix_of(stem)
        parameters = {"stem": first, "last": first + _LAST_CHARACTER}
        found = self._connection.execute(f"{kind}_occurrences_of_prefix", parameters)
        return [n for n, times in found for _ in range(times)]

    def _beginning(self, kind: Indexed, start: str) -> list[str]:
        parameters = {"stem": start, "last": start + _LAST_CHARACTER, "limit": _PREFIX_STEMS_MAX}
        return [stem for (stem,) in self._connection.execute(f"{kind}_stems_of_prefix", parameters)]
