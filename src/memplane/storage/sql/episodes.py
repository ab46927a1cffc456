"""`EpisodeReader` and `EpisodeWriter` in SQL. Episodes are memories, so the writer of memories adds and
drops them."""

from collections.abc import Sequence

from memplane.clock import Instant
from memplane.storage.episodes import OpenSitting
from memplane.storage.filter import Filter
from memplane.storage.sql import rows
from memplane.storage.sql.session import SqlSession
from memplane.types import Memory, Turn


class SqlEpisodeReader(SqlSession):
    """See `EpisodeReader`."""

    def untold(self, *, before: Instant, limit: int) -> list[OpenSitting]:
        return [OpenSitting(*row) for row in self._all("untold", before=before, limit=limit)]

    def untold_in(self, conversation: str) -> OpenSitting | None:
        row = self._one("untold_in", conversation=conversation)
        return None if row is None else OpenSitting(*row)

    def turns_of(self, conversation: str, *, since: int) -> list[Turn]:
        found = self._all("turns_of", conversation=conversation, since=since)
        return [rows.turn_from(row) for row in found]

    def last_turn_of(self, conversation: str, *, before: int) -> Turn | None:
        row = self._one("last_turn_of", conversation=conversation, before=before)
        return None if row is None else rows.turn_from(row)

    def episode_count(self, conversations: Sequence[str]) -> int:
        return int(self._one("episode_count", conversations=self._list(conversations))[0])

    def conversations_of(self, seqs: Sequence[int]) -> list[str]:
        return [name for (name,) in self._all("conversations_of", seqs=self._list(seqs))]

    def episodes_of(self, conversations: Sequence[str], where: Filter, *, limit: int) -> list[Memory]:
        return self._memories("episodes_of", where, conversations=self._list(conversations), limit=limit)


class SqlEpisodeWriter(SqlEpisodeReader):
    """See `EpisodeWriter`, but for what it does with memories."""

    def set_untold(self, untold: OpenSitting) -> None:
        self._ready()
        self._many("set_untold", [(untold.conversation, untold.first, untold.last_at)])

    def set_told(self, conversation: str) -> None:
        self._ready()
        self._many("set_told", [(conversation,)])
