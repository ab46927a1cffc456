"""Make one table the same as another: both are read in the order of their keys, a page at a time.

Copying, copying later changes, resuming after a crash and verifying are the same walk: differences are copied or
counted. No progress has to be stored."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from memplane.errors import InvalidRequest
from memplane.storage.tables import META, Key, Row, RowStability, Table

PAGE_ROWS = 500
PAGE_BYTES = 8 << 20

Difference = tuple[Row | None, Row | None]
"""What the source has under a key, and what the target has there."""


class ReadableTables(Protocol):
    """Something whose tables can be read."""

    def rows(self, table: Table, *, after: Key | None, limit: int, bytes_max: int) -> list[Row]:
        """See `Tables.rows`."""


class WritableTables(ReadableTables, Protocol):
    """Something whose tables can be written, too: a space or the catalog."""

    def restore(self, parts: Sequence[tuple[Table, Sequence[Row]]]) -> None:
        """See `CatalogTables.restore`."""

    def remove(self, table: Table, copied: Sequence[Row]) -> None:
        """See `CatalogTables.remove`."""


class Count:
    """How many rows were seen of each."""

    def __init__(self) -> None:
        self.source = 0
        self.target = 0


def all_rows(place: ReadableTables, table: Table, after: Key | None = None) -> Iterator[Row]:
    """In key order. Pages are read lazily, so earlier rows may change during the read."""
    while found := place.rows(table, after=after, limit=PAGE_ROWS, bytes_max=PAGE_BYTES):
        yield from found
        if table.heavy is None and len(found) < PAGE_ROWS:
            return
        after = table.key_of(found[-1])


def differences(
    source: ReadableTables, target: ReadableTables, table: Table, count: Count
) -> Iterator[Difference]:
    """Every key under which they do not have the same."""
    theirs = all_rows(target, table)
    there = next(theirs, None)
    for row in all_rows(source, table):
        count.source += 1
        key = table.key_of(row)
        while there is not None and table.key_of(there) < key:
            count.target += 1
            yield None, there
            there = next(theirs, None)
        if there is not None and table.key_of(there) == key:
            count.target += 1
            if row != there:
                yield row, there
            there = next(theirs, None)
        else:
            yield row, None
    while there is not None:
        count.target += 1
        yield None, there
        there = next(theirs, None)


def are_same(source: ReadableTables, target: ReadableTables, table: Table) -> bool:
    return next(differences(source, target, table, Count()), None) is None


def batches(table: Table, rows: Iterable[Row]) -> Iterator[list[Row]]:
    """As many at a time as fit into memory."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += weight_of(table, row)
        if fills_a_page(len(batch), size):
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def fills_a_page(rows: int, size: int) -> bool:
    """Whether no more should be held in memory."""
    return rows >= PAGE_ROWS or size >= PAGE_BYTES


def weight_of(table: Table, row: Row) -> int:
    """What its heavy column holds."""
    return 0 if table.heavy is None else len(row[table.place(table.heavy)] or "")


ProgressListener = Callable[[str, int], None]
"""A table and the number of rows written to it."""


class NotACopy(InvalidRequest):
    """The target holds something that did not come from this source; nothing of it was changed."""

    code = "not_a_copy"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}; the target is not a copy of the source, or was used since. What it holds was left as it is: move "
            "into an empty data directory or database",
            field="to",
        )


class CopyCounts:
    """What it took to make tables the same."""

    def __init__(self) -> None:
        self.added = 0
        self.removed = 0
        self.erased = 0
        """Payloads among the removed: forgotten since they were copied."""
        self.wiped = True
        """Whether they are in no file any more."""
        self.problems: list[str] = []


class Sink:
    """Collects rows, of one table after the other, until they make a transaction worth its while, or no more should be
    held in memory: a small space is written at once."""

    def __init__(self, target: WritableTables, made: CopyCounts, told: ProgressListener) -> None:
        self.target = target
        self._made = made
        self._told = told
        self._parts: list[tuple[Table, list[Row]]] = []
        self._rows = 0
        self._bytes = 0

    def add(self, table: Table, row: Row) -> None:
        if not self._parts or self._parts[-1][0] is not table:
            self._parts.append((table, []))
        self._parts[-1][1].append(row)
        self._rows += 1
        self._bytes += weight_of(table, row)
        if fills_a_page(self._rows, self._bytes):
            self.flush()

    def flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self.target.restore(parts)
            self._made.added += self._rows
            self._rows = self._bytes = 0
            for table, rows in parts:
                self._told(table.name, len(rows))


def make_same(source: ReadableTables, sink: Sink, table: Table, made: CopyCounts, *, there: int) -> None:
    """`there` is how many rows the target has. Where it has some, it goes twice over the table: before anything is added,
    whatever is in the way is gone, since a row may have to give up a name that another one now has."""
    missing = all_rows(source, table)
    if there:
        sink.flush()
        count = Count()
        gone = _delete_extra_rows(source, sink.target, table, count)
        made.removed += gone
        made.erased += gone if table.change is RowStability.ERASED else 0
        if not gone and count.source == count.target and table is not META:
            return
        missing = _missing(source, sink.target, table)
    for row in missing:
        sink.add(table, row)


def _delete_extra_rows(source: ReadableTables, target: WritableTables, table: Table, count: Count) -> int:
    gone = 0
    for batch in batches(table, _extra_rows(source, target, table, count)):
        target.remove(table, batch)
        gone += len(batch)
    return gone


def _extra_rows(source: ReadableTables, target: ReadableTables, table: Table, count: Count) -> Iterator[Row]:
    for ours, theirs in differences(source, target, table, count):
        # A value of `meta` is replaced in place: a space is never without it.
        if theirs is None or (table is META and ours is not None):
            continue
        _check(table, ours, theirs)
        yield theirs


def _missing(source: ReadableTables, target: ReadableTables, table: Table) -> Iterator[Row]:
    for ours, _ in differences(source, target, table, Count()):
        if ours is not None:
            yield ours


def _check(table: Table, ours: Row | None, theirs: Row) -> None:
    """What cannot have become of a row that was copied did not become of it: it came from elsewhere."""
    changed = {
        RowStability.GROWS: True,
        RowStability.ERASED: ours is not None,
        RowStability.LISTED: ours is None,
    }
    if changed.get(table.change, False):
        shown = " ".join(str(part)[:40] for part in table.key_of(theirs))
        state = "other than in the source" if ours is not None else "not in the source"
        raise NotACopy(f"{table.name} {shown!r} is {state}")
