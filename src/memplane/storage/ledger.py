"""The ledger: entries in order, the hash chain, tombstones, and which entries a forget covers."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import cast

import msgspec

from memplane.clock import INSTANT_MAX, SECOND, Instant, just_after, to_datetime
from memplane.entropy import random_bytes
from memplane.storage import conditions, rows
from memplane.storage.chain import GENESIS, SALT_BYTES, entry_digest, payload_digest
from memplane.storage.compaction import erase_lines
from memplane.storage.documents import erase_documents
from memplane.storage.engine import Row
from memplane.storage.filter import EntryFilter, ForgetScope
from memplane.storage.memories import drop_memories
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX, turn_number
from memplane.storage.session import ALL, FOREVER, SessionReader, WriteSession
from memplane.storage.state import unpin
from memplane.types import Caller, Entry, LedgerHead, NewEntry, Op, Tombstone

SCANNED_MAX = 50_000
"""How many entries are scanned for those that pass a filter."""
_TIME_WINDOW = 10_000
"""How many turns said in a time range are scanned, and how many entries recorded in it."""
_OPS = frozenset(Op)


class EntryTime(msgspec.Struct, frozen=True, order=True, gc=False):
    """An entry with a turn in it, and when the turn was said."""

    seq: int
    at: Instant


class SessionUsage(msgspec.Struct, frozen=True):
    """How much of its limits a session has used."""

    stores: int
    supersedes: int
    deletes: int


class LedgerRow(msgspec.Struct, frozen=True):
    """One row as the chain sees it, for verification."""

    entry: Entry
    salt: bytes | None
    payload_digest: bytes
    digest: bytes
    tombstoned: bool
    position: int
    """Its place in the chain."""
    origin: str
    chained_id: str
    """The id that the chain covers: the one the entry came with."""


class LedgerReader(SessionReader):
    """Reads of the ledger."""

    def head(self) -> LedgerHead:
        """The last place of the ledger and the end of its chain; zeros if it is empty."""
        row = self._session.one("head")
        return LedgerHead(0, GENESIS, 0) if row is None else LedgerHead(*row)

    def get(self, entry_id: str) -> Entry | None:
        """The entry with this id, erased or not; None if there never was one."""
        row = self._session.one("entry", id=entry_id)
        return None if row is None else rows.entry_from(row)

    def entries(self, *, after: int = 0, limit: int = 1_000) -> list[Entry]:
        """Entries in order, those with seq > after."""
        return [rows.entry_from(row) for row in self._session.all("entries", after=after, limit=limit)]

    def at(self, seqs: Sequence[int]) -> list[Entry]:
        """The entries at these places that still have a payload, in order."""
        return [rows.entry_from(row) for row in self._session.all("entries_at", seqs=list(seqs))]

    def turn_entries(self, *, after: int, limit: int) -> list[int]:
        """The seqs of turns and histories with seq > after that still have a payload, in order."""
        return [seq for (seq,) in self._session.all("said", after=after, limit=limit)]

    def turn_entries_between(
        self, after: Instant, until: Instant | None, *, limit: int | None
    ) -> list[EntryTime]:
        """Entries with turns, by the time of the turn (after < at < until), then by seq. The time of a retained
        turn is cut to whole seconds, as in a session history."""
        found = self._session.all(
            "said_between",
            after=after,
            until=FOREVER if until is None else until,
            whole=after - after % SECOND + SECOND,
            limit=ALL if limit is None else limit,
        )
        return [EntryTime(seq, at - at % SECOND if op == Op.TURN else at) for seq, at, op in found]

    def known(self, entry_ids: Sequence[str]) -> dict[str, int]:
        """Those of these ids that are in the ledger, with their seq."""
        return dict(self._session.all("known", ids=list(entry_ids)))

    def tombstoned(self, entry_ids: Sequence[str]) -> set[str]:
        """Those of these ids that are forgotten."""
        return {id_ for (id_,) in self._session.all("tombstoned", ids=list(entry_ids))}

    def tombstones(self) -> list[Tombstone]:
        """Every tombstone, by id. An id has one tombstone for each forget that covers it."""
        return [
            Tombstone(
                id=id_, at=to_datetime(at), reason=reason, position=position, forget_id=forget_id, cause=cause
            )
            for id_, at, reason, position, forget_id, cause in self._session.all("tombstones")
        ]

    def hidden(self) -> list[Entry]:
        """Entries that have a payload but no turn, memory or document: unreadable, empty after cleaning, or
        purged."""
        return [rows.entry_from(row) for row in self._session.all("hidden")]

    def rows(self, *, after: int = 0, limit: int = 1_000) -> list[LedgerRow]:
        """Rows as the chain sees them, for verification: in its order, those with position > after."""
        return [_row_from(row) for row in self._session.all("ledger_rows", after=after, limit=limit)]

    def forgets(self) -> list[LedgerRow]:
        """The rows of every forget, in order, without sweeps."""
        return [_row_from(row) for row in self._session.all("forgets")]

    def replacement(self, entry_id: str) -> str | None:
        """The id of the last entry whose `ref` this is, forgotten or not."""
        row = self._session.one("replacement", id=entry_id)
        return None if row is None else str(row[0])

    def replacements(self, entry_id: str) -> list[str]:
        """The ids of all entries that replace this one, in order. There are several if two replicas replaced it
        independently."""
        return [str(id_) for (id_,) in self._session.all("replacements", id=entry_id)]

    def usage(self, session: str) -> SessionUsage:
        """What a session used of its limits. Counted from the ledger, so it survives a restart, a replay and a
        forget."""
        return SessionUsage(*(self._session.one("usage", session=session) or (0, 0, 0)))

    def in_scope(self, scope: ForgetScope) -> list[tuple[int, str]]:
        """(seq, id) of the entries a forget of this scope would erase."""
        if scope.everything:
            found = self._session.all("scope_everything")
        elif scope.entries:
            found = self._session.all("erasable", ids=list(scope.entries))
        else:
            found = self._session.all("seq_ids", seqs=self._scope_seqs(scope))
        return [(seq, id_) for seq, id_ in found]

    def count_scope(self, seqs: Sequence[int]) -> dict[str, int]:
        """How many rows depend on these entries, by kind. Episodes depend on a whole conversation and are not
        counted. `claims` counts the places in these entries that are evidence for a derived memory."""
        packed = list(seqs)
        (turns,) = self._session.one("count_turns", seqs=packed) or (0,)
        memories, facts, runs, claims = self._session.one("count_memories", seqs=packed)
        documents, spans, collections = self._session.one("count_library", seqs=packed)
        return {
            "entries": len(seqs),
            "turns": turns,
            "memories": memories,
            "facts": facts,
            "runs": runs,
            "claims": claims,
            "documents": documents,
            "spans": spans,
            "collections": collections,
        }

    def ops(self, *, since: Instant | None, until: Instant | None, limit: int) -> list[Entry]:
        """Entries without bodies, last recorded first: the audit trail of successful operations."""
        found = self._session.all(
            "ops",
            since=-FOREVER if since is None else since,
            until=FOREVER if until is None else until,
            limit=limit,
        )
        return [rows.entry_from(row) for row in found]

    def with_payload(self, entry_ids: Sequence[str]) -> set[str]:
        """Those of these entries that still have a payload."""
        return {id_ for (id_,) in self._session.all("payloads_left", ids=list(entry_ids))}

    def get_many(self, entry_ids: Sequence[str]) -> list[Entry]:
        """The entries with these ids, erased or not, in order."""
        return [rows.entry_from(row) for row in self._session.all("entries_of", ids=list(entry_ids))]

    def forgets_between(
        self, begin: Instant, end: Instant, *, limit: int, offset: int = 0
    ) -> list[LedgerRow]:
        """Forgets recorded after `begin` and not after `end`, newest first."""
        found = self._session.all("forgets_between", begin=begin, end=end, limit=limit, offset=offset)
        return [_row_from(row) for row in found]

    def forget(self, entry_id: str) -> LedgerRow | None:
        """The row of one forget."""
        row = self._session.one("forget_row", id=entry_id)
        return None if row is None else _row_from(row)

    def before(self, seq: int, where: EntryFilter, *, limit: int) -> list[Entry]:
        """Entries before this place that pass the filter, last first, erased or not. Scans at most
        `SCANNED_MAX` entries, and fewer for a time range."""
        wanted = conditions.of_entries(where)
        if where.conversation is None and (where.since is not None or where.until is not None):
            return self._entries_of_time(seq, where, wanted, limit)
        floor = 0 if where.conversation is not None else seq - SCANNED_MAX
        found = self._session.filtered("entries_before", wanted, before=seq, floor=floor, limit=limit)
        return [rows.entry_from(row) for row in found]

    def last_recorded_before(self, at: Instant) -> int:
        """The last place that was recorded before then; 0 if there is none."""
        # Places are in the order of time, and there is no index of time.
        return bisect_left(range(1, self._last_place() + 1), at, key=self._recorded_at)

    def newest_ops(self, *, limit: int) -> list[Entry]:
        """As `ops`, in the order of the ledger, which may differ only until a merge puts it in order; cheap at
        any size."""
        return [rows.entry_from(row) for row in self._session.all("newest_ops", limit=limit)]

    def _scope_seqs(self, scope: ForgetScope) -> list[int]:
        session, seqs = self._session, set[int]()
        keyed = scope.key is not None or scope.prefix is not None or scope.expired_by is not None
        if scope.document is None:
            seqs.update(seq for (seq,) in session.filtered("scope_memories", conditions.memories_in(scope)))
        if not keyed:
            seqs.update(seq for (seq,) in session.filtered("scope_turns", conditions.turns_in(scope)))
        if scope.conversation is None and not keyed:
            seqs.update(seq for (seq,) in session.filtered("scope_shelf", conditions.shelf_in(scope)))
        if scope.document is None and not keyed:
            seqs.update(seq for (seq,) in session.filtered("scope_promoted", conditions.promoted_in(scope)))
        return sorted(seqs)

    def _entries_of_time(
        self, seq: int, where: EntryFilter, wanted: conditions.WhereClause, limit: int
    ) -> list[Entry]:
        """Scans the last turns said in that time, and the last entries recorded in it."""
        since = -INSTANT_MAX if where.since is None else where.since
        until = INSTANT_MAX if where.until is None else where.until
        last = min(seq, self.last_recorded_before(until) + 1)
        first = max(self.last_recorded_before(since) + 1, last - _TIME_WINDOW)
        times = {"since": since, "until": until, "turns": turn_number(seq, 0), "window": _TIME_WINDOW}
        places = {"first": first, "last": last, "before": seq}
        found = self._session.filtered("entries_of_time", wanted, **{**times, **places}, limit=limit)
        return [rows.entry_from(row) for row in found]

    def _last_place(self) -> int:
        row = self._session.one("last_entry")
        return 0 if row is None else int(row[0])

    def _recorded_at(self, seq: int) -> Instant:
        row = self._session.one("entry_from_place", seq=seq)
        return INSTANT_MAX if row is None else int(row[1])


class LedgerWriter(LedgerReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def head(self) -> LedgerHead:
        """The last place of the ledger and the end of its chain; zeros if it is empty."""
        return self._session.head

    def known(self, entry_ids: Sequence[str]) -> dict[str, int]:
        """Those of these ids that are in the ledger, with their seq."""
        wanted = frozenset(entry_ids)
        found: dict[str, int] = dict(self._session.connection.execute("known", {"ids": list(entry_ids)}))
        found.update((row[1], row[0]) for row in self._session.entries if row[1] in wanted)
        return found

    def tombstoned(self, entry_ids: Sequence[str]) -> set[str]:
        """Those of these ids that are forgotten."""
        found = self._session.connection.execute("tombstoned", {"ids": list(entry_ids)})
        return {id_ for (id_,) in found}

    def append(self, drafts: Sequence[NewEntry], *, recorded: Instant) -> list[Entry]:
        """Append entries to the ledger and to the chain. Their ids must be new (see `known`); a repeated id
        fails the whole commit.

        `recorded` is the time of entries without a time of their own, or a microsecond after the last entry if
        the clock is behind it, so that no later entry sorts before an earlier one. An entry with a time of its
        own must sort after the last entry; see `Replica.place` for others.
        """
        session = self._session
        first = session.head.seq + 1
        entries = chain(session, drafts, range(first, first + len(drafts)), recorded)
        session.head = LedgerHead(session.head.seq + len(drafts), session.head.digest, session.head.position)
        return entries

    def hide(self, seq: int) -> None:
        """Mark an entry without turn, memory or document, so that `hidden` finds it although no scope does.
        Erasing it, or `clear_projection`, removes the mark. `purge_superseded` hides the entries of what it
        removes."""
        self._session.many("hide", [(seq,)])

    def erase(
        self,
        victims: Sequence[tuple[int, str]],
        *,
        position: int,
        at: Instant,
        reason: str,
        causes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Add tombstones for these (seq, id) pairs, for the forget at this position of the chain, and remove
        their payloads, rows and index entries. A pair with seq 0 is an id that is not in the ledger yet: it
        gets its tombstone, too. `causes` gives, for entries that the forget did not name, the one because of
        which they are erased. Erasing again changes nothing."""
        indexed = self._session.indexed()
        self._session.many(
            "add_tombstone", [(id_, position, at, reason, causes.get(id_)) for _, id_ in victims]
        )
        seqs = [victim for victim, _ in victims if victim]
        for victim in seqs:
            first = victim * TURNS_PER_ENTRY_MAX
            span = (first, first + TURNS_PER_ENTRY_MAX)
            texts = self._session.all("turn_texts", first=span[0], beyond=span[1])
            self._session.words.drop("turn", [(n, text) for n, text in texts if n <= indexed])
            self._session.many("drop_turns", [span] if texts else [])
            self._session.many("drop_turn_vectors", [span] if texts else [])
            drop_memories(self._session, self._session.all("memory_texts", seq=victim))
            drop_memories(self._session, self._session.all("cited_rows", seq=victim))
            self._session.many("drop_evidence_of_entry", [(victim,)])
            self._session.many("drop_purged", [(victim,)])
        erase_documents(self._session, seqs)
        erase_lines(self._session, seqs)
        self._session.many("unhide", [(victim,) for victim in seqs])
        self._session.many("drop_payload", [(victim,) for victim in seqs])
        if self._session.note("lost_vectors") != "0":  # it looks at every vector of the space
            self._session.run("drop_lost_vectors")
            self._session.set_note("lost_vectors", "0")
        self._session.run("grow_generation")
        unpin(self._session)


def chain(
    session: WriteSession, drafts: Sequence[NewEntry], places: Sequence[int], recorded: Instant
) -> list[Entry]:
    """Add the next links of the chain, at these places of the ledger."""
    entries = []
    digest, position, last = session.head.digest, session.head.position, session.recorded
    salts = random_bytes(SALT_BYTES * len(drafts))
    for number, (draft, seq) in enumerate(zip(drafts, places, strict=True)):
        position += 1
        salt = salts[number * SALT_BYTES : (number + 1) * SALT_BYTES]
        of_payload = payload_digest(salt, draft.body)
        before = last
        last = max(recorded, just_after(last)) if draft.recorded is None else draft.recorded
        if draft.recorded is None and last == before:
            # At the end of time, ids decide the order: with the next merge.
            session.set_note("ordered", "0")
        digest = entry_digest(digest, of_payload, position, draft, last)
        by, id_, op, ref = draft.caller, draft.id, draft.op, draft.ref
        header = (seq, id_, op, last, by.actor, by.adapter, by.session, ref)
        session.entries.append((*header, of_payload, digest, position, draft.origin))
        if not draft.erased:
            session.payloads.append((position, salt, draft.body))
        entries.append(Entry(seq, id_, op, last, by, ref, None if draft.erased else draft.body))
    session.head, session.recorded = LedgerHead(session.head.seq, digest, position), last
    return entries


def _row_from(row: Row) -> LedgerRow:
    """An unknown op is kept as it is, so that verification names it instead of failing."""
    seq, id_, op, recorded, actor, adapter, session, ref, body = row[:9]
    salt, of_payload, digest, tombstoned, position, origin, chained_id = row[9:]
    known = Op(op) if op in _OPS else cast("Op", op)
    entry = Entry(seq, id_, known, recorded, Caller(actor, adapter, session), ref, body)
    return LedgerRow(entry, salt, of_payload, digest, bool(tombstoned), position, origin, chained_id or id_)
