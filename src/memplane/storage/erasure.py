"""The journal of erasures: which forgets are off the disk and out of the catalog.

A forget commits first, and what follows takes longer than a transaction may: the files are rewritten, and the ids of erased
documents leave the catalog. The transaction of the forget counts an erasure, and each of the two steps notes how far it is once it
is done. A process that is killed in between leaves the count ahead of a note, so the next one knows what to finish.
"""

from collections.abc import Sequence

from memplane.errors import StorageError
from memplane.storage.catalog.directory import Directory, ResourceKind
from memplane.storage.state import ErasureMark, ErasureStep
from memplane.storage.store import Store


class ErasureJournal:
    """Finishes the erasures of one space."""

    def __init__(self, store: Store, directory: Directory, tenant: str, owner: str) -> None:
        self._store = store
        self._directory = directory
        self._tenant = tenant
        self._owner = owner

    def is_pending(self) -> bool:
        """Whether something is left to finish that can be finished."""
        with self._store.read() as reader:
            steps = list(ErasureStep) if self._store.database.own_files else [ErasureStep.CATALOG]
            return any(reader.state.erased(step).erasures < reader.state.erasures() for step in steps)

    def finish(
        self, *, bytes_max: int | None, documents: Sequence[str] | None = None, retry: bool = False
    ) -> bool:
        """Remove the last traces of everything erased so far; returns whether nothing is left on disk.

        `documents` are the only ones that the latest erasure can have removed; None for any, and for collections. With `retry`,
        a space that is too large or in use is skipped at once."""
        with self._store.read() as reader:
            mark = ErasureMark(reader.state.erasures(), reader.ledger.head().position)
            listed = reader.state.erased(ErasureStep.CATALOG)
        wiped = self._store.database.wipe(bytes_max=bytes_max, retry=retry)
        unlisted = self._drop_places(documents if listed.erasures >= mark.erasures - 1 else None)
        done = {
            step: mark
            for step, finished in ((ErasureStep.DISK, wiped), (ErasureStep.CATALOG, unlisted))
            if finished
        }
        if done:
            self._store.write(lambda writer: writer.state.set_erased(done))
        return wiped and unlisted

    def _drop_places(self, documents: Sequence[str] | None) -> bool:
        """Drop the ids of erased documents and collections from the catalog; False if that failed."""
        try:
            collections: Sequence[str] = ()
            if documents is None:
                documents = self._directory.of(self._tenant, ResourceKind.DOCUMENT, self._owner)
                collections = self._directory.of(self._tenant, ResourceKind.COLLECTION, self._owner)
                self._directory.wipe()  # an earlier process may have dropped the ids and got no further
            with self._store.read() as reader:
                gone = {
                    ResourceKind.DOCUMENT: [id_ for id_ in documents if reader.documents.get(id_) is None],
                    ResourceKind.COLLECTION: [
                        id_ for id_ in collections if reader.documents.collection(id_) is None
                    ],
                }
            for kind, ids in gone.items():
                self._directory.drop(self._tenant, kind, ids, self._owner)
        except StorageError:
            return False
        return True
