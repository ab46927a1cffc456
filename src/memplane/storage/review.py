"""Review: what a person decided about memories and entries, and what is in quarantine."""

from collections.abc import Sequence

import msgspec

from memplane.clock import Instant
from memplane.storage.session import Noun, WriteSession

QUARANTINED_TURNS_MAX = 100_000
"""How many flagged turns are kept out of recall."""


class ReviewDecision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The last decision about a memory or an entry."""

    released: bool = False
    """Recall treats it like any other. For an entry, this covers everything derived from it."""
    pinned: bool = False
    """It is always recalled."""


class Review(Noun):
    """Reads of review decisions and of the quarantine."""

    def decision(self, id_: str) -> ReviewDecision:
        """What was ruled about a memory or an entry, whether that is there or not."""
        row = self._session.one("ruling", id=id_)
        return ReviewDecision() if row is None else ReviewDecision(released=bool(row[0]), pinned=bool(row[1]))

    def quarantined(self, *, now: Instant, limit: int, offset: int = 0) -> list[int]:
        """Entries that were flagged, or of which a live memory was, and that nobody has released; the newest first."""
        return [seq for (seq,) in self._session.all("quarantined_seqs", now=now, limit=limit, offset=offset)]

    def quarantined_count(self, *, now: Instant) -> int:
        """How many entries that are."""
        return int(self._session.one("quarantine_size", now=now)[0])

    def quarantined_turns(self, *, limit: int) -> list[int]:
        """The numbers of turns that are flagged and not released, the newest first."""
        return [n for (n,) in self._session.all("quarantined_turns", limit=limit)]

    def flagged_count(self, *, limit: int) -> int:
        """How many memories carry a flag, released or not; counted no further than the limit."""
        return int(self._session.one("flagged_size", limit=limit)[0])

    def quarantined_among(self, ids: Sequence[str]) -> set[str]:
        """Of these memories, the ones that are flagged and not released."""
        return {id_ for (id_,) in self._session.all("quarantined_among", ids=list(ids))}


class ReviewWriter(Review):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def decide(self, id_: str, decision: ReviewDecision) -> None:
        """What is ruled now takes the place of what was ruled before."""
        self._session.many("rule", [(id_, int(decision.released), int(decision.pinned))])
