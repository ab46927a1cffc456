"""Claims: further evidence for a memory, conflicts between memories, and what one memory replaced or overruled."""

from collections.abc import Sequence

import msgspec

from memplane.clock import Instant
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


class PurgedMemory(msgspec.Struct, frozen=True, gc=False):
    """What is kept of a derived memory that was purged: which memory had replaced it."""

    id: str
    by: str
    seq: int
    entry_id: str
    at: Instant


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
        about = {"subject": subject, "within": within, "limit": limit}
        found = self._session.all("rivals", predicate=predicate, **about)
        if topic and len(found) == limit:
            found += self._session.all("rivals_by_topic", predicate=predicate, topic=topic, **about)
        found += self._session.all("newest_rivals", **about)
        if words:
            found += self._session.all(
                "rivals_by_words", match=self._session.words.match("memory", words), **about
            )
        return list({row[0]: rows.memory_from(row) for row in found}.values())

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
