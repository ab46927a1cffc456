"""The times a memory mentions: when it happened or will happen, as ranges."""

import re
from datetime import datetime

from memplane.clock import DAY, to_datetime, to_instant
from memplane.extract.english import is_past
from memplane.extract.proposition import Tense
from memplane.extract.time import Prefer, TimeMention, find_times
from memplane.types import MentionedTime

_TIMES_MAX = 4
_SPAN_MAX = 100 * 366 * DAY
"""A longer range has an open end, as in `until June`, and is not a stated time."""
_STORED_CHARS_MAX = 2_000
"""A stored text may be a whole file; its times are at its beginning."""
_WORDS_MAX = 12
_LEAD_CHARS_MAX = 200

_SINCE = re.compile(r"\b(?:since|ago|last|for the past|have been|has been)\b", re.IGNORECASE)
_PUTS_OFF = r"\b(?:moved|rescheduled|postponed|pushed(?: back)?|shifted|delayed)\b"
_MAY_PUT_OFF = re.compile(_PUTS_OFF, re.IGNORECASE)
_PUT_OFF = re.compile(rf"{_PUTS_OFF}.*\b(?:to|until)\s(?:the\s)?$", re.IGNORECASE)
"""Before a time: `the exam was moved to March`, but not `I moved to Rome in March`."""
_AHEAD = re.compile(
    r"\b(?:will|shall|going to|plans?|planned|planning|next|upcoming|due|deadline)\b", re.IGNORECASE
)
_WORD = re.compile(r"[a-z]+")
_SENTENCE_END = re.compile(r"[.!?…]\s|\n")
_BEFORE_TIME = re.compile(
    r"(?:\b(?:and|so|then|well|but|also|in|on|at|during|back|over|by|around|about|the|early|late|since|from)\b|\W)*",
    re.IGNORECASE,
)


def claimed_times(text: str, start: int, end: int, at: datetime, tense: Tense) -> tuple[MentionedTime, ...]:
    """The times of the claim `text[start:end]`, said at this time: its own, or those its sentence begins with, as in
    `In May, I moved to Rome and Ana got a job`.

    Events are in the past; states, as in `the exam is in January`, are ahead unless they began before.
    """
    quote = text[start:end]
    ahead = (tense is not Tense.PAST and _SINCE.search(quote) is None) or _is_put_off(quote)
    prefer: Prefer = "future" if ahead else "past"
    return _times(quote, at, prefer) or _times(_introduction(text, start), at, prefer)


def stored_times(text: str, at: datetime) -> tuple[MentionedTime, ...]:
    """The times of a memory that was stored as it is: of `in March`, the last one after a verb in the past, the next
    one in a plan, else the nearest."""
    text = text[:_STORED_CHARS_MAX]
    if _SINCE.search(text):
        return _times(text, at, "past")
    if _AHEAD.search(text) or _is_put_off(text):
        return _times(text, at, "future")
    words = _WORD.findall(text.lower())[:_WORDS_MAX]
    return _times(text, at, "past" if any(map(is_past, words)) else "none")


def _is_put_off(text: str) -> bool:
    mentions = find_times(text, 0) if _MAY_PUT_OFF.search(text) else []
    return any(_PUT_OFF.search(text, 0, mention.start) for mention in mentions)


def _introduction(text: str, start: int) -> str:
    """The time at the beginning of the sentence that contains this place, if a comma sets it apart."""
    before = text[max(0, start - _LEAD_CHARS_MAX) : start]
    ends = [found.end() for found in _SENTENCE_END.finditer(before)]
    lead, comma, _ = before[ends[-1] if ends else 0 :].partition(",")
    mentions = find_times(lead, 0) if comma else []
    if len(mentions) != 1:
        return ""
    rest = lead[: mentions[0].start] + lead[mentions[0].end :]
    return lead if _BEFORE_TIME.fullmatch(rest) else ""


def _times(text: str, at: datetime, prefer: Prefer) -> tuple[MentionedTime, ...]:
    found = find_times(text, to_instant(at), prefer=prefer) if text else []
    return tuple(_told(mention) for mention in found if _is_told(mention))[:_TIMES_MAX]


def _is_told(mention: TimeMention) -> bool:
    return mention.kind != "duration" and mention.until - mention.begin <= _SPAN_MAX


def _told(mention: TimeMention) -> MentionedTime:
    return MentionedTime(
        begin=to_datetime(mention.begin),
        until=to_datetime(mention.until),
        raw=mention.raw,
        granularity=mention.granularity,
        kind=mention.kind,
    )
