"""A space at a glance: how much it holds, how busy it was, how it is, and what needs a person. Cheap at any size."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from enum import StrEnum

import msgspec

from memplane.clock import DAY, Instant
from memplane.compaction.review import learnings_of
from memplane.memory import projection
from memplane.storage.compaction import LearningStatus
from memplane.storage.store import Reader
from memplane.worker.pipeline import POISONED

DAYS = 30
"""How far back activity is told, today among them."""
BEHIND_ENTRIES = 500
"""So many entries that wait are more than a worker is usually behind."""

_CACHED_SPACES_MAX = 4_096


class ReviewNeed(StrEnum):
    """What a person has to look at."""

    CONFLICTS = "conflicts"
    DRAFTS = "drafts"
    QUARANTINE = "quarantine"
    DOCUMENTS = "documents"
    """Those that could not be told in short."""
    DEAD_LETTERS = "dead_letters"
    """Entries that no memory could be read from."""


class EnrichmentHealth(StrEnum):
    """How enrichment gets on, from good to bad."""

    WELL = "well"
    DEGRADED = "degraded"
    """Something waits, so that an answer may not be whole."""
    BEHIND = "behind"
    """A lot waits."""
    FAILING = "failing"
    """The background tried, and could not."""


class Counts(msgspec.Struct, frozen=True):
    """What takes a while to count, and stays as it is until something is written."""

    memories: int
    drafts: int
    days: tuple[int, ...]


class SpaceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a list of spaces says of one."""

    owner: str
    entries: int
    memories: int
    """Current ones."""
    days: tuple[int, ...]
    """Turns said and memories written on each of the last days (UTC), today the last."""
    first_day: int
    """The first of them, counted from 1970."""
    waiting: int
    """Entries that are not read for facts, or not searchable, yet."""
    health: EnrichmentHealth
    needs: dict[ReviewNeed, int]
    """Only what there is."""


def needs_of(reader: Reader, counts: Counts, now: Instant) -> dict[ReviewNeed, int]:
    """What needs a person, and how often. Whatever else comes to need one is counted here."""
    found = {
        ReviewNeed.CONFLICTS: reader.overview.conflict_count(),
        ReviewNeed.DRAFTS: counts.drafts,
        ReviewNeed.QUARANTINE: reader.review.quarantined_count(now=now),
        ReviewNeed.DOCUMENTS: reader.documents.failed_count(),
        ReviewNeed.DEAD_LETTERS: sum(
            int(reader.state.note(name) or 0) for name in (POISONED, projection.UNREADABLE)
        ),
    }
    return {need: count for need, count in found.items() if count}


def health_of(*, waiting: int, whole: bool, failing: bool) -> EnrichmentHealth:
    if failing:
        return EnrichmentHealth.FAILING
    if waiting >= BEHIND_ENTRIES:
        return EnrichmentHealth.BEHIND
    return EnrichmentHealth.WELL if whole else EnrichmentHealth.DEGRADED


class CountsCache:
    """Counts of the spaces looked at last, each with the marks it was counted at: whoever wrote since has moved them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: OrderedDict[tuple[str, str], tuple[Hashable, Counts]] = OrderedDict()

    def of(self, space: tuple[str, str], marks: Hashable, count: Callable[[], Counts]) -> Counts:
        with self._lock:
            found = self._counts.get(space)
        if found is not None and found[0] == marks:
            return found[1]
        counts = count()
        with self._lock:
            self._counts[space] = (marks, counts)
            self._counts.move_to_end(space)
            while len(self._counts) > _CACHED_SPACES_MAX:
                self._counts.popitem(last=False)
        return counts


def today_of(now: Instant) -> int:
    return now // DAY


def counted(reader: Reader, today: int) -> Counts:
    return Counts(
        memories=reader.overview.current_count(),
        drafts=sum(learning.standing is LearningStatus.OPEN for learning in learnings_of(reader)),
        days=tuple(reader.overview.activity(today - DAYS + 1, today)),
    )


def marks_of(reader: Reader, today: int) -> Hashable:
    """Where the space stands: as long as this is the same, so are the counts."""
    return (msgspec.structs.astuple(reader.state.marks()), reader.ledger.head().position, today)
