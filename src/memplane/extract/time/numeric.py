"""Dates in digits alone: 2024-03-15T10:30Z, 15/3/2024, 3/15, 15.3., 14-15.11.2017, 3/2024."""

import re
from collections.abc import Callable
from datetime import timedelta, timezone
from typing import Any

import msgspec

from memplane.extract.time.calendar import MONTHS
from memplane.extract.time.frame import Clock, Frame, TimeContext
from memplane.extract.time.tokens import TokenLine
from memplane.extract.time.words import EDGE, MONTH, WEEKDAY

Rule = tuple[int, Frame]

DAYS_MAX = 31
CENTURY = 100
YEAR_MIN, YEAR_MAX = 1900, 2099
YEAR_OLD = 1500
"""Before a month's name or after `in`, four digits are a year of any modern century."""
YEAR_DIGITS = 4
_SHORT_YEAR_AHEAD = 20
_SEP = r"\s?(?P<sep>[/.-])\s?"
_END = r"(?![\d%]|[./:]\d|-\d+(?![\d./]))"
_YMD = re.compile(
    r"(?P<y>\d{4})(?P<sep>[/.-])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})(?!\d|[.-]\d)"
    r"(?:[Tt](?P<h>\d\d):(?P<i>\d\d)(?::(?P<s>\d\d)(?:[.,]\d{1,9})?)?(?P<z>[Zz]|[+-]\d\d:?\d\d)?(?!\d))?"
)
_YM = re.compile(rf"(?P<y>\d{{4}})[/-](?P<m>\d{{1,2}}){_END}")
_DMY = re.compile(rf"(?P<a>\d{{1,2}}){_SEP}(?P<b>\d{{1,2}})\s?(?P=sep)\s?(?P<y>\d{{4}}|\d{{2}}){_END}")
_SPACED = re.compile(rf"(?P<a>\d{{1,2}}) (?P<b>\d{{1,2}}) (?P<y>\d{{4}}){_END}")
_MY = re.compile(rf"(?P<m>\d{{1,2}})/(?P<y>\d{{4}}){_END}")
_SLASH = re.compile(rf"(?P<a>\d{{1,2}})\s?/\s?(?P<b>\d{{1,2}}){_END}")
_DOT = re.compile(r"(?P<a>\d{1,2})\.(?P<b>\d{1,2})(?P<dot>\.(?!\d))?(?![\d%:]|[./]\d)")
_SPAN_DOT = re.compile(
    r"(?P<a>\d{1,2})\.?\s?(?:-|\N{EN DASH}|to|and|/)\s?(?P<b>\d{1,2})\.(?P<m>\d{1,2})(?:\.(?P<y>\d{4}|\d{2})?)?(?![\d%:]|[./]\d)"
)
_BEFORE_NUMBER = re.compile(r"[$€£#.\d:+]|[^\W\d_]")


def free(line: TokenLine, at: int) -> bool:
    """Whether a number starts here, rather than a price, a version, an identifier or the end of a longer number."""
    position = line.tokens[at].start
    if position == 0:
        return True
    before = line.text[position - 1]
    if before == "-" and position > 1 and line.text[position - 2].isalnum():
        return (
            line.word(at - 2) in EDGE
            or line.word(at - 2) in MONTH
            or line.word(at - 2) in WEEKDAY
            or line.number(at - 2) is not None
        )
    return (
        not _BEFORE_NUMBER.match(before)
        or line.word(at - 1) in MONTH
        or line.word(at - 1) in {"q", "pm", "am"}
    )


def full_year(text: str, now_year: int) -> int:
    """`74` is 1974 and `17` is 2017: the century that puts it at most twenty years ahead."""
    year = int(text)
    if len(text) == YEAR_DIGITS:
        return year
    year += now_year // CENTURY * CENTURY
    return year - CENTURY if year > now_year + _SHORT_YEAR_AHEAD else year


def _pair(one: int, two: int, context: TimeContext) -> tuple[int, int, bool] | None:
    """Which of two numbers is the day and which the month, and whether that was a guess."""
    day_first, month_first = two <= MONTHS and one <= DAYS_MAX, one <= MONTHS and two <= DAYS_MAX
    if one == 0 or two == 0 or not (day_first or month_first):
        return None
    if day_first and month_first and one != two:
        return (one, two, True) if context.day_first else (two, one, True)
    return (one, two, False) if day_first else (two, one, False)


def _valid(day: int, month: int) -> bool:
    return 1 <= month <= MONTHS and 1 <= day <= DAYS_MAX


def numeric(line: TokenLine, at: int, frame: Frame, context: TimeContext) -> Rule | None:
    """Any date in digits alone that starts here."""
    if not free(line, at):
        return None
    for rule in _NUMERIC:
        found = rule(line, line.tokens[at].start, frame, context)
        if found is not None:
            return line.after(found[0]), found[1]
    return None


def _ymd(line: TokenLine, position: int, _frame: Frame, _context: TimeContext) -> Rule | None:
    match = _YMD.match(line.text, position)
    if match is None or not _valid(int(match["d"]), int(match["m"])):
        return None
    day = int(match["d"])
    date = Frame(year=int(match["y"]), month=int(match["m"]), days=(day, day))
    return match.end(), date if match["h"] is None else msgspec.structs.replace(date, **_iso_time(match))


def _iso_time(match: re.Match[str]) -> dict[str, Any]:
    """The slots of `T10:30:00+02:00` behind an ISO date."""
    second, sign = match["s"], match["z"]
    clock = Clock(int(match["h"]), int(match["i"]), None if second is None else int(second), padded=True)
    if sign is None:
        return {"clock": clock}
    offset = timedelta(0)
    if sign not in "Zz":
        offset = timedelta(hours=int(sign[1:3]), minutes=int(sign[-2:])) * (-1 if sign[0] == "-" else 1)
    return {"clock": clock, "zone": timezone(offset)}


def _ym(line: TokenLine, position: int, _frame: Frame, _context: TimeContext) -> Rule | None:
    match = _YM.match(line.text, position)
    if match is None or not _valid(1, int(match["m"])) or not YEAR_MIN <= int(match["y"]) <= YEAR_MAX:
        return None
    return match.end(), Frame(year=int(match["y"]), month=int(match["m"]), strong=int(match["m"]) > 0)


def _dmy(line: TokenLine, position: int, _frame: Frame, context: TimeContext) -> Rule | None:
    match = _DMY.match(line.text, position) or _SPACED.match(line.text, position)
    if match is None:
        return None
    dot = match.groupdict().get("sep") == "."
    pair = _pair(int(match["a"]), int(match["b"]), context._replace(day_first=True) if dot else context)
    if pair is None:
        return None
    if (
        dot
        and match["y"].isdigit()
        and len(match["y"]) < YEAR_DIGITS
        and len(match["a"] + match["b"]) < YEAR_DIGITS - 1
    ):
        return None
    day, month, guess = pair
    year = full_year(match["y"], context.now.year)
    if not YEAR_MIN - CENTURY <= year <= YEAR_MAX:
        return None
    swap = (month, day) if guess and not dot else None
    dashed = match.groupdict().get("sep") == "-" and len(match["y"]) < YEAR_DIGITS
    return match.end(), Frame(year=year, month=month, days=(day, day), swap=swap, strong=not dashed)


def _my(line: TokenLine, position: int, _frame: Frame, _context: TimeContext) -> Rule | None:
    match = _MY.match(line.text, position)
    if match is None or not _valid(1, int(match["m"])) or not YEAR_MIN <= int(match["y"]) <= YEAR_MAX:
        return None
    return match.end(), Frame(year=int(match["y"]), month=int(match["m"]))


def _slash(line: TokenLine, position: int, frame: Frame, context: TimeContext) -> Rule | None:
    """`4/25`; a fraction or `24/7` is not one, and `1/2` needs company."""
    match = _SLASH.match(line.text, position)
    pair = match and _pair(int(match["a"]), int(match["b"]), context)
    if not match or not pair or frame.days is not None or line.word(line.after(match.end())) in MONTH:
        return None
    day, month, guess = pair
    swap = (month, day) if guess else None
    return match.end(), Frame(
        month=month, days=(day, day), swap=swap, strong=day > MONTHS and month != _WEEK_DAYS
    )


_WEEK_DAYS = 7


def _span_dot(line: TokenLine, position: int, _frame: Frame, context: TimeContext) -> Rule | None:
    """`14-15.11.2017`, `from 3. to 5.10.2017`."""
    match = _SPAN_DOT.match(line.text, position)
    if match is None:
        return None
    first, last, month = int(match["a"]), int(match["b"]), int(match["m"])
    if not (_valid(first, month) and _valid(last, month) and first < last):
        return None
    year = full_year(match["y"], context.now.year) if match["y"] else None
    return match.end(), Frame(year=year, month=month, days=(first, last), strong=year is not None)


def _dot(line: TokenLine, position: int, frame: Frame, context: TimeContext) -> Rule | None:
    """`23.11` is a version or a price just as often: it counts beside a weekday, a time, `on`, or another like it."""
    match = _DOT.match(line.text, position)
    pair = match and _pair(int(match["a"]), int(match["b"]), context._replace(day_first=True))
    if not match or not pair or frame.days is not None:
        return None
    after = line.after(match.end())
    if line.text[match.end() : match.end() + 1].isalpha() or line.word(after) in {
        "am",
        "pm",
        "p",
        "a",
        "h",
        "m",
    }:
        return None
    day, month, _ = pair
    return match.end(), Frame(month=month, days=(day, day), strong=False)


_Numeric = Callable[[TokenLine, int, Frame, TimeContext], Rule | None]
_NUMERIC: tuple[_Numeric, ...] = (_ymd, _ym, _dmy, _my, _span_dot, _slash, _dot)
