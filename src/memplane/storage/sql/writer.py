"""`Writer` in SQL."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from memplane.clock import Instant, just_after
from memplane.entropy import random_bytes
from memplane.storage.base import PINS_MAX
from memplane.storage.chain import GENESIS, SALT_BYTES, audit_digest, entry_digest, payload_digest
from memplane.storage.index import TURNS_PER_ENTRY_MAX, Marks
from memplane.storage.moving import LEDGER, META, Row, Table
from memplane.storage.sql import rows
from memplane.storage.sql.claims import SqlClaimWriter
from memplane.storage.sql.compaction import SqlCompactionWriter
from memplane.storage.sql.episodes import SqlEpisodeWriter
from memplane.storage.sql.index import SqlIndexWriter
from memplane.storage.sql.library import SqlLibraryWriter
from memplane.storage.sql.moving import SqlMoveWriter
from memplane.storage.sql.replica import Move, SqlReplicaWriter
from memplane.storage.sql.rulings import SqlRulingWriter
from memplane.storage.sql.statements import Statements
from memplane.storage.sql.view import SqlReader
from memplane.types import Caller, Entry, LedgerHead, Memory, NewEntry, Turn, searchable

_NEVER = -(1 << 62)
_PROJECTED = (
    *("turn", "memory", "memory_tag", "hidden", "evidence", "conflict", "cited", "untold"),
    *("overruled", "purged"),
    *("document", "section", "span", "collection", "member", "shelf_entry"),
    *("promoted", "promoted_from", "judgement", "verdict", "ruling"),
)

INDEX_TURNS_MIN = 128
"""So many new turns make an index segment worth writing."""
INDEX_TURNS_MAX = 4_096


class SqlWriter(
    SqlReader,
    SqlIndexWriter,
    SqlClaimWriter,
    SqlEpisodeWriter,
    SqlLibraryWriter,
    SqlCompactionWriter,
    SqlReplicaWriter,
    SqlRulingWriter,
    SqlMoveWriter,
):
    """The same inside a write transaction. See `Writer`.

    Several works share a transaction. What they append waits in memory and is written together, so a work that
    only appends touches no SQL and needs no savepoint; any other work gets one. Turns reach the index some dozens
    at a time, because an index takes many as easily as one; until then readers look through them one by one.
    """

    def __init__(self, statements: Statements, owner: str) -> None:
        super().__init__(statements, owner)
        self._seen = None
        self._start()
        self._ledger: list[rows.Row] = []
        self._payloads: list[rows.Row] = []
        self._turns: list[rows.Row] = []
        self._turns_added = False
        self.begin_work()

    def _start(self) -> None:
        """Where the space stands."""
        started: Any = self._statements.one("start") or (0, GENESIS, 0, _NEVER, 0, 0, 0)
        seq, digest, position, recorded, cursor, indexed, positions = started
        if position != positions:  # the last entry came in before some that stand before it
            started = self._statements.one("chain_end")
            digest, position = started
        self._recorded: Instant = recorded
        self._head = LedgerHead(seq, digest, position)
        self._cursor = self._written_cursor = int(cursor)
        self._indexed_before = int(indexed)

    def begin_work(self) -> None:
        self._begun = (self._lengths(), self._head, self._cursor, self._recorded)
        self._saved = False

    def end_work(self) -> None:
        if self._saved:
            self._write_rows()
            self._statements.keep()

    def undo_work(self) -> None:
        lengths, self._head, self._cursor, self._recorded = self._begun
        if self._saved:
            self._statements.undo()
            lengths = (0, 0, 0)  # what others appended was written before the savepoint
        for waiting, length in zip(self._all_waiting(), lengths, strict=True):
            del waiting[length:]

    def finish(self) -> None:
        """Write whatever waits; the transaction is about to be committed."""
        self._write_rows()
        if (
            self._turns_added
            and self._head.seq - self._indexed_before // TURNS_PER_ENTRY_MAX >= INDEX_TURNS_MIN
        ):
            self._saved = True  # nothing can be undone any more
            while self.index_turns(at_least=INDEX_TURNS_MIN):
                pass
        if self._cursor != self._written_cursor:
            self._many("set_note", [("cursor", str(self._cursor))])

    def head(self) -> LedgerHead:
        return self._head

    def cursor(self) -> int:
        return self._cursor

    def marks(self) -> Marks:
        return msgspec.structs.replace(super().marks(), cursor=self._cursor)

    def known(self, entry_ids: Sequence[str]) -> dict[str, int]:
        wanted = frozenset(entry_ids)
        found: dict[str, int] = dict(self._statements.all("known", {"ids": self._list(entry_ids)}))
        found.update((row[1], row[0]) for row in self._ledger if row[1] in wanted)
        return found

    def tombstoned(self, entry_ids: Sequence[str]) -> set[str]:
        return {id_ for (id_,) in self._statements.all("tombstoned", {"ids": self._list(entry_ids)})}

    def index_turns(self, *, at_least: int = 1, limit: int = INDEX_TURNS_MAX) -> int:
        """Take waiting turns into the index, if there are enough to be worth a segment; returns how many.

        The index grows in the ledger's order: turns beyond the cursor wait until those before them are projected.
        """
        beyond = (self._cursor + 1) * TURNS_PER_ENTRY_MAX
        found = self._all("tail_texts", indexed=self._indexed(), beyond=beyond, limit=limit)
        if len(found) < at_least:
            return 0
        self._words.add("turn", found)
        self._set_note("indexed", str(found[-1][0]))
        return len(found)

    def append(self, drafts: Sequence[NewEntry], *, recorded: Instant) -> list[Entry]:
        first = self._head.seq + 1
        entries = self._chain(drafts, range(first, first + len(drafts)), recorded)
        self._head = LedgerHead(self._head.seq + len(drafts), self._head.digest, self._head.position)
        return entries

    def place(self, drafts: Sequence[NewEntry]) -> list[Move]:
        self._ready()
        fresh, places, moves = self._make_room(drafts)
        self._chain(fresh, places, _NEVER)
        self._write_rows()
        last = self._one("last_entry")
        if last is not None:
            self._head = LedgerHead(last[0], self._head.digest, self._head.position)
            self._recorded = last[1]
        return moves

    def restore(self, table: Table, copied: Sequence[Row]) -> None:
        super().restore(table, copied)
        if table in (LEDGER, META):
            self._start()

    def _chain(self, drafts: Sequence[NewEntry], places: Sequence[int], recorded: Instant) -> list[Entry]:
        """The next links of the chain, at these places of the ledger."""
        entries = []
        digest, position, last = self._head.digest, self._head.position, self._recorded
        salts = random_bytes(SALT_BYTES * len(drafts))
        for number, (draft, seq) in enumerate(zip(drafts, places, strict=True)):
            position += 1
            salt = salts[number * SALT_BYTES : (number + 1) * SALT_BYTES]
            of_payload = payload_digest(salt, draft.body)
            before = last
            last = max(recorded, just_after(last)) if draft.recorded is None else draft.recorded
            if draft.recorded is None and last == before:
                # At the end of time, ids decide: with the next merge.
                self._set_note("ordered", "0")
            digest = entry_digest(digest, of_payload, position, draft, last)
            by, id_, op, ref = draft.caller, draft.id, draft.op, draft.ref
            header = (seq, id_, op, last, by.actor, by.door, by.session, ref)
            self._ledger.append((*header, of_payload, digest, position, draft.origin))
            if not draft.erased:
                self._payloads.append((position, salt, draft.body))
            entries.append(Entry(seq, id_, op, last, by, ref, None if draft.erased else draft.body))
        self._head, self._recorded = LedgerHead(self._head.seq, digest, position), last
        return entries

    def project(self, turns: Iterable[Turn] = (), memories: Iterable[Memory] = ()) -> None:
        for turn in turns:
            self._turns.append(rows.turn_row(turn))
        for memory in memories:
            self._ready()
            (n,) = self._statements.one("add_memory", rows.memory_row(memory))
            self._words.add("memory", [(n, memory.searchable)])
            self._many("add_tag", [(tag, n) for tag in dict.fromkeys(memory.tags)])

    def add_episodes(self, episodes: Sequence[tuple[Memory, Sequence[int]]]) -> None:
        self.project(memories=[memory for memory, _ in episodes])
        self._many("add_cited", [(seq, memory.id) for memory, seqs in episodes for seq in seqs])

    def drop_episodes(self, conversation: str) -> None:
        found = self._all("episode_rows", conversation=conversation)
        self._drop_memories(found)
        self._grow_generation(found)

    def supersede(self, memory_id: str, *, by: str, at: Instant) -> bool:
        changed = self._run("supersede", by, at, memory_id) > 0
        self.settle(memory_id)
        return changed

    def purge_superseded(self, *, before: Instant) -> int:
        found = self._all("superseded_before", before=before)
        self._many("note_purged", [(before,)])
        self._drop_memories(found)
        self._many("hide", [(seq,) for _, _, _, _, seq, _, turn in found if turn is None])
        self._grow_generation(found)
        if found:
            self._unpin()
        return len(found)

    def hide(self, seq: int) -> None:
        self._ready()
        self._many("hide", [(seq,)])

    def set_cursor(self, seq: int) -> None:
        self._cursor = seq

    def clear_projection(self) -> None:
        self._ready()
        self._set_note("indexed", "0")
        self._words.clear()
        self._statements.clear(_PROJECTED)
        for query in ("forget_embedded", "grow_generation", "grow_library"):
            self._run(query)
        self._unpin()
        self._set_note("lost_vectors", "1")
        self.set_derived(0)
        self.set_cursor(0)

    def erase(
        self,
        victims: Sequence[tuple[int, str]],
        *,
        position: int,
        at: Instant,
        reason: str,
        causes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._ready()
        indexed = self._indexed()
        self._many("add_tombstone", [(id_, position, at, reason, causes.get(id_)) for _, id_ in victims])
        seqs = [victim for victim, _ in victims if victim]
        for victim in seqs:
            first = victim * TURNS_PER_ENTRY_MAX
            span = (first, first + TURNS_PER_ENTRY_MAX)
            texts = self._all("turn_texts", first=span[0], beyond=span[1])
            self._words.drop("turn", [(n, text) for n, text in texts if n <= indexed])
            self._many("drop_turns", [span] if texts else [])
            self._many("drop_turn_vectors", [span] if texts else [])
            self._drop_memories(self._all("memory_texts", seq=victim))
            self._drop_memories(self._all("cited_rows", seq=victim))
            self._many("drop_evidence_of_entry", [(victim,)])
            self._many("drop_purged", [(victim,)])
        self._erase_library(seqs)
        self._erase_promoted(seqs)
        self._many("unhide", [(victim,) for victim in seqs])
        self._many("drop_payload", [(victim,) for victim in seqs])
        if self._note("lost_vectors") != "0":  # it looks at every vector of the space
            self._run("drop_lost_vectors")
            self._set_note("lost_vectors", "0")
        self._run("grow_generation")
        self._unpin()

    def add_audit(
        self, *, at: Instant, caller: Caller, action: str, target: str | None, outcome: str, detail: str
    ) -> None:
        last = self._one("last_audit")
        seq, previous = (0, GENESIS) if last is None else last
        digest = audit_digest(previous, seq + 1, at, caller, action, target, outcome, detail)
        row = (
            seq + 1,
            at,
            caller.actor,
            caller.door,
            caller.session,
            action,
            target,
            outcome,
            detail,
            digest,
        )
        self._many("add_audit", [row])
        self._set_note("audited", str(seq + 1))

    def set_note(self, name: str, value: str) -> None:
        self._set_note(f"note:{name}", value)

    def pin(self, name: str, text: str, *, at: Instant) -> None:
        self._ready()
        self._many("pin", [(name, at, text)])
        self._many("drop_old_pins", [(PINS_MAX,)])

    def _unpin(self) -> None:
        self._run("drop_pins")
        self._run("count_erasure")

    def _ready(self) -> None:
        """Before a work's first SQL: write what waits, that of the works before it outside its savepoint."""
        if not self._saved:
            own = [
                waiting[length:] for waiting, length in zip(self._all_waiting(), self._begun[0], strict=True)
            ]
            for waiting, length in zip(self._all_waiting(), self._begun[0], strict=True):
                del waiting[length:]
            self._write_rows()
            self._statements.save()
            self._saved = True
            self._ledger, self._payloads, self._turns = own
        self._write_rows()

    def _write_rows(self) -> None:
        self._many("add_ledger", self._ledger)
        self._many("add_payload", self._payloads)
        self._many("add_turn", self._turns)
        self._turns_added = self._turns_added or bool(self._turns)
        for waiting in (self._ledger, self._payloads, self._turns):
            waiting.clear()

    def _all_waiting(self) -> tuple[list[rows.Row], ...]:
        return self._ledger, self._payloads, self._turns

    def _lengths(self) -> tuple[int, ...]:
        return len(self._ledger), len(self._payloads), len(self._turns)

    def _grow_generation(self, gone: Sequence[Any]) -> None:
        if gone:
            self._run("grow_generation")

    def _drop_memories(self, found: Sequence[Any]) -> None:
        for n, text, key, tags, _, id_, _ in found:
            self._words.drop("memory", [(n, searchable(text, key, rows.tags_from(tags)))])
            self._many("drop_tags", [(n,)])
            self._many("drop_memory", [(n,)])
            self.settle(id_)
            for query in ("drop_memory_vector", "drop_evidence", "drop_cited", "drop_access"):
                self._many(query, [(id_,)])
