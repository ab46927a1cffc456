"""Two tables side by side, in the order of their keys, a page of each at a time.

Copying, taking in what came since, going on after a kill and checking are all the same walk: whatever differs is made the
same, or counted. Nothing has to be remembered about how far it went.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from memplane.storage.moving import Key, Row, Table

PAGE_ROWS = 500
PAGE_BYTES = 8 << 20

Difference = tuple[Row | None, Row | None]
"""What the source has under a key, and what the target has there."""


class Readable(Protocol):
    """Something whose tables can be read."""

    def rows_of(self, table: Table, *, after: Key | None, limit: int, bytes_max: int) -> list[Row]:
        """See `MoveReader`."""


class Count:
    """How many rows were seen of each."""

    def __init__(self) -> None:
        self.source = 0
        self.target = 0


def all_rows(place: Readable, table: Table, after: Key | None = None) -> Iterator[Row]:
    """In the order of keys. Pages are read when they are needed, so what is behind may change meanwhile."""
    while found := place.rows_of(table, after=after, limit=PAGE_ROWS, bytes_max=PAGE_BYTES):
        yield from found
        if table.heavy is None and len(found) < PAGE_ROWS:
            return
        after = table.key_of(found[-1])


def differences(source: Readable, target: Readable, table: Table, count: Count) -> Iterator[Difference]:
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


def are_same(source: Readable, target: Readable, table: Table) -> bool:
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
