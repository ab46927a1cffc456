"""How much a query asks for: one thing, everything, or whatever helps.

A direct question names what it asks for ("what is my blood type?"). Its answer has a high probability, so improbable items are not the
answer, and listing them only hides that there is none. For an indirect turn ("what should I cook for her?"), an item that looks
improbable may help. A summary ("what do you know about me?") asks for everything.
"""

import re
from enum import StrEnum

from memplane.recall.query import CHARS_READ_MAX

_DIRECT_WORDS_MAX = 7
_WORD = re.compile(r"\w+(?:['\u2019]\w+)?")
_DIRECT = re.compile(
    r"\W*(?:what|which|who|whose|whom|where|when|how (?:old|tall|many|much|long|far|often|big|heavy))\b"
    r"(?!.*\b(?:should|can|could|would|will|shall|might|may|must|need|want)\b)",
    re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"\b(?:everything|anything|all|what(?:ever)?|things) (?:that )?(?:do )?you(?:['\u2019]ve| have)? "
    r"(?:currently |already |still )?(?:know|remember|learn(?:ed|t)|stored|noted)\b(?:(?! \w+ed\b).)*\b(?:about|of|on) (?:me|us)\b"
    r"|\bwhat (?:have|did) (?:i|we) (?:told|tell|taught|teach) you\b(?! about)"
    r"|\b(?:summar(?:y|i[sz]e)|overview|recap)\b.*"
    r"\b(?:(?:about|of) (?:me|us)|you know|you remember|your memory|my (?:preferences|profile|memory))\b"
    r"|\A\W*(?:who am i|describe me|tell me about (?:me|myself))\b",
    re.IGNORECASE,
)


class Breadth(StrEnum):
    """What kind of turn a query is."""

    DIRECT = "direct"
    OPEN = "open"
    SUMMARY = "summary"


def breadth_of(query: str) -> Breadth:
    beginning = query[:CHARS_READ_MAX]
    if _SUMMARY.search(beginning) is not None:
        return Breadth.SUMMARY
    if _DIRECT.match(beginning) is not None and len(_WORD.findall(beginning)) <= _DIRECT_WORDS_MAX:
        return Breadth.DIRECT
    return Breadth.OPEN


_TURN_FLOOR = 0.001
_DIRECT_FLOOR = 0.005
_BEHIND_MAX = 50
"""If a direct question has an answer, a memory that is fifty times less probable is not worth its line."""
BEST_ITEMS = 3
"""The most probable items are returned whatever their probability."""


def floor_of(breadth: Breadth, best: float, *, turn: bool) -> float:
    """The minimum probability of an item after the best few. A turn may mention an answer in passing, so its floor is lower than
    that of a memory, which states one thing."""
    if breadth is Breadth.SUMMARY:
        return 0.0
    if turn:
        return _TURN_FLOOR
    return max(_DIRECT_FLOOR, best / _BEHIND_MAX) if breadth is Breadth.DIRECT else 0.0
