"""The summary of a space: counts, recent activity, the state of enrichment, and open decisions. Cheap at any size."""

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
"""The number of days of activity, including today."""
BEHIND_ENTRIES = 500
"""More waiting entries than this are unusual for a running worker."""

_CACHED_SPACES_MAX = 4_096


class ReviewNeed(StrEnum):
    """The kinds of things that need a person's decision."""

    CONFLICTS = "conflicts"
    DRAFTS = "drafts"
    QUARANTINE = "quarantine"
    DOCUMENTS = "documents"
    """Documents whose distillation failed."""
    DEAD_LETTERS = "dead_letters"
    """Entries whose enrichment failed."""


class EnrichmentHealth(StrEnum):
    """The state of enrichment, from good to bad."""

    WELL = "well"
    DEGRADED = "degraded"
    """Entries wait, so a recall may be incomplete."""
    BEHIND = "behind"
    """Many entries wait."""
    FAILING = "failing"
    """The worker tried and failed."""


class Counts(msgspec.Struct, frozen=True):
    """Counts that are slow to compute and change only with a write."""

    memories: int
    drafts: int
    days: tuple[int, ...]


class SpaceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a list of spaces."""

    owner: str
    entries: int
    memories: int
    """Current memories."""
    days: tuple[int, ...]
    """Turns and memories per day (UTC), ending with today."""
    first_day: int
    """The first of these days, as days since 1970."""
    waiting: int
    """Entries that are not enriched or not searchable yet."""
    health: EnrichmentHealth
    needs: dict[ReviewNeed, int]
    """Only kinds with a count above zero."""


def needs_of(reader: Reader, counts: Counts, now: Instant) -> dict[ReviewNeed, int]:
    """The number of open decisions of each kind. A new kind is added here."""
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
    """Counts of recently shown spaces, each with the marks it was computed at; a write changes the marks."""

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
    """Marks of the space: while they are the same, the counts are too."""
    return (msgspec.structs.astuple(reader.state.marks()), reader.ledger.head().position, today)
