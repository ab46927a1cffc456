"""One space: the verbs of memory, and the sub-objects for everything else."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from memplane.clock import DAY, Instant, Moment, parse_instant, to_datetime
from memplane.compaction.review import CompactionReport
from memplane.errors import InvalidRequest, LimitReached, NotFound, StorageError
from memplane.extract.feedback import can_be_rated
from memplane.ledger.history import LINE_BYTES_MAX
from memplane.ledger.history_text import received_line, scrub_line
from memplane.ledger.ids import DERIVED_PREFIXES, current_id, is_variant, keyed_id, new_id, new_memory_id
from memplane.ledger.payloads import FeedbackPayload, PurgePayload, StorePayload, TurnPayload
from memplane.memory import projection
from memplane.memory.checks import (
    check_counts,
    check_depth,
    check_ids,
    check_kind,
    check_limit,
    check_list,
    check_name,
    check_not_injected,
    check_query,
    check_rating,
    check_role,
    check_scope,
    check_state,
    check_storable_kind,
    check_tags,
    check_text,
    check_tier,
    check_window,
)
from memplane.memory.digests import learned_from
from memplane.memory.facts import checked_fact
from memplane.memory.forget import checked_scope, counts_of, scope_words
from memplane.memory.recorder import present
from memplane.memory.supersession import head_of
from memplane.recall.brief import Brief, make_brief
from memplane.recall.explain import why_not
from memplane.recall.recall import recall_by_words
from memplane.recall.request import RecallOptions, RecallRequest, request_of
from memplane.recall.result import Limits, Recall
from memplane.recall.search import LIMIT_DEFAULT, LIMIT_MAX, SearchRequest, SearchResults
from memplane.safety.sanitize import sanitized_memory, sanitized_turn
from memplane.space.compaction import compact
from memplane.space.context import SpaceContext
from memplane.space.deprecated import moved_attribute
from memplane.space.documents import Documents
from memplane.space.facts import Facts
from memplane.space.files import Files
from memplane.space.forgetting import finish_forget
from memplane.space.ledger import Ledger
from memplane.space.overview import Overview
from memplane.space.recall import answer, enrich, enrich_briefly, within_limits, write_accesses
from memplane.space.review import Review
from memplane.space.search import run_search
from memplane.storage.compaction import RETENTION
from memplane.storage.filter import Audience, Filter, ForgetScope
from memplane.storage.store import Writer
from memplane.types import (
    STORABLE_KINDS,
    Conversation,
    Kind,
    Memory,
    NewEntry,
    Op,
    PinnedTexts,
    Receipt,
    Retained,
    Turn,
    Visibility,
)

_WIDER = Limits(turns=1_000, facts=1_000)


class Space:
    """The unit of isolation: one agent, user, caller or group. Cheap to make; safe to use from many threads."""

    def __init__(self, context: SpaceContext) -> None:
        self._context = context
        self.tenant = context.tenant
        self.owner = context.owner
        self.caller = context.caller
        self.settings = context.settings

    @cached_property
    def documents(self) -> Documents:
        """Documents and collections."""
        return Documents(self._context)

    @cached_property
    def files(self) -> Files:
        """Files that an agent keeps under `/memories`."""
        return Files(self._context)

    @cached_property
    def facts(self) -> Facts:
        """Keyed facts, and defaults learned from runs."""
        return Facts(self._context)

    @cached_property
    def review(self) -> Review:
        """What waits for a person: conflicts, drafts, quarantine."""
        return Review(self._context)

    @cached_property
    def overview(self) -> Overview:
        """The space as a person looks at it: summary, timeline, graph, comparison."""
        return Overview(self._context)

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger: verify, replay, export, receipts, audit."""
        return Ledger(self._context)

    if not TYPE_CHECKING:  # a type checker reports the old names

        def __getattr__(self, name: str) -> object:
            return moved_attribute(self, name)

    def now(self) -> Instant:
        """The time of the space's clock."""
        return self._context.clock()

    def silent(self) -> "Space":
        """The same space without telemetry, for an adapter that reports its operations itself in more detail."""
        return Space(self._context.silent())

    # ── write ────────────────────────────────────────────────────────────────────────────────────────────────

    def retain(
        self,
        content: str,
        *,
        role: str = "user",
        speaker: str | None = None,
        conversation: str | None = None,
        project: str | None = None,
        at: Moment | None = None,
        id: str | None = None,
        idempotency_key: str | None = None,
        idempotency_window: timedelta | None = None,
        metadata: Mapping[str, Any] | None = None,
        scope: str = Visibility.GLOBAL,
        document: str | None = None,
        document_name: str | None = None,
    ) -> Retained:
        """Retain one turn of a conversation. Returns when it is durable; it can be searched at once.

        `scope` limits where the turn and the memories derived from it are recalled: `global`, everywhere; `project` and
        `conversation`, only in a recall that names the same project or conversation. `document` is the id of a document that
        the turn is about: forgetting the document forgets the turn.

        With an `id` or an `idempotency_key`, retaining again is a no-op; without, the same content twice is two events. A
        forgotten id stays forgotten. With an `idempotency_window`, the key expires that long after its last event.
        """
        now = self._context.clock()
        check_depth(metadata, field="metadata")
        said = TurnPayload(
            role=check_role(role),
            content=check_text(content, field="content", bytes_max=self._context.settings.entry_bytes_max),
            at=now if at is None else parse_instant(at, field="at"),
            conversation=check_name(conversation, field="conversation"),
            project=check_name(project, field="project"),
            speaker=check_name(speaker, field="speaker"),
            metadata=None if metadata is None else dict(metadata),
            scope=check_scope(scope, conversation=conversation, project=project),
            document=check_name(document, field="document"),
            document_name=check_name(document_name, field="document_name"),
        )
        given = _given_id(id, idempotency_key)
        window = check_window(idempotency_window, keyed=idempotency_key is not None and id is None)
        draft = self._context.recorder.draft(given or new_id("turn", now), Op.TURN, said)
        ready = None if self._context.settings.redact_ledger else said

        def work(writer: Writer) -> Retained:
            named = given
            if window is not None and idempotency_key is not None:
                named = current_id(writer, idempotency_key, now - window)
            if named is not None and (before := _seen_before(writer, named)):
                return before
            new = draft if named in (None, draft.id) else msgspec.structs.replace(draft, id=named)
            entry = projection.record(writer, new, now, ready=ready)
            return Retained(id=entry.id, seq=entry.seq)

        return self._context.write("retain", work)

    def retain_entry(self, entry: bytes, *, pins: PinnedTexts | None = None) -> Retained:
        """Retain one entry of a Clawdapus session history, as a memory service receives it. Idempotent by the entry's own id.

        Search uses the question of the agent and the answer, not the request that was sent upstream. `pins` are texts that
        were injected for this turn and must be repeated verbatim in later ones; they are stored in the same transaction,
        unless a forget was committed since they were made.
        """
        now = self._context.clock()
        line = received_line(entry, now=now, line_bytes_max=self._context.settings.entry_bytes_max)
        given = _given_id(line.id, None)
        assert given is not None
        body = scrub_line(line.line)[0] if self._context.settings.redact_ledger else line.line
        draft = NewEntry(given, Op.HISTORY, body, self._context.caller)
        ready = line if body is line.line and len(body) <= LINE_BYTES_MAX else None

        def work(writer: Writer) -> Retained:
            if before := _seen_before(writer, given):
                return before
            kept = projection.record(writer, draft, now, ready=ready)
            if pins is not None and pins.texts and pins.erasures == writer.state.erasures():
                for name, text in pins.texts.items():
                    writer.state.pin(name, text, at=line.at)
            return Retained(id=kept.id, seq=kept.seq)

        return self._context.write("retain", work)

    def store(
        self,
        kind: str,
        content: str,
        *,
        tags: Iterable[str] = (),
        supersedes: str | None = None,
        conversation: str | None = None,
        project: str | None = None,
    ) -> Memory:
        """Store a typed memory: preference, fact, instruction, context or correction.

        `supersedes` names the memory that this one replaces; if that one is superseded already, the newest of its chain.
        """
        now = self._context.clock()
        stored = StorePayload(
            kind=check_storable_kind(kind),
            content=check_not_injected(
                check_text(content, field="content", chars_max=self._context.settings.content_chars_max),
                field="content",
            ),
            at=now,
            tags=check_tags(tags, self._context.settings),
            conversation=check_name(conversation, field="conversation"),
            project=check_name(project, field="project"),
        )
        supersedes = check_name(supersedes, field="supersedes")
        if supersedes is not None:
            self._read_before_replacing(supersedes)

        def work(writer: Writer) -> Memory:
            self._check_store_limits(writer, superseding=supersedes is not None)
            ref = None if supersedes is None else head_of(writer, supersedes)
            entry = self._context.recorder.record(writer, new_memory_id(), Op.STORE, stored, ref, now=now)
            return present(writer.memories.get(entry.id))

        return self._context.write("store", work)

    def put(
        self,
        key: str,
        value: str,
        *,
        category: str | None = None,
        tags: Iterable[str] = (),
        ttl: timedelta | float | None = None,
    ) -> Memory:
        """Set the value of a key. A second put replaces it; `history(key)` returns all values. Without a category, an existing
        key keeps its own and a new one gets `user_facts`, as with an empty category."""
        now = self._context.clock()
        bytes_max = self._context.settings.entry_bytes_max
        tags = check_tags(tags, self._context.settings)
        fact = checked_fact(key, value, category=category, tags=tags, ttl=ttl, at=now, bytes_max=bytes_max)
        keep = category is None
        return self._context.write(
            "put", lambda writer: self._context.recorder.put(writer, Op.PUT, fact, now, keep_category=keep)
        )

    # ── read ─────────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, key: str) -> Memory:
        """The current value of a key; `NotFound` without one."""
        check_query(key=key)
        now = self._context.clock()
        with self._context.operation("get") as reader:
            found = reader.memories.by_key(key.strip(), now=now)
        if found is None:
            raise NotFound("key", key)
        return sanitized_memory(found, now)

    def memory(self, memory_id: str) -> Memory:
        """One memory by id, in any state."""
        check_query(id=memory_id)
        with self._context.operation("get") as reader:
            found = reader.memories.get(memory_id)
        if found is None:
            raise NotFound("memory", memory_id)
        return sanitized_memory(found, self._context.clock())

    def history(self, key: str) -> list[Memory]:
        """All values of a key, oldest first."""
        check_query(key=key)
        now = self._context.clock()
        with self._context.operation("history") as reader:
            return [sanitized_memory(memory, now) for memory in reader.memories.history(key.strip())]

    def memories(
        self,
        *,
        state: str | None = None,
        kind: str | None = None,
        episodes: bool = True,
        predicate: str | None = None,
        conversation: str | None = None,
        project: str | None = None,
        tier: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Memory]:
        """Memories of every conversation and project, newest first: in any state except expired, or in the given one. With
        `episodes=False`, episodes are left out."""
        check_query(predicate=predicate, conversation=conversation, project=project)
        check_limit(limit)
        check_counts(offset=offset)
        where = Filter(
            now=self._context.clock(),
            kinds=(check_kind(kind),) if kind is not None else () if episodes else STORABLE_KINDS,
            conversation=conversation,
            project=project,
            state=None if state is None else check_state(state),
            predicate=predicate,
            tier=None if tier is None else check_tier(tier),
            include_superseded=True,
            audience=None,
        )
        with self._context.operation("memories") as reader:
            return [
                sanitized_memory(memory, where.now)
                for memory in reader.memories.find(where, limit=limit, offset=offset)
            ]

    def turns(self, conversation: str | None = None, *, limit: int = 100, offset: int = 0) -> list[Turn]:
        """The newest turns, newest first."""
        check_query(conversation=conversation)
        check_limit(limit)
        check_counts(offset=offset)
        with self._context.operation("turns") as reader:
            where = Filter(now=self._context.clock(), conversation=conversation, audience=None)
            found = reader.turns.find(where, limit=limit, offset=offset)
        return [sanitized_turn(turn) for turn in found]

    def conversations(
        self, *, project: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[Conversation]:
        """Conversations, the most recent first; with a project, only those of it."""
        check_query(project=project)
        check_limit(limit)
        check_counts(offset=offset)
        with self._context.operation("conversations") as reader:
            return reader.turns.conversations(project=project, limit=limit, offset=offset)

    def evidence(self, memory_id: str) -> list[Memory]:
        """The memory, then one for each further place in the ledger that states the same."""
        check_query(id=memory_id)
        now = self._context.clock()
        with self._context.operation("evidence") as reader:
            memory = reader.memories.get(memory_id)
            if memory is None:
                raise NotFound("memory", memory_id)
            places = [memory, *(place.own for place in reader.claims.evidence((memory_id,)))]
        return [sanitized_memory(place, now) for place in places]

    def search(
        self,
        query: str = "",
        *,
        kinds: Iterable[str] = (),
        tags: Iterable[str] = (),
        since: Moment | None = None,
        until: Moment | None = None,
        conversation: str | None = None,
        project: str | None = None,
        category: str | None = None,
        include_superseded: bool = False,
        memories: bool = True,
        turns: bool = True,
        limit: int = LIMIT_DEFAULT,
        typing: bool = False,
        words_only: bool = False,
    ) -> SearchResults:
        """Search memories, facts and turns by words and by meaning, best match first; without a query, newest first.

        `conversation` and `project` filter the results, and include what is scoped to them. With `typing`, the last word of
        the query may be a prefix. With `words_only`, every result contains a word of the query. `degraded` of the result
        says why something similar may be missing.
        """
        if not isinstance(query, str):
            raise InvalidRequest(f"query: give text, not {type(query).__name__}", field="query")
        if len(query) > self._context.settings.query_chars_max:
            raise InvalidRequest(
                f"query: at most {self._context.settings.query_chars_max:,} characters", field="query"
            )
        check_limit(limit, LIMIT_MAX)
        tags = check_list(tags, field="tags")
        if len(tags) > self._context.settings.tags_max:
            raise InvalidRequest(
                f"tags: no memory has more than {self._context.settings.tags_max}", field="tags"
            )
        check_query(conversation=conversation, project=project, category=category)
        for tag in tags:
            check_query(tag=tag)
        request = SearchRequest(
            query=query.encode("utf-8", "replace").decode("utf-8"),
            kinds=tuple(check_kind(kind) for kind in check_list(kinds, field="kinds")),
            tags=tags,
            since=None if since is None else parse_instant(since, field="since"),
            until=None if until is None else parse_instant(until, field="until"),
            conversation=conversation,
            project=project,
            category=category,
            include_superseded=include_superseded,
            memories=memories,
            turns=turns,
            limit=limit,
            typing=typing,
            words_only=words_only,
            audience=Audience(conversation=conversation, project=project),
        )
        return run_search(self._context, request)

    def recall(
        self, query: str | RecallRequest, *, counted: bool = True, **options: Unpack[RecallOptions]
    ) -> Recall:
        """Retrieve the memory that an agent needs before its next turn: a fenced text, and the facts, turns and passages it
        was made from. `RecallRequest` describes the arguments.

        A recalled memory counts as used, and frequently used memories become hot. `counted=False` is for a person who looks
        at a recall.
        """
        request = request_of(query, **options)
        context = self._context
        with context.events.operation(context.owner, "recall") as event:
            found = answer(context, request)
            if event is not None:
                event.memory_blocks = len(found.blocks)
                event.memory_bytes = len(found.text.encode("utf-8"))
        if counted:
            write_accesses(
                context, context.parts.access_counts.add(context.tenant, context.owner, found.used)
            )
        return found

    def recall_by_words(self, query: str | RecallRequest, **options: Unpack[RecallOptions]) -> Recall:
        """A recall by keywords alone, for an agent that cannot wait: it enriches nothing, loads no index and calls no
        model."""
        request = within_limits(self._context, request_of(query, **options))
        context = self._context
        with (
            context.events.operation(context.owner, "recall_by_words"),
            context.parts.yield_to_requests(),
            context.read() as reader,
        ):
            return recall_by_words(reader, request, context.settings, now=context.clock())

    def why_not(self, query: str | RecallRequest, expected: str, **options: Unpack[RecallOptions]) -> str:
        """Explain why such a recall includes, or does not include, the entry or memory with this id."""
        check_query(id=expected)
        request = request_of(query, **options)
        found = answer(self._context, request)
        ranked = any(hit.id == expected for hit in found.hits)
        wider = found if ranked else answer(self._context, msgspec.structs.replace(request, limits=_WIDER))
        with self._context.reading() as reader:
            return why_not(reader, expected, request, found, wider, now=self._context.clock())

    def brief(self, *, conversation: str | None = None, project: str | None = None) -> Brief:
        """The memory that an agent needs at session start, including what is scoped to this conversation or project."""
        check_query(conversation=conversation, project=project)
        audience = Audience(conversation=conversation, project=project)
        with self._context.operation("brief") as reader:
            return make_brief(reader, self._context.settings, self._context.clock(), audience)

    def feedback(
        self,
        selected: Iterable[str],
        ignored: Iterable[str] = (),
        *,
        recall: str = "",
        rating: int | None = None,
    ) -> int:
        """Record which memories of a recall were used and which were not; returns how many memories it applies to.

        Used memories gain importance, the others lose some, a little each time; a higher `rating`, from 1 to 5, gives more
        weight. Ids that are unknown, forgotten or not of a memory are ignored; an id in both lists counts as used. `recall`
        is the id of the recall, if it has one.
        """
        now = self._context.clock()
        chosen = check_ids(selected, field="selected")
        passed = [id_ for id_ in check_ids(ignored, field="ignored") if id_ not in frozenset(chosen)]
        check_rating(rating)
        name = check_name(recall or None, field="recall") or ""

        def work(writer: Writer) -> int:
            there = {id_ for id_ in (*chosen, *passed) if can_be_rated(writer.memories.get(id_))}
            rated = FeedbackPayload(
                recall=name,
                selected=tuple(id_ for id_ in chosen if id_ in there),
                ignored=tuple(id_ for id_ in passed if id_ in there),
                at=now,
                rating=rating,
            )
            if there:
                self._context.recorder.record(writer, new_id("feedback", now), Op.FEEDBACK, rated, now=now)
            return len(there)

        count = self._context.write("feedback", work)
        if count:
            with suppress(StorageError):
                enrich_briefly(self._context)
        return count

    # ── maintain and forget ──────────────────────────────────────────────────────────────────────────────────

    def enrich(self, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Derive memories and vectors for every entry that waits for it; returns the number of steps."""
        return enrich(self._context, progress)

    def compact(self, *, day: str | None = None, dry_run: bool = False) -> CompactionReport:
        """Condense the days whose retention has ended into digests and drafts, then remove their raw entries; or condense one
        day, which is removed only if its retention has ended.

        Raises `LLMFailed` if a language model is configured and does not answer: entries it has not read are not removed.
        """
        return compact(self._context, day, dry_run=dry_run)

    def forget(
        self,
        *,
        entries: Iterable[str] = (),
        key: str | None = None,
        prefix: str | None = None,
        conversation: str | None = None,
        project: str | None = None,
        document: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        everything: bool = False,
        reason: str = "",
        dry_run: bool = False,
    ) -> Receipt:
        """Forget permanently: not recalled, not searchable, not on disk, and not restored by a replay.

        An entry must match all conditions. At least one is needed; `everything=True` empties the space.
        """
        check_query(reason=reason)
        if reason == RETENTION:
            raise InvalidRequest(
                f"reason: {RETENTION!r} is what the retention policy says; give your own", field="reason"
            )
        scope = checked_scope(
            ForgetScope(
                entries=check_list(entries, field="entries"),
                key=None if key is None else key.strip(),
                prefix=prefix,
                conversation=conversation,
                project=project,
                document=document,
                since=None if since is None else parse_instant(since, field="since"),
                until=None if until is None else parse_instant(until, field="until"),
                everything=everything,
            )
        )
        if dry_run:
            self._context.catch_up()
            return self._dry_run(scope, reason)
        return finish_forget(
            self._context,
            self._context.write(
                "forget", lambda writer: self._context.recorder.forget(writer, scope, reason=reason)
            ),
        )

    def delete(self, memory_id: str) -> Receipt:
        """Forget one memory and every entry it was derived from."""
        memory_id = check_text(memory_id, field="id")

        def work(writer: Writer) -> Receipt:
            memory = writer.memories.get(memory_id)
            if memory is None:
                raise NotFound("memory", memory_id)
            if memory.kind is Kind.EPISODE:
                raise InvalidRequest(
                    "an episode is derived from its conversation; forget its conversation or entries instead",
                    field="id",
                )
            said = [memory.entry_id, *(place.own.entry_id for place in writer.claims.evidence((memory_id,)))]
            said += learned_from(writer, memory.entry_id)
            return self._context.recorder.forget(
                writer, ForgetScope(entries=tuple(dict.fromkeys(said))), reason="deleted"
            )

        return finish_forget(self._context, self._context.write("delete", work))

    def purge(self, days: int | None = None) -> int:
        """Drop memories that were superseded over `days` ago (90 by default); returns how many.

        The ledger keeps their entries; only derived rows are dropped.
        """
        now = self._context.clock()
        days = self._context.settings.purge_superseded_days if days is None else days
        if days < 0:
            raise InvalidRequest("days: give 0 or more", field="days")
        before = max(0, now - days * DAY)

        def work(writer: Writer) -> int:
            count = writer.memories.purge_superseded(before=before)
            if count:
                payload = PurgePayload(before=before, count=count)
                self._context.recorder.record(writer, new_id("purge", now), Op.PURGE, payload, now=now)
            return count

        return self._context.write("purge", work)

    def _dry_run(self, scope: ForgetScope, reason: str) -> Receipt:
        with self._context.read() as reader:
            counts = counts_of(reader, scope)
        return Receipt(
            id="",
            scope=scope_words(scope),
            counts=counts,
            reason=reason,
            at=to_datetime(self._context.clock()),
            dry_run=True,
            off_disk=None,
        )

    def _read_before_replacing(self, memory_id: str) -> None:
        """Derive the turns before a derived memory is replaced, so that a replay comes to the same result."""
        with self._context.store() as store:
            with store.read() as reader:
                memory = reader.memories.get(memory_id)
            if memory is not None and memory.derived:
                self._context.parts.worker.derive_by_rules(store)

    def _check_store_limits(self, writer: Writer, *, superseding: bool) -> None:
        if not self._context.caller.session:
            return
        used = writer.ledger.usage(self._context.caller.session)
        if used.stores >= self._context.settings.session_stores_max:
            raise LimitReached("store", self._context.settings.session_stores_max)
        if superseding and used.supersedes >= self._context.settings.session_supersedes_max:
            raise LimitReached("supersede", self._context.settings.session_supersedes_max)


def _given_id(id_: str | None, idempotency_key: str | None) -> str | None:
    if id_ is not None:
        if isinstance(id_, str) and id_.startswith(DERIVED_PREFIXES):
            raise InvalidRequest("id: ids of this form belong to what is derived; give another", field="id")
        if isinstance(id_, str) and is_variant(id_):
            raise InvalidRequest("id: ids that end like this belong to variants; give another", field="id")
        return check_text(id_, field="id", chars_max=512)
    if idempotency_key is not None:
        return keyed_id(check_text(idempotency_key, field="idempotency_key", chars_max=512))
    return None


def _seen_before(writer: Writer, id_: str) -> Retained | None:
    if writer.ledger.tombstoned([id_]):
        return Retained(id=id_, seq=0, suppressed=True)
    seq = writer.ledger.known([id_]).get(id_)
    return None if seq is None else Retained(id=id_, seq=seq, deduped=True)
