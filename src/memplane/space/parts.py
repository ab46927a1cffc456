"""What every space of an installation works with."""

import msgspec

from memplane.clock import Clock
from memplane.config import Settings
from memplane.extract.catalog import Catalog
from memplane.models.embedding import Embedder
from memplane.recall.access_counts import Uses
from memplane.recall.indexes import Indexes
from memplane.recall.question_vectors import Questions
from memplane.space.summary import Kept
from memplane.storage.base import Stores
from memplane.storage.directory import Directory
from memplane.telemetry import Events
from memplane.worker.batch import Enriching
from memplane.worker.pipeline import Worker


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
