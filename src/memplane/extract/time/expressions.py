"""Whole expressions: a frame, a range of two, a bound, an offset from another date, a repetition or a duration."""

from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from memplane.extract.time.calendar import SATURDAY, Kind, LocalSpan, add_units, floor, nth_weekday, period
from memplane.extract.time.clocks import counts_noun
from memplane.extract.time.frame import Frame, TimeContext
from memplane.extract.time.grammar import ParsedFrame, extend, parse_frame
from memplane.extract.time.relative import FINER, plural, unit_at, weekday_span
from memplane.extract.time.resolve import resolve
from memplane.extract.time.tokens import TokenLine, amount, ordinal
from memplane.extract.time.words import MONTH, PART, SEASON, UNIT, WEEKDAY, WEEKDAYS_PLURAL

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


def expression(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """The expression that starts at this token, the most specific reading first."""
    for rule in (
        _recurring,
        _within,
        _lasting,
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
    length = _length(line, parsed.end + 1) if line.word(parsed.end) == "for" else None
    if length is not None:
        end, unit, count = length
        lasting = LocalSpan(span.begin, add_units(span.begin, unit, count), span.grain)
        return Expression(parsed.start, end, lasting, "range", strong=True)
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
    if one.days is not None and one.month is None and one.anchor is None and two.anchor is not None:
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


def _bounded(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`between X and Y`, `from X to Y`, `since X`, `until X`, `by X`."""
    word = line.word(at)
    if word != "between" and word not in _LATER and word not in _EARLIER:
        return None
    first = parse_frame(line, at + 1, context)
    if first is None:
        return None
    both = _range(line, first, context, _AND if word == "between" else _TO)
    if both is None and _several(first.frame):
        both = _one(line, first, context)
    if both is not None:
        return both._replace(start=at if word in {"from", "between"} else both.start, strong=True)
    if word == "between" or (word == "from" and first.frame.clock is None):
        # `from 2 pm` opens a range; `the picture from March` only says when.
        return None
    return _bound(line, at, word, first, context)


_AND = frozenset({"and", "-", "to"})


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
    """`within two weeks`: from now on, for so long."""
    if line.word(at) != "within" or (
        line.word(at + 1) in {"the", "a"} and line.word(at + 2) in {"last", "past"}
    ):
        return None
    found = _length(line, at + 1)
    if found is None or line.word(found[0]) == "of":
        return None
    end, unit, count = found
    until = floor(add_units(context.now, unit, count), FINER[unit])
    if until <= context.now:
        return None
    return Expression(
        at, end, LocalSpan(context.now, until, period(context.now, unit).grain), "range", strong=True
    )


def _length(line: TokenLine, at: int) -> tuple[int, str, float] | None:
    found = amount(line, at)
    unit = found and unit_at(line, found[0])
    if not found or not unit or not 0 < found[1] < 10_000:  # noqa: PLR2004  more is not a length of time
        return None
    return unit[0], unit[1], found[1]


def _lasting(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`for three weeks`; with `from 18 December` behind it, a range; without, a duration that only shows its length."""
    found = _length(line, at + 1) if line.word(at) == "for" else None
    if found is None or _offset(line, at + 1, context) is not None:
        return None
    end, unit, count = found
    if line.word(end) in {"from", "starting", "beginning", "since"}:
        start = end + 1 + (line.word(end + 1) in {"from", "on", "at"})
        first = parse_frame(line, start, context)
        span = first and resolve(first.frame, context)
        if first and span:
            lasting = LocalSpan(span.begin, add_units(span.begin, unit, count), span.grain)
            return Expression(at, first.end, lasting, "range", strong=True)
    return _duration(line, at, found, context, strong=True)


def _length_alone(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`two nights`, which counts only where nothing else is said."""
    found = _length(line, at)
    return found and _duration(line, at, found, context, strong=False)


def _duration(
    line: TokenLine, at: int, found: tuple[int, str, float], context: TimeContext, *, strong: bool
) -> Expression | None:
    end, unit, count = found
    if line.word(end) in _NOT_AFTER_LENGTH or (unit == "second" and line.word(end - 2) in {"a", "the"}):
        return None
    sign = 1 if context.prefer == "future" else -1
    ends = sorted((context.now, add_units(context.now, unit, sign * count)))
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
        return (*unit, 1)
    nth = ordinal(line, at)
    if nth is not None and line.word(nth[0]) in WEEKDAY:
        return nth[0] + 1, str(WEEKDAY[line.word(nth[0])]), nth[1]
    found = _length(line, at)
    return (found[0], found[1], int(found[2])) if found and found[2] == int(found[2]) else None


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
    return Expression(at + 1, unit[0], _nearest_weekend(context), "relative", strong=True)


def _recurring(line: TokenLine, at: int, context: TimeContext) -> Expression | None:
    """`every Monday at 9`, `each morning`, `on weekends`, `Tuesdays`."""
    word = line.word(at)
    if word in {"every", "each"}:
        start = at + 1 + (line.word(at + 1) in {"other", "single", "second"})
        frame = _repeated(line, start, context)
        end = start + 1 if frame else start
    else:
        start = at + (word == "on")
        frame = _plural(line, start, context, lead=word == "on")
        end = start + 1 if frame else start
    if frame is None:
        return None
    end, whole = extend(line, end, frame, context)
    span = resolve(whole, context)
    return span and Expression(at, end, span, "recurring", strong=True)


def _repeated(line: TokenLine, at: int, context: TimeContext) -> Frame | None:
    word = line.word(at)
    if word in WEEKDAY:
        return Frame(weekday=WEEKDAY[word])
    if word in MONTH:
        return Frame(month=MONTH[word])
    if word in SEASON:
        return Frame(season=SEASON[word])
    if word in PART:
        return Frame(part=PART[word])
    unit = UNIT.get(word)
    if unit == "weekend":
        return Frame(anchor=_nearest_weekend(context))
    return Frame(anchor=period(context.now, unit)) if unit and unit != "second" else None


def _plural(line: TokenLine, at: int, context: TimeContext, *, lead: bool) -> Frame | None:
    word = line.word(at)
    if (
        word in WEEKDAYS_PLURAL
        and line.word(at + 1) not in {"ago", "back", "from"}
        and not _counted(line, at)
    ):
        return Frame(weekday=WEEKDAYS_PLURAL[word])
    if lead and word in {"weekends", "wkends"}:
        return Frame(anchor=_nearest_weekend(context))
    if lead and word == "weekdays":
        return Frame(anchor=nth_weekday(period(context.now, "week"), min(context.now.weekday(), 4), 1))
    return None


def _counted(line: TokenLine, at: int) -> bool:
    return amount(line, at - 1) is not None


def _nearest_weekend(context: TimeContext) -> LocalSpan:
    here = period(context.now, "weekend")
    if context.prefer == "future" or here.begin <= context.now:
        return here
    return period(context.now, "weekend", -1)
