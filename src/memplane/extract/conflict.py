"""Decide what a new statement means for existing memories. A pure function; `apply` writes the result."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from memplane.extract.attributes import value_type
from memplane.extract.catalog import PredicateCatalog
from memplane.extract.english import content_stems, content_words
from memplane.extract.proposition import USER, Polarity, Proposition

LATER = timedelta(days=1)
"""A different value on another day is an update; within a day it is a contradiction."""


class ConflictOutcome(StrEnum):
    """The outcome for a new statement."""

    ADD = "add"
    DUPLICATE = "duplicate"
    """Already known: the existing memory gets further evidence."""
    SUPERSEDE = "supersede"
    CONTEST = "contest"
    RETIRE = "retire"
    """A value ended without a successor: supersede the old one, with nothing new active."""
    IGNORE = "ignore"
    """An assistant or a tool contradicts the user."""


class KnownMemory(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An active or contested memory, with the proposition it was derived from."""

    id: str
    proposition: Proposition
    text: str = ""
    """Its source text, to compare what two statements are about."""
    at: datetime | None = None
    contested: bool = False


class ConflictDecision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The outcome for the new statement, and the memories it affects."""

    outcome: ConflictOutcome
    targets: tuple[str, ...] = ()
    reason: str = ""


def decide_conflict(
    new: Proposition,
    existing: Sequence[KnownMemory],
    *,
    catalog: PredicateCatalog,
    text: str = "",
    at: datetime | None = None,
) -> ConflictDecision:
    """Decide about `new`, said at `at` in the words `text`, against active and contested memories."""
    rivals = [known for known in existing if known.proposition.subject.lower() == new.subject.lower()]
    same, others = _split_rivals(new, rivals, catalog)
    if same and not any(known.contested for known in same):
        return ConflictDecision(
            outcome=ConflictOutcome.DUPLICATE, targets=(same[0].id,), reason="said before"
        )
    beaten = [known for known in others if _contradicts(new, known, catalog, text)]
    if not beaten:
        return ConflictDecision(outcome=ConflictOutcome.ADD, reason="nothing against it")
    targets = tuple(known.id for known in beaten)
    if not new.trusted and any(known.proposition.trusted for known in beaten):
        return ConflictDecision(
            outcome=ConflictOutcome.IGNORE, targets=targets, reason="only a user overrules a user"
        )
    if new.polarity is Polarity.NEGATIVE and catalog[new.predicate].one:
        return ConflictDecision(outcome=ConflictOutcome.RETIRE, targets=targets, reason="it ended")
    if same or _is_later_statement(new, beaten, at):
        resolved = tuple(known.id for known in same)
        return ConflictDecision(
            outcome=ConflictOutcome.SUPERSEDE, targets=targets + resolved, reason="the later word"
        )
    return ConflictDecision(
        outcome=ConflictOutcome.CONTEST, targets=targets, reason="two values, equally trusted"
    )


def replay_decision(
    outcome: ConflictOutcome,
    new: Proposition,
    existing: Sequence[KnownMemory],
    *,
    catalog: PredicateCatalog,
    text: str = "",
) -> ConflictDecision:
    """As decided before, against a memory that is forgotten by now; the other rivals are compared again."""
    rivals = [known for known in existing if known.proposition.subject.lower() == new.subject.lower()]
    same, others = _split_rivals(new, rivals, catalog)
    beaten = [known.id for known in others if _contradicts(new, known, catalog, text)]
    targets = {
        ConflictOutcome.SUPERSEDE: (*beaten, *(known.id for known in same)),
        ConflictOutcome.RETIRE: tuple(beaten),
        ConflictOutcome.CONTEST: tuple(beaten),
    }
    return ConflictDecision(outcome=outcome, targets=targets.get(outcome, ()), reason="decided before")


def _split_rivals(
    new: Proposition, rivals: Sequence[KnownMemory], catalog: PredicateCatalog
) -> tuple[list[KnownMemory], list[KnownMemory]]:
    """Those that say the same, and those that differ. A flagged memory is no evidence for an unflagged one: otherwise
    a statement first made next to an injection would be kept from recall for good."""
    equal = [known for known in rivals if _is_same(new, known.proposition, catalog)]
    same = [known for known in equal if new.flagged or not known.proposition.flagged]
    return same, [known for known in rivals if known not in equal]


def _is_same(new: Proposition, old: Proposition, catalog: PredicateCatalog) -> bool:
    """The same value; for a one-valued predicate also a longer or shorter name (`Lisbon`, `Lisbon, Portugal`)."""
    if (
        new.polarity is not old.polarity
        or new.predicate != old.predicate
        or new.topic.lower() != old.topic.lower()
    ):
        return False
    left, right = _value(new), _value(old)
    if left == right:
        return True
    return catalog[new.predicate].one and (_begins(left, right) or _begins(right, left))


def _begins(long: tuple[str, ...], short: tuple[str, ...]) -> bool:
    return bool(short) and long[: len(short)] == short


def _value(proposition: Proposition) -> tuple[str, ...]:
    said = proposition.object_text or proposition.relation_phrase
    words = (word.strip(" .,!").lower() for word in said.split())
    return tuple(word for word in words if word not in {"a", "an", "the", ""})


def _is_later_statement(new: Proposition, beaten: Sequence[KnownMemory], at: datetime | None) -> bool:
    if new.update or new.polarity is Polarity.NEGATIVE:
        return True
    if any(known.proposition.trusted < new.trusted for known in beaten):
        return True
    return all(_is_later_than(known, new, at) for known in beaten)


def _is_later_than(known: KnownMemory, new: Proposition, at: datetime | None) -> bool:
    if new.ordinal is not None and known.proposition.ordinal is not None:
        return new.ordinal > known.proposition.ordinal
    return at is not None and known.at is not None and at - known.at >= LATER


def _contradicts(new: Proposition, known: KnownMemory, catalog: PredicateCatalog, text: str) -> bool:
    """Whether both cannot be true."""
    old = known.proposition
    if new.replaces and _mentions(old, new.replaces):
        return True
    if new.polarity is not old.polarity:
        return _denies(new, old, catalog) or _denies(old, new, catalog)
    if new.polarity is Polarity.NEGATIVE or (new.adds and not new.replaces):
        return False
    if new.predicate == old.predicate and catalog[new.predicate].one:
        return new.topic.lower() == old.topic.lower()
    return (
        _fills_again(new, old, text)
        or _prefers_another(new, old)
        or _measures_again(new, old)
        or _leaves_out(new, old, catalog)
        or _is_replaced(new, old, text, known.text, catalog)
    )


_ATTRIBUTE = "is"


def _fills_again(new: Proposition, old: Proposition, text: str) -> bool:
    """Whether both are values of one slot: two prices, two names. `My boss is Ana` and `my boss is strict` are not, unless there
    is a new boss."""
    if not new.predicate == old.predicate == _ATTRIBUTE or new.subject == USER:
        return False
    sort = value_type(new.object_text)
    return (bool(sort) and sort == value_type(old.object_text)) or _REFILLED.search(text) is not None


_REFILLED = re.compile(r"\b(?:my|our|the) new \w", re.IGNORECASE)


def _prefers_another(new: Proposition, old: Proposition) -> bool:
    """Both are a choice among others: of editors, one is preferred."""
    chosen = {claim.relation_phrase.rsplit(" ", 1)[-1] for claim in (new, old)}
    return chosen <= _CHOOSING and bool(new.topic) and new.topic == old.topic


_CHOOSING = frozenset({"prefer", "favor", "favour", "drive"})


def _leaves_out(new: Proposition, old: Proposition, catalog: PredicateCatalog) -> bool:
    """Whether one is a diet that excludes the other."""
    if "follows_diet" not in {new.predicate, old.predicate}:
        return False
    return any(
        catalog.excluded_by(diet.object_text) & catalog.classes_of(food.object_text)
        for diet, food in ((new, old), (old, new))
    )


def _measures_again(new: Proposition, old: Proposition) -> bool:
    return bool(_measure(new)) and _measure(new) == _measure(old)


_NUMBER = re.compile(r"\d[\d.,:]*")


def _measure(proposition: Proposition) -> tuple[str, ...]:
    """What a number measures, in `I weigh 82 kg`: a thing has one weight. Empty without a number or unit."""
    if not _NUMBER.search(proposition.object_text):
        return ()
    verb = "is" if proposition.subject != USER else proposition.relation_phrase.rsplit(" ", 1)[-1]
    unit = sorted(content_stems(_NUMBER.sub(" ", proposition.object_text)) - _DIRECTIONS)
    return (verb, *unit) if unit and len(unit) < _UNIT_WORDS_MAX and verb != "have" else ()


_DIRECTIONS = frozenset({"up", "down", "to", "every", "day", "go"})
_UNIT_WORDS_MAX = 3


def _mentions(old: Proposition, value: str) -> bool:
    return bool(content_stems(value) & content_stems(f"{old.relation_phrase} {old.object_text}"))


def _denies(negative: Proposition, positive: Proposition, catalog: PredicateCatalog) -> bool:
    """`I no longer like tea` denies that I like tea, `I quit alcohol` that I enjoy beer; but `I don't like hot
    weather` says nothing about hot tea."""
    if negative.polarity is not Polarity.NEGATIVE:
        return False
    if " and " in positive.object_text and not _denies_all(negative, positive):
        return False
    if negative.topic and negative.topic == positive.topic and content_stems(negative.object_text) & _GENERIC:
        return True
    denied = content_words(negative.object_text)
    held = content_stems(f"{positive.relation_phrase} {positive.object_text}")
    shared = held.intersection(denied)
    if 2 * len(shared) > len(set(denied)) or (negative.update and denied[:1] and denied[0] in held):
        return True
    return bool(catalog.named_classes(negative.object_text) & catalog.classes_of(positive.object_text))


_GENERIC = frozenset({"car", "vehicle", "phone", "smartphone", "laptop", "computer", "pet"})
"""Whoever sells the car no longer has the Corolla."""


def _denies_all(negative: Proposition, positive: Proposition) -> bool:
    """Whether the end of one thing ends all of them: without the dog, there is still the cat."""
    denied = content_stems(negative.object_text)
    parts = positive.object_text.split(" and ")
    return bool(denied & _GENERIC) or all(denied & content_stems(part) for part in parts)


def _is_replaced(
    new: Proposition, old: Proposition, new_text: str, old_text: str, catalog: PredicateCatalog
) -> bool:
    """Whether an update replaces the old value. Someone who adopts a cat still has the dog; someone who switches to
    Firefox, or buys another phone, no longer uses the old one."""
    if not new.update:
        return False
    switched = _SWITCHED.search(f"{new.relation_phrase} {new_text}") is not None
    if new.topic and new.topic == old.topic:
        return switched or catalog.is_exclusive(new.topic) or _ONLY.search(old_text) is not None
    if not switched or new.predicate != old.predicate:
        return False
    return bool(
        content_stems(f"{new.object_text} {new_text}") & content_stems(f"{old.object_text} {old_text}")
    )


_SWITCHED = re.compile(
    r"\b(?:switch|trad(?:e|ed|ing)\b|migrat|upgrad|replac|chang|convert|transition|swap|instead|only|exclusively|entirely|these days"
    r"|nowadays|now\b|actually|moved|went back|anymore|no longer)",
    re.IGNORECASE,
)
_ONLY = re.compile(r"\b(?:only|exclusively|nothing but|solely)\b", re.IGNORECASE)
