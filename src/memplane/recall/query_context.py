"""The state of a query while it is answered, shared by all channels."""

from collections.abc import Mapping, Sequence

import msgspec

from memplane.extract.relevance import Question, Relevance
from memplane.models.embedding import Vector
from memplane.models.vectors import Floats, Ints
from memplane.recall.large_spaces import LargeTurns, LargeWords
from memplane.recall.memory_index import SimilarMemory
from memplane.recall.query import QueryAnalysis
from memplane.recall.turn_index import TurnColumns
from memplane.storage.filter import Filter


class PreparedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query, parsed, split into words and embedded."""

    text: str
    """The query as it was given."""
    analysis: QueryAnalysis
    question: Question
    turns: TurnColumns
    """Empty if the space is too large to load."""
    holders: Mapping[str, tuple[Ints, Floats]]
    """Which turns contain the stems of the query, and how often."""
    query: Vector | None = None
    """The query's vector; None without an embedder, or until it is ready."""
    model: int | None = None
    """The store's number of the embedding model; None if it has no vectors of that model."""
    near: Sequence[SimilarMemory] = ()
    """The memories nearest to the query."""
    stored_count: int = 0
    """How many memories were stored, not read from a turn."""
    apart: Sequence[int] = ()
    """Numbers of turns that are flagged and not released."""
    flagged_count: int = 0
    """Number of flagged memories, counted up to `FLAGGED_MAX`."""
    where: Filter
    large: LargeTurns | None = None
    """The handle of a space too large to load, …"""
    large_words: LargeWords | None = None
    """… and which of its turns contain the words."""

    @property
    def rarity(self) -> Mapping[str, int]:
        """Number of turns that contain each stem."""
        if self.large_words is not None:
            return self.large_words.counts
        return {stem: len(places) for stem, (places, _) in self.holders.items()}

    @property
    def turn_count(self) -> int:
        return self.turns.count if self.large is None else self.large.sample.count

    @property
    def relevance(self) -> Relevance:
        """Words that are rare among turns are also distinctive in memories."""
        return Relevance(self.question, self.rarity, self.turn_count)
