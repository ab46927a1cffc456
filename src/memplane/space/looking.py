"""What a person looks at: a space at a glance, the facts around a subject, two moments side by side, receipts by the page."""

from memplane.clock import INSTANT_MAX, Instant
from memplane.errors import InvalidRequest, NotFound
from memplane.memory.checks import check_counts, check_limit, check_query
from memplane.memory.forget import receipt_of
from memplane.safety.sanitize import sanitized_memory
from memplane.space.access import Access
from memplane.space.comparison import Comparison, compare
from memplane.space.graph import Graph, graph_of, subject_of
from memplane.space.summary import DAYS, SpaceSummary, counted, health_of, marks_of, needs_of, today_of
from memplane.storage.overview import TurnSpan
from memplane.types import Memory, Receipt


class Looking(Access):
    """Everything here is bounded, and reads only."""

    def glance(self) -> SpaceSummary:
        """How much there is, how busy it was, how enrichment gets on, and what needs a person."""
        now = self._clock()
        today = today_of(now)
        with self._read() as reader:
            counts = self._parts.kept.of(
                (self.tenant, self.owner), marks_of(reader, today), lambda: counted(reader, today)
            )
            lag = self._parts.worker.lag(reader)
            waiting = max(lag.entries, reader.index_lag() + reader.head().seq - reader.cursor())
            return SpaceSummary(
                owner=self.owner,
                entries=reader.head().seq,
                memories=counts.memories - reader.expired_count(now=now),
                days=counts.days,
                first_day=today - DAYS + 1,
                waiting=waiting,
                health=health_of(waiting=waiting, whole=lag.nothing and not waiting, failing=self._fails()),
                needs=needs_of(reader, counts, now),
            )

    def subjects(self, first: str = "", *, limit: int = 50) -> list[str]:
        """Whom and what facts are about, by name, from this one on."""
        check_query(first=first)
        check_limit(limit)
        with self._operation("subjects") as reader:
            return reader.subjects(first=first.strip().casefold(), limit=limit)

    def graph(self, subject: str | None = None, *, as_of: Instant | None = None) -> Graph | None:
        """The facts around a subject, as they were at a time; without one, around that which was spoken of most lately.
        None where there are no facts at all."""
        check_query(subject=subject)
        with self._operation("graph") as reader:
            named = subject_of(reader) if subject is None else subject
            return None if named is None else graph_of(reader, named, as_of=as_of, now=self._clock())

    def compare(self, begin: Instant, end: Instant, *, limit: int = 50, offset: int = 0) -> Comparison:
        """What is different at the end from what it was at the beginning."""
        check_limit(limit)
        check_counts(offset=offset)
        if begin > end:
            raise InvalidRequest(
                "the first moment is later than the second; give them the other way round", field="begin"
            )
        with self._operation("compare") as reader:
            return compare(reader, begin, end, now=self._clock(), limit=limit, offset=offset)

    def newest_receipts(self, *, limit: int = 50, offset: int = 0) -> list[Receipt]:
        """Every forget there was, the newest first, a page of them."""
        check_limit(limit)
        check_counts(offset=offset)
        with self._read() as reader:
            found = reader.forgets_between(-INSTANT_MAX, INSTANT_MAX, limit=limit, offset=offset)
            return [receipt_of(row) for row in found]

    def receipt(self, receipt_id: str) -> Receipt:
        """One of them."""
        check_query(id=receipt_id)
        with self._read() as reader:
            row = reader.forget_row(receipt_id)
        if row is None:
            raise NotFound("receipt", receipt_id)
        return receipt_of(row)

    def first_moment(self) -> Instant | None:
        """When the first thing was said or recorded, whichever is earlier."""
        with self._read() as reader:
            return reader.first_moment()

    def turn_span(self, since: Instant | None = None) -> TurnSpan:
        """How much was said since then, and from when to when."""
        with self._read() as reader:
            return reader.turn_span(-INSTANT_MAX if since is None else since)

    def behavioral(self, *, limit: int) -> tuple[int, list[Memory]]:
        """How many current memories steer how an agent acts, and those of them that a brief tells first."""
        now = self._clock()
        with self._operation("behavioral") as reader:
            found = [memory for memory in reader.brief(now=now, limit=limit) if memory.behavioral]
            return reader.behavioral_count(), [sanitized_memory(memory, now) for memory in found]

    def _fails(self) -> bool:
        background = self._parts.background
        return background is not None and (self.tenant, self.owner) in background.failing()
