"""Times of day: 3pm, 15:30, 9h15, 0935, half past three, ten thirty a.m., noon; alone or from one to another."""

import re
from datetime import timedelta, timezone

from memplane.extract.time.frame import Clock, Frame
from memplane.extract.time.tokens import TokenLine, cardinal
from memplane.extract.time.words import (
    ABOUT,
    CARDINAL,
    MONTH,
    ORDINAL_SUFFIX,
    PART,
    UNIT,
    WEEKDAY,
    ZONE_HOURS,
    listed,
)

Rule = tuple[int, Frame]
Read = tuple[int, Clock]

HOURS, MINUTES, NOON = 24, 60, 12
_TENS_OF_MINUTES = 10
_HHMM_DIGITS = (3, 4)
_HALF = r"(?:\s?(?P<half>[ap])(?:\.\s?m\.?|\s?m\b)|(?P<short>[ap])\b)"
_SECONDS = r"(?::(?P<s>[0-5]\d)(?:\.\d{1,6})?)?"
_COLON = re.compile(
    rf"(?P<h>\d{{1,2}}):(?P<m>[0-5]\d){_SECONDS}(?![\d:])(?:{_HALF}(?![^\W\d_]))?", re.IGNORECASE
)
_DOTTED = re.compile(r"(?P<h>\d{1,2})\.(?P<m>[0-5]\d)(?![\d.]\d|\d)(?:" + _HALF + r")?", re.IGNORECASE)
_HALVED = re.compile(r"(?P<h>\d{1,2}?)(?P<m>[0-5]\d)?" + _HALF, re.IGNORECASE)
_FRENCH = re.compile(r"(?P<h>\d{1,2})h(?P<m>[0-5]\d)?(?!\d)", re.IGNORECASE)
_LEAD = frozenset({"at", "@", "by", "until", "till", "after", "before", "since"}) | ABOUT
_AFTER_TIME = (
    frozenset(
        listed(
            "at in of and or to till until through around about by from for with i we he she they you it is "
            "was are were will that this because so but if when then after before as on the my our his her "
            "am pm h hrs hr ish sharp today tomorrow yesterday tonight last next ago"
        )
    )
    | ABOUT
    | MONTH.keys()
    | WEEKDAY.keys()
    | PART.keys()
    | ZONE_HOURS.keys()
    | ORDINAL_SUFFIX
)
_TIMED = _LEAD | {"between"}
_NAMED = {"noon": Clock(12, padded=True), "midday": Clock(12, padded=True), "midnight": Clock(0, padded=True)}
_TO = frozenset({"-", "to", "till", "until", "untill", "til", "through", "thru", "and", "or", "/"})


def led(line: TokenLine, at: int) -> bool:
    """Whether the word before says that a time of day follows."""
    return line.word(at - 1) in _LEAD


def _led_short(line: TokenLine, at: int) -> bool:
    return led(line, at) or line.word(at - 1) in {"from", "to"}


def clock(line: TokenLine, at: int) -> Read | None:
    """One time of day that shows itself to be one."""
    return _clock_hour(line, at) or _past(line, at)


def _clock_hour(line: TokenLine, at: int) -> Read | None:
    """A time given by its own hour, not by minutes past another."""
    if line.number(at) is not None:
        return _digits(line, at)
    word = line.word(at)
    if word in _NAMED:
        return at + 1, _NAMED[word]
    if word == "mid" and line.word(at + 1) == "day":
        return at + 2, _NAMED["midday"]
    return _spelled_out(line, at)


def _digits(line: TokenLine, at: int) -> Read | None:
    position = line.tokens[at].start
    for pattern in (_COLON, _FRENCH, _HALVED):
        match = pattern.match(line.text, position)
        read = match and _from(match, line)
        if read:
            return read
    return dotted(line, at, need_half=True) or _oclock(line, at)


def _from(match: re.Match[str], line: TokenLine) -> Read | None:
    """`4a` is a label more often than a time; `4:15a` is a time, and `at 4a` too."""
    parts = match.groupdict()
    hour, minute = int(parts["h"]), parts.get("m")
    half = parts.get("half") or parts.get("short")
    if hour > HOURS or (
        parts.get("short") and minute is None and not _led_short(line, line.after(match.start()))
    ):
        return None
    if hour == HOURS and minute not in {None, "00"}:
        return None
    end = line.after(match.end())
    if end < len(line) and line.tokens[end - 1].end > match.end():
        return None
    second = parts.get("s")
    written = Clock(
        hour,
        None if minute is None else int(minute),
        None if second is None else int(second),
        None if half is None else int(half.lower() == "p"),
        hour >= NOON + 1 or hour == 0 or (len(parts["h"]) > 1 and parts["h"][0] == "0"),
    )
    return end, written


def dotted(line: TokenLine, at: int, *, need_half: bool) -> Read | None:
    """`17.30`, which is a date or a price just as often: only next to a date or with a.m. or p.m."""
    if line.number(at) is None:
        return None
    match = _DOTTED.match(line.text, line.tokens[at].start)
    if match is None or (need_half and match["half"] is None and line.word(line.after(match.end())) != "h"):
        return None
    read = _from(match, line)
    if read is None or read[1].hour >= HOURS:
        return None
    end, written = read
    if line.word(end) == "h":
        end += 1
    return end, written._replace(padded=written.half is None)


def _oclock(line: TokenLine, at: int) -> Read | None:
    found = cardinal(line, at)
    if found is None or not 1 <= found[1] <= NOON or line.word(found[0]) not in {"o'clock", "oclock"}:
        return None
    end, half = _half(line, found[0] + 1)
    return end, Clock(found[1], half=half)


def _half(line: TokenLine, at: int) -> tuple[int, int | None]:
    """`pm`, `p.m.`, `p m`, `in the PM` after a number in words."""
    if line.word(at) == "in" and line.word(at + 1) == "the" and line.word(at + 2) in {"am", "pm"}:
        return at + 3, int(line.word(at + 2) == "pm")
    word = line.word(at)
    if word in {"am", "pm"}:
        return at + 1, int(word == "pm")
    if word in {"a", "p"}:
        dot = line.word(at + 1) == "."
        if line.word(at + 1 + dot) == "m":
            end = at + 2 + dot
            return (end + 1 if line.word(end) == "." else end), int(word == "p")
    return at, None


def _past(line: TokenLine, at: int) -> Read | None:
    """`half past three`, `a quarter to noon`, `20 minutes past 3pm`, `twenty after 3pm`."""
    if line.word(at) in {"a", "the"}:
        at += 1
    minutes = {"half": 30, "quarter": 15}.get(line.word(at))
    end, named = at + 1, minutes is not None
    if minutes is None:
        found = cardinal(line, at)
        if found is None or not 0 < found[1] < MINUTES:
            return None
        end, minutes = found
        named = line.word(end) in {"minutes", "minute", "mins", "min"}
        end += named
    sign = {"past": 1, "after": 1, "to": -1, "before": -1, "till": -1}.get(line.word(end))
    if sign is None and line.word(at) == "half" and led(line, at):  # British: `at half six`
        return _half_hour(line, end)
    if sign is None or (sign < 0 and minutes <= NOON and not named and not led(line, at)):
        return None
    spelled = line.number(at) is None
    hour = _clock_hour(line, end + 1) or (
        _hour(line, end + 1) if line.word(at) in {"half", "quarter"} or (spelled and led(line, at)) else None
    )
    if hour is None or hour[1].minute:
        return None
    end, whole = hour
    total = (whole.hour * MINUTES + sign * minutes) % (HOURS * MINUTES)
    return end, whole._replace(hour=total // MINUTES, minute=total % MINUTES)


def _half_hour(line: TokenLine, at: int) -> Read | None:
    found = cardinal(line, at)
    if found is None or not 1 <= found[1] <= NOON or counts_noun(line, found[0]):
        return None
    return found[0], Clock(found[1], 30)


def _spelled_out(line: TokenLine, at: int) -> Read | None:
    """`seven thirty p.m.`, `three am`, `ten o'clock`, and `twelve oh three` after `at`."""
    found = cardinal(line, at)
    if found is None or not 0 < found[1] <= NOON:
        return None
    end, hour = found
    whole = _oclock(line, at)
    if whole:
        return whole
    minute, end = _spelled_minute(line, end)
    after, half = _half(line, end)
    if half is not None:
        return after, Clock(hour, minute, half=half)
    return (end, Clock(hour, minute)) if minute is not None and led(line, at) else None


def _spelled_minute(line: TokenLine, at: int) -> tuple[int | None, int]:
    start = at + 1 if line.word(at) == "-" else at
    if line.word(start) in {"oh", "o", "zero"}:
        found = cardinal(line, start + 2 if line.word(start + 1) == "-" else start + 1)
        return (found[1], found[0]) if found and found[1] < _TENS_OF_MINUTES else (None, at)
    found = cardinal(line, start)
    if found is None or line.number(start) is not None or not _TENS_OF_MINUTES <= found[1] < MINUTES:
        return None, at
    return found[1], found[0]


def spelled_clock(line: TokenLine, at: int) -> Rule | None:
    """`ten thirty`, `twelve oh three`: a time where nothing else is said; `three twenty` may be a price."""
    found = cardinal(line, at)
    if found is None or line.number(at) is not None or not 0 < found[1] <= NOON:
        return None
    minute, end = _spelled_minute(line, found[0])
    if minute is None or (minute % 15 and minute >= _TENS_OF_MINUTES):
        return None
    return end, Frame(clock=Clock(found[1], minute), strong=False)


def hour_at(line: TokenLine, at: int) -> Read | None:
    """A bare hour, `3` or `three`: only where something else proves that it is one."""
    return clock(line, at) or _hour(line, at)


def _hour(line: TokenLine, at: int) -> Read | None:
    found = cardinal(line, at)
    if found is None or found[1] > HOURS or (line.word(found[0]) in {"%", "."} and line.number(found[0] + 1)):
        return None
    end, hour = found
    end, half = _half(line, end + (line.word(end) == "ish"))
    return end, Clock(hour, half=half, padded=hour > NOON or line.word(at).startswith("0"))


def compact(line: TokenLine, at: int) -> Read | None:
    """`0935` or `815`: a year or a quantity just as often, so only next to a date or after `at`."""
    if line.number(at) is None or line.digits(at) not in _HHMM_DIGITS:
        return None
    hour, minute = divmod(line.number(at) or 0, 100)
    if hour >= HOURS or minute >= MINUTES or _longer(line, at):
        return None
    end, half = _half(line, at + 1)
    return end, Clock(hour, minute, half=half, padded=hour > NOON or line.word(at).startswith("0"))


def _longer(line: TokenLine, at: int) -> bool:
    """Whether the digits go on behind a sign, as in a phone number or a price."""
    if line.number(at + 1) is not None:
        return True
    if not line.glued(at + 1) or line.number(at + 2) is None or not line.glued(at + 2):
        return False
    return line.word(at + 1) in {".", ","} or (
        line.word(at + 3) in {"-", "."} and line.glued(at + 3) and line.glued(at + 4)
    )


def counts_noun(line: TokenLine, at: int) -> bool:
    """Whether a bare number counts what follows it: `around 400 ms`, `by 500%`, `at 24 locations`."""
    word = line.word(at)
    return word == "%" or (word.isalpha() and word not in _AFTER_TIME)


def clock_rule(line: TokenLine, at: int, frame: Frame, *, lead: str) -> Rule | None:
    """The time of day that starts here, given what the frame already says and the word before."""
    read = clock(line, at)
    strong, timed = read is not None, lead in _TIMED or (lead == "from" and frame.daily())
    if read is None and lead == "-":
        return None
    if read is None and (timed or frame.days is not None):
        read = dotted(line, at, need_half=False)
    if read is None and _maybe_compact(line, at, frame, lead):
        read = compact(line, at)
    if read is None:
        return _bare_rule(line, at, frame, lead=timed)
    if not strong and counts_noun(line, read[0]):
        return None
    return _finish(line, at, read, strong=strong or (timed and lead not in ABOUT))


def _maybe_compact(line: TokenLine, at: int, frame: Frame, lead: str) -> bool:
    """Whether four digits may be hours and minutes; what could be a year needs `at` or a day of the month."""
    yearlike = line.digits(at) == _HHMM_DIGITS[1] and line.word(at)[:2] in {"19", "20"}
    if lead in {"at", "@"} or frame.days is not None:
        return True
    if line.digits(at) == _HHMM_DIGITS[0] and not frame.daily() and frame.part is None:
        return False
    return not yearlike and (lead in ABOUT or frame.daily() or frame.part is not None)


def _bare_rule(line: TokenLine, at: int, frame: Frame, *, lead: bool) -> Rule | None:
    """`3-5 pm`, `between 2 and 4pm`, `20-21` after a date; `at 5` next to a day or a part of one."""
    left = hour_at(line, at)
    if left is None:
        return None
    end, first = left
    right = _right(line, at, end, bare=True)
    if counts_noun(line, right[0] if right else end) and not (right and _explicit(right[1])):
        return None
    ranged = right is not None and (_explicit(right[1]) or frame.days is not None or (lead and frame.daily()))
    if right is not None and line.word(at - 1) in {"between", "from"}:
        ranged = ranged or line.word(right[0]) in _BESIDE or _in_part(line, right[0])
    if ranged or first.half is not None or (lead and line.word(end) in ZONE_HOURS):
        return _finish(line, at, left, strong=True)
    parted = frame.part is not None and (lead or first.hour <= NOON)
    if parted or (lead and frame.daily()):
        return _finish(line, at, left, strong=False)
    on_day = lead and line.word(end) == "on" and line.word(end + 1) in WEEKDAY
    beside = line.word(end) in _BESIDE or on_day or _in_part(line, end)
    fits = frame == Frame() and first.hour <= NOON and beside
    return (end, Frame(clock=first, strong=lead and _in_part(line, end))) if fits else None


_BESIDE = frozenset({"tomorrow", "tonight", "yesterday"})
_PARTS = frozenset({"morning", "afternoon", "evening"})


def _in_part(line: TokenLine, at: int) -> bool:
    """`3 in the morning`, `8 this evening`."""
    if line.word(at) == "in" and line.word(at + 1) == "the":
        return line.word(at + 2) in _PARTS
    return line.word(at) == "this" and line.word(at + 1) in _PARTS


def _explicit(written: Clock) -> bool:
    return written.half is not None or written.minute is not None


def _right(line: TokenLine, first: int, at: int, *, bare: bool) -> Read | None:
    """The end of `9:30 - 11`: what follows a dash or a `to`, or an `and` after `between`; never a date."""
    sign = line.word(at)
    if sign not in _TO or (sign in {"and", "or"} and line.word(first - 1) not in _BETWEEN):
        return None
    start = at + 1 + (line.word(at + 1) in ABOUT)
    read = clock(line, start)
    if read is not None or sign == "/":
        return read
    return (
        dotted(line, start, need_half=False)
        or compact(line, start)
        or (hour_at(line, start) if bare or _plain_hour(line, start) else None)
    )


_BETWEEN = frozenset({"between"}) | ABOUT


def _plain_hour(line: TokenLine, at: int) -> bool:
    spelled = (
        line.word(at) in CARDINAL and 0 < CARDINAL[line.word(at)] <= NOON and not counts_noun(line, at + 1)
    )
    return spelled or (line.number(at) is not None and not _dateish(line, at + 1))


def _finish(line: TokenLine, at: int, read: Read, *, strong: bool) -> Rule | None:
    """Read what follows a time: `h`, `ish`, the next day's +1, the end of a range, a zone."""
    end, first = read
    end = _trim(line, end)
    last = _right(line, at, end, bare=False)
    if last is not None and _dateish(line, last[0]) and not _explicit(last[1]):
        last = None
    days_later = None
    if line.word(end) == "+" and line.number(end + 1) == 1:
        end, days_later = end + 2, 1
        last = _right(line, at, end, bare=False)
    if last is not None:
        end = _trim(line, last[0])
        if line.word(end) == "+" and line.number(end + 1) == 1:
            end += 2
    if UNIT.get(line.word(end)) in {"second", "minute", "hour"}:
        return None
    end, zone = _zone(line, end)
    return end, Frame(
        clock=first,
        clock_until=last[1] if last else None,
        days_later=days_later,
        zone=zone,
        strong=strong or last is not None or zone is not None,
    )


def _dateish(line: TokenLine, at: int) -> bool:
    """Whether a bare number before this belongs to a date or an amount rather than to the time."""
    return line.word(at) in {"/", ".", "days", "weeks", "months", "years", "people", "th", "st", "nd", "rd"}


def _trim(line: TokenLine, at: int) -> int:
    while line.word(at) in {"ish", "h", "hrs", "hr", "approximately", "sharp"}:
        at += 1
    return at


def _zone(line: TokenLine, at: int) -> tuple[int, timezone | None]:
    bracket = line.word(at) == "("
    name = line.word(at + bracket)
    if name not in ZONE_HOURS or name == "z":
        return at, None
    if name in {"est", "ist", "west", "wet"} and not (line.glued(at) or name in {"est", "ist"}):
        return at, None
    end = at + 1 + bracket
    return end + (bracket and line.word(end) == ")"), timezone(timedelta(hours=ZONE_HOURS[name]))
