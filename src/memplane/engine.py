"""The engine: spaces and what is done over all of them. It knows protocols only; `main.py` brings the real parts."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
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
from memplane.space.locator import Locator, OwnedReceipt, ReceiptPage
from memplane.space.parts import SpaceServices
from memplane.storage.base import Stores
from memplane.storage.directory import ResourceKind
from memplane.telemetry import Events, Listener
from memplane.types import TENANT_DEFAULT, Caller
from memplane.worker.background import BackgroundRunner
from memplane.worker.batch import Enricher
from memplane.worker.cluster import ClusterWorker, RemoteEnrichment, cluster_jobs
from memplane.worker.distillation import Distiller
from memplane.worker.pipeline import Worker, model_of, note_accesses

Daily = Callable[[Space, str], None]
"""Something to do for a space once a day; it is given the day (UTC) that is over. Done again after a crash."""

_MAINTENANCE_BOOKMARK = "looked-after"
"""The bookmark of the last day on which a space was looked after."""


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the installation can be used. Codes only: who asks may be anybody."""

    ready: bool = True
    problems: tuple[str, ...] = ()
    """Why not: codes of errors."""
    degraded: tuple[str, ...] = ()
    """What does not get on meanwhile, though reading and writing do."""


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
        """`daily` is done once a day for every space, in the background, before the day's raw traces decay. Where workers on
        several machines share the spaces, the background is one of them; `elsewhere` leaves all of it to others."""
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
            uses=AccessCounts(),
            questions=Questions(embedder),
        )
        accounts = stores.accounts()
        self.meter = Meter(accounts, clock)
        """Counts what tenants do; the HTTP frame tells it."""
        self.allowance = QuotaGuard(accounts, self.settings, clock)
        """Whether a tenant may do one more."""
        self.usage = UsageReports(accounts, self.meter, self.allowance, clock)
        self._whereabouts = Locator(stores, self._parts.directory, clock)
        self.work = stores.work()
        """Which spaces have something waiting, where workers on several machines share them; else None."""
        self._parts = msgspec.structs.replace(self._parts, background=self._begun(background=background))

    def space(self, owner: str, *, tenant: str = TENANT_DEFAULT, caller: Caller | None = None) -> Space:
        """The space of one owner; any text is a legal owner id. It comes into being with its first use."""
        for field in ("actor", "door", "session") if caller is not None else ():
            check_caller(getattr(caller, field), field=field)
        return Space(self._parts, tenant, owner, caller or Caller())

    def has_space(self, owner: str, *, tenant: str = TENANT_DEFAULT) -> bool:
        """Whether this owner has one: looking at a space that is not there would create it."""
        try:
            with self._stores.open(tenant, owner, create=False):
                return True
        except NotFound:
            return False

    def spaces(self, tenant: str = TENANT_DEFAULT) -> Iterator[str]:
        """Every owner with a space."""
        return iter(self._stores.owners(tenant))

    def whose(self, tenant: str, sort: ResourceKind, id: str) -> list[str]:
        """Every owner in whose space a document, collection or receipt of this id is."""
        return self._whereabouts.whose(tenant, sort, id)

    def receipts(
        self, tenant: str, *, owners: Collection[str] | None = None, limit: int = 20, offset: int = 0
    ) -> ReceiptPage:
        """Every forget there was in the spaces of these owners, or of all; the newest first."""
        return self._whereabouts.receipts(tenant, owners=owners, limit=limit, offset=offset)

    def receipt(self, tenant: str, receipt_id: str, *, owners: Collection[str] | None = None) -> OwnedReceipt:
        """One of them by its id; `NotFound` where none of these owners has it."""
        return self._whereabouts.receipt(tenant, receipt_id, owners=owners)

    def answering(self) -> AbstractContextManager[None]:
        """Inside, somebody waits for an answer; what goes on beside gives way to it."""
        background = self._parts.background
        return nullcontext() if background is None else background.giving_way()

    @property
    def worker_name(self) -> str | None:
        """What the other workers of a database know this one by; None where none works in this process."""
        background = self._parts.background
        return background.holder if isinstance(background, ClusterWorker) else None

    def warm_up(self) -> None:
        """Load the model that embeds questions, so that the first one need not wait for it; nor, where a database is
        asked, for a connection and for the plan of every statement."""
        embedder = self._parts.embedder
        if embedder is not None:
            with suppress(EmbeddingFailed):
                embedder.embed_query("")
        if self._stores.work() is not None:
            with suppress(StorageError):
                for tenant, owner in islice(self._all_spaces(), 1):
                    self.space(owner, tenant=tenant).recall("good morning", noted=False)

    def readiness(self) -> Readiness:
        """Try the data directory, and ask the background how it gets on."""
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
        self._write_uses()
        self._parts.questions.close()
        self.meter.close()
        self._stores.close()

    def _write_uses(self) -> None:
        """What was told since the last write. Whoever closes is done with us: what cannot be written is let go."""
        catalog, now = self._parts.catalog, self.clock()
        for (tenant, owner), ids in self._parts.uses.take_all().items():
            with suppress(MemplaneError), self._stores.open(tenant, owner, create=False) as store:
                store.write(partial(note_accesses, ids=ids, catalog=catalog, now=now))

    def _begun(self, *, background: bool | Literal["elsewhere"]) -> Enricher | None:
        """Whoever enriches, at work from now on."""
        stores, worker, work = self._stores, self._parts.worker, self.work
        if background == "elsewhere":
            if work is None:
                raise SettingsInvalid(
                    "serve_enriches: a data directory is enriched by the process that serves it; leave --no-worker out"
                )
            return RemoteEnrichment(work)
        if not background:
            return None
        if work is None:
            made = BackgroundRunner(stores, worker, self._all_spaces)
            made.look_after(self._look_after)
            return made
        embedder = self._parts.embedder
        model = None if embedder is None else f"{embedder.model_id}:{embedder.dimension}"
        member = ClusterWorker(
            stores,
            work,
            worker,
            self.clock,
            daily=self._look_after,
            jobs=cluster_jobs(work, usage=self._drop_old_usage, index=stores.index_large_spaces, model=model),
            lease_s=self.settings.worker_lease_s,
            failures_max=self.settings.worker_failures_max,
        )
        member.begin()
        return member

    def _drop_old_usage(self) -> None:
        self._stores.accounts().add({}, oldest=self.clock() // DAY - RETENTION_DAYS)

    def _look_after(self, tenant: str, owner: str) -> None:
        """Once a day: what else is to be done daily, then compaction and retention; what has expired is erased, and what was
        superseded long ago is purged. What fails is tried again, ever later, as enrichment is."""
        now = self.clock()
        today = day_of(now)
        space = self.space(owner, tenant=tenant, caller=Caller(door="retention"))
        if space.bookmark(_MAINTENANCE_BOOKMARK) == today:
            return
        for work in self._daily:
            work(space, day_of(now - DAY))
        space.compact()
        space.sweep()
        space.purge()
        space.set_bookmark(_MAINTENANCE_BOOKMARK, today)

    def _all_spaces(self) -> Iterator[tuple[str, str]]:
        return ((tenant, owner) for tenant in self._stores.tenants() for owner in self._stores.owners(tenant))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
