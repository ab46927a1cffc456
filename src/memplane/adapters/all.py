"""Every HTTP adapter, and the application that serves them."""

from collections.abc import Sequence

from memplane.adapters.anthropic import routes as tool
from memplane.adapters.claiv.routes import adapter as v6_door
from memplane.adapters.clawdapus.routes import adapter as plane_door
from memplane.adapters.helmdeck.routes import adapter as facts_door
from memplane.adapters.mcp import http as mcp
from memplane.adapters.proxy.routes import adapter as proxy_door
from memplane.auth.principal import Authenticator
from memplane.config import Settings
from memplane.console.routes import adapter as console_door
from memplane.engine import Engine
from memplane.server import system
from memplane.server.app import App
from memplane.server.endpoint import Adapter
from memplane.server.exchange import Observer
from memplane.server.metrics import Metrics
from memplane.telemetry import Listener, PassedListener, log_event


def all_adapters(
    plane: Engine,
    settings: Settings,
    metrics: Metrics | None = None,
    *,
    authenticator: Authenticator | None = None,
    listener: Listener = log_event,
    passed: PassedListener | None = None,
) -> list[Adapter]:
    """Every door, one a line. The authenticator is for those where one can log in; the listeners hear what the proxy did."""
    doors: list[Adapter] = [
        plane_door(plane, settings),
        facts_door(plane, settings, authenticator),
        mcp.adapter(plane, settings),
        tool.adapter(),
        v6_door(plane, settings),
        console_door(plane, authenticator),
        proxy_door(
            plane, settings, authenticated=authenticator is not None, listener=listener, passed=passed
        ),
    ]
    return [system.adapter(plane, settings, doors, metrics or Metrics()), *doors]


def build_app(
    plane: Engine,
    authenticator: Authenticator | None,
    settings: Settings,
    doors: Sequence[Adapter] | None = None,
    *,
    observers: Sequence[Observer] = (),
) -> App:
    """The application. Without an authenticator every caller may do everything; `doors` None is every adapter."""
    opened = all_adapters(plane, settings, authenticator=authenticator) if doors is None else doors
    return App(plane, authenticator, settings, opened, observers)
