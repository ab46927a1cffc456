"""What an import did, line by line where it matters."""

import msgspec

from memplane.ledger.history import Rejected
from memplane.types import Loaded, Merged

REJECTED_KEPT_MAX = 1_000


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is dropped in silence: what was not taken is in `rejected`, with the reason."""

    format: str
    read: int
    added: int
    known: int
    forgotten: int
    legacy: int
    rejected: tuple[Rejected, ...]
    rejected_count: int


class Tally:
    """Counts while an import goes on."""

    def __init__(self, format_: str) -> None:
        self._format = format_
        self._loaded = Loaded(added=0, known=0, forgotten=0)
        self._rejected: list[Rejected] = []
        self._rejected_count = 0
        self.read = 0
        self.legacy = 0

    def load(self, loaded: Loaded | Merged) -> None:
        before = self._loaded
        self._loaded = Loaded(
            added=before.added + loaded.added,
            known=before.known + loaded.known,
            forgotten=before.forgotten + loaded.forgotten,
        )

    @property
    def loaded(self) -> Loaded:
        return self._loaded

    def reject(self, rejected: Rejected) -> None:
        self._rejected_count += 1
        if len(self._rejected) < REJECTED_KEPT_MAX:
            self._rejected.append(rejected)

    def report(self) -> ImportReport:
        return ImportReport(
            format=self._format,
            read=self.read,
            added=self._loaded.added,
            known=self._loaded.known,
            forgotten=self._loaded.forgotten,
            legacy=self.legacy,
            rejected=tuple(self._rejected),
            rejected_count=self._rejected_count,
        )
