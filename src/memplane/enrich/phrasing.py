"""The ways one clause can be written down: whole, or ended early where a phrase ends.

People note `I work at a lab` of `I am working at a lab with my sister these days`. Which ending is best is not for this
file to say.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memplane.enrich.english import base_form, third_person
from memplane.enrich.parse import Parsed
from memplane.enrich.wordlists import word_class

_ENDS = word_class("phrase_ends")
_EMPTY = word_class("intensifiers")
_NO_HABITS = word_class("no_habits")
_TRAILING = word_class("trailing")
_OPEN = word_class("prepositions") | word_class("determiners") | word_class("open_ends")
"""Nothing ends with one of these."""
_PHRASINGS_MAX = 6
_WORDS_MAX = 24
_EDGE = ' ,.;:!?-\u2014\u2026()"*'
_SHORT = {
    "do not": "don't", "does not": "doesn't", "did not": "didn't", "can not": "can't", "could not": "couldn't",
    "will not": "won't", "would not": "wouldn't", "have not": "haven't", "has not": "hasn't", "had not": "hadn't",
    "should not": "shouldn't",
}  # fmt: skip
_FIRST = frozenset({"I", "we"})
_AGREES = {"are": "am", "were": "was"}


class Phrasing(NamedTuple):
    """One way, and where it ended: the word that was left out first, or nothing."""

    text: str
    cut: str
    form: str = ""


def phrasings(parsed: Parsed) -> Iterator[Phrasing]:
    """The whole clause first, then the shorter ones, shortest first."""
    subject = "I" if parsed.owner in _FIRST else f"{parsed.owner[:1].upper()}{parsed.owner[1:]}"
    words = [word for word in parsed.rest.split() if word.strip(_EDGE) not in _EMPTY][:_WORDS_MAX]
    while words and words[-1].strip(_EDGE).lower() in _TRAILING:
        words.pop()
    yield from _ended(f"{subject} {spoken(parsed)}", words, "")
    plain = _simple(parsed)
    if plain:
        yield from _ended(f"{subject} {plain}", words, "simple")


def spoken(parsed: Parsed) -> str:
    """The verb and its helpers, in agreement with `I` and with the short negations people write."""
    words = parsed.group.split()
    if parsed.owner in _FIRST:
        words = [_AGREES.get(word, word) for word in words] if parsed.owner == "we" else words
        if words[0].endswith("ing") and base_form(words[0]) not in {words[0], None}:
            words = ["am", *words]
    for at in range(len(words) - 1):
        short = _SHORT.get(f"{words[at]} {words[at + 1]}")
        if short:
            return " ".join([*words[:at], short, *words[at + 2 :]])
    return " ".join(words)


def _simple(parsed: Parsed) -> str:
    """`am working` and `have been working` as a habit: `work`; empty where nothing goes on."""
    words = parsed.group.split()
    if parsed.negative or parsed.modal or not words[-1].endswith("ing") or parsed.verb in _NO_HABITS:
        return ""
    if words[:-1] not in (["am"], ["are"], ["is"], ["have", "been"], ["has", "been"]):
        return ""
    return parsed.verb if parsed.owner in _FIRST else third_person(parsed.verb)


def _ended(start: str, words: Sequence[str], form: str) -> Iterator[Phrasing]:
    whole = f"{start} {' '.join(words)}".strip(_EDGE)
    yield Phrasing(whole, "", form)
    count = 0
    for at in range(_told(words), len(words)):
        word = words[at].strip(_EDGE).lower()
        if words[at - 1].lower() in _OPEN or (words[at - 2].lower() == "and" and base_form(words[at - 1])):
            continue
        if word in _ENDS or words[at - 1][-1] in ",;":
            yield Phrasing(f"{start} {' '.join(words[:at])}".strip(_EDGE), word or ",", form)
            count += 1
            if count == _PHRASINGS_MAX:
                return


def _told(words: Sequence[str]) -> int:
    """The least a note holds: names and numbers are what one would look for later, so none of the first is cut off."""
    return max(
        (at for at in range(1, min(len(words), _NAMES_WITHIN) + 1) if _NAMES(words[at - 1])), default=1
    )


_NAMES_WITHIN = 12
_NAMES = re.compile(r"(?!I\b)[A-Z]|\S*\d").match
