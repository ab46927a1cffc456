"""Claims: further evidence for a memory, conflicts between memories, and what one memory replaced or overruled."""

from collections.abc import Sequence
from typing import Any

import msgspec

from memplane.clock import Instant, to_instant
from memplane.storage import rows
from memplane.storage.session import SessionReader, WriteSession
from memplane.types import Memory, State

_encode = msgspec.json.Encoder().encode
_decode_memory = msgspec.json.Decoder(Memory).decode


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """One more place where a memory was said."""

    memory: str
    """The memory that existed already."""
    own: Memory
    """The memory that this place alone would have made: it takes over when the first place is forgotten."""


class WindowEnd(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The last of the rivals that a statement was compared with, in ids and times only: it may be forgotten by now."""

    updated: Instant
    entry_id: str
    id: str


class RivalWindow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a statement was compared with others, where there were more than the limit; None where there were not."""

    predicate: WindowEnd | None = None
    topic: WindowEnd | None = None
    newest: WindowEnd | None = None
    words: WindowEnd | None = None


class PurgedMemory(msgspec.Struct, frozen=True, gc=False):
    """What is kept of a derived memory that was purged: which memory had replaced it."""

    id: str
    by: str
    seq: int
    entry_id: str
    at: Instant


_WINDOW = "window"
"""The member of a memory's claim that notes its `RivalWindow`."""
_PREDICATE, _TOPIC = range(2)
"""The first two of `RivalWindow`, which are ordered by time; the others are ordered by arrival."""


def noting_window(memory: Memory, window: RivalWindow) -> Memory:
    """The memory with a note of how far it was compared, if there were more rivals of its predicate than that."""
    if window.predicate is None or memory.claim is None:
        return memory
    noted = msgspec.json.decode(memory.claim) | {_WINDOW: window}
    return msgspec.structs.replace(memory, claim=_encode(noted).decode())


def noted_window(memory: Memory) -> list[Any] | None:
    """What `noting_window` noted."""
    noted = None if memory.claim is None else msgspec.json.decode(memory.claim).get(_WINDOW)
    return noted if isinstance(noted, list) else None


def _is_before(memory: Memory, end: WindowEnd, seq: int, *, by_time: bool) -> bool:
    """Whether a rival comes before the end of a window, which is at `seq`, or is the end."""
    place = (to_instant(memory.updated_at), memory.seq) if by_time else (memory.seq,)
    last = (end.updated, seq) if by_time else (seq,)
    return place > last or (place == last and memory.id <= end.id)


class ClaimsReader(SessionReader):
    """Reads of claims."""

    def rivals(
        self,
        subject: str,
        predicate: str,
        words: Sequence[str],
        *,
        limit: int,
        topic: str = "",
        within: str | None = None,
    ) -> list[Memory]:
        """Live claims about a subject with the same scope, `within`: those with this predicate, and among them
        those about the topic; the newest that contain one of the words; and the newest of all. At most `limit`
        of each."""
        found, _ = self.rivals_within(
            subject, predicate, words, limit=limit, topic=topic, within=within, window=None
        )
        return found

    def rivals_within(
        self,
        subject: str,
        predicate: str,
        words: Sequence[str],
        *,
        limit: int,
        topic: str,
        within: str | None,
        window: RivalWindow | None,
    ) -> tuple[list[Memory], RivalWindow]:
        """As `rivals`, and how far they reach. With a `window`, no further than that: what was forgotten since makes room for no
        other."""
        about = {"subject": subject, "within": within, "limit": limit}
        gathered: dict[str, Memory] = {}
        ends: list[WindowEnd | None] = []
        for number, (query, more) in enumerate(self._rival_queries(predicate, topic, words)):
            end = None if window is None else msgspec.structs.astuple(window)[number]
            found = []
            if query is not None and (number != _TOPIC or ends[_PREDICATE] is not None):
                found = [rows.memory_from(row) for row in self._session.all(query, **about, **more)]
            if end is not None:
                seq = self._place_of(end)
                found = [memory for memory in found if _is_before(memory, end, seq, by_time=number <= _TOPIC)]
            elif window is None and len(found) == limit:
                end = WindowEnd(to_instant(found[-1].updated_at), found[-1].entry_id, found[-1].id)
            ends.append(end)
            gathered |= {memory.id: memory for memory in found}
        return list(gathered.values()), RivalWindow(*ends)

    def _rival_queries(
        self, predicate: str, topic: str, words: Sequence[str]
    ) -> list[tuple[str | None, dict[str, Any]]]:
        """In the order of `RivalWindow`; None for one that does not apply."""
        match = {"match": self._session.words.match("memory", words)} if words else {}
        return [
            ("rivals", {"predicate": predicate}),
            ("rivals_by_topic" if topic else None, {"predicate": predicate, "topic": topic}),
            ("newest_rivals", {}),
            ("rivals_by_words" if words else None, match),
        ]

    def _place_of(self, end: WindowEnd) -> int:
        """The seq of the entry at which a window ends."""
        return int(dict(self._session.all("known", ids=[end.entry_id])).get(end.entry_id, 0))

    def conflicts(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """The open conflicts that one of these memories is part of; every conflict if no id is given."""
        found = self._session.all("conflicts", ids=list(ids)) if ids else self._session.all("all_conflicts")
        return [(left, right) for left, right in found]

    def evidence(self, memory_ids: Sequence[str]) -> list[Evidence]:
        """Further evidence for these memories, in order."""
        return [
            Evidence(memory, _decode_memory(body))
            for memory, body in self._session.all("evidence", ids=list(memory_ids))
        ]

    def replaced_by(self, ids: Sequence[str]) -> list[str]:
        """The ids of derived memories that one of these superseded."""
        return sorted(id_ for (id_,) in self._session.all("replaced_by", ids=list(ids)))

    def displaced_by(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """(old, new) of explicitly stored memories that one of these superseded."""
        return [(old, new) for old, new in self._session.all("displaced_by", ids=list(ids))]

    def purged_by(self, ids: Sequence[str]) -> list[PurgedMemory]:
        """Memories that were purged after one of these had superseded them."""
        return [PurgedMemory(*row) for row in self._session.all("purged_by", ids=list(ids))]

    def overruled(self, ids: Sequence[str]) -> list[str]:
        """The ids of claims that were rejected because of one of these."""
        return [id_ for (id_,) in self._session.all("overruled", ids=list(ids))]

    def evidence_at(self, seqs: Sequence[int]) -> list[Memory]:
        """The memories that these entries alone would have made, where an earlier entry had made them already;
        by seq and id."""
        return [_decode_memory(body) for (body,) in self._session.all("evidence_at", seqs=list(seqs))]


class ClaimsWriter(ClaimsReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def add_evidence(self, evidence: Evidence) -> None:
        """Add evidence. Adding it again changes nothing."""
        own = evidence.own
        self._session.many("add_evidence", [(evidence.memory, own.seq, own.id, _encode(own).decode())])

    def add_overruled(self, memory_id: str, by: Sequence[str]) -> None:
        """Note that a claim was rejected because of these."""
        self._session.many("note_overruled", [(memory_id, each) for each in by])

    def contest(self, left: str, right: str) -> None:
        """Mark both as contested and record the conflict."""
        self._session.many("add_conflict", [(min(left, right), max(left, right))])
        self._session.many("set_state", [(left, State.CONTESTED), (right, State.CONTESTED)])

    def settle(self, memory_id: str) -> None:
        """Remove a memory from every conflict. A memory without conflicts is active again."""
        settle(self._session, memory_id)


def settle(session: WriteSession, memory_id: str) -> None:
    """Remove a memory from every conflict. A memory without conflicts is active again."""
    others = session.all("at_odds", id=memory_id)
    if others:
        session.many("drop_conflicts", [(memory_id,)])
        session.many("uncontest", [*others, (memory_id,)])
