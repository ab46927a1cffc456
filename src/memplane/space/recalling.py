"""The recalling side of a space: what it tells an agent, and the enrichment that makes it worth telling."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import msgspec

from memplane.clock import Instant, parse_instant
from memplane.errors import InvalidRequest, NotFound, SettingsInvalid, StorageError
from memplane.extract.feedback import can_be_rated
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import FeedbackPayload, ResolvePayload
from memplane.memory import projection
from memplane.memory.checks import check_counts, check_ids, check_name, check_query, check_rating
from memplane.models.embedding import EmbeddingFailed
from memplane.recall.explain import why_not
from memplane.recall.recall import RecallServices, recall, recall_by_words
from memplane.recall.request import RecallRequest
from memplane.recall.result import SPANS_MAX, Conflict, Limits, Recall
from memplane.safety.sanitize import sanitized_memory
from memplane.space.records import Moment, Records, lag_of
from memplane.storage.base import Reader, Writer
from memplane.storage.filter import Filter
from memplane.types import Memory, Op
from memplane.worker.pipeline import EnrichmentStatus, note_accesses

_EXPLAINED = Limits(turns=1_000, facts=1_000)


class Recalling(Records):
    """What a space tells, and how it comes to know it."""

    def recall(
        self,
        query: str,
        *,
        conversation: str | None = None,
        project: str | None = None,
        document: str | None = None,
        collection: str | None = None,
        reference_time: Moment | None = None,
        as_of: Moment | None = None,
        include_superseded: bool = False,
        limits: Limits | None = None,
        noted: bool = True,
    ) -> Recall:
        """What to tell the agent before its next turn.

        What was said for one conversation or project alone is told where `conversation` or `project` names it. Documents
        of the `project`, and those of none, are looked into as well; `document` or `collection` asks for what that one
        says.

        `reference_time` is the now that words such as `last week` are told against; `as_of` answers as it would have
        been answered then. A turn may be anything, so a question that is too long is cut rather than refused. For a person who
        only looks, `noted` is False: what they are shown was of no use to an agent, and does not rise for it.
        """
        request = self._request(
            query,
            conversation=conversation,
            project=project,
            document=document,
            collection=collection,
            reference_time=reference_time,
            as_of=as_of,
            include_superseded=include_superseded,
            limits=limits,
        )
        with self._events.operation(self.owner, "recall") as event:
            told = self._told(request)
            if event is not None:
                event.memory_blocks = len(told.blocks)
                event.memory_bytes = len(told.text.encode("utf-8"))
        if noted:
            used = [block.id for block in told.blocks if block.source == "memory"]
            self._note_uses(self._parts.uses.add(self.tenant, self.owner, used))
        return told

    def recall_by_words(
        self,
        query: str,
        *,
        conversation: str | None = None,
        project: str | None = None,
        limits: Limits | None = None,
    ) -> Recall:
        """What of a recall is there at once, for an agent that cannot wait: the blocks that hold the words. It works
        nothing off, loads no index and asks no model."""
        request = self._request(query, conversation=conversation, project=project, limits=limits)
        with self._operation("recall_by_words") as reader:
            return recall_by_words(reader, request, self._settings, now=self._clock())

    def why_not(
        self,
        query: str,
        expected: str,
        *,
        conversation: str | None = None,
        project: str | None = None,
        document: str | None = None,
        collection: str | None = None,
        reference_time: Moment | None = None,
        as_of: Moment | None = None,
        include_superseded: bool = False,
        limits: Limits | None = None,
    ) -> str:
        """Why such a recall tells, or does not tell, an entry or a memory that one expected of it."""
        check_query(id=expected)
        request = self._request(
            query,
            conversation=conversation,
            project=project,
            document=document,
            collection=collection,
            reference_time=reference_time,
            as_of=as_of,
            include_superseded=include_superseded,
            limits=limits,
        )
        told = self._told(request)
        ranked = self._told(msgspec.structs.replace(request, limits=_EXPLAINED))
        with self._reading() as reader:
            return why_not(reader, expected, told, ranked, now=self._clock(), audience=request.audience)

    def enrich(self, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Work off everything that waits: memories are derived, vectors made. Returns in how many steps."""
        self.catch_up()
        self._note_uses(self._parts.uses.take(self.tenant, self.owner))
        with self._store() as store:
            return self._parts.worker.drain(store, progress=progress)

    def enrichment(self) -> EnrichmentStatus:
        """How much waits to be enriched, what could not be, and what a language model has cost."""
        with self._read() as reader:
            return self._parts.worker.enrichment(reader)

    def evidence(self, memory_id: str) -> list[Memory]:
        """Where a memory was said: the memory itself, then what each further place alone would have made of it."""
        check_query(id=memory_id)
        now = self._clock()
        with self._operation("evidence") as reader:
            memory = reader.memory(memory_id)
            if memory is None:
                raise NotFound("memory", memory_id)
            places = [memory, *(place.own for place in reader.evidence((memory_id,)))]
        return [sanitized_memory(place, now) for place in places]

    def conflicts(self, *, of: str | None = None, limit: int | None = None) -> list[Conflict]:
        """Memories that cannot both be so, as long as nobody has settled it; those that one memory is part of, or all, or
        the first of them."""
        check_query(of=of)
        now = self._clock()
        with suppress(StorageError):
            self._work_a_while()
        with self._operation("conflicts") as reader:
            pairs = reader.conflicts(() if of is None else (of,))[:limit]
            ids = list(dict.fromkeys(id_ for pair in pairs for id_ in pair))
            everything = Filter(now=now, audience=None)
            there = {
                memory.id: sanitized_memory(memory, now) for memory in reader.memories_of(ids, everything)
            }
        return [
            Conflict(left=there[left], right=there[right])
            for left, right in pairs
            if left in there and right in there
        ]

    def resolve(self, winner: str) -> Memory:
        """Settle a conflict: this memory holds, and those it is at odds with are replaced by it."""
        now = self._clock()
        self.enrich()

        def work(writer: Writer) -> None:
            losers = [other for pair in writer.conflicts((winner,)) for other in pair if other != winner]
            if not losers:
                raise NotFound("conflict of memory", winner)
            payload = ResolvePayload(winner=winner, losers=tuple(losers), at=now)
            projection.record(writer, self._draft(new_id("resolve", now), Op.RESOLVE, payload), now)

        self._write("resolve", work)
        self.enrich()
        with self._read() as reader:
            settled = reader.memory(winner)
        if settled is None:
            raise NotFound("memory", winner)
        return sanitized_memory(settled, now)

    def feedback(
        self,
        selected: Iterable[str],
        ignored: Iterable[str] = (),
        *,
        recall: str = "",
        rating: int | None = None,
    ) -> int:
        """Say which memories of a recall were of use, and which were told in vain; returns how many it counts for.

        Those of use gain importance, the others fade, a little each time and the more the better the recall is rated,
        from 1 to 5. Ids that are unknown, forgotten, or of something else than a memory count for nothing; one that is
        in both lists was of use. `recall` is the recall's own name, where it has one.
        """
        now = self._clock()
        chosen = check_ids(selected, field="selected")
        passed = [id_ for id_ in check_ids(ignored, field="ignored") if id_ not in frozenset(chosen)]
        check_rating(rating)
        name = check_name(recall or None, field="recall") or ""

        def work(writer: Writer) -> int:
            there = {id_ for id_ in (*chosen, *passed) if can_be_rated(writer.memory(id_))}
            rated = FeedbackPayload(
                recall=name,
                selected=tuple(id_ for id_ in chosen if id_ in there),
                ignored=tuple(id_ for id_ in passed if id_ in there),
                at=now,
                rating=rating,
            )
            if there:
                projection.record(writer, self._draft(new_id("feedback", now), Op.FEEDBACK, rated), now)
            return len(there)

        count = self._write("feedback", work)
        if count:
            with suppress(StorageError):
                self._work_a_while()
        return count

    def _request(
        self,
        query: str,
        *,
        conversation: str | None = None,
        project: str | None = None,
        document: str | None = None,
        collection: str | None = None,
        reference_time: Moment | None = None,
        as_of: Moment | None = None,
        include_superseded: bool = False,
        limits: Limits | None = None,
    ) -> RecallRequest:
        check_query(conversation=conversation, project=project, document=document, collection=collection)
        if not isinstance(query, str):
            raise InvalidRequest(f"query: give text, not {type(query).__name__}", field="query")
        limits = limits or Limits()
        counts = {name: getattr(limits, name) for name in Limits.__struct_fields__}
        check_counts(**{name: count for name, count in counts.items() if count is not None})
        if limits.spans > SPANS_MAX:
            raise InvalidRequest(f"spans: give 0 to {SPANS_MAX}, not {limits.spans}", field="spans")
        return RecallRequest(
            query=query.encode("utf-8", "replace").decode("utf-8")[: self._settings.query_chars_max],
            conversation=conversation,
            project=project,
            document=document,
            collection=collection,
            reference=_instant(reference_time, "reference_time"),
            as_of=_instant(as_of, "as_of"),
            include_superseded=include_superseded,
            limits=limits,
        )

    def _told(self, request: RecallRequest) -> Recall:
        turn_index, memory_index, span_index = self._parts.indexes.of(self.tenant, self.owner)
        tools = RecallServices(
            questions=self._parts.questions,
            catalog=self._parts.catalog,
            settings=self._settings,
            turn_index=turn_index,
            memory_index=memory_index,
            span_index=span_index,
        )
        with self._read() as reader:
            if self._is_settled(reader):
                return recall(reader, request, tools, now=self._clock(), lags=self._lags)
        with suppress(StorageError):  # a full disk keeps nobody from reading
            self._work_a_while()
        with self._reading() as reader:
            return recall(reader, request, tools, now=self._clock(), lags=self._lags)

    def _is_settled(self, reader: Reader) -> bool:
        """Whether nothing waits that a recall would do first."""
        if reader.cursor() < reader.head().seq:
            return False
        return self._parts.background is not None or self._parts.worker.lag(reader).nothing

    def _note_uses(self, ids: Sequence[str]) -> None:
        """What is often of use comes to be told always."""
        if ids:
            now, catalog = self._clock(), self._parts.catalog
            with self._store() as store:
                store.write(lambda writer: note_accesses(writer, ids, catalog, now))

    def _work_a_while(self) -> None:
        """Where no worker runs, a recall works off what waits, for a bounded time: what was just said is found by its
        meaning, and a large import does not keep anyone waiting. A language model takes too long to be asked here."""
        worker = self._parts.worker
        if self._parts.background is not None:
            return
        until = time.monotonic() + self._settings.recall_work_ms / 1_000
        with self._store() as store:
            with store.read() as reader:
                ahead = reader.cursor() < reader.head().seq
                if not ahead and worker.lag(reader).nothing:
                    return
            while ahead and time.monotonic() < until:
                ahead = store.write(projection.catch_up) > 0
            while time.monotonic() < until:
                try:
                    if not worker.step(store, reading=not worker.asks_a_model):
                        return
                except (EmbeddingFailed, SettingsInvalid):
                    return  # the recall says so itself

    def _lags(self, reader: Reader) -> tuple[str, ...]:
        """Why an answer may not be whole yet."""
        reasons = []
        if count := lag_of(reader):
            reasons.append(
                f"indexing: {count:,} {'entry' if count == 1 else 'entries'} cannot be searched yet"
            )
        lag = self._parts.worker.lag(reader)
        if lag.entries:
            are = "entry is" if lag.entries == 1 else "entries are"
            reasons.append(f"enrichment: {lag.entries:,} {are} not read for facts yet")
        if self._parts.embedder is not None and (lag.turns or lag.memories or lag.spans):
            reasons.append("vectors: some turns, memories or spans are found by their words only, for now")
        if lag.documents:
            reasons.append(f"documents: {lag.documents:,} of them are not told in short yet")
        return tuple(reasons)


def _instant(moment: Moment | None, field: str) -> Instant | None:
    return None if moment is None else parse_instant(moment, field=field)
