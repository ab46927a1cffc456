"""Spaces too large to be loaded: their vectors have an index of their own, and recall asks it. `indexing` makes it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from memplane.storage.filter import Audience, Filter
from memplane.storage.index import NearMemory, TurnHead, Vector, WordHolders
from memplane.storage.postgres.place import SpaceKey
from memplane.storage.postgres.statements import PostgresStatements, kept
from memplane.storage.postgres.text import Vector as Column
from memplane.storage.sql import conditions
from memplane.storage.words import is_prefix

_PREFIX_STEMS_MAX = 20


class LargeSearch:
    """See `VectorSearch`."""

    def __init__(self, statements: PostgresStatements, place: SpaceKey, model: int, dimension: int) -> None:
        self._statements = statements
        self._model = model
        self._written = (
            ("tenant", place.tenant),
            ("space", place.space),
            ("model", model),
            ("dimension", dimension),
        )

    def memories(self, vector: Vector, *, limit: int, audience: Audience | None) -> list[NearMemory]:
        where = conditions.told_to(audience) if audience is not None else conditions.WhereClause()
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

    def holders(self, stems: Sequence[str], *, turns: int, usual: float, each: int, best: int) -> WordHolders:
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
        return WordHolders(counts, held, total or 0.0, squares or 0.0)

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

    def _nearest(self, query: str, where: conditions.WhereClause, limit: int, /, **given: Any) -> list[Any]:
        written = (*self._written, ("limit", limit))
        return self._statements.nearest(query, str(where), written, {**where.parameters, **given})


def _spread(last: int, count: int) -> list[int]:
    return [last * number // count for number in range(count)]


def _column(vector: Vector) -> Column:
    return Column(vector.astype(np.float16).tobytes())


def searched(model: int) -> str:
    """What a space notes where its vectors of this model have an index."""
    return f"searched:{model}"
