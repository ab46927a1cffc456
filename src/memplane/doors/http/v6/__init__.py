"""The v6 door: what clients of CLAIV Memory knock at."""

from memplane.doors.http.v6.door import door

__all__ = ["door"]
