"""`SqlReader` with few trips to the server: where a space stands comes with one, and what is going to be asked with another."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from memplane.storage.index import VectorSearch
from memplane.storage.postgres import around
from memplane.storage.postgres.ahead import Listening, NoAnswer
from memplane.storage.postgres.large import LargeSearch, searched
from memplane.storage.postgres.place import SpaceKey
from memplane.storage.postgres.statements import PostgresStatements
from memplane.storage.sql.view import NOTES, SqlReader

_KNOWN_AROUND = {NOTES, ("models",), *around.KEYS}


class PostgresReader(SqlReader):
    """See `Reader`. Of a space that is large, it says who searches it."""

    def __init__(self, statements: PostgresStatements, owner: str, place: SpaceKey) -> None:
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
        if asked not in _KNOWN_AROUND:
            return
        (places,), models, notes = self._own.together([(name, {}) for name in ("around", "models", "notes")])
        seen |= around.parted(places)
        seen["models",] = models
        seen[NOTES] = dict(notes)
        self._own.ruled = bool(seen["ruled",][0])

    def vector_search(self, model: int) -> VectorSearch | None:
        dimension = self._note(searched(model))
        return None if dimension is None else LargeSearch(self._own, self._place, model, int(dimension))
