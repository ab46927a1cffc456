"""One space among many in a PostgreSQL database."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from memplane.errors import StorageError, StorageUncertain, StorageUnreachable
from memplane.storage.base import Reader, Writer
from memplane.storage.postgres.connections import Connections
from memplane.storage.postgres.errors import FATAL
from memplane.storage.postgres.place import SpaceKey
from memplane.storage.postgres.reader import PostgresReader
from memplane.storage.postgres.statements import PostgresStatements
from memplane.storage.sql.commit import GroupCommit
from memplane.storage.sql.writer import SqlWriter
from memplane.types import LedgerHead

T = TypeVar("T")


class PostgresStore:
    """`Store` over the rows of one space. Readers see a snapshot; writers, in whatever process, follow each other, which
    the lock on the space's own row sees to."""

    def __init__(self, connections: Connections, place: SpaceKey, owner: str) -> None:
        self.place = place
        self._connections = connections
        self._owner = owner
        self._reading = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {place.said()}"
        self._writing = place.locked()
        self._commits = GroupCommit(self._transaction, FATAL)

    @contextmanager
    def read(self) -> Iterator[Reader]:
        with self._connections.transaction(self._reading) as connection:
            yield PostgresReader(PostgresStatements(connection), self._owner, self.place)

    def write(self, work: Callable[[Writer], T]) -> T:
        return self._commits.run(work)

    def wipe(self, *, bytes_max: int | None = None) -> bool:
        """Spaces share files, so that this writes anew those of all: never in passing. The database's log and its backups
        hold what they hold until they are recycled; see docs/guides/postgresql.md."""
        return bytes_max is None and self._connections.rewrite()

    def check(self) -> list[str]:
        with self._connections.transaction(self._reading):
            return []

    @contextmanager
    def _transaction(self) -> Iterator[SqlWriter]:
        try:
            with self._connections.transaction(self._writing) as connection:
                writer = SqlWriter(PostgresStatements(connection), self._owner)
                before = writer.head()
                yield writer
        except StorageUncertain:
            if writer.head() == before or not self._is_written(writer.head()):
                raise

    def _is_written(self, head: LedgerHead) -> bool:
        """Whether an entry is in the chain, of which nobody was told. Its digest is over a salt, so that no other has it.
        Whoever asks waits for the row of the space first, and so for a server that still works at what was lost."""
        try:
            with self._connections.transaction(self._writing) as connection:
                asked = {"position": head.position, "digest": head.digest}
                found = PostgresStatements(connection).one("chained", asked)
        except StorageError:
            return False
        if found is None:
            raise StorageUnreachable("the database went away; nothing was written, try again")
        return True
