"""One space into another database."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memplane.ledger.verify import verify
from memplane.moving.compare import Count, Readable, all_rows, are_same, differences
from memplane.moving.tables import Made, NotACopy, Sink, Told, make_same
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

    def row_counts(self) -> dict[str, int]:
        with self._store.read() as reader:
            return reader.row_counts()

    def restore(self, parts: Sequence[tuple[Table, Sequence[Row]]]) -> None:
        def work(writer: Writer) -> None:
            for table, copied in parts:
                writer.restore(table, copied)

        self._store.write(work)

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
    return View(standing_of(reader), reader.indexed(), reader.row_counts())


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


def copy_space(source: Reader, target: Store, made: Made, told: Told) -> View:
    """Everything that the source holds, as of this one view of it. Done again, it takes over what changed."""
    view = view_of(source)
    with target.read() as reader:
        check_related(source, reader)
        there, last = reader.row_counts(), reader.head().position
        changed = [table for table in SPACE_TABLES if _is_changed(source, reader, table, view.counts, there)]
    sink = Sink(StoreRows(target), made, told)
    for table in changed:
        if table is LEDGER:
            _copy_ledger(source, target, sink, last)
        else:
            make_same(source, sink, table, made, there=there[table.name])
    sink.flush()
    return view


def _is_changed(
    source: Reader, target: Reader, table: Table, wanted: dict[str, int], there: dict[str, int]
) -> bool:
    """Looked at in one go, since most spaces are as they were when a move is run again."""
    if not there[table.name]:
        return wanted[table.name] > 0
    return wanted[table.name] != there[table.name] or not are_same(source, target, table)


def complete(target: Store, view: View) -> None:
    """What an engine makes for itself, which takes long: the source need not be kept open for it."""
    with target.read() as reader:
        if reader.indexed() == view.indexed:
            return
    while target.write(lambda writer: writer.index_until(view.indexed)):
        pass


def problems_of(view: View, target: Reader) -> Iterator[str]:
    """What is wrong with a copy, by chain and counts."""
    if view.standing.head != target.head():
        yield "the ledgers do not end alike"
    counts = target.row_counts()
    for name, wanted in view.counts.items():
        if wanted != counts[name]:
            yield f"{name} has {wanted:,} rows and the copy {counts[name]:,}"
    yield from verify(target).problems


def unlike(source: Reader, target: Reader) -> dict[str, int]:
    """How many rows of each table differ; empty if none does."""
    found = {
        table.name: sum(1 for _ in differences(source, target, table, Count())) for table in SPACE_TABLES
    }
    return {name: count for name, count in found.items() if count}


def _copy_ledger(source: Reader, target: Store, sink: Sink, last: int) -> None:
    """Entries that are there may have moved, because others came in that were recorded earlier, or have another name.
    All of that is done at once: between two places there is no order to be in. Then come the new ones."""
    if last:
        moves, names = _moved(source, sink.target)
        if moves or names:
            target.write(lambda writer: writer.reorder(moves, names))
    for row in all_rows(source, LEDGER, (last,) if last else None):
        sink.add(LEDGER, row)


def _moved(
    source: Reader, target: Readable
) -> tuple[list[tuple[int, int]], list[tuple[int, str, str | None]]]:
    """The places that entries have now, and the names."""
    moves: list[tuple[int, int]] = []
    names: list[tuple[int, str, str | None]] = []
    for ours, theirs in differences(source, target, LEDGER, Count()):
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
    return moves, names
