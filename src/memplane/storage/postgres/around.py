"""How far a space is: whoever asks for some of that asks for the rest, so all of it is one statement.

Nine would be as many plans to run and cursors to read, in every recall; that took longer than what they find.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from memplane.storage.rulings import FLAGGED_MAX


class _Part(NamedTuple):
    """A statement that finds one row, or none."""

    query: str
    width: int
    """Of how many columns; one that stands alone is never NULL."""
    limit: int | None = None
    listed: bool = False
    """Who asks for it expects a list of rows."""

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
    _Part("stale_turns", 1, limit=1, listed=True),
    _Part("flagged_size", 1, limit=FLAGGED_MAX),
)
KEYS = frozenset(part.key for part in _PARTS)


def statement(named: Mapping[str, str]) -> str:
    """All of them, given what each of them is. Few are joined: in which order is thought about for long, and there is none
    that matters."""
    columns, joined = [], []
    for part in _PARTS:
        found = f"({_written(part, named)})"
        if part.width == 1:
            columns.append(found)
        else:
            columns.append(f"{part.query}.*")
            joined.append(f"LEFT JOIN (SELECT TRUE, row.* FROM {found} AS row) AS {part.query} ON TRUE")
    return f"SELECT {', '.join(columns)} FROM (SELECT) AS here {' '.join(joined)}"


def parted(row: Sequence[Any]) -> dict[tuple[Any, ...], Any]:
    """What each of them would have found, by what was asked."""
    found: dict[tuple[Any, ...], Any] = {}
    values = iter(row)
    for part in _PARTS:
        if part.width == 1:
            columns = [next(values)]
            is_there = columns != [None]
        else:
            is_there, *columns = islice(values, part.width + 1)
        answer = tuple(columns) if is_there else None
        if part.listed:
            found[part.key] = [] if answer is None else [answer]
        else:
            found[part.key] = answer
    return found


def _written(part: _Part, named: Mapping[str, str]) -> str:
    return named[part.query].replace("%(limit)s", str(part.limit))
