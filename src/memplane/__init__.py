"""Memplane: a self-hosted memory plane for AI agents.

>>> from memplane import Memplane
>>> plane = Memplane.open("/tmp/example")
>>> space = plane.space("alice")
"""

import warnings

from memplane.config import Settings
from memplane.engine import Engine
from memplane.main import Memplane
from memplane.moved import keep_old_names
from memplane.recall.request import RecallRequest
from memplane.recall.result import Limits, Recall
from memplane.space import Space
from memplane.storage.catalog.directory import ResourceKind
from memplane.types import Caller, Kind, Memory, Receipt, Retained, State, Tier, Turn

__all__ = [
    "Caller",
    "Engine",
    "Kind",
    "Limits",
    "Memory",
    "Memplane",
    "Recall",
    "RecallRequest",
    "Receipt",
    "ResourceKind",
    "Retained",
    "Settings",
    "Space",
    "State",
    "Tier",
    "Turn",
]

# Names of earlier versions, which keep working.
keep_old_names()
_RENAMED = {"Sort": ResourceKind}


def __getattr__(name: str) -> object:
    if name in _RENAMED:
        current = _RENAMED[name]
        warnings.warn(f"memplane.{name} is now memplane.{current.__name__}", DeprecationWarning, stacklevel=2)
        return current
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
