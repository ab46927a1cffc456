"""The state of a space: the small values that every recall and every worker step reads.

Each is a statement of its own. Where a statement costs a round trip, all of them are read with one statement: nine would be as
many plans to run and cursors to read, which takes longer than what they find.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

FLAGGED_MAX = 1_000
"""Flagged memories are counted up to here: a search among vectors reads so many more, to find enough that are not flagged."""


class _Part(NamedTuple):
    """A statement that finds one row, or none."""

    query: str
    width: int
    """How many columns it has. A single column is never NULL."""
    limit: int | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.query,) if self.limit is None else (self.query, self.limit)


_PARTS = (
    _Part("head", 3),
    _Part("marks", 7),
    _Part("ruled", 1),
    _Part("library_marks", 3),
    _Part("waiting_count", 1),
    _Part("spans_waiting_count", 1),
    _Part("undistilled_count", 1),
    _Part("stale_turns", 1, limit=1),
    _Part("flagged_size", 1, limit=FLAGGED_MAX),
)
PART_KEYS = frozenset(part.key for part in _PARTS)
KEYS = PART_KEYS | {("models",), ("notes",)}
"""What is read together, by the statement and the values of its parameters."""
STEADY = frozenset({part.query for part in _PARTS} | {"models", "notes", "quarantined_turns", "tail_size"})
"""Statements whose rows a snapshot remembers."""


def statement(named: Mapping[str, str]) -> str:
    """All of them in one, given the SQL of each. Few are joined: the planner tries every order of joins, and none matters."""
    columns, joined = [], []
    for part in _PARTS:
        found = f"({_written(part, named)})"
        if part.width == 1:
            columns.append(found)
        else:
            columns.append(f"{part.query}.*")
            joined.append(f"LEFT JOIN (SELECT TRUE, row.* FROM {found} AS row) AS {part.query} ON TRUE")
    return f"SELECT {', '.join(columns)} FROM (SELECT) AS here {' '.join(joined)}"


def parts(row: Sequence[Any]) -> dict[tuple[Any, ...], list[Any]]:
    """The rows that each statement alone would have found, by its key."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    values = iter(row)
    for part in _PARTS:
        if part.width == 1:
            columns = [next(values)]
            exists = columns != [None]
        else:
            exists, *columns = islice(values, part.width + 1)
        found[part.key] = [tuple(columns)] if exists else []
    return found


def _written(part: _Part, named: Mapping[str, str]) -> str:
    return named[part.query].replace(":limit", str(part.limit))
