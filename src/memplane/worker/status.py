"""What is pending in a space, as the worker reports it."""

import msgspec


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """Pending enrichment of a space."""

    entries: int
    """Entries not yet read for memories."""
    turns: bool
    """Whether turns are waiting for vectors."""
    memories: int
    """Memories waiting for vectors."""
    spans: int = 0
    """Document spans waiting for vectors."""
    documents: int = 0
    """Documents waiting for summaries."""

    @property
    def nothing(self) -> bool:
        return not (self.entries or self.turns or self.memories or self.spans or self.documents)


class EmbeddingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The embedding model of a space, and what has no vector of it yet."""

    model: str | None
    """The id of the model; None if this process has none, so nothing is pending."""
    replaces: str | None = None
    """The id of the model whose vectors are being replaced; None if the model did not change."""
    turns: int = 0
    memories: int = 0
    spans: int = 0

    @property
    def pending(self) -> int:
        """How many turns, memories and spans are left."""
        return self.turns + self.memories + self.spans


class EnrichmentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of enrichment in a space."""

    waiting: Lag
    poisoned: int
    """Entries whose derivation failed."""
    tokens_in: int
    tokens_out: int
    """LLM tokens used so far."""
    embedding: EmbeddingStatus
