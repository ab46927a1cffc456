"""Named statements over one connection: what readers and writers are made of."""

from collections.abc import Iterable, Sequence
from typing import Any

from memplane.storage.filter import Filter
from memplane.storage.sql import conditions, rows
from memplane.storage.sql.statements import Statements
from memplane.types import Memory


class SqlSession:
    """One connection inside a transaction."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements
        self._words = statements.words

    def _ready(self) -> None:
        """A hook for the writer, which may have to write before it reads."""

    def _filtered(self, query: str, where: conditions.WhereClause, /, **parameters: Any) -> list[Any]:
        self._ready()
        return self._statements.filtered(query, str(where), {**where.parameters, **parameters})

    def _all(self, query: str, /, **parameters: Any) -> list[Any]:
        self._ready()
        return self._statements.all(query, parameters)

    def _one(self, query: str, /, **parameters: Any) -> Any:
        self._ready()
        return self._statements.one(query, parameters)

    def _run(self, query: str, *values: Any) -> int:
        self._ready()
        return self._statements.run(query, values)

    def _many(self, query: str, values: Sequence[rows.Row]) -> None:
        if values:
            self._statements.many(query, values)

    def _list(self, values: Iterable[Any]) -> Any:
        return self._statements.listed(values)

    def _memories(self, query: str, where: Filter, /, **parameters: Any) -> list[Memory]:
        found = self._filtered(query, conditions.of_memories(where), **parameters)
        return [rows.memory_from(row) for row in found]

    def _note(self, name: str) -> str | None:
        row = self._one("note", name=name)
        return None if row is None else str(row[0])

    def _set_note(self, name: str, value: str) -> None:
        self._ready()
        self._many("set_note", [(name, value)])

    def _indexed(self) -> int:
        return int(self._note("indexed") or 0)
