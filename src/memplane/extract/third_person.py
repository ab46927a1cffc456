"""Facts about third parties: `The author of X is Y`, `Paris is the capital of France`, `Z was founded by W`."""

import re

from memplane.extract.english import FILLERS, PRONOUNS, base_form, is_finite, word_class
from memplane.extract.proposition import USER, Proposition, Tense
from memplane.extract.sentences import Sentence
from memplane.extract.time import find_times
from memplane.types import Role

# Schedules: `The meeting moved to Thursday`, `the deadline is May 15`.


_DUE = re.compile(
    r"(?:(?:ok(?:ay)?|so|and|actually|update|fyi|btw|heads up)[ ,:]+)*"
    r"(?P<what>(?:the|our|my|this|that) (?:[\w'-]+ ){0,3}?"
    r"(?:deadline|due date|meeting|launch|release|exam|demo|flight|appointment|interview|presentation|wedding|call"
    r"|standup|kick-?off|review|delivery|party|conference|trip)) "
    r"(?P<verb>(?:is|was|has been|will be|got|moved|changed|slipped)(?: now| been| being)?"
    r"(?: (?:moved|pushed|postponed|rescheduled|delayed|changed|shifted|brought forward|scheduled|set|due))?(?: back)?"
    r"(?: (?:to|on|at|for|by|until|in))?) "
    r"(?P<value>.+)",
    re.IGNORECASE,
)
_DATED = re.compile(
    r"(?:(?:next|this|on|late|early|mid|end of|the end of) )?(?:monday|tuesday|wednesday|thursday|friday"
    r"|saturday|sunday|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|tomorrow|today|tonight|week|month|quarter|q[1-4]|\d)\b",
    re.IGNORECASE,
)
"""Times a deadline may begin with, also those that `find_times` needs more words for."""
_MOVED = re.compile(
    r"moved|pushed|postponed|rescheduled|delayed|changed|shifted|forward|slipped|now", re.IGNORECASE
)
_ARTICLE = re.compile(r"(?:the|our|my|this|that) ", re.IGNORECASE)
_SCHEDULE_CONFIDENCE = 0.8
_VALUE_CHARS_MAX = 60


def read_schedule(text: str, sentence: Sentence, role: str) -> Proposition | None:
    found = _DUE.fullmatch(text[sentence.start : sentence.end].rstrip(" .!"))
    if found is None or sentence.question or not _is_time(found["value"]):
        return None
    what = " ".join(found["what"].split())
    return Proposition(
        subject=USER,
        predicate="has_deadline",
        object_text=found["value"].strip(),
        relation_phrase=f"{what} {found['verb'].lower()}",
        start=sentence.start,
        end=sentence.end,
        confidence=_SCHEDULE_CONFIDENCE if role == USER else _SCHEDULE_CONFIDENCE / 2,
        update=_MOVED.search(found["verb"]) is not None,
        topic=_ARTICLE.sub("", what.lower(), count=1),
        when=found["value"].strip(),
        ordinal=sentence.ordinal,
        role=role,
    )


def _is_time(value: str) -> bool:
    """Whether the meeting is `15 April 2027`, and not `15 people`, nor `Friday and Tom owns the agenda`."""
    _, conjunction, rest = value.partition(" and ")
    if conjunction and any(map(is_finite, rest.lower().split())):
        return False
    if _DATED.match(value):
        return True
    first = next(iter(find_times(value[:_VALUE_CHARS_MAX], 0)), None)
    return first is not None and first.kind != "duration" and first.start <= len("on the ")


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
    """A statement about someone or something named; remarks about `it` and `that` are excluded."""
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
