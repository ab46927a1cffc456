"""Episodes: summaries of conversations, and conversations that still need one."""

from collections.abc import Sequence

import msgspec

from memplane.clock import Instant
from memplane.storage.memories import add_memories, drop_memories
from memplane.storage.session import SessionReader, WriteSession
from memplane.storage.state import grow_generation
from memplane.types import Memory


class OpenSitting(msgspec.Struct, frozen=True, gc=False):
    """A conversation that continues after its last episode."""

    conversation: str
    first: int
    """The number of the first turn that no episode covers."""
    last_at: Instant


class EpisodesReader(SessionReader):
    """Reads of episodes."""

    def pending(self, *, before: Instant, limit: int) -> list[OpenSitting]:
        """Conversations whose last turn was before then, and that have turns after their last episode."""
        return [OpenSitting(*row) for row in self._session.all("untold", before=before, limit=limit)]

    def pending_in(self, conversation: str) -> OpenSitting | None:
        """The part of a conversation that no episode covers; None if episodes cover all of it."""
        row = self._session.one("untold_in", conversation=conversation)
        return None if row is None else OpenSitting(*row)

    def count(self, conversations: Sequence[str]) -> int:
        """How many episodes these conversations have."""
        return int(self._session.one("episode_count", conversations=list(conversations))[0])

    def cited_seqs(self, memory_id: str) -> list[int]:
        """The seqs of the entries that an episode quotes."""
        return [seq for (seq,) in self._session.all("cited_by", id=memory_id)]


class EpisodesWriter(EpisodesReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def set_pending(self, pending: OpenSitting) -> None:
        """Mark a conversation as not covered from this turn on."""
        self._session.many("set_untold", [(pending.conversation, pending.first, pending.last_at)])

    def set_done(self, conversation: str) -> None:
        """Mark a conversation as covered by episodes."""
        self._session.many("set_told", [(conversation,)])

    def add(self, episodes: Sequence[tuple[Memory, Sequence[int]]]) -> None:
        """Add memories of kind episode, each with the seqs of the entries it quotes. An episode is removed when
        one of these entries is erased."""
        add_memories(self._session, [memory for memory, _ in episodes])
        self._session.many("add_cited", [(seq, memory.id) for memory, seqs in episodes for seq in seqs])

    def drop(self, conversation: str) -> None:
        """Remove a conversation's episodes, so that it can be summarized again."""
        found = self._session.all("episode_rows", conversation=conversation)
        drop_memories(self._session, found)
        grow_generation(self._session, found)
