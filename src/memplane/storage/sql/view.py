"""`Reader` and `Writer` in SQL."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import msgspec

from memplane.clock import SECOND, Instant, just_after, to_datetime
from memplane.entropy import random_bytes
from memplane.storage.base import PINS_MAX, AuditRow, Category, LedgerRow, SaidAt, Sizes, Usage
from memplane.storage.chain import GENESIS, SALT_BYTES, audit_digest, entry_digest, payload_digest
from memplane.storage.filter import EVERYWHERE, Audience, Filter, Scope
from memplane.storage.index import TURNS_PER_ENTRY_MAX, Marks
from memplane.storage.moving import LEDGER, META, Row, Table
from memplane.storage.sql import conditions, rows
from memplane.storage.sql.claims import SqlClaimReader, SqlClaimWriter
from memplane.storage.sql.compaction import SqlCompactionReader, SqlCompactionWriter
from memplane.storage.sql.episodes import SqlEpisodeReader, SqlEpisodeWriter
from memplane.storage.sql.index import SqlIndexReader, SqlIndexWriter
from memplane.storage.sql.library import SqlLibraryReader, SqlLibraryWriter
from memplane.storage.sql.moving import SqlMoveReader, SqlMoveWriter
from memplane.storage.sql.overview import SqlOverviewReader
from memplane.storage.sql.replica import Move, SqlReplicaReader, SqlReplicaWriter
from memplane.storage.sql.rulings import SqlRulingReader, SqlRulingWriter
from memplane.storage.sql.statements import ALL, Statements
from memplane.storage.words import held_words, stems_of
from memplane.types import (
    AuditRecord,
    Caller,
    Conversation,
    Draft,
    Entry,
    Head,
    Memory,
    Op,
    Tombstone,
    Turn,
    searchable,
)

_FOREVER = 1 << 62
_NEVER = -_FOREVER
NOTES = ("notes",)
_STEADY = frozenset(
    {
        *("head", "marks", "models", "note", "library_marks", "ruled"),
        *("waiting_count", "spans_waiting_count", "undistilled_count"),
        *("flagged_size", "quarantined_turns", "stale_turns"),
    }
)
"""Where a space stands; one recall asks for it some twenty times."""

_PROJECTED = (
    *("turn", "memory", "memory_tag", "hidden", "evidence", "conflict", "cited", "untold"),
    *("overruled", "purged"),
    *("document", "section", "span", "collection", "member", "shelf_entry"),
    *("promoted", "promoted_from", "judgement", "verdict", "ruling"),
)

INDEX_TURNS_MIN = 128
"""So many new turns make an index segment worth writing."""
INDEX_TURNS_MAX = 4_096
TAIL_TURNS_MAX = 1_024
"""So many turns outside the index a search still looks through."""


class SqlReader(
    SqlIndexReader,
    SqlClaimReader,
    SqlEpisodeReader,
    SqlLibraryReader,
    SqlCompactionReader,
    SqlReplicaReader,
    SqlMoveReader,
    SqlOverviewReader,
    SqlRulingReader,
):
    """One consistent view of a space. See `Reader`."""

    def __init__(self, statements: Statements, owner: str) -> None:
        super().__init__(statements)
        self._owner = owner
        self._tail_stems: dict[int, frozenset[str]] = {}
        self._seen: dict[tuple[Any, ...], Any] | None = {}
        """What was asked before and cannot change while one looks; a writer has none."""

    def ahead(self, *work: Callable[["SqlReader"], object]) -> None:
        """Nothing is gained where the rows are in this process."""

    def _one(self, query: str, /, **parameters: Any) -> Any:
        if self._seen is None or query not in _STEADY:
            return super()._one(query, **parameters)
        asked = (query, *parameters.values())
        if asked not in self._seen:
            self._look_around(self._seen, asked)
        if asked not in self._seen:
            self._seen[asked] = super()._one(query, **parameters)
        return self._seen[asked]

    def _all(self, query: str, /, **parameters: Any) -> list[Any]:
        if self._seen is None or query not in _STEADY:
            return super()._all(query, **parameters)
        asked = (query, *parameters.values())
        if asked not in self._seen:
            self._look_around(self._seen, asked)
        if asked not in self._seen:
            self._seen[asked] = super()._all(query, **parameters)
        found: list[Any] = self._seen[asked]
        return found

    def _look_around(self, seen: dict[tuple[Any, ...], Any], asked: tuple[Any, ...]) -> None:
        """A hook for an engine that asks for all of this with one trip, as soon as some of it is asked."""

    def _note(self, name: str) -> str | None:
        """All that a space notes for itself comes with one look."""
        if self._seen is None or name.startswith("note:"):
            return super()._note(name)
        if NOTES not in self._seen:
            self._look_around(self._seen, NOTES)
        if NOTES not in self._seen:
            self._seen[NOTES] = dict(self._all("notes"))
        found: str | None = self._seen[NOTES].get(name)
        return found

    def head(self) -> Head:
        row = self._one("head")
        return Head(0, GENESIS, 0) if row is None else Head(*row)

    def cursor(self) -> int:
        return int(self._note("cursor") or 0)

    def entry(self, entry_id: str) -> Entry | None:
        row = self._one("entry", id=entry_id)
        return None if row is None else rows.entry_from(row)

    def entries(self, *, after: int = 0, limit: int = 1_000) -> list[Entry]:
        return [rows.entry_from(row) for row in self._all("entries", after=after, limit=limit)]

    def entries_at(self, seqs: Sequence[int]) -> list[Entry]:
        return [rows.entry_from(row) for row in self._all("entries_at", seqs=self._list(seqs))]

    def said(self, *, after: int, limit: int) -> list[int]:
        return [seq for (seq,) in self._all("said", after=after, limit=limit)]

    def said_between(self, after: Instant, until: Instant | None, *, limit: int | None) -> list[SaidAt]:
        found = self._all(
            "said_between",
            after=after,
            until=_FOREVER if until is None else until,
            whole=after - after % SECOND + SECOND,
            limit=ALL if limit is None else limit,
        )
        return [SaidAt(seq, at - at % SECOND if op == Op.TURN else at) for seq, at, op in found]

    def known(self, entry_ids: Sequence[str]) -> dict[str, int]:
        return dict(self._all("known", ids=self._list(entry_ids)))

    def tombstoned(self, entry_ids: Sequence[str]) -> set[str]:
        return {id_ for (id_,) in self._all("tombstoned", ids=self._list(entry_ids))}

    def tombstones(self) -> list[Tombstone]:
        return [
            Tombstone(
                id=id_, at=to_datetime(at), reason=reason, position=position, forget_id=forget_id, cause=cause
            )
            for id_, at, reason, position, forget_id, cause in self._all("tombstones")
        ]

    def hidden(self) -> list[Entry]:
        return [rows.entry_from(row) for row in self._all("hidden")]

    def ledger_rows(self, *, after: int = 0, limit: int = 1_000) -> list[LedgerRow]:
        return [rows.chained_from(row) for row in self._all("ledger_rows", after=after, limit=limit)]

    def forgets(self) -> list[LedgerRow]:
        return [rows.chained_from(row) for row in self._all("forgets")]

    def replacement(self, entry_id: str) -> str | None:
        row = self._one("replacement", id=entry_id)
        return None if row is None else str(row[0])

    def replacements(self, entry_id: str) -> list[str]:
        return [str(id_) for (id_,) in self._all("replacements", id=entry_id)]

    def usage(self, session: str) -> Usage:
        return Usage(*(self._one("usage", session=session) or (0, 0, 0)))

    def memory(self, memory_id: str) -> Memory | None:
        row = self._one("memory", id=memory_id)
        return None if row is None else rows.memory_from(row)

    def keyed(self, key: str, *, now: Instant) -> Memory | None:
        row = self._one("keyed", key=key, now=now)
        return None if row is None else rows.memory_from(row)

    def holder(self, key: str) -> Memory | None:
        row = self._one("holder", key=key)
        return None if row is None else rows.memory_from(row)

    def key_history(self, key: str) -> list[Memory]:
        return [rows.memory_from(row) for row in self._all("key_history", key=key)]

    def memories(self, where: Filter, *, limit: int, offset: int = 0) -> list[Memory]:
        found = self._filtered("memories", conditions.of_memories(where), limit=limit, offset=offset)
        return [rows.memory_from(row) for row in found]

    def brief(self, *, now: Instant, limit: int, audience: Audience = EVERYWHERE) -> list[Memory]:
        told = conditions.told_to(audience)
        pinned = self._filtered("pinned_brief", told, now=now, limit=limit) if self._one("ruled")[0] else []
        found = self._filtered("brief", told, now=now, limit=limit)
        return list({row[0]: rows.memory_from(row) for row in (*pinned, *found)}.values())[:limit]

    def conversations(self, *, project: str | None, limit: int, offset: int) -> list[Conversation]:
        found = self._all("conversations", project=project, limit=limit, offset=offset)
        return [
            Conversation(
                id=id_,
                project=project if project is not None else last_project,
                turns=turns,
                first_at=to_datetime(first),
                last_at=to_datetime(last),
            )
            for id_, turns, first, last, last_project in found
        ]

    def turns(self, where: Filter, *, limit: int, offset: int = 0) -> list[Turn]:
        found = self._filtered("turns", conditions.of_turns(where), limit=limit, offset=offset)
        return [rows.turn_from(row) for row in found]

    def match_memories(
        self, words: Sequence[str], where: Filter, *, limit: int, newest: bool = False
    ) -> list[Memory]:
        if not words:
            return []
        query = "match_newest_memories" if newest else "match_memories"
        return self._memories(query, where, limit=limit, match=self._words.matching("memory", words))

    def match_turns(
        self, words: Sequence[str], where: Filter, *, limit: int, newest: bool = False
    ) -> list[Turn]:
        if not words:
            return []
        wanted = conditions.of_turns(where)
        query = "match_newest_turns" if newest else "match_turns"
        found = [
            rows.turn_from(row)
            for row in self._filtered(query, wanted, limit=limit, match=self._words.matching("turn", words))
        ]
        waiting = self._match_tail(words, wanted)
        # What waits for the index is the newest; it may take half of the places, and more where there is room.
        waiting = waiting[: max(limit - len(found), limit // 2)]
        return [*waiting, *found[: limit - len(waiting)]]

    def frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        counts = dict.fromkeys(stems, 0)
        self._ready()
        for term, count in self._words.frequencies(stems):
            counts[term] += count
        for row in self._filtered("tail", conditions.Where(), indexed=self._indexed(), limit=TAIL_TURNS_MAX):
            for stem in counts.keys() & self._stems(row[0], row[3]):
                counts[stem] += 1
        return counts

    def index_lag(self) -> int:
        """How many turns are too far from the index to be searched; 0 unless an import is under way."""
        (waiting,) = self._one("tail_size", indexed=self._indexed())
        return max(0, int(waiting) - TAIL_TURNS_MAX)

    def _match_tail(self, words: Sequence[str], wanted: conditions.Where) -> list[Turn]:
        """Turns that are stored but not indexed yet, looked through one by one with the index's own eyes; those with the
        rarest of the words first, then the newest."""
        tail = self._filtered("tail", wanted, indexed=self._indexed(), limit=TAIL_TURNS_MAX)
        held = [(row, held_words(self._stems(row[0], row[3]), words)) for row in tail]
        counts = Counter(word for _, found in held for word in found)
        hits = [(sum(1 / counts[word] for word in found), row[0], row) for row, found in held if found]
        return [rows.turn_from(row) for _, _, row in sorted(hits, key=itemgetter(0, 1), reverse=True)]

    def _stems(self, n: int, text: str) -> frozenset[str]:
        """What the index would hold for a turn that waits for it; a search asks twice."""
        found = self._tail_stems.get(n)
        if found is None:
            found = self._tail_stems[n] = frozenset(stems_of(text))
        return found

    def corpus_size(self) -> int:
        return int((self._one("corpus_size") or (0,))[0])

    def categories(self, *, now: Instant, keys_max: int) -> list[Category]:
        found = []
        for name, group in groupby(self._all("category_keys", now=now), key=itemgetter(0)):
            keys = [key for _, key in group]
            found.append(Category(name, len(keys), tuple(keys[:keys_max])))
        return found

    def in_scope(self, scope: Scope) -> list[tuple[int, str]]:
        if scope.everything:
            found = self._all("scope_everything")
        elif scope.entries:
            found = self._all("erasable", ids=self._list(scope.entries))
        else:
            found = self._all("seq_ids", seqs=self._list(self._scope_seqs(scope)))
        return [(seq, id_) for seq, id_ in found]

    def count_scope(self, seqs: Sequence[int]) -> dict[str, int]:
        packed = self._list(seqs)
        (turns,) = self._one("count_turns", seqs=packed) or (0,)
        memories, facts, runs, claims = self._one("count_memories", seqs=packed)
        documents, spans, collections = self._one("count_library", seqs=packed)
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

    def memory_count(self) -> int:
        return int(self._one("memory_count")[0])

    def sizes(self, *, now: Instant) -> Sizes:
        return Sizes(*(self._one("sizes", now=now) or ()))

    def audit_size(self) -> int:
        return int(self._note("audited") or 0)

    def audit(self, *, after: int = 0, limit: int = 1_000) -> list[AuditRow]:
        found = []
        for seq, at, actor, door, session, action, target, outcome, detail, digest in self._all(
            "audit", after=after, limit=limit
        ):
            record = AuditRecord(
                at=to_datetime(at),
                space=self._owner,
                actor=actor,
                door=door,
                session=session,
                action=action,
                target=target,
                outcome=outcome,
                detail=detail,
            )
            found.append(AuditRow(seq, record, at, digest))
        return found

    def ops(self, *, since: Instant | None, until: Instant | None, limit: int) -> list[Entry]:
        found = self._all(
            "ops",
            since=-_FOREVER if since is None else since,
            until=_FOREVER if until is None else until,
            limit=limit,
        )
        return [rows.entry_from(row) for row in found]

    def note(self, name: str) -> str | None:
        return self._note(f"note:{name}")

    def pinned(self, name: str) -> str | None:
        found = self._one("pinned", name=name)
        return None if found is None else str(found[0])

    def erasures(self) -> int:
        found = self._one("erasures")
        return int(found[0])

    def _scope_seqs(self, scope: Scope) -> list[int]:
        seqs: set[int] = set()
        keyed = scope.key is not None or scope.prefix is not None or scope.expired_by is not None
        if scope.document is None:
            seqs.update(seq for (seq,) in self._filtered("scope_memories", conditions.memories_in(scope)))
        if not keyed:
            seqs.update(seq for (seq,) in self._filtered("scope_turns", conditions.turns_in(scope)))
        if scope.conversation is None and not keyed:
            seqs.update(seq for (seq,) in self._filtered("scope_shelf", conditions.shelf_in(scope)))
        if scope.document is None and not keyed:
            seqs.update(seq for (seq,) in self._filtered("scope_promoted", conditions.promoted_in(scope)))
        return sorted(seqs)


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
    at a time, because an index takes many as easily as one; until then readers look
    through them one by one.
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
        self._head = Head(seq, digest, position)
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

    def head(self) -> Head:
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

    def append(self, drafts: Sequence[Draft], *, recorded: Instant) -> list[Entry]:
        first = self._head.seq + 1
        entries = self._chain(drafts, range(first, first + len(drafts)), recorded)
        self._head = Head(self._head.seq + len(drafts), self._head.digest, self._head.position)
        return entries

    def place(self, drafts: Sequence[Draft]) -> list[Move]:
        self._ready()
        fresh, places, moves = self._make_room(drafts)
        self._chain(fresh, places, _NEVER)
        self._write_rows()
        last = self._one("last_entry")
        if last is not None:
            self._head = Head(last[0], self._head.digest, self._head.position)
            self._recorded = last[1]
        return moves

    def restore(self, table: Table, copied: Sequence[Row]) -> None:
        super().restore(table, copied)
        if table in (LEDGER, META):
            self._start()

    def _chain(self, drafts: Sequence[Draft], places: Sequence[int], recorded: Instant) -> list[Entry]:
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
            if (
                draft.recorded is None and last == before
            ):  # at the end of time, ids decide: with the next merge
                self._set_note("ordered", "0")
            digest = entry_digest(digest, of_payload, position, draft, last)
            by, id_, op, ref = draft.caller, draft.id, draft.op, draft.ref
            header = (seq, id_, op, last, by.actor, by.door, by.session, ref)
            self._ledger.append((*header, of_payload, digest, position, draft.origin))
            if not draft.erased:
                self._payloads.append((position, salt, draft.body))
            entries.append(Entry(seq, id_, op, last, by, ref, None if draft.erased else draft.body))
        self._head, self._recorded = Head(self._head.seq, digest, position), last
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
