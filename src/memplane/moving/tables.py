"""One table made the same as another."""

from collections.abc import Callable, Iterator

from memplane.errors import InvalidRequest
from memplane.moving.compare import Count, Readable, batches, differences
from memplane.storage.moving import META, Row, Rows, Sort, Table

Told = Callable[[str, int], None]
"""A table, and how many rows of it were written just now."""


class NotACopy(InvalidRequest):
    """The target holds something that did not come from this source; nothing of it was changed."""

    code = "not_a_copy"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}; the target is not a copy of the source, or was used since. What it holds was left as it is: move "
            "into an empty data directory or database",
            field="to",
        )


class Made:
    """What it took to make tables the same."""

    def __init__(self) -> None:
        self.rows = 0
        self.added = 0
        self.removed = 0
        self.erased = 0
        """Payloads among the removed: forgotten since they were copied."""
        self.wiped = True
        """Whether they are in no file any more."""
        self.problems: list[str] = []


def make_same(source: Readable, target: Rows, table: Table, made: Made, told: Told) -> None:
    """Twice over the table where it has rows already: before anything is added, whatever is in the way is gone, since a
    row may have to give up a name that another one now has."""
    if target.row_count(table):
        count = Count()
        gone = 0
        for batch in batches(table, _in_the_way(source, target, table, count)):
            target.remove(table, batch)
            gone += len(batch)
        made.removed += gone
        if table.sort is Sort.ERASED:
            made.erased += gone
        if gone == 0 and count.source == count.target and table is not META:
            made.rows += count.source
            return
    count = Count()
    for batch in batches(table, _missing(source, target, table, count)):
        target.restore(table, batch)
        made.added += len(batch)
        told(table.name, len(batch))
    made.rows += count.source


def _in_the_way(source: Readable, target: Readable, table: Table, count: Count) -> Iterator[Row]:
    for ours, theirs in differences(source, target, table, count):
        if theirs is None or (
            table is META and ours is not None
        ):  # a value of `meta` is replaced where it stands
            continue
        _check(table, ours, theirs)
        yield theirs


def _missing(source: Readable, target: Readable, table: Table, count: Count) -> Iterator[Row]:
    for ours, _ in differences(source, target, table, count):
        if ours is not None:
            yield ours


def _check(table: Table, ours: Row | None, theirs: Row) -> None:
    """What cannot have become of a row that was copied did not become of it: it came from elsewhere."""
    changed = {Sort.GROWS: True, Sort.ERASED: ours is not None, Sort.LISTED: ours is None}
    if changed.get(table.sort, False):
        shown = " ".join(str(part)[:40] for part in table.key_of(theirs))
        state = "other than in the source" if ours is not None else "not in the source"
        raise NotACopy(f"{table.name} {shown!r} is {state}")
