"""A whole installation into another database, so that nothing changes."""

from memplane.moving.move import PASSES_MAX, Move, MoveReport, Progress

__all__ = ["PASSES_MAX", "Move", "MoveReport", "Progress"]
