"""Reports about a space: its sizes and state, the timeline, the graph of facts, and two times compared."""

from collections.abc import Sequence

from memplane.clock import DAY, INSTANT_MAX, Instant
from memplane.compaction.days import items_of
from memplane.compaction.retention import day_of, day_start, retention_of
from memplane.compaction.review import DueDay, RetentionStatus, learnings_of
from memplane.compaction.steps import days_due, overdue_digests, overdue_summaries
from memplane.errors import InvalidRequest, NotFound
from memplane.memory.checks import check_counts, check_limit, check_query
from memplane.memory.supersession import chain_of, lineage_of
from memplane.recall.marks import UNMARKED, Mark, Marks
from memplane.safety.sanitize import sanitized_memory, sanitized_turn
from memplane.space.comparison import Comparison, compare
from memplane.space.context import SpaceContext, unsearchable_count
from memplane.space.graph import Graph, graph_of, subject_of
from memplane.space.summary import DAYS, SpaceSummary, counted, health_of, marks_of, needs_of, today_of
from memplane.space.timeline import TimelineEvent, recent_names, timeline_event, timeline_page
from memplane.storage.compaction import CompactionLine, Layer, LearningStatus
from memplane.storage.filter import EntryFilter, Filter
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX, turn_number
from memplane.storage.overview import SpaceSizes, TurnSpan
from memplane.types import Entry, Memory, State, Turn
from memplane.worker.status import EmbeddingStatus, EnrichmentStatus


class Overview:
    """`space.overview`: reports for a person. Everything here is bounded and only reads."""

    def __init__(self, context: SpaceContext) -> None:
        self._context = context

    def summary(self) -> SpaceSummary:
        """Counts, recent activity, the state of enrichment, and what needs a decision."""
        now = self._context.clock()
        today = today_of(now)
        with self._context.read() as reader:
            counts = self._context.parts.counts_cache.of(
                (self._context.tenant, self._context.owner),
                marks_of(reader, today),
                lambda: counted(reader, today),
            )
            lag = self._context.parts.worker.lag(reader)
            count = max(lag.entries, unsearchable_count(reader))
            return SpaceSummary(
                owner=self._context.owner,
                entries=reader.ledger.head().seq,
                memories=counts.memories - reader.overview.expired_count(now=now),
                days=counts.days,
                first_day=today - DAYS + 1,
                waiting=count,
                health=health_of(waiting=count, whole=lag.nothing and not count, failing=self._fails()),
                needs=needs_of(reader, counts, now),
            )

    def timeline(
        self, narrowed: EntryFilter | None = None, *, before: int | None = None, limit: int = 50
    ) -> list[TimelineEvent]:
        """The ledger in words, the newest entry first; `before` continues after the last entry of a page."""
        with self._context.read() as reader:
            return timeline_page(reader, narrowed or EntryFilter(), before=before, limit=limit)

    def timeline_entry(self, entry_id: str) -> TimelineEvent:
        """One entry of the timeline."""
        with self._context.read() as reader:
            entry = reader.ledger.get(entry_id)
            if entry is None:
                raise NotFound("entry", entry_id)
            return timeline_event(reader, entry)

    def recent_names(self) -> tuple[list[str], list[str]]:
        """The conversations and the interfaces of the newest entries, as filters for a timeline."""
        with self._context.read() as reader:
            return recent_names(reader)

    def subjects(self, first: str = "", *, limit: int = 50) -> list[str]:
        """The subjects of facts by name, beginning with `first`."""
        check_query(first=first)
        check_limit(limit)
        with self._context.operation("subjects") as reader:
            return reader.overview.subjects(first=first.strip().casefold(), limit=limit)

    def graph(self, subject: str | None = None, *, as_of: Instant | None = None) -> Graph | None:
        """The facts around a subject at a time; without a subject, around the one mentioned last. None without any facts."""
        check_query(subject=subject)
        with self._context.operation("graph") as reader:
            named = subject_of(reader) if subject is None else subject
            return None if named is None else graph_of(reader, named, as_of=as_of, now=self._context.clock())

    def compare(self, begin: Instant, end: Instant, *, limit: int = 50, offset: int = 0) -> Comparison:
        """The differences between two times."""
        check_limit(limit)
        check_counts(offset=offset)
        if begin > end:
            raise InvalidRequest(
                "the first moment is later than the second; give them the other way round", field="begin"
            )
        with self._context.operation("compare") as reader:
            return compare(reader, begin, end, now=self._context.clock(), limit=limit, offset=offset)

    def first_moment(self) -> Instant | None:
        """The time of the first turn or of the first entry, whichever is earlier."""
        with self._context.read() as reader:
            return reader.overview.first_moment()

    def turn_span(self, since: Instant | None = None) -> TurnSpan:
        """The number of turns since a time, and the times of the first and last."""
        with self._context.read() as reader:
            return reader.overview.turn_span(-INSTANT_MAX if since is None else since)

    def behavioral(self, *, limit: int) -> tuple[int, list[Memory]]:
        """The number of current behavioral memories, and those that a brief includes first."""
        now = self._context.clock()
        with self._context.operation("behavioral") as reader:
            found = [memory for memory in reader.memories.brief(now=now, limit=limit) if memory.behavioral]
            return reader.overview.behavioral_count(), [sanitized_memory(memory, now) for memory in found]

    def stats(self) -> SpaceSizes:
        """Counts of entries, turns, memories and more."""
        with self._context.read() as reader:
            return reader.overview.sizes(now=self._context.clock())

    def lag(self) -> int:
        """How many entries are retained but cannot be searched yet."""
        with self._context.read() as reader:
            return unsearchable_count(reader)

    def enrichment(self) -> EnrichmentStatus:
        """How many entries wait for enrichment, which ones failed, and what the language model has cost."""
        with self._context.read() as reader:
            return self._context.parts.worker.enrichment(reader)

    def embedding(self) -> EmbeddingStatus:
        """The embedding model, and how many turns, memories and spans have no vector of it yet."""
        with self._context.read() as reader:
            return self._context.parts.worker.embedding(reader)

    def retention(self) -> RetentionStatus:
        """The retention policy, and what it would remove now."""
        policy = retention_of(self._context.settings)
        now = self._context.clock()
        with self._context.read() as reader:
            days = days_due(reader, policy, now)
            return RetentionStatus(
                policy=policy,
                words=policy.words,
                due=tuple(DueDay(day, len(items_of(reader, day))) for day in days),
                digest_lines_due=len(overdue_digests(reader, policy, now)),
                summary_lines_due=len(overdue_summaries(reader, policy, now)),
                learnings_open=sum(it.standing is LearningStatus.OPEN for it in learnings_of(reader)),
            )

    def recall_count(self, memory_id: str) -> int:
        """How often a memory was recalled, as far as this process has counted it or a count was saved."""
        check_query(id=memory_id)
        with self._context.read() as reader:
            written = reader.memories.accesses((memory_id,)).get(memory_id, 0)
        return written + self._context.parts.access_counts.count(
            self._context.tenant, self._context.owner, memory_id
        )

    def chain(self, memory_id: str) -> list[Memory]:
        """A memory and those that superseded it, oldest first."""
        check_query(id=memory_id)
        now = self._context.clock()
        with self._context.operation("chain") as reader:
            found = [sanitized_memory(memory, now) for memory in chain_of(reader, memory_id)]
        if not found:
            raise NotFound("memory", memory_id)
        return found

    def marks(self, memories: Sequence[Memory]) -> dict[str, Mark]:
        """For those of these memories that were replaced or are contradicted: by what, by id."""
        if all(memory.state in (State.ACTIVE, State.EXPIRED) for memory in memories):
            return {}
        where = Filter(now=self._context.clock(), include_superseded=True, audience=None)
        with self._context.read() as reader:
            marks = Marks(reader, memories, (), where)
        found = {memory.id: marks.of(memory) for memory in memories}
        return {id_: mark for id_, mark in found.items() if mark is not UNMARKED}

    def lineage(self, memory_id: str) -> list[Memory]:
        """The memories that a memory superseded, itself, and those that superseded it, oldest first."""
        check_query(id=memory_id)
        now = self._context.clock()
        with self._context.operation("chain") as reader:
            found = [sanitized_memory(memory, now) for memory in lineage_of(reader, memory_id)]
        if not found:
            raise NotFound("memory", memory_id)
        return found

    def memories_from(self, entry_id: str) -> list[Memory]:
        """The memories derived from an entry, in any state."""
        now = self._context.clock()
        with self._context.read() as reader:
            seq = reader.ledger.known([entry_id]).get(entry_id)
            found = [] if seq is None else reader.memories.of_entries([seq])
        return [sanitized_memory(memory, now) for memory in found]

    def turns_of(self, entry_id: str) -> list[Turn]:
        """The turns of an entry."""
        with self._context.read() as reader:
            entry = reader.ledger.get(entry_id)
            if entry is None:
                return []
            first = turn_number(entry.seq, 0)
            found = reader.turns.between(first, first + TURNS_PER_ENTRY_MAX - 1)
        return [sanitized_turn(turn) for turn in found]

    def newest_memories(self, limit: int) -> list[Memory]:
        """Current memories exactly as they are stored, newest first."""
        check_limit(limit)
        with self._context.operation("memories") as reader:
            return reader.memories.find(Filter(now=self._context.clock(), audience=None), limit=limit)

    def digest_lines(self) -> list[CompactionLine]:
        """Every line of the weekly digests, by day and time."""
        with self._context.operation("digests") as reader:
            return reader.compaction.lines(Layer.DIGEST)

    def days(self) -> list[str]:
        """The past days (UTC) with turns or a summary, the oldest first."""
        with self._context.operation("days") as reader:
            before = self._context.clock()
            found = {day_of(begin) for begin in reader.compaction.raw_days(before - before % DAY)}
            return sorted(found | {line.day for line in reader.compaction.lines(Layer.SUMMARY)})

    def entries_on(self, day: str, *, limit: int | None = None) -> list[Entry]:
        """The entries of a day: those still in the ledger, and the last ones of each thread that retention removed."""
        begin = day_start(day)
        with self._context.operation("days") as reader:
            seqs = [raw.seq for raw in reader.compaction.raw_between(begin, begin + DAY)]
            seqs += [line.seq for line in reader.compaction.lines(Layer.SUMMARY, day)]
            return [entry for entry in reader.ledger.at(seqs[:limit]) if entry.body]

    def _fails(self) -> bool:
        background = self._context.parts.background
        return background is not None and (self._context.tenant, self._context.owner) in background.failing()
