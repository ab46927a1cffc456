"""A proposition as the sentence a person would write down: `I have two dogs.`"""

import re

from memplane.enrich.proposition import USER, Proposition

_SHORT = {
    "do not": "don't", "does not": "doesn't", "did not": "didn't", "can not": "can't", "could not": "couldn't",
    "will not": "won't", "would not": "wouldn't", "have not": "haven't", "has not": "hasn't", "had not": "hadn't",
    "should not": "shouldn't",
}  # fmt: skip
_LONG = re.compile(r"\b(?:" + "|".join(_SHORT) + r")\b")
_WORDS_MAX = 30


def render(proposition: Proposition) -> str:
    if proposition.note:
        return _sentence(proposition.note)
    if proposition.predicate == "property":
        return f"The {proposition.topic} of {proposition.subject} is {proposition.object_text}."
    if proposition.predicate in {"instructs", "corrects", "mentions"}:
        return _sentence(proposition.object_text)
    return _sentence(
        f"{_spoken(proposition)} {_verb(proposition)} {proposition.object_text} {_when(proposition)}"
    )


def _spoken(proposition: Proposition) -> str:
    subject = proposition.subject
    if subject == USER:
        return "" if _OWNED.match(proposition.relation_phrase) else "I"
    if subject.startswith(f"{USER}'s "):
        return f"My {subject[len(USER) + 3 :]}"
    return subject


_OWNED = re.compile(r"(?:my|our|the|this|that) ")
"""Where the relation begins with what is the user's: `my name is`."""


def _verb(proposition: Proposition) -> str:
    return _LONG.sub(lambda found: _SHORT[found.group()], proposition.relation_phrase)


def _when(proposition: Proposition) -> str:
    return "" if proposition.when in proposition.object_text else proposition.when


def _sentence(text: str) -> str:
    words = text.split()[:_WORDS_MAX]
    line = " ".join(words).rstrip(" ,.;:!?")
    return f"{line[:1].upper()}{line[1:]}."
