"""Whole expressions: a frame, a range of two, a bound, an offset from another date, a repetition or a duration."""

from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from memplane.extract.english import is_finite, is_past
from memplane.extract.time.calendar import SATURDAY, Kind, LocalSpan, add_units, floor, period
from memplane.extract.time.clocks import counts_noun
from memplane.extract.time.durations import FINER, Duration, duration, plural, shifted, unit_at
from memplane.extract.time.frame import Frame, TimeContext
from memplane.extract.time.grammar import ParsedFrame, parse_frame
from memplane.extract.time.numeric import YEAR_MIN
from memplane.extract.time.relative import weekday_span
from memplane.extract.time.repeats import nearest_weekend, repeat
from memplane.extract.time.resolve import resolve
from memplane.extract.time.tokens import TokenLine, ordinal
from memplane.extract.time.words import HOT, WEEKDAY
from memplane.extract.time.years import ends_phrase, years_in_a_row

OPEN_PAST = datetime(1, 1, 1)  # noqa: DTZ001  local time, as everywhere below `find`
OPEN_FUTURE = datetime(9999, 12, 31)  # noqa: DTZ001  as above

_TO = frozenset({"-", "to", "till", "until", "untill", "til", "through", "thru", "/"})
_LATER = frozenset({"since", "after", "from"})
_EARLIER = frozenset({"until", "untill", "till", "til", "before", "by", "through", "thru"})


class Expression(NamedTuple):
    """Tokens `start` to `end` name a span; a weak one needs company to count."""

    start: int
    end: int
    span: LocalSpan
    kind: Kind
    strong: bool
    frame: Frame = Frame()
    every: str | None = None


def expression(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """The expression that starts at this token, the most specific reading first."""
    for rule in (
        _recurring,
        _years,
        _other_day,
        _around,
        _week_on,
        _within,
        _lasting,
        _prior_to,
        _bounded,
        _offset,
        _week_of,
        _over_weekend,
        _plain,
        _length_alone,
    ):
        found = rule(line, at, context)
        if found is not None:
            return found
    return None


def _kind(frame: Frame) -> Kind:
    if (
        frame.clock_until is not None
        or frame.clock_open is not None
        or (frame.days and frame.days[0] != frame.days[1])
    ):
        return "range"
    return "relative" if frame.relative() or not frame.dated() else "absolute"


def _plain(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """A frame, or two of them with a dash or `to` between, or one and how long it lasted."""
    parsed = parse_frame(line, at, context)
    if parsed is None:
        return None
    return _range(line, parsed, context, _TO) or _one(line, parsed, context)


def _one(line: TokenLine, parsed: ParsedFrame, context: TimeContext) -> Expression | None:
    span = resolve(parsed.frame, context)
    if span is None:
        return None
    frame = parsed.frame
    length = duration(line, parsed.end + 1) if line.word(parsed.end) == "for" else None
    if length is not None:
        lasting = LocalSpan(span.begin, shifted(span.begin, length, 1), span.grain)
        return Expression(parsed.start, length.end, lasting, "range", strong=True)
    return Expression(parsed.start, parsed.end, span, _kind(frame), frame.strong, frame)


def _range(
    line: TokenLine, first: ParsedFrame, context: TimeContext, signs: frozenset[str]
) -> Expression | None:
    if line.word(first.end) not in signs:
        return None
    start = first.end + 1
    start += line.word(start) in {"on", "at"}
    second = parse_frame(line, start, context)
    if second is None or not _alike(first.frame, second.frame):
        return None
    if not (first.frame.strong or second.frame.strong) and counts_noun(line, second.end):
        return None
    one, two = _share(first.frame, second.frame)
    begin = resolve(one, context)
    if begin is None:
        return None
    until = resolve(two, context._replace(now=begin.begin, prefer="future"))
    if until is None or until.until <= begin.begin:
        return None
    both = LocalSpan(begin.begin, _end(two, until), begin.grain if one.edge is None else until.grain)
    return Expression(first.start, second.end, both, "range", strong=True)


def _end(frame: Frame, span: LocalSpan) -> datetime:
    """A day as an end is included; a time of day is where it stops."""
    return span.begin if frame.clock is not None and frame.clock_until is None else span.until


def _alike(one: Frame, two: Frame) -> bool:
    """Whether two frames can be the ends of one range: dates with dates, times with times."""
    if _several(one):
        return False
    if one.strong is False and two.strong is False:
        return _shape(one) == _shape(two)
    if not one.dated() and two.dated():
        return one.clock is not None and two.clock is not None
    return True


def _shape(frame: Frame) -> list[bool]:
    return [getattr(frame, name) is not None for name in frame.__struct_fields__]


def _share(one: Frame, two: Frame) -> tuple[Frame, Frame]:
    """What was said once for both ends: the year, the month, the day."""
    if one.year is None and one.anchor is None and two.year is not None:
        later = (one.month or 0) > (two.month or one.month or 0)
        one = msgspec.structs.replace(one, year=two.year - later)
    if one.days is not None and one.month is None and two.month is not None:
        one = msgspec.structs.replace(one, month=two.month)
    placed = one.days is not None and one.month is None
    if (placed or one.weekday is not None) and one.anchor is None and two.anchor is not None:
        one = msgspec.structs.replace(one, anchor=two.anchor)
    if not two.dated() and one.dated():
        names = ("year", "month", "days", "weekday", "holiday", "offset", "anchor", "nth")
        two = msgspec.structs.replace(two, **{name: getattr(one, name) for name in names})
    elif not one.dated() and two.dated():
        names = ("year", "month", "days", "weekday", "holiday", "offset", "anchor", "nth")
        one = msgspec.structs.replace(one, **{name: getattr(two, name) for name in names})
    elif two.days is not None and two.month is None and two.anchor is None and one.month is not None:
        two = msgspec.structs.replace(two, month=one.month, year=one.year)
    return one, two


def _prior_to(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`prior to 2005`: before it."""
    if line.word(at) != "prior" or line.word(at + 1) != "to":
        return None
    first = parse_frame(line, at + 2, context)
    found = first and _bound(line, at, "before", first, context)
    return found and found._replace(strong=True)


def _bounded(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`between X and Y`, `from X to Y`, `from X onwards`, `since X`, `until X`, `by X`."""
    word = line.word(at)
    came_by = word == "by" and line.word(at - 1) in _COME_BY
    if came_by or (word != "between" and word not in _LATER and word not in _EARLIER):
        return None
    first = parse_frame(line, at + 1, context)
    if first is None:
        return None
    if word == "from" and line.word(first.end) in {"onwards", "onward"}:
        found = _bound(line, at, "since", first, context)
        return found and found._replace(end=first.end + 1, strong=True)
    both = _range(line, first, context, _AND if word == "between" else _TO)
    if both is None and _several(first.frame):
        both = _one(line, first, context)
    if both is not None:
        return both._replace(start=at if word in {"from", "between"} else both.start, strong=True)
    opens = first.frame.clock is not None and first.frame.year is None
    if word == "between" or (word == "from" and not opens):
        # `from 2 pm` opens a range; `the picture from March` only says when.
        return None
    return _bound(line, at, word, first, context)


_AND = frozenset({"and", "-", "to"})
_COME_BY = frozenset(
    {
        "come",
        "comes",
        "came",
        "coming",
        "drop",
        "dropped",
        "stop",
        "stopped",
        "swing",
        "swung",
        "pass",
        "passed",
        "went",
    }
)
"""`He came by on Monday` is no bound."""


def _several(frame: Frame) -> bool:
    """Whether a frame is a range by itself: `5-7 May`, `3-5 pm`."""
    return frame.clock_until is not None or (frame.days is not None and frame.days[0] != frame.days[1])


def _bound(
    line: TokenLine, at: int, word: str, first: ParsedFrame, context: TimeContext
) -> Expression | None:
    found = _one(line, first, context)
    if found is None or (found.kind == "range" and found.frame == Frame()):
        return found
    span, now = found.span, context.now
    if word in _LATER:
        start = span.until if word == "after" and first.frame.clock is None else span.begin
        until = now if start < now else OPEN_FUTURE if word != "since" else span.until
        ends = (start, until)
    else:
        stop = span.begin if word == "before" or first.frame.clock is not None else span.until
        ends = (now if stop > now else OPEN_PAST, stop)
    if ends[0] >= ends[1]:
        return None
    strong = found.strong or (word not in {"by", "before", "after"} and first.frame.week is None)
    return Expression(at, found.end, LocalSpan(*ends, span.grain), "range", strong, found.frame)


def _within(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`within two weeks`: from now on for so long, or from the time before it."""
    if line.word(at) != "within" or (
        line.word(at + 1) in {"the", "a"} and line.word(at + 2) in {"last", "past"}
    ):
        return None
    found = duration(line, at + 1)
    if found is None or line.word(found.end) == "of":
        return None
    since = context.anchor.begin if context.anchor is not None and context.prefer == "past" else context.now
    until = floor(shifted(since, found, 1), FINER.get(found.unit, "day"))
    if until <= since:
        return None
    grain = period(since, found.unit).grain
    return Expression(at, found.end, LocalSpan(since, until, grain), "range", strong=True)


def _lasting(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`for three weeks`; with `from 18 December` behind it, a range; without, a duration that only shows its length."""
    found = duration(line, at + 1) if line.word(at) == "for" else None
    if found is None or _offset(line, at + 1, context) is not None:
        return None
    end = found.end
    if line.word(end) == "from" and line.word(end + 1) in {"now", "today", "right"}:
        return None
    if line.word(end) in {"from", "starting", "beginning", "since"}:
        start = end + 1 + (line.word(end + 1) in {"from", "on", "at"})
        first = parse_frame(line, start, context)
        span = first and resolve(first.frame, context)
        if first and span:
            lasting = LocalSpan(span.begin, shifted(span.begin, found, 1), span.grain)
            return Expression(at, first.end, lasting, "range", strong=True)
    return _duration(line, at, found, context, strong=True)


def _length_alone(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`two nights`, which counts only where nothing else is said."""
    found = duration(line, at)
    return found and _duration(line, at, found, context, strong=False)


def _duration(
    line: TokenLine, at: int, found: Duration, context: TimeContext, *, strong: bool
) -> Expression | None:
    end, unit = found.end, found.unit
    if line.word(end) in _NOT_AFTER_LENGTH or (unit == "second" and line.word(end - 2) in {"a", "the"}):
        return None
    ends = sorted((context.now, shifted(context.now, found, 1 if context.prefer == "future" else -1)))
    return Expression(
        at, end, LocalSpan(ends[0], ends[1], period(context.now, unit).grain), "duration", strong
    )


_NOT_AFTER_LENGTH = frozenset(
    {"ago", "back", "from", "hence", "after", "before", "later", "earlier", "past", "to", "of"}
)


def _offset(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`the Friday before 15 July`, `three days after Easter`, `the weekend before last Christmas`."""
    start = at + (line.word(at) == "the")
    head = _head(line, start)
    if head is None:
        return None
    end, what, count = head
    sign = {"before": -1, "after": 1, "following": 1, "from": 1}.get(line.word(end), 0)
    if not sign or (line.word(end) == "from" and start == at and what.isdigit()):
        return None
    if line.word(end) == "from" and line.word(end + 1) in {"now", "today", "right"}:
        return None
    if (
        line.word(end + 1) in {"yesterday", "tomorrow", "last", "next"}
        and what in {"day", "week", "weekend"}
        and count == 1
    ):
        return None
    target = parse_frame(line, end + 1, context)
    base = target and target.frame.dated() and resolve(target.frame, context)
    if not target or not base or (what.isdigit() and base.grain == "year"):
        return None
    whole = line.word(start) not in {"a", "an", "one"} and line.number(start) is None
    span = _beside(base, what, sign * count, named=whole and count == 1)
    return Expression(at, target.end, span, "relative", strong=True) if span else None


def _head(line: TokenLine, at: int) -> tuple[int, str, int] | None:
    """What is counted from the other date: a weekday, a unit, or several of them."""
    weekday = WEEKDAY.get(line.word(at))
    if weekday is not None:
        return at + 1, str(weekday), 1
    unit = unit_at(line, at)
    if unit is not None and unit[1] not in {"second", "minute", "hour", "quarter", "season"}:
        return None if plural(line, unit[0] - 1) else (*unit, 1)  # `I worked nights from 2010`
    nth = ordinal(line, at)
    if nth is not None and line.word(nth[0]) in WEEKDAY:
        return nth[0] + 1, str(WEEKDAY[line.word(nth[0])]), nth[1]
    found = duration(line, at)
    return (found.end, found.unit, int(found.parts[0][0])) if found and found.whole else None


def _beside(base: LocalSpan, what: str, count: int, *, named: bool) -> LocalSpan | None:
    """The weekday, weekend or period on one side of a date; several units are counted from its beginning."""
    if what.isdigit():
        day = base.begin if count < 0 else base.until - timedelta(days=1)
        return weekday_span(day, int(what), count)
    if what == "weekend":
        return _weekend(base, count)
    if named and what in {"week", "fortnight"}:
        begin = base.begin + timedelta(days=-7) if count < 0 else base.until
        return LocalSpan(begin, begin + timedelta(days=7), "week")
    if named and what in {"month", "year", "decade"}:
        return period(base.begin, what, count)
    if named and what in {"day", "night"}:
        return period(base.begin if count < 0 else base.until - timedelta(days=1), "day", count)
    finest = what in {"hour", "minute", "second"} or base.grain != "day"
    return period(add_units(base.begin, what, count), FINER[what] if finest else "day")


def _weekend(base: LocalSpan, count: int) -> LocalSpan:
    if count < 0:
        saturday = weekday_span(base.begin - timedelta(days=1), SATURDAY, count)
    else:
        saturday = weekday_span(base.until - timedelta(days=1), SATURDAY, count)
    return period(saturday.begin, "weekend")


def _week_of(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`the week of 3 May`, `the weekend of the 7th`."""
    start = at + (line.word(at) == "the")
    unit = unit_at(line, start)
    if unit is None or unit[1] not in {"week", "weekend"} or line.word(unit[0]) != "of":
        return None
    target = parse_frame(line, unit[0] + 1, context)
    base = target and resolve(target.frame, context)
    if not target or not base or base.grain != "day":
        return None
    return Expression(at, target.end, period(base.begin, unit[1]), "absolute", strong=True)


def _over_weekend(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`over the weekend`, `at the weekend`: the nearest one on the preferred side."""
    if line.word(at) not in {"over", "at", "on"} or line.word(at + 1) != "the":
        return None
    unit = unit_at(line, at + 2)
    if unit is None or unit[1] != "weekend" or plural(line, unit[0] - 1):
        return None
    if line.word(unit[0]) in {"of", "before", "after"}:
        return None
    return Expression(at + 1, unit[0], nearest_weekend(context), "relative", strong=True)


def _recurring(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`every Monday at 9`, `once a week`, `on weekends`, `Tuesdays`."""
    found = repeat(line, at, context)
    return found and Expression(at, found.end, found.span, "recurring", strong=True, every=found.every)


def _years(line: TokenLine, at: int, _context: TimeContext) -> Expression | None:
    """`2014-2018`, `from 1939-45`."""
    start = at + (line.word(at) in {"from", "during"})
    found = years_in_a_row(line, start)
    if found is None or not _means_years(line, start, found[0]):
        return None
    return Expression(at, found[0], found[1], "range", strong=True)


def _means_years(line: TokenLine, start: int, end: int) -> bool:
    """`2000-2500 calories` are no years, and `1500-2000` is a range of anything."""
    before, after = line.word(start - 1), line.word(end)
    if before in {"from", "during", "years", "between"}:
        return True
    hours = all((line.number(index) or 0) % 100 < 60 for index in (start, start + 2))  # noqa: PLR2004  minutes of an hour
    if hours and (after in HOT or (line.number(start) or 0) < YEAR_MIN) and before != "(":
        return False
    even = all(line.word(index).endswith("00") for index in (start, start + 2))
    return not even and (ends_phrase(line, end) or is_past(after) or after in _PERIOD_NOUNS)


_PERIOD_NOUNS = frozenset({"season", "period", "era", "winter", "war", "academic", "school", "period's"})


def _week_on(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`a week on Saturday`, `two weeks from Friday`, `Saturday week`, `a week tomorrow`: so much later than that day."""
    weekday = WEEKDAY.get(line.word(at))
    if weekday is not None and line.word(at + 1) in {"week", "fortnight"} and context.prefer != "past":
        days = 14 if line.word(at + 1) == "fortnight" else 7
        base = weekday_span(context.now, weekday, 1)
        return Expression(
            at, at + 2, _days_on(base, days), "relative", strong=not line.word(at + 2).isalpha()
        )
    found = duration(line, at)
    if found is None or found.unit not in {"week", "fortnight", "day"} or line.word(at - 1) in _COUNTS_TIMES:
        return None
    if line.word(found.end) == "ago":
        return _week_before(line, at, found, context)
    end = found.end + (line.word(found.end) in {"on", "from", "this", "coming"})
    weekday, length = WEEKDAY.get(line.word(end)), shifted(context.now, found, 1) - context.now
    if weekday is not None and end > found.end and found.unit != "day":
        base = weekday_span(context.now, weekday, 1)
    elif line.word(end) == "tomorrow" and line.word(found.end) in {"from", "tomorrow"}:
        base = period(context.now, "day", 1)
    else:
        return None
    return Expression(at, end + 1, _days_on(base, length.days), "relative", strong=True)


def _week_before(line: TokenLine, at: int, found: Duration, context: TimeContext) -> Expression | None:
    """`a week ago last Friday`, `two weeks ago yesterday`: so much earlier than that day."""
    end = found.end + 1 + (line.word(found.end + 1) in {"last", "on", "this"})
    weekday, length = WEEKDAY.get(line.word(end)), context.now - shifted(context.now, found, -1)
    if found.unit == "day":
        return None
    if weekday is not None:
        base = weekday_span(context.now, weekday, -1)
    elif line.word(end) == "yesterday":
        base = period(context.now, "day", -1)
    else:
        return None
    return Expression(at, end + 1, _days_on(base, -length.days), "relative", strong=True)


_COUNTS_TIMES = frozenset({"once", "twice", "times", "days", "day", "hours", "nights"})


def _days_on(base: LocalSpan, days: int) -> LocalSpan:
    return period(base.begin + timedelta(days=days), "day")


_OTHER_DAYS = 14
"""`The other day` was within two weeks, and not today."""
_ABOUT_HOLIDAY = timedelta(days=7)


def _other_day(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`the other day`, `the other night`."""
    said = (line.word(at), line.word(at + 1)) == ("the", "other") and line.word(at + 2) in {"day", "night"}
    if not said or line.word(at - 1) in {"on", "and", "or", "than"} or line.word(at + 3) == "of":
        return None
    if is_finite(line.word(at + 3)):  # `Sunday is off, the other day varies`
        return None
    today = period(context.now, "day")
    span = LocalSpan(today.begin - timedelta(days=_OTHER_DAYS), today.begin, "day")
    return Expression(at, at + 3, span, "relative", strong=True)


def _around(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`around Christmas`: a week on either side."""
    if line.word(at) not in {"around", "about"}:
        return None
    parsed = parse_frame(line, at + 1, context)
    if parsed is None or parsed.frame.holiday is None or parsed.frame.clock or parsed.frame.part:
        return None
    span = resolve(parsed.frame, context)
    if span is None:
        return None
    wide = LocalSpan(span.begin - _ABOUT_HOLIDAY, span.until + _ABOUT_HOLIDAY, "day")
    return Expression(at, parsed.end, wide, "range", parsed.frame.strong, parsed.frame)
