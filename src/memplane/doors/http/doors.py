"""The one list of HTTP doors."""

from memplane.config import Settings
from memplane.doors.http import system
from memplane.doors.http.endpoint import Door
from memplane.doors.mcp import http as mcp
from memplane.doors.tool import door as tool
from memplane.engine import Engine


def all_doors(plane: Engine, settings: Settings) -> list[Door]:
    """Every door, one a line."""
    return [
        system.door(plane, settings),
        tool.door(),
        mcp.door(plane, settings),
    ]
