"""Whether a person would keep a fact: correct, understandable by itself, and of interest in a month.

Learned from 2,400 judged facts (docs/internals/extraction.md). The features below are what the model sees; training and reading share
them."""

import re
from collections.abc import Iterator
from itertools import pairwise

from memplane.extract.english import STOP_WORDS, base_form
from memplane.extract.proposition import USER, Proposition
from memplane.extract.standalone import stands_alone
from memplane.models.linear import load_linear, probability

WORTH_MIN = 0.6
"""The least probability of a fact that is shown."""
IMPORTANT_MIN = 0.35
"""The least of one that the catalog calls important: a home, a job, an allergy."""
ON_PURPOSE_MIN = 0.25
"""The least of one that is all a message says."""
_WORDS = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_NAME = re.compile(r"(?<=\w )(?!I\b)[A-Z]")
_LENGTHS = (3, 4, 5, 6, 8, 10, 13, 17, 24)


def worth_of(claim: Proposition, note: str, text: str) -> float:
    """The probability that somebody would keep it. `note` is how it reads, `text` the message it comes from."""
    if not stands_alone(note):
        return 0.0
    model = load_linear("worth")
    return probability(model.bias + model.add(features(claim, note, text), set()))


def features(claim: Proposition, note: str, text: str) -> Iterator[str]:
    yield from _of_claim(claim)
    yield from _of_note(note)
    yield from _of_place(claim, note, text)


def _of_claim(claim: Proposition) -> Iterator[str]:
    word = claim.relation_phrase.rpartition(" ")[2]
    verb = base_form(word) or word
    own = claim.subject == USER
    yield f"predicate {claim.predicate}"
    yield f"predicate {claim.predicate} {claim.tense} {own}"
    yield f"verb {verb}"
    yield f"verb {verb} {claim.tense}"
    yield f"group {claim.relation_phrase}"
    yield f"subject {'own' if own else claim.subject.rpartition(' ')[2]}"
    yield f"polarity {claim.polarity}"
    yield f"when {bool(claim.when)} {claim.tense}"
    yield f"topic {claim.topic}"
    first = claim.object_text.partition(" ")[0].lower()
    yield f"object {first}"
    yield f"verb {verb} object {first}"
    if claim.noted is not None:
        yield f"noted {int(10 * claim.noted)}"


def _of_note(note: str) -> Iterator[str]:
    words = [word.lower() for word in _WORDS.findall(note)]
    yield f"count {_bin(len(words))}"
    yield f"content {min(sum(word not in STOP_WORDS for word in words), 8)}"
    yield f"number {any(char.isdigit() for char in note)}"
    yield f"name {_NAME.search(note) is not None}"
    yield f"start {' '.join(words[:3])}"
    yield f"last {words[-1] if words else ''}"
    yield from words
    for left, right in pairwise(words):
        yield f"{left} {right}"


def _of_place(claim: Proposition, note: str, text: str) -> Iterator[str]:
    quote = text[claim.start : claim.end]
    after = text[claim.end : claim.end + 2].strip()
    yield f"left {min(max(len(quote.split()) - len(note.split()), 0), 8)}"
    yield f"after {after[:1] if not after[:1].isalnum() else 'word'}"
    yield f"turn {_bin(len(text.split()))}"
    yield f"begins {claim.start == 0}"
    yield f"before {text[: claim.start].rstrip()[-1:] or 'none'}"
    yield f"asks {'?' in text}"


def _bin(count: int) -> int:
    return next((limit for limit in _LENGTHS if count <= limit), 99)
