"""What an agent is told before its first call: asked for while its container is set up, which must never wait long."""

import logging
from threading import Thread
from typing import Protocol

from memplane.adapters.carapace.groups import DOOR, check_group
from memplane.clock import system_clock, to_datetime
from memplane.recall.brief import Brief
from memplane.space import Space
from memplane.types import Caller

TIMEOUT_S = 5.0

_log = logging.getLogger("memplane.ipc")


class SpaceProvider(Protocol):
    """What the door asks of an installation; `memplane.main.Memplane` is one."""

    def space(self, owner: str, *, caller: Caller | None = None) -> Space: ...


def get_brief(plane: SpaceProvider, group: str, *, timeout_s: float = TIMEOUT_S) -> Brief:
    """The brief of a group; its `markdown` is what goes into the system prompt.

    Never raises and never takes longer than the timeout: what goes wrong is logged, and the answer is an empty brief.
    """
    found: list[Brief] = []

    def ask() -> None:
        try:
            found.append(plane.space(check_group(group), caller=Caller(door=DOOR)).brief())
        except Exception:  # noqa: BLE001 - a container is set up whatever happens here
            _log.warning("the brief of a group could not be made; its session starts without", exc_info=True)

    thread = Thread(target=ask, name="memplane-brief", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        _log.warning("the brief of group %r took over %s s; its session starts without", group, timeout_s)
    if found:
        return found[0]
    return Brief(entries=(), generated_at=to_datetime(system_clock()), entry_count=0, brief_count=0)
