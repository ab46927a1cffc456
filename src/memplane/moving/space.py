"""One space into another database."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memplane.ledger.verify import verify
from memplane.moving.compare import Count, all_rows, batches, differences
from memplane.moving.tables import Made, NotACopy, Told, make_same
from memplane.storage.base import Reader, Store, Writer
from memplane.storage.moving import LEDGER, SPACE_TABLES, Key, Row, Table
from memplane.types import Head

_SEQ, _ID, _CHAINED_ID = (LEDGER.place(column) for column in ("seq", "id", "chained_id"))
_MAY_CHANGE = frozenset({_SEQ, _ID, _CHAINED_ID})


class Standing(NamedTuple):
    """How far a space is: what a later look is compared with."""

    head: Head
    audited: int
    erasures: int
    generation: int


class StoreRows:
    """`Rows` over a store: every page is one transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def rows_of(self, table: Table, *, after: Key | None, limit: int, bytes_max: int) -> list[Row]:
        with self._store.read() as reader:
            return reader.rows_of(table, after=after, limit=limit, bytes_max=bytes_max)

    def row_count(self, table: Table) -> int:
        with self._store.read() as reader:
            return reader.row_count(table)

    def restore(self, table: Table, copied: Sequence[Row]) -> None:
        self._store.write(lambda writer: writer.restore(table, copied))

    def remove(self, table: Table, copied: Sequence[Row]) -> None:
        self._store.write(lambda writer: writer.remove(table, copied))


class View(NamedTuple):
    """What a copy is held against."""

    standing: Standing
    indexed: int
    counts: dict[str, int]


def standing_of(reader: Reader) -> Standing:
    return Standing(reader.head(), reader.audit_size(), reader.erasures(), reader.marks().generation)


def view_of(reader: Reader) -> View:
    return View(
        standing_of(reader),
        reader.indexed(),
        {table.name: reader.row_count(table) for table in SPACE_TABLES},
    )


def check_related(source: Reader, target: Reader) -> None:
    """Raises `NotACopy` unless the target's ledger and its audit log are where those of the source were once: a chain
    covers all before its end."""
    head = target.head()
    if head.position:
        entries = source.ledger_rows(after=head.position - 1, limit=1)
        if not entries or entries[0].position != head.position or entries[0].digest != head.digest:
            raise NotACopy(f"entry {head.position} of the target is not in the source")
    last = target.audit_size()
    if last and source.audit(after=last - 1, limit=1) != target.audit(after=last - 1, limit=1):
        raise NotACopy(f"audit record {last} of the target is not in the source")


def copy_space(source: Reader, target: Store, made: Made, told: Told) -> None:
    """Everything that the source holds, as of this one view of it. Done again, it takes over what changed."""
    with target.read() as reader:
        check_related(source, reader)
    rows = StoreRows(target)
    for table in SPACE_TABLES:
        if table is LEDGER:
            _copy_ledger(source, target, made, told)
        else:
            make_same(source, rows, table, made, told)


def complete(target: Store, view: View) -> None:
    """What an engine makes for itself, which takes long: the source need not be kept open for it."""
    while target.write(lambda writer: writer.index_until(view.indexed)):
        pass


def problems_of(view: View, target: Reader) -> Iterator[str]:
    """What is wrong with a copy, by chain and counts."""
    if view.standing.head != target.head():
        yield "the ledgers do not end alike"
    for table in SPACE_TABLES:
        wanted, found = view.counts[table.name], target.row_count(table)
        if wanted != found:
            yield f"{table.name} has {wanted:,} rows and the copy {found:,}"
    yield from verify(target).problems


def unlike(source: Reader, target: Store) -> dict[str, int]:
    """How many rows of each table differ; empty if none does."""
    found: dict[str, int] = {}
    rows = StoreRows(target)
    for table in SPACE_TABLES:
        count = sum(1 for _ in differences(source, rows, table, Count()))
        if count:
            found[table.name] = count
    return found


def _copy_ledger(source: Reader, target: Store, made: Made, told: Told) -> None:
    """Entries that are there may have moved, because others came in that were recorded earlier, or have another name.
    All of that is done at once: between two places there is no order to be in. Then come the new ones."""
    moves: list[tuple[int, int]] = []
    names: list[tuple[int, str, str | None]] = []
    rows = StoreRows(target)
    for ours, theirs in differences(source, rows, LEDGER, Count()):
        if theirs is None:
            break  # from here on, all are new: the chains are the same up to the end of the target's
        if ours is None or any(
            mine != other
            for place, (mine, other) in enumerate(zip(ours, theirs, strict=True))
            if place not in _MAY_CHANGE
        ):
            raise NotACopy(f"entry {theirs[0]} of the target is not that of the source")
        if ours[_SEQ] != theirs[_SEQ]:
            moves.append((ours[0], ours[_SEQ]))
        if ours[_ID] != theirs[_ID]:
            names.append((ours[0], ours[_ID], ours[_CHAINED_ID]))

    def reorder(writer: Writer) -> int:
        writer.reorder(moves, names)
        return writer.head().position

    last = target.write(reorder)
    made.rows += source.head().position
    for batch in batches(LEDGER, all_rows(source, LEDGER, (last,) if last else None)):
        rows.restore(LEDGER, batch)
        made.added += len(batch)
        told(LEDGER.name, len(batch))
