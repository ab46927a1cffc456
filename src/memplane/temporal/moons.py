"""Calendars that follow the moon: the Jewish and the Islamic by their arithmetic, the Chinese new year by new moons."""

import math
from datetime import date
from functools import lru_cache

_PARTS_OF_DAY = 25_920
_EPOCH_HEBREW = -1_373_428
"""The day before 1 Tishri 1, counted as `date.toordinal` does."""
_EPOCH_ISLAMIC = 227_013
_HEBREW_OFFSET = 3761
_BEIJING = 8 / 24
_CRESCENT = 1.35


@lru_cache(maxsize=512)
def hebrew_new_year(year: int) -> date:
    """1 Tishri in the autumn of a common year."""
    return date.fromordinal(_hebrew_ordinal(year + _HEBREW_OFFSET))


def _elapsed(year: int) -> int:
    """Days from the epoch to the molad-based new year, before the neighbours' lengths are looked at."""
    months = (235 * year - 234) // 19
    parts = 12_084 + 13_753 * months
    day = 29 * months + parts // _PARTS_OF_DAY
    return day + 1 if 3 * (day + 1) % 7 < 3 else day  # noqa: PLR2004  never on a Sunday, Wednesday or Friday


def _hebrew_ordinal(year: int) -> int:
    before, here, after = _elapsed(year - 1), _elapsed(year), _elapsed(year + 1)
    delay = 2 if after - here == 356 else 1 if here - before == 382 else 0  # noqa: PLR2004  no year has these lengths
    return _EPOCH_HEBREW + here + delay + 1


def _islamic_ordinal(year: int, month: int, day: int) -> int:
    """The tabular calendar: months of 30 and 29 days in turn, eleven leap years in thirty."""
    return _EPOCH_ISLAMIC + (year - 1) * 354 + (3 + 11 * year) // 30 + 29 * (month - 1) + month // 2 + day


_NEW = (-0.4072, 0.17241, 0.01608, 0.01039, 0.00739, -0.00514)
_FULL = (-0.40614, 0.17302, 0.01614, 0.01043, 0.00734, -0.00515)


def phase(number: float) -> float:
    """The mean new moon, or full moon at a half, and its main corrections (Meeus, chapter 49), in days as above."""
    turn = number / 1236.85
    mean = 730_125.59766 + 29.530588861 * number + 0.00015437 * turn * turn
    sun = math.radians(2.5534 + 29.1053567 * number)
    moon = math.radians(201.5643 + 385.81693528 * number)
    node = math.radians(160.7108 + 390.67050284 * number)
    angles = (moon, sun, 2 * moon, 2 * node, moon - sun, moon + sun)
    weights = _NEW if number == int(number) else _FULL
    return mean + sum(weight * math.sin(angle) for weight, angle in zip(weights, angles, strict=True))


def _moon_near(day: float) -> float:
    """The new moon nearest to a day."""
    number = round((day - 730_125.6) / 29.530588861)
    return min((phase(number + step) for step in (-1, 0, 1)), key=lambda moon: abs(moon - day))


@lru_cache(maxsize=512)
def chinese_new_year(year: int) -> date:
    """The new moon, by Beijing's clock, that falls between 21 January and 20 February."""
    first, last = date(year, 1, 21).toordinal(), date(year, 2, 20).toordinal()
    days = (int(_moon_near(day) + _BEIJING) for day in (first + 2, first + 28))
    return date.fromordinal(next(day for day in days if first <= day <= last))


@lru_cache(maxsize=1024)
def islamic_days(year: int, month: int, day: int) -> tuple[date, ...]:
    """When a day of the Islamic calendar falls within a common year; seldom twice, seldom never.

    A month opens with the first crescent, seen a day and a half after the new moon. Where it is watched for rather
    than computed, the day may differ by one.
    """
    first, last = date(year, 1, 1), date(year, 12, 31)
    guess = int((first.toordinal() - _EPOCH_ISLAMIC) / 354.36667)
    found = []
    for number in range(max(1, guess), guess + 4):
        opening = int(_moon_near(_islamic_ordinal(number, month, 1) - _CRESCENT) + _CRESCENT)
        found.append(date.fromordinal(opening + day - 1))
    return tuple(moment for moment in found if first <= moment <= last)


# Days on which the sun enters the sign that names each month, from Chaitra on; they move by one in seventy years.
_SIGNS = (
    (4, 14),
    (5, 15),
    (6, 15),
    (7, 17),
    (8, 17),
    (9, 17),
    (10, 17),
    (11, 16),
    (12, 16),
    (1, 14),
    (2, 13),
    (3, 14),
)
_DEGREES_OF_LUNAR_DAY = 12
_DEGREES_A_DAY = 12.1907
SUNRISE, NOON, AFTERNOON, DUSK, MIDNIGHT = 0.5 / 24, 6.5 / 24, 10 / 24, 12.5 / 24, 18.5 / 24
"""When a feast wants its lunar day to rule, in India, as a part of the day in UTC."""


@lru_cache(maxsize=1024)
def indian_day(year: int, month: int, lunar_day: int, at: float = SUNRISE) -> date:
    """A lunar day of a month counted from new moon to new moon, months from 0 for Chaitra."""
    sign = date(year, *_SIGNS[month]).toordinal() + 0.5
    number = math.floor((sign - 730_125.6) / 29.530588861) + 1
    while phase(number) > sign:
        number -= 1
    angle = _DEGREES_OF_LUNAR_DAY * (lunar_day - 1)
    begins = phase(number) + angle / _DEGREES_A_DAY
    for _ in range(4):
        begins += ((angle - elongation(begins) + 180) % 360 - 180) / _DEGREES_A_DAY
    return date.fromordinal(math.ceil(begins - at))


def elongation(day: float) -> float:
    """How many degrees the moon is ahead of the sun (Meeus, chapter 47, the largest terms): right to minutes of time."""
    turn = (day - 730_120.5) / 36_525
    apart = 297.8501921 + 445_267.1114034 * turn
    sun = 357.5291092 + 35_999.0502909 * turn
    moon = 134.9633964 + 477_198.8675055 * turn
    node = 93.272095 + 483_202.0175233 * turn
    angles = (apart, sun, moon, node)
    total = sum(size * math.sin(math.radians(_mixed(mix, angles))) for size, mix in _MOON_TERMS)
    return apart + total - 1.9146 * math.sin(math.radians(sun)) - 0.02 * math.sin(math.radians(2 * sun))


def _mixed(mix: tuple[int, ...], angles: tuple[float, ...]) -> float:
    return sum(count * angle for count, angle in zip(mix, angles, strict=True))


_MOON_TERMS = (
    (6.288774, (0, 0, 1, 0)),
    (1.274027, (2, 0, -1, 0)),
    (0.658314, (2, 0, 0, 0)),
    (0.213618, (0, 0, 2, 0)),
    (-0.185116, (0, 1, 0, 0)),
    (-0.114332, (0, 0, 0, 2)),
    (0.058793, (2, 0, -2, 0)),
    (0.057066, (2, -1, -1, 0)),
    (0.053322, (2, 0, 1, 0)),
    (0.045758, (2, -1, 0, 0)),
    (-0.040923, (0, 1, -1, 0)),
    (-0.03472, (1, 0, 0, 0)),
    (-0.030383, (0, 1, 1, 0)),
)


def sun_enters(year: int, base: date, fraction: float) -> date:
    """The day of a solar feast: the sun's return to the same star takes a little longer than a calendar year."""
    return date.fromordinal(int(base.toordinal() + fraction + (year - base.year) * 365.25636))
