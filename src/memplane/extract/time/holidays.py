"""Finding a holiday by the names people give it, with `last`, `next` or `weekend` beside it."""

import math
from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache

from memplane.extract.time.calendar import SATURDAY, LocalSpan, day_span, month_span, nth_weekday, period
from memplane.extract.time.durations import unit_at
from memplane.extract.time.frame import Frame, Yearly
from memplane.extract.time.tokens import TokenLine
from memplane.extract.time.words import MODIFIER, WEEKDAY

# Calendars that follow the moon: the Jewish and the Islamic by their arithmetic, the Chinese new year by new moons.


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


# Holidays whose dates can be computed, and the names people give them.


MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SUNDAY = 0, 1, 2, 3, 4, 6


def easter(year: int) -> date:
    """Western Easter by the Gregorian computus (Meeus, Jones, Butcher)."""
    golden, century, rest = year % 19, year // 100, year % 100
    moon = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    week = (32 + 2 * (century % 4) + 2 * (rest // 4) - moon - rest % 4) % 7
    late = (golden + 11 * moon + 22 * week) // 451
    month, day = divmod(moon + week - 7 * late + 114, 31)
    return date(year, month, day + 1)


def orthodox_easter(year: int) -> date:
    """Orthodox Easter: the Julian computus, told in the Gregorian calendar."""
    moon = (19 * (year % 19) + 15) % 30
    week = (2 * (year % 4) + 4 * (year % 7) - moon + 34) % 7
    month, day = divmod(moon + week + 114, 31)
    return date(year, month, day + 1) + timedelta(days=year // 100 - year // 400 - 2)


def _span(first: date, days: int = 1) -> LocalSpan:
    span = day_span(first.year, first.month, first.day)
    return span._replace(until=span.begin + timedelta(days=days))


def fixed(month: int, day: int) -> Yearly:
    return lambda year: day_span(year, month, day)


def floating(month: int, weekday: int, nth: int, after: int = 0, days: int = 1) -> Yearly:
    """The nth weekday of a month, and so many days after it."""

    def make(year: int) -> LocalSpan | None:
        found = nth_weekday(month_span(year, month), weekday, nth)
        return found and _span(found.begin.date() + timedelta(days=after), days)

    return make


def around(base: Callable[[int], date], after: int, days: int = 1) -> Yearly:
    """So many days from a movable feast."""
    return lambda year: _span(base(year) + timedelta(days=after), days)


def _hebrew(after: int, days: int = 1) -> Yearly:
    """So many days after 1 Tishri, which falls in this year's autumn. Jewish days begin on the evening before."""
    return lambda year: _span(hebrew_new_year(year) + timedelta(days=after - 1), days)


def _spring(after: int, days: int = 1) -> Yearly:
    """Counted back from the next 1 Tishri: from Nisan to the end of the year the months have fixed lengths."""
    return lambda year: _span(hebrew_new_year(year) + timedelta(days=after - 1), days)


def _moved(after: int, shifts: dict[int, int]) -> Yearly:
    """Counted as above, and moved off certain weekdays."""

    def make(year: int) -> LocalSpan:
        first = hebrew_new_year(year) + timedelta(days=after)
        return _span(first + timedelta(days=shifts.get(first.weekday(), 0) - 1))

    return make


def _indian(month: int, lunar_day: int, at: float = SUNRISE, *, after: int = 0, days: int = 1) -> Yearly:
    """So many days after a lunar day of the Indian calendar."""
    return lambda year: _span(indian_day(year, month, lunar_day, at) + timedelta(days=after), days)


def _solar(base: date, fraction: float) -> Yearly:
    return lambda year: _span(sun_enters(year, base, fraction))


def _islamic(month: int, day: int, days: int = 1) -> Yearly:
    """The first such day in the year; a lunar year is shorter, so a year may hold two, or none."""

    def make(year: int) -> LocalSpan | None:
        return next((_span(first, days) for first in islamic_days(year, month, day)), None)

    return make


def _weekday_near(month: int, day: int) -> Yearly:
    """Kept on the Friday before or the Monday after where it falls on a weekend."""

    def make(year: int) -> LocalSpan:
        first = date(year, month, day)
        if first.weekday() == SATURDAY:
            first -= timedelta(days=1)
        elif first.weekday() == SUNDAY:
            first += timedelta(days=1)
        return _span(first)

    return make


def _tax_day(year: int) -> LocalSpan:
    """15 April, moved on past weekends and Emancipation Day."""
    emancipation = _weekday_near(4, 16)(year)
    first = date(year, 4, 15)
    while first.weekday() >= SATURDAY or (emancipation and first == emancipation.begin.date()):
        first += timedelta(days=1)
    return _span(first)


def _kings_day(year: int) -> LocalSpan:
    """27 April in the Netherlands, the day before where that is a Sunday."""
    first = date(year, 4, 27)
    return _span(first - timedelta(days=first.weekday() == SUNDAY))


def _earth_hour(year: int) -> LocalSpan | None:
    """The last Saturday of March, a week earlier where that is the day before Easter, from half past eight."""
    found = nth_weekday(month_span(year, 3), SATURDAY, -1)
    if found is None:
        return None
    clash = found.begin.date() == easter(year) - timedelta(days=1)
    begin = found.begin + timedelta(days=-7 * clash, hours=20, minutes=30)
    return LocalSpan(begin, begin + timedelta(hours=1), "minute")


def _last_friday(month: LocalSpan | None) -> LocalSpan | None:
    return month and nth_weekday(month, FRIDAY, -1)


def _short_kislev(year: int) -> bool:
    return (hebrew_new_year(year + 1) - hebrew_new_year(year)).days % 30 == 23  # noqa: PLR2004  353 or 383 days


def _kislev(year: int) -> date:
    """1 Kislev: the month before it has 30 days in a full year, of 355 or 385, and else 29."""
    first = hebrew_new_year(year)
    full = (hebrew_new_year(year + 1) - first).days % 30 == 25  # noqa: PLR2004  355 or 385 days
    return first + timedelta(days=60 if full else 59)


def _hanukkah(year: int) -> LocalSpan:
    return _span(_kislev(year) + timedelta(days=23), 8)


def _ramadan(year: int) -> LocalSpan | None:
    first = next(iter(islamic_days(year, 9, 1)), None)
    if first is None:
        return None
    feast = next(
        (day for day in (*islamic_days(year, 10, 1), *islamic_days(year + 1, 10, 1)) if day > first), None
    )
    return _span(first, (feast - first).days) if feast else None


NAMED: tuple[tuple[str, Yearly], ...] = (
    ("new year, new year day, new year's day", fixed(1, 1)),
    ("new year eve, new year's eve, nye, silvester", fixed(12, 31)),
    ("epiphany, three kings day", fixed(1, 6)),
    ("burns night", fixed(1, 25)),
    ("australia day", fixed(1, 26)),
    ("groundhog day", fixed(2, 2)),
    ("lincoln birthday, abraham lincoln birthday", fixed(2, 12)),
    ("valentine, valentine day, saint valentine day, st valentine day", fixed(2, 14)),
    ("women day, international women day", fixed(3, 8)),
    ("pi day", fixed(3, 14)),
    ("ides of march", fixed(3, 15)),
    (
        "saint patrick day, st patrick day, st. patrick day, saint paddy day, st paddy day, st pattys day",
        fixed(3, 17),
    ),
    ("april fool, april fool day", fixed(4, 1)),
    ("sibling day, national sibling day", fixed(4, 10)),
    ("earth day", fixed(4, 22)),
    ("anzac day", fixed(4, 25)),
    ("king day, koningsdag", _kings_day),
    ("may day, law day, lei day, loyalty day", fixed(5, 1)),
    ("star wars day", fixed(5, 4)),
    ("cinco de mayo", fixed(5, 5)),
    ("juneteenth", fixed(6, 19)),
    ("canada day", fixed(7, 1)),
    ("independence day, fourth of july", fixed(7, 4)),
    ("bastille day", fixed(7, 14)),
    ("all saint day", fixed(11, 1)),
    ("all soul day", fixed(11, 2)),
    ("world vegan day", fixed(11, 1)),
    ("guy fawkes day, guy fawkes night, bonfire night", fixed(11, 5)),
    ("veteran day, armistice day, remembrance day", fixed(11, 11)),
    ("saint nicholas day, st nicholas day", fixed(12, 6)),
    ("saint andrew day, st andrew day", fixed(11, 30)),
    ("saint george day, st george day", fixed(4, 23)),
    ("halloween, hallowe'en, halloween day", fixed(10, 31)),
    ("christmas eve, xmas eve", fixed(12, 24)),
    ("christmas, christmas day, xmas, xmas day, x mas", fixed(12, 25)),
    ("boxing day", fixed(12, 26)),
    ("kwanzaa", lambda year: _span(date(year, 12, 26), 7)),
    (
        "martin luther king day, martin luther king jr day, mlk day, mlk jr. day, mlk jr day, civil right day",
        floating(1, MONDAY, 3),
    ),
    ("super bowl sunday", floating(2, SUNDAY, 2)),
    (
        "president day, washington birthday, george washington day, george washington birthday, daisy gatson bates day",
        floating(2, MONDAY, 3),
    ),
    ("mother day", floating(5, SUNDAY, 2)),
    ("father day", floating(6, SUNDAY, 3)),
    ("military spouse day", floating(5, SUNDAY, 2, after=-2)),
    ("memorial day, decoration day", floating(5, MONDAY, -1)),
    ("labor day, labour day", floating(9, MONDAY, 1)),
    ("grandparent day, national grandparent day", floating(9, MONDAY, 1, after=6)),
    ("columbus day, indigenous people day", floating(10, MONDAY, 2)),
    ("boss day, boss", _weekday_near(10, 16)),
    ("thanksgiving, thanksgiving day", floating(11, THURSDAY, 4)),
    ("black friday", floating(11, THURSDAY, 4, after=1)),
    ("small business saturday", floating(11, THURSDAY, 4, after=2)),
    ("cyber monday", floating(11, THURSDAY, 4, after=4)),
    ("giving tuesday", floating(11, THURSDAY, 4, after=5)),
    ("victoria day", lambda year: nth_weekday(LocalSpan(*_span(date(year, 5, 18), 7)), MONDAY, 1)),
    ("early may bank holiday", floating(5, MONDAY, 1)),
    ("spring bank holiday, late may bank holiday", floating(5, MONDAY, -1)),
    ("august bank holiday, summer bank holiday, late summer bank holiday", floating(8, MONDAY, -1)),
    (
        "administrative professional day, administrative professional's day, secretary day, secretarie day, admin day",
        floating(4, SATURDAY, -1, after=-3),
    ),
    ("emancipation day", _weekday_near(4, 16)),
    ("tax day", _tax_day),
    ("daylight saving start, daylight saving start day", floating(3, SUNDAY, 2)),
    ("daylight saving end, daylight saving end day", floating(11, SUNDAY, 1)),
    ("ems week", floating(5, SUNDAY, 3, days=7)),
    ("emsc day", floating(5, SUNDAY, 3, after=3)),
    ("easter, easter sunday, easter day, resurrection sunday", around(easter, 0)),
    ("mardi gras, shrove tuesday, pancake day, pancake tuesday, fat tuesday", around(easter, -47)),
    ("ash wednesday", around(easter, -46)),
    ("lent", around(easter, -46, 46)),
    ("mothering sunday", around(easter, -21)),
    ("palm sunday, branch sunday", around(easter, -7)),
    ("holy week", around(easter, -7, 7)),
    (
        "maundy thursday, holy thursday, covenant thursday, thursday of mystery, thursday of mysterie",
        around(easter, -3),
    ),
    ("good friday, great friday, holy friday", around(easter, -2)),
    ("holy saturday, black saturday, easter eve", around(easter, -1)),
    ("easter monday", around(easter, 1)),
    ("ascension day, ascension thursday", around(easter, 39)),
    ("pentecost, pentecost sunday, whit sunday, whitsunday, white sunday, whitsun", around(easter, 49)),
    ("whit monday, pentecost monday, monday of the holy spirit", around(easter, 50)),
    ("trinity sunday", around(easter, 56)),
    ("corpus christi", around(easter, 60)),
    ("orthodox easter, orthodox easter sunday", around(orthodox_easter, 0)),
    ("orthodox good friday, orthodox great friday", around(orthodox_easter, -2)),
    ("orthodox easter monday", around(orthodox_easter, 1)),
    ("clean monday, orthodox shrove monday", around(orthodox_easter, -48)),
    ("lazarus saturday", around(orthodox_easter, -8)),
    ("great fast, great lent", around(orthodox_easter, -48, 40)),
    (
        "chinese new year, chinese new year day, chinese lunar new year, chinese lunar new year day, lunar new year",
        lambda year: _span(chinese_new_year(year)),
    ),
    ("rosh hashanah, rosh hashana, rosh hashanna", _hebrew(0, 3)),
    ("yom kippur", _hebrew(9)),
    (
        "sukkot, sukkoth, succos, feast of the ingathering, feast of booth, feast of tabernacle",
        _hebrew(14, 9),
    ),
    ("shemini atzeret", _hebrew(21)),
    ("simchat torah", _hebrew(22)),
    ("hanukkah, chanukah, hanukah, hannukkah, hanukka", _hanukkah),
    ("purim", _spring(-193)),
    ("shushan purim", _spring(-192)),
    ("passover, pesach", _spring(-163, 9)),
    ("lag b'omer, lag baomer", _spring(-130)),
    ("shavuot, shavuoth, shavuo", _spring(-113, 3)),
    ("ramadan", _ramadan),
    ("eid al fitr, id ul fitr, eid ul fitr, eid", _islamic(10, 1)),
    ("eid al adha, id ul adha, eid ul adha, sacrifice feast, bakr id", _islamic(12, 10)),
    ("islamic new year, amun jadid", _islamic(1, 1)),
    ("ashura, day of ashura", _islamic(1, 10)),
    ("mawlid, mawlid al nabawi", _islamic(3, 12)),
    ("isra and mi'raj, the prophet ascension, ascension to heaven, the night journey", _islamic(7, 27)),
    ("laylat al qadr, laylat al kadr, night of power, night of measure", _islamic(9, 27)),
    (
        "tu bishvat, tu b'shevat",
        lambda year: _span(_kislev(year - 1) + timedelta(days=-1 + 30 + 29 + 14 - _short_kislev(year - 1))),
    ),
    ("yom hashoah, holocaust day, holocaust remembrance day", _moved(-151, {FRIDAY: -1, SUNDAY: 1})),
    (
        "yom haatzmaut, yom ha'atzmaut, israeli independence day",
        _moved(-143, {FRIDAY: -1, SATURDAY: -2, MONDAY: 1}),
    ),
    ("tisha b'av", _moved(-51, {SATURDAY: 1})),
    ("jamat ul vida, jumu'atul wida, jamat ul wida", lambda year: _last_friday(_ramadan(year))),
    ("ugadi, yugadi, samvatsaradi, chaitra sukladi, chaitra sukhladi, gudi padwa", _indian(0, 1)),
    ("rama navami, ram navami", _indian(0, 9, NOON)),
    ("mahavir jayanti, mahaveer jayanti, mahavir janma kalyanak, mahaveer janma kalyanak", _indian(0, 13)),
    ("vesak, vaisakha, buddha day, buddha purnima, buddha jayanti", _indian(1, 15, DUSK)),
    ("ratha yatra, rath yatra", _indian(3, 2)),
    ("guru purnima", _indian(3, 15)),
    ("raksha bandhan, rakhi", _indian(4, 15)),
    ("krishna janmashtami, janmashtami, gokulashtami", _indian(4, 23, MIDNIGHT)),
    ("ganesh chaturthi, vinayaka chaturthi", _indian(5, 4, NOON)),
    ("dussehra, dasara, vijayadashami, vijaya dashami", _indian(6, 10, AFTERNOON)),
    ("navaratri, navratri, durga puja", _indian(6, 10, AFTERNOON, after=-9, days=10)),
    ("maha saptami", _indian(6, 10, AFTERNOON, after=-3)),
    ("maha ashtami", _indian(6, 10, AFTERNOON, after=-2)),
    ("maha navami", _indian(6, 10, AFTERNOON, after=-1)),
    ("valmiki jayanti, maharishi valmiki jayanti, pargat diwas", _indian(6, 15)),
    ("karva chauth, karwa chauth", _indian(6, 19, DUSK)),
    ("dhanteras, dhanatrayodashi, dhantera", _indian(6, 30, DUSK, after=-2)),
    ("kali chaudas, choti diwali, chhoti diwali, naraka chaturdashi", _indian(6, 30, DUSK, after=-1)),
    ("diwali, deepavali, divali, lakshmi puja", _indian(6, 30, DUSK)),
    ("govardhan puja", _indian(6, 30, DUSK, after=1)),
    ("bhai dooj, bhaiya dooj, bhai duj", _indian(6, 30, DUSK, after=2)),
    ("chhath, chhath puja, dala puja, surya shashthi", _indian(6, 30, DUSK, after=6)),
    ("guru nanak jayanti, gurpurab, guru nanak birthday", _indian(7, 15)),
    (
        "guru gobind singh jayanti, guru govind singh jayanti, guru gobind singh birthday, guru govind singh birthday",
        _indian(9, 7),
    ),
    ("vasant panchami, basant panchami, saraswati puja", _indian(10, 5)),
    (
        "guru ravidas jayanti, guru ravidass jayanti, guru ravidas birthday, guru ravidass birthday",
        _indian(10, 15),
    ),
    ("saraswati jayanti, maharishi dayanand saraswati jayanti", _indian(10, 25)),
    ("maha shivaratri, maha shivratri, shivaratri", _indian(10, 29, MIDNIGHT)),
    ("holika dahan, chhoti holi, choti holi, kamudu pyre", _indian(11, 15, DUSK)),
    ("holi, dhulandi, phagwah", _indian(11, 15, DUSK, after=1)),
    (
        "makar sankranti, makara sankranti, makara sankranthi, makar sankranthi, pongal, thai pongal, maghi",
        _solar(date(2018, 1, 14), 0.82),
    ),
    ("bogi pandigai, bhogi, lohri", _solar(date(2018, 1, 13), 0.82)),
    ("maattu pongal, mattu pongal", _solar(date(2018, 1, 15), 0.82)),
    ("kaanum pongal, kanum pongal, kanni pongal", _solar(date(2018, 1, 16), 0.82)),
    ("vaisakhi, baisakhi, vasakhi, vaishakhi", _solar(date(2018, 4, 14), 0.34)),
    (
        "parsi new year, jamshedi navroz",
        lambda year: _span(date(2018, 8, 17) + timedelta(days=365 * (year - 2018))),
    ),
    ("rabindra jayanti, rabindranath jayanti", fixed(5, 9)),
    ("earth hour", _earth_hour),
    ("super tuesday", lambda year: floating(3, TUESDAY, 1)(year) if year % 4 == 0 else None),
)


Rule = tuple[int, Frame]


def _plain(word: str) -> str:
    """Without case, apostrophe or plural s, so that Mother's, Mothers' and Mothers are one name."""
    word = word.removesuffix("'s").replace("'", "")
    if word in WEEKDAY:
        return _WEEKDAY_NAMES[WEEKDAY[word]]
    return word[:-1] if len(word) > len("eid") and word.endswith("s") and not word.endswith("ss") else word


_WEEKDAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_BY_FIRST: dict[str, list[tuple[tuple[str, ...], Yearly]]] = {}
for _names, _rule in NAMED:
    for _name in _names.split(","):
        _key = tuple(_plain(word) for word in _name.replace(".", " ").split())
        _BY_FIRST.setdefault(_key[0], []).append((_key, _rule))
for _rules in _BY_FIRST.values():
    _rules.sort(key=lambda rule: len(rule[0]), reverse=True)
_WEAK = frozenset(
    {
        ("boss",),
        ("lent",),
        ("eid",),
        ("valentine",),
        ("new", "year"),
        ("passover",),
        ("king", "day"),
        ("great", "fast"),
    }
)


NAME_STARTS = frozenset(name[:3] for name in _BY_FIRST)


def named(line: TokenLine, at: int) -> bool:
    """Whether a holiday's name starts here: `good` alone does not make a Good Friday."""
    word = line.word(at)
    if word[:3] not in NAME_STARTS:
        return False
    return any(_match(line, at, name) is not None for name, _ in _BY_FIRST.get(_plain(word), ()))


def holiday(line: TokenLine, at: int) -> Rule | None:
    """A holiday's name, after `last`, `this` or `next` where that stands before it."""
    start, offset = at, None
    if line.word(at) in MODIFIER:
        start, offset = at + 1, MODIFIER[line.word(at)]
        if line.word(start) in {"past", "coming"}:
            start, offset = start + 1, MODIFIER[line.word(start)]
    if line.word(start)[:3] not in NAME_STARTS:
        return None
    for name, rule in _BY_FIRST.get(_plain(line.word(start)), ()):
        end = _match(line, start, name)
        if end is not None:
            end, once = _weekend(line, end, rule)
            strong = name not in _WEAK or (name == ("new", "year") and line.word(end - 1) != "year")
            return end, Frame(holiday=once, offset=offset, strong=strong)
    return None


def _weekend(line: TokenLine, at: int, rule: Yearly) -> tuple[int, Yearly]:
    """`Labor Day weekend`: the weekend nearest to it, and the day itself where it is next to that."""
    unit = unit_at(line, at)
    if unit is None or unit[1] != "weekend":
        return at, rule

    def make(year: int) -> LocalSpan | None:
        day = rule(year)
        if day is None:
            return None
        near = period(day.begin + timedelta(days=-3 if day.begin.weekday() < THURSDAY else 0), "weekend")
        return LocalSpan(min(near.begin, day.begin), max(near.until, day.until), "weekend")

    return unit[0], make


def _match(line: TokenLine, at: int, name: tuple[str, ...]) -> int | None:
    for word in name:
        while at < len(line) and line.word(at) in {"-", ".", "'"}:
            at += 1
        if _plain(line.word(at)) != word:
            return None
        at += 1
    return at
