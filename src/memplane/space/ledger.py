"""The ledger of a space: reading and proving it, appending to it in bulk, merging replicas, receipts and the audit log."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from memplane.clock import INSTANT_MAX, Instant, Moment, parse_instant, to_datetime
from memplane.compaction.days import EntryPage, entries_since
from memplane.errors import NotFound
from memplane.ledger.verify import Verification, verify
from memplane.memory import projection
from memplane.memory.checks import check_counts, check_limit, check_query
from memplane.memory.forget import receipt_of
from memplane.space.bulk import load_drafts, merge_drafts
from memplane.space.context import SpaceContext
from memplane.types import (
    AuditRecord,
    Entry,
    LoadResult,
    MergeReport,
    NewEntry,
    PinnedTexts,
    Receipt,
    Tombstone,
    Variant,
)

_BOOKMARK = "bookmark:"


class Ledger:
    """`space.ledger`: what is on record, the proof of it, and moving it in bulk."""

    def __init__(self, context: SpaceContext) -> None:
        self._context = context

    def entries(self, *, after: int = 0, limit: int = 1_000) -> list[Entry]:
        """Ledger entries in order."""
        with self._context.read() as reader:
            return reader.ledger.entries(after=after, limit=limit)

    def entries_at(self, seqs: Sequence[int]) -> list[Entry]:
        """The entries with these sequence numbers that are not erased, in order."""
        with self._context.read() as reader:
            return reader.ledger.at(seqs)

    def entries_by_id(self, ids: Iterable[str]) -> dict[str, Entry]:
        """The entries with these ids, by id; unknown ids are left out."""
        with self._context.read() as reader:
            found = (reader.ledger.get(id_) for id_ in ids)
            return {entry.id: entry for entry in found if entry is not None}

    def chained(self, *, after: int = 0, limit: int = 1_000) -> list[tuple[int, Entry]]:
        """Ledger entries in the order of the chain, each with its position."""
        with self._context.read() as reader:
            return [(row.position, row.entry) for row in reader.ledger.rows(after=after, limit=limit)]

    def position(self) -> int:
        """The last position of the chain."""
        with self._context.read() as reader:
            return reader.ledger.head().position

    def positions(self, ids: Sequence[str]) -> dict[str, int]:
        """The positions in the chain of these ids; unknown ids are left out."""
        with self._context.read() as reader:
            return reader.replica.positions(ids)

    def recordings(self, ids: Sequence[str]) -> dict[str, tuple[int, Instant]]:
        """The positions and the times of recording of these ids; unknown ids are left out."""
        with self._context.read() as reader:
            return reader.replica.recordings(ids)

    def status(self, entry_ids: Sequence[str]) -> tuple[set[str], set[str]]:
        """Two sets: the ids that are in the ledger, and those that are forgotten."""
        with self._context.read() as reader:
            forgotten = reader.ledger.tombstoned(entry_ids)
            return set(reader.ledger.known(entry_ids)) - forgotten, forgotten

    def replacements(self, entry_id: str) -> list[str]:
        """The ids of entries that replace this one, in order."""
        with self._context.read() as reader:
            return reader.ledger.replacements(entry_id)

    def turn_seqs(self, *, after: int = 0, limit: int = 1_000) -> list[int]:
        """The sequence numbers of turns in order of arrival, without forgotten ones."""
        with self._context.read() as reader:
            return reader.ledger.turn_entries(after=after, limit=limit)

    def turn_seqs_since(self, after: Instant, *, limit: int) -> EntryPage:
        """The sequence numbers of turns after a time, in order of time; see `EntryPage`."""
        with self._context.read() as reader:
            if reader.state.cursor() == reader.ledger.head().seq:
                return entries_since(reader, after, limit)
        self._context.catch_up()
        with self._context.read() as reader:
            return entries_since(reader, after, limit)

    def bookmark(self, name: str) -> str | None:
        """A saved position, for example of an importer or a sync."""
        with self._context.read() as reader:
            return reader.state.note(f"{_BOOKMARK}{name}")

    def set_bookmark(self, name: str, value: str) -> None:
        """Save a position under a name."""
        with self._context.store() as store:
            store.write(lambda writer: writer.state.set_note(f"{_BOOKMARK}{name}", value))

    def verify(
        self, *, expected: Mapping[int, str] | None = None, progress: Callable[[int], None] = lambda _: None
    ) -> Verification:
        """Prove that nothing in the ledger was changed, reordered or dropped."""
        with self._context.events.operation(self._context.owner, "verify"), self._context.read() as reader:
            return verify(reader, expected=dict(expected or {}), progress=progress)

    def check(self) -> list[str]:
        """Damage found in the files of the space."""
        with self._context.store() as store:
            return store.check()

    def unreadable(self) -> int:
        """How many entries no memory could be derived from."""
        with self._context.read() as reader:
            return int(reader.state.note(projection.UNREADABLE) or 0)

    def replay(self, *, progress: Callable[[int], None] = lambda _: None) -> int:
        """Drop the projection and derive it again from the ledger; returns how many entries were read."""
        count = self._context.write("replay", lambda writer: projection.replay(writer, progress))
        with self._context.store() as store:
            while self._context.parts.worker.derive(store):
                progress(count)
        self._context.add_audit("replay", target=None, outcome="ok", detail=f"{count} entries")
        return count

    def catch_up(self, *, progress: Callable[[int], None] = lambda _: None) -> None:
        """Make every appended entry searchable."""
        self._context.catch_up(progress)

    def load(self, drafts: Sequence[NewEntry]) -> LoadResult:
        """Append many entries at once; known and forgotten ids are left out. `catch_up` makes their turns searchable. Entries
        that have a time of recording are put in their places, as `merge` does."""
        timed = [draft for draft in drafts if draft.recorded is not None]
        merged = (
            merge_drafts(self._context, timed, {}) if timed else MergeReport(added=0, known=0, forgotten=0)
        )
        loaded = load_drafts(self._context, [draft for draft in drafts if draft.recorded is None])
        return LoadResult(
            added=loaded.added + merged.added,
            known=loaded.known + merged.known,
            forgotten=loaded.forgotten + merged.forgotten,
        )

    def merge(
        self, drafts: Sequence[NewEntry], forgets: Mapping[str, Mapping[str, str]], *, origin: str = ""
    ) -> MergeReport:
        """Merge entries and tombstones of another replica of this space: entries with their times of recording, tombstones as
        forget id to (entry id to reason). Replicas with the same entries derive the same memories, whatever arrived first.

        Give everything in one call, and forgets together with their tombstones: entries that were recorded before those in
        the ledger cause one replay per call. `origin` names the replica.
        """
        merged = merge_drafts(
            self._context,
            [msgspec.structs.replace(draft, origin=draft.origin or origin) for draft in drafts],
            forgets,
        )
        self._context.catch_up()
        return merged

    def variants(self) -> list[Variant]:
        """Entries whose id arrived with two different bodies."""
        with self._context.read() as reader:
            return reader.replica.variants()

    def add_tombstones(self, forgets: Mapping[str, Mapping[str, str]]) -> None:
        """Add imported tombstones: forget id to (entry id to reason). Without the entry of that forget, a new forget is
        recorded, with a receipt."""
        merge_drafts(self._context, [], forgets)

    def tombstones(self) -> list[Tombstone]:
        """Every forgotten id."""
        with self._context.read() as reader:
            return reader.ledger.tombstones()

    def receipts(self) -> list[Receipt]:
        """The receipts of all forgets, oldest first."""
        with self._context.read() as reader:
            return [receipt_of(row, reader) for row in reader.ledger.forgets()]

    def newest_receipts(self, *, limit: int = 50, offset: int = 0) -> list[Receipt]:
        """A page of receipts, newest first."""
        check_limit(limit)
        check_counts(offset=offset)
        with self._context.read() as reader:
            found = reader.ledger.forgets_between(-INSTANT_MAX, INSTANT_MAX, limit=limit, offset=offset)
            return [receipt_of(row, reader) for row in found]

    def receipt(self, receipt_id: str) -> Receipt:
        """One receipt by its id."""
        check_query(id=receipt_id)
        with self._context.read() as reader:
            row = reader.ledger.forget(receipt_id)
            if row is None:
                raise NotFound("receipt", receipt_id)
            return receipt_of(row, reader)

    def wipe(self) -> bool:
        """Rewrite the files, so that they contain no forgotten bytes: for a receipt that says `off_disk: false`. Returns False
        while another reader prevents it."""
        context = self._context
        with context.store() as store:
            return context.parts.stores.erasures(store, context.tenant, context.owner).finish(bytes_max=None)

    def audit(
        self, *, since: Moment | None = None, until: Moment | None = None, limit: int = 1_000
    ) -> list[AuditRecord]:
        """Operations and their callers, newest first: successful writes from the ledger, refusals and exports from the audit
        log."""
        start = None if since is None else parse_instant(since, field="since")
        end = None if until is None else parse_instant(until, field="until")
        with self._context.read() as reader:
            if start is None and end is None:
                entries, seq = reader.ledger.newest_ops(limit=limit), max(0, reader.audit.count() - limit)
            else:
                entries, seq = reader.ledger.ops(since=start, until=end, limit=limit), 0
            records = [_as_audit(entry, self._context.owner) for entry in entries]
            while rows := reader.audit.rows(after=seq):
                records += [
                    row.record
                    for row in rows
                    if (start is None or row.at >= start) and (end is None or row.at < end)
                ]
                seq = rows[-1].seq
        records.sort(key=lambda record: record.at, reverse=True)
        return records[:limit]

    def add_audit(self, action: str, *, target: str | None, outcome: str, detail: str = "") -> None:
        """Add to the audit log what the ledger does not record."""
        self._context.add_audit(action, target=target, outcome=outcome, detail=detail)

    def generation(self) -> int:
        """A number that grows with every forget: caches of recalled text from before it are invalid."""
        with self._context.read() as reader:
            return reader.state.marks().generation

    def pinned_texts(self, names: Iterable[str]) -> PinnedTexts:
        """The texts that `retain_entry` pinned under these names, in any process; unknown names are left out."""
        with self._context.read() as reader:
            found = ((name, reader.state.pinned(name)) for name in names)
            texts = {name: text for name, text in found if text is not None}
            return PinnedTexts(erasures=reader.state.erasures(), texts=texts)


def _as_audit(entry: Entry, owner: str) -> AuditRecord:
    return AuditRecord(
        at=to_datetime(entry.recorded),
        space=owner,
        actor=entry.caller.actor,
        adapter=entry.caller.adapter,
        session=entry.caller.session,
        action=entry.op.value,
        target=entry.id,
        outcome="ok",
    )
