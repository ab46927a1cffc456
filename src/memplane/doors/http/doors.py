"""The one list of HTTP doors."""

from memplane.config import Settings
from memplane.doors.http import plane as plane_door
from memplane.doors.http import system
from memplane.doors.http.endpoint import Door
from memplane.doors.http.metrics import Metrics
from memplane.engine import Engine


def all_doors(plane: Engine, settings: Settings, metrics: Metrics | None = None) -> list[Door]:
    """Every door, one a line."""
    doors: list[Door] = [
        plane_door.door(plane, settings),
    ]
    return [system.door(plane, settings, doors, metrics or Metrics()), *doors]
