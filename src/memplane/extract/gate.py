"""The gate: what is worth keeping. Greetings, thanks, small talk and passing remarks stay in the ledger only."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from memplane.extract.catalog import PredicateCatalog
from memplane.extract.english import base_form, word_class
from memplane.extract.proposition import USER, Proposition, Tense
from memplane.extract.sentences import split_sentences
from memplane.extract.wording import question_words
from memplane.models.linear import load_linear, probability

# How likely a person would write something down from a message, whether or not the rules can read it. Learned like
# the wording model (docs/internals/extraction.md); these are its features.


_WORDS = re.compile(r"\w+(?:'\w+)?|[?!.,]")
_CHARS_MAX = 2000
"""A longer message is a paste; its beginning is enough."""
_BEFORE_CHARS = 300
_OWN = word_class("first_person")
_EVIDENCE = 3.0
"""The weight of all words of a message together, however many they are."""


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
    asked = question_words(before)
    yield 1.0, [*_shape(text, every, stated, asked), *_claims(propositions)]
    yield _shared("any", every)
    yield _shared("is", stated)
    yield _shared("asked", asked)
    heard = {*_WORDS.findall(before[-_BEFORE_CHARS:].lower())}
    yield 1 / max(len(heard), 1) ** 0.5, [f"before {word}" for word in sorted(heard)]


def _shared(name: str, words: Sequence[str]) -> tuple[float, list[str]]:
    """Words and word pairs, each once."""
    seen = {*words, *(f"{left} {right}" for left, right in pairwise(words))}
    return _EVIDENCE / max(len(seen), 1) ** 0.5, [f"{name} {part}" for part in sorted(seen)]


def _shape(text: str, every: Sequence[str], stated: Sequence[str], asked: Sequence[str]) -> Iterator[str]:
    own = min(sum(word in _OWN for word in stated), 5)
    words, prior = _bin(len(every)), _bin(len(stated))
    yield f"words {words}"
    yield f"told {prior}"
    yield f"own {own}"
    yield f"own {own} told {prior}"
    yield f"asks {'?' in text} {bool(stated)}"
    yield f"answers {bool(asked)}"
    yield f"answers {bool(asked)} told {prior}"


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


UTILITY_MIN = 0.35
"""The minimum score for storage."""
NOTED_MIN = 0.18
MESSAGE_MIN = 0.4
"""The minimum probabilities, chosen on dialogues held out from learning."""

IMPORTANT = 0.7

_REQUEST = re.compile(
    r"I (?:would (?:like|love)|want|need|am (?:looking|trying|hoping)|was (?:hoping|wondering|thinking)) "
    r"(?:to )?(?:know|ask|hear|see if|understand|find out|figure out|if you)\b|I (?:was|am) wondering\b",
    re.IGNORECASE,
)
"""Requests to an agent say little about the user."""
_REQUEST_SHARE = 0.4

_SMALL_TALK = re.compile(
    r"""(?:i\ (?:am|was|feel)\ )?(?:\w+\ )?(?:sure|glad|sorry|happy\ for\ you|happy\ to\ hear|jealous|impressed|kidding
    |joking|just\ saying|doing\ (?:well|good|fine|great|ok|okay|alright)|good|fine|ok|okay|well|great|here|curious|with\ you
    |talking\ to|chatting|wondering|excited\ for\ you|guessing)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_EMPTY_OBJECT = re.compile(
    r"(?:it|that|this|so|them|him|her|you|there|what|one|you too|to you|about (?:it|that)|of (?:it|that)|not|same"
    r"|that too|the same|it too|with (?:it|that|you))?",
    re.IGNORECASE,
)
_ABOUT_YOU = re.compile(r"\b(?:you|your|yours|u)\b", re.IGNORECASE)
_PASSING = word_class("passing")
_WEAK = word_class("weak")


def utility(proposition: Proposition, catalog: PredicateCatalog) -> float:
    """From 0 to 1: how much an agent gains from knowing it. What people are likely to write down counts; what the
    catalog calls important is kept in any case."""
    predicate = catalog[proposition.predicate]
    prior = _prior(proposition, predicate.importance)
    if proposition.noted is None:
        return prior
    learned = round(_scaled(proposition.noted, NOTED_MIN), 3)
    if _REQUEST.match(proposition.note):
        learned *= _REQUEST_SHARE
    return max(prior, learned) if predicate.importance >= IMPORTANT else learned


def _prior(proposition: Proposition, importance: float) -> float:
    """By predicate and grammar alone."""
    score = importance * 0.5 + proposition.confidence * 0.4
    if proposition.subject == USER and proposition.predicate in _PLAIN:
        score -= _emptiness(proposition)
    if proposition.tense is Tense.FUTURE:
        score -= 0.05
    return round(max(0.0, min(1.0, score)), 3)


_PLAIN = frozenset({"is", "does", "believes", "likes", "owns", "plans", "wants", "experienced"})


def _emptiness(proposition: Proposition) -> float:
    """How little a sentence with such a verb and object says."""
    word = proposition.relation_phrase.rsplit(" ", 1)[-1]
    verb = base_form(word) or word
    value = proposition.object_text
    loss = 0.0
    if verb in _PASSING:
        loss += 0.3
    elif verb in _WEAK:
        loss += 0.15
    if verb in {"be", "do", "feel"} and _SMALL_TALK.match(value):
        loss += 0.3
    if _EMPTY_OBJECT.fullmatch(value):
        loss += 0.2
    if _ABOUT_YOU.search(value):
        loss += 0.2
    return loss


def is_useful(proposition: Proposition, catalog: PredicateCatalog) -> bool:
    """Whether people write such things down. Which of them are kept, `worth` decides."""
    return utility(proposition, catalog) >= UTILITY_MIN


def utility_of_message(
    text: str, propositions: Sequence[Proposition], catalog: PredicateCatalog, *, before: str = ""
) -> float:
    """How much can be learned from a whole message; the evaluation measures it. `before` is the message it answers,
    which decides whether a bare `yes` means something."""
    prior = max(
        (utility(proposition, catalog) for proposition in propositions if proposition.noted is None),
        default=0.0,
    )
    return max(prior, _scaled(chance_noted(text, before, propositions), MESSAGE_MIN))


def _scaled(chance: float, least: float) -> float:
    """A probability as a utility: `least` maps to `UTILITY_MIN`."""
    if chance < least:
        return UTILITY_MIN * chance / least
    return UTILITY_MIN + (1 - UTILITY_MIN) * (chance - least) / (1 - least)
