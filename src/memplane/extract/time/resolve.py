"""From a filled frame to the stretch of time it names."""

from datetime import date, datetime, timedelta

import msgspec

from memplane.extract.time.calendar import (
    GRAIN,
    MONTHS_OF_QUARTER,
    SATURDAY,
    WEEKDAYS,
    Granularity,
    LocalSpan,
    add_months,
    add_units,
    choose,
    day_span,
    floor,
    month_span,
    nth_weekday,
    period,
    season_span,
    step,
    year_span,
    yearly,
)
from memplane.extract.time.frame import Clock, Frame, TimeContext, Yearly
from memplane.extract.time.relative import weekday_span
from memplane.extract.time.words import EVENING, PART_EARLY, PART_LATE, DayPart

_MONTHS_AROUND = 14
_NOON, _HOURS = 12, 24
_CENTURY, _DECADE_FROM = 100, 2000
"""`the 1800s` are a century to most people, `the 2000s` ten years."""
_AFTERNOON_HOURS = 6
"""`at 5` without a.m. or p.m. is the afternoon's more often; from seven on it is the morning's."""


def resolve(frame: Frame, context: TimeContext) -> LocalSpan | None:
    """The stretch named, or None where the words do not fit together."""
    span = resolve_date(frame, context)
    if span is None and frame.dated():
        return None
    if frame.clock is not None:
        return _with_clock(frame, frame.clock, span, context)
    if frame.part is not None:
        return _with_part(frame, span or period(context.now, "day"), frame.part)
    if span is not None and frame.edge is not None:
        return edge_of(span, frame.edge)
    return span


def resolve_date(frame: Frame, context: TimeContext) -> LocalSpan | None:  # noqa: PLR0911  one line a slot
    """The day or longer stretch, before any time of day."""
    if frame.days is not None:
        return _days(frame, frame.days, context)
    if frame.nth is not None:
        return _nth(frame, frame.nth, context)
    if frame.holiday is not None:
        return _once_a_year(frame, context, yearly(frame.holiday, context.now, 5), frame.holiday)
    if frame.weekday is not None:
        return _weekday(frame, frame.weekday, context)
    if frame.month is not None:
        return _month(frame, frame.month, context)
    if frame.quarter is not None:
        return _quarter(frame, frame.quarter, context)
    if frame.season is not None:
        return _season(frame, frame.season, context)
    if frame.week is not None:
        return _week(frame, frame.week, context)
    if frame.decade is not None:
        century = frame.decade % _CENTURY == 0 and frame.decade < _DECADE_FROM
        return period(year_span(frame.decade).begin, "decade", count=10 if century else 1)
    return frame.anchor if frame.year is None else year_span(frame.year)


def _days(frame: Frame, days: tuple[int, int], context: TimeContext) -> LocalSpan | None:
    first, last = days
    if frame.month is None:
        span = _day_of_month(frame, first, context)
    elif _year(frame) is not None:
        span = _dated(frame, first, frame.month, _year(frame) or 0, context)
    else:
        span = _undated(frame, first, frame.month, context)
    if span is None or first == last:
        return span
    return LocalSpan(span.begin, span.begin + timedelta(days=last - first + 1), "day")


def _year(frame: Frame) -> int | None:
    """The year said outright, or that of the longer period named with it: `March of last year`."""
    if frame.year is not None:
        return frame.year
    if frame.anchor is not None and frame.anchor.grain in {"year", "month", "day", "week"}:
        return frame.anchor.begin.year
    return None


def _dated(frame: Frame, day: int, month: int, year: int, context: TimeContext) -> LocalSpan | None:
    """A full date; an ambiguous 3/4/2024 gives way to the weekday named, then to the preferred side of now."""
    span = _day_or_none(year, month, day)
    if frame.swap is None:
        return span
    other = _day_or_none(year, frame.swap[1], frame.swap[0])
    if span is None or other is None:
        return span or other
    if frame.weekday is not None:
        return other if other.begin.weekday() == frame.weekday != span.begin.weekday() else span
    if context.day_first is None and context.prefer == "past" and span.begin > context.now >= other.begin:
        return other
    if context.day_first is None and context.prefer == "future" and span.until <= context.now < other.until:
        return other
    return span


def _day_or_none(year: int, month: int, day: int) -> LocalSpan | None:
    try:
        return day_span(year, month, day)
    except ValueError:
        return None


def _undated(frame: Frame, day: int, month: int, context: TimeContext) -> LocalSpan | None:
    """A day and month without a year; a weekday next to it picks the year, or the reading of 3/4."""
    around = yearly(lambda year: day_span(year, month, day), context.now, 5)
    best = choose(around, context.now, context.prefer)
    if frame.weekday is None:
        return best
    fitting = [span for span in around if span.begin.weekday() == frame.weekday]
    if frame.swap is not None:
        other = yearly(lambda year: day_span(year, *reversed(frame.swap or ())), context.now, 1)
        fitting += [span for span in other if span.begin.weekday() == frame.weekday]
    near = [span for span in fitting if abs(span.begin - context.now) < timedelta(days=550)]
    return choose(near, context.now, "none") or best


def _day_of_month(frame: Frame, day: int, context: TimeContext) -> LocalSpan | None:
    if frame.anchor is not None:
        if frame.anchor.grain not in {"month", "year"}:
            return frame.anchor
        start = frame.anchor.begin
        return _day_or_none(start.year, start.month, day)
    first = floor(context.now, "month")
    months = [add_months(first, offset) for offset in range(-_MONTHS_AROUND, _MONTHS_AROUND + 1)]
    spans = [span for month in months if (span := _day_or_none(month.year, month.month, day))]
    if frame.weekday is not None:
        spans = [span for span in spans if span.begin.weekday() == frame.weekday] or spans
    return choose(spans, context.now, context.prefer)


def _nth(  # noqa: PLR0911  one line for each thing that can be counted
    frame: Frame, nth: tuple[int, str], context: TimeContext
) -> LocalSpan | None:
    count, what = nth
    inner = msgspec.structs.replace(frame, nth=None, run=None, weekday=None)
    within = resolve_date(inner, context)
    if within is None or not count:
        return None
    if frame.run is not None:
        return _run(within, what, frame.run, first=count > 0)
    if what.isdigit():
        return nth_weekday(within, int(what), count)
    if what == "weekend":
        saturday = nth_weekday(within, 5, count)
        return saturday and period(saturday.begin, "weekend")
    if what == "workday":
        return _workday(within, count)
    if what == "half":
        return _half(within, first=count in {1, -2})
    if what == "week" and (within.grain == "month" or (within.grain == "year" and abs(count) == 1)):
        return _week_of_month(within, count)
    if what == "week":
        whole = within._replace(until=within.until - timedelta(days=WEEKDAYS - 1))
        monday = nth_weekday(whole, 0, count)
        return monday and period(monday.begin, "week")
    base = within.begin if count > 0 else within.until
    found = period(base, what, count - 1 if count > 0 else count)
    return found if within.begin <= found.begin < within.until else None


def _workday(within: LocalSpan, count: int) -> LocalSpan | None:
    """The nth day from Monday to Friday, from the end where negative."""
    days = [within.begin + timedelta(days=day) for day in range((within.until - within.begin).days)]
    working = [day for day in days if day.weekday() < SATURDAY]
    index = count - 1 if count > 0 else count
    return period(working[index], "day") if -len(working) <= index < len(working) else None


def _run(within: LocalSpan, what: str, count: int, *, first: bool) -> LocalSpan | None:
    """Several in a row from the beginning or up to the end: `the first ten days`, `the last four months`."""
    begin, until = (
        (within.begin, add_units(within.begin, what, count))
        if first
        else (add_units(within.until, what, -count), within.until)
    )
    if begin < within.begin or until > within.until or what not in GRAIN:
        return None
    return LocalSpan(begin, until, GRAIN[what])


def _week_of_month(within: LocalSpan, count: int) -> LocalSpan | None:
    """The first week of June are its first seven days, whatever weekday it begins with; so is the last one of a year."""
    edge = within.begin if count > 0 else within.until
    begin = edge + timedelta(days=WEEKDAYS * (count - (count > 0)))
    if not within.begin <= begin < within.until:
        return None
    return LocalSpan(begin, min(begin + timedelta(days=WEEKDAYS), within.until), "week")


def _half(within: LocalSpan, *, first: bool) -> LocalSpan:
    middle = floor(within.begin + (within.until - within.begin) / 2, "day")
    if within.grain == "year":
        middle = add_months(within.begin, (within.until.year - within.begin.year) * 6)
    ends = (within.begin, middle) if first else (middle, within.until)
    return LocalSpan(*ends, "month" if within.grain == "year" else "day")


def _once_a_year(
    frame: Frame, context: TimeContext, around: list[LocalSpan], make: Yearly
) -> LocalSpan | None:
    """A holiday, month or season: in the year named, by `last` or `next`, or on the preferred side."""
    year = _year(frame)
    if year is not None:
        return make(year)
    if frame.offset is None:
        return choose(around, context.now, context.prefer)
    if frame.offset:
        return step(around, context.now, frame.offset)
    return _this(around, context)


def _this(around: list[LocalSpan], context: TimeContext) -> LocalSpan | None:
    """`this summer`: the one we are in, else that of this year, or the coming one where only the future will do."""
    holding = [span for span in around if span.begin <= context.now < span.until]
    this_year = [span for span in around if span.begin.year == context.now.year]
    if context.prefer == "future":
        this_year = [span for span in this_year if span.until > context.now]
        return next(iter(holding or this_year), None) or step(around, context.now, 1)
    return next(iter(holding or this_year), None)


def _weekday(frame: Frame, weekday: int, context: TimeContext) -> LocalSpan | None:
    """A weekday of the week named with it; `next` is next week's, `last` the latest before today."""
    if frame.anchor is not None:
        loose = frame.anchor.grain in {"week", "weekend"}
        return nth_weekday(period(frame.anchor.begin, "week"), weekday, 1) if loose else frame.anchor
    if frame.offset == 1:
        return nth_weekday(period(context.now, "week", 1), weekday, 1)
    if frame.offset == 0 or (frame.offset is None and context.prefer == "none"):
        here = nth_weekday(period(context.now, "week"), weekday, 1)
        late = here is not None and here.until <= context.now and context.prefer == "future"
        return weekday_span(context.now, weekday, 1) if late else here
    return weekday_span(context.now, weekday, frame.offset or (1 if context.prefer == "future" else -1))


def _month(frame: Frame, month: int, context: TimeContext) -> LocalSpan | None:
    def make(year: int) -> LocalSpan:
        return month_span(year, month)

    return _once_a_year(frame, context, yearly(make, context.now), make)


def _season(frame: Frame, season: int, context: TimeContext) -> LocalSpan | None:
    def make(year: int) -> LocalSpan:
        return season_span(year, season)

    return _once_a_year(frame, context, yearly(make, context.now), make)


def _quarter(frame: Frame, quarter: int, context: TimeContext) -> LocalSpan | None:
    def make(year: int) -> LocalSpan:
        return period(month_span(year, (quarter - 1) * MONTHS_OF_QUARTER + 1).begin, "quarter")

    return _once_a_year(frame, context, yearly(make, context.now), make)


def _week(frame: Frame, week: int, context: TimeContext) -> LocalSpan | None:
    def make(year: int) -> LocalSpan:
        monday = date.fromisocalendar(year, week, 1)
        return period(datetime(monday.year, monday.month, monday.day), "week")  # noqa: DTZ001  local, as in spans

    return _once_a_year(frame, context, yearly(make, context.now, 7), make)


_EDGES: dict[Granularity, dict[str, tuple[str, int, int]]] = {
    "month": {"begin": ("day", 0, 10), "middle": ("day", 10, 20), "end": ("day", 20, 0)},
    "year": {
        "early": ("month", 0, 4),
        "begin": ("month", 0, 3),
        "middle": ("month", 4, 8),
        "end": ("month", 8, 0),
    },
    "week": {"begin": ("day", 0, 3), "middle": ("day", 2, 4), "end": ("day", 4, 0)},
    "quarter": {"begin": ("month", 0, 1), "middle": ("month", 1, 2), "end": ("month", 2, 0)},
    "season": {"begin": ("month", 0, 1), "middle": ("month", 1, 2), "end": ("month", 2, 0)},
    "day": {"begin": ("hour", 0, 9), "middle": ("hour", 11, 14), "end": ("hour", 17, 0)},
    "weekend": {"begin": ("day", 0, 1), "middle": ("day", 0, 2), "end": ("day", 1, 0)},
}
_DECADE_EDGES = {"begin": (0, 4), "middle": (4, 7), "end": (7, 10)}


def edge_of(span: LocalSpan, edge: str) -> LocalSpan:
    """The first, middle or last stretch of a period, in its next finer unit."""
    years = span.until.year - span.begin.year
    if edge == "early" and (span.grain != "year" or years > 1):
        edge = "begin"
    if span.grain == "year" and years > 1:
        first, last = _DECADE_EDGES[edge]
        return LocalSpan(
            year_span(span.begin.year + first).begin, year_span(span.begin.year + last).begin, "year"
        )
    if span.grain not in _EDGES:
        return span
    unit, first, last = _EDGES[span.grain][edge]
    grain: Granularity = {"day": "day", "month": "month", "hour": "part_of_day"}[unit]  # type: ignore[assignment]
    begin = _forward(span.begin, unit, first)
    until = _forward(span.begin, unit, last) if last else span.until
    return LocalSpan(begin, until, grain)


def _forward(moment: datetime, unit: str, count: int) -> datetime:
    if unit == "month":
        return add_months(moment, count)
    return moment + (timedelta(days=count) if unit == "day" else timedelta(hours=count))


def _with_part(frame: Frame, span: LocalSpan, part: DayPart) -> LocalSpan:
    if frame.edge is not None:
        part = {"begin": PART_EARLY, "early": PART_EARLY, "end": PART_LATE}.get(frame.edge, {}).get(
            part, part
        )
    if span.grain != "day":
        span = period(span.begin, "day")
    last = span.until - timedelta(days=1)
    return LocalSpan(
        span.begin + timedelta(hours=part.begin), last + timedelta(hours=part.until), "part_of_day"
    )


def _with_clock(frame: Frame, first: Clock, span: LocalSpan | None, context: TimeContext) -> LocalSpan | None:
    """A time of day on a day; without one, on the reference's day, or tomorrow where only the future will do."""
    if frame.clock_until is not None and first.half is None and not first.padded:
        first = _borrow_half(first, frame.clock_until)
    hour = _hour(frame, first, context, dated=span is not None)
    if hour is None:
        return None
    day = floor(span.begin if span is not None else context.now, "day") + timedelta(
        days=frame.days_later or 0
    )
    begin = day + timedelta(hours=hour, minutes=first.minute or 0, seconds=first.second or 0)
    grain: Granularity = "hour" if first.minute is None else "minute" if first.second is None else "second"
    if first == Clock(0, padded=True) and (
        frame.part is not None or (span is None and context.prefer == "future")
    ):
        begin += timedelta(days=1)
    begin = _in_zone(begin, frame, context)
    if span is None and context.prefer == "future" and begin + _step(grain) <= context.now:
        begin += timedelta(days=1)
    return _until(frame, begin, grain, context)


def _step(grain: Granularity) -> timedelta:
    return {"hour": timedelta(hours=1), "minute": timedelta(minutes=1)}.get(grain, timedelta(seconds=1))


def _until(frame: Frame, begin: datetime, grain: Granularity, context: TimeContext) -> LocalSpan | None:
    """Where a time of day ends: after its own unit, at the end of its range, or open to the end of its day."""
    if frame.clock_open is not None:
        midnight = floor(begin, "day")
        return (
            LocalSpan(begin, midnight + timedelta(days=1), grain)
            if frame.clock_open > 0
            else LocalSpan(midnight, begin, grain)
        )
    last = frame.clock_until
    if last is None:
        return LocalSpan(begin, begin + _step(grain), grain)
    hour = _hour(frame, last, context, dated=True)
    if hour is None:
        return None
    local = _from_zone(begin, frame, context)
    until = floor(local, "day") + timedelta(hours=hour, minutes=last.minute or 0, seconds=last.second or 0)
    if until <= local and last.half is None and not last.padded and hour < _NOON:
        until += timedelta(hours=_NOON)
    if until <= local:
        until += timedelta(days=1)
    finest: Granularity = "minute" if grain == "hour" and last.minute is not None else grain
    return LocalSpan(begin, _in_zone(until, frame, context), finest)


def _borrow_half(first: Clock, last: Clock) -> Clock:
    """In `3-5 pm` both are p.m.; in `11-1 pm` only the second is."""
    if last.half is None or first.hour >= _HOURS - _NOON:
        return (
            first
            if last.half is None
            else first._replace(half=0 if first.hour % _NOON > last.hour % _NOON else last.half)
        )
    if first.hour % _NOON > last.hour % _NOON and last.half == 1:
        return first._replace(half=0)
    return first._replace(half=last.half)


def _hour(frame: Frame, written: Clock, context: TimeContext, *, dated: bool) -> int | None:
    """The hour on the 24-hour clock: by a.m. and p.m., by the part of the day, or by what is usual."""
    hour = written.hour
    if hour > _HOURS:
        return None
    if written.half is not None:
        return hour if hour > _NOON else hour % _NOON + _NOON * written.half
    if written.padded or hour >= _NOON or hour == 0:
        return hour
    if frame.part is not None:
        late = frame.part.begin >= _NOON and not (frame.part == EVENING and hour < 1)
        return hour + _NOON if late else hour
    if written.minute is None:
        return hour + _NOON if hour <= _AFTERNOON_HOURS else hour
    passed = (hour, written.minute) < (context.now.hour, context.now.minute)
    return hour + _NOON if passed and not dated and context.prefer == "future" else hour


def _in_zone(moment: datetime, frame: Frame, context: TimeContext) -> datetime:
    """From the zone named in the expression to the reference's own."""
    if frame.zone is None:
        return moment
    return moment.replace(tzinfo=frame.zone).astimezone(context.zone).replace(tzinfo=None)


def _from_zone(moment: datetime, frame: Frame, context: TimeContext) -> datetime:
    if frame.zone is None:
        return moment
    return moment.replace(tzinfo=context.zone).astimezone(frame.zone).replace(tzinfo=None)
