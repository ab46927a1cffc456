"""One space: its store (access), its ledger (records), its memory (space)."""

from memplane.space.space import Space

__all__ = ["Space"]
