"""A time that a memory mentions, as a reader needs it: resolved where its words need the day they were said."""

import re
from datetime import datetime, timedelta

from memplane.types import MentionedTime

_STATED = re.compile(r"\d{4}")
"""A year: the words say it all."""
_OF_DAY = re.compile(
    r"(?:at |around |about )?(?:\d{1,2}(?:[:.]\d\d)?\s*(?:[ap]\.?m\.?|o'clock)?|noon|midnight)", re.IGNORECASE
)
_UNTIL = re.compile(r"(?:until|till|up to|through|by)\b", re.IGNORECASE)
_SINCE = re.compile(r"(?:since|from)\b(?!.*\b(?:to|until|till)\b)", re.IGNORECASE)


def told_time(time: MentionedTime) -> str | None:
    """The day or days of `yesterday`, `in March`, `until the end of next year`; None for what repeats, for a time of the day, and for
    words that state the year themselves."""
    if time.kind == "recurring" or _STATED.search(time.raw) or _OF_DAY.fullmatch(time.raw.strip()):
        return None
    last = time.until - timedelta(microseconds=1)
    if _UNTIL.match(time.raw):
        return f"until {_day(last)}"
    if _SINCE.match(time.raw):
        return f"since {_day(time.begin)}"
    return _whole(time.begin, time.until) or f"{_day(time.begin)} to {_day(last)}"


def _whole(begin: datetime, until: datetime) -> str | None:
    """A range that is one day, one month or one year."""
    last = until - timedelta(microseconds=1)
    if begin.date() == last.date():
        return _day(begin)
    starts = begin.day == 1 and until.day == 1
    if starts and (begin.year, begin.month) == (last.year, last.month):
        return f"{begin:%Y-%m}"
    return f"{begin:%Y}" if starts and begin.month == until.month == 1 and begin.year == last.year else None


def _day(moment: datetime) -> str:
    return moment.date().isoformat()
