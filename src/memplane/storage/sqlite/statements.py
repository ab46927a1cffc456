"""The named statements over a SQLite connection, and its index of words, FTS5."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import apsw
import msgspec

from memplane.storage.index import TURNS_PER_ENTRY_MAX
from memplane.storage.library import SPANS_PER_DOCUMENT_MAX
from memplane.storage.sql.statements import SHARED, Indexed, Parameters, Row, load
from memplane.storage.sql.tables import SPACE_MOVES
from memplane.storage.words import index_text, is_prefix, prefix_of

_LAST_CHARACTER = "\U0010ffff"
_decode_numbers = msgspec.json.Decoder(list[int]).decode


class SqliteDialect:
    """See `Dialect`. Lists travel as JSON."""

    def texts(self, parameter: str, alias: str) -> str:
        return f"json_each(:{parameter}) {alias}"

    numbers = texts

    def list_of(self, column: str) -> str:
        return f"json_group_array({column})"

    def larger(self, left: str, right: str) -> str:
        return f"max({left}, {right})"

    def place_of(self, part: str, text: str) -> str:
        return f"instr({text}, {part})"

    def member(self, column: str, name: str) -> str:
        return f"json_extract({column}, '$.{name}')"

    def entry_of(self, turn: str) -> str:
        return f"{turn}.n / {TURNS_PER_ENTRY_MAX}"

    def document_of(self, part: str) -> str:
        return f"{part}.n / {SPANS_PER_DOCUMENT_MAX}"

    def no_bytes(self) -> str:
        return "x''"

    def statement(self, sql: str) -> str:
        return sql


SQL = load(SqliteDialect(), SHARED, SPACE_MOVES, ("memplane.storage.sqlite", ["words.sql"]))


class SqliteStatements:
    """See `Statements`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.words = SqliteWords(self)

    def all(self, query: str, parameters: Parameters | Row = ()) -> list[Any]:
        return self._connection.execute(SQL[query], parameters).fetchall()

    def one(self, query: str, parameters: Parameters | Row = ()) -> Any:
        return self._connection.execute(SQL[query], parameters).fetchone()

    def filtered(self, query: str, where: str, parameters: Parameters) -> list[Any]:
        return self._connection.execute(SQL[query].replace("{where}", where), parameters).fetchall()

    def run(self, query: str, parameters: Parameters | Row = ()) -> int:
        self._connection.execute(SQL[query], parameters)
        return self._connection.changes()

    def many(self, query: str, values: Sequence[Row]) -> None:
        self._connection.executemany(SQL[query], values)

    def listed(self, values: Iterable[Any]) -> str:
        return json.dumps(list(values))

    def clear(self, tables: Sequence[str]) -> None:
        for table in tables:
            self._connection.execute(f"DELETE FROM {table}")

    def empty_index(self, table: str) -> None:
        """As FTS5 wants to be told."""
        self._connection.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")

    def save(self) -> None:
        self._connection.execute("SAVEPOINT work")

    def keep(self) -> None:
        self._connection.execute("RELEASE work")

    def undo(self) -> None:
        self._connection.execute("ROLLBACK TO work")
        self._connection.execute("RELEASE work")


class SqliteWords:
    """See `Words`. FTS5 writes a whole segment at every commit it has something for."""

    def __init__(self, statements: SqliteStatements) -> None:
        self._statements = statements

    def add(self, sort: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        self._statements.many(f"add_{sort}_words", [(n, index_text(text)) for n, text in texts])

    def drop(self, sort: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        self._statements.many(f"drop_{sort}_words", [(n, index_text(text)) for n, text in texts])

    def clear(self) -> None:
        for table in ("turn_index", "memory_index", "span_index"):
            self._statements.empty_index(table)

    def matching(self, sort: Indexed, words: Sequence[str]) -> str:  # noqa: ARG002 - each index is asked alike
        return match(words)

    def holding(self, sort: Indexed, stem: str) -> list[int]:
        if is_prefix(stem):
            first = prefix_of(stem)
            last = {"stem": first, "last": first + _LAST_CHARACTER}
            found = self._statements.one(f"{sort}_occurrences_of_prefix", last)
        else:
            found = self._statements.one(f"{sort}_occurrences", {"stem": stem})
        return _decode_numbers(found[0])

    def holding_each(self, sort: Indexed, stems: Sequence[str]) -> dict[str, list[int]]:
        return {stem: self.holding(sort, stem) for stem in stems}

    def common(self, sort: Indexed, words: Sequence[str], beyond: int) -> set[str]:
        return {word for word in words if self._count(sort, word, beyond + 1) > beyond}

    def frequencies(self, stems: Sequence[str]) -> Iterable[tuple[str, int]]:
        asked = {"stems": self._statements.listed(stems)}
        return [
            *self._statements.all("turn_frequency", asked),
            *self._statements.all("memory_frequency", asked),
        ]

    def _count(self, sort: Indexed, word: str, limit: int) -> int:
        asked = {"match": match([word]), "limit": limit}
        return int(self._statements.one(f"count_{sort}s_up_to", asked)[0])


def match(words: Sequence[str]) -> str:
    """Any of the words, each quoted: nothing a user types is ever an operator."""
    quoted = ((word, prefix_of(word).replace("\x00", " ").replace('"', '""')) for word in words)
    return " OR ".join(f'"{text}" *' if is_prefix(word) else f'"{text}"' for word, text in quoted)
