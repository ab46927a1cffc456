"""Named queries over one connection: what readers and writers are made of."""

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from memplane.storage import queries
from memplane.storage.filter import Filter
from memplane.storage.index import TURNS_PER_ENTRY_MAX
from memplane.storage.library import SPANS_PER_DOCUMENT_MAX
from memplane.storage.sqlite import conditions, rows
from memplane.storage.words import is_prefix
from memplane.types import Memory

_LAST_CHARACTER = "\U0010ffff"
_decode_numbers = msgspec.json.Decoder(list[int]).decode

_PARTS = {
    "{columns}": rows.MEMORY_COLUMNS,
    "{turn_columns}": rows.TURN_COLUMNS,
    "{turns_per_entry}": str(TURNS_PER_ENTRY_MAX),
    "{live}": conditions.LIVE,
    "{not_reserved}": conditions.NOT_RESERVED,
    "{reserved}": conditions.RESERVED,
    "{not_faded}": conditions.NOT_FADED,
    "{erasable}": conditions.ERASABLE,
    "{line_columns}": rows.LINE_COLUMNS,
    "{document_columns}": rows.DOCUMENT_COLUMNS,
    "{section_columns}": rows.SECTION_COLUMNS,
    "{span_columns}": rows.SPAN_COLUMNS,
    "{collection_columns}": rows.COLLECTION_COLUMNS,
    "{spans_per_document}": str(SPANS_PER_DOCUMENT_MAX),
}


def _assembled(sql: str) -> str:
    for name, part in _PARTS.items():
        sql = sql.replace(name, part)
    return sql


SQL = {
    name: _assembled(sql)
    for name, sql in queries.load(
        "memplane.storage.sqlite", "queries.sql", "library.sql", "compaction.sql", "overview.sql"
    ).items()
}


class Session:
    """One connection inside a transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def _ready(self) -> None:
        """A hook for the writer, which may have to write before it reads."""

    def _filtered(self, query: str, where: conditions.Where, /, **parameters: Any) -> list[Any]:
        self._ready()
        sql = SQL[query].replace("{where}", str(where))
        return self._connection.execute(sql, {**where.parameters, **parameters}).fetchall()

    def _all(self, query: str, /, **parameters: Any) -> list[Any]:
        self._ready()
        return self._read(query, **parameters)

    def _read(self, query: str, /, **parameters: Any) -> list[Any]:
        return self._connection.execute(SQL[query], parameters).fetchall()

    def _one(self, query: str, /, **parameters: Any) -> Any:
        self._ready()
        return self._connection.execute(SQL[query], parameters).fetchone()

    def _memories(self, query: str, where: Filter, /, **parameters: Any) -> list[Memory]:
        found = self._filtered(query, conditions.of_memories(where), **parameters)
        return [rows.memory_from(row) for row in found]

    def _holding(self, query: str, stem: str) -> list[int]:
        """The number of every turn or span that holds a stem, once for each time it does."""
        if is_prefix(stem):
            found = self._one(f"{query}_of_prefix", stem=stem, last=stem + _LAST_CHARACTER)
        else:
            found = self._one(query, stem=stem)
        return _decode_numbers(found[0])

    def _common(self, query: str, words: Sequence[str], beyond: int) -> set[str]:
        """Of these words, those that more than so many hold; the query looks no further than its limit."""
        return {word for word in words if self._one(query, match=match([word]), limit=beyond + 1)[0] > beyond}

    def _note(self, name: str) -> str | None:
        row = self._one("note", name=name)
        return None if row is None else str(row[0])

    def _set_note(self, name: str, value: str) -> None:
        self._ready()
        self._many("set_note", [(name, value)])

    def _many(self, query: str, values: Sequence[rows.Row]) -> None:
        if values:
            self._connection.executemany(SQL[query], values)

    def _indexed(self) -> int:
        return int(self._note("indexed") or 0)


def match(words: Sequence[str]) -> str:
    """Any of the words, each quoted: nothing a user types is ever an operator."""
    quoted = ((word, word.replace("\x00", " ").replace('"', '""')) for word in words)
    return " OR ".join(f'"{text}" *' if is_prefix(word) else f'"{text}"' for word, text in quoted)
