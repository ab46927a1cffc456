"""Replicas of one space: entries in the order that all replicas agree on, whenever they came in."""

from collections.abc import Iterable, Sequence

from memplane.clock import Instant
from memplane.storage import rows
from memplane.storage.engine import Row
from memplane.storage.ledger import chain
from memplane.storage.numbers import SPANS_PER_DOCUMENT_MAX, TURNS_PER_ENTRY_MAX
from memplane.storage.session import NEVER, SessionReader, WriteSession
from memplane.types import Entry, LedgerHead, NewEntry, Variant

Key = tuple[Instant, str]
Move = tuple[int, int]


class ReplicaReader(SessionReader):
    """Reads that a merge needs."""

    def deletions(self) -> list[Entry]:
        """Every forget and every sweep, in order."""
        return [rows.entry_from(row) for row in self._session.all("decisions")]

    def positions(self, entry_ids: Sequence[str]) -> dict[str, int]:
        """Those of these ids that are in the ledger, with their position in the chain."""
        return dict(self._session.all("positions", ids=list(entry_ids)))

    def recordings(self, entry_ids: Sequence[str]) -> dict[str, tuple[int, Instant]]:
        """As `positions`, with the time of recording."""
        found = self._session.all("recordings", ids=list(entry_ids))
        return {id_: (position, recorded) for id_, position, recorded in found}

    def buried(self, forget_id: str) -> set[str]:
        """The ids that this forget named."""
        return {id_ for (id_,) in self._session.all("buried", id=forget_id)}

    def tombstones(self, entry_ids: Sequence[str]) -> dict[str, tuple[int, Instant, str]]:
        """Those of these ids that are forgotten, with the position, time and reason of one forget."""
        found = self._session.all("stones", ids=list(entry_ids))
        return {id_: (position, at, reason) for id_, position, at, reason in found}

    def variants(self, bases: Sequence[str] | None = None) -> list[Variant]:
        """Entries that came with an id that another entry has; for these ids, or for all."""
        found = (
            self._session.all("all_variants")
            if bases is None
            else self._session.all("variants", bases=list(bases))
        )
        return [Variant(id=id_, base=base) for id_, base in found]

    def ordered(self) -> bool:
        """Whether entries are known to be in the order that replicas agree on."""
        return self._session.note("ordered") == "1"

    def misplaced(self) -> tuple[int, str] | None:
        """Position and id of an entry that is out of place: places have no gaps and, in an ordered ledger,
        follow `recorded` and then the id. Reads every entry."""
        row = self._session.one("misplaced" if self.ordered() else "beyond_a_gap")
        return None if row is None else (row[0], row[1])

    def merged(self) -> bool:
        """Whether entries came from another replica."""
        return self._session.note("merged") == "1"


class ReplicaWriter(ReplicaReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def sorts_last(self, recorded: Instant, entry_id: str) -> bool:
        """Whether an entry with this time and id sorts after every entry."""
        last = self._session.one("last_entry")
        return last is None or (recorded, entry_id) > (last[1], last[2])

    def rename(self, entry_id: str, variant_id: str) -> None:
        """Give the entry with this id another id, because another entry takes it."""
        self._session.many("rename", [(variant_id, entry_id)])
        self._session.set_note("ordered", "0")  # entries of one moment are in the order of their ids

    def add_variant(self, variant: Variant) -> None:
        """Record a variant. Recording it again changes nothing."""
        self._session.many("note_variant", [(variant.id, variant.base)])

    def set_merged(self) -> None:
        """Record that entries came from another replica."""
        self._session.set_note("merged", "1")

    def place(self, drafts: Sequence[NewEntry]) -> list[Move]:
        """Append entries to the chain, and put each in its place by `recorded` and then by id. Returns the
        entries that moved, as (seq before, seq now). Vectors move with them; everything else that is derived
        must be cleared. If the ledger is not ordered, all entries are put in order."""
        session = self._session
        fresh, places, moves = self._make_room(drafts)
        chain(session, fresh, places, NEVER)
        session.write_rows()
        last = session.one("last_entry")
        if last is not None:
            session.head = LedgerHead(last[0], session.head.digest, session.head.position)
            session.recorded = last[1]
        return moves

    def _make_room(self, drafts: Sequence[NewEntry]) -> tuple[list[NewEntry], list[int], list[Move]]:
        """The drafts in order, the place of each, and the entries that moved for them."""
        fresh = sorted((_key_of(draft), number) for number, draft in enumerate(drafts))
        first = self._first_after(fresh[0][0] if fresh else None)
        there = [((recorded, id_), seq) for seq, recorded, id_ in self._session.all("places", first=first)]
        ranked = sorted([(key, -1, number) for key, number in fresh] + [(key, seq, -1) for key, seq in there])
        places: list[int] = []
        moves: list[Move] = []
        for place, (_, seq, number) in enumerate(ranked, start=first):
            if number >= 0:
                places.append(place)
            elif seq != place:
                moves.append((seq, place))
        self._move(moves)
        self._session.set_note("ordered", "1")
        return [drafts[number] for _, number in fresh], places, moves

    def _first_after(self, key: Key | None) -> int:
        """The first place whose entry sorts after the key; if the order is not known, the first of all."""
        if not self.ordered():
            return 1
        last = self._session.one("last_entry")
        beyond = 1 if last is None else last[0] + 1
        if key is None:
            return int(beyond)
        low = 1
        while low < beyond:
            middle = (low + beyond) // 2
            seq, recorded, id_ = self._session.one("entry_from_place", seq=middle)
            if (recorded, id_) > key:
                beyond = middle
            else:
                low = seq + 1
        return low

    def _move(self, moves: Sequence[Move]) -> None:
        """Move entries by way of negative places, which no entry has, so that no two ever collide."""
        for query, per_entry in (
            ("move_entry", 1),
            ("move_turn_vectors", TURNS_PER_ENTRY_MAX),
            ("move_span_vectors", SPANS_PER_DOCUMENT_MAX),
        ):
            self._session.many(query, _ranges(moves, per_entry))
        for query in ("settle_entries", "settle_turn_vectors", "settle_span_vectors") if moves else ():
            self._session.run(query)


def _ranges(moves: Iterable[Move], per_entry: int) -> list[Row]:
    return [
        ((now - before) * per_entry, before * per_entry, (before + 1) * per_entry) for before, now in moves
    ]


def _key_of(draft: NewEntry) -> Key:
    assert draft.recorded is not None
    return draft.recorded, draft.id
