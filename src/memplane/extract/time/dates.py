"""Dates in words: 15th of March, March 15 2024, Mar '24, the 5th, Q3, week 36, the 1990s."""

from memplane.extract.time.calendar import MONTHS, YEARS_OF_DECADE
from memplane.extract.time.frame import Frame, TimeContext
from memplane.extract.time.numeric import (
    CENTURY,
    DAYS_MAX,
    YEAR_DIGITS,
    YEAR_MAX,
    YEAR_MIN,
    YEAR_OLD,
    free,
    full_year,
)
from memplane.extract.time.tokens import TokenLine, ordinal
from memplane.extract.time.words import AMBIGUOUS, DECADE, MODIFIER, MONTH, WEEKDAY, listed

Rule = tuple[int, Frame]

_QUARTERS = 4
_WEEKS = 53
_MINUTES = 60
_FULL_STOP = frozenset(
    {"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"}
) | {name for name in WEEKDAY if not name.endswith("day")}


def month_name(line: TokenLine, at: int) -> tuple[int, int] | None:
    """A month's name, with the full stop of its abbreviation."""
    month = MONTH.get(line.word(at))
    if month is None:
        return None
    return after_name(line, at), month


def after_name(line: TokenLine, at: int) -> int:
    stop = line.word(at) in _FULL_STOP and line.word(at + 1) == "." and line.glued(at + 1)
    return at + 2 if stop and at + 2 < len(line) else at + 1


def _day(line: TokenLine, at: int) -> tuple[int, int, bool] | None:
    """A day of the month: the next index, the day, and whether it was written as an ordinal."""
    found = ordinal(line, at)
    if found is not None:
        return (*found, True) if 1 <= found[1] <= DAYS_MAX else None
    number = line.number(at)
    if number is None or not 1 <= number <= DAYS_MAX or line.digits(at) > len("31") or not free(line, at):
        return None
    if line.glued(at + 1) and line.word(at + 1).isalpha() and line.word(at + 1) not in MONTH:
        return None
    return at + 1, number, False


_TO = frozenset({"-", "to", "till", "until", "through", "thru", "and", "/", "&"})


def _days(line: TokenLine, at: int) -> tuple[int, tuple[int, int], bool] | None:
    """A day or several in a row: `13`, `13-15`, `the 13th to the 15th`."""
    first = _day(line, at)
    if first is None:
        return None
    end, day, named = first
    if line.word(end) in _TO:
        start = end + 1 + (line.word(end + 1) == "the")
        second = _day(line, start)
        if second is not None and second[1] > day:
            return second[0], (day, second[1]), named or second[2]
    return end, (day, day), named


def day_month(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`15 March`, `15th of March`, `13 to 15 July 2024`, `14april`, `31-Oct-74`."""
    start = at + 1 if line.word(at) == "the" else at
    found = _days(line, start)
    if found is None:
        return None
    end, days, _ = found
    if line.word(end) in {"of", "-", "/", "."}:
        end += 1
    elif line.word(end) == "day" and line.word(end + 1) in {"of", "in"}:
        end += 2
    month = month_name(line, end)
    if month is None:
        return None
    if _hours(line, month[0]):
        return month[0], Frame(month=month[1], days=days)
    end, year = year_after(line, month[0], context, short=line.word(month[0]) in {"-", "/"})
    return end, Frame(year=year, month=month[1], days=days)


def month_day(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`March 15`, `March the 15th, 2024`, `July 13-15`, `Feb13`."""
    month = month_name(line, at)
    if month is None:
        return None
    joined = line.word(month[0]) in {"-", "/"} and line.glued(month[0]) and line.glued(month[0] + 1)
    start = month[0] + (joined or line.word(month[0]) == "the")
    found = _day_joined(line, start) if joined else _days(line, start)
    if found is None or _is_clock(line, start, found[0]):
        return None
    end, days, named = found
    if not named and line.word(end) in {"am", "pm", "%"}:
        return None
    if _hours(line, end):
        return end, Frame(month=month[1], days=days)
    end, year = year_after(line, end, context, short=False)
    weak = line.word(at) in AMBIGUOUS and not (named or year or line.capital(at)) and _counts_noun(line, end)
    return end, Frame(year=year, month=month[1], days=days, strong=not weak)


def _day_joined(line: TokenLine, at: int) -> tuple[int, tuple[int, int], bool] | None:
    """The day of `Sep-23-2020`: what follows its dash is the year, not another day."""
    found = _day(line, at)
    return found and (found[0], (found[1], found[1]), found[2])


def year_month_day(line: TokenLine, at: int) -> Rule | None:
    """`2019/aug/01`, `2019-Aug-01`, `2019 Aug 1`, and `20230514` in one."""
    year = line.number(at)
    if year is None or _goes_on(line, at):
        return None
    if line.digits(at) == len("20230514"):
        return _one_number(line, at)
    if line.digits(at) != YEAR_DIGITS or not YEAR_MIN <= year <= YEAR_MAX:
        return None
    sign = line.word(at + 1) if line.glued(at + 1) and line.word(at + 1) in {"-", "/", "."} else ""
    month = MONTH.get(line.word(at + 1 + bool(sign)))
    day_at = at + 2 + 2 * bool(sign)
    if (
        month is None
        or (sign and line.word(day_at - 1) != sign)
        or (not sign and line.word(at + 1) in AMBIGUOUS)
    ):
        return None
    day = line.number(day_at)
    if day is None or not 1 <= day <= DAYS_MAX or (not sign and line.word(day_at + 1).isalpha()):
        return None
    return day_at + 1, Frame(year=year, month=month, days=(day, day))


def _one_number(line: TokenLine, at: int) -> Rule | None:
    """Eight digits that are a date of the last and the next few decades; an order number seldom is."""
    text = line.word(at)
    year, month, day = int(text[:4]), int(text[4:6]), int(text[6:])
    if not (_RECENT <= year <= YEAR_MAX and 1 <= month <= MONTHS and 1 <= day <= DAYS_MAX):
        return None
    return at + 1, Frame(year=year, month=month, days=(day, day))


_RECENT = 1950


def _goes_on(line: TokenLine, at: int) -> bool:
    """Whether other numbers stand beside it, as in a phone number; `20190704_1200` is a file's name."""
    before, after = line.number(at - 1) is not None, line.number(at + 1) is not None
    return before or (after and line.text[line.tokens[at].end] != "_")


def _is_clock(line: TokenLine, start: int, end: int) -> bool:
    """`March 15.30` and `Sunday 16.29h` carry times, `July 8.` does not."""
    if end != start + 1 or not line.glued(end):
        return False
    return line.word(end) == "h" or (
        line.word(end) in {".", ":"} and line.number(end + 1) is not None and line.glued(end + 1)
    )


def year_after(line: TokenLine, at: int, context: TimeContext, *, short: bool) -> tuple[int, int | None]:
    """The year that follows a month or a day, if one does: `2024`, `, 2024`, `'24`, or `-24` after `31-Oct`."""
    start = at
    if line.word(at) in {",", "of", "in", "'", "-", "/"}:
        start += 1 + (line.word(at + 1) == "'")
    number = line.number(start)
    if number is None or line.word(start + 1) in {":", "am", "pm", "h"} or _is_clock(line, start, start + 1):
        return at, None
    old = (
        YEAR_OLD <= number < YEAR_MIN and number % CENTURY >= _MINUTES
    )  # `14 July 1789`; 1815 is a time of day
    if line.digits(start) == YEAR_DIGITS and (old or YEAR_MIN <= number <= YEAR_MAX):
        return start + 1, number
    of = line.word(at) == "of" and number > DAYS_MAX
    if line.digits(start) == len("24") and (short or of or line.word(start - 1) == "'"):
        return start + 1, full_year(line.word(start), context.now.year)
    return at, None


def _hours(line: TokenLine, at: int) -> bool:
    """`1915-2045` after a day is a pair of times; after a month it would be years."""
    if not (line.word(at + 1) == "-" and line.glued(at + 1) and line.glued(at + 2)):
        return False
    pair = (line.number(at), line.number(at + 2))
    four = line.digits(at) == line.digits(at + 2) == YEAR_DIGITS
    return four and all(number is not None and number % CENTURY < _MINUTES for number in pair)


def month_alone(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`March`, `March 2024`, `Mar '24`; `may` and `march` alone prove nothing."""
    month = month_name(line, at)
    if month is None:
        return None
    end, year = year_after(line, month[0], context, short=False)
    capital = line.capital(at) and at > 0 and line.word(at - 1) not in {".", "!", "?", '"', "'"}
    letters = line.text[line.tokens[at].start : line.tokens[at].end]
    shouted = letters.isupper() and len(letters) == len("APR")
    weak = (
        (line.word(at) in AMBIGUOUS or shouted)
        and year is None
        and not (capital and line.word(at) in {"may", "march"})
    )
    if capital and line.word(at) == "may" and line.capital(at - 1) and line.word(at - 1) not in MONTH:
        weak = year is None
    return end, Frame(year=year, month=month[1], strong=not weak)


def day_alone(line: TokenLine, at: int, frame: Frame, *, lead: bool) -> Rule | None:
    """`the 5th`, `on the 24`, `25th`; a bare number only beside a weekday or a month named elsewhere."""
    article = line.word(at) == "the"
    found = _days(line, at + article)
    if found is None:
        return None
    end, days, named = found
    words = line.number(at + article) is None
    beside = frame.weekday is not None or (frame.anchor is not None and frame.anchor.grain == "month")
    beside = beside or (line.word(end) == "of" and _day_of_month(line, end + 1))
    if not named and not beside:
        return (end, Frame(days=days, strong=False)) if article and not words and frame == Frame() else None
    if (line.word(end) == "." and line.number(at) is not None) or _counts_noun(line, end):
        return None
    spelled_out = words and line.word(at - 1) in {"on", "by", "until", "since"} and days[0] > _PLACES
    strong = named and (not words or spelled_out) and (article or lead)
    return end, Frame(days=days, strong=strong)


_PLACES = 3
"""`On the second` may be the second of anything; `on the thirtieth` is a day."""


def _day_of_month(line: TokenLine, at: int) -> bool:
    """`20 of next month`, `20 of the current month`."""
    at += line.word(at) == "the"
    return line.word(at) in MODIFIER and line.word(at + 1) == "month"


def _counts_noun(line: TokenLine, at: int) -> bool:
    """`the 5th floor` counts floors; `the 5th,` and `on the 5th we` do not."""
    word = line.word(at)
    return word.isalpha() and word not in _AFTER_DAY


_AFTER_DAY = frozenset(
    listed(
        "at in of and or to till until through around about by from for with i we he she they you it is "
        "was are were will that this because so but if when then after before morning afternoon evening "
        "night noon early late as on"
    )
)


_BEFORE_OLD = frozenset({"in", "since", "circa", "year", "until", "before", "after", "from"})


def year_alone(line: TokenLine, at: int, frame: Frame, *, lead: bool) -> Rule | None:
    """`2014`, `the year 2014`, `2014 AD`."""
    number = line.number(at)
    if line.word(at) == "year" and line.digits(at + 1) == YEAR_DIGITS:
        found = year_alone(line, at + 1, frame, lead=True)
        return found and (found[0], Frame(year=found[1].year))
    end = at + 1
    if (
        number is None
        or line.digits(at) != YEAR_DIGITS
        or not (YEAR_OLD if lead else YEAR_MIN) <= number <= YEAR_MAX
        or _other(line, at)
    ):
        return None
    if number < YEAR_MIN and (line.word(at - 1) not in _BEFORE_OLD or _counts_noun(line, end)):
        return None
    if line.word(end) in {"ad", "ce"}:
        return end + 1, Frame(year=number)
    if line.word(end) == "a" and line.word(end + 1) == "." and line.word(end + 2) == "d":
        return end + 3 + (line.word(end + 3) == "."), Frame(year=number)
    counts = number % CENTURY == 0 and line.word(end).endswith("s") and len(line.word(end)) > len("was")
    return end, Frame(year=number, strong=lead and not counts)


def _other(line: TokenLine, at: int) -> bool:
    """Whether four digits are part of something longer, or count years before Christ."""
    if not free(line, at):
        return True
    end = at + 1
    if line.glued(end) and (line.word(end) in {"s", ":", "%"} or line.number(end + 1) is not None):
        return True
    return line.word(end) in {"bc", "bce"} or (line.word(end) == "b" and line.word(end + 2) == "c")


def decade(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`the 1990s`, `the 90s`, `the nineties`."""
    word, number = line.word(at), line.number(at)
    end, tens = at + 1, DECADE.get(word)
    introduced = line.word(at - 1) in {"the", "early", "mid", "late", "'", "-"}
    if number is not None and line.word(at + 1) == "s" and line.glued(at + 1) and free(line, at):
        end, tens = at + 2, number
    elif number is not None and line.word(at + 1) == "'" and line.word(at + 2) == "s" and introduced:
        end, tens = at + 3, number
    if tens is None or tens % YEARS_OF_DECADE or (tens < CENTURY and not introduced):
        return None
    if tens < CENTURY:
        tens += context.now.year // CENTURY * CENTURY
        tens -= CENTURY if tens > context.now.year else 0
    if not YEAR_MIN - CENTURY <= tens <= YEAR_MAX:
        return None
    return end, Frame(decade=tens)


def quarter(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`Q3`, `Q3 2024`, `2024Q3`, `18q4`, `third quarter of 2024`."""
    if line.word(at) == "q" and line.glued(at + 1) and _in_year(line, at + 1):
        end, year = year_after(line, at + 2, context, short=True)
        return end, Frame(quarter=line.number(at + 1), year=year)
    if (
        line.number(at) is not None
        and line.word(at + 1) == "q"
        and line.glued(at + 1)
        and _in_year(line, at + 2)
    ):
        return at + 3, Frame(
            quarter=line.number(at + 2), year=full_year(line.word(at)[-4:], context.now.year)
        )
    if line.word(at) == "h" and line.glued(at + 1) and line.word(at + 1) in {"1", "2"}:
        return _half_year(line, at, context)
    found = ordinal(line, at)
    if found is None or found[1] > _QUARTERS or line.word(found[0]) not in {"quarter", "qtr"}:
        return None
    end, year = year_after(line, found[0] + 1, context, short=False)
    return end, Frame(quarter=found[1], year=year)


def _half_year(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`H1 2023`; `H2` alone is a heading."""
    end, year = year_after(line, at + 2, context, short=False)
    return None if year is None else (end, Frame(nth=(int(line.word(at + 1)), "half"), year=year))


def _in_year(line: TokenLine, at: int) -> bool:
    return 1 <= (line.number(at) or 0) <= _QUARTERS


def week_number(line: TokenLine, at: int, context: TimeContext) -> Rule | None:
    """`week 36`, `week 36 of 2017`, `2017-W36`."""
    if (
        line.digits(at) == YEAR_DIGITS
        and line.word(at + 1) == "-"
        and line.word(at + 2) == "w"
        and line.glued(at + 3)
    ):
        iso = line.number(at + 3)
        return (at + 4, Frame(week=iso, year=line.number(at))) if iso and iso <= _WEEKS else None
    if (
        line.word(at) != "week"
        or line.number(at + 1) is None
        or not 1 <= (line.number(at + 1) or 0) <= _WEEKS
    ):
        return None
    end, year = year_after(line, at + 2, context, short=False)
    return end, Frame(
        week=line.number(at + 1), year=year, strong=year is not None or line.word(at - 1) == "calendar"
    )


def weekday(line: TokenLine, at: int) -> Rule | None:
    """`Monday`, `Mon.`; `sat` and `sun` alone prove nothing."""
    found = WEEKDAY.get(line.word(at).removesuffix("'s"))
    if found is None:
        return None
    owns_nothing = line.word(at).endswith("'s") and not line.word(at + 1).isalnum()  # `we eat at Friday's`
    weak = line.word(at) in AMBIGUOUS or owns_nothing
    return after_name(line, at), Frame(weekday=found, strong=not weak)
