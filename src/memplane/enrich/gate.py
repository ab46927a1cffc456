"""What is worth keeping. Greetings, thanks, small talk and passing remarks stay in the ledger only."""

import re
from collections.abc import Sequence

from memplane.enrich.catalog import Catalog
from memplane.enrich.english import base_form
from memplane.enrich.proposition import USER, Proposition, Tense
from memplane.enrich.sentences import split_sentences
from memplane.enrich.wordlists import word_class

UTILITY_MIN = 0.35
"""What scores less is not stored."""

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


def utility(proposition: Proposition, catalog: Catalog) -> float:
    """From 0 to 1: how much an agent gains from knowing it."""
    predicate = catalog[proposition.predicate]
    score = predicate.importance * 0.5 + proposition.confidence * 0.4
    if proposition.subject == USER and proposition.predicate in {
        "is",
        "does",
        "believes",
        "likes",
        "owns",
        "plans",
        "wants",
        "experienced",
    }:
        score -= _emptiness(proposition)
    if proposition.tense is Tense.FUTURE:
        score -= 0.05
    return round(max(0.0, min(1.0, score)), 3)


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


def worth_keeping(proposition: Proposition, catalog: Catalog) -> bool:
    return utility(proposition, catalog) >= UTILITY_MIN


def utility_of_message(text: str, propositions: Sequence[Proposition], catalog: Catalog) -> float:
    """That of the best thing it says. What the rules could not read may still tell something: a bare answer, a number,
    a word about someone who was named before. Such a message just passes, for whoever reads better than rules."""
    best = max((utility(proposition, catalog) for proposition in propositions), default=0.0)
    if best < UTILITY_MIN and _tells_something(text):
        return UTILITY_MIN
    return best


def _tells_something(text: str) -> bool:
    return any(
        hint.search(text, sentence.start, sentence.end)
        for sentence in split_sentences(text)
        if not sentence.question
        for hint in _HINTS
    )


_HINTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:my|mine|our)\b",
        r"\b(?:they|he|she)(?:['\u2019](?:s|re)| are| is| was| were)\b",
        r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|\d+)\b",
        r"\bi (?:do|did|am|have|can|was|would|will)(?: not)?(?: too)?(?=[.!,]|$)",
        r"\b(?:too|same) here\b",
        r"\bme\b.{25}|.{25}\bme\b",
    )
)
