"""What `Space` and its sub-objects share: the services of the installation, and one owner's store as one caller uses it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Self, TypeVar

import msgspec

from memplane.clock import Clock
from memplane.config import Settings
from memplane.errors import LimitReached, NotFound
from memplane.extract.catalog import PredicateCatalog
from memplane.memory import projection
from memplane.memory.recorder import Recorder
from memplane.models.embedding import Embedder
from memplane.models.llm import LLMFailed
from memplane.recall.caches import AccessCounts, Indexes, Questions
from memplane.safety.redact import redact
from memplane.space.summary import CountsCache
from memplane.storage.catalog.directory import Directory
from memplane.storage.store import Reader, Store, Writer
from memplane.storage.stores import Stores
from memplane.telemetry import Events, ignore_event
from memplane.types import Caller
from memplane.worker.batch import Enricher
from memplane.worker.pipeline import Worker

T = TypeVar("T")

_CATCH_UP_PER_READ = 2_000


class SpaceServices(msgspec.Struct, frozen=True, kw_only=True):
    """The services of an installation, made by the engine and shared by all of its spaces."""

    stores: Stores
    directory: Directory
    settings: Settings
    clock: Clock
    events: Events
    embedder: Embedder | None
    catalog: PredicateCatalog
    worker: Worker
    background: Enricher | None
    indexes: Indexes
    access_counts: AccessCounts
    questions: Questions
    counts_cache: CountsCache = msgspec.field(default_factory=CountsCache)
    """Counts that overviews of spaces showed before."""

    def yield_to_requests(self) -> AbstractContextManager[None]:
        """While the context is open, a request is being answered and enrichment in this process waits."""
        return nullcontext() if self.background is None else self.background.yield_to_requests()

    def notify(self, tenant: str, owner: str) -> None:
        """Wake the enrichment worker: a space has a new entry."""
        if self.background is not None:
            self.background.notify(tenant, owner)


class SpaceContext:
    """Reads and writes of one space by one caller: transactions, telemetry, and the audit log of refused writes."""

    def __init__(self, parts: SpaceServices, tenant: str, owner: str, caller: Caller) -> None:
        self.parts = parts
        self.tenant = tenant
        self.owner = owner
        self.caller = caller
        self.settings = parts.settings
        self.clock = parts.clock
        self.events = parts.events
        self.recorder = Recorder(
            tenant=tenant,
            owner=owner,
            caller=caller,
            settings=parts.settings,
            clock=parts.clock,
            directory=parts.directory,
        )

    def silent(self) -> Self:
        """The same context without telemetry, for an adapter that reports its operations itself in more detail."""
        quiet = msgspec.structs.replace(self.parts, events=Events(self.clock, ignore_event))
        return type(self)(quiet, self.tenant, self.owner, self.caller)

    def store(self) -> AbstractContextManager[Store]:
        """The store of this space, created with its first use."""
        return self.parts.stores.open(self.tenant, self.owner, create=True)

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """A read transaction."""
        with self.store() as store, store.read() as reader:
            yield reader

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """A read that first continues an interrupted bulk import, one bounded step at a time."""
        with self.store() as store:
            with store.read() as reader:
                if reader.state.cursor() == reader.ledger.head().seq:
                    yield reader
                    return
            store.write(lambda writer: projection.catch_up(writer, _CATCH_UP_PER_READ))
            with store.read() as reader:
                yield reader

    @contextmanager
    def operation(self, name: str) -> Iterator[Reader]:
        """A read as in `reading`, reported to telemetry under this name."""
        with self.events.operation(self.owner, name), self.reading() as reader:
            yield reader

    def write(self, name: str, work: Callable[[Writer], T]) -> T:
        """A write transaction. A refusal for a limit or an unknown name goes to the audit log."""
        with self.events.operation(self.owner, name), self.store() as store:
            try:
                done = store.write(work)
            except (LimitReached, NotFound) as exc:
                self.add_audit(name, target=None, outcome=f"refused: {exc.code}", detail=str(exc))
                raise
            self.parts.notify(self.tenant, self.owner)
            return done

    def add_audit(self, action: str, *, target: str | None, outcome: str, detail: str = "") -> None:
        """Add to the audit log what the ledger does not record."""
        now = self.clock()

        def work(writer: Writer) -> None:
            writer.audit.add(
                at=now,
                caller=self.caller,
                action=action,
                target=target,
                outcome=outcome,
                detail=redact(detail).text,
            )

        with self.store() as store:
            store.write(work)

    def catch_up(self, progress: Callable[[int], None] = lambda _: None) -> None:
        """Make every appended entry searchable."""
        with self.store() as store:
            while (ahead := store.write(projection.catch_up)) > 0:
                progress(ahead)

    def derive_again(self, store: Store) -> None:
        """Derive memories again after the projection was dropped, where no background worker will do it."""
        if self.parts.background is None:
            with store.read() as reader:
                ahead = reader.state.marks().derived == 0 and int(reader.state.note(projection.READ) or 0) > 0
            with suppress(LLMFailed):  # a model is called only for entries that no model has read before
                while ahead and self.parts.worker.derive(store):
                    with store.read() as reader:
                        ahead = reader.state.marks().derived < int(reader.state.note(projection.READ) or 0)


def pending_vectors(context: SpaceContext, reader: Reader, effect: str) -> str:
    """The reason in `degraded` while vectors are pending; it names the previous model if the model changed."""
    replaced = context.parts.worker.replaced_model(reader)
    changed = "" if replaced is None else f"the embedding model changed (it was {replaced}); "
    return f"vectors: {changed}{effect}"


def unsearchable_count(reader: Reader) -> int:
    """How many entries are retained but cannot be searched yet."""
    return reader.words.lag() + reader.ledger.head().seq - reader.state.cursor()
