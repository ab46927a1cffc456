"""A question while it is answered: what every channel needs to know of it."""

from collections.abc import Mapping, Sequence

import msgspec

from memplane.providers.embedding import Vector
from memplane.recall.asked import Asked
from memplane.recall.memory_index import Near
from memplane.recall.relevance import Question, Relevance
from memplane.recall.turn_index import Floats, Ints, Turns
from memplane.storage.filter import Filter


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """The question, read, split into words and embedded."""

    asked: Asked
    question: Question
    turns: Turns
    held: Mapping[str, tuple[Ints, Floats]]
    """Which turns hold the stems of the question, and how often."""
    query: Vector | None = None
    """Its vector; None without an embedder, and until it is there."""
    model: int | None = None
    """The store's number for the embedder's model; None where it has no vectors of it."""
    near: Sequence[Near] = ()
    """The memories nearest to it."""
    nearness_min: tuple[float, float] | None = None
    """How near a turn and a memory must be to have anything to do with it; None: a deviation above the usual."""
    apart: Sequence[int] = ()
    """The numbers of turns that are flagged and that nobody has released."""
    where: Filter

    @property
    def relevance(self) -> Relevance:
        """Words that are rare among turns are telling in memories too."""
        rarity = {stem: len(places) for stem, (places, _) in self.held.items()}
        return Relevance(self.question, rarity, self.turns.count)
