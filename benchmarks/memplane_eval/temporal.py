"""Value accuracy of `find_times` on ctparse's and Duckling's English expressions.

Of several mentions in one text, the longest is the answer. It is right where it begins when the gold value does, ends
when that ends (where the gold has an end), and was understood as precisely; how each set writes these is told below.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from memplane.clock import to_datetime, to_instant
from memplane.extract.time import Prefer, TimeMention, find_times


class Miss(NamedTuple):
    """One wrong answer, for whoever wants to know why."""

    text: str
    gold: str
    answer: str


class TemporalScore(NamedTuple):
    """How many of how many were right, and what was not."""

    name: str
    cases: int
    correct: int
    misses: list[Miss]

    @property
    def accuracy(self) -> float:
        return self.correct / self.cases if self.cases else 0.0


class _Answer(NamedTuple):
    """A mention in local time without a zone, as both sets write theirs."""

    begin: datetime
    until: datetime
    grain: str
    kind: str


def score_ctparse(rows: Sequence[Mapping[str, Any]]) -> TemporalScore:
    """ctparse's travel requests. They look ahead and are written by Europeans: the future and the day come first."""
    misses = []
    for row in rows:
        reference = datetime.fromisoformat(row["ref_time"])
        answer = _answer(row["text"], reference, UTC, prefer="future", day_first=True)
        if not _ctparse_right(row["gold_parse"], answer):
            misses.append(_miss(row["text"], row["gold_parse"], answer))
    return TemporalScore("ctparse", len(rows), len(rows) - len(misses), misses)


def score_duckling(data: Mapping[str, Any]) -> dict[str, TemporalScore]:
    """Duckling's corpus in three parts and as a whole, and the texts that hold no time.

    `past_or_neutral`, asked with the past preferred, is what does not depend on Duckling's preference for the future:
    every case whose gold value begins no later than the reference, or whose text carries a year (four digits, or a
    date of three numbers). `future`, asked with the future preferred, is the rest; `all` asks every case that way.
    `negative` are texts in which nothing may be found.
    """
    parts: dict[str, list[Any]] = {"past_or_neutral": [], "future": [], "all": data["positive"]}
    for row in data["positive"]:
        parts["past_or_neutral" if _past_or_neutral(row) else "future"].append(row)
    scores = {name: _score_part(name, rows) for name, rows in parts.items()}
    scores["negative"] = _score_negative(data["negative"], data["reference"])
    return scores


def _answer(
    text: str, reference: datetime, zone: tzinfo, *, prefer: Prefer, day_first: bool | None
) -> _Answer | None:
    if reference.tzinfo is None:
        reference = reference.replace(tzinfo=zone)
    found = find_times(text, to_instant(reference), prefer=prefer, zone=zone, day_first=day_first)
    longest = max(found, key=lambda mention: mention.end - mention.start, default=None)
    return _local(longest, zone) if longest else None


def _local(mention: TimeMention, zone: tzinfo) -> _Answer:
    begin, until = (
        to_datetime(moment).astimezone(zone).replace(tzinfo=None) for moment in (mention.begin, mention.until)
    )
    return _Answer(begin, until, mention.granularity, mention.kind)


def _miss(text: str, gold: str, answer: _Answer | None) -> Miss:
    told = "nothing" if answer is None else f"{answer.begin} - {answer.until} {answer.grain} {answer.kind}"
    return Miss(text, gold, told)


# ctparse: `Time[]{2017-09-12 18:30 (X/X)}`, `Time[]{2017-09-12 X:X (X/evening)}`, `Interval[]{… - …}`, `Duration[]{…}`.

_TIME = re.compile(r"(X|\d+)-(X|\d+)-(X|\d+) (X|\d+):(X|\d+) \((?:X|\d+)/(\w+)\)")
_PART_HOURS = {
    "earlymorning": (4, 9),
    "morning": (6, 12),
    "forenoon": (8, 12),
    "noon": (11, 14),
    "earlyafternoon": (12, 15),
    "afternoon": (12, 18),
    "lateafternoon": (15, 19),
    "earlyevening": (17, 20),
    "evening": (18, 23),
    "lateevening": (20, 24),
    "night": (19, 24),
    "latenight": (21, 24),
}
"""ctparse's parts of the day, which it names and does not bound: ours has to overlap them."""


def _ctparse_right(gold: str, answer: _Answer | None) -> bool:
    if answer is None:
        return False
    if gold.startswith("Duration"):
        count, unit = gold[gold.index("{") + 1 : -1].split()
        length = {"nights": 1, "days": 1, "weeks": 7}.get(unit, 0) * int(count)
        return answer.kind == "duration" and answer.until - answer.begin == timedelta(days=length)
    times = _TIME.findall(gold)
    if gold.startswith("Time"):
        return _begins(times[0], answer)
    if not times or gold.startswith("Interval[]{None"):
        return bool(times) and _ends(times[0], answer)
    return _begins(times[0], answer) and (gold.endswith("- None}") or _ends(times[-1], answer))


def _begins(time: tuple[str, ...], answer: _Answer) -> bool:
    year, month, day, hour, minute, part = time
    if year != "X" and (answer.begin.year, answer.begin.month, answer.begin.day) != (
        int(year),
        int(month),
        int(day),
    ):
        return False
    if hour != "X":
        return (answer.begin.hour, answer.begin.minute) == (int(hour), int(minute)) and answer.grain != "day"
    if part in _PART_HOURS:
        midnight = answer.begin.replace(hour=0, minute=0)
        return _overlaps(part, midnight, answer) and answer.grain in {"part_of_day", "hour", "minute"}
    return part != "X" or answer.grain in {"day", "week"}


def _overlaps(part: str, day: datetime, answer: _Answer) -> bool:
    first, last = _PART_HOURS[part]
    return answer.begin < day + timedelta(hours=last) and day + timedelta(hours=first) < answer.until


def _ends(time: tuple[str, ...], answer: _Answer) -> bool:
    """A day named as an end belongs to the interval; a time of day is where it stops."""
    year, month, day, hour, minute, part = time
    last = datetime(int(year), int(month), int(day), tzinfo=UTC).replace(tzinfo=None)
    if hour != "X":
        return answer.until == last + timedelta(hours=int(hour), minutes=int(minute))
    if part in _PART_HOURS:
        return _overlaps(part, last, answer) and answer.until <= last + timedelta(days=1)
    return answer.until == last + timedelta(days=1)


# Duckling: local times at -02:00 with a grain; an interval's end is exclusive and lies one grain after the end named.

_YEAR = re.compile(r"\b(?:1[89]|20)\d\d|\d+[/.-]\d+[/.-]\d\d")
_STEP = {
    "Second": timedelta(seconds=1),
    "Minute": timedelta(minutes=1),
    "Hour": timedelta(hours=1),
    "Day": timedelta(days=1),
}
_CLOCK_GRAINS = frozenset({"hour", "minute", "second"})
_WEEKEND_LEAD = timedelta(hours=6)
_SEASON_LAG = timedelta(days=24)
_WEEK = timedelta(days=7)
_WEEK_OF_MONTH = re.compile(
    r"\b(?:first|1st|second|2nd|third|3rd|fourth|4th|last)(?: last)? week (?:of|in) [a-z]", re.IGNORECASE
)
"""The first week of June is its first seven days to us, and its first Monday with the days after it to Duckling."""
_COARSER = {"Hour": "day", "Day": "month", "Month": "year"}
"""`7 days ago` is the hour to Duckling and the day to us, `three months ago` the day and the month, `two years ago` the month and the year."""
_COUNTED = re.compile(
    r"\b(?:months?|years?|yrs?)\b.*\b(?:ago|back|hence|now)\b|\bin\b.*\b(?:months?|years?|yrs?)\b",
    re.IGNORECASE,
)


def _past_or_neutral(row: dict[str, Any]) -> bool:
    reference = datetime.fromisoformat(row["reference"]).replace(tzinfo=None)
    return _values(row)[0] <= reference or bool(_YEAR.search(row["text"]))


def _values(row: dict[str, Any]) -> list[datetime]:
    values = []
    for value in row["values"]:
        try:
            values.append(datetime.fromisoformat(value))
        except ValueError:
            # A year before the first, which Python cannot tell and we do not claim to.
            values.append(datetime.min)  # noqa: DTZ901  compared with local times only
    return values


def _score_part(name: str, rows: Iterable[dict[str, Any]]) -> TemporalScore:
    prefer: Prefer = "past" if name == "past_or_neutral" else "future"
    misses, cases = [], 0
    for row in rows:
        cases += 1
        reference = datetime.fromisoformat(row["reference"])
        day_first = {"en_GB": True, "en_US": False}.get(row["locale"])
        zone = reference.tzinfo or UTC
        answer = _answer(row["text"], reference, zone, prefer=prefer, day_first=day_first)
        if not _duckling_right(row, answer):
            misses.append(_miss(row["text"], f"{row['values']} {row['grain']} {row['kind']}", answer))
    return TemporalScore(name, cases, cases - len(misses), misses)


def _counted(text: str, answer: _Answer) -> bool:
    return answer.kind == "relative" and bool(_COUNTED.search(text))


def _duckling_right(row: dict[str, Any], answer: _Answer | None) -> bool:
    if answer is None:
        return False
    values, grain = _values(row), row["grain"]
    if row["open"] is not None:
        return (answer.begin if row["open"] == "After" else answer.until) == values[0]
    if len(values) > 1:
        return _interval_right(values[0], values[1], grain, answer)
    if answer.grain == _COARSER.get(grain) and (grain == "Hour" or _counted(row["text"], answer)):
        return answer.begin <= values[0] < answer.until
    said = grain.lower()
    if answer.grain == said == "week" and _WEEK_OF_MONTH.search(row["text"]):
        return abs(answer.begin - values[0]) < _WEEK
    return answer.begin == values[0] and (answer.grain == said or {answer.grain, said} <= _CLOCK_GRAINS)


def _interval_right(begin: datetime, until: datetime, grain: str, answer: _Answer) -> bool:
    """The end may be one grain off, since Duckling counts the last one in or not by rule. Our weekends begin on Saturday, Duckling's on
    Friday at six; our seasons are whole months, Duckling's begin with an equinox or a solstice."""
    if answer.grain == "season":
        return max(abs(answer.begin - begin), abs(answer.until - until)) <= _SEASON_LAG
    if answer.grain == "weekend":
        return answer.begin == begin + _WEEKEND_LEAD and answer.until == until
    return answer.begin == begin and abs(answer.until - until) <= _STEP.get(grain, timedelta(0))


def _score_negative(texts: list[str], reference: str) -> TemporalScore:
    moment = datetime.fromisoformat(reference)
    zone = moment.tzinfo or UTC
    misses = []
    for text in texts:
        answer = _answer(text, moment, zone, prefer="past", day_first=None)
        if answer is not None:
            misses.append(_miss(text, "nothing", answer))
    return TemporalScore("negative", len(texts), len(texts) - len(misses), misses)
