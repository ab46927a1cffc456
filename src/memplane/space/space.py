"""One space and everything one can do with it."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from memplane.clock import parse_instant
from memplane.errors import InvalidRequest, LimitReached, NotFound
from memplane.ledger.history_text import received_line, scrub_line
from memplane.ledger.ids import DERIVED_PREFIXES, current_id, is_variant, keyed_id, new_id, new_memory_id
from memplane.ledger.payloads import StorePayload, TurnPayload
from memplane.memory import projection
from memplane.memory.checks import (
    check_counts,
    check_depth,
    check_kind,
    check_limit,
    check_list,
    check_name,
    check_not_injected,
    check_query,
    check_role,
    check_scope,
    check_state,
    check_storable_kind,
    check_tags,
    check_text,
    check_tier,
    check_window,
)
from memplane.memory.facts import checked_fact
from memplane.memory.runs import (
    PACK_HISTORY,
    PIPELINE_HISTORY,
    PLAN_HISTORY,
    Defaults,
    PackRun,
    PipelineRun,
    PlanGroup,
    PlanRun,
    group_plans,
    learn,
    run_row,
)
from memplane.memory.supersession import chain_of, head_of, lineage_of
from memplane.recall.brief import Brief, make_brief
from memplane.recall.search import LIMIT_DEFAULT, LIMIT_MAX, Hit, SearchRequest, search
from memplane.safety.sanitize import sanitized_memory, sanitized_turn
from memplane.space.compacting import Compacting
from memplane.space.files import Files
from memplane.space.forgetting import Forgetting
from memplane.space.library import Library
from memplane.space.looking import Looking
from memplane.space.records import Moment
from memplane.space.rulings import Rulings
from memplane.space.writing import present
from memplane.storage.base import Category, Writer
from memplane.storage.filter import Audience, Filter
from memplane.types import (
    STORABLE_KINDS,
    Conversation,
    Memory,
    NewEntry,
    Op,
    PinnedTexts,
    Retained,
    Turn,
    Visibility,
)

_ROWS_MAX = 100_000
_CATEGORY_KEYS_MAX = 5


class Space(Files, Library, Compacting, Forgetting, Looking, Rulings):
    """The unit of isolation: one agent, user, caller or group. Cheap to make; safe to use from many threads."""

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────

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
        """Keep something that was said. Answers when it is durable; searchable at once.

        `scope` says where it may be told, and whatever is read out of it: `global`, everywhere; `project` and
        `conversation`, only to who names the same `project` or `conversation`. `document` is the id of a document that it
        is about: whoever forgets that forgets this too.

        With an `id` or an `idempotency_key`, retaining again is a no-op; without, saying the same thing twice is
        two events. A forgotten id stays forgotten. With an `idempotency_window`, the key is a no-op for that long after
        it was last kept, and names a new event afterwards.
        """
        now = self._clock()
        check_depth(metadata, field="metadata")
        said = TurnPayload(
            role=check_role(role),
            content=check_text(content, field="content", bytes_max=self._settings.entry_bytes_max),
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
        draft = self._draft(given or new_id("turn", now), Op.TURN, said)

        def work(writer: Writer) -> Retained:
            named = given
            if window is not None and idempotency_key is not None:
                named = current_id(writer, idempotency_key, now - window)
            if named is not None and (before := _seen_before(writer, named)):
                return before
            entry = projection.record(writer, msgspec.structs.replace(draft, id=named or draft.id), now)
            return Retained(id=entry.id, seq=entry.seq)

        return self._write("retain", work)

    def retain_entry(self, entry: bytes, *, pins: PinnedTexts | None = None) -> Retained:
        """Keep an entry of a session history, as a memory service is sent it. Idempotent by its own id.

        What is searchable is read from what the agent asked and what it was answered, never from what went upstream.
        `pins` is what the agent was told for it and must be told again in the same words; it is kept in the same commit,
        unless something was forgotten since it was made.
        """
        now = self._clock()
        line = received_line(entry, now=now, line_bytes_max=self._settings.entry_bytes_max)
        given = _given_id(line.id, None)
        assert given is not None
        body = scrub_line(line.line)[0] if self._settings.redact_ledger else line.line
        draft = NewEntry(given, Op.HISTORY, body, self.caller)

        def work(writer: Writer) -> Retained:
            if before := _seen_before(writer, given):
                return before
            kept = projection.record(writer, draft, now)
            if pins is not None and pins.texts and pins.erasures == writer.erasures():
                for name, text in pins.texts.items():
                    writer.pin(name, text, at=line.at)
            return Retained(id=kept.id, seq=kept.seq)

        return self._write("retain", work)

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

        `supersedes` names the memory this one replaces; where that was replaced already, the newest of its chain is.
        """
        now = self._clock()
        stored = StorePayload(
            kind=check_storable_kind(kind),
            content=check_not_injected(
                check_text(content, field="content", chars_max=self._settings.content_chars_max),
                field="content",
            ),
            at=now,
            tags=check_tags(tags, self._settings),
            conversation=check_name(conversation, field="conversation"),
            project=check_name(project, field="project"),
        )
        supersedes = check_name(supersedes, field="supersedes")
        if supersedes is not None:
            self._read_before_replacing(supersedes)

        def work(writer: Writer) -> Memory:
            self._check_store_limits(writer, superseding=supersedes is not None)
            ref = None if supersedes is None else head_of(writer, supersedes)
            entry = projection.record(writer, self._draft(new_memory_id(), Op.STORE, stored, ref), now)
            return present(writer.memory(entry.id))

        return self._write("store", work)

    def put(
        self,
        key: str,
        value: str,
        *,
        category: str | None = None,
        tags: Iterable[str] = (),
        ttl: timedelta | float | None = None,
    ) -> Memory:
        """Put a fact under a key. A second put replaces the value; `history(key)` keeps the trajectory. Without a category,
        the key keeps the one it has; an empty one is `user_facts`, as is that of a new key."""
        now = self._clock()
        bytes_max = self._settings.entry_bytes_max
        tags = check_tags(tags, self._settings)
        fact = checked_fact(key, value, category=category, tags=tags, ttl=ttl, at=now, bytes_max=bytes_max)
        keep = category is None
        return self._write("put", lambda writer: self._put(writer, Op.PUT, fact, now, keep_category=keep))

    def record_run(self, run: PackRun | PipelineRun | PlanRun) -> Memory:
        """Keep how a pack, pipeline or plan ran, for `defaults` and `plans`. Only the engine writes these."""
        now = self._clock()
        row = run_row(run, now)
        return self._write("record_run", lambda writer: self._put(writer, Op.RUN, row, now))

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, key: str) -> Memory:
        """The live value of a key."""
        check_query(key=key)
        now = self._clock()
        with self._operation("get") as reader:
            found = reader.keyed(key.strip(), now=now)
        if found is None:
            raise NotFound("key", key)
        return sanitized_memory(found, now)

    def memory(self, memory_id: str) -> Memory:
        """One memory by id, whatever its state."""
        check_query(id=memory_id)
        with self._operation("get") as reader:
            found = reader.memory(memory_id)
        if found is None:
            raise NotFound("memory", memory_id)
        return sanitized_memory(found, self._clock())

    def chain(self, memory_id: str) -> list[Memory]:
        """A memory and everything that replaced it, oldest first."""
        check_query(id=memory_id)
        now = self._clock()
        with self._operation("chain") as reader:
            found = [sanitized_memory(memory, now) for memory in chain_of(reader, memory_id)]
        if not found:
            raise NotFound("memory", memory_id)
        return found

    def lineage(self, memory_id: str) -> list[Memory]:
        """What a memory replaced, itself, and what replaced it, oldest first."""
        check_query(id=memory_id)
        now = self._clock()
        with self._operation("chain") as reader:
            found = [sanitized_memory(memory, now) for memory in lineage_of(reader, memory_id)]
        if not found:
            raise NotFound("memory", memory_id)
        return found

    def history(self, key: str) -> list[Memory]:
        """Every value a key had and has, oldest first."""
        check_query(key=key)
        now = self._clock()
        with self._operation("history") as reader:
            return [sanitized_memory(memory, now) for memory in reader.key_history(key.strip())]

    def facts(
        self, prefix: str = "", *, category: str | None = None, runs: bool = False, limit: int = 1_000
    ) -> list[Memory]:
        """Live keyed facts whose key begins with `prefix`, newest first; with `runs`, also what the engine keeps
        about runs and plans."""
        check_query(prefix=prefix, category=category)
        check_limit(limit)
        where = Filter(now=self._clock(), key_prefix=prefix, category=category, include_reserved=runs)
        with self._operation("facts") as reader:
            return [sanitized_memory(memory, where.now) for memory in reader.memories(where, limit=limit)]

    def categories(self) -> list[Category]:
        """Categories of keyed facts with their counts and the keys written last."""
        with self._operation("categories") as reader:
            return reader.categories(now=self._clock(), keys_max=_CATEGORY_KEYS_MAX)

    def defaults(self) -> Defaults:
        """What earlier runs teach about the next one."""
        return learn(
            (row.category or "", row.key or "", row.text)
            for row in self._runs("defaults", PACK_HISTORY, PIPELINE_HISTORY)
        )

    def plans(self) -> list[PlanGroup]:
        """Plans that were made for the same intent, the most frequent first."""
        return group_plans(row.text for row in self._runs("plans", PLAN_HISTORY))

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
    ) -> list[Hit]:
        """Memories, facts and turns by free text. Without a query: the newest first.

        `conversation` and `project` narrow, and say where the question comes from: what was said for one of them alone
        is found nowhere else. With `typing`, the last word may be only the beginning of one.
        """
        if not isinstance(query, str):
            raise InvalidRequest(f"query: give text, not {type(query).__name__}", field="query")
        if len(query) > self._settings.query_chars_max:
            raise InvalidRequest(
                f"query: at most {self._settings.query_chars_max:,} characters", field="query"
            )
        check_limit(limit, LIMIT_MAX)
        tags = check_list(tags, field="tags")
        if len(tags) > self._settings.tags_max:
            raise InvalidRequest(f"tags: no memory has more than {self._settings.tags_max}", field="tags")
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
            audience=Audience(conversation=conversation, project=project),
        )
        with self._operation("search") as reader:
            return search(reader, request, self._clock())

    def brief(self, *, conversation: str | None = None, project: str | None = None) -> Brief:
        """What to tell the agent at session start; with what was said for this conversation or project alone."""
        check_query(conversation=conversation, project=project)
        audience = Audience(conversation=conversation, project=project)
        with self._operation("brief") as reader:
            return make_brief(reader, self._settings, self._clock(), audience)

    def turns(self, conversation: str | None = None, *, limit: int = 100, offset: int = 0) -> list[Turn]:
        """The newest turns, newest first."""
        check_query(conversation=conversation)
        check_limit(limit)
        check_counts(offset=offset)
        with self._operation("turns") as reader:
            where = Filter(now=self._clock(), conversation=conversation, audience=None)
            found = reader.turns(where, limit=limit, offset=offset)
        return [sanitized_turn(turn) for turn in found]

    def conversations(
        self, *, project: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[Conversation]:
        """Conversations, the one that went on last first; with a project, what was said of it in each."""
        check_query(project=project)
        check_limit(limit)
        check_counts(offset=offset)
        with self._operation("conversations") as reader:
            return reader.conversations(project=project, limit=limit, offset=offset)

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
        """Memories as their owner lists them, newest first: of whatever place, and in whatever state unless one is
        given; only what has expired has to be asked for. Without `episodes`, none of them is among it."""
        check_query(predicate=predicate, conversation=conversation, project=project)
        check_limit(limit)
        check_counts(offset=offset)
        where = Filter(
            now=self._clock(),
            kinds=(check_kind(kind),) if kind is not None else () if episodes else STORABLE_KINDS,
            conversation=conversation,
            project=project,
            state=None if state is None else check_state(state),
            predicate=predicate,
            tier=None if tier is None else check_tier(tier),
            include_superseded=True,
            audience=None,
        )
        with self._operation("memories") as reader:
            return [
                sanitized_memory(memory, where.now)
                for memory in reader.memories(where, limit=limit, offset=offset)
            ]

    def newest_memories(self, limit: int) -> list[Memory]:
        """Current memories exactly as they are kept, newest first."""
        check_limit(limit)
        with self._operation("memories") as reader:
            return reader.memories(Filter(now=self._clock(), audience=None), limit=limit)

    # ── how it is done ───────────────────────────────────────────────────────────────────────────────────────

    def _runs(self, operation: str, *categories: str) -> list[Memory]:
        now = self._clock()
        with self._operation(operation) as reader:
            return [
                row
                for category in categories
                for row in reader.memories(
                    Filter(now=now, category=category, include_reserved=True), limit=_ROWS_MAX
                )
            ]

    def _read_before_replacing(self, memory_id: str) -> None:
        """What was said before a derived memory is replaced is weighed against it first, as it is in a replay."""
        with self._store() as store:
            with store.read() as reader:
                memory = reader.memory(memory_id)
            if memory is not None and memory.derived:
                self._parts.worker.derive_by_rules(store)

    def _check_store_limits(self, writer: Writer, *, superseding: bool) -> None:
        if not self.caller.session:
            return
        used = writer.usage(self.caller.session)
        if used.stores >= self._settings.session_stores_max:
            raise LimitReached("store", self._settings.session_stores_max)
        if superseding and used.supersedes >= self._settings.session_supersedes_max:
            raise LimitReached("supersede", self._settings.session_supersedes_max)


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
    if writer.tombstoned([id_]):
        return Retained(id=id_, seq=0, suppressed=True)
    seq = writer.known([id_]).get(id_)
    return None if seq is None else Retained(id=id_, seq=seq, deduped=True)
