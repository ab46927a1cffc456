"""One space of a PostgreSQL database, and its catalog."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from memplane.errors import StorageUnreachable
from memplane.storage.postgres.connections import Connections
from memplane.storage.postgres.errors import FATAL
from memplane.storage.postgres.place import SpaceKey
from memplane.storage.postgres.statements import PostgresConnection

NOT_DURABLE = "SET LOCAL synchronous_commit = off"

_NO_WAIT = "SET LOCAL lock_timeout = '20ms'"
_PROBE_S = 1.0


class PostgresDatabase:
    """See `Database`. Readers see a snapshot. Writers, in any process, follow each other: each locks the space's own row."""

    single_writer: ClassVar[bool] = True
    own_files: ClassVar[bool] = False
    fatal: ClassVar[tuple[type[Exception], ...]] = FATAL

    def __init__(self, connections: Connections, place: SpaceKey) -> None:
        self.place = place
        self.attached: object | None = None
        self._connections = connections
        self._reading = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {place.said()}"

    @contextmanager
    def read(self) -> Iterator[PostgresConnection]:
        with self._connections.transaction(self._reading) as connection:
            yield PostgresConnection(connection, self.place)

    @contextmanager
    def write(self, *, durable: bool = True, wait: bool = True) -> Iterator[PostgresConnection]:
        with self._connections.transaction(
            _begin(self.place.locked(), durable=durable, wait=wait)
        ) as connection:
            yield PostgresConnection(connection, self.place)

    def wipe(self, *, bytes_max: int | None = None, retry: bool = False) -> bool:  # noqa: ARG002 - see `Database`
        """Spaces share files, so this rewrites those of all spaces; never with a limit. The database's log and its backups keep
        what they hold until they are recycled; see docs/guides/postgresql.md."""
        return bytes_max is None and self._connections.rewrite()

    def check(self) -> list[str]:
        with self.read():
            return []

    def close(self) -> None:
        """The connections belong to the engine."""


class PostgresCatalog:
    """See `Database`. Transactions do not wait for each other, and a thread that holds a connection to a space may need one to the
    catalog: if works shared a commit here, threads could wait for each other's connections."""

    single_writer: ClassVar[bool] = False
    own_files: ClassVar[bool] = False
    fatal: ClassVar[tuple[type[Exception], ...]] = FATAL

    def __init__(self, connections: Connections) -> None:
        self.attached: object | None = None
        self._connections = connections

    @contextmanager
    def read(self) -> Iterator[PostgresConnection]:
        with self._connections.transaction("BEGIN READ ONLY") as connection:
            yield PostgresConnection(connection, None)

    @contextmanager
    def write(self, *, durable: bool = True, wait: bool = True) -> Iterator[PostgresConnection]:
        with self._connections.transaction(_begin("BEGIN", durable=durable, wait=wait)) as connection:
            yield PostgresConnection(connection, None)

    def wipe(self, *, bytes_max: int | None = None, retry: bool = False) -> bool:  # noqa: ARG002 - nothing is rewritten
        """The database cleans up after itself."""
        return True

    def check(self) -> list[str]:
        with self.read():
            return []

    def close(self) -> None:
        """The connections belong to the engine."""

    def probe(self) -> None:
        """See `StorageEngine.probe`."""
        with self._connections.transaction("BEGIN", wait_s=_PROBE_S) as connection:
            found = connection.execute(
                "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"
            )
            if found.fetchone() == (True,):
                raise StorageUnreachable("the database takes no writes now: it is a standby; try again later")


def _begin(begin: str, *, durable: bool, wait: bool) -> str:
    first, _, rest = begin.partition("; ")
    settings = [] if durable else [NOT_DURABLE]
    if not wait:
        settings.append(_NO_WAIT)
    return "; ".join([first, *settings, *([rest] if rest else [])])
