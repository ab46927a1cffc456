"""The named statements over a PostgreSQL connection, and an index of words in tables."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

from psycopg import Connection, Cursor, errors

from memplane.errors import InvalidRequest
from memplane.storage.moving import VECTOR_TABLES
from memplane.storage.postgres import around
from memplane.storage.postgres.text import Vector
from memplane.storage.sql.conditions import without_rulings
from memplane.storage.sql.statements import SHARED, Indexed, Parameters, Row, load, named
from memplane.storage.sql.tables import SPACE_MOVES
from memplane.storage.words import is_prefix, prefix_of, stems_of

_LAST_CHARACTER = "\U0010ffff"
_STEM_CHARS_MAX = 200
_PREFIX_STEMS_MAX = 1_000
_BREADTH_MIN, _BREADTH_MAX = 40, 1_000
_SPOKEN = re.compile(r"'(?:[^']|'')*'|::|:([a-z_]+\d*)\b|\?(\d*)|%")
_CONFLICT = re.compile(r"\bON CONFLICT \(")
_HINT = re.compile(r" INDEXED BY \w+")
_CROSS = re.compile(r"\bCROSS JOIN (\w+ \w+) (USING|ON)\b")
_AMONG = re.compile(r"\b(NOT )?IN \(SELECT value FROM unnest\((:\w+::\w+\[\])\) AS \w+ \(value\)\)")
_NUMBERED = "_"
"""What stands before the number of a parameter that a statement names by number."""


class PostgresDialect:
    """See `Dialect`. Lists are arrays; SQLite's hints to its planner are left out."""

    def __init__(self, *, of_space: bool) -> None:
        self._of_space = of_space

    def texts(self, parameter: str, alias: str) -> str:
        return f"unnest(:{parameter}::text[]) AS {alias} (value)"

    def numbers(self, parameter: str, alias: str) -> str:
        return f"unnest(:{parameter}::bigint[]) AS {alias} (value)"

    def list_of(self, column: str) -> str:
        return f"coalesce(json_agg({column})::text, '[]')"

    def larger(self, left: str, right: str) -> str:
        return f"greatest({left}, {right})"

    def place_of(self, part: str, text: str) -> str:
        return f"strpos({text}, {part})"

    def member(self, column: str, name: str) -> str:
        # A zero character is no JSON to PostgreSQL, wherever in it, and one such row would end every look.
        return f"replace({column}, '\\u0000', '\\ufffd')::json ->> '{name}'"

    def entry_of(self, turn: str) -> str:
        # A column rather than a division: under row-level security, what may fail serves no index.
        return f"{turn}.seq"

    def document_of(self, part: str) -> str:
        return f"{part}.seq"

    def no_bytes(self) -> str:
        return "''::bytea"

    def statement(self, sql: str) -> str:
        sql = _AMONG.sub(_among, _CROSS.sub(r"JOIN \1 \2", _HINT.sub("", sql)))
        if self._of_space:
            sql = _CONFLICT.sub("ON CONFLICT (tenant, space, ", sql)
        return spoken(sql)


def _among(match: re.Match[str]) -> str:
    """An array is looked up in an index as it is; a table of its values would have to be joined first."""
    return f"<> ALL({match.group(2)})" if match.group(1) else f"= ANY({match.group(2)})"


def spoken(sql: str) -> str:
    """Parameters as the driver writes them; nothing inside of quotes is one."""

    def written(match: re.Match[str]) -> str:
        text = match.group()
        if match.group(1):
            return f"%({match.group(1)})s"
        if text.startswith("?"):
            return f"%({_NUMBERED}{match.group(2)})s" if match.group(2) else "%s"
        return text.replace("%", "%%")

    return _SPOKEN.sub(written, sql)


SQL = load(
    PostgresDialect(of_space=True),
    SHARED,
    SPACE_MOVES,
    ("memplane.storage.postgres", ["own.sql", "large.sql"]),
)
SQL["around"] = around.statement(SQL)
_NEAREST = named(("memplane.storage.postgres", ["nearest.sql"]))
_VECTORS = frozenset(name for table in VECTOR_TABLES for name in (f"add_{table}", f"copy_{table}_add"))
_BY_NUMBER = frozenset(name for name, sql in SQL.items() if f"%({_NUMBERED}1)s" in sql)


@lru_cache(maxsize=4_096)
def _with_where(query: str, where: str, *, ruled: bool) -> bytes:
    sql = SQL[query].replace("{where}", spoken(where))
    return (sql if ruled else without_rulings(sql)).encode()


@lru_cache(maxsize=1_024)
def _written_out(query: str, where: str, written: tuple[tuple[str, int], ...]) -> bytes:
    sql = _NEAREST[query].replace("{where}", where)
    for name, number in written:
        sql = sql.replace(f"{{{name}}}", f"{number:d}")
    return spoken(sql).encode()


_ENCODED = {name: sql.encode() for name, sql in SQL.items()}
_UNRULED = {name: without_rulings(sql).encode() for name, sql in SQL.items()}


class Statement(NamedTuple):
    """What is asked, and what about."""

    sql: bytes
    parameters: Parameters | Row

    @property
    def key(self) -> Hashable:
        """The same of two that are answered alike."""
        given = (
            self.parameters.items() if isinstance(self.parameters, Mapping) else enumerate(self.parameters)
        )
        return self.sql, *(
            (name, tuple(value) if isinstance(value, list) else value) for name, value in given
        )


class PostgresStatements:
    """See `Statements`."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self.ruled = True
        """Whether anything may have been ruled in this space."""
        self._ahead: dict[Hashable, list[Any]] = {}
        """What was fetched and nobody has asked for yet."""
        self.words = PostgresWords(self)

    def all(self, query: str, parameters: Parameters | Row = ()) -> list[Any]:
        return self._found(self._statement(query, parameters))

    def one(self, query: str, parameters: Parameters | Row = ()) -> Any:
        found = self._found(self._statement(query, parameters))
        return found[0] if found else None

    def filtered(self, query: str, where: str, parameters: Parameters) -> list[Any]:
        return self._found(Statement(_with_where(query, where, ruled=self.ruled), parameters))

    def fetch_ahead(self, statements: Mapping[Hashable, Statement]) -> None:
        """Have the answers to these ready, with one trip."""
        with self._connection.pipeline():
            found = {key: self._asked(statement) for key, statement in statements.items()}
        self._ahead.update((key, cursor.fetchall()) for key, cursor in found.items())

    def together(self, asked: Sequence[tuple[str, Parameters]]) -> list[list[Any]]:
        """Every row of each of these, with one trip."""
        with self._connection.pipeline():
            found = [self._execute(query, parameters) for query, parameters in asked]
        return [cursor.fetchall() for cursor in found]

    def nearest(
        self, query: str, where: str, written: tuple[tuple[str, int], ...], parameters: Parameters
    ) -> list[Any]:
        """A search among vectors, with these numbers written out in it, in the order that its index gives: a plan that
        sorts what it found without one reads the whole space."""
        connection = self._connection
        with connection.pipeline():
            connection.execute("SET LOCAL enable_sort = off")
            connection.execute(f"SET LOCAL hnsw.ef_search = {_breadth(dict(written)['limit']):d}".encode())
            found = connection.execute(_written_out(query, where, written), parameters, binary=True)
            connection.execute("SET LOCAL enable_sort = on")
        return found.fetchall()

    def run(self, query: str, parameters: Parameters | Row = ()) -> int:
        return self._execute(query, parameters).rowcount

    def many(self, query: str, values: Sequence[Row]) -> None:
        if not values:
            return
        if query in _VECTORS:
            values = [(*row[:-1], None if row[-1] is None else Vector(row[-1])) for row in values]
        if len(values) == 1:
            self._execute(query, values[0])
            return
        rows = [numbered(row) for row in values] if query in _BY_NUMBER else values
        with _no_name_too_long(), self._connection.cursor() as cursor:
            cursor.executemany(_ENCODED[query], rows)

    def listed(self, values: Iterable[Any]) -> list[Any]:
        return list(values)

    def clear(self, tables: Sequence[str]) -> None:
        for table in tables:
            self._connection.execute(f"DELETE FROM {table}".encode())

    def save(self) -> None:
        self._connection.execute("SAVEPOINT work")

    def keep(self) -> None:
        self._connection.execute("RELEASE SAVEPOINT work")

    def undo(self) -> None:
        self._connection.execute("ROLLBACK TO SAVEPOINT work")
        self._connection.execute("RELEASE SAVEPOINT work")

    def _found(self, statement: Statement) -> list[Any]:
        if self._ahead:
            known = self._ahead.pop(statement.key, None)
            if known is not None:
                return known
        return self._asked(statement).fetchall()

    def _execute(self, query: str, parameters: Parameters | Row) -> Cursor[Any]:
        return self._asked(self._statement(query, parameters))

    def _statement(self, query: str, parameters: Parameters | Row) -> Statement:
        sql = _ENCODED[query] if self.ruled else _UNRULED[query]
        return Statement(sql, _by_name(query, parameters))

    def _asked(self, statement: Statement) -> Cursor[Any]:
        with _no_name_too_long():
            return self._connection.execute(statement.sql, statement.parameters, binary=True)


class _no_name_too_long:  # noqa: N801 - used like the function it would be
    """Names of several hundred characters each fit into an index alone, and not always beside each other. It is the
    trouble of the work that brought them, not of the database."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, errors.ProgramLimitExceeded):
            raise InvalidRequest(
                "these names are too long to be kept together; 1,000 bytes in UTF-8 each are always possible"
            ) from error


def _by_name(query: str, parameters: Parameters | Row) -> Parameters | Row:
    return numbered(parameters) if query in _BY_NUMBER and not isinstance(parameters, Mapping) else parameters


def _breadth(limit: int) -> int:
    """So many neighbours are kept in sight; what is looked for beyond that is looked for anew."""
    return max(_BREADTH_MIN, min(limit, _BREADTH_MAX))


def numbered(row: Row) -> dict[str, Any]:
    return {f"{_NUMBERED}{number}": value for number, value in enumerate(row, start=1)}


class PostgresWords:
    """See `Words`. Plain tables of stems: their operators are those that row-level security lets an index serve, which
    those of PostgreSQL's own text search are not."""

    def __init__(self, statements: PostgresStatements) -> None:
        self._statements = statements

    def add(self, sort: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        rows: list[Row] = []
        for n, text in texts:
            stems = stems_of(text)
            rows += [(kept(stem), n, times, len(stems)) for stem, times in Counter(stems).items()]
        if rows:
            stems, numbers, times, lengths = (list(column) for column in zip(*rows, strict=True))
            self._statements.run(f"add_{sort}_words", (stems, numbers, times, lengths))

    def drop(self, sort: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        rows = [(kept(stem), n) for n, text in texts for stem in set(stems_of(text))]
        if rows:
            stems, numbers = (list(column) for column in zip(*rows, strict=True))
            self._statements.run(f"drop_{sort}_words", (stems, numbers))

    def clear(self) -> None:
        self._statements.clear(("turn_word", "memory_word", "span_word"))

    def matching(self, sort: Indexed, words: Sequence[str]) -> list[str]:
        stems: dict[str, None] = {}
        for word in words:
            found = self._beginning(sort, prefix_of(word)) if is_prefix(word) else map(kept, stems_of(word))
            stems.update(dict.fromkeys(found))
        return list(stems)

    def holding_each(self, sort: Indexed, stems: Sequence[str]) -> dict[str, list[int]]:
        names = {kept(stem): stem for stem in stems if not is_prefix(stem)}
        found = {stem: list[int]() if not is_prefix(stem) else self.holding(sort, stem) for stem in stems}
        for name, numbers, times in self._statements.all(f"{sort}_occurrences_of", {"stems": list(names)}):
            pairs = zip(numbers, times, strict=True)
            found[names[name]] = (
                numbers if max(times) == 1 else [n for n, count in pairs for _ in range(count)]
            )
        return found

    def holding(self, sort: Indexed, stem: str) -> list[int]:
        if is_prefix(stem):
            first = prefix_of(stem)
            asked = {"stem": first, "last": first + _LAST_CHARACTER}
            found = self._statements.all(f"{sort}_occurrences_of_prefix", asked)
        else:
            found = self._statements.all(f"{sort}_occurrences", {"stem": kept(stem)})
        return [n for n, times in found for _ in range(times)]

    def common(self, sort: Indexed, words: Sequence[str], beyond: int) -> set[str]:
        return {word for word in words if self._count(sort, word, beyond + 1) > beyond}

    def frequencies(self, stems: Sequence[str]) -> Iterable[tuple[str, int]]:
        names = {kept(stem): stem for stem in stems}
        asked = {"stems": list(names)}
        for query in ("turn_frequency", "memory_frequency"):
            for stem, count in self._statements.all(query, asked):
                yield names[stem], count

    def _count(self, sort: Indexed, word: str, limit: int) -> int:
        asked = {"match": self.matching(sort, [word]), "limit": limit}
        return int(self._statements.one(f"count_{sort}s_up_to", asked)[0])

    def _beginning(self, sort: Indexed, start: str) -> list[str]:
        asked = {"stem": start, "last": start + _LAST_CHARACTER, "limit": _PREFIX_STEMS_MAX}
        return [stem for (stem,) in self._statements.all(f"{sort}_stems_of_prefix", asked)]


def kept(stem: str) -> str:
    """As the table holds it: a key has a largest size, and a word has none."""
    if len(stem) <= _STEM_CHARS_MAX:
        return stem
    return stem[:64] + sha256(stem.encode()).hexdigest()
