"""How likely a person would write something down of a message, whether or not the rules could read it.

Learned like the notes (docs/internals/extraction.md); the features here are what that model sees.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from memplane.extract.english import word_class
from memplane.extract.linear import load_linear, probability
from memplane.extract.proposition import Proposition
from memplane.extract.sentences import split_sentences
from memplane.extract.wording import asked_words

_WORDS = re.compile(r"\w+(?:'\w+)?|[?!.,]")
_CHARS_MAX = 2000
"""Beyond that a message is a paste; its beginning tells what it is."""
_BEFORE_CHARS = 300
_OWN = word_class("first_person")
_EVIDENCE = 3.0
"""What the words of a message weigh together, however many they are."""


def chance_noted(text: str, before: str, propositions: Sequence[Proposition]) -> float:
    model = load_linear("messages")
    score = sum(
        share * model.add(features, set()) for share, features in of_message(text, before, propositions)
    )
    return probability(model.bias + score)


def of_message(
    text: str, before: str, propositions: Sequence[Proposition]
) -> Iterator[tuple[float, list[str]]]:
    """Features in groups, each with its share: many words count no more than few."""
    text = text[:_CHARS_MAX].replace("\u2019", "'")
    every = _WORDS.findall(text.lower())
    stated = [
        word
        for sentence in split_sentences(text)
        if not sentence.question
        for word in _WORDS.findall(text[sentence.start : sentence.end].lower())
    ]
    asked = asked_words(before)
    yield 1.0, [*_shape(text, every, stated, asked), *_claims(propositions)]
    yield _shared("any", every)
    yield _shared("is", stated)
    yield _shared("asked", asked)
    heard = {*_WORDS.findall(before[-_BEFORE_CHARS:].lower())}
    yield 1 / max(len(heard), 1) ** 0.5, [f"before {word}" for word in sorted(heard)]


def _shared(name: str, words: Sequence[str]) -> tuple[float, list[str]]:
    """Words and pairs of words, each once."""
    seen = {*words, *(f"{left} {right}" for left, right in pairwise(words))}
    return _EVIDENCE / max(len(seen), 1) ** 0.5, [f"{name} {part}" for part in sorted(seen)]


def _shape(text: str, every: Sequence[str], stated: Sequence[str], asked: Sequence[str]) -> Iterator[str]:
    own = min(sum(word in _OWN for word in stated), 5)
    words, told = _bin(len(every)), _bin(len(stated))
    yield f"words {words}"
    yield f"told {told}"
    yield f"own {own}"
    yield f"own {own} told {told}"
    yield f"asks {'?' in text} {bool(stated)}"
    yield f"answers {bool(asked)}"
    yield f"answers {bool(asked)} told {told}"


def _claims(propositions: Sequence[Proposition]) -> Iterator[str]:
    likely = [proposition.noted for proposition in propositions if proposition.noted is not None]
    missed = 1.0
    for chance in likely:
        missed *= 1 - chance
    yield f"best {int(10 * max(likely)) if likely else None}"
    yield f"missed {int(10 * missed)}"
    yield f"claims {min(len(propositions), 5)}"
    for name in sorted({proposition.predicate for proposition in propositions}):
        yield f"predicate {name}"


def _bin(count: int) -> int:
    return count if count < 10 else min(10 + (count - 10) // 5, 18)  # noqa: PLR2004
