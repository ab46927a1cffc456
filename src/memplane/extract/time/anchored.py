"""Times counted from the one mentioned before: `3 weeks later`, `the following Monday`, `the evening before`, `that summer`."""

from datetime import timedelta

from memplane.extract.english import is_finite
from memplane.extract.time.calendar import (
    SATURDAY,
    Granularity,
    LocalSpan,
    month_span,
    period,
    season_span,
    step,
    yearly,
)
from memplane.extract.time.durations import duration, plural, shifted, span_away, unit_at
from memplane.extract.time.frame import Frame, TimeContext
from memplane.extract.time.relative import weekday_span
from memplane.extract.time.tokens import TokenLine
from memplane.extract.time.words import MONTH, PART, PART_ALONE, SEASON, WEEKDAY, DayPart

Rule = tuple[int, Frame]

_LATER = {"later": 1, "afterwards": 1, "afterward": 1, "after": 1, "earlier": -1, "before": -1, "prior": -1}
_OPEN_ENDED = frozenset({"after", "before", "prior"})
"""Words that mostly go on with what they count from: `two days after the party`."""
_BESIDE = {
    "following": 1,
    "next": 1,
    "subsequent": 1,
    "previous": -1,
    "preceding": -1,
    "prior": -1,
    "same": 0,
}
_SAYS = frozenset(
    {"say", "think", "know", "believe", "hope", "sure", "so", "mean", "remember", "guess", "suggest"}
)
_CLAUSE_OPENS = frozenset({"", ",", ";", "and", "but", "then", "-", "("})
_PRONOUNS = frozenset({"i", "we", "he", "she", "they", "you", "it"})
_LENGTH: dict[Granularity, int] = {
    "second": 0,
    "minute": 0,
    "hour": 0,
    "part_of_day": 1,
    "day": 1,
    "weekend": 2,
    "week": 2,
    "month": 3,
    "quarter": 4,
    "season": 4,
    "year": 5,
}
_UNIT_LENGTH = {
    "second": 0,
    "minute": 0,
    "hour": 0,
    "night": 1,
    "day": 1,
    "week": 2,
    "weekend": 2,
    "fortnight": 2,
}
_UNIT_LENGTH |= {"month": 3, "quarter": 4, "season": 4, "year": 5, "decade": 5}


def anchored(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """The time that starts here, if it is counted from the one before. Without one before, nothing is known."""
    base = context.anchor
    if base is None:
        return None
    return _counted(line, at, base) or _named(line, at, base)


def _fits(base: LocalSpan, unit: str) -> bool:
    """Nobody knows what is three weeks after `2009`: what is counted from has to be as precise as the unit."""
    return _LENGTH[base.grain] <= _UNIT_LENGTH.get(unit, 0) or (unit == "week" and base.grain == "weekend")


def _counted(line: TokenLine, at: int, base: LocalSpan) -> Rule | None:
    """`3 weeks later`, `a week earlier`, `two days before that`."""
    found = duration(line, at)
    if found is None or not _fits(base, found.unit):
        return None
    sign = _LATER.get(line.word(found.end), 0)
    end = sign and _word_end(line, at, found.end)
    if not end:
        return None
    start = base.begin if sign < 0 or _LENGTH[base.grain] else base.until
    if found.unit in {"hour", "minute", "second"} and base.grain in {"day", "part_of_day"}:
        return None
    exact = line.word(at - 1) in {"exactly", "precisely"} and _LENGTH[base.grain] == 1
    span = period(shifted(start, found, sign), "day") if exact else span_away(start, found, sign)
    return end, Frame(anchor=span)


def _word_end(line: TokenLine, start: int, at: int) -> int:
    """Where `later` or `after` ends, or 0 where it goes on with something else: `later than`, `after the party`."""
    after = line.word(at + 1)
    if after in {"than", "on", "in"} and line.word(at) in {"later", "earlier"}:
        return at + 1 if after != "than" else 0
    if line.word(at) not in _OPEN_ENDED:
        return at + 1
    beyond = line.word(at + 2)
    if after in {"that", "this"} and (beyond in _PRONOUNS or not beyond.isalnum()):
        return at + 2
    clause = after in _PRONOUNS and line.word(start - 1) in _CLAUSE_OPENS
    return at + 1 if clause or not after.isalnum() else 0


def _named(line: TokenLine, at: int, base: LocalSpan) -> Rule | None:
    """`the day after`, `the following Monday`, `the next morning`, `that weekend`."""
    word = line.word(at)
    if word not in {"the", "that"}:
        return None
    offset = _BESIDE.get(line.word(at + 1))
    if offset is not None:
        found = None if duration(line, at + 2) else _beside(line, at + 2, base, offset)
        return None if found and line.word(found[0]) == "as" else found  # `the same day as the concert`
    if word == "that":
        before = line.word(at - 1)  # `research suggests that Tuesday is best`
        return None if before in _SAYS or is_finite(before) else _beside(line, at + 1, base, 0)
    end = _noun_end(line, at + 1)
    sign = {"after": 1, "before": -1}.get(line.word(end), 0) if end else 0
    stop = _word_end(line, at, end) if sign else 0
    found = _beside(line, at + 1, base, sign) if stop else None
    return found and (stop, found[1])


def _noun_end(line: TokenLine, at: int) -> int:
    unit = unit_at(line, at)
    if unit is not None:
        return unit[0]
    return at + 1 if line.word(at) in PART or line.word(at) in WEEKDAY else 0


def _beside(line: TokenLine, at: int, base: LocalSpan, offset: int) -> Rule | None:
    """What is named here, of the time of the anchor (0), or next to it."""
    word = line.word(at)
    if word in PART_ALONE or word == "night":
        return _part(at, base, PART[word], offset) if _fits(base, "day") else None
    if word in WEEKDAY:
        return (at + 1, Frame(anchor=_weekday(base, WEEKDAY[word], offset))) if _fits(base, "week") else None
    if word in MONTH or word in SEASON:
        return _once_a_year(line, at, base, offset)
    unit = unit_at(line, at)
    if unit is None or plural(line, unit[0] - 1) or unit[1] in {"second", "minute", "hour"}:
        return None
    if not _fits(base, unit[1]):
        return None
    return unit[0], Frame(anchor=_unit(base, unit[1], offset))


def _part(at: int, base: LocalSpan, part: DayPart, offset: int) -> Rule:
    return at + 1, Frame(anchor=_unit(base, "day", offset), part=part)


def _unit(base: LocalSpan, unit: str, offset: int) -> LocalSpan:
    if unit == "weekend" and offset > 0:
        return period(weekday_span(base.until - timedelta(days=1), SATURDAY, offset).begin, "weekend")
    last = base.until - timedelta(microseconds=1)
    return period(last if offset > 0 else base.begin, "day" if unit == "night" else unit, offset)


def _weekday(base: LocalSpan, weekday: int, offset: int) -> LocalSpan:
    if not offset:
        return weekday_span(period(base.begin, "week").begin - timedelta(days=1), weekday, 1)
    day = base.begin if offset < 0 else base.until - timedelta(microseconds=1)
    return weekday_span(day, weekday, offset)


def _once_a_year(line: TokenLine, at: int, base: LocalSpan, offset: int) -> Rule | None:
    """The month or season of that year, or the first one after it."""
    word, capital = line.word(at), line.capital(at)
    if word in MONTH and not capital:
        return None

    def make(year: int) -> LocalSpan:
        return month_span(year, MONTH[word]) if word in MONTH else season_span(year, SEASON[word])

    if not offset:
        return at + 1, Frame(anchor=make(base.begin.year))
    around = yearly(make, base.begin)
    found = step(around, base.until - timedelta(microseconds=1) if offset > 0 else base.begin, offset)
    return (at + 1, Frame(anchor=found)) if found else None
