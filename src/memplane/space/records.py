"""The ledger side of a space: what is on record, the proof of it, and moving it in bulk."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from memplane.clock import Instant, parse_instant, to_datetime
from memplane.compaction.days import EntryPage, entries_since
from memplane.errors import NotFound
from memplane.ledger.payloads import (
    KEEPING,
    DerivePayload,
    ForgetPayload,
    PromotePayload,
    TurnPayload,
    decode,
    decode_body,
    encode,
)
from memplane.ledger.verify import Verification, verify
from memplane.memory import projection
from memplane.memory.forget import receipt_of, write_tombstones
from memplane.memory.merge import MergeResult, merge
from memplane.safety.sanitize import sanitized_memory, sanitized_turn
from memplane.space.access import Access, redacted
from memplane.space.timeline import TimelineEvent, recent_names, timeline_event, timeline_page
from memplane.storage.base import Reader, SpaceSizes, Writer
from memplane.storage.compaction import RETENTION
from memplane.storage.filter import EntryFilter, ForgetScope
from memplane.storage.index import TURNS_PER_ENTRY_MAX, turn_number
from memplane.types import (
    AboutDocument,
    AuditRecord,
    Entry,
    LoadResult,
    Memory,
    MergeReport,
    NewEntry,
    Op,
    PinnedTexts,
    Receipt,
    Tombstone,
    Turn,
    Variant,
)

Moment = datetime | str | float

_BOOKMARK = "bookmark:"
_ALONG = "forgotten with what it was read from"


class Records(Access):
    """What came in, in order, and who brought it."""

    def entries(self, *, after: int = 0, limit: int = 1_000) -> list[Entry]:
        """Ledger entries in order."""
        with self._read() as reader:
            return reader.entries(after=after, limit=limit)

    def chained(self, *, after: int = 0, limit: int = 1_000) -> list[tuple[int, Entry]]:
        """Ledger entries in the order in which they came in here, each with its position in the chain."""
        with self._read() as reader:
            return [(row.position, row.entry) for row in reader.ledger_rows(after=after, limit=limit)]

    def positions(self, ids: Sequence[str]) -> dict[str, int]:
        """Of these ids, those in the ledger, with their positions in the chain."""
        with self._read() as reader:
            return reader.positions(ids)

    def recordings(self, ids: Sequence[str]) -> dict[str, tuple[int, Instant]]:
        """The same, each with when it was recorded too."""
        with self._read() as reader:
            return reader.recordings(ids)

    def position(self) -> int:
        """The last position of the chain."""
        with self._read() as reader:
            return reader.head().position

    def entries_at(self, seqs: Sequence[int]) -> list[Entry]:
        """Those of these entries that are still there, in order."""
        with self._read() as reader:
            return reader.entries_at(seqs)

    def entries_named(self, ids: Iterable[str]) -> dict[str, Entry]:
        """Those of these entries that are there, by id."""
        with self._read() as reader:
            found = (reader.entry(id_) for id_ in ids)
            return {entry.id: entry for entry in found if entry is not None}

    def replacements(self, entry_id: str) -> list[str]:
        """Everything that was written to replace it, in order."""
        with self._read() as reader:
            return reader.replacements(entry_id)

    def about_documents(self, memories: Iterable[Memory]) -> dict[str, AboutDocument]:
        """By entry, the documents that turns were said to be about from which these memories were read."""
        seqs = sorted({memory.seq for memory in memories if memory.derived})
        if not seqs:
            return {}
        said = [(entry.id, decode(entry)) for entry in self.entries_at(seqs) if entry.op is Op.TURN]
        return {
            id_: AboutDocument(payload.document, payload.document_name)
            for id_, payload in said
            if isinstance(payload, TurnPayload) and payload.document is not None
        }

    def said(self, *, after: int = 0, limit: int = 1_000) -> list[int]:
        """Where in the ledger something was said, in the order it came in; what was forgotten is not among it."""
        with self._read() as reader:
            return reader.said(after=after, limit=limit)

    def said_since(self, after: Instant, *, limit: int) -> EntryPage:
        """Where something was said after then, in the order it was said; see `EntryPage`."""
        with self._read() as reader:
            if reader.cursor() == reader.head().seq:
                return entries_since(reader, after, limit)
        self.catch_up()
        with self._read() as reader:
            return entries_since(reader, after, limit)

    def bookmark(self, name: str) -> str | None:
        """How far somebody got who brings entries from elsewhere."""
        with self._read() as reader:
            return reader.note(f"{_BOOKMARK}{name}")

    def set_bookmark(self, name: str, value: str) -> None:
        with self._store() as store:
            store.write(lambda writer: writer.set_note(f"{_BOOKMARK}{name}", value))

    def verify(
        self, *, expected: Mapping[int, str] | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> Verification:
        """Prove that nothing in the ledger was changed, reordered or dropped."""
        with self._events.operation(self.owner, "verify"), self._read() as reader:
            return verify(reader, expected=dict(expected or {}), progress=progress)

    def replay(self, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Drop the projection and derive it again from the ledger; returns how many entries were read."""
        count = self._write("replay", lambda writer: projection.replay(writer, progress))
        with self._store() as store:
            while self._parts.worker.derive(store):
                progress(count)
        self.note_audit("replay", target=None, outcome="ok", detail=f"{count} entries")
        return count

    def receipts(self) -> list[Receipt]:
        """Every forget there was, oldest first."""
        with self._read() as reader:
            return [receipt_of(row) for row in reader.forgets()]

    def turns_of(self, entry_id: str) -> list[Turn]:
        """What an entry shows of what was said."""
        with self._read() as reader:
            entry = reader.entry(entry_id)
            if entry is None:
                return []
            first = turn_number(entry.seq, 0)
            found = reader.turns_between(first, first + TURNS_PER_ENTRY_MAX - 1)
        return [sanitized_turn(turn) for turn in found]

    def timeline(
        self, narrowed: EntryFilter | None = None, *, before: int | None = None, limit: int = 50
    ) -> list[TimelineEvent]:
        """The ledger as a person reads it, the newest first; `before` goes on where a page ended."""
        with self._read() as reader:
            return timeline_page(reader, narrowed or EntryFilter(), before=before, limit=limit)

    def names_lately(self) -> tuple[list[str], list[str]]:
        """The conversations and the doors of what came in last, to narrow a timeline by."""
        with self._read() as reader:
            return recent_names(reader)

    def happening(self, entry_id: str) -> TimelineEvent:
        """One entry of it."""
        with self._read() as reader:
            entry = reader.entry(entry_id)
            if entry is None:
                raise NotFound("entry", entry_id)
            return timeline_event(reader, entry)

    def memories_from(self, entry_id: str) -> list[Memory]:
        """What was read out of an entry, whatever became of it."""
        now = self._clock()
        with self._read() as reader:
            seq = reader.known([entry_id]).get(entry_id)
            found = [] if seq is None else reader.memories_from([seq])
        return [sanitized_memory(memory, now) for memory in found]

    def tombstones(self) -> list[Tombstone]:
        """Every forgotten id."""
        with self._read() as reader:
            return reader.tombstones()

    def audit(
        self, *, since: Moment | None = None, until: Moment | None = None, limit: int = 1_000
    ) -> list[AuditRecord]:
        """Who did what, newest first: the ledger says what succeeded, the audit log what was refused or read out."""
        start = None if since is None else parse_instant(since, field="since")
        end = None if until is None else parse_instant(until, field="until")
        with self._read() as reader:
            if start is None and end is None:
                entries, seq = reader.newest_ops(limit=limit), max(0, reader.audit_size() - limit)
            else:
                entries, seq = reader.ops(since=start, until=end, limit=limit), 0
            records = [_as_audit(entry, self.owner) for entry in entries]
            while rows := reader.audit(after=seq):
                records += [
                    row.record
                    for row in rows
                    if (start is None or row.at >= start) and (end is None or row.at < end)
                ]
                seq = rows[-1].seq
        records.sort(key=lambda record: record.at, reverse=True)
        return records[:limit]

    def stats(self) -> SpaceSizes:
        """How much the space holds."""
        with self._read() as reader:
            return reader.sizes(now=self._clock())

    def generation(self) -> int:
        """Grows whenever something is forgotten: whoever kept what was told before must not tell it again."""
        with self._read() as reader:
            return reader.marks().generation

    def pins(self, names: Iterable[str]) -> PinnedTexts:
        """What was pinned under these names by `retain_entry`, at any process; what is not there is left out."""
        with self._read() as reader:
            found = ((name, reader.pinned(name)) for name in names)
            texts = {name: text for name, text in found if text is not None}
            return PinnedTexts(erasures=reader.erasures(), texts=texts)

    def lag(self) -> int:
        """How many entries are retained but cannot be searched yet."""
        with self._read() as reader:
            return lag_of(reader)

    def unreadable(self) -> int:
        """How many entries no memory could be derived from."""
        with self._read() as reader:
            return int(reader.note(projection.UNREADABLE) or 0)

    def check(self) -> list[str]:
        """What is wrong with the space's files; empty when nothing is."""
        with self._store() as store:
            return store.check()

    def load(self, drafts: Sequence[NewEntry]) -> LoadResult:
        """Append many entries at once, those with a known or forgotten id left out. `catch_up` makes their turns
        searchable. Those that were recorded elsewhere before are put in their places, as `merge` does."""
        timed = [draft for draft in drafts if draft.recorded is not None]
        merged = self._merge(timed, {}) if timed else MergeReport(added=0, known=0, forgotten=0)
        loaded = self._load([draft for draft in drafts if draft.recorded is None])
        return LoadResult(
            added=loaded.added + merged.added,
            known=loaded.known + merged.known,
            forgotten=loaded.forgotten + merged.forgotten,
        )

    def _load(self, drafts: Sequence[NewEntry]) -> LoadResult:
        now = self._clock()
        if self._settings.redact_ledger:
            drafts = [_redacted_draft(draft) for draft in drafts]

        def work(writer: Writer) -> LoadResult:
            ids = [draft.id for draft in drafts]
            forgotten = writer.tombstoned(ids) | _of_forgotten(writer, drafts)
            seen = set(writer.known(ids))
            fresh: dict[str, NewEntry] = {}
            for draft in drafts:
                if draft.id not in seen and draft.id not in forgotten:
                    fresh.setdefault(draft.id, draft)
            self._note_receipts(_forgets_among(fresh.values()))
            self._note_library(fresh.values())
            projection.load(writer, list(fresh.values()), now)
            dropped = sum(draft.id in forgotten for draft in drafts)
            return LoadResult(added=len(fresh), known=len(drafts) - len(fresh) - dropped, forgotten=dropped)

        with self._store() as store:
            return store.write(work)

    def merge(
        self, drafts: Sequence[NewEntry], forgets: Mapping[str, Mapping[str, str]], *, origin: str = ""
    ) -> MergeReport:
        """Take in what another replica of this space knows: its entries, each with the time it was recorded at, and its
        tombstones, forget id to (entry id to reason). Whatever came first, replicas that know the same remember the same.

        Give all there is in one call, and forgets together with their tombstones: where something was recorded before
        what is here, one call derives everything anew, once. `origin` names the replica.
        """
        merged = self._merge(
            [msgspec.structs.replace(draft, origin=draft.origin or origin) for draft in drafts], forgets
        )
        self.catch_up()
        return merged

    def variants(self) -> list[Variant]:
        """Bodies that came under an id which another body has."""
        with self._read() as reader:
            return reader.variants()

    def _merge(self, drafts: Sequence[NewEntry], forgets: Mapping[str, Mapping[str, str]]) -> MergeReport:
        now = self._clock()
        drafts = [
            draft if draft.recorded is not None else msgspec.structs.replace(draft, recorded=now)
            for draft in drafts
        ]
        if self._settings.redact_ledger:
            drafts = [_redacted_draft(draft) for draft in drafts]

        def work(writer: Writer) -> MergeResult:
            taken = merge(writer, drafts, forgets, now=now, same=_is_redacted)
            self._note_receipts(_forgets_among(taken.fresh))
            self._note_library(taken.fresh)
            for forget_id, reasons in taken.unrecorded.items():
                self._bury(writer, forget_id, reasons, now)
            along = self._bury_promoted(writer, forgets, taken.fresh, now)
            for id_ in taken.variants:
                writer.add_audit(
                    at=now,
                    caller=self.caller,
                    action="merge",
                    target=id_,
                    outcome="variant",
                    detail="another body has its id",
                )
            return msgspec.structs.replace(taken, erased=taken.erased or along)

        with self._events.operation(self.owner, "merge"), self._store() as store:
            self._parts.worker.derive_by_rules(
                store
            )  # what is at odds with what comes is weighed in its order
            taken = store.write(work)
            if taken.erased or taken.unrecorded:
                self._parts.indexes.drop(self.tenant, self.owner)
                store.wipe(bytes_max=self._settings.wipe_now_bytes_max)
            self._derive_again(store)
        self._parts.notify(self.tenant, self.owner)
        added = sum(not draft.erased for draft in taken.fresh)
        return MergeReport(
            added=added,
            known=len(drafts) - added - taken.forgotten,
            forgotten=taken.forgotten,
            moved=taken.moved,
            variants=taken.variants,
        )

    def standing(self, entry_ids: Sequence[str]) -> tuple[set[str], set[str]]:
        """Of these ids: (those in the ledger, those forgotten)."""
        with self._read() as reader:
            forgotten = reader.tombstoned(entry_ids)
            return set(reader.known(entry_ids)) - forgotten, forgotten

    def bury(self, forgets: Mapping[str, Mapping[str, str]]) -> None:
        """Tombstones that an import brings: forget id to (entry id to reason). Where that forget was imported too, they
        are its own; otherwise one is recorded here, with a receipt."""
        self._merge([], forgets)

    def _bury(self, writer: Writer, forget_id: str, reasons: Mapping[str, str], now: Instant) -> None:
        """Somebody forgot these, and there is no record of it: then it is recorded that they are forgotten here."""
        ids = list(reasons)
        erasable = {id_: seq for seq, id_ in writer.in_scope(ForgetScope(entries=tuple(ids)))}
        records = {entry.id for entry in writer.entries_of(ids) if entry.op in projection.RECORDS}
        passed = records | writer.tombstoned(ids)
        victims = [(erasable.get(id_, 0), id_) for id_ in ids if id_ not in passed]
        if not victims:
            return

        reason = reasons[victims[0][1]]
        record = self._recorded(writer, now)
        write_tombstones(
            writer, victims, scope={"imported": forget_id}, reason=reason, now=now, record=record
        )

    def _bury_promoted(
        self,
        writer: Writer,
        forgets: Mapping[str, Mapping[str, str]],
        fresh: Iterable[NewEntry],
        now: Instant,
    ) -> bool:
        """What compaction kept of something that somebody forgot, even where retention took the thing itself before; and
        whether there was any. Under a forget of its own: the one elsewhere did not know of it."""
        forgotten = {
            id_ for reasons in forgets.values() for id_, reason in reasons.items() if reason != RETENTION
        }
        lines = writer.lines_from(list(forgotten)) if forgotten else []
        came = [draft.id for draft in fresh if draft.op in KEEPING]
        lines += writer.lines_at(came) if came else []
        lost = writer.forgotten_by_someone([id_ for line in lines for id_ in line.sources])
        victims = {line.id: line.seq for line in lines if not lost.isdisjoint(line.sources)}
        if victims:
            pairs = [(seq, id_) for id_, seq in victims.items()]
            scope = {"promoted_from": sorted(lost)}
            write_tombstones(
                writer, pairs, scope=scope, reason=_ALONG, now=now, record=self._recorded(writer, now)
            )
        return bool(victims)

    def _recorded(self, writer: Writer, now: Instant) -> Callable[[ForgetPayload], Entry]:
        """How a forget of this caller comes into the ledger."""

        def record(payload: ForgetPayload) -> Entry:
            self._note_receipts([payload])
            return projection.record(writer, self._draft(payload.receipt, Op.FORGET, payload), now)

        return record


def _of_forgotten(writer: Writer, drafts: Sequence[NewEntry]) -> set[str]:
    """What a model read out of an entry that is forgotten here is forgotten too, and so is what compaction kept of one,
    unless retention alone took it."""
    kept = {
        draft.id: payload.sources
        for draft in drafts
        if draft.op in KEEPING
        and draft.body
        and isinstance(payload := decode_body(draft.op, draft.body), PromotePayload)
    }
    lost = writer.forgotten_by_someone([id_ for ids in kept.values() for id_ in ids]) if kept else set()
    sources = {
        draft.id: record.entry
        for draft in drafts
        if draft.op is Op.DERIVE
        and draft.body
        and isinstance(record := decode_body(draft.op, draft.body), DerivePayload)
    }
    gone = writer.tombstoned(list(sources.values())) if sources else set()
    return {id_ for id_, source in sources.items() if source in gone} | {
        id_ for id_, ids in kept.items() if not lost.isdisjoint(ids)
    }


def _forgets_among(drafts: Iterable[NewEntry]) -> Iterator[ForgetPayload]:
    for draft in drafts:
        if draft.op is Op.FORGET and draft.body:
            forgotten = decode_body(draft.op, draft.body)
            assert isinstance(forgotten, ForgetPayload)
            yield forgotten


def _redacted_draft(draft: NewEntry) -> NewEntry:
    """A history line stays as it is, because its id proves its bytes."""
    if draft.op is Op.HISTORY or not draft.body:
        return draft
    return msgspec.structs.replace(draft, body=encode(redacted(decode_body(draft.op, draft.body))))


def _is_redacted(draft: NewEntry, body: bytes) -> bool:
    """Whether a body that is here is this one without its secrets, or the other way round: one replica takes them out."""
    if draft.op is Op.HISTORY or not draft.body or not body:
        return False
    here = msgspec.structs.replace(draft, body=body)
    return _redacted_draft(draft).body == body or _redacted_draft(here).body == draft.body


def lag_of(reader: Reader) -> int:
    return reader.index_lag() + reader.head().seq - reader.cursor()


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
