"""The facts around one subject, as they were at some time: a small part of a large graph, so that a person can look at it."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from memplane.clock import Instant
from memplane.safety.sanitize import sanitized_memory
from memplane.storage.filter import Filter
from memplane.storage.store import Reader
from memplane.storage.words import prefix_term, words_of
from memplane.types import Memory

FACTS_MAX = 24
"""Of the subject itself."""
NAMING_MAX = 6
"""Facts of others that name it."""
FURTHER_MAX = 2
"""Facts of each thing that it is related to."""
ALIKE_MAX = 8
"""Names to offer in place of one that nothing is known about."""

_NAMING_SCANNED = 60
_SIMILAR_SCANNED = 200
_RECENT = 500
_NAME_CHARS_MAX = 120
"""A longer object is a sentence, not a name."""


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """Facts by how they hang together with the subject. Each has a subject, a predicate and an object."""

    subject: str
    facts: tuple[Memory, ...]
    naming: tuple[Memory, ...] = ()
    further: tuple[Memory, ...] = ()
    """Of what the subject's facts name, where that is a subject too."""
    more: bool = False
    """Whether the subject has more facts than are returned."""
    alike: tuple[str, ...] = ()
    """Where it has none: subjects whose name holds all words of this one."""

    @property
    def all(self) -> tuple[Memory, ...]:
        return (*self.facts, *self.naming, *self.further)


def graph_of(reader: Reader, subject: str, *, as_of: Instant | None, now: Instant) -> Graph:
    """At most some dozens of facts, the newest first; as of a time, those that held then, whatever replaced them since."""
    where = Filter(now=now, as_of=as_of, audience=None)
    name = subject.strip().casefold()
    found = reader.overview.facts_about(name, where, limit=FACTS_MAX + 1)
    facts = found[:FACTS_MAX]
    return Graph(
        subject=name,
        facts=_sanitized(facts, now),
        naming=_sanitized(_naming(reader, name, where), now),
        further=_sanitized(_further(reader, name, facts, where), now),
        more=len(found) > FACTS_MAX,
        alike=() if found else _alike(reader, name, where),
    )


def subject_of(reader: Reader) -> str | None:
    """The subject to begin with: the one that was spoken of most lately."""
    lately = Counter(reader.overview.recent_subjects(limit=_RECENT))
    if lately:
        return lately.most_common(1)[0][0]
    return next(iter(reader.overview.subjects(first="", limit=1)), None)


def name_of(memory: Memory) -> str:
    """What a fact's object would be called as a subject."""
    return (memory.object_text or "").strip().casefold()


def _naming(reader: Reader, name: str, where: Filter) -> list[Memory]:
    """By words, since there is no index of objects; among those said last that hold them."""
    found = reader.memories.match(words_of(name), where, limit=_NAMING_SCANNED, newest=True)
    named = [
        memory
        for memory in found
        if memory.predicate and memory.subject not in (None, name) and name_of(memory) == name
    ]
    return named[:NAMING_MAX]


def _alike(reader: Reader, name: str, where: Filter) -> tuple[str, ...]:
    """Of the facts said last that hold these words, or one that begins with the last of them."""
    *words, last = words_of(name) or [""]
    if not last:
        return ()
    found = reader.memories.match(
        [*words, last, prefix_term(last)], where, limit=_SIMILAR_SCANNED, newest=True
    )
    subjects = dict.fromkeys(memory.subject for memory in found if memory.subject and memory.predicate)
    return tuple(subject for subject in subjects if _is_part(words, last, words_of(subject)))[:ALIKE_MAX]


def _is_part(words: Sequence[str], last: str, name: Sequence[str]) -> bool:
    return set(words) <= set(name) and any(word.startswith(last) for word in name)


def _further(reader: Reader, name: str, facts: Iterable[Memory], where: Filter) -> list[Memory]:
    names = dict.fromkeys(name_of(fact) for fact in facts)
    return [
        memory
        for other in names
        if other and other != name and len(other) <= _NAME_CHARS_MAX
        for memory in reader.overview.facts_about(other, where, limit=FURTHER_MAX)
    ]


def _sanitized(memories: Iterable[Memory], now: Instant) -> tuple[Memory, ...]:
    return tuple(sanitized_memory(memory, now) for memory in memories)
