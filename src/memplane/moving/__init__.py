"""A whole installation into another database, so that nothing changes."""

from memplane.moving.move import Move, MoveReport, Progress

__all__ = ["Move", "MoveReport", "Progress"]
