"""A space's durable home: reads see one consistent snapshot, writes run as functions inside a transaction.

`reader.memories`, `reader.ledger` and the other nouns are concrete code over the engine seam (`engine.py`). No method takes a
space, so none can read across spaces. A store maps rows and keeps order; it holds no policy.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Generic, TypeVar

from memplane.errors import StorageError, StorageUncertain, StorageUnreachable
from memplane.storage.audit import AuditReader, AuditWriter
from memplane.storage.claims import ClaimsReader, ClaimsWriter
from memplane.storage.commit import GroupCommit
from memplane.storage.compaction import CompactionReader, CompactionWriter
from memplane.storage.documents import DocumentsReader, DocumentsWriter
from memplane.storage.engine import Connection, Database
from memplane.storage.episodes import EpisodesReader, EpisodesWriter
from memplane.storage.ledger import LedgerReader, LedgerWriter
from memplane.storage.memories import MemoriesReader, MemoriesWriter
from memplane.storage.overview import OverviewReader
from memplane.storage.recall_reads import RecallReader
from memplane.storage.replica import ReplicaReader, ReplicaWriter
from memplane.storage.review import ReviewReader, ReviewWriter
from memplane.storage.session import ReadSession, WriteSession
from memplane.storage.state import StateReader, StateWriter
from memplane.storage.tables import TablesReader, TablesWriter
from memplane.storage.turns import TurnsReader, TurnsWriter
from memplane.storage.vectors import VectorsReader, VectorsWriter
from memplane.storage.word_index import WordIndexReader, WordIndexWriter
from memplane.types import LedgerHead

T = TypeVar("T")
N_co = TypeVar("N_co", covariant=True)


class noun(Generic[N_co]):  # noqa: N801 - it is used like a function
    """An attribute that is made with its first use, and then found like any other. `functools.cached_property` takes a lock,
    which costs more than the object."""

    def __init__(self, make: Callable[[Any], N_co]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, reader: "Reader", owner: type) -> N_co:
        made = reader.__dict__[self._name] = self._make(reader._session)  # noqa: SLF001 - a part of `Reader`
        return made


class Reader:
    """One consistent snapshot of a space, by noun."""

    def __init__(self, session: ReadSession) -> None:
        self._session = session

    ledger = noun(LedgerReader)
    state = noun(StateReader)
    turns = noun(TurnsReader)
    memories = noun(MemoriesReader)
    claims = noun(ClaimsReader)
    episodes = noun(EpisodesReader)
    documents = noun(DocumentsReader)
    vectors = noun(VectorsReader)
    words = noun(WordIndexReader)
    recall = noun(RecallReader)
    review = noun(ReviewReader)
    compaction = noun(CompactionReader)
    overview = noun(OverviewReader)
    replica = noun(ReplicaReader)
    audit = noun(AuditReader)
    tables = noun(TablesReader)


class Writer(Reader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    ledger = noun(LedgerWriter)
    state = noun(StateWriter)
    turns = noun(TurnsWriter)
    memories = noun(MemoriesWriter)
    claims = noun(ClaimsWriter)
    episodes = noun(EpisodesWriter)
    documents = noun(DocumentsWriter)
    vectors = noun(VectorsWriter)
    words = noun(WordIndexWriter)
    review = noun(ReviewWriter)
    compaction = noun(CompactionWriter)
    replica = noun(ReplicaWriter)
    audit = noun(AuditWriter)
    tables = noun(TablesWriter)


class Store:
    """One space."""

    def __init__(self, database: Database, owner: str) -> None:
        self.database = database
        self.owner = owner
        self._commits = GroupCommit(self._transaction, database.fatal)

    def read(self) -> AbstractContextManager[Reader]:
        """A consistent snapshot; cheap, never blocked by a writer."""
        return _Reading(self.database.read(), self.owner)

    def write(self, work: Callable[[Writer], T]) -> T:
        """Run `work` in a transaction and return its result once that is durable.

        Works of concurrent callers may share one commit, and each fails alone: if it raises, its own changes are undone and the
        exception reaches its own caller. `work` may run in another thread and must not call `write` itself.
        """
        return self._commits.run(work)

    def wipe(self, *, bytes_max: int | None = None) -> bool:
        """See `Database.wipe`. `Stores.erasures` also records that it is done."""
        return self.database.wipe(bytes_max=bytes_max)

    def check(self) -> list[str]:
        """See `Database.check`."""
        return self.database.check()

    @contextmanager
    def _transaction(self) -> Iterator[tuple[WriteSession, Writer]]:
        try:
            with self.database.write() as connection:
                session = WriteSession(connection, self.owner)
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
