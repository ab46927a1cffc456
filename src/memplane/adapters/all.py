"""Every HTTP adapter, and the application that serves them."""

from collections.abc import Sequence

from memplane.adapters.anthropic import routes as tool
from memplane.adapters.claiv.routes import adapter as claiv_adapter
from memplane.adapters.clawdapus.routes import adapter as clawdapus_adapter
from memplane.adapters.helmdeck.routes import adapter as helmdeck_adapter
from memplane.adapters.mcp import http as mcp
from memplane.adapters.proxy.routes import adapter as proxy_adapter
from memplane.auth.principal import Authenticator
from memplane.config import Settings
from memplane.console.routes import adapter as console_adapter
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
    """All adapters. The authenticator is for those with a login; the listeners receive the proxy's events."""
    adapters: list[Adapter] = [
        clawdapus_adapter(plane, settings),
        helmdeck_adapter(plane, settings, authenticator),
        mcp.adapter(plane, settings),
        tool.adapter(),
        claiv_adapter(plane, settings),
        console_adapter(plane, authenticator),
        proxy_adapter(
            plane, settings, authenticated=authenticator is not None, listener=listener, passed=passed
        ),
    ]
    return [system.adapter(plane, settings, adapters, metrics or Metrics()), *adapters]


def build_app(
    plane: Engine,
    authenticator: Authenticator | None,
    settings: Settings,
    adapters: Sequence[Adapter] | None = None,
    *,
    observers: Sequence[Observer] = (),
) -> App:
    """The application. Without an authenticator every caller has all permissions; `adapters` None means all."""
    opened = all_adapters(plane, settings, authenticator=authenticator) if adapters is None else adapters
    return App(plane, authenticator, settings, opened, observers)
