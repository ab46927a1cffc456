"""The engine: opens spaces and runs what concerns all of them. It depends on protocols; `main.py` supplies the concrete
parts."""

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from memplane.auth.limits import QuotaGuard
from memplane.auth.usage import RETENTION_DAYS, Meter, UsageReports
from memplane.clock import DAY, Clock, system_clock
from memplane.compaction.retention import day_of
from memplane.config import Settings
from memplane.documents.distil_llm import LLMDistiller
from memplane.errors import MemplaneError, NotFound, SettingsInvalid, StorageError
from memplane.extract.catalog import load_catalog
from memplane.extract.llm import LLMExtractor
from memplane.memory.checks import check_caller
from memplane.models.embedding import Embedder, EmbeddingFailed
from memplane.models.llm import LLM
from memplane.recall.caches import AccessCounts, Indexes, Questions
from memplane.space import Space
from memplane.space.context import SpaceContext, SpaceServices
from memplane.space.locator import Locator, OwnedReceipt, ReceiptPage
from memplane.storage.catalog.directory import ResourceKind
from memplane.storage.stores import Stores
from memplane.telemetry import Events, Listener
from memplane.types import TENANT_DEFAULT, Caller
from memplane.worker.background import BackgroundRunner
from memplane.worker.batch import Enricher
from memplane.worker.cluster import ClusterWorker, RemoteEnrichment, cluster_jobs
from memplane.worker.distillation import Distiller
from memplane.worker.pipeline import Worker, model_of, note_accesses

Daily = Callable[[Space, str], None]
"""A daily job for a space. Its second argument is the day (UTC) that just ended. It may run again after a crash."""

_MAINTENANCE_BOOKMARK = "looked-after"
"""The bookmark of the last day on which a space's daily jobs ran."""


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the installation is usable. Holds error codes only, because `/readyz` is public."""

    ready: bool = True
    problems: tuple[str, ...] = ()
    """Error codes of what prevents reading or writing."""
    degraded: tuple[str, ...] = ()
    """What is failing while reading and writing work."""


class Engine:
    """All spaces of an installation. Safe to use from many threads, and from many processes at once."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings | None = None,
        *,
        embedder: Embedder | None = None,
        llm: LLM | None = None,
        background: bool | Literal["elsewhere"] = False,
        clock: Clock = system_clock,
        listener: Listener | None = None,
        daily: Sequence[Daily] = (),
    ) -> None:
        """`daily` jobs run once a day for every space, in the background, before retention removes raw days. Where workers on
        several machines share the spaces, the background is one of them; `elsewhere` leaves enrichment to the others."""
        self._daily = tuple(daily)
        self.settings = settings or Settings()
        self.clock = clock
        self._stores = stores
        catalog = load_catalog(None if self.settings.catalog is None else Path(self.settings.catalog))
        worker = Worker(
            embedder=embedder,
            catalog=catalog,
            clock=clock,
            llm=None if llm is None else LLMExtractor(llm, catalog),
            distiller=Distiller(clock, None if llm is None else LLMDistiller(llm)),
        )
        self._parts = SpaceServices(
            stores=stores,
            directory=stores.directory(),
            settings=self.settings,
            clock=clock,
            events=Events(clock, listener),
            embedder=embedder,
            catalog=catalog,
            worker=worker,
            background=None,
            indexes=Indexes(model_of(embedder)),
            access_counts=AccessCounts(),
            questions=Questions(embedder),
        )
        accounts = stores.accounts()
        self.meter = Meter(accounts, clock)
        """Counts usage per tenant; the HTTP server reports to it."""
        self.quota = QuotaGuard(accounts, self.settings, clock)
        """Enforces quotas and rate limits."""
        self.usage = UsageReports(accounts, self.meter, self.quota, clock)
        self._locator = Locator(stores, self._parts.directory, clock)
        self.work = stores.work
        """The queue of spaces that need enrichment, on a database shared by workers; else None."""
        self._parts = msgspec.structs.replace(
            self._parts, background=self._start_enrichment(background=background)
        )

    def space(self, owner: str, *, tenant: str = TENANT_DEFAULT, caller: Caller | None = None) -> Space:
        """The space of one owner; any text is a valid owner id. The space is created on first use."""
        for field in ("actor", "adapter", "session") if caller is not None else ():
            check_caller(getattr(caller, field), field=field)
        return Space(SpaceContext(self._parts, tenant, owner, caller or Caller()))

    def has_space(self, owner: str, *, tenant: str = TENANT_DEFAULT) -> bool:
        """Whether this owner's space exists. Opening a missing space would create it."""
        try:
            with self._stores.open(tenant, owner, create=False):
                return True
        except NotFound:
            return False

    def spaces(self, tenant: str = TENANT_DEFAULT) -> Iterator[str]:
        """Every owner with a space."""
        return iter(self._stores.owners(tenant))

    def owners_of(self, tenant: str, kind: ResourceKind, id: str) -> list[str]:
        """The owners whose spaces contain a document, collection or receipt with this id."""
        return self._locator.owners_of(tenant, kind, id)

    def whose(self, tenant: str, sort: ResourceKind, id: str) -> list[str]:
        """Deprecated name of `owners_of`."""
        warnings.warn("plane.whose is now plane.owners_of", DeprecationWarning, stacklevel=2)
        return self.owners_of(tenant, sort, id)

    def receipts(
        self, tenant: str, *, owners: Collection[str] | None = None, limit: int = 20, offset: int = 0
    ) -> ReceiptPage:
        """Receipts of every forget in the spaces of these owners, or of all, newest first."""
        return self._locator.receipts(tenant, owners=owners, limit=limit, offset=offset)

    def receipt(self, tenant: str, receipt_id: str, *, owners: Collection[str] | None = None) -> OwnedReceipt:
        """One receipt by its id; `NotFound` if none of these owners has it."""
        return self._locator.receipt(tenant, receipt_id, owners=owners)

    def answering(self) -> AbstractContextManager[None]:
        """While the context is open, a request is being answered and background work yields to it."""
        return self._parts.yield_to_requests()

    @property
    def worker_name(self) -> str | None:
        """The name of this process's cluster worker; None without one."""
        background = self._parts.background
        return background.holder if isinstance(background, ClusterWorker) else None

    def warm_up(self) -> None:
        """Load the embedding model and, on a database, open a connection and prepare statements, so the first recall is
        not slow."""
        embedder = self._parts.embedder
        if embedder is not None:
            with suppress(EmbeddingFailed):
                embedder.embed_query("")
        if self._stores.work is not None:
            with suppress(StorageError):
                for tenant, owner in islice(self._all_spaces(), 1):
                    self.space(owner, tenant=tenant).recall("good morning", counted=False)

    def readiness(self) -> Readiness:
        """Probe the storage and check the background worker for failures."""
        try:
            self._stores.probe()
            background = self._parts.background
            failing = {} if background is None else background.failing()
        except StorageError as exc:
            return Readiness(ready=False, problems=(exc.code,))
        return Readiness(degraded=("enrichment",) if failing else ())

    def index_large_spaces(self) -> int:
        """See `Stores`."""
        return self._stores.index_large_spaces()

    def close(self) -> None:
        if self._parts.background is not None:
            self._parts.background.close()
        self._flush_access_counts()
        self._parts.questions.close()
        self.meter.close()
        self._stores.close()

    def _flush_access_counts(self) -> None:
        """Write the access counts collected since the last write. On close, a failure to write them is ignored."""
        catalog, now = self._parts.catalog, self.clock()
        for (tenant, owner), ids in self._parts.access_counts.take_all().items():
            with suppress(MemplaneError), self._stores.open(tenant, owner, create=False) as store:
                store.write(partial(note_accesses, ids=ids, catalog=catalog, now=now))

    def _start_enrichment(self, *, background: bool | Literal["elsewhere"]) -> Enricher | None:
        """Start the enrichment runner."""
        stores, worker, work = self._stores, self._parts.worker, self.work
        if background == "elsewhere":
            if work is None:
                raise SettingsInvalid(
                    "serve_enriches: enrichment of a data directory runs in the server process; remove --no-worker"
                )
            return RemoteEnrichment(work)
        if not background:
            return None
        if work is None:
            made = BackgroundRunner(stores, worker, self._all_spaces)
            made.add_daily_task(self._daily_maintenance)
            return made
        embedder = self._parts.embedder
        model = None if embedder is None else f"{embedder.model_id}:{embedder.dimension}"
        member = ClusterWorker(
            stores,
            work,
            worker,
            self.clock,
            daily=self._daily_maintenance,
            jobs=cluster_jobs(work, usage=self._drop_old_usage, index=stores.index_large_spaces, model=model),
            lease_s=self.settings.worker_lease_s,
            failures_max=self.settings.worker_failures_max,
        )
        member.begin()
        return member

    def _drop_old_usage(self) -> None:
        self._stores.accounts().add({}, oldest=self.clock() // DAY - RETENTION_DAYS)

    def _daily_maintenance(self, tenant: str, owner: str) -> None:
        """Finish erasures that were interrupted. Once a day: run the daily jobs, then compaction and retention, erase expired facts
        and purge old superseded memories. Failures are retried with back-off, like enrichment."""
        now = self.clock()
        with self._stores.open(tenant, owner, create=False) as store:
            self._stores.finish_erasures(store, tenant, owner)
        today = day_of(now)
        space = self.space(owner, tenant=tenant, caller=Caller(adapter="retention"))
        if space.ledger.bookmark(_MAINTENANCE_BOOKMARK) == today:
            return
        for work in self._daily:
            work(space, day_of(now - DAY))
        space.compact()
        space.facts.sweep_after_grace()
        space.purge()
        space.ledger.set_bookmark(_MAINTENANCE_BOOKMARK, today)

    def _all_spaces(self) -> Iterator[tuple[str, str]]:
        return ((tenant, owner) for tenant in self._stores.tenants() for owner in self._stores.owners(tenant))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
