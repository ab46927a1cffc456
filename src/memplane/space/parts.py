"""What every space of an installation works with."""

import msgspec

from memplane.clock import Clock
from memplane.config import Settings
from memplane.enrich.catalog import Catalog
from memplane.governance.events import Events
from memplane.memory.glance import Kept
from memplane.providers.embedding import Embedder
from memplane.recall.indexes import Indexes
from memplane.recall.questions import Questions
from memplane.recall.uses import Uses
from memplane.shift import Enriching
from memplane.storage.base import Stores
from memplane.storage.directory import Directory
from memplane.worker import Worker


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's own; spaces share them."""

    stores: Stores
    directory: Directory
    settings: Settings
    clock: Clock
    events: Events
    embedder: Embedder | None
    catalog: Catalog
    worker: Worker
    background: Enriching | None
    indexes: Indexes
    uses: Uses
    questions: Questions
    kept: Kept = msgspec.field(default_factory=Kept)
    """Counts of spaces that somebody looked at."""

    def notify(self, tenant: str, owner: str) -> None:
        """Something came in that can be enriched."""
        if self.background is not None:
            self.background.notify(tenant, owner)
