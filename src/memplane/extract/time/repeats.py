"""What happens again and again: `every other Tuesday`, `once a week`, `daily at 9:15`, `on weekends`, `every six hours`."""

from typing import NamedTuple

from memplane.extract.time.calendar import GRAIN, LocalSpan, nth_weekday, period
from memplane.extract.time.durations import COARSE, unit_at
from memplane.extract.time.frame import Frame, TimeContext
from memplane.extract.time.grammar import extend, parse_frame
from memplane.extract.time.holidays import holiday
from memplane.extract.time.relative import position
from memplane.extract.time.resolve import resolve
from memplane.extract.time.tokens import TokenLine, amount, cardinal, ordinal
from memplane.extract.time.words import MONTH, OFTEN, PART, SEASON, UNIT, WEEKDAY, WEEKDAYS_PLURAL

_DAYS_MAX = 31
_UNCOUNTED = frozenset({"second", "minute", "hour"})
"""`Sixty miles an hour` and `$20 an hour` are rates."""


class Repeat(NamedTuple):
    """Tokens up to `end` repeat `every` so often; `span` is one occurrence, or the stretch in which they happened."""

    end: int
    span: LocalSpan
    every: str | None


class _Found(NamedTuple):
    end: int
    frame: Frame
    every: str | None


def repeat(line: TokenLine, at: int, context: TimeContext) -> Repeat | None:
    """The repetition that starts here."""
    found = _repetition(line, at, context)
    if found is None:
        return None
    within = _within(line, found, context)
    if within is not None:
        return within
    end, whole = extend(line, _listed(line, found), found.frame, context)
    if whole.weekday is not None and found.frame.weekday is None:  # `six hours a day, Monday to Friday`
        end, whole = found.end, found.frame
    span = resolve(whole, context)
    return Repeat(end, span, found.every) if span else None


def _listed(line: TokenLine, found: _Found) -> int:
    """Past the other days of `every Tuesday and Thursday`: they come as often."""
    end = found.end
    if found.frame.weekday is None or line.word(end - 1) not in WEEKDAY:
        return end
    while line.word(end) in {"and", "or", ",", "&"}:
        after = end + 1 + (line.word(end + 1) in {"and", "or"})
        if line.word(after) not in WEEKDAY:
            break
        end = after + 1
    return end


def _repetition(line: TokenLine, at: int, context: TimeContext) -> _Found | None:
    word = line.word(at)
    if word in {"every", "each"}:
        return _every(line, at + 1, context)
    if word in OFTEN:
        return _adverb(line, at, context)
    if word == "on":
        inner = _nth_of_every(line, at + 1) or _parts(line, at + 1)
        return inner or _plural(line, at + 1, context, lead=True)
    return (
        _nth_of_every(line, at)
        or _parts(line, at)
        or _plural(line, at, context, lead=False)
        or _times_a(line, at, context)
    )


def _nth_of_every(line: TokenLine, at: int) -> _Found | None:
    """`the first Monday of every month`, `the 1st of each month`."""
    found = position(line, at + (line.word(at) == "the"))
    if found is None:
        return None
    end, count = found
    weekday = WEEKDAY.get(line.word(end))
    unit = unit_at(line, end) if weekday is None else (end + 1, "week")
    if unit is not None:
        end = unit[0]
    if line.word(end) not in {"of", "in"} or line.word(end + 1) not in {"every", "each", "any"}:
        return None
    container = unit_at(line, end + 2)
    if container is None or container[1] in _UNCOUNTED:
        return None
    if weekday is not None:
        frame = Frame(weekday=weekday)
    elif unit is None and 1 <= count <= _DAYS_MAX:
        frame = Frame(days=(count, count))
    else:
        return None
    return _Found(container[0], frame, often(1, container[1]))


def _parts(line: TokenLine, at: int) -> _Found | None:
    """`Sunday mornings`, `Friday nights`."""
    weekday, part = WEEKDAY.get(line.word(at)), line.word(at + 1)
    if weekday is None or part not in PART or not part.endswith("s"):
        return None
    return _Found(at + 2, Frame(weekday=weekday, part=PART[part]), "week")


def _within(line: TokenLine, found: _Found, context: TimeContext) -> Repeat | None:
    """`every Monday in May 2021`: the stretch it happened in."""
    if (
        line.word(found.end) not in {"in", "of", "during", "from", "throughout"}
        or found.frame.weekday is None
    ):
        return None
    first = parse_frame(line, found.end + 1, context)
    if first is None or first.frame.daily() or first.frame.clock or not first.frame.dated():
        return None
    span = resolve(first.frame, context)
    return Repeat(first.end, span, found.every) if span else None


def often(count: float, unit: str) -> str:
    """`week`, `2 weeks`: a fortnight is two weeks, and a weekend comes once a week."""
    unit, count = {"fortnight": ("week", 2 * count), "weekend": ("week", count), "night": ("day", count)}.get(
        unit, (unit, count)
    )
    return unit if count == 1 else f"{count:g} {unit}s"


def _every(line: TokenLine, at: int, context: TimeContext) -> _Found | None:
    """What follows `every`: an interval, a weekday, a month, a part of the day, a holiday, the 15th."""
    at += line.word(at) == "single"
    count = 2 if line.word(at) in {"other", "second"} else 1
    at += count - 1
    word = line.word(at)
    named = _named(word)
    if named is not None:
        frame, unit = named
        return _Found(at + 1, frame, often(count, unit))
    if word in {"weekday", "workday"}:
        return _Found(at + 1, Frame(anchor=_weekday(context)), "day")
    feast = holiday(line, at)
    if feast is not None:
        return _Found(*feast, often(count, "year"))
    unit_found = unit_at(line, at)
    if unit_found is not None and unit_found[1] != "second":
        end, unit = unit_found
        return _Found(end, Frame(anchor=_occurrence(unit, context)), often(count, unit))
    return _interval(line, at, context) or _day_of_month(line, at)


def _named(word: str) -> tuple[Frame, str] | None:
    if word in WEEKDAY:
        return Frame(weekday=WEEKDAY[word]), "week"
    if word in MONTH:
        return Frame(month=MONTH[word]), "year"
    if word in SEASON:
        return Frame(season=SEASON[word]), "year"
    return (Frame(part=PART[word]), "day") if word in PART else None


def _interval(line: TokenLine, at: int, context: TimeContext) -> _Found | None:
    """`every six hours`, `every 3rd day`, `every few weeks`."""
    nth = ordinal(line, at)
    found = nth or amount(line, at)
    if found is None:
        return None
    weekday = WEEKDAY.get(line.word(found[0]))
    if nth and weekday is not None:
        return _Found(found[0] + 1, Frame(weekday=weekday), often(nth[1], "week"))
    unit = unit_at(line, found[0])
    if unit is None:
        return None
    vague = not nth and cardinal(line, at) is None
    every = None if vague else often(found[1], unit[1])
    return _Found(unit[0], Frame(anchor=_occurrence(unit[1], context)), every)


def _day_of_month(line: TokenLine, at: int) -> _Found | None:
    """`every 15th`, `every 4th of July`."""
    found = ordinal(line, at) if line.number(at) is not None else None
    if found is None or not 1 <= found[1] <= _DAYS_MAX:
        return None
    end, day = found
    named = line.word(end) == "of" and MONTH.get(line.word(end + 1))
    if named:
        return _Found(end + 2, Frame(days=(day, day), month=named), "year")
    return None if line.word(end).isalpha() else _Found(end, Frame(days=(day, day)), "month")


def _adverb(line: TokenLine, at: int, context: TimeContext) -> _Found | None:
    """`daily`, `weekly`; `the Daily Mail` and `an hourly rate` are something else."""
    titled = line.capital(at) and at > 0 and line.word(at - 1) not in {".", "!", "?", "-", ":"}
    if titled or line.word(at + 1) in {"rate", "rates", "wage", "wages", "pay", "salary"}:
        return None
    count, unit = OFTEN[line.word(at)]
    if line.word(at - 1) == "-" and line.word(at - 2) in {"bi", "semi"}:
        if line.word(at - 2) == "semi":
            return None
        count *= 2
    return _Found(at + 1, Frame(anchor=_occurrence(unit, context)), often(count, unit))


def _times_a(line: TokenLine, at: int, context: TimeContext) -> _Found | None:
    """`once a week`, `three times a day`, `twice per month`, `four days a week`, `once every two weeks`."""
    end = _how_often(line, at)
    if not end:
        return None
    if line.word(end) in {"every", "each"}:
        found = _every(line, end + 1, context)
        return found and found._replace(frame=found.frame)
    if line.word(end) not in {"a", "an", "per"}:
        return None
    unit = unit_at(line, end + 1)
    days = line.word(end - 1) not in {"times", "x"} and line.word(at) not in _ONCE
    if unit is None or (days and unit[1] in _UNCOUNTED):
        return None
    return _Found(unit[0], Frame(anchor=_occurrence(unit[1], context)), often(1, unit[1]))


_ONCE = frozenset({"once", "twice", "thrice"})


def _how_often(line: TokenLine, at: int) -> int:
    """Past `once`, `three times`, `four days`; 0 where there is no such thing."""
    if line.word(at) in _ONCE:
        return at + 1
    found = amount(line, at)
    if found is None:
        return 0
    counted = UNIT.get(line.word(found[0])) in COARSE[:5] or line.word(found[0]) in {"times", "x", *PART}
    return found[0] + 1 if counted else 0


def _plural(line: TokenLine, at: int, context: TimeContext, *, lead: bool) -> _Found | None:
    """`Tuesdays`, `on weekends`, `on weekdays`."""
    word = line.word(at)
    counted = word in WEEKDAYS_PLURAL and (
        line.word(at + 1) in {"ago", "back", "from"} or amount(line, at - 1) is not None
    )
    if word in WEEKDAYS_PLURAL and not counted:
        return _Found(at + 1, Frame(weekday=WEEKDAYS_PLURAL[word]), "week")
    at_weekends = lead or line.word(at - 1) == "at"
    if at_weekends and word in {"weekends", "wkends"}:
        return _Found(at + 1, Frame(anchor=nearest_weekend(context)), "week")
    if lead and word == "weekdays":
        return _Found(at + 1, Frame(anchor=_weekday(context)), "day")
    return None


def _weekday(context: TimeContext) -> LocalSpan | None:
    return nth_weekday(period(context.now, "week"), min(context.now.weekday(), 4), 1)


def _occurrence(unit: str, context: TimeContext) -> LocalSpan:
    if unit == "weekend":
        return nearest_weekend(context)
    return period(context.now, "day" if unit == "night" else unit if unit in GRAIN else "day")


def nearest_weekend(context: TimeContext) -> LocalSpan:
    here = period(context.now, "weekend")
    if context.prefer == "future" or here.begin <= context.now:
        return here
    return period(context.now, "weekend", -1)
