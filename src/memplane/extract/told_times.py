"""The times a memory mentions: when it happened or will happen, as ranges."""

import re
from datetime import datetime
from itertools import pairwise

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
_PUT_TO_CHARS_MAX = 12

_SINCE = re.compile(
    r"\b(?:since|ago|last(?! (?:\w+ ){1,2}(?:of|in)\b)|for the past|have been|has been)\b", re.IGNORECASE
)
"""`Last week` is past, `the last week of March` may be ahead."""
_PUTS_OFF = r"\b(?:moved|rescheduled|postponed|pushed(?: back)?|shifted|delayed)\b"
_MAY_PUT_OFF = re.compile(_PUTS_OFF, re.IGNORECASE)
_PUT_TO = re.compile(r"\b(?:to|until)\s(?:the\s)?\Z", re.IGNORECASE)
"""Before a time: `the exam was moved to March`, but not `I moved to Rome in March`."""
_AHEAD = re.compile(
    r"\b(?:will|shall|going to|plans?|planned|planning|next|upcoming|due|deadline)\b|\w['\u2019]ll\b"
    r"|(?:\b(?:am|is|are)|['\u2019](?:m|s|re)) (?:getting|having|coming|flying|leaving|moving|starting|visiting|meeting|hosting"
    r"|travell?ing|returning|opening|closing|launching)\b",
    re.IGNORECASE,
)
_PRESENT = re.compile(
    r"\b(?:is|are|am|must|should|can|let|remind|please|needs?|leaves?|starts?|begins?|opens?|closes?|fly|flies|arrives?"
    r"|expires?|ends?|meet|see|book|schedule|takes)\b|\w['\u2019](?:s|re|m) (?:\w+ing|on|at|in|due)\b",
    re.IGNORECASE,
)
"""Verbs of what is ahead, where none is in the past: `the exam is on the 20th`, `we fly on the 12th`."""
_ANCHORED = re.compile(
    r"\b(?:later|earlier|afterwards?|following|previous|same|the next|(?:day|night|week|month|year|weekend|morning|evening)"
    r" (?:after|before))\b",
    re.IGNORECASE,
)
"""Words of a time that is counted from one said before, as in `I applied on 4 May and heard back two weeks later`."""
_PASSIVE = frozenset({"is", "are", "am", "be", "get", "gets", "s", "re"})
"""Before a participle: `the shop is closed till Monday` is no past."""
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
    lead = text[max(0, start - _LEAD_CHARS_MAX) : start] if _ANCHORED.search(quote) else ""
    ahead = (tense is not Tense.PAST and _SINCE.search(quote) is None) or _is_put_off(quote)
    prefer: Prefer = "future" if ahead else "past"
    own = _times(lead + quote, at, prefer, len(lead))
    return own or _times(_introduction(text, start), at, prefer)


def stored_times(text: str, at: datetime) -> tuple[MentionedTime, ...]:
    """The times of a memory that was stored as it is: of `in March`, the last one after a verb in the past, the next
    one in a plan, else the nearest."""
    text = text[:_STORED_CHARS_MAX]
    if _SINCE.search(text):
        return _times(text, at, "past")
    if _AHEAD.search(text) or _is_put_off(text):
        return _times(text, at, "future")
    words = _WORD.findall(text.lower())[:_WORDS_MAX]
    if any(is_past(word) and before not in _PASSIVE for before, word in pairwise(["", *words])):
        return _times(text, at, "past")
    return _times(text, at, "future" if _PRESENT.search(text) else "none")


def _is_put_off(text: str) -> bool:
    mentions = find_times(text, 0) if _MAY_PUT_OFF.search(text) else []
    return any(_is_put_to(text, mention.start) for mention in mentions)


def _is_put_to(text: str, time: int) -> bool:
    """The word before the time first, which most times lack: the rest of the line is then read for few of them."""
    to = _PUT_TO.search(text, max(0, time - _PUT_TO_CHARS_MAX), time)
    return (
        to is not None
        and _MAY_PUT_OFF.search(text, text.rfind("\n", 0, to.start()) + 1, to.start()) is not None
    )


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


def _times(text: str, at: datetime, prefer: Prefer, start: int = 0) -> tuple[MentionedTime, ...]:
    found = find_times(text, to_instant(at), prefer=prefer) if text else []
    return tuple(_told(time) for time in found if time.start >= start and _is_told(time))[:_TIMES_MAX]


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
