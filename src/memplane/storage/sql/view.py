"""`Reader` in SQL."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from memplane.clock import SECOND, Instant, to_datetime
from memplane.storage.base import AuditRow, Category, EntryTime, LedgerRow, SessionUsage, SpaceSizes
from memplane.storage.chain import GENESIS
from memplane.storage.filter import EVERYWHERE, Audience, Filter, ForgetScope
from memplane.storage.sql import conditions, rows
from memplane.storage.sql.claims import SqlClaimReader
from memplane.storage.sql.compaction import SqlCompactionReader
from memplane.storage.sql.episodes import SqlEpisodeReader
from memplane.storage.sql.index import SqlIndexReader
from memplane.storage.sql.library import SqlLibraryReader
from memplane.storage.sql.moving import SqlMoveReader
from memplane.storage.sql.overview import SqlOverviewReader
from memplane.storage.sql.replica import SqlReplicaReader
from memplane.storage.sql.rulings import SqlRulingReader
from memplane.storage.sql.statements import ALL, Statements
from memplane.storage.words import held_words, stems_of
from memplane.types import AuditRecord, Conversation, Entry, LedgerHead, Memory, Op, Tombstone, Turn

_FOREVER = 1 << 62
NOTES = ("notes",)
"""Under which a reader remembers all that a space notes for itself."""
_STEADY = frozenset(
    {
        *("head", "marks", "models", "note", "library_marks", "ruled"),
        *("waiting_count", "spans_waiting_count", "undistilled_count"),
        *("flagged_size", "quarantined_turns", "stale_turns"),
    }
)
"""Where a space stands; one recall asks for it some twenty times."""

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
        if query not in _STEADY:
            return super()._one(query, **parameters)
        return self._asked_once((query, *parameters.values()), partial(super()._one, query, **parameters))

    def _all(self, query: str, /, **parameters: Any) -> list[Any]:
        if query not in _STEADY:
            return super()._all(query, **parameters)
        asked = (query, *parameters.values())
        found: list[Any] = self._asked_once(asked, partial(super()._all, query, **parameters))
        return found

    def _note(self, name: str) -> str | None:
        """All that a space notes for itself comes with one look."""
        if self._seen is None or name.startswith("note:"):
            return super()._note(name)
        notes: dict[str, str] = self._asked_once(NOTES, lambda: dict(self._all("notes")))
        return notes.get(name)

    def _asked_once(self, asked: tuple[Any, ...], ask: Callable[[], Any]) -> Any:
        if self._seen is None:
            return ask()
        if asked not in self._seen:
            self._look_around(self._seen, asked)
        if asked not in self._seen:
            self._seen[asked] = ask()
        return self._seen[asked]

    def _look_around(self, seen: dict[tuple[Any, ...], Any], asked: tuple[Any, ...]) -> None:
        """A hook for an engine that asks for all of this with one trip, as soon as some of it is asked."""

    def head(self) -> LedgerHead:
        row = self._one("head")
        return LedgerHead(0, GENESIS, 0) if row is None else LedgerHead(*row)

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

    def said_between(self, after: Instant, until: Instant | None, *, limit: int | None) -> list[EntryTime]:
        found = self._all(
            "said_between",
            after=after,
            until=_FOREVER if until is None else until,
            whole=after - after % SECOND + SECOND,
            limit=ALL if limit is None else limit,
        )
        return [EntryTime(seq, at - at % SECOND if op == Op.TURN else at) for seq, at, op in found]

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

    def usage(self, session: str) -> SessionUsage:
        return SessionUsage(*(self._one("usage", session=session) or (0, 0, 0)))

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
        for row in self._filtered(
            "tail", conditions.WhereClause(), indexed=self._indexed(), limit=TAIL_TURNS_MAX
        ):
            for stem in counts.keys() & self._stems(row[0], row[3]):
                counts[stem] += 1
        return counts

    def index_lag(self) -> int:
        """How many turns are too far from the index to be searched; 0 unless an import is under way."""
        (waiting,) = self._one("tail_size", indexed=self._indexed())
        return max(0, int(waiting) - TAIL_TURNS_MAX)

    def _match_tail(self, words: Sequence[str], wanted: conditions.WhereClause) -> list[Turn]:
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

    def in_scope(self, scope: ForgetScope) -> list[tuple[int, str]]:
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

    def sizes(self, *, now: Instant) -> SpaceSizes:
        return SpaceSizes(*(self._one("sizes", now=now) or ()))

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

    def _scope_seqs(self, scope: ForgetScope) -> list[int]:
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
