"""When something is due, said of the thing itself: `The meeting moved to Thursday`, `the deadline is May 15`."""

import re

from memplane.enrich.proposition import USER, Proposition
from memplane.enrich.sentences import Sentence

_DUE = re.compile(
    r"(?:(?:ok(?:ay)?|so|and|actually|update|fyi|btw|heads up)[ ,:]+)*"
    r"(?P<what>(?:the|our|my|this|that) (?:[\w'-]+ ){0,3}?"
    r"(?:deadline|due date|meeting|launch|release|exam|demo|flight|appointment|interview|presentation|wedding|call"
    r"|standup|kick-?off|review|delivery|party|conference|trip)) "
    r"(?P<verb>(?:is|was|has been|will be|got|moved|changed|slipped)(?: now| been| being)?"
    r"(?: (?:moved|pushed|postponed|rescheduled|delayed|changed|shifted|brought forward|scheduled|set|due))?(?: back)?"
    r"(?: (?:to|on|at|for|by|until|in))?) "
    r"(?P<value>(?:(?:next|this|on|late|early|mid|end of|the end of) )?(?:monday|tuesday|wednesday|thursday|friday"
    r"|saturday|sunday|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|tomorrow|today|tonight|week|month|quarter|q[1-4]|\d)\b.*)",
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"moved|pushed|postponed|rescheduled|delayed|changed|shifted|forward|slipped|now", re.IGNORECASE
)
_ARTICLE = re.compile(r"(?:the|our|my|this|that) ", re.IGNORECASE)
_CONFIDENCE = 0.8


def read_schedule(text: str, sentence: Sentence, role: str) -> Proposition | None:
    found = _DUE.fullmatch(text[sentence.start : sentence.end].rstrip(" .!"))
    if found is None or sentence.question:
        return None
    what = " ".join(found["what"].lower().split())
    return Proposition(
        subject=USER,
        predicate="has_deadline",
        object_text=found["value"].strip(),
        relation_phrase=f"{what} {found['verb'].lower()}",
        start=sentence.start,
        end=sentence.end,
        confidence=_CONFIDENCE if role == USER else _CONFIDENCE / 2,
        update=_MOVED.search(found["verb"]) is not None,
        topic=_ARTICLE.sub("", what, count=1),
        when=found["value"].strip(),
        ordinal=sentence.ordinal,
        role=role,
    )
