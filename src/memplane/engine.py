"""The engine: spaces and what is done over all of them. It knows protocols only; `main.py` brings the real parts."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from memplane.clock import Clock, system_clock
from memplane.config import Settings
from memplane.governance.events import Events, Listener
from memplane.memory.checks import check_caller
from memplane.space import Space
from memplane.storage.base import Stores
from memplane.types import Caller

TENANT_DEFAULT = "default"


class Engine:
    """All spaces of an installation. Safe to use from many threads, and from many processes at once."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings | None = None,
        *,
        clock: Clock = system_clock,
        listener: Listener | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._stores = stores
        self._clock = clock
        self._events = Events(clock, listener)

    def space(self, owner: str, *, tenant: str = TENANT_DEFAULT, caller: Caller | None = None) -> Space:
        """The space of one owner; any text is a legal owner id. It comes into being with its first use."""
        for field in ("actor", "door", "session") if caller is not None else ():
            check_caller(getattr(caller, field), field=field)
        return Space(
            self._stores, tenant, owner, caller or Caller(), self.settings, self._clock, self._events
        )

    def spaces(self, tenant: str = TENANT_DEFAULT) -> Iterator[str]:
        """Every owner with a space."""
        return iter(self._stores.owners(tenant))

    def close(self) -> None:
        self._stores.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
