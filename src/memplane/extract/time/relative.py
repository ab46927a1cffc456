"""Times relative to the reference: yesterday, two weeks ago, last Monday, this past weekend, the summer before last."""

from datetime import datetime, timedelta

from memplane.extract.time.calendar import GRAIN, WEEKDAYS, LocalSpan, add_units, floor, period
from memplane.extract.time.durations import duration, plural, shifted, span_away, unit_at
from memplane.extract.time.frame import Frame, TimeContext
from memplane.extract.time.tokens import TokenLine, amount, cardinal, ordinal
from memplane.extract.time.words import (
    AMBIGUOUS,
    DECADE,
    EDGE,
    EDGE_SHORT,
    EVENING,
    MODIFIER,
    MONTH,
    PART,
    PART_ALONE,
    SEASON,
    WEEKDAY,
    WEEKDAYS_PLURAL,
)

Rule = tuple[int, Frame]

_DAY_WORDS = {
    "today": 0,
    "today's": 0,
    "yesterday": -1,
    "yesterday's": -1,
    "tomorrow": 1,
    "tomorrow's": 1,
    "tomorrows": 1,
    "tmrw": 1,
    "tomorow": 1,
    "tommorow": 1,
    "tommorrow": 1,
}
_TONIGHT = frozenset({"tonight", "tonite", "tonight's"})
_AMOUNT_MAX = 100_000
_DENIAL_REACH = 7
_DENIALS = frozenset({"never", "not", "first", "wasn't", "havent", "no"})


def today(context: TimeContext, offset: int = 0) -> LocalSpan:
    return period(context.now, "day", offset)


def day_word(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`today`, `tonight`, `the day before yesterday`, `this morning`, `last night`, `right now`."""
    word = line.word(at)
    if word in _DAY_WORDS:
        return at + 1, Frame(anchor=today(context, _DAY_WORDS[word]))
    if word in _TONIGHT:
        return at + 1, Frame(anchor=today(context), part=EVENING)
    if word == "day":
        ends = {("before", "yesterday"): -2, ("after", "tomorrow"): 2}
        offset = ends.get((line.word(at + 1), line.word(at + 2)))
        return None if offset is None else (at + 3, Frame(anchor=today(context, offset)))
    if word in {"this", "last"}:
        return _this_part(line, at, context)
    if word in {"right", "just"} and line.word(at + 1) == "now":
        return at + 2, Frame(anchor=period(context.now, "second"), strong=word == "right")
    return (at + 1, Frame(anchor=period(context.now, "second"), strong=False)) if word == "now" else None


def _this_part(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    name = line.word(at + 1)
    if line.word(at) == "this" and name in PART_ALONE:
        return at + 2, Frame(anchor=today(context), part=PART[name])
    if (line.word(at) == "last" and name in {"night", "evening"}) or (line.word(at), name) == (
        "last",
        "night's",
    ):
        return at + 2, Frame(anchor=today(context, -1), part=EVENING)
    return None


def counted(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`three weeks ago`, `an hour and a half from now`, `2 Thursdays back`, `in two months`."""
    ahead = line.word(at) == "in"
    start = at + 1 if ahead else at
    if ahead and line.word(start) in {"just", "only", "under", "over", "another"}:
        return None
    found = duration(line, start)
    if found is None:
        return _counted_days(line, start, context)
    back, past = _direction(line, found.end)
    if ahead and back < 0:  # `the race I took part in a week ago`
        return None
    sign, end = (1, _time_word(line, found.end)) if ahead else (back, past)
    end += sign < 0 and line.word(end) == "today"
    if sign and line.word(end - 1) == "today":
        return end, Frame(anchor=period(shifted(context.now, found, sign), "day"))
    if not sign or (ahead and _denied(line, at)):
        return None
    part = EVENING if found.unit == "night" else None
    return end, Frame(anchor=span_away(context.now, found, sign), part=part)


def _time_word(line: TokenLine, at: int) -> int:
    """Past the last word of `in two weeks' time`."""
    apostrophe = line.word(at) == "'"
    return at + 1 + apostrophe if line.word(at + apostrophe) == "time" else at


def _denied(line: TokenLine, at: int) -> bool:
    """`I haven't slept in two days` looks back, and so does `the first time in years`."""
    before = [line.word(index) for index in range(max(0, at - _DENIAL_REACH), at)]
    return any(word in _DENIALS or word.endswith("n't") for word in before)


def _direction(line: TokenLine, at: int) -> tuple[int, int]:
    if line.word(at) in {"ago", "back"}:
        back_to = line.word(at) == "back" and line.word(at + 1) in {"to", "in", "at", "on", "from"}
        return (0, at) if back_to else (-1, at + 1)
    if line.word(at) == "hence":
        return 1, at + 1
    if line.word(at) == "from":
        now = at + 1 + (line.word(at + 1) == "right")
        if line.word(now) in {"now", "today"}:
            return 1, now + 1
    return 0, at


def _counted_days(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`two Thursdays ago`, `3 Fridays from now`."""
    found = cardinal(line, at)
    if found is None or line.word(at) in {"in", "a"}:
        return None
    weekday = WEEKDAYS_PLURAL.get(line.word(found[0]), WEEKDAY.get(line.word(found[0])))
    sign, end = _direction(line, found[0] + 1)
    if weekday is None or not sign or not 0 < found[1] < _AMOUNT_MAX:
        return None
    return end, Frame(anchor=weekday_span(context.now, weekday, sign * found[1]))


def weekday_span(now: datetime, weekday: int, count: int) -> LocalSpan:
    """The count-th such weekday after or before today, today not counted."""
    start = floor(now, "day")
    if count > 0:
        ahead = (weekday - start.weekday() - 1) % WEEKDAYS + 1
        return period(start + timedelta(days=ahead + WEEKDAYS * (count - 1)), "day")
    behind = (start.weekday() - weekday - 1) % WEEKDAYS + 1
    return period(start - timedelta(days=behind + WEEKDAYS * (-count - 1)), "day")


def modified(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`last week`, `the past three days`, `next few months`, `this past weekend`, `last March`."""
    found = _modifier(line, at)
    if found is None:
        return None
    end, offset = found
    several = _several(line, end, offset, context)
    if several is not None:
        return several
    unit = unit_at(line, end)
    if unit is not None:
        loose = plural(line, unit[0] - 1) or (line.word(at - 1) == "the" and unit[1] == "day")
        loose = loose or (line.word(unit[0]) == "of" and offset != 0)  # `the last hour of the day`
        return None if loose else _one(line, unit, offset, context)
    if line.word(end - 1) in {"coming", "upcoming"} and line.word(end) in WEEKDAY:
        return end + 1, Frame(anchor=weekday_span(context.now, WEEKDAY[line.word(end)], 1))
    return None if _verb(line, end) else _named(line, end, offset)


def _verb(line: TokenLine, at: int) -> bool:
    """`this may help` and `this march` are no months; `This May` and `last may` are."""
    return line.word(at - 1) == "this" and line.word(at) in AMBIGUOUS and not line.capital(at)


def _modifier(line: TokenLine, at: int) -> tuple[int, int] | None:
    word = line.word(at)
    if word not in MODIFIER:
        return None
    if word == "this" and line.word(at + 1) in {"past", "last", "coming", "next", "upcoming"}:
        return at + 2, MODIFIER[line.word(at + 1)]
    return at + 1, MODIFIER[word]


def _several(line: TokenLine, at: int, offset: int, context: TimeContext) -> Rule | None:
    found = amount(line, at) if line.word(at) not in {"a", "an", "the"} else None
    if found is None or not offset:
        return None
    unit = unit_at(line, found[0])
    count = round(found[1])
    if unit is None or not 0 < count < _AMOUNT_MAX or count != found[1]:
        return None
    if line.word(unit[0]) == "of":  # `the last two weeks of the holiday` are not counted from now
        return None
    span = period(context.now, unit[1], offset * count if offset < 0 else 1, count)
    return unit[0], Frame(anchor=span)


def _one(_line: TokenLine, unit: tuple[int, str], offset: int, context: TimeContext) -> Rule | None:
    end, name = unit
    if name == "second" or (name in {"minute", "night"} and offset < 0):
        return None
    if name == "night":
        return end, Frame(anchor=today(context, offset), part=EVENING)
    if name in {"hour", "minute"} and offset < 0:
        return end, Frame(anchor=LocalSpan(add_units(context.now, name, -1), context.now, GRAIN[name]))
    return end, Frame(anchor=period(context.now, name, offset))


def _named(line: TokenLine, at: int, offset: int) -> Rule | None:
    """A month, weekday or season after `last`, `this` or `next`."""
    word = line.word(at).removesuffix("'s")
    if word in WEEKDAY:
        return at + 1, Frame(weekday=WEEKDAY[word], offset=offset)
    if word in MONTH:
        return at + 1, Frame(month=MONTH[word], offset=offset)
    if word in SEASON:
        return at + 1, Frame(season=SEASON[word], offset=offset)
    return None


def before_last(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`the weekend before last`, `the summer before last`, `Friday after next`."""
    unit = unit_at(line, at)
    end = unit[0] if unit else at + 1
    offset = {("before", "last"): -2, ("after", "next"): 2}.get((line.word(end), line.word(end + 1)))
    if offset is None:
        return None
    if unit and unit[1] == "night":
        return end + 2, Frame(anchor=today(context, offset), part=EVENING)
    if unit:
        return end + 2, Frame(anchor=period(context.now, unit[1], offset))
    found = _named(line, at, offset)
    return found and (end + 2, found[1])


def within_period(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`earlier this month`, `later today`, `the rest of the week`, `all week`."""
    word = line.word(at)
    if word == "rest" and line.word(at + 1) == "of":
        found = _period_named(line, at + 2, context)
        start = floor(context.now, "day")
        return found and (found[0], Frame(anchor=LocalSpan(start, found[1].until, "day")))
    if word == "all":
        unit = unit_at(line, at + 1)
        plain = (
            unit
            and not line.word(at + 1).endswith("s")
            and unit[1] in {"day", "week", "weekend", "month", "year"}
        )
        if context.anchor is not None:  # `last Sunday I slept all day`
            return None
        return (unit[0], Frame(anchor=period(context.now, unit[1]))) if unit and plain else None
    if word not in {"earlier", "later"}:
        return None
    found = _period_named(line, at + 1, context)
    if found is None or not found[1].begin < context.now < found[1].until:
        return None
    span = found[1]
    split = (
        LocalSpan(span.begin, context.now, span.grain)
        if word == "earlier"
        else LocalSpan(context.now, span.until, span.grain)
    )
    return found[0], Frame(anchor=split)


def _period_named(line: TokenLine, at: int, context: TimeContext) -> tuple[int, LocalSpan] | None:
    if line.word(at) in {"today", "tonight"}:
        return at + 1, today(context)
    at += line.word(at) == "in"
    unit = unit_at(line, at + 1) if line.word(at) in {"this", "the"} else None
    return (unit[0], period(context.now, unit[1])) if unit else None


def edge(line: TokenLine, at: int, frame: Frame, context: TimeContext) -> Rule | None:
    """`end of`, `early`, `mid-`, `late`, and the shorthand EOM; what they are the edge of comes next."""
    word = line.word(at)
    if word in EDGE_SHORT and line.text[line.tokens[at].start : line.tokens[at].end].isupper():
        name, unit = EDGE_SHORT[word]
        return at + 1, Frame(edge=name, anchor=period(context.now, unit))
    if word not in EDGE:
        return None
    if word in {"early", "mid", "late"}:
        final = at + 1 >= len(line) or not line.word(at + 1).isalnum()
        dangling = final and line.word(at + 1) != "-"
        if dangling and not (frame.daily() and word != "mid"):
            return None
        return at + 1 + (line.word(at + 1) == "-" and not dangling), Frame(edge=EDGE[word], strong=False)
    if line.word(at + 1) != "of":
        return None
    return at + 2, Frame(edge=EDGE[word], strong=False)


def bare_period(line: TokenLine, at: int, frame: Frame, context: TimeContext) -> Rule | None:
    """`the month` after `end of` or `first Monday of`: nowhere else does it point at the present one."""
    if frame.edge is None and frame.nth is None:
        return None
    unit = unit_at(line, at + (line.word(at) == "the"))
    if unit is None or unit[1] in {"second", "minute", "hour", "night"} or plural(line, unit[0] - 1):
        return None
    if line.number(unit[0]) is not None:
        return None
    return unit[0], Frame(anchor=period(context.now, unit[1]))


def nth(line: TokenLine, at: int) -> Rule | None:
    """`first Monday of`, `third last week of`, `last four months of`: what it is counted in comes next."""
    found = position(line, at)
    if found is None:
        return None
    end, count = found
    several = cardinal(line, end) if abs(count) == 1 else None
    run = several[1] if several else None
    end = several[0] if several else end
    weekday = WEEKDAY.get(line.word(end))
    unit = unit_at(line, end) if weekday is None else (end + 1, str(weekday))
    if line.word(end) == "half" and abs(count) <= 2:  # noqa: PLR2004  there are two halves
        unit = end + 1, "half"
    if line.word(end) in {"working", "business"} and line.word(end + 1) == "day" and run is None:
        unit = end + 2, "workday"
    if unit is None or line.word(unit[0]) not in {"of", "in"} or not _container(line, unit[0] + 1):
        return None
    if unit[1] not in _COUNTED_IN and weekday is None:
        return None
    if run is not None and (weekday is not None or not 0 < run < _RUN_MAX):
        return None
    return unit[0], Frame(nth=(count, unit[1]), run=run, strong=False)


_COUNTED_IN = frozenset({"day", "workday", "week", "weekend", "month", "quarter", "year", "half"})
_RUN_MAX = 100


def position(line: TokenLine, at: int) -> tuple[int, int] | None:
    """`third`, `third last`, `last`, `final`: counted from the end where negative."""
    found = ordinal(line, at)
    if found is not None:
        end, count = found
        return (end + 1, -count) if line.word(end) == "last" else (end, count)
    count = {"last": -1, "final": -1, "closing": -1, "penultimate": -2, "opening": 1}.get(line.word(at), 0)
    return (at + 1, count) if count else None


def _container(line: TokenLine, at: int) -> bool:
    if line.word(at) in {"the", "this", "last", "next"}:
        at += 1 + (line.word(at) == "the" and line.word(at + 1) in MODIFIER)
        decade = line.number(at) is not None and line.word(at + 1) == "s"
        return decade or unit_at(line, at) is not None or line.word(at) in MONTH or line.word(at) in DECADE
    return (
        line.word(at) in MONTH
        or line.word(at) in SEASON
        or line.digits(at) == len("2024")
        or unit_at(line, at) is not None
    )
