"""Turn propositions into memories: map to the catalog, gate, resolve times, choose a tier."""

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from memplane.extract.catalog import Predicate, PredicateCatalog
from memplane.extract.gate import IMPORTANT, is_useful, utility
from memplane.extract.own_words import OwnWords
from memplane.extract.proposition import USER, Polarity, Proposition, Tense
from memplane.extract.rules import PROPOSITIONS_MAX
from memplane.extract.standalone import stands_alone
from memplane.extract.told_times import claimed_times
from memplane.extract.worth import IMPORTANT_MIN, ON_PURPOSE_MIN, WORTH_MIN, worth_of
from memplane.ledger.ids import derived_id
from memplane.safety.injection import flags_of
from memplane.safety.redact import redact
from memplane.types import Kind, Memory, Role, Tier, Turn

# Tiers: always recalled (hot), when relevant (warm), history only (cold).


HOT_IMPORTANCE = 0.8
WARM_IMPORTANCE = 0.2
_OFTEN = 10
"""This many recalls count as much as high initial importance."""
_LIFT = 0.2


def tier_of(*, importance: float, accesses: int = 0, hot: bool = False) -> Tier:
    """`hot` is the predicate's default; `current` is False for superseded or expired memories."""
    lifted = importance + _LIFT * min(max(accesses, 0), _OFTEN) / _OFTEN
    if lifted < WARM_IMPORTANCE:
        return Tier.COLD
    if lifted >= HOT_IMPORTANCE or (hot and lifted >= WARM_IMPORTANCE * 2):
        return Tier.HOT
    return Tier.WARM


# A proposition as the sentence a person would write down: `I have two dogs.`


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
        f"{_verb_phrase(proposition)} {_verb(proposition)} {proposition.object_text} {_when(proposition)}"
    )


def _verb_phrase(proposition: Proposition) -> str:
    subject = proposition.subject
    if subject == USER:
        return "" if _OWNED.match(proposition.relation_phrase) else "I"
    if subject.startswith(f"{USER}'s "):
        return f"My {subject[len(USER) + 3 :]}"
    return subject


_OWNED = re.compile(r"(?:my|our|the|this|that) ", re.IGNORECASE)
"""If the relation begins with a possession of the user: `my name is`."""


def _verb(proposition: Proposition) -> str:
    return _LONG.sub(lambda found: _SHORT[found.group()], proposition.relation_phrase)


def _when(proposition: Proposition) -> str:
    return "" if proposition.when in proposition.object_text else proposition.when


def _sentence(text: str) -> str:
    words = text.split()[:_WORDS_MAX]
    line = " ".join(words).rstrip(" ,.;:!?")
    return f"{line[:1].upper()}{line[1:]}."


_encode = msgspec.json.Encoder().encode
decode_claim = msgspec.json.Decoder(Proposition).decode

_UNTRUSTED_SHARE = 0.5
"""The weight of what an assistant or a tool says about a user, relative to the user."""
_SPEAKER_CHARS_MAX = 80
_INSTRUCTS = "instructs"
_MEMORIES_PER_TURN_MAX = 50
_VALUES_MAX = 4
"""For one-valued predicates, such as a home."""
_INSTRUCTIONS_MAX = 2
"""A turn with more is a list of rules for somebody else."""


def memories_of(
    turn: Turn, propositions: Sequence[Proposition], *, extractor: str, catalog: PredicateCatalog
) -> list[Memory]:
    """The memories worth keeping of one turn, in order. A memory's id uses its number among all propositions of the
    turn, so a stricter gate changes no ids."""
    kept = [
        (number, proposition)
        for number, proposition in enumerate(propositions[:PROPOSITIONS_MAX])
        if is_useful(proposition, catalog) and not _is_unreal(turn.text, proposition)
    ]
    if turn.speaker is not None:  # people who talk to each other instruct no agent
        kept = [(number, claim) for number, claim in kept if claim.predicate != _INSTRUCTS]
    kept = _without_pasted_instructions(turn.text, kept)
    return [
        _memory(turn, proposition, number, extractor, catalog)
        for number, proposition in _without_floods(kept, catalog)[:_MEMORIES_PER_TURN_MAX]
    ]


def _without_pasted_instructions(
    text: str, kept: list[tuple[int, Proposition]]
) -> list[tuple[int, Proposition]]:
    """Without instructions that the user only passes on; of their own, the first few."""
    instructions = [(number, claim) for number, claim in kept if claim.predicate == _INSTRUCTS]
    if not instructions:
        return kept
    own = OwnWords(text)
    few = [number for number, claim in instructions if own.contain(claim.start, claim.end)][
        :_INSTRUCTIONS_MAX
    ]
    return [(number, claim) for number, claim in kept if claim.predicate != _INSTRUCTS or number in few]


def importance_of(claim: Proposition, catalog: PredicateCatalog) -> float:
    importance = (catalog[claim.predicate].importance + utility(claim, catalog)) / 2
    return importance if claim.trusted else importance * _UNTRUSTED_SHARE


UNNOTED_IMPORTANCE = 0.1
"""Of claims that nobody would note: they stay in the cold tier, unless they replace something."""


def _worth(claim: Proposition, turn: Turn) -> float | None:
    """How probably somebody would keep it; None for what nobody judged: only what people say of themselves was."""
    if claim.predicate == _REMARKS:
        return 0.0
    if not claim.trusted or claim.predicate in _UNJUDGED:
        return None
    note = render(claim)
    if claim.noted is None:
        return None if stands_alone(note) else 0.0
    return worth_of(claim, note, turn.text)


def _worth_min(claim: Proposition, turn: Turn, catalog: PredicateCatalog) -> float:
    if turn.speaker is None and turn.text.strip(_EDGE) == turn.text[claim.start : claim.end].strip(_EDGE):
        return ON_PURPOSE_MIN
    return IMPORTANT_MIN if catalog[claim.predicate].importance >= IMPORTANT else WORTH_MIN


_EDGE = " .!\n"
_REMARKS = "mentions"
"""A sentence around `me` or `my` that no rule reads; nearly all are opinions of the moment."""
_UNJUDGED = frozenset({_INSTRUCTS, "corrects", "property", "relation"})


def _without_floods(
    kept: list[tuple[int, Proposition]], catalog: PredicateCatalog
) -> list[tuple[int, Proposition]]:
    """A turn that names two hundred homes settles nothing: only the last few are used. This depends on the turn
    alone, so forgetting others changes nothing."""
    said: Counter[tuple[str, str, str]] = Counter()
    few = []
    for number, claim in reversed(kept):
        value = (claim.subject.lower(), claim.predicate, claim.topic.lower())
        said[value] += 1
        if said[value] <= _VALUES_MAX or not catalog[claim.predicate].one:
            few.append((number, claim))
    return few[::-1]


def _memory(turn: Turn, claim: Proposition, number: int, extractor: str, catalog: PredicateCatalog) -> Memory:
    """Everything from a flagged turn is flagged, and it overrules no one: an injected instruction may come with an
    injected fact."""
    subject = subject_of(claim, turn.speaker)
    if turn.flags:
        claim = msgspec.structs.replace(claim, flagged=True)
    predicate = catalog[claim.predicate]
    importance = importance_of(claim, catalog)
    worth = _worth(claim, turn)
    if worth is not None and worth < _worth_min(claim, turn, catalog):
        importance = min(importance, UNNOTED_IMPORTANCE)
    said = redact(_speaker_label(turn, render(claim))).text
    quote = turn.text[claim.start : claim.end]
    return Memory(
        id=derived_id(turn.entry_id, extractor, turn.ordinal, number),
        kind=_kind(claim, predicate),
        text=said,
        entry_id=turn.entry_id,
        seq=turn.seq,
        start=claim.start,
        end=claim.end,
        tier=tier_of(importance=importance, hot=should_be_hot(claim, catalog)),
        created_at=turn.at,
        updated_at=turn.at,
        conversation=turn.conversation,
        project=turn.project,
        ordinal=turn.ordinal,
        quote=quote,
        extractor=extractor,
        role=turn.role,
        subject=subject,
        predicate=claim.predicate,
        object_text=redact(claim.object_text).text,
        claim=_encode(claim).decode(),
        importance=round(importance, 3),
        confidence=round(claim.confidence if worth is None else worth, 3),
        times=claimed_times(turn.text, claim.start, claim.end, turn.at, claim.tense),
        within=turn.within,
        flags=turn.flags or flags_of(said),
    )


def _kind(claim: Proposition, predicate: Predicate) -> Kind:
    """A preference lasts: `I hike on Sundays`. What was done once is a fact, and so is what somebody used to like."""
    happened = claim.tense is Tense.PAST and claim.predicate in _HABITS
    return Kind.FACT if predicate.kind is Kind.PREFERENCE and happened else predicate.kind


_HABITS = frozenset({"does_sport", "has_hobby", "consumes", "reads", "likes", "uses", "uses_technology"})


def _is_unreal(text: str, claim: Proposition) -> bool:
    """Wished, doubted, nearly true, or quoted: mentioned, but not claimed."""
    line = text.rfind("\n", 0, claim.start) + 1
    if text.startswith(">", line):
        return True
    begins = max(line, claim.start - _UNREAL_CHARS)
    return _UNREAL.search(text, begins, claim.end) is not None


_UNREAL_CHARS = 40
_UNREAL = re.compile(
    r"\b(?:I|we)(?: really| just)? (?:wish|hope|almost|nearly|might|may|imagine|pretend|dreamed|dreamt)\b"
    r"|\b(?:almost|nearly) (?:\w{2,12}ed|lost|sold|quit|bought|got|broke|left)\b"
    r"|\bI (?:thought|never said|did ?n[o'\u2019]t say|doubt|am not sure|was not sure)\b|\bI[\u2019']m not sure\b"
    r"|\b(?:if only|just kidding|what if|maybe|perhaps|let[\u2019']s say|in (?:the|my) (?:novel|story|book|game|dream))\b",
    re.IGNORECASE,
)


def _speaker_label(turn: Turn, said: str) -> str:
    """A named speaker is named in the text, and what an assistant or tool says never reads like the user's own words."""
    if turn.role != Role.USER:
        return f"According to the {turn.role}: {said}"
    return said if turn.speaker is None else f"{turn.speaker[:_SPEAKER_CHARS_MAX]}: {said}"


def should_be_hot(claim: Proposition, catalog: PredicateCatalog) -> bool:
    """Whether an agent should always know it: statements of users about themselves, if the catalog says so."""
    of_self = claim.subject == USER and claim.trusted and claim.polarity is Polarity.POSITIVE
    return of_self and catalog[claim.predicate].hot


def subject_of(claim: Proposition, speaker: str | None) -> str:
    """The subject. A named speaker is not the generic user: two people in one conversation never contradict each
    other by saying `I`. What a named assistant says about the user is not about the assistant."""
    subject = claim.subject.lower()
    if speaker is not None and claim.trusted and (subject == USER or subject.startswith(f"{USER}'s ")):
        return f"{speaker.lower()}{subject[len(USER) :]}"
    return subject
