"""Facts about third parties: `The author of X is Y`, `Paris is the capital of France`, `Z was founded by W`."""

import re

from memplane.enrich.english import FILLERS, PRONOUNS, base_form, is_finite
from memplane.enrich.proposition import USER, Proposition, Tense
from memplane.enrich.sentences import Sentence
from memplane.enrich.wordlists import word_class
from memplane.types import Role

_OF = re.compile(
    r"[Tt]he (?P<topic>[a-z][\w' -]*?) of (?P<subject>.+?) (?:is|was|are|were) (?:now |currently )?(?P<object>.+)"
)
_THE = re.compile(
    r"[Tt]he (?P<topic>[\w' -]*? (?:where|that|which|who|in which) .+?) (?:is|was) (?P<object>.+)"
)
_IS_THE = re.compile(r"(?P<object>.+?) (?:is|was) the (?P<topic>[a-z][a-z -]*?) of (?P<subject>.+)")
_RELATED = re.compile(
    r"(?P<subject>.+?) (?P<verb>[a-z]+(?: been| also| now)?)"
    r"(?P<relation>(?: [a-z]+){0,5}? (?:of|by|to|for|from|in|at|with|as|on|near|under|into|about)"
    r"(?: the [a-z]+(?: [a-z]+)? of)?) (?P<object>[^ ].*)"
)
_BARE = re.compile(
    r"(?P<subject>[A-Z].*?) (?P<verb>is|was|are|were|has|plays|speaks|owns|likes|loves|wrote|founded|invented|discovered) (?P<object>.+)"
)
_NAME = re.compile(r"\b[A-Z][a-z]+")
_PERSONAL = re.compile(r"\b(?:I|i|my|me|we|our|us|you|your|if|If|My|We|You|Your|it|It)\b")
_CONFIDENCE = 0.7
_SUBJECT_WORDS_MAX = 14


def read_world(text: str, sentence: Sentence, role: str) -> Proposition | None:
    """A statement about someone or something named; talk about `it` and `that` is not one."""
    said = text[sentence.start : sentence.end].rstrip(" .!")
    numbered = sentence.ordinal is not None and role == Role.USER
    if not numbered and _PERSONAL.search(said):
        return None
    for pattern, predicate in _SHAPES:
        found = pattern.fullmatch(said)
        if found is None or not _is_named(
            found["subject"] if "subject" in found.groupdict() else "The", numbered=numbered
        ):
            continue
        if predicate == "relation" and not is_finite(found["verb"].split()[0]):
            continue
        if not numbered and not _NAME.search(found["object"]):
            continue
        return _propose(found, predicate, sentence, role)
    return None


_SHAPES = (
    (_OF, "property"),
    (_THE, "property"),
    (_IS_THE, "property"),
    (_RELATED, "relation"),
    (_BARE, "relation"),
)


def _is_named(subject: str, *, numbered: bool) -> bool:
    words = subject.split()
    if (
        not words
        or len(words) > _SUBJECT_WORDS_MAX
        or words[0].lower() in PRONOUNS
        or words[0].lower() in _SPEAKERS
    ):
        return False
    first = words[0].lower()
    if not numbered and (first in FILLERS or base_form(first) == first):
        return False
    return numbered or any(word[:1].isupper() for word in words[1:]) or words[0] not in _COMMON


_SPEAKERS = word_class("speakers")
_COMMON = word_class("common")


def _propose(found: re.Match[str], predicate: str, sentence: Sentence, role: str) -> Proposition:
    groups = found.groupdict()
    topic, relation = groups.get("topic") or "", "is"
    if predicate == "relation":
        relation = f"{found['verb']}{groups.get('relation') or ''}"
        topic = relation
    return Proposition(
        subject=groups.get("subject") or topic,
        predicate=predicate,
        object_text=found["object"].strip(),
        relation_phrase=relation,
        start=sentence.start,
        end=sentence.end,
        confidence=_CONFIDENCE if role == USER else _CONFIDENCE / 2,
        topic=topic,
        tense=Tense.PAST if re.search(r"\b(?:was|were)\b", relation) else Tense.PRESENT,
        ordinal=sentence.ordinal,
        role=role,
    )
