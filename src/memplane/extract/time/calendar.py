"""Calendar arithmetic on local time without a zone: periods, shifts, and choosing among candidates.

Everything here may raise `ValueError` or `OverflowError` where the years 1 to 9999 end; `find` catches both once."""

import calendar
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from memplane.clock import Instant

# What is found: an expression, where it stands, and the range of time it names.


Granularity = Literal[
    "year", "season", "quarter", "month", "week", "weekend", "day", "part_of_day", "hour", "minute", "second"
]
Kind = Literal["absolute", "relative", "range", "duration", "recurring"]
Prefer = Literal["past", "future", "none"]


class TimeMention(NamedTuple):
    """`text[start:end]` names the time from `begin` up to, not including, `until`.

    `granularity` is how precisely it was said: a year is not its first of January. A `duration` has no place of its
    own in time; its range touches the reference only to show its length. A `recurring` one shows its occurrence
    nearest to the reference on the preferred side, or the stretch in which it recurred, as in `every Monday in May`.
    """

    start: int
    end: int
    raw: str
    begin: Instant
    until: Instant
    granularity: Granularity
    kind: Kind
    every: str | None = None
    """How often a `recurring` one comes back: `week`, `2 weeks`, `6 hours`."""


MONTHS = 12
WEEKDAYS = 7
SATURDAY = 5
MONTHS_OF_QUARTER = 3
YEARS_OF_DECADE = 10

SEASON_STARTS = ((3, 1), (6, 1), (9, 1), (12, 1))
"""Spring, summer, autumn, winter by whole months, as people speak of them: snow on 5 December falls in winter. They
are those of the northern half, where most English is written."""

GRAIN: dict[str, Granularity] = {
    "decade": "year",
    "year": "year",
    "season": "season",
    "quarter": "quarter",
    "month": "month",
    "fortnight": "week",
    "week": "week",
    "weekend": "weekend",
    "night": "day",
    "day": "day",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
}


class LocalSpan(NamedTuple):
    """A half-open stretch of local time and the precision it was named with."""

    begin: datetime
    until: datetime
    grain: Granularity


def add_months(moment: datetime, count: int) -> datetime:
    """The same day `count` months on, or the last one of a shorter month."""
    total = moment.year * MONTHS + moment.month - 1 + count
    year, month = total // MONTHS, total % MONTHS + 1
    return moment.replace(year=year, month=month, day=min(moment.day, calendar.monthrange(year, month)[1]))


_MONTH_COUNT = {"month": 1, "quarter": 3, "season": 3, "year": 12, "decade": 120}
_LENGTH = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "night": timedelta(days=1),
    "week": timedelta(days=7),
    "weekend": timedelta(days=7),
    "fortnight": timedelta(days=14),
}


def add_units(moment: datetime, unit: str, count: float) -> datetime:
    """`count` units later; halves of months and years are rounded to whole months."""
    if unit in _MONTH_COUNT:
        return add_months(moment, round(_MONTH_COUNT[unit] * count))
    return moment + _LENGTH[unit] * count


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def floor(moment: datetime, unit: str) -> datetime:
    """The start of the period of this unit that holds the moment; a weekend is that of the moment's week."""
    if unit == "second":
        return moment.replace(microsecond=0)
    if unit == "minute":
        return moment.replace(second=0, microsecond=0)
    if unit == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = midnight(moment)
    if unit in {"week", "fortnight"}:
        return day - timedelta(days=day.weekday())
    if unit == "weekend":
        return day + timedelta(days=SATURDAY - day.weekday())
    return _floor_months(day, unit)


def _floor_months(day: datetime, unit: str) -> datetime:
    if unit == "month":
        return day.replace(day=1)
    if unit == "quarter":
        return day.replace(month=(day.month - 1) // MONTHS_OF_QUARTER * MONTHS_OF_QUARTER + 1, day=1)
    if unit == "season":
        return _floor_season(day)
    if unit == "year":
        return day.replace(month=1, day=1)
    if unit == "decade":
        return day.replace(year=max(1, day.year // YEARS_OF_DECADE * YEARS_OF_DECADE), month=1, day=1)
    return day


def _floor_season(day: datetime) -> datetime:
    for month, first in reversed(SEASON_STARTS):
        if (day.month, day.day) >= (month, first):
            return day.replace(month=month, day=first)
    month, first = SEASON_STARTS[-1]
    return day.replace(year=day.year - 1, month=month, day=first)


def period(moment: datetime, unit: str, offset: int = 0, count: int = 1) -> LocalSpan:
    """`count` whole periods from the one `offset` away from that which holds the moment."""
    begin = _start(moment, unit, offset)
    if unit == "weekend":
        return LocalSpan(begin, begin + timedelta(days=7 * (count - 1) + 2), "weekend")
    return LocalSpan(begin, _start(begin, unit, count), GRAIN[unit])


def _start(moment: datetime, unit: str, offset: int) -> datetime:
    if unit == "season":
        return _floor_season(add_months(floor(moment, unit), 3 * offset) + timedelta(days=7))
    return add_units(floor(moment, unit), unit, offset)


def day_span(year: int, month: int, day: int) -> LocalSpan:
    return period(datetime(year, month, day), "day")  # noqa: DTZ001  the zone is put on at the very end


def month_span(year: int, month: int) -> LocalSpan:
    return period(datetime(year, month, 1), "month")  # noqa: DTZ001  as above


def year_span(year: int) -> LocalSpan:
    return period(datetime(year, 1, 1), "year")  # noqa: DTZ001  as above


def season_span(year: int, season: int) -> LocalSpan:
    month, day = SEASON_STARTS[season]
    return period(datetime(year, month, day), "season")  # noqa: DTZ001  as above


def nth_weekday(within: LocalSpan, weekday: int, nth: int) -> LocalSpan | None:
    """The nth such weekday of a period, from its end where `nth` is negative."""
    if nth > 0:
        first = within.begin + timedelta(days=(weekday - within.begin.weekday()) % WEEKDAYS)
        found = first + timedelta(days=WEEKDAYS * (nth - 1))
    else:
        final = within.until - timedelta(days=1)
        last = final - timedelta(days=(final.weekday() - weekday) % WEEKDAYS)
        found = last + timedelta(days=WEEKDAYS * (nth + 1))
    return period(found, "day") if within.begin <= found < within.until else None


def choose(candidates: Iterable[LocalSpan], now: datetime, prefer: Prefer) -> LocalSpan | None:
    """Of what an expression without a year may mean, the nearest on the preferred side."""
    spans = list(candidates)
    if prefer == "past":
        return max((span for span in spans if span.begin <= now), default=None)
    if prefer == "future":
        return min((span for span in spans if span.until > now), default=None)
    return min(spans, key=lambda span: abs(span.begin - now), default=None)


def step(candidates: Iterable[LocalSpan], now: datetime, offset: int) -> LocalSpan | None:
    """`last` is -1, `next` is 1, `before last` is -2: counted over what lies wholly on that side."""
    spans = sorted(candidates)
    if offset < 0:
        before = [span for span in spans if span.until <= now]
        return before[offset] if len(before) >= -offset else None
    after = [span for span in spans if span.begin > now]
    return after[offset - 1] if len(after) >= offset else None


def yearly(make: Callable[[int], LocalSpan | None], now: datetime, reach: int = 3) -> list[LocalSpan]:
    """What comes once a year, in the years around now; a year without it (29 February) is left out."""
    spans = []
    for year in range(now.year - reach, now.year + reach + 1):
        try:
            span = make(year)
        except (ValueError, OverflowError):
            continue
        if span is not None:
            spans.append(span)
    return spans
