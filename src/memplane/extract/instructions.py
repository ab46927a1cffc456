"""What the user tells an agent to do from now on, and what they put right: `always …`, `never …`, `no, I meant …`."""

import re

from memplane.extract.english import base_form, word_class
from memplane.extract.proposition import USER, Proposition
from memplane.extract.sentences import Sentence
from memplane.types import Role

_STANDING = re.compile(
    r"(?:please[ ,]+|and |so |also |ok(?:ay)?[ ,]+|hey[ ,]+|remember(?: to|:)? |make sure (?:to |you )?|be sure to )*"
    r"(?:(?:from now on|in (?:the )?future|going forward)[ ,]+(?:please )?(?P<now>.+)"
    r"|(?P<always>always|never|do not ever|don['\u2019]t ever) (?P<what>[a-z]+)\b.*"
    r"|(?:do not|don['\u2019]t) (?P<dont>[a-z]+)\b.*"
    r"|(?:i (?:want|need|would like|['\u2019]d like) you to) (?P<you>.+))",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"(?:(?:no|nope|sorry|wait|actually)[ ,.]+)+(?:i (?:meant|mean|said)|(?:it|that|this)(?:['\u2019]s| is| was| should be)"
    r"|not)\b.+|(?:that['\u2019]s|that is|this is|you['\u2019]re|you are) (?:wrong|incorrect|not right|mistaken)\b.*"
    r"|correction[ :,].+|i meant .+",
    re.IGNORECASE,
)
_OPENINGS = word_class("openings")
_FIRST_WORD = re.compile(r"[ ,.:]")
_CHATTY = word_class("chatty")
_CONFIDENCE = 0.75


def read_instruction(text: str, sentence: Sentence, role: str) -> Proposition | None:
    """Only a user instructs; what an assistant or a tool says to do is not an order."""
    if role != Role.USER or sentence.question:
        return None
    said = text[sentence.start : sentence.end]
    if _FIRST_WORD.split(said, maxsplit=1)[0].lower().replace("\u2019", "'") not in _OPENINGS:
        return None
    predicate = _predicate_of(said)
    if predicate is None:
        return None
    return Proposition(
        subject=USER,
        predicate=predicate,
        object_text=" ".join(said.split()).rstrip(" .!"),
        relation_phrase="says" if predicate == "corrects" else "asks",
        start=sentence.start,
        end=sentence.end,
        confidence=_CONFIDENCE,
        update=predicate == "corrects",
        ordinal=sentence.ordinal,
        role=role,
    )


def _predicate_of(said: str) -> str | None:
    if _CORRECTION.match(said):
        return "corrects"
    found = _STANDING.match(said)
    if not found:
        return None
    if found["now"]:
        return "instructs" if base_form(found["now"].split()[0].strip(",")) else None
    if found["you"]:
        return "instructs"
    verb = (found["what"] or found["dont"] or "").lower()
    if base_form(verb) != verb or (verb in _CHATTY and not found["always"]):
        return None
    return "instructs"
