"""Review: what a person decided about memories and entries, and what is in quarantine."""

from collections.abc import Sequence

import msgspec

from memplane.clock import Instant
from memplane.storage.session import SessionReader, WriteSession

QUARANTINED_TURNS_MAX = 100_000
"""How many flagged turns are kept out of recall."""


class ReviewDecision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The last decision about a memory or an entry."""

    released: bool = False
    """Recall treats it like any other. For an entry, this covers everything derived from it."""
    pinned: bool = False
    """It is always recalled."""


class ReviewReader(SessionReader):
    """Reads of review decisions and of the quarantine."""

    def decision(self, id_: str) -> ReviewDecision:
        """The last decision about a memory or an entry, which need not exist."""
        row = self._session.one("ruling", id=id_)
        return ReviewDecision() if row is None else ReviewDecision(released=bool(row[0]), pinned=bool(row[1]))

    def quarantined(self, *, now: Instant, limit: int, offset: int = 0) -> list[int]:
        """The seqs of entries in quarantine: flagged, or with a flagged live memory, and not released; newest
        first."""
        return [seq for (seq,) in self._session.all("quarantined_seqs", now=now, limit=limit, offset=offset)]

    def quarantined_count(self, *, now: Instant) -> int:
        """How many entries are in quarantine."""
        return int(self._session.one("quarantine_size", now=now)[0])

    def quarantined_turns(self, *, limit: int) -> list[int]:
        """The numbers of turns that are flagged and not released, newest first."""
        return [n for (n,) in self._session.all("quarantined_turns", limit=limit)]

    def flagged_count(self, *, limit: int) -> int:
        """How many memories are flagged, released or not; counted up to the limit."""
        return int(self._session.one("flagged_size", limit=limit)[0])

    def quarantined_among(self, ids: Sequence[str]) -> set[str]:
        """Those of these memories that are flagged and not released."""
        return {id_ for (id_,) in self._session.all("quarantined_among", ids=list(ids))}


class ReviewWriter(ReviewReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def decide(self, id_: str, decision: ReviewDecision) -> None:
        """Set the decision about a memory or an entry."""
        self._session.many("rule", [(id_, int(decision.released), int(decision.pinned))])
