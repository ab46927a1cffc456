"""Which engine the planes of a test are on, and new places for their data.

It is one module whichever way a test imports its helpers, since all of them must know the same one.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest

from memplane.storage.postgres.connections import Connections
from memplane.storage.postgres.migrate import ROLE, SCHEMA
from memplane.storage.sqlite.names import space_path
from postgres_server import PostgresServer

ENGINES = ("sqlite", "postgres")
both_engines = pytest.mark.both_engines
"""For what is a property of the engine: `pytestmark = both_engines`. Of those, `@only_files` takes one out again."""
only_files = pytest.mark.both_engines("sqlite")

_TENANT = "default"
_FEWER = 8
_THOROUGH = os.environ.get("MEMPLANE_TESTS") == "thorough"

both_if_thorough = both_engines if _THOROUGH else only_files
"""For examples of what properties and the contract look at on both engines anyway: a run of every day has ten minutes."""


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """A folder for one generated example; in memory where there is such a place, since syncs are most of the time."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


class KeptConnections(Connections):
    """Given to the next plane on the same database instead of being closed: a connection that has seen no table yet is most
    of what a short test would wait for."""

    idle: ClassVar[dict[tuple[object, ...], list["KeptConnections"]]] = {}
    _kind: tuple[object, ...]

    @classmethod
    def to(cls, url: str, **options: Any) -> "KeptConnections":
        kind = (url, *sorted(options.items()))
        if cls.idle.get(kind):
            return cls.idle[kind].pop()
        made = cls(url, **options)
        made._kind = kind
        return made

    def close(self) -> None:
        idle = self.idle.setdefault(self._kind, [])
        if self._opened and self not in idle:
            idle.append(self)

    @classmethod
    def close_all(cls) -> None:
        for kept in (kept for kind in list(cls.idle) for kept in cls.idle.pop(kind)):
            Connections.close(kept)


class Home:
    """Where the planes of the test that is running keep their data."""

    def __init__(self) -> None:
        self.server: PostgresServer | None = None

    @property
    def name(self) -> str:
        return "sqlite" if self.server is None else "postgres"

    def fewer(self, examples: int) -> int:
        """On PostgreSQL, where every look is a journey, a few examples have to do."""
        return examples if self.server is None or _THOROUGH else max(2, examples // _FEWER)

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """What `Memplane.open` takes, with nothing in it."""
        if self.server is None:
            with fresh_folder() as folder:
                yield str(folder)
        else:
            with self.server.database() as url:
                yield url

    def rows(self, data: str | Path, owner: str, statement: str) -> list[tuple[Any, ...]]:
        """Past the engine: what is in the tables of a space, those of PostgreSQL without the two numbers that all of its
        rows have."""
        if self.server is None:
            import apsw

            connection = apsw.Connection(str(space_path(Path(data) / "spaces" / _TENANT, owner)))
            try:
                return connection.execute(statement).fetchall()
            finally:
                connection.close()
        with psycopg.connect(str(data), autocommit=True) as reading:
            reading.execute(f"SET search_path = {SCHEMA}, public".encode())
            found = reading.execute("SELECT tenant, number FROM space WHERE owner = %s", (owner,)).fetchone()
            assert found is not None
            tenant, space = found
            reading.execute(
                f"SET memplane.tenant = '{tenant}'; SET memplane.space = '{space}'; SET ROLE {ROLE}".encode()
            )
            return reading.execute(statement.encode()).fetchall()

    def columns(self, data: str | Path, owner: str, table: str) -> list[str]:
        """Those of a table, without the two numbers."""
        if self.server is None:
            return [str(row[1]) for row in self.rows(data, owner, f"PRAGMA table_info({table})")]
        asked = f"SELECT attname FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attnum > 2 ORDER BY attnum"
        return [str(name) for (name,) in self.rows(data, owner, asked)]


HOME = Home()
