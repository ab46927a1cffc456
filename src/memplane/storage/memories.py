"""Memories: by id, by key, by filter, by words; their lifecycle, feedback and access counts."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from memplane.clock import Instant
from memplane.storage import conditions, rows
from memplane.storage.claims import settle
from memplane.storage.filter import EVERYWHERE, Audience, Filter
from memplane.storage.session import SessionReader, WriteSession
from memplane.storage.state import grow_generation, unpin
from memplane.types import Memory, Tier, searchable


class FactCategory(msgspec.Struct, frozen=True):
    """A category of keyed facts, how many it holds, and the keys written last."""

    name: str
    count: int
    recent_keys: tuple[str, ...]


class Rating(msgspec.Struct, frozen=True, gc=False):
    """What feedback says about a memory."""

    memory: str
    chosen: int
    passed_over: int
    leaning: float
    importance: float


class MemoriesReader(SessionReader):
    """Reads of memories."""

    def get(self, memory_id: str) -> Memory | None:
        """The memory with this id, in any state; None if there is none."""
        row = self._session.one("memory", id=memory_id)
        return None if row is None else rows.memory_from(row)

    def by_key(self, key: str, *, now: Instant) -> Memory | None:
        """The live value of a key."""
        row = self._session.one("keyed", key=key, now=now)
        return None if row is None else rows.memory_from(row)

    def holder(self, key: str) -> Memory | None:
        """The memory that occupies a key: its live value, or an expired one that was not swept yet."""
        row = self._session.one("holder", key=key)
        return None if row is None else rows.memory_from(row)

    def history(self, key: str) -> list[Memory]:
        """Every kept value of a key, oldest first."""
        return [rows.memory_from(row) for row in self._session.all("key_history", key=key)]

    def find(self, where: Filter, *, limit: int, offset: int = 0) -> list[Memory]:
        """Newest first."""
        found = self._session.filtered("memories", conditions.of_memories(where), limit=limit, offset=offset)
        return [rows.memory_from(row) for row in found]

    def ids(self, where: Filter, *, limit: int) -> list[str]:
        """The ids of memories that pass the filter, newest first."""
        return [
            id_ for (id_,) in self._session.filtered("memory_ids", conditions.of_memories(where), limit=limit)
        ]

    def brief(self, *, now: Instant, limit: int, audience: Audience = EVERYWHERE) -> list[Memory]:
        """Current memories: pinned ones first, then behavioral ones, newest first within each. Derived memories
        only if they are behavioral or hot; no quarantined memories, and none of the reserved categories."""
        visible = conditions.visible_to(audience)
        pinned = []
        if self._session.one("ruled")[0]:
            pinned = self._session.filtered("pinned_brief", visible, now=now, limit=limit)
        found = self._session.filtered("brief", visible, now=now, limit=limit)
        return list({row[0]: rows.memory_from(row) for row in (*pinned, *found)}.values())[:limit]

    def match(self, words: Sequence[str], where: Filter, *, limit: int, newest: bool = False) -> list[Memory]:
        """Memories that contain any of the words (see `words.words_of`), most relevant first. With `newest`,
        the newest that match: ranking every memory that contains a very common word would take too long."""
        if not words:
            return []
        query = "match_newest_memories" if newest else "match_memories"
        return self._session.memories(
            query, where, limit=limit, match=self._session.words.match("memory", words)
        )

    def categories(self, *, now: Instant, keys_max: int) -> list[FactCategory]:
        """Categories of live keyed facts, by name, without the reserved ones."""
        found = []
        for name, group in groupby(self._session.all("category_keys", now=now), key=itemgetter(0)):
            keys = [key for _, key in group]
            found.append(FactCategory(name, len(keys), tuple(keys[:keys_max])))
        return found

    def count(self) -> int:
        """The number of memories, in any state."""
        return int(self._session.one("memory_count")[0])

    def get_many(self, ids: Sequence[str], where: Filter) -> list[Memory]:
        """The memories with these ids that pass the filter."""
        return self._session.memories("memories_of", where, ids=list(ids))

    def of_entries(self, seqs: Sequence[int]) -> list[Memory]:
        """Every memory of these entries, in any state, in the order they were added."""
        # Sorted here: for an ORDER BY, a database reads a whole space in that order to find these few.
        found = sorted(self._session.all("memories_from", seqs=list(seqs)), key=itemgetter(-1))
        return [rows.memory_from(row[:-1]) for row in found]

    def successors(self, ids: Sequence[str]) -> dict[str, str]:
        """For each superseded memory, the last one of its chain of successors."""
        return dict(self._session.all("heirs", ids=list(ids)))

    def rated_by(self, seqs: Sequence[int]) -> bool:
        """Whether one of these entries is feedback."""
        return bool(self._session.one("rated_by", seqs=list(seqs))[0])

    def accesses(self, ids: Sequence[str]) -> dict[str, int]:
        """How often recall returned these memories."""
        return dict(self._session.all("accesses", ids=list(ids)))

    def predecessors(self, memory_id: str, *, limit: int) -> list[Memory]:
        """Memories that this one superseded, oldest first. The memory itself may be gone."""
        return [rows.memory_from(row) for row in self._session.all("predecessors", id=memory_id, limit=limit)]


class MemoriesWriter(MemoriesReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def add(self, memories: Iterable[Memory]) -> None:
        """Add memories, with their words. Their ids must be new. Searchable at once."""
        add_memories(self._session, memories)

    def rate(self, rating: Rating) -> None:
        """Store the result of feedback. The importance before the first feedback is kept as its base."""
        self._session.many("rate", [msgspec.structs.astuple(rating)])

    def set_tiers(self, tiers: Sequence[tuple[str, Tier]]) -> None:
        """Set the tier of each memory."""
        self._session.many("set_tier", tiers)

    def add_accesses(self, ids: Sequence[str], *, at: Instant) -> None:
        """Count that recall returned these memories."""
        self._session.many("add_access", [(id_, at) for id_ in ids])

    def supersede(self, memory_id: str, *, by: str, at: Instant) -> bool:
        """Mark a memory as superseded, with tier cold, and remove it from every conflict; False if it does not
        exist."""
        changed = bool(self._session.run("supersede", by, at, memory_id))
        settle(self._session, memory_id)
        return changed

    def purge_superseded(self, *, before: Instant) -> int:
        """Remove memories superseded before then; returns how many."""
        found = self._session.all("superseded_before", before=before)
        self._session.many("note_purged", [(before,)])
        drop_memories(self._session, found)
        self._session.many("hide", [(seq,) for _, _, _, _, seq, _, turn in found if turn is None])
        grow_generation(self._session, found)
        if found:
            unpin(self._session)
        return len(found)


def add_memories(session: WriteSession, memories: Iterable[Memory]) -> None:
    """Add memories, their tags and their words."""
    for memory in memories:
        ((n,),) = session.run("add_memory", *rows.memory_row(memory))
        session.words.add("memory", [(n, memory.searchable)])
        session.many("add_tag", [(tag, n) for tag in dict.fromkeys(memory.tags)])


def drop_memories(session: WriteSession, found: Sequence[Any]) -> None:
    """Remove these rows with everything that belongs to them."""
    for n, text, key, tags, _, id_, _ in found:
        session.words.drop("memory", [(n, searchable(text, key, rows.tags_from(tags)))])
        session.many("drop_tags", [(n,)])
        session.many("drop_memory", [(n,)])
        settle(session, id_)
        for query in ("drop_memory_vector", "drop_evidence", "drop_cited", "drop_access"):
            session.many(query, [(id_,)])
