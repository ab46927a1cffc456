"""The one list of HTTP doors."""

from memplane.config import Settings
from memplane.doors.http import plane as plane_door
from memplane.doors.http import proxy as proxy_door
from memplane.doors.http import system
from memplane.doors.http.console.door import door as console_door
from memplane.doors.http.endpoint import Door
from memplane.doors.http.facts.door import door as facts_door
from memplane.doors.http.metrics import Metrics
from memplane.doors.http.proxy.passed import PassedListener
from memplane.doors.http.v6.door import door as v6_door
from memplane.doors.mcp import http as mcp
from memplane.doors.tool import door as tool
from memplane.engine import Engine
from memplane.governance.events import Listener, log_event
from memplane.identity.principal import Authenticator


def all_doors(
    plane: Engine,
    settings: Settings,
    metrics: Metrics | None = None,
    *,
    authenticator: Authenticator | None = None,
    listener: Listener = log_event,
    passed: PassedListener | None = None,
) -> list[Door]:
    """Every door, one a line. The authenticator is for those where one can log in; the listeners hear what the proxy did."""
    doors: list[Door] = [
        plane_door.door(plane, settings),
        facts_door(plane, settings, authenticator),
        mcp.door(plane, settings),
        tool.door(),
        v6_door(plane, settings),
        console_door(plane, authenticator),
        proxy_door.door(
            plane, settings, authenticated=authenticator is not None, listener=listener, passed=passed
        ),
    ]
    return [system.door(plane, settings, doors, metrics or Metrics()), *doors]
