"""The memory-plane door: what cllama and `claw memory` knock at."""

from memplane.doors.http.plane.door import door

__all__ = ["door"]
