"""A question while it is answered: what every channel needs to know of it."""

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
    """The question, read, split into words and embedded."""

    asked: QueryAnalysis
    question: Question
    turns: TurnColumns
    """Empty where the space is too large to be loaded."""
    held: Mapping[str, tuple[Ints, Floats]]
    """Which turns hold the stems of the question, and how often."""
    query: Vector | None = None
    """Its vector; None without an embedder, and until it is there."""
    model: int | None = None
    """The store's number for the embedder's model; None where it has no vectors of it."""
    near: Sequence[SimilarMemory] = ()
    """The memories nearest to it."""
    nearness_min: tuple[float, float] | None = None
    """How near a turn and a memory must be to have anything to do with it; None: a deviation above the usual."""
    apart: Sequence[int] = ()
    """The numbers of turns that are flagged and that nobody has released."""
    flagged_count: int = 0
    """How many memories carry a flag, counted up to `FLAGGED_MAX`."""
    where: Filter
    large: LargeTurns | None = None
    """The space, where it is too large to be loaded, …"""
    large_words: LargeWords | None = None
    """… and which of its turns hold the words."""

    @property
    def rarity(self) -> Mapping[str, int]:
        """How many turns hold each stem."""
        if self.large_words is not None:
            return self.large_words.counts
        return {stem: len(places) for stem, (places, _) in self.held.items()}

    @property
    def relevance(self) -> Relevance:
        """Words that are rare among turns are telling in memories too."""
        count = self.turns.count if self.large is None else self.large.sample.count
        return Relevance(self.question, self.rarity, count)
