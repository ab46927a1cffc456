"""A fact in the third person: `I have a dog.`, said by Caroline, is `Caroline has a dog.`

Only the text that is shown changes; what is stored, searched and quoted stays as it was said.
"""

import re

from memplane.extract.english import MODALS, base_form, is_past, third_person, word_class
from memplane.types import Memory, Role

USER_NAME = "User"
_AGREE = {
    "am": "is", "are": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't", "aren't": "isn't", "were": "was",
    "weren't": "wasn't",
}  # fmt: skip
_PRONOUNS = {
    "my": "their",
    "me": "them",
    "mine": "theirs",
    "myself": "themselves",
    "our": "their",
    "us": "them",
    "i": "they",
    "i'm": "they are",
}
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_UNCHANGED = (
    MODALS
    | word_class("negations")
    | {"used", "won't", "can't", "couldn't", "wouldn't", "shouldn't", "didn't", "hadn't"}
)
_ADVERBS = word_class("fillers") | {"no", "longer"}


def narrated(memory: Memory) -> str:
    """The line of a memory; an extracted one names its subject."""
    if (
        not memory.derived
        or memory.key is not None
        or memory.role != Role.USER
        or memory.predicate in _AS_SAID
    ):
        return memory.line
    speaker, said = _split(memory)
    told = _in_third_person(said, speaker) or memory.line
    return f'{told.rstrip(".")}".' if told.count('"') % 2 else told


_AS_SAID = frozenset({None, "instructs", "corrects", "property", "relation"})


def _split(memory: Memory) -> tuple[str, str]:
    """A named speaker is the beginning of the text: `Ana: I work as a nurse.`"""
    speaker, colon, said = memory.text.partition(": ")
    named = colon and memory.subject is not None and memory.subject.startswith(speaker.lower())
    return (speaker, said) if named else (USER_NAME, memory.text)


def _in_third_person(said: str, name: str) -> str:
    """Empty if it is not in the first person singular."""
    first, _, rest = said.partition(" ")
    if first not in {"I", "My"} or not rest:
        return ""
    told = _others(_agreeing(rest) if first == "I" else rest)
    subject = name if first == "I" else f"{name}'s"
    return told and f"{subject} {told}"


def _agreeing(rest: str) -> str:
    """With the verb in the third person."""
    words = rest.split(" ")
    for at, word in enumerate(words):
        plain = word.strip(".,!").lower()
        if plain in _ADVERBS:
            continue
        if plain in _AGREE:
            words[at] = word.lower().replace(plain, _AGREE[plain], 1)
        elif plain in _SAME_IN_PAST and _PAST_TIME.search(rest):
            pass
        elif (
            plain not in _UNCHANGED
            and base_form(plain) == plain
            and (plain in _SAME_IN_PAST or not is_past(plain))
        ):
            words[at] = word.lower().replace(plain, third_person(plain), 1)
        break
    return " ".join(words)


_SAME_IN_PAST = frozenset(
    {"quit", "read", "cut", "set", "put", "hurt", "let", "hit", "bet", "cost", "shut", "split", "spread"}
)
_PAST_TIME = re.compile(r"\b(?:ago|last|yesterday|earlier|in (?:19|20)\d\d)\b", re.IGNORECASE)


def _others(text: str) -> str:
    """Other first persons; `US` and `IT` are none. Empty if one remains that needs another verb."""
    for said, told in _PAIRS.items():
        text = text.replace(said, told)
    changed = _WORD.sub(lambda found: _PRONOUNS.get(found.group(), found.group()), text)
    return "" if _FIRST.search(changed) else changed


_PAIRS = {
    "I am ": "they are ",
    "I was ": "they were ",
    "I have ": "they have ",
    "I'm ": "they are ",
    "I've ": "they have ",
}
_FIRST = re.compile(r"\bI\b")
