"""`ReplicaReader` and `ReplicaWriter` in SQL, but for what appends."""

from collections.abc import Iterable, Sequence

from memplane.clock import Instant
from memplane.storage.index import TURNS_PER_ENTRY_MAX
from memplane.storage.library import SPANS_PER_DOCUMENT_MAX
from memplane.storage.sql import rows
from memplane.storage.sql.session import SqlSession
from memplane.types import Entry, NewEntry, Variant

Key = tuple[Instant, str]
Move = tuple[int, int]


class SqlReplicaReader(SqlSession):
    """See `ReplicaReader`."""

    def entries_of(self, entry_ids: Sequence[str]) -> list[Entry]:
        return [rows.entry_from(row) for row in self._all("entries_of", ids=self._list(entry_ids))]

    def decisions(self) -> list[Entry]:
        return [rows.entry_from(row) for row in self._all("decisions")]

    def positions(self, entry_ids: Sequence[str]) -> dict[str, int]:
        return dict(self._all("positions", ids=self._list(entry_ids)))

    def recordings(self, entry_ids: Sequence[str]) -> dict[str, tuple[int, Instant]]:
        found = self._all("recordings", ids=self._list(entry_ids))
        return {id_: (position, recorded) for id_, position, recorded in found}

    def buried(self, forget_id: str) -> set[str]:
        return {id_ for (id_,) in self._all("buried", id=forget_id)}

    def stones(self, entry_ids: Sequence[str]) -> dict[str, tuple[int, Instant, str]]:
        found = self._all("stones", ids=self._list(entry_ids))
        return {id_: (position, at, reason) for id_, position, at, reason in found}

    def variants(self, bases: Sequence[str] | None = None) -> list[Variant]:
        found = self._all("all_variants") if bases is None else self._all("variants", bases=self._list(bases))
        return [Variant(id=id_, base=base) for id_, base in found]

    def ordered(self) -> bool:
        return self._note("ordered") == "1"

    def misplaced(self) -> tuple[int, str] | None:
        row = self._one("misplaced" if self.ordered() else "beyond_a_gap")
        return None if row is None else (row[0], row[1])

    def merged(self) -> bool:
        return self._note("merged") == "1"


class SqlReplicaWriter(SqlReplicaReader):
    """See `ReplicaWriter`."""

    def sorts_last(self, recorded: Instant, entry_id: str) -> bool:
        last = self._one("last_entry")
        return last is None or (recorded, entry_id) > (last[1], last[2])

    def rename(self, entry_id: str, variant_id: str) -> None:
        self._ready()
        self._many("rename", [(variant_id, entry_id)])
        self._set_note("ordered", "0")  # entries of one moment stand by their ids

    def note_variant(self, variant: Variant) -> None:
        self._ready()
        self._many("note_variant", [(variant.id, variant.base)])

    def set_merged(self) -> None:
        self._set_note("merged", "1")

    def _make_room(self, drafts: Sequence[NewEntry]) -> tuple[list[NewEntry], list[int], list[Move]]:
        """These in order, the place of each, and what had to move for them."""
        fresh = sorted((_key_of(draft), number) for number, draft in enumerate(drafts))
        first = self._first_after(fresh[0][0] if fresh else None)
        there = [((recorded, id_), seq) for seq, recorded, id_ in self._all("places", first=first)]
        ranked = sorted([(key, -1, number) for key, number in fresh] + [(key, seq, -1) for key, seq in there])
        places: list[int] = []
        moves: list[Move] = []
        for place, (_, seq, number) in enumerate(ranked, start=first):
            if number >= 0:
                places.append(place)
            elif seq != place:
                moves.append((seq, place))
        self._move(moves)
        self._set_note("ordered", "1")
        return [drafts[number] for _, number in fresh], places, moves

    def _first_after(self, key: Key | None) -> int:
        """The first place whose entry sorts after the key; where the order is not known, the first of all."""
        if not self.ordered():
            return 1
        last = self._one("last_entry")
        beyond = 1 if last is None else last[0] + 1
        if key is None:
            return beyond
        low = 1
        while low < beyond:
            middle = (low + beyond) // 2
            seq, recorded, id_ = self._one("entry_from_place", seq=middle)
            if (recorded, id_) > key:
                beyond = middle
            else:
                low = seq + 1
        return low

    def _move(self, moves: Sequence[Move]) -> None:
        """By way of negative places, which nobody has: whatever moves where, no two ever meet."""
        for query, per_entry in (
            ("move_entry", 1),
            ("move_turn_vectors", TURNS_PER_ENTRY_MAX),
            ("move_span_vectors", SPANS_PER_DOCUMENT_MAX),
        ):
            self._many(query, _ranges(moves, per_entry))
        for query in ("settle_entries", "settle_turn_vectors", "settle_span_vectors") if moves else ():
            self._run(query)


def _ranges(moves: Iterable[Move], per_entry: int) -> list[rows.Row]:
    return [
        ((now - before) * per_entry, before * per_entry, (before + 1) * per_entry) for before, now in moves
    ]


def _key_of(draft: NewEntry) -> Key:
    assert draft.recorded is not None
    return draft.recorded, draft.id
