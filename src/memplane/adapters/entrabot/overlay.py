"""Register these modules under EntraBot's own names.

If EntraBot itself is installed, only its memory modules are replaced, and the token comes from its own sign-in.
"""

import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, Final, cast

_HERE = "memplane.adapters.entrabot"

REPLACED: Final = {
    "entrabot.storage": f"{_HERE}.storage",
    "entrabot.storage.blob": f"{_HERE}.storage.blob",
    "entrabot.storage.backend": f"{_HERE}.storage.backend",
    "entrabot.storage.migration": f"{_HERE}.storage.migration",
    "entrabot.storage.persona": f"{_HERE}.storage.persona",
    "entrabot.tools.interaction_log": f"{_HERE}.tools.interaction_log",
    "entrabot.tools.daily_summary": f"{_HERE}.tools.daily_summary",
    "entrabot.tools.promises": f"{_HERE}.tools.promises",
}
PROVIDED: Final = {
    "entrabot.errors": f"{_HERE}.errors",
    "entrabot.config": f"{_HERE}.environment",
    "entrabot.tools": f"{_HERE}.tools",
    "entrabot.tools.state": f"{_HERE}.tools.state",
}
"""Taken from here only if an installed EntraBot does not have them."""


def install() -> None:
    """Make `import entrabot.storage.backend` and the other names return Memplane's modules. Call it before EntraBot
    is imported; further calls do nothing."""
    original = _imported("entrabot")
    if original is None:
        original = ModuleType("entrabot", "EntraBot's memory, kept by Memplane.")
        original.__path__ = []
        sys.modules["entrabot"] = original
    teams = _imported("entrabot.tools.teams")
    errors = _imported("entrabot.errors")
    for name, ours in PROVIDED.items():
        if _imported(name) is None:
            _register(name, import_module(ours))
    for name, ours in REPLACED.items():
        _register(name, import_module(ours))
    _borrow(teams, errors)


def _register(name: str, module: ModuleType) -> None:
    sys.modules[name] = module
    parent, _, attribute = name.rpartition(".")
    setattr(sys.modules[parent], attribute, module)


def _borrow(teams: ModuleType | None, errors: ModuleType | None) -> None:
    """Use EntraBot's own sign-in and its own error for an expired token, which its programs catch."""
    backend = cast("Any", import_module(f"{_HERE}.storage.backend"))
    if teams is not None and hasattr(teams, "acquire_agent_user_storage_token"):
        settings = cast("Any", import_module("entrabot.config"))
        acquire = teams.acquire_agent_user_storage_token
        backend.acquire_agent_user_storage_token = lambda _: acquire(settings.get_config())
    if errors is not None and hasattr(errors, "TokenExpiredError"):
        for name in ("storage.blob", "tools.daily_summary"):
            cast("Any", import_module(f"{_HERE}.{name}")).TokenExpiredError = errors.TokenExpiredError


def _imported(name: str) -> ModuleType | None:
    with suppress(ImportError):
        return import_module(name)
    return None
