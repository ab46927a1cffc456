"""The `memplane` command: the entry point that reads the environment and wires the CLI."""

import getpass
import os
import sys
from collections.abc import Mapping

from memplane.cli.app import main
from memplane.config import settings_from
from memplane.main import Memplane
from memplane.telemetry import Listener
from memplane.terminal.call import Wiring

_PATIENCE = {"MEMPLANE_RECALL_WORK_MS": "10000"}
"""A person prefers to wait for a complete answer."""


def open_plane(data: str | None, environment: Mapping[str, str]) -> Memplane:
    return Memplane.open(data, settings=settings_from({**_PATIENCE, **environment}))


def open_served(data: str | None, environment: Mapping[str, str], listener: Listener) -> Memplane:
    from memplane.sync.watch import daily_push  # commands need no object storage

    settings = settings_from(environment)
    return Memplane.open(
        data,
        settings=settings,
        background=True if settings.serve_enriches else "elsewhere",
        listener=listener,
        daily=[daily_push(environment)],
    )


def run() -> None:
    wiring = Wiring(open=open_plane, open_served=open_served, environment=os.environ, actor=_actor())
    sys.exit(main(wiring))


def _actor() -> str:
    """The user name for the audit log; empty in a container without one."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


if __name__ == "__main__":
    run()
