"""Understanding a query: speakers, times and predicates it names, and what the conversation is about."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from memplane.clock import Instant, to_datetime
from memplane.extract.catalog import PredicateCatalog
from memplane.extract.relevance import Question
from memplane.recall.names import known_forms, replace_names
from memplane.recall.periods import Period, find_periods
from memplane.recall.result import Routing, WorkingMemory
from memplane.types import Memory, Turn

# Speakers and times in a query.


_OF_ASSISTANT = re.compile(
    r"\b(?:you|your|yours)\b"
    r"|\b(?:our|previous|last|earlier) (?:\w+ )?(?:chat|conversation|discussion|session)\b"
    r"|\bremind me\b|\bwe (?:discussed|talked|spoke|covered|went over)\b",
    re.IGNORECASE,
)
_AS_OF = re.compile(r"\bas (?:of|at)\b", re.IGNORECASE)
CHARS_READ_MAX = 2_000
"""A query names people and times at its beginning; the rest is usually pasted text."""


class QueryAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """What a query says about its answer."""

    text: str
    """The text to embed. Speaker names are removed, because with them every turn that greets the person is nearer
    than the turns that answer."""
    speakers: frozenset[str]
    """Speakers the query names; their names are not search words either."""
    of_assistant: bool
    periods: tuple[Period, ...] = ()
    """Times it asks about: `in October`, `last week`, `two days ago`."""

    @property
    def ranges(self) -> tuple[tuple[Instant, Instant], ...]:
        """The periods as pairs of begin and end."""
        return tuple((period.begin, period.until) for period in self.periods)


def read_nameless(question: str, nameless: tuple[str, frozenset[str]], reference: Instant) -> QueryAnalysis:
    """The same query parsed from text whose names were already removed, so it could be embedded early."""
    text, named = nameless
    beginning = question[:CHARS_READ_MAX]
    return QueryAnalysis(
        text=text,
        speakers=named,
        of_assistant=_OF_ASSISTANT.search(beginning) is not None,
        periods=find_periods(beginning, reference)[0],
    )


def as_of_named(question: str, reference: Instant) -> Instant | None:
    """The time as of which the query wants to know, if it says so: the end of March for `as of March`."""
    beginning = question[:CHARS_READ_MAX]
    return find_periods(beginning, reference)[1] if _AS_OF.search(beginning) else None


def replace_speakers(
    question: str, speakers: Sequence[str], aliases: Mapping[str, str | None] = MappingProxyType({})
) -> tuple[str, frozenset[str]]:
    """Replace every speaker named in the query by `I`, and return who they are. `aliases` are other names, folded, and the
    speakers they stand for."""
    return replace_names(question, known_forms(speakers, aliases), CHARS_READ_MAX)


# Routing: the predicates a query asks for, and the kind of answer.


PREDICATES_MAX = 2
"""The maximum number of predicates looked up."""
_WHEN = re.compile(r"\b(?:when|what (?:date|day|time|year|month)|how long ago|since when)\b", re.IGNORECASE)
_LIST = re.compile(
    r"\b(?:list|all(?: of)? (?:my|the|their)|every|which .{0,80}s\b|what (?:\w+ )?(?:things|kinds|sorts|types)|how many)\b",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"\b(?:used to|before|previously|formerly|over time|history of|how .{0,80} changed|earlier)\b",
    re.IGNORECASE,
)


def route(question: str, analysis: QueryAnalysis, catalog: PredicateCatalog, *, has_vectors: bool) -> Routing:
    question = question[:CHARS_READ_MAX]
    predicates = tuple(catalog.by_question(question)[:PREDICATES_MAX])
    when = _WHEN.search(question) is not None
    ranged = bool(analysis.periods)
    return Routing(
        mode=_mode(question, when=when),
        kinds=tuple(dict.fromkeys(catalog[name].kind.value for name in predicates)),
        predicates=predicates,
        speakers=tuple(sorted(analysis.speakers)),
        temporal_intent="when" if when else "range" if ranged else None,
        ranges=tuple((to_datetime(begin), to_datetime(until)) for begin, until in analysis.ranges),
        channels=(
            *(("predicate",) if predicates else ()),
            *(("vector",) if has_vectors else ()),
            "keyword",
            *(("temporal",) if ranged else ()),
            "hot",
            "recent",
        ),
    )


def _mode(question: str, *, when: bool) -> str:
    if when:
        return "temporal"
    if _HISTORY.search(question):
        return "history"
    return "list" if _LIST.search(question) else "single"


_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][\w'-]+(?: [A-Z][\w'-]+)*")
_ENTITIES_MAX = 8
_TOPICS_MAX = 6


def working_memory(recent: Sequence[Turn], returned: Sequence[Memory]) -> WorkingMemory:
    names = Counter(
        name for turn in recent for name in _NAME.findall(turn.text) if name.lower() not in {"i", "i'm"}
    )
    stems = Counter(word for turn in recent for word in Question(turn.text).words)
    return WorkingMemory(
        entities=tuple(name for name, _ in names.most_common(_ENTITIES_MAX)),
        subjects=tuple(dict.fromkeys(memory.subject for memory in returned if memory.subject is not None)),
        topics=tuple(word for word, count in stems.most_common(_TOPICS_MAX) if count > 1),
    )
