"""The one place that names concrete engines and wires them."""

from pathlib import Path
from typing import Self

import msgspec

from memplane.clock import Clock, system_clock
from memplane.config import Settings
from memplane.engine import Engine
from memplane.governance.events import Listener
from memplane.storage.sqlite.connection import parse_key
from memplane.storage.sqlite.stores import SqliteStores


class Memplane(Engine):
    """Memplane in your own process: `with Memplane.open("~/.memplane") as plane: …`."""

    @classmethod
    def open(
        cls,
        data: str | Path | None = None,
        *,
        key: str | None = None,
        settings: Settings | None = None,
        clock: Clock = system_clock,
        listener: Listener | None = None,
    ) -> Self:
        """Open a data directory. With a key, everything in it is encrypted."""
        settings = settings or Settings()
        changes = {"data": str(data)} if data is not None else {}
        changes |= {"key": key} if key is not None else {}
        settings = msgspec.structs.replace(settings, **changes)
        key = None if settings.key is None else parse_key(settings.key)
        root = Path(settings.data).expanduser()
        return cls(SqliteStores(root, key), settings, clock=clock, listener=listener)
