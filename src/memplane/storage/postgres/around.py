"""How far a space is: whoever asks for some of that asks for the rest, so all of it is one statement.

Eleven would be as many plans to run and cursors to read, in every recall; that took longer than what they find.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memplane.storage.rulings import FLAGGED_MAX


class _Part(NamedTuple):
    """A statement that finds one row, or none."""

    query: str
    width: int
    """Of how many columns."""
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
_OF_ROWS = frozenset({"stale_turns"})
"""Who asks for these expects a list."""
KEYS = frozenset(part.key for part in _PARTS)


def statement(named: Mapping[str, str]) -> str:
    """All of them, given what each of them is."""
    columns = ", ".join(f"part{place}.*" for place in range(len(_PARTS)))
    joined = " ".join(
        f"LEFT JOIN (SELECT TRUE, found.* FROM ({_written(part, named)}) AS found) AS part{place} ON TRUE"
        for place, part in enumerate(_PARTS)
    )
    return f"SELECT {columns} FROM (SELECT) AS here {joined}"


def parted(row: Sequence[Any]) -> dict[tuple[Any, ...], Any]:
    """What each of them would have found, by what was asked."""
    found: dict[tuple[Any, ...], Any] = {}
    begin = 0
    for part in _PARTS:
        is_there, *columns = row[begin : begin + 1 + part.width]
        begin += 1 + part.width
        answer = tuple(columns) if is_there else None
        if part.query in _OF_ROWS:
            found[part.key] = [] if answer is None else [answer]
        else:
            found[part.key] = answer
    return found


def _written(part: _Part, named: Mapping[str, str]) -> str:
    return named[part.query].replace("%(limit)s", str(part.limit))
