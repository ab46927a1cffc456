"""Lengths of time: `three weeks`, `a year and a half`, `2 weeks and 2 days`, and the vague `a few days`."""

from datetime import datetime
from typing import NamedTuple

from memplane.extract.time.calendar import LocalSpan, add_units, period
from memplane.extract.time.tokens import TokenLine, amount
from memplane.extract.time.words import UNIT, VAGUE

FINER = {
    "decade": "year",
    "year": "month",
    "quarter": "month",
    "season": "month",
    "month": "day",
    "fortnight": "day",
    "week": "day",
    "day": "day",
    "night": "day",
    "hour": "minute",
    "minute": "second",
    "second": "second",
}
"""How precisely a length that is not a whole number of units is meant: one step finer than its unit."""
COARSE = (
    "second",
    "minute",
    "hour",
    "night",
    "day",
    "week",
    "fortnight",
    "month",
    "quarter",
    "year",
    "decade",
)
"""Units from the shortest on: a sum goes on with shorter ones only."""
_NAMED_PERIODS = frozenset({"month", "quarter", "year"})
"""`Two months ago` names a month and `three years ago` a year: nobody counts their days."""
_WHOLE = frozenset({"weekend", "season"})
_UNITS_MAX = 100_000


class Duration(NamedTuple):
    """Amounts and their units, the largest first; `bounds` are the least and most units of a vague one."""

    end: int
    parts: tuple[tuple[float, str], ...]
    bounds: tuple[int, int] | None = None

    @property
    def unit(self) -> str:
        """The shortest unit, which says how precise the length is."""
        return self.parts[-1][1]

    @property
    def whole(self) -> bool:
        return len(self.parts) == 1 and self.parts[0][0] == int(self.parts[0][0])


def unit_at(line: TokenLine, at: int) -> tuple[int, str] | None:
    """A unit's name, in the singular, plural or with 's; `week end` and `week-end` are one word."""
    word = line.word(at).removesuffix("'s")
    if word == "week" and line.word(at + 1) in {"end", "ends"}:
        return at + 2, "weekend"
    if word == "week" and line.word(at + 1) == "-" and line.word(at + 2) in {"end", "ends"}:
        return at + 3, "weekend"
    unit = UNIT.get(word)
    if unit is None or (word == "sec" and line.capital(at)):
        return None
    return at + 1, unit


def plural(line: TokenLine, at: int) -> bool:
    """`weeks`, but not `week's`."""
    return line.word(at).endswith("s") and not line.word(at).endswith("'s")


def duration(line: TokenLine, at: int) -> Duration | None:
    """The length of time that starts here, as many parts as were said."""
    found = _part(line, at)
    if found is None:
        return None
    parts = [found[1]]
    end = found[0]
    while True:
        joined = end + (line.word(end) == ",")
        joined += line.word(joined) == "and"
        more = _part(line, joined)
        if more is None or not _shorter(more[1][1], parts[-1][1]):
            break
        end = more[0]
        parts.append(more[1])
    return Duration(end, tuple(parts), _bounds(line, at, parts))


def _part(line: TokenLine, at: int) -> tuple[int, tuple[float, str]] | None:
    found = amount(line, at)
    if found is None:
        return None
    end, count = found
    end += line.word(end) in {"more", "whole", "full", "long"}
    unit = (end + 1, "hour") if line.word(end) == "h" else unit_at(line, end)
    if unit is None or not 0 < count <= _UNITS_MAX:
        return None
    end, name = unit
    more = {"half": 0.5, "quarter": 0.25}.get(line.word(end + 2), 0.0)
    if more and line.word(end) == "and" and line.word(end + 1) in {"a", "an"}:
        return end + 3, (count + more, name)
    return end, (count, name)


def _shorter(unit: str, than: str) -> bool:
    if unit not in COARSE or than not in COARSE:
        return False
    return COARSE.index(unit) < COARSE.index(than)


def _bounds(line: TokenLine, at: int, parts: list[tuple[float, str]]) -> tuple[int, int] | None:
    """`A couple` are one to three and `a few` two to six: not of hours, which are short enough."""
    word = next((line.word(index) for index in (at, at + 1, at + 2) if line.word(index) in VAGUE), None)
    if word is None or len(parts) > 1 or parts[0][1] in {"second", "minute", "hour"}:
        return None
    least, most = VAGUE[word]
    return least, most + (word == "few" and parts[0][1] in {"day", "night"})


def shifted(moment: datetime, length: Duration, sign: int) -> datetime:
    """The moment so much later, or earlier where `sign` is negative."""
    for count, unit in length.parts:
        moment = add_units(moment, unit, sign * count)
    return moment


def span_away(moment: datetime, length: Duration, sign: int) -> LocalSpan:
    """The stretch so far away, as precisely as it was said: the day for weeks, the month for months, the year for years."""
    unit = length.unit
    if length.bounds is not None:
        near, far = (period(add_units(moment, unit, sign * count), _grain(length)) for count in length.bounds)
        first, last = sorted((near, far))
        return LocalSpan(first.begin, last.until, first.grain)
    if unit in _WHOLE:
        return period(moment, unit, round(sign * length.parts[0][0]))
    return period(shifted(moment, length, sign), _grain(length))


def _grain(length: Duration) -> str:
    named = length.unit in _NAMED_PERIODS and (length.whole or len(length.parts) > 1)
    return length.unit if named else FINER.get(length.unit, "day")
