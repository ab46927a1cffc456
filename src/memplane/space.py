"""One space and everything one can do with it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from memplane.clock import DAY, Clock, Instant, parse_instant, to_datetime, to_instant
from memplane.config import Settings
from memplane.errors import InvalidRequest, LimitReached, MemplaneError, NotFound
from memplane.governance.events import Events
from memplane.governance.redact import redact
from memplane.ledger.ids import keyed_id, new_id, new_memory_id
from memplane.ledger.payloads import Forgotten, Payload, Purged, Put, Said, Stored, decode, encode
from memplane.ledger.verify import Verification, verify
from memplane.memory import projection
from memplane.memory.brief import Brief, make_brief
from memplane.memory.checks import (
    check_asked,
    check_kind,
    check_name,
    check_news,
    check_role,
    check_tags,
    check_text,
)
from memplane.memory.facts import checked_fact
from memplane.memory.forget import checked_scope, forget, scope_words
from memplane.memory.runs import Defaults, PackRun, PipelineRun, learn, run_row
from memplane.memory.supersession import head_of
from memplane.recall.recall import Recall, recall
from memplane.recall.search import LIMIT_DEFAULT, LIMIT_MAX, Hit, SearchRequest, search
from memplane.storage.base import Category, Filter, Reader, Scope, Sizes, Store, Stores, Writer
from memplane.types import (
    AuditRecord,
    Caller,
    Draft,
    Entry,
    Loaded,
    Memory,
    Op,
    Receipt,
    Retained,
    State,
    Tombstone,
    Turn,
)

T = TypeVar("T")
Moment = datetime | str | float

_ROWS_MAX = 100_000
_CATEGORY_KEYS_MAX = 5
_CATCH_UP_PER_READ = 2_000


class Space:
    """The unit of isolation: one agent, user, caller or group. Cheap to make; safe to use from many threads."""

    def __init__(
        self,
        stores: Stores,
        tenant: str,
        owner: str,
        caller: Caller,
        settings: Settings,
        clock: Clock,
        events: Events,
    ) -> None:
        self.tenant = tenant
        self.owner = owner
        self.caller = caller
        self._stores = stores
        self._settings = settings
        self._clock = clock
        self._events = events

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────

    def retain(
        self,
        content: str,
        *,
        role: str = "user",
        conversation: str | None = None,
        project: str | None = None,
        at: Moment | None = None,
        id: str | None = None,
        idempotency_key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Retained:
        """Keep something that was said. Answers when it is durable; searchable at once.

        With an `id` or an `idempotency_key`, retaining again is a no-op; without, saying the same thing twice is
        two events. A forgotten id stays forgotten.
        """
        now = self._clock()
        said = Said(
            role=check_role(role),
            content=check_text(content, field="content", bytes_max=self._settings.entry_bytes_max),
            at=now if at is None else parse_instant(at, field="at"),
            conversation=check_name(conversation, field="conversation"),
            project=check_name(project, field="project"),
            metadata=None if metadata is None else dict(metadata),
        )
        given = _given_id(id, idempotency_key)
        draft = self._draft(given or new_id("turn", now), Op.TURN, said)

        def work(writer: Writer) -> Retained:
            if given is not None and (before := _seen_before(writer, given)):
                return before
            entry = projection.record(writer, draft, now)
            return Retained(id=entry.id, seq=entry.seq)

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
        stored = Stored(
            kind=check_kind(kind),
            content=check_news(
                check_text(content, field="content", chars_max=self._settings.content_chars_max), field="content"
            ),
            at=now,
            tags=check_tags(tags, self._settings),
            conversation=check_name(conversation, field="conversation"),
            project=check_name(project, field="project"),
        )
        supersedes = check_name(supersedes, field="supersedes")

        def work(writer: Writer) -> Memory:
            self._check_store_limits(writer, superseding=supersedes is not None)
            ref = None if supersedes is None else head_of(writer, supersedes)
            entry = projection.record(writer, self._draft(new_memory_id(), Op.STORE, stored, ref), now)
            return _present(writer.memory(entry.id))

        return self._write("store", work, refused=True)

    def put(
        self,
        key: str,
        value: str,
        *,
        category: str | None = None,
        tags: Iterable[str] = (),
        ttl: timedelta | float | None = None,
    ) -> Memory:
        """Put a fact under a key. A second put replaces the value; `history(key)` keeps the trajectory."""
        now = self._clock()
        bytes_max = self._settings.entry_bytes_max
        tags = check_tags(tags, self._settings)
        fact = checked_fact(key, value, category=category, tags=tags, ttl=ttl, at=now, bytes_max=bytes_max)
        return self._write("put", lambda writer: self._put(writer, Op.PUT, fact, now))

    def record_run(self, run: PackRun | PipelineRun) -> Memory:
        """Keep how a pack or pipeline ran, for `defaults`. Only the engine writes these."""
        now = self._clock()
        row = run_row(run, now)
        return self._write("record_run", lambda writer: self._put(writer, Op.RUN, row, now))

    # ── forgetting ───────────────────────────────────────────────────────────────────────────────────────────

    def delete(self, memory_id: str) -> Receipt:
        """Forget one memory, and with it the entry it came from."""
        memory_id = check_text(memory_id, field="id")

        def work(writer: Writer) -> Receipt:
            memory = writer.memory(memory_id)
            if memory is None:
                raise NotFound("memory", memory_id)
            return self._forget(writer, Scope(entries=(memory.entry_id,)), reason="deleted")

        return self._finish_forget(self._write("delete", work, refused=True))

    def forget(
        self,
        *,
        entries: Iterable[str] = (),
        key: str | None = None,
        prefix: str | None = None,
        conversation: str | None = None,
        project: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        everything: bool = False,
        reason: str = "",
        dry_run: bool = False,
    ) -> Receipt:
        """Forget for good: not recalled, not searchable, not on disk, not back after a replay.

        Conditions narrow each other. At least one is needed; `everything=True` empties the space.
        """
        if isinstance(entries, str):
            raise InvalidRequest("entries: give a list of ids, not one text", field="entries")
        check_asked(reason=reason)
        scope = checked_scope(
            Scope(
                entries=tuple(entries),
                key=key,
                prefix=prefix,
                conversation=conversation,
                project=project,
                since=None if since is None else parse_instant(since, field="since"),
                until=None if until is None else parse_instant(until, field="until"),
                everything=everything,
            )
        )
        self._catch_up_fully()
        if dry_run:
            return self._dry_run(scope, reason)
        return self._finish_forget(
            self._write("forget", lambda writer: self._forget(writer, scope, reason=reason), refused=True)
        )

    def sweep(self) -> int:
        """Erase what has expired; returns how many facts that were."""
        scope = Scope(expired_by=self._clock())
        with self._read() as reader:
            if not reader.in_scope(scope, limit=1):
                return 0
        receipt = self._write(
            "sweep", lambda writer: self._forget(writer, scope, reason="expired", op=Op.SWEEP)
        )
        self._finish_forget(receipt)
        return receipt.counts["facts"] + receipt.counts["runs"]

    def purge(self, days: int | None = None) -> int:
        """Drop memories that were superseded over `days` ago (90 by default); returns how many.

        The ledger keeps the entries: a purge is about what is derived.
        """
        now = self._clock()
        days = self._settings.purge_superseded_days if days is None else days
        if days < 0:
            raise InvalidRequest("days: give 0 or more", field="days")
        before = max(0, now - days * DAY)

        def work(writer: Writer) -> int:
            count = writer.purge_superseded(before=before)
            if count:
                payload = Purged(before=before, count=count)
                projection.record(writer, self._draft(new_id("purge", now), Op.PURGE, payload), now)
            return count

        return self._write("purge", work)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────

    def get(self, key: str) -> Memory:
        """The live value of a key."""
        check_asked(key=key)
        now = self._clock()
        with self._operation("get") as reader:
            found = reader.keyed(key.strip(), now=now)
        if found is None:
            raise NotFound("key", key)
        return _shown(found, now)

    def memory(self, memory_id: str) -> Memory:
        """One memory by id, whatever its state."""
        check_asked(id=memory_id)
        with self._operation("get") as reader:
            found = reader.memory(memory_id)
        if found is None:
            raise NotFound("memory", memory_id)
        return _shown(found, self._clock())

    def history(self, key: str) -> list[Memory]:
        """Every value a key had and has, oldest first."""
        check_asked(key=key)
        now = self._clock()
        with self._operation("history") as reader:
            return [_shown(memory, now) for memory in reader.key_history(key.strip())]

    def facts(self, prefix: str = "", *, category: str | None = None, limit: int = 1_000) -> list[Memory]:
        """Live keyed facts whose key begins with `prefix`, newest first."""
        check_asked(prefix=prefix, category=category)
        where = Filter(now=self._clock(), key_prefix=prefix, category=category)
        with self._operation("facts") as reader:
            return [_shown(memory, where.now) for memory in reader.memories(where, limit=limit)]

    def categories(self) -> list[Category]:
        """Categories of keyed facts with their counts and the keys written last."""
        with self._operation("categories") as reader:
            return reader.categories(now=self._clock(), keys_max=_CATEGORY_KEYS_MAX)

    def defaults(self) -> Defaults:
        """What earlier runs teach about the next one."""
        where = Filter(now=self._clock(), key_prefix="", include_reserved=True)
        with self._operation("defaults") as reader:
            rows = reader.memories(where, limit=_ROWS_MAX)
        return learn((row.category or "", row.key or "", row.text) for row in rows)

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
    ) -> list[Hit]:
        """Memories, facts and turns by free text. Without a query: the newest first."""
        if len(query) > self._settings.query_chars_max:
            raise InvalidRequest(
                f"query: at most {self._settings.query_chars_max:,} characters", field="query"
            )
        if not 1 <= limit <= LIMIT_MAX:
            raise InvalidRequest(f"limit: give 1 to {LIMIT_MAX}", field="limit")
        tags = tuple(tags)
        check_asked(conversation=conversation, project=project, category=category)
        for tag in tags:
            check_asked(tag=tag)
        request = SearchRequest(
            query=query.encode("utf-8", "replace").decode("utf-8"),
            kinds=tuple(check_kind(kind) for kind in kinds),
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
        )
        with self._operation("search") as reader:
            return search(reader, request, self._clock())

    def recall(self, query: str, *, conversation: str | None = None) -> Recall:
        """What to tell the agent before its next turn."""
        check_asked(conversation=conversation)
        with self._operation("recall") as reader:
            return recall(
                reader,
                query.encode("utf-8", "replace").decode("utf-8")[: self._settings.query_chars_max],
                conversation=conversation,
                settings=self._settings,
                now=self._clock(),
                degraded=_lags(reader),
            )

    def brief(self) -> Brief:
        """What to tell the agent at session start."""
        with self._operation("brief") as reader:
            return make_brief(reader, self._settings, self._clock())

    def turns(self, conversation: str | None = None, *, limit: int = 100) -> list[Turn]:
        """The newest turns, newest first."""
        check_asked(conversation=conversation)
        with self._operation("turns") as reader:
            return reader.turns(Filter(now=self._clock(), conversation=conversation), limit=limit)

    def newest_memories(self, limit: int) -> list[Memory]:
        """Current memories exactly as they are kept, newest first."""
        with self._operation("memories") as reader:
            return reader.memories(Filter(now=self._clock()), limit=limit)

    def lag(self) -> int:
        """How many entries are retained but cannot be searched yet."""
        with self._read() as reader:
            return _lag(reader)

    # ── the ledger ───────────────────────────────────────────────────────────────────────────────────────────

    def entries(self, *, after: int = 0, limit: int = 1_000) -> list[Entry]:
        """Ledger entries in order."""
        with self._read() as reader:
            return reader.entries(after=after, limit=limit)

    def verify(
        self, *, expected: Mapping[int, str] | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> Verification:
        """Prove that nothing in the ledger was changed, reordered or dropped. Receipts are checked as witnesses."""
        with self._operation("verify") as reader:
            return verify(reader, expected=dict(expected or {}), progress=progress)

    def replay(self, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Drop the projection and derive it again from the ledger; returns how many entries were read."""
        count = self._write("replay", lambda writer: projection.replay(writer, progress))
        self.note_audit("replay", target=None, outcome="ok", detail=f"{count} entries")
        return count

    def receipts(self) -> list[Receipt]:
        """Every forget there was, oldest first."""
        found: list[Receipt] = []
        with self._read() as reader:
            seq = 0
            while rows := reader.ledger_rows(after=seq):
                found += [_receipt(row.entry, row.digest) for row in rows if row.entry.op is Op.FORGET]
                seq = rows[-1].entry.seq
        return found

    def audit(
        self, *, since: Moment | None = None, until: Moment | None = None, limit: int = 1_000
    ) -> list[AuditRecord]:
        """Who did what, newest first: the ledger says what succeeded, the audit log what was refused or read out."""
        start = None if since is None else parse_instant(since, field="since")
        end = None if until is None else parse_instant(until, field="until")
        with self._read() as reader:
            records = [
                _as_audit(entry, self.owner) for entry in reader.ops(since=start, until=end, limit=limit)
            ]
            seq = 0
            while rows := reader.audit(after=seq):
                records += [
                    row.record
                    for row in rows
                    if (start is None or row.at >= start) and (end is None or row.at < end)
                ]
                seq = rows[-1].seq
        records.sort(key=lambda record: record.at, reverse=True)
        return records[:limit]

    def stats(self) -> Sizes:
        """How much the space holds."""
        with self._read() as reader:
            return reader.sizes(now=self._clock())

    def check(self) -> list[str]:
        """What is wrong with the space's files; empty when nothing is."""
        with self._store() as store:
            return store.check()

    def note_audit(self, action: str, *, target: str | None, outcome: str, detail: str = "") -> None:
        """Add to the audit log what the ledger does not record."""
        now = self._clock()

        def work(writer: Writer) -> None:
            writer.add_audit(
                at=now,
                caller=self.caller,
                action=action,
                target=target,
                outcome=outcome,
                detail=redact(detail).text,
            )

        with self._store() as store:
            store.write(work)

    def load(self, drafts: Sequence[Draft], *, erased: Mapping[str, str] = MappingProxyType({})) -> Loaded:
        """Append many entries at once, those with a known or forgotten id left out. `catch_up` makes their turns
        searchable. Entries in `erased` (id to reason) leave only their tombstone and their place."""
        now = self._clock()

        def work(writer: Writer) -> Loaded:
            ids = [draft.id for draft in drafts]
            forgotten = writer.tombstoned(ids)
            seen = set(writer.known(ids))
            fresh: dict[str, Draft] = {}
            for draft in drafts:
                if draft.id not in seen and draft.id not in forgotten:
                    fresh.setdefault(draft.id, draft)
            projection.load(writer, list(fresh.values()), now)
            _bury(writer, {id_: reason for id_, reason in erased.items() if id_ in fresh}, now)
            return Loaded(
                added=len(fresh), known=len(drafts) - len(fresh) - len(forgotten), forgotten=len(forgotten)
            )

        with self._store() as store:
            return store.write(work)

    def bury(self, reasons: Mapping[str, str]) -> None:
        """Tombstones (id to reason) for entries that may never have been here, as an import brings them."""
        now = self._clock()
        with self._store() as store:
            store.write(lambda writer: _bury(writer, reasons, now))

    def tombstones(self) -> list[Tombstone]:
        """Every forgotten id."""
        with self._read() as reader:
            return reader.tombstones()

    def catch_up(self, *, progress: Callable[[int], None] = lambda _: None) -> None:
        """Make everything that was appended searchable."""
        with self._store() as store:
            while (ahead := store.write(projection.catch_up)) > 0:
                progress(ahead)
            while store.write(lambda writer: writer.index_turns()):
                pass

    # ── how it is done ───────────────────────────────────────────────────────────────────────────────────────

    def _store(self) -> AbstractContextManager[Store]:
        return self._stores.open(self.tenant, self.owner, create=True)

    @contextmanager
    def _read(self) -> Iterator[Reader]:
        with self._store() as store, store.read() as reader:
            yield reader

    @contextmanager
    def _operation(self, name: str) -> Iterator[Reader]:
        """A read that sees everything retained so far, even if a bulk import was cut off before its end."""
        with self._events.operation(self.owner, name), self._store() as store:
            with store.read() as reader:
                if reader.cursor() == reader.head().seq:
                    yield reader
                    return
            store.write(lambda writer: projection.catch_up(writer, _CATCH_UP_PER_READ))
            with store.read() as reader:
                yield reader

    def _write(self, name: str, work: Callable[[Writer], T], *, refused: bool = False) -> T:
        with self._events.operation(self.owner, name), self._store() as store:
            try:
                return store.write(work)
            except (LimitReached, NotFound) as exc:
                if refused:
                    self.note_audit(name, target=None, outcome=f"refused: {exc.code}", detail=str(exc))
                raise

    def _draft(self, id_: str, op: Op, payload: Payload, ref: str | None = None) -> Draft:
        try:
            body = encode(_redacted(payload) if self._settings.redact_ledger else payload)
        except (TypeError, ValueError, OverflowError, RecursionError) as exc:
            raise InvalidRequest(f"the entry cannot be written as JSON ({exc}); give plain values") from exc
        if len(body) > self._settings.entry_bytes_max:
            raise InvalidRequest(
                f"the entry has {len(body):,} bytes and at most {self._settings.entry_bytes_max:,} are kept; split it"
            )
        return Draft(id_, op, body, self.caller, ref)

    def _put(self, writer: Writer, op: Op, fact: Put, now: Instant) -> Memory:
        # An expired value that was not swept yet still occupies the key, but the key begins anew.
        before = writer.keyed(fact.key, now=-(1 << 62))
        if before is not None and not _has_expired(before, now):
            fact = msgspec.structs.replace(fact, created=to_instant(before.created_at))
        draft = self._draft(new_id(op.value, now), op, fact, None if before is None else before.id)
        entry = projection.record(writer, draft, now)
        return _present(writer.memory(entry.id))

    def _check_store_limits(self, writer: Writer, *, superseding: bool) -> None:
        if not self.caller.session:
            return
        used = writer.usage(self.caller.session)
        if used.stores >= self._settings.session_stores_max:
            raise LimitReached("store", self._settings.session_stores_max)
        if superseding and used.supersedes >= self._settings.session_supersedes_max:
            raise LimitReached("supersede", self._settings.session_supersedes_max)

    def _forget(self, writer: Writer, scope: Scope, *, reason: str, op: Op = Op.FORGET) -> Receipt:
        limited = self.caller.session and op is Op.FORGET
        if limited and writer.usage(self.caller.session).deletes >= self._settings.session_deletes_max:
            raise LimitReached("delete", self._settings.session_deletes_max)
        now = self._clock()

        def record(payload: Forgotten) -> Entry:
            return projection.record(writer, self._draft(payload.receipt, op, payload), now)

        return forget(writer, scope, reason=reason, now=now, record=record)

    def _dry_run(self, scope: Scope, reason: str) -> Receipt:
        with self._read() as reader:
            counts = reader.count_scope([seq for seq, _ in reader.in_scope(scope)])
        return Receipt(
            id="",
            scope=scope_words(scope),
            counts=counts,
            reason=reason,
            at=to_datetime(self._clock()),
            dry_run=True,
        )

    def _finish_forget(self, receipt: Receipt) -> Receipt:
        with self._store() as store:
            return msgspec.structs.replace(receipt, off_disk=store.wipe())

    def _catch_up_fully(self) -> None:
        with self._read() as reader:
            behind = reader.cursor() < reader.head().seq
        if behind:
            self.catch_up()


def _bury(writer: Writer, reasons: Mapping[str, str], now: Instant) -> None:
    known = writer.known(list(reasons))
    for reason in sorted(set(reasons.values())):
        victims = [(known.get(id_, 0), id_) for id_, why in reasons.items() if why == reason]
        writer.erase(victims, seq=writer.head().seq, at=now, reason=reason)


def _given_id(id_: str | None, idempotency_key: str | None) -> str | None:
    if id_ is not None:
        return check_text(id_, field="id", chars_max=512)
    if idempotency_key is not None:
        return keyed_id(check_text(idempotency_key, field="idempotency_key", chars_max=512))
    return None


def _seen_before(writer: Writer, id_: str) -> Retained | None:
    if writer.tombstoned([id_]):
        return Retained(id=id_, seq=0, suppressed=True)
    seq = writer.known([id_]).get(id_)
    return None if seq is None else Retained(id=id_, seq=seq, deduped=True)


def _present(memory: Memory | None) -> Memory:
    if memory is None:
        raise MemplaneError("a memory vanished while it was written; this is a bug")
    return memory


def _shown(memory: Memory, now: Instant) -> Memory:
    """A memory as it may leave: rules may have been added since it was derived, and time has passed."""
    text = redact(memory.text).text
    state = memory.state
    if _has_expired(memory, now) and state is not State.SUPERSEDED:
        state = State.EXPIRED
    if text == memory.text and state is memory.state:
        return memory
    return msgspec.structs.replace(memory, text=text, state=state)


def _has_expired(memory: Memory, now: Instant) -> bool:
    return memory.expires_at is not None and to_instant(memory.expires_at) <= now


def _redacted(payload: Payload) -> Payload:
    """Every text of it by itself: in JSON a secret would end in the middle of an escape, and what follows could then
    pass for another field."""
    plain = {name: _redacted_value(value) for name, value in msgspec.to_builtins(payload).items()}
    return msgspec.convert(plain, type(payload))


def _redacted_value(value: Any, name: str = "") -> Any:
    match value:
        case str():
            named = f"{name}=" if name else ""
            return redact(named + value).text.removeprefix(named)
        case dict():
            return {redact(key).text: _redacted_value(inner, key) for key, inner in value.items()}
        case list() | tuple():
            return [_redacted_value(inner, name) for inner in value]
    return value


def _lag(reader: Reader) -> int:
    return reader.index_lag() + reader.head().seq - reader.cursor()


def _lags(reader: Reader) -> tuple[str, ...]:
    waiting = _lag(reader)
    return (f"indexing: {waiting:,} entries cannot be searched yet",) if waiting else ()


def _receipt(entry: Entry, digest: bytes) -> Receipt:
    payload = decode(entry)
    assert isinstance(payload, Forgotten)
    return Receipt(
        id=payload.receipt,
        scope=payload.scope,
        counts=payload.counts,
        reason=payload.reason,
        at=to_datetime(payload.at),
        seq=entry.seq,
        digest=digest.hex(),
    )


def _as_audit(entry: Entry, owner: str) -> AuditRecord:
    return AuditRecord(
        at=to_datetime(entry.recorded),
        space=owner,
        actor=entry.caller.actor,
        door=entry.caller.door,
        session=entry.caller.session,
        action=entry.op.value,
        target=entry.id,
        outcome="ok",
    )
