"""The statements of a space in SQLite, and its word index, FTS5."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import apsw
import msgspec

from memplane.storage.engine import Dialect, Indexed, Parameters, Request, Row
from memplane.storage.numbers import SPANS_PER_DOCUMENT_MAX, TURNS_PER_ENTRY_MAX
from memplane.storage.statements import SPACE, load
from memplane.storage.words import index_text, is_prefix, prefix_of

_LAST_CHARACTER = "\U0010ffff"
_decode_numbers = msgspec.json.Decoder(list[int]).decode

DIALECT = Dialect(
    texts="json_each(:{0}) {1}",
    numbers="json_each(:{0}) {1}",
    list_of="json_group_array({0})",
    larger="max({0}, {1})",
    place_of="instr({1}, {0})",
    member="json_extract({0}, '$.{1}')",
    entry_of=f"{{0}}.n / {TURNS_PER_ENTRY_MAX}",
    document_of=f"{{0}}.n / {SPANS_PER_DOCUMENT_MAX}",
    no_bytes="x''",
    finish=str,
)
"""Lists are JSON."""
SQL = load(DIALECT, *SPACE, ("memplane.storage.sqlite", ["words.sql"]))


class SqliteConnection:
    """See `Connection`."""

    remote: ClassVar[bool] = False

    def __init__(self, connection: apsw.Connection, sql: dict[str, str] = SQL) -> None:
        self._connection = connection
        self._sql = sql
        self.reviewed = True

    @property
    def words(self) -> "SqliteFullText":
        return SqliteFullText(self._connection)

    def execute(self, query: str, parameters: Parameters | Row = (), where: str | None = None) -> list[Any]:
        sql = self._sql[query]
        if where is not None:
            sql = sql.replace("{where}", where)
        return self._connection.execute(sql, parameters).fetchall()

    def execute_many(self, query: str, rows: Sequence[Row]) -> None:
        self._connection.executemany(self._sql[query], rows)

    def execute_batch(self, requests: Sequence[Request]) -> list[list[Any]]:
        return [self.execute(*request) for request in requests]


class SqliteFullText:
    """See `FullText`. FTS5 writes a whole segment at every commit it has something for."""

    __slots__ = ("_connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def add(self, kind: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        rows = [(n, index_text(text)) for n, text in texts]
        self._connection.executemany(SQL[f"add_{kind}_words"], rows)

    def drop(self, kind: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        rows = [(n, index_text(text)) for n, text in texts]
        self._connection.executemany(SQL[f"drop_{kind}_words"], rows)

    def clear(self) -> None:
        for table in ("turn_index", "memory_index", "span_index"):
            self._connection.execute(f"INSERT INTO {table} ({table}) VALUES ('delete-all')")

    def match(self, kind: Indexed, words: Sequence[str]) -> str:  # noqa: ARG002 - all indexes have one syntax
        """Each word is quoted: nothing in it is an operator."""
        quoted = ((word, prefix_of(word).replace("\x00", " ").replace('"', '""')) for word in words)
        return " OR ".join(f'"{text}" *' if is_prefix(word) else f'"{text}"' for word, text in quoted)

    def occurrences(self, kind: Indexed, stems: Sequence[str]) -> dict[str, list[int]]:
        return {stem: self._occurrences(kind, stem) for stem in stems}

    def frequencies(self, stems: Sequence[str]) -> Iterable[tuple[str, int]]:
        parameters = {"stems": json.dumps(stems)}
        for query in ("turn_frequency", "memory_frequency"):
            yield from self._connection.execute(SQL[query], parameters)

    def _occurrences(self, kind: Indexed, stem: str) -> list[int]:
        query, parameters = f"{kind}_occurrences", {"stem": stem}
        if is_prefix(stem):
            first = prefix_of(stem)
            query, parameters = f"{query}_of_prefix", {"stem": first, "last": first + _LAST_CHARACTER}
        ((found,),) = self._connection.execute(SQL[query], parameters).fetchall()
        return _decode_numbers(str(found))
