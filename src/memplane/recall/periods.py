"""The times a query names, and whether a turn or a memory belongs to one of them."""

import calendar
import re
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
import numpy as np

from memplane.clock import DAY, Instant, to_datetime, to_instant
from memplane.extract.time import TimeMention, find_times
from memplane.models.vectors import Floats, Ints
from memplane.types import Memory, MentionedTime

_SPAN_MAX = 400 * DAY
"""A longer range says nothing about when."""
_SHORT = 8 * DAY
_DAYS_AFTER_SHORT = 7
_DAYS_AFTER_LONG = 1
"""An event is usually discussed within a week. After a month, turns of the next day belong to it, not those of the
next week."""
_YEARS_MAX = 50
_LONG_TIMES = 4
"""A mentioned range that is this many times as long as the period says little about it."""

_PLACED = frozenset({"absolute", "relative", "range"})
"""Kinds of mentions that have a place in time; a duration or a repetition has none."""
_YEAR = re.compile(r"\b\d{4}\b")
_JOINED = re.compile(r"\W*(?:\b(?:and|or|to)\b)?(?:\s+(?:in|on|the))*\W*", re.IGNORECASE)
_HAS_YEAR = re.compile(r"\d{4}|['\u2019]\d\d\b|\d[/.-]\d+[/.-]\d")
_UP_TO_NOW = re.compile(r"\bpast\b|\blast (?!decade)\w+ \w*s$", re.IGNORECASE)
"""`The past month` and `the last two months` end now; `last month` ended with the calendar's month."""
_AGO = re.compile(r"\bago$", re.IGNORECASE)
_VAGUE = re.compile(r"\b(?:few|couple|several)\b", re.IGNORECASE)
"""`A few weeks ago` is a range already."""
_AGO_SHARE = 5
_AGO_DAYS_MAX = 30
"""`Ten days ago` may be eight or twelve."""
_AS_OF = re.compile(r"\bas (?:of|at)(?: the)?(?: (?:beginning|start|end|middle) of)?\s*$", re.IGNORECASE)
_ASKS = re.compile(
    r"\?|\b(?:what|who|whom|whose|where|when|which|how|why)\b"
    r"|^\W*(?:is|are|am|was|were|do|does|did|has|have|had|can|could|tell|list|show|give|name)\b",
    re.IGNORECASE,
)
_SINCE = re.compile(r"since\b", re.IGNORECASE)


class Period(msgspec.Struct, frozen=True):
    """A time a query names: from `begin` up to, not including, `until`."""

    begin: Instant
    until: Instant
    any_year: bool = False
    """No year was said. The latest one before the reference is meant, but the same days of another year count a
    little: a query may be asked years after the conversation."""

    @property
    def short(self) -> bool:
        return self.until - self.begin <= _SHORT

    @property
    def said_until(self) -> Instant:
        """Until when turns are likely to be about it."""
        return self.until + DAY * (_DAYS_AFTER_SHORT if self.short else _DAYS_AFTER_LONG)

    def in_year(self, offset: int) -> "Period":
        """The same days some years later."""
        begin = _years_later(to_datetime(self.begin), offset)
        return Period(begin, begin + self.until - self.begin)


def _years_later(moment: datetime, offset: int) -> Instant:
    year = moment.year + offset
    day = min(moment.day, calendar.monthrange(year, moment.month)[1])
    return to_instant(moment.replace(year=year, day=day))


def find_periods(question: str, reference: Instant) -> tuple[tuple[Period, ...], Instant | None]:
    """The periods a query asks about, and the time as of which it wants to know.

    `As of March` is not `in March`: it asks for what was known at the end of March. Only a question can mean that; a
    statement such as `as of Monday I am on leave` says what is the case now.
    """
    periods: list[Period] = []
    as_of: Instant | None = None
    mentions = find_times(question, reference, prefer="past")
    for number, mention in enumerate(mentions):
        if _AS_OF.search(question, 0, mention.start):
            if mention.until <= reference and _ASKS.search(question):
                as_of = mention.until - 1
        elif mention.kind in _PLACED and mention.until - mention.begin <= _SPAN_MAX:
            following = mentions[number + 1] if number + 1 < len(mentions) else None
            periods.append(_period(question, mention, following, reference))
    return tuple(periods), as_of


def _period(question: str, mention: TimeMention, following: TimeMention | None, reference: Instant) -> Period:
    begin, until = mention.begin, mention.until
    if mention.kind == "relative" and until < reference and _UP_TO_NOW.search(mention.raw):
        return Period(begin + reference - until, reference)
    if _AGO.search(mention.raw):
        if _VAGUE.search(mention.raw):
            return Period(begin, until)
        begin, until = _counted_back(mention, reference)
        about = min(round((reference - begin) / (_AGO_SHARE * DAY)), _AGO_DAYS_MAX) * DAY
        return Period(begin - about, min(until + about, max(until, reference)))
    if mention.kind != "absolute" or _HAS_YEAR.search(mention.raw):
        return Period(begin, until)
    if following is not None and _JOINED.fullmatch(question, mention.end, following.start):
        year = _YEAR.search(following.raw)
        if year is not None:  # `June or July 2022`
            return Period(begin, until).in_year(int(year[0]) - to_datetime(begin).year)
    return Period(begin, until, any_year=True)


def _counted_back(mention: TimeMention, reference: Instant) -> tuple[Instant, Instant]:
    """The day of `two months ago`, or the month of `two years ago`: a question means the time around it, not the
    month or year of the calendar."""
    begin, now = to_datetime(mention.begin), to_datetime(reference)
    if mention.granularity == "month" and "month" in mention.raw.lower():
        last = calendar.monthrange(begin.year, begin.month)[1]
        day = to_instant(begin.replace(day=min(now.day, last)))
        return day, day + DAY
    if mention.granularity == "year" and "year" in mention.raw.lower():
        first = begin.replace(month=now.month)
        return to_instant(first), to_instant(first) + calendar.monthrange(first.year, first.month)[1] * DAY
    return mention.begin, mention.until


def date_match(periods: Iterable[Period], at: Ints) -> Floats:
    """For turns said at these times: 2 in a period the query names or soon after it, 1 in the same days of another
    year if it names none, else 0."""
    match = np.zeros(len(at))
    if not len(at):
        return match
    for period in periods:
        match = np.maximum(match, 2.0 * ((at >= period.begin) & (at < period.said_until)))
        if not period.any_year:
            continue
        here = to_datetime(period.begin).year
        years = np.unique(at.astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970)
        for year in years[-_YEARS_MAX:].tolist():
            other = period.in_year(year - here)
            match = np.maximum(match, (at >= other.begin) & (at < other.said_until))
    return match


def time_match(memories: Iterable[Memory], periods: Sequence[Period]) -> dict[str, float]:
    """For each memory, 1 if it belongs to a period the query names and up to -1 if it clearly does not.

    A memory belongs to the times it mentions; one that mentions none, to the time it was said. If none of them belongs to the
    period, time says nothing about the others.
    """
    if not periods:
        return {}
    found = {memory.id: max(_time_match(memory, period) for period in periods) for memory in memories}
    if max(found.values(), default=0.0) <= 0:
        return {}
    return found


def _time_match(memory: Memory, period: Period) -> float:
    if not memory.times:
        return _said_match(memory, period)
    return max(_told_match(time, period) for time in memory.times)


def _told_match(time: MentionedTime, period: Period) -> float:
    begin, until = to_instant(time.begin), to_instant(time.until)
    if time.kind == "range" and _SINCE.match(time.raw):
        until = max(until, period.until)  # it may still be so
    if begin < period.until and until > period.begin:
        return 1.0 if until - begin <= _LONG_TIMES * max(period.until - period.begin, DAY) else 0.5
    unclear = time.kind == "recurring" or (begin <= period.until + DAY and until >= period.begin - DAY)
    if unclear or _other_year(begin, until, period):
        return 0.0
    return -1.0


def _said_match(memory: Memory, period: Period) -> float:
    """What was said before the period may still be so then; what was said later may have happened later."""
    at = to_instant(memory.created_at)
    if period.begin <= at < period.until:
        return 1.0
    if at < period.said_until or memory.behavioral or _other_year(at, at + 1, period):
        return 0.0
    return -0.5


def _other_year(begin: Instant, until: Instant, period: Period) -> bool:
    if not period.any_year:
        return False
    other = period.in_year(to_datetime(begin).year - to_datetime(period.begin).year)
    return begin < other.until and until > other.begin
