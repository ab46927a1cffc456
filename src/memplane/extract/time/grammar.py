"""Parts into frames, frames into ranges: one expression from one place in the line."""

from typing import NamedTuple

import msgspec

from memplane.extract.time.anchored import anchored
from memplane.extract.time.clocks import clock_rule, hour_at, spelled_clock
from memplane.extract.time.dates import (
    day_alone,
    day_month,
    decade,
    month_alone,
    month_day,
    quarter,
    week_number,
    weekday,
    year_after,
    year_alone,
    year_month_day,
)
from memplane.extract.time.frame import Frame, TimeContext, merge
from memplane.extract.time.holidays import holiday, named
from memplane.extract.time.numeric import free, numeric
from memplane.extract.time.relative import (
    bare_period,
    before_last,
    counted,
    day_word,
    edge,
    modified,
    nth,
    within_period,
)
from memplane.extract.time.tokens import TokenLine
from memplane.extract.time.words import ABOUT, COLD, HOT, JOIN, PART, PART_ALONE, SEASON, listed
from memplane.extract.time.years import apostrophe_year, spelled_year

Rule = tuple[int, Frame]

_JOIN_MAX = 3
_PARTS_MAX = 8
_TIME_LEADS = frozenset({"at", "@", "by", "after", "before", "between", "-"}) | ABOUT
_YEAR_LEADS = frozenset(
    listed("in since until till by from during of before after through around about circa year for between")
)
_OPEN = {"after": 1, "from": 1, "before": -1}


class ParsedFrame(NamedTuple):
    """A frame and the tokens it took."""

    start: int
    end: int
    frame: Frame


def parse_frame(line: TokenLine, at: int, context: TimeContext) -> ParsedFrame | None:
    """As many parts as belong together from here on, in any order."""
    first = _component(line, at, Frame(), context, line.word(at - 1))
    if first is None:
        return None
    end, frame = extend(line, *first, context)
    if frame.part is None and frame.clock is None and not frame.dated():
        return None
    return ParsedFrame(at, end, frame)


def extend(line: TokenLine, end: int, frame: Frame, context: TimeContext) -> Rule:
    """Read what follows as long as it belongs to the same expression."""
    for _ in range(_PARTS_MAX):
        found = _next(line, end, frame, context)
        if found is None:
            break
        end, frame = found
    return end, frame


def _next(line: TokenLine, at: int, frame: Frame, context: TimeContext) -> Rule | None:
    """The part that follows, after at most a few connecting words."""
    start = at
    unfinished = not frame.dated() and frame.part is None and frame.clock is None
    allowed = _EDGE_JOIN if unfinished else JOIN
    for _ in range(_JOIN_MAX + 1):
        if line.breaks(start):
            return None
        opening = _opening(line, start, frame)
        found = _component(
            line, start + bool(opening), frame, context, line.word(start - 1) if start > at else ""
        )
        if opening and found is not None and found[1].clock is not None:
            found = found[0], msgspec.structs.replace(found[1], clock_open=opening)
        elif opening:
            found = None
        if found is not None and not _joins(line, start, frame, found[1]):
            return None
        if found is not None:
            both = merge(frame, found[1])
            return None if both is None else (found[0], both)
        if line.word(start) not in allowed:
            return None
        start += 1
    return None


def _joins(line: TokenLine, at: int, frame: Frame, part: Frame) -> bool:
    """`Saturday for 9am`, but not `Saturday for the first`; `9am - Morning Routine` is a title, not a time."""
    before = line.word(at - 1)
    if before == "for":
        return part.clock is not None
    if before == "(" and part.year is not None and part.month is None:
        return False
    return not (before in {"-", "("} and frame.clock is not None and part.part is not None)


_EDGE_JOIN = frozenset({"of", "the", "in", "-"})


def _opening(line: TokenLine, at: int, frame: Frame) -> int:
    """`after 9pm` or `before noon` next to a day bounds the day."""
    return _OPEN.get(line.word(at), 0) if frame.daily() and line.word(at) != "from" else 0


def _component(line: TokenLine, at: int, frame: Frame, context: TimeContext, lead: str) -> Rule | None:
    """One part, by what its first token is."""
    if at >= len(line):
        return None
    if line.number(at) is not None:
        return _from_number(line, at, frame, context, lead)
    return _from_word(line, at, frame, context, lead)


def _from_number(line: TokenLine, at: int, frame: Frame, context: TimeContext, lead: str) -> Rule | None:
    if not free(line, at):
        return None
    if line.word(at - 1) == "'":
        short = apostrophe_year(line, at, context, lead=lead)
        if short is not None:
            return short
    hourly = lead in _TIME_LEADS or frame.days is not None or (lead == "from" and frame.daily())
    if frame.clock is None and hourly:
        timed = clock_rule(line, at, frame, lead=lead)
        if timed is not None:
            return timed
    return (
        anchored(line, at, context)
        or counted(line, at, context)
        or (None if frame.days else day_month(line, at, context))
        or (None if frame.days else year_month_day(line, at))
        or numeric(line, at, frame, context)
        or decade(line, at, context)
        or quarter(line, at, context)
        or week_number(line, at, context)
        or nth(line, at)
        or clock_rule(line, at, frame, lead=lead)
        or year_alone(line, at, frame, lead=lead in _YEAR_LEADS or frame.dated())
        or (None if frame.days else day_alone(line, at, frame, lead=lead in {"on", "the"}))
    )


def _from_word(line: TokenLine, at: int, frame: Frame, context: TimeContext, lead: str) -> Rule | None:
    word = line.word(at)
    if word == "'":
        return apostrophe_year(line, at, context, lead=lead)
    if word not in HOT and word not in COLD and not named(line, at):
        return None
    if word == "mid" and line.word(at + 1) == "day":
        return _noon(line, at)
    if word == "the":
        return _from_article(line, at, frame, context)
    return (
        anchored(line, at, context)
        or holiday(line, at)
        or nth(line, at)
        or before_last(line, at, context)
        or day_word(line, at, context)
        or modified(line, at, context)
        or month_day(line, at, context)
        or month_alone(line, at, context)
        or weekday(line, at)
        or within_period(line, at, context)
        or edge(line, at, frame, context)
        or bare_period(line, at, frame, context)
        or _part(line, at, frame)
        or _season(line, at, context)
        or _from_count(line, at, frame, context, lead)
        or week_number(line, at, context)
        or year_alone(line, at, frame, lead=True)
    )


def _from_article(line: TokenLine, at: int, frame: Frame, context: TimeContext) -> Rule | None:
    """After `the`: an ordinal day, or something that may carry an article."""
    if frame.days is None:
        found = day_month(line, at, context) or day_alone(line, at, frame, lead=True)
        if found is not None and nth(line, at + 1) is None:
            return found
    return (
        anchored(line, at, context)
        or holiday(line, at)
        or holiday(line, at + 1)
        or nth(line, at + 1)
        or before_last(line, at + 1, context)
        or day_word(line, at + 1, context)
        or modified(line, at + 1, context)
        or within_period(line, at + 1, context)
        or edge(line, at + 1, frame, context)
        or bare_period(line, at, frame, context)
        or decade(line, at + 1, context)
        or quarter(line, at + 1, context)
        or _season_of_year(line, at + 1, context)
        or counted(line, at, context)
        or (year_alone(line, at + 1, frame, lead=True) if line.word(at + 1) == "year" else None)
        or (_noon(line, at + 1) if line.word(at + 1) in {"noon", "midday"} else None)
    )


def _noon(line: TokenLine, at: int) -> Rule | None:
    read = hour_at(line, at)
    return read and (read[0], Frame(clock=read[1]))


def _from_count(line: TokenLine, at: int, frame: Frame, context: TimeContext, lead: str) -> Rule | None:
    """What starts with a number in words, or with a word such as `half` or `noon`."""
    return (
        counted(line, at, context)
        or (None if frame.days else day_month(line, at, context))
        or quarter(line, at, context)
        or decade(line, at, context)
        or spelled_year(line, at, lead=lead)
        or (None if frame.clock else clock_rule(line, at, frame, lead=lead))
        or (None if frame.days or lead != "the" else day_alone(line, at, frame, lead=True))
        or (spelled_clock(line, at) if frame == Frame() else None)
    )


def _part(line: TokenLine, at: int, frame: Frame) -> Rule | None:
    """`morning`, `afternoonish`, `early hours of the morning`; `lunch` and `sunset` only next to a day."""
    if line.word(at) == "hours" and line.word(at + 1) == "of" and line.word(at + 2) == "the":
        at += 3
    word = line.word(at).removesuffix("ish")
    if word not in PART or (word not in PART_ALONE and word != "night" and not frame.dated()):
        return None
    return at + 1, Frame(part=PART[word], strong=False)


def _season_of_year(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`the summer of 2019`; without a year, `the` does not belong to it."""
    found = _season(line, at, context)
    return found if found and found[1].year is not None else None


def _season(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    season = SEASON.get(line.word(at).removesuffix("'s"))
    if season is None:
        return None
    end, year = year_after(line, at + 1, context, short=False)
    return end, Frame(season=season, year=year, strong=year is not None)
