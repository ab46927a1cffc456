"""The `memplane` command: the one place that reads the environment and gives the CLI its parts."""

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
"""A command works alone and is worth waiting for: an answer at once that lacks half of it is of no use to a person."""


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
    """Who is at the keyboard, for the audit log; a container's nameless user is nobody."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


if __name__ == "__main__":
    run()
