"""Copy an installation into another database: every space of every tenant, and the catalog.

It can be killed at any point and run again: existing rows are compared, and only differences are written. The
source is only read. Each space is copied from one snapshot; entries that arrive during the copy are copied by
another pass, and entries after the last pass are reported.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import msgspec

from memplane.errors import NotFound
from memplane.ledger.verify import verify
from memplane.storage.store import Reader, Store, Writer
from memplane.storage.stores import Stores
from memplane.storage.tables import CATALOG_TABLES, LEDGER, SPACE_TABLES, Key, Row, RowStability, Table
from memplane.transfer.tables import (
    CopyCounts,
    Count,
    NotACopy,
    ProgressListener,
    ReadableTables,
    Sink,
    all_rows,
    are_same,
    differences,
    make_same,
)
from memplane.types import LedgerHead

# One space into another database.


_SEQ, _ID, _CHAINED_ID = (LEDGER.place(column) for column in ("seq", "id", "chained_id"))
_MAY_CHANGE = frozenset({_SEQ, _ID, _CHAINED_ID})


class SpacePosition(NamedTuple):
    """How far a space is: what a later look is compared with."""

    head: LedgerHead
    audited: int
    erasures: int
    generation: int


class StoreRows:
    """`Rows` over a store: every page is one transaction."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def rows(self, table: Table, *, after: Key | None, limit: int, bytes_max: int) -> list[Row]:
        with self._store.read() as reader:
            return reader.tables.rows(table, after=after, limit=limit, bytes_max=bytes_max)

    def counts(self) -> dict[str, int]:
        with self._store.read() as reader:
            return reader.tables.counts()

    def restore(self, parts: Sequence[tuple[Table, Sequence[Row]]]) -> None:
        def work(writer: Writer) -> None:
            for table, copied in parts:
                writer.tables.restore(table, copied)

        self._store.write(work)

    def remove(self, table: Table, copied: Sequence[Row]) -> None:
        self._store.write(lambda writer: writer.tables.remove(table, copied))


class CopyView(NamedTuple):
    """What a copy is held against."""

    position: SpacePosition
    indexed: int
    counts: dict[str, int]


def space_position(reader: Reader) -> SpacePosition:
    return SpacePosition(
        reader.ledger.head(), reader.audit.count(), reader.state.erasures(), reader.state.marks().generation
    )


def view_of(reader: Reader) -> CopyView:
    return CopyView(space_position(reader), reader.words.indexed(), reader.tables.counts())


def check_related(source: Reader, target: Reader) -> None:
    """Raises `NotACopy` unless the target's ledger and its audit log are where those of the source were once: a chain
    covers all before its end."""
    head = target.ledger.head()
    if head.position:
        entries = source.ledger.rows(after=head.position - 1, limit=1)
        if not entries or entries[0].position != head.position or entries[0].digest != head.digest:
            raise NotACopy(f"entry {head.position} of the target is not in the source")
    last = target.audit.count()
    if last and source.audit.rows(after=last - 1, limit=1) != target.audit.rows(after=last - 1, limit=1):
        raise NotACopy(f"audit record {last} of the target is not in the source")


def copy_space(source: Reader, target: Store, made: CopyCounts, told: ProgressListener) -> CopyView:
    """Everything that the source holds, as of this one view of it. Done again, it takes over what changed."""
    view = view_of(source)
    with target.read() as reader:
        check_related(source, reader)
        there, last = reader.tables.counts(), reader.ledger.head().position
        changed = [table for table in SPACE_TABLES if _is_changed(source, reader, table, view.counts, there)]
    sink = Sink(StoreRows(target), made, told)
    for table in changed:
        if table is LEDGER:
            _copy_ledger(source, target, sink, last)
        else:
            make_same(source.tables, sink, table, made, there=there[table.name])
    sink.flush()
    return view


def _is_changed(
    source: Reader, target: Reader, table: Table, wanted: dict[str, int], there: dict[str, int]
) -> bool:
    """Looked at in one go, since most spaces are as they were when a move is run again."""
    if not there[table.name]:
        return wanted[table.name] > 0
    return wanted[table.name] != there[table.name] or not are_same(source.tables, target.tables, table)


def complete(target: Store, view: CopyView) -> None:
    """What an engine makes for itself, which takes long: the source need not be kept open for it."""
    with target.read() as reader:
        if reader.words.indexed() == view.indexed:
            return
    while target.write(lambda writer: writer.words.index_until(view.indexed)):
        pass


def problems_of(view: CopyView, target: Reader) -> Iterator[str]:
    """What is wrong with a copy, by chain and counts."""
    if view.position.head != target.ledger.head():
        yield "the ledgers end differently"
    counts = target.tables.counts()
    for name, wanted in view.counts.items():
        if wanted != counts[name]:
            yield f"{name} has {wanted:,} rows and the copy {counts[name]:,}"
    yield from verify(target).problems


def unlike(source: Reader, target: Reader) -> dict[str, int]:
    """How many rows of each table differ; empty if none does."""
    found = {
        table.name: sum(1 for _ in differences(source.tables, target.tables, table, Count()))
        for table in SPACE_TABLES
    }
    return {name: count for name, count in found.items() if count}


def _copy_ledger(source: Reader, target: Store, sink: Sink, last: int) -> None:
    """Entries that are there may have moved, because others came in that were recorded earlier, or have another name.
    All of that is done at once: between two places there is no order to be in. Then come the new ones."""
    if last:
        moves, names = _moved(source, sink.target)
        if moves or names:
            target.write(lambda writer: writer.tables.reorder(moves, names))
    for row in all_rows(source.tables, LEDGER, (last,) if last else None):
        sink.add(LEDGER, row)


def _moved(
    source: Reader, target: ReadableTables
) -> tuple[list[tuple[int, int]], list[tuple[int, str, str | None]]]:
    """The places that entries have now, and the names."""
    moves: list[tuple[int, int]] = []
    names: list[tuple[int, str, str | None]] = []
    for ours, theirs in differences(source.tables, target, LEDGER, Count()):
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


PASSES_MAX = 3
"""Maximum number of passes: a writer that never stops is not waited for."""

_NAMED_MAX = 20

Name = tuple[str, str]


class MoveProgress(msgspec.Struct, frozen=True):
    """How far a move is."""

    tenant: str
    owner: str
    table: str
    spaces_done: int
    spaces: int
    rows: int
    """Written so far."""


class MoveReport(msgspec.Struct, kw_only=True):
    """What a move, or a check, found and did."""

    spaces: int = 0
    rows: int = 0
    """That the source has; of every space and the catalog, the last time they were looked at."""
    added: int = 0
    removed: int = 0
    passes: int = 0
    verified: int = 0
    """Spaces of which the chain and all counts were found the same."""
    different: dict[str, int] = {}
    """Rows that are not the same, by table; a move leaves none."""
    problems: list[str] = []
    to_wipe: int = 0
    """Spaces whose copy still has in its files what was forgotten between two runs; `memplane wipe` takes it out."""
    behind: list[str] = []
    """Spaces into which something came after they were copied for the last time."""

    @property
    def ok(self) -> bool:
        return not (self.problems or self.behind or self.different)

    def blame(self, problem: str) -> None:
        if len(self.problems) < _NAMED_MAX:
            self.problems.append(problem)


def _silent(_: MoveProgress) -> None:
    pass


class Move:
    """From one installation to another."""

    def __init__(
        self,
        source: Stores,
        target: Stores,
        *,
        progress: Callable[[MoveProgress], None] = _silent,
        wipe_bytes_max: int | None = None,
    ) -> None:
        """`wipe_bytes_max` limits how much is rewritten at once so that erased content does not stay in the
        target's files."""
        self._source = source
        self._target = target
        self._progress = progress
        self._wipe_bytes_max = wipe_bytes_max
        self._written = 0

    def run(self, *, passes_max: int = PASSES_MAX) -> MoveReport:
        """Make the target identical to the source. Raises `NotACopy`, before anything is written, if the target
        contains other data. With one pass, entries that arrive during the copy are left for the next run, as in a
        backup."""
        self._check_target()
        report = MoveReport()
        position: dict[Name, SpacePosition] = {}
        rows: Counter[Name] = Counter()
        problems: dict[Name, list[str]] = {}
        waiting = self._spaces()
        while waiting and report.passes < passes_max:
            report.passes += 1
            for done, name in enumerate(waiting):
                made = CopyCounts()
                view = self._copy(name, made, (done, len(waiting)))
                position[name], rows[name] = view.position, sum(view.counts.values())
                problems.pop(name, None)
                if made.problems:
                    problems[name] = made.problems
                report.added += made.added
                report.removed += made.removed
                report.to_wipe += not made.wiped
            if passes_max == 1:
                waiting = []
            else:
                waiting = [name for name in self._spaces() if position.get(name) != self._position(name)]
        report.spaces, report.verified = len(position), len(position) - len(problems)
        for found in problems.values():
            for problem in found:
                report.blame(problem)
        report.behind = [_display_name(name) for name in waiting[:_NAMED_MAX]]
        report.rows = sum(rows.values()) + self._copy_catalog(report, passes_max)
        return report

    def check(self) -> MoveReport:
        """Compare every row, and write none."""
        self._check_is_ours()
        report = MoveReport(passes=1, different={})
        found: Counter[str] = Counter()
        names = self._spaces()
        for done, name in enumerate(names):
            self._report(name, "", done, len(names))
            with ExitStack() as opened:
                source = opened.enter_context(self._source.open(*name, create=False))
                try:
                    target = opened.enter_context(self._target.open(*name, create=False))
                except NotFound:
                    report.blame(f"{_display_name(name)} is not in the target")
                    continue
                with source.read() as reader, target.read() as copied:
                    found.update(unlike(reader, copied))
                    view = view_of(reader)
                problems = list(problems_of(view, opened.enter_context(target.read())))
            for problem in problems:
                report.blame(f"{_display_name(name)}: {problem}")
            report.verified += not problems
        for name in self._spaces_of(self._target):
            if name not in set(names):
                report.blame(f"{_display_name(name)} is not in the source")
        ours, theirs = self._source.catalog_tables(), self._target.catalog_tables()
        for table in CATALOG_TABLES:
            found[table.name] += sum(1 for _ in differences(ours, theirs, table, Count()))
        report.spaces = len(names)
        report.different = {name: count for name, count in found.items() if count}
        return report

    def _check_target(self) -> None:
        """Before anything is written: whatever is there must have come from here."""
        self._check_is_ours()
        ours = set(self._spaces())
        for name in self._spaces_of(self._target):
            if name not in ours:
                raise NotACopy(f"the target has a space {_display_name(name)} that is not in the source")
            with (
                self._source.open(*name, create=False) as source,
                self._target.open(*name, create=False) as target,
                source.read() as reader,
                target.read() as copied,
            ):
                check_related(reader, copied)
        theirs = self._target.catalog_tables()
        for table in CATALOG_TABLES:
            if table.change in (RowStability.GROWS, RowStability.LISTED):
                for row, there in differences(self._source.catalog_tables(), theirs, table, Count()):
                    if row is None and there is not None:
                        raise NotACopy(f"the target has a {table.name} that is not in the source")

    def _check_is_ours(self) -> None:
        """Not even looked into: to open a database is to bring it up to date."""
        if (foreign := self._target.foreign_file()) is not None:
            raise NotACopy(f"the target is no data directory: there is {foreign!r} in it")

    def _copy(self, name: Name, made: CopyCounts, place: tuple[int, int]) -> CopyView:
        def told(table: str, rows: int) -> None:
            self._written += rows
            self._report(name, table, *place)

        self._report(name, "", *place)
        with (
            self._source.open(*name, create=False) as source,
            self._target.open(*name, create=True) as target,
        ):
            with source.read() as reader:
                view = copy_space(reader, target, made, told)
            complete(target, view)
            # What was forgotten since it was copied leaves no byte there either, as far as that can be done in passing.
            made.wiped = not made.erased or target.wipe(bytes_max=self._wipe_bytes_max)
            with target.read() as copied:
                made.problems = [f"{_display_name(name)}: {problem}" for problem in problems_of(view, copied)]
        return view

    def _copy_catalog(self, report: MoveReport, passes_max: int) -> int:
        """Copied last: the catalog says where spaces are, and no client may connect before they are there. A
        running server keeps counting in the source's catalog, so one comparison may not be enough."""
        made = CopyCounts()
        ours, theirs = self._source.catalog_tables(), self._target.catalog_tables()
        counts: dict[str, int] = {}
        for _ in range(passes_max):
            there = theirs.counts()
            sink = Sink(theirs, made, lambda _table, _rows: None)
            for table in CATALOG_TABLES:
                make_same(ours, sink, table, made, there=there[table.name])
            sink.flush()
            counts = theirs.counts()
            if ours.counts() == counts:
                break
        else:
            if passes_max > 1:
                report.behind.append("the catalog")
        report.added += made.added
        report.removed += made.removed
        return sum(counts.values())

    def _position(self, name: Name) -> SpacePosition:
        with self._source.open(*name, create=False) as store, store.read() as reader:
            return space_position(reader)

    def _spaces(self) -> list[Name]:
        return list(self._spaces_of(self._source))

    @staticmethod
    def _spaces_of(stores: Stores) -> Iterator[Name]:
        return ((tenant, owner) for tenant in stores.tenants() for owner in stores.owners(tenant))

    def _report(self, name: Name, table: str, done: int, whole: int) -> None:
        self._progress(MoveProgress(*name, table, done, whole, self._written))


def _display_name(name: Name) -> str:
    return repr("/".join(name))
