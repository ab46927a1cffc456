"""A space's durable home: reads see one consistent snapshot, writes run as functions inside a transaction.

`reader.memories`, `reader.ledger` and the other nouns are concrete code over the engine seam (`engine.py`). No method takes a
space, so none can read across spaces. A store maps rows and keeps order; it holds no policy.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from types import TracebackType
from typing import TypeVar

from memplane.errors import StorageError, StorageUncertain, StorageUnreachable
from memplane.storage.audit import Audit, AuditWriter
from memplane.storage.claims import Claims, ClaimsWriter
from memplane.storage.commit import GroupCommit
from memplane.storage.compaction import Compaction, CompactionWriter
from memplane.storage.documents import Documents, DocumentsWriter
from memplane.storage.engine import Connection, Database
from memplane.storage.episodes import Episodes, EpisodesWriter
from memplane.storage.ledger import Ledger, LedgerWriter
from memplane.storage.memories import Memories, MemoriesWriter
from memplane.storage.overview import Overview
from memplane.storage.recall_reads import RecallReads
from memplane.storage.replica import Replica, ReplicaWriter
from memplane.storage.review import Review, ReviewWriter
from memplane.storage.session import ReadSession, WriteSession
from memplane.storage.state import State, StateWriter
from memplane.storage.tables import Tables, TablesWriter
from memplane.storage.turns import Turns, TurnsWriter
from memplane.storage.vectors import Vectors, VectorsWriter
from memplane.storage.word_index import WordIndex, WordIndexWriter
from memplane.types import LedgerHead

T = TypeVar("T")


class Reader:
    """One consistent snapshot of a space, by noun."""

    def __init__(self, session: ReadSession) -> None:
        self._session = session

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self._session)

    @cached_property
    def state(self) -> State:
        return State(self._session)

    @cached_property
    def turns(self) -> Turns:
        return Turns(self._session)

    @cached_property
    def memories(self) -> Memories:
        return Memories(self._session)

    @cached_property
    def claims(self) -> Claims:
        return Claims(self._session)

    @cached_property
    def episodes(self) -> Episodes:
        return Episodes(self._session)

    @cached_property
    def documents(self) -> Documents:
        return Documents(self._session)

    @cached_property
    def vectors(self) -> Vectors:
        return Vectors(self._session)

    @cached_property
    def words(self) -> WordIndex:
        return WordIndex(self._session)

    @cached_property
    def recall(self) -> RecallReads:
        return RecallReads(self._session)

    @cached_property
    def review(self) -> Review:
        return Review(self._session)

    @cached_property
    def compaction(self) -> Compaction:
        return Compaction(self._session)

    @cached_property
    def overview(self) -> Overview:
        return Overview(self._session)

    @cached_property
    def replica(self) -> Replica:
        return Replica(self._session)

    @cached_property
    def audit(self) -> Audit:
        return Audit(self._session)

    @cached_property
    def tables(self) -> Tables:
        return Tables(self._session)


class Writer(Reader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    @cached_property
    def ledger(self) -> LedgerWriter:
        return LedgerWriter(self._session)

    @cached_property
    def state(self) -> StateWriter:
        return StateWriter(self._session)

    @cached_property
    def turns(self) -> TurnsWriter:
        return TurnsWriter(self._session)

    @cached_property
    def memories(self) -> MemoriesWriter:
        return MemoriesWriter(self._session)

    @cached_property
    def claims(self) -> ClaimsWriter:
        return ClaimsWriter(self._session)

    @cached_property
    def episodes(self) -> EpisodesWriter:
        return EpisodesWriter(self._session)

    @cached_property
    def documents(self) -> DocumentsWriter:
        return DocumentsWriter(self._session)

    @cached_property
    def vectors(self) -> VectorsWriter:
        return VectorsWriter(self._session)

    @cached_property
    def words(self) -> WordIndexWriter:
        return WordIndexWriter(self._session)

    @cached_property
    def review(self) -> ReviewWriter:
        return ReviewWriter(self._session)

    @cached_property
    def compaction(self) -> CompactionWriter:
        return CompactionWriter(self._session)

    @cached_property
    def replica(self) -> ReplicaWriter:
        return ReplicaWriter(self._session)

    @cached_property
    def audit(self) -> AuditWriter:
        return AuditWriter(self._session)

    @cached_property
    def tables(self) -> TablesWriter:
        return TablesWriter(self._session)


class Store:
    """One space."""

    def __init__(self, database: Database, owner: str) -> None:
        self.database = database
        self._owner = owner
        self._commits = GroupCommit(self._transaction, database.fatal)

    def read(self) -> AbstractContextManager[Reader]:
        """A consistent snapshot; cheap, never blocked by a writer."""
        return _Reading(self.database.read(), self._owner)

    def write(self, work: Callable[[Writer], T]) -> T:
        """Run `work` in a transaction and return its result once that is durable.

        Works of concurrent callers may share one commit, and each fails alone: if it raises, its own changes are undone and the
        exception reaches its own caller. `work` may run in another thread and must not call `write` itself.
        """
        return self._commits.run(work)

    def wipe(self, *, bytes_max: int | None = None) -> bool:
        """See `Database.wipe`."""
        return self.database.wipe(bytes_max=bytes_max)

    def check(self) -> list[str]:
        """See `Database.check`."""
        return self.database.check()

    @contextmanager
    def _transaction(self) -> Iterator[tuple[WriteSession, Writer]]:
        try:
            with self.database.write() as connection:
                session = WriteSession(connection, self._owner)
                before = session.head
                yield session, Writer(session)
        except StorageUncertain:
            if session.head == before or not self._is_written(session.head):
                raise

    def _is_written(self, head: LedgerHead) -> bool:
        """Whether an entry is in the chain after a commit of unknown outcome. Its digest covers a salt, so no other entry has
        it. The write transaction waits for a server that is still busy with the lost commit."""
        try:
            with self.database.write() as connection:
                found = connection.execute("chained", {"position": head.position, "digest": head.digest})
        except StorageError:
            return False
        if not found:
            raise StorageUnreachable("the database went away; nothing was written, try again")
        return True


class _Reading:
    """A snapshot for the length of a block. A plain class, because every read takes one."""

    __slots__ = ("_connection", "_owner")

    def __init__(self, connection: AbstractContextManager[Connection], owner: str) -> None:
        self._connection = connection
        self._owner = owner

    def __enter__(self) -> Reader:
        return Reader(ReadSession(self._connection.__enter__(), self._owner))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.__exit__(kind, error, trace)
