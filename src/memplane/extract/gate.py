"""What is worth keeping. Greetings, thanks, small talk and passing remarks stay in the ledger only."""

import re
from collections.abc import Sequence

from memplane.extract.catalog import PredicateCatalog
from memplane.extract.english import base_form, word_class
from memplane.extract.messages import chance_noted
from memplane.extract.proposition import USER, Proposition, Tense

UTILITY_MIN = 0.35
"""What scores less is not stored."""
NOTED_MIN = 0.18
MESSAGE_MIN = 0.4
"""From these probabilities on. Chosen on dialogues that were held out from learning."""

_IMPORTANT = 0.7

_REQUEST = re.compile(
    r"I (?:would (?:like|love)|want|need|am (?:looking|trying|hoping)|was (?:hoping|wondering|thinking)) "
    r"(?:to )?(?:know|ask|hear|see if|understand|find out|figure out|if you)\b|I (?:was|am) wondering\b",
    re.IGNORECASE,
)
"""What one asks an agent for says little about oneself; people who talk to people hardly ever say it."""
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
    """From 0 to 1: how much an agent gains from knowing it. What people are seen to write down counts; what the catalog
    calls important is kept even where they did not."""
    predicate = catalog[proposition.predicate]
    told = _told(proposition, predicate.importance)
    if proposition.noted is None:
        return told
    learned = round(_scaled(proposition.noted, NOTED_MIN), 3)
    if _REQUEST.match(proposition.note):
        learned *= _REQUEST_SHARE
    return max(told, learned) if predicate.importance >= _IMPORTANT else learned


def _told(proposition: Proposition, importance: float) -> float:
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


def worth_keeping(proposition: Proposition, catalog: PredicateCatalog) -> bool:
    return utility(proposition, catalog) >= UTILITY_MIN


def utility_of_message(
    text: str, propositions: Sequence[Proposition], catalog: PredicateCatalog, *, before: str = ""
) -> float:
    """How much is to be learned from a message: what scores `UTILITY_MIN` passes, for whoever reads better than rules.
    `before` is the message it answers, which tells whether a bare `yes` says something."""
    told = max(
        (utility(proposition, catalog) for proposition in propositions if proposition.noted is None),
        default=0.0,
    )
    return max(told, _scaled(chance_noted(text, before, propositions), MESSAGE_MIN))


def _scaled(chance: float, least: float) -> float:
    """A probability as a utility: `least` of the one is `UTILITY_MIN` of the other."""
    if chance < least:
        return UTILITY_MIN * chance / least
    return UTILITY_MIN + (1 - UTILITY_MIN) * (chance - least) / (1 - least)
