"""The vocabulary: which word names which month, weekday, unit, number or part of the day."""

from typing import NamedTuple


def listed(text: str) -> list[str]:
    """The words of a text: a long list reads best as a line."""
    return text.split()


MONTH = {
    name: month
    for month, names in enumerate(
        (
            "january jan",
            "february feb febuary",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}

WEEKDAY = {
    name: weekday
    for weekday, names in enumerate(
        (
            "monday mon",
            "tuesday tue tues",
            "wednesday wed weds wednesay wensday",
            "thursday thu thur thurs thrusday thursady",
            "friday fri",
            "saturday sat",
            "sunday sun",
        )
    )
    for name in names.split()
}

WEEKDAYS_PLURAL = {
    f"{name}s": weekday
    for weekday, name in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    )
}

AMBIGUOUS = frozenset({"may", "march", "mar", "jan", "jun", "sat", "sun", "wed", "mon", "second", "sec"})
"""Names that are ordinary words (or people) too, and count only where something beside them says so."""

VAGUE = {"couple": (1, 3), "pair": (1, 3), "few": (2, 6), "several": (3, 7)}
"""How many a vague amount may be."""

UNIT = {
    name: unit
    for unit, names in {
        "second": "second seconds sec secs",
        "minute": "minute minutes min mins",
        "hour": "hour hours hr hrs",
        "day": "day days",
        "night": "night nights",
        "week": "week weeks wk wks",
        "fortnight": "fortnight fortnights",
        "weekend": "weekend weekends wkend wkends",
        "month": "month months mth mths",
        "quarter": "quarter quarters qtr qtrs",
        "season": "season seasons",
        "year": "year years yr yrs",
        "decade": "decade decades",
    }.items()
    for name in names.split()
}

OFTEN = {
    "hourly": (1, "hour"),
    "daily": (1, "day"),
    "nightly": (1, "day"),
    "weekly": (1, "week"),
    "biweekly": (2, "week"),
    "fortnightly": (2, "week"),
    "monthly": (1, "month"),
    "bimonthly": (2, "month"),
    "quarterly": (1, "quarter"),
    "yearly": (1, "year"),
    "annually": (1, "year"),
}
"""Adverbs of repetition: how many of which unit."""

SEASON = {
    "spring": 0,
    "springtime": 0,
    "summer": 1,
    "summertime": 1,
    "autumn": 2,
    "fall": 2,
    "winter": 3,
    "wintertime": 3,
}

MODIFIER = {
    "last": -1,
    "past": -1,
    "previous": -1,
    "prior": -1,
    "this": 0,
    "current": 0,
    "next": 1,
    "following": 1,
    "coming": 1,
    "upcoming": 1,
}

CARDINAL = {
    name: number
    for number, name in enumerate(
        listed(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
            "sixteen seventeen eighteen nineteen"
        )
    )
}
TENS = {
    name: 10 * tens
    for tens, name in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2
    )
}
ORDINAL = {
    name: number
    for number, name in enumerate(
        listed(
            "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
            "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
        ),
        start=1,
    )
} | {"thirtieth": 30}
DECADE = {
    name: 10 * tens
    for tens, name in enumerate(
        ["twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties"],
        start=2,
    )
} | {"noughties": 2000, "aughts": 2000}
ORDINAL_SUFFIX = frozenset({"st", "nd", "rd", "th"})


class DayPart(NamedTuple):
    """A part of the day, in hours from its midnight."""

    begin: int
    until: int


MORNING, AFTERNOON, EVENING = DayPart(0, 12), DayPart(12, 19), DayPart(18, 24)
PART = {
    "morning": MORNING,
    "mornings": MORNING,
    "afternoon": AFTERNOON,
    "afternoons": AFTERNOON,
    "evening": EVENING,
    "evenings": EVENING,
    "night": EVENING,
    "nights": EVENING,
    "lunch": DayPart(12, 14),
    "lunchtime": DayPart(12, 14),
    "noontime": DayPart(12, 14),
    "dinnertime": DayPart(17, 21),
    "breakfast": DayPart(6, 10),
    "dawn": DayPart(5, 7),
    "sunrise": DayPart(5, 7),
    "dusk": DayPart(17, 20),
    "sunset": DayPart(17, 20),
}
PART_ALONE = frozenset({"morning", "afternoon", "evening", "lunchtime"})
PART_EARLY = {MORNING: DayPart(0, 9), AFTERNOON: DayPart(12, 15), EVENING: DayPart(18, 21)}
PART_LATE = {MORNING: DayPart(9, 12), AFTERNOON: DayPart(15, 19), EVENING: DayPart(21, 24)}

EDGE = {
    "early": "early",
    "beginning": "begin",
    "start": "begin",
    "mid": "middle",
    "middle": "middle",
    "late": "end",
    "end": "end",
}
EDGE_SHORT = {
    "eod": ("end", "day"),
    "eom": ("end", "month"),
    "eoy": ("end", "year"),
    "eow": ("end", "week"),
    "bom": ("begin", "month"),
    "boy": ("begin", "year"),
}

ZONE_HOURS = {
    "utc": 0.0,
    "gmt": 0.0,
    "z": 0.0,
    "bst": 1.0,
    "wet": 0.0,
    "west": 1.0,
    "cet": 1.0,
    "cest": 2.0,
    "eet": 2.0,
    "eest": 3.0,
    "msk": 3.0,
    "ist": 5.5,
    "jst": 9.0,
    "aest": 10.0,
    "aedt": 11.0,
    "est": -5.0,
    "edt": -4.0,
    "cst": -6.0,
    "cdt": -5.0,
    "mst": -7.0,
    "mdt": -6.0,
    "pst": -8.0,
    "pdt": -7.0,
}

ABOUT = frozenset({"around", "about", "approximately", "approx", "circa", "roughly", "near", "nearly", "~"})
JOIN = (
    frozenset(
        {"on", "the", "of", "at", "@", "in", "from", "during", "for", "by", "between", "(", ",", "-", "'s"}
    )
    | ABOUT
)
"""What may stand between two parts of one expression."""


# Which words can open an expression at all.


_QUOTA_ADAPTERS = frozenset(
    listed(
        "today today's yesterday yesterday's tomorrow tomorrow's tomorrows tmrw tomorow tommorow "
        "tommorrow tonight tonight's tonite thousand eighteen nineteen now noon midday midnight ago weekends weekdays weekday workday q h o'clock "
        "oclock am pm past"
    )
)
HOT = (
    _QUOTA_ADAPTERS
    | DECADE.keys()
    | EDGE_SHORT.keys()
    | OFTEN.keys()
    | (ORDINAL.keys() - {"first", "second", "third"})
    | MONTH.keys()
    | PART.keys()
    | SEASON.keys()
    | TENS.keys()
    | UNIT.keys()
    | WEEKDAY.keys()
    | WEEKDAYS_PLURAL.keys()
    | {f"{name}'s" for name in (*MONTH, *WEEKDAY, *SEASON, *UNIT)}
    | {f"{name}ish" for name in PART}
)
"""Words that speak of time themselves."""
COLD = (
    frozenset(
        listed(
            "the a an in on at over since until untill till til before after by from between through thru for "
            "every each within all rest earlier later right just half couple few several another about around final opening closing penultimate once twice "
            "thrice that same"
        )
    )
    | CARDINAL.keys()
    | EDGE.keys()
    | MODIFIER.keys()
    | ORDINAL.keys()
)
"""Words that may open an expression, and open other things more often: a hot one must follow soon."""
