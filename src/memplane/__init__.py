"""Memplane: a self-hosted memory plane for AI agents.

>>> from memplane import Memplane
>>> plane = Memplane.open("/tmp/example")
>>> space = plane.space("alice")
"""

from memplane.config import Settings
from memplane.engine import Engine
from memplane.main import Memplane
from memplane.recall.result import Limits, Recall
from memplane.space import Space
from memplane.storage.directory import Sort
from memplane.types import Caller, Kind, Memory, Receipt, Retained, State, Tier, Turn

__all__ = [
    "Caller",
    "Engine",
    "Kind",
    "Limits",
    "Memory",
    "Memplane",
    "Recall",
    "Receipt",
    "Retained",
    "Settings",
    "Sort",
    "Space",
    "State",
    "Tier",
    "Turn",
]
