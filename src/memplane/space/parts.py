"""What every space of an installation works with."""

import msgspec

from memplane.clock import Clock
from memplane.config import Settings
from memplane.extract.catalog import PredicateCatalog
from memplane.models.embedding import Embedder
from memplane.recall.caches import AccessCounts, Indexes, Questions
from memplane.space.summary import CountsCache
from memplane.storage.base import Stores
from memplane.storage.directory import Directory
from memplane.telemetry import Events
from memplane.worker.batch import Enricher
from memplane.worker.pipeline import Worker


class SpaceServices(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's own; spaces share them."""

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
    uses: AccessCounts
    questions: Questions
    kept: CountsCache = msgspec.field(default_factory=CountsCache)
    """Counts of spaces that somebody looked at."""

    def notify(self, tenant: str, owner: str) -> None:
        """Something came in that can be enriched."""
        if self.background is not None:
            self.background.notify(tenant, owner)
