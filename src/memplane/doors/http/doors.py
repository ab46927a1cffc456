"""The one list of HTTP doors."""

from memplane.config import Settings
from memplane.doors.http import system
from memplane.doors.http.endpoint import Door
from memplane.doors.http.metrics import Metrics
from memplane.doors.mcp import http as mcp
from memplane.doors.tool import door as tool
from memplane.engine import Engine


def all_doors(plane: Engine, settings: Settings, metrics: Metrics | None = None) -> list[Door]:
    """Every door, one a line."""
    doors: list[Door] = [
        mcp.door(plane, settings),
        tool.door(),
    ]
    return [system.door(plane, settings, doors, metrics or Metrics()), *doors]
