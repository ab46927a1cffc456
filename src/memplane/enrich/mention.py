"""Statements that touch the speaker without having them as subject: `Pizza is my favorite`, `there are five of us`."""

import re

from memplane.enrich.english import base_form, expand
from memplane.enrich.phrase import trim
from memplane.enrich.proposition import USER, Proposition

_MINE = re.compile(r"\b(?:i|my|mine|me|our|ours|us|myself)\b", re.IGNORECASE)
_ADDRESSED = re.compile(
    r"\b(?:you|your|let me|tell me|excuse me|thank|thanks|help me|let us|sounds|said|says|say|told|asked|asks|claims|if)\b|\bme (?:too|either|neither|as well)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"\A(?:(?:yes|yeah|no|oh|well|so|and|but|ok|okay|wow|haha|lol|also|actually)\b[ ,.!]*)+", re.IGNORECASE
)
_WORDS_MIN = 3
_CONFIDENCE = 0.45


def read_mention(text: str, start: int, end: int, role: str, ordinal: int | None) -> Proposition | None:
    said = text[start:end]
    if role != USER or '"' in said or "\u201c" in said or not _MINE.search(said) or _ADDRESSED.search(said):
        return None
    value = trim(_LEAD.sub("", expand(said), count=1))
    words = value.split()
    if len(words) < _WORDS_MIN or not any(base_form(word) for word in words):
        return None
    return Proposition(
        subject=USER,
        predicate="mentions",
        object_text=value,
        relation_phrase="",
        start=start,
        end=end,
        confidence=_CONFIDENCE,
        ordinal=ordinal,
        role=role,
    )
