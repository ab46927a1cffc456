"""An installation into another database: every space of every tenant, and the catalog.

It can be killed at any point and run again: whatever is there already is compared, and only what differs is written. The
source is read and never written. Each space is copied as of one moment; what comes into it meanwhile is taken over by
another pass, and what comes in after the last pass is reported.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import msgspec

from memplane.errors import NotFound
from memplane.moving.compare import Count, differences
from memplane.moving.space import (
    Standing,
    View,
    check_related,
    complete,
    copy_space,
    problems_of,
    standing_of,
    unlike,
    view_of,
)
from memplane.moving.tables import Made, NotACopy, Sink, make_same
from memplane.storage.base import Stores
from memplane.storage.moving import CATALOG_TABLES, Sort

PASSES_MAX = 3
"""So often is looked for what came in meanwhile; somebody who never stops writing is not waited for."""

_NAMED_MAX = 20

Name = tuple[str, str]


class Progress(msgspec.Struct, frozen=True):
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


def _silent(_: Progress) -> None:
    pass


class Move:
    """From one installation to another."""

    def __init__(
        self,
        source: Stores,
        target: Stores,
        *,
        progress: Callable[[Progress], None] = _silent,
        wipe_bytes_max: int | None = None,
    ) -> None:
        """`wipe_bytes_max` is how much may be written anew at once so that nothing erased stays in the target's files."""
        self._source = source
        self._target = target
        self._progress = progress
        self._wipe_bytes_max = wipe_bytes_max
        self._written = 0

    def run(self, *, passes_max: int = PASSES_MAX) -> MoveReport:
        """Make the target the same as the source. Raises `NotACopy`, before anything is written, where it holds
        something else. With one pass, what comes in meanwhile is left for the next time, as a backup does."""
        self._check_target()
        report = MoveReport()
        standing: dict[Name, Standing] = {}
        rows: Counter[Name] = Counter()
        problems: dict[Name, list[str]] = {}
        waiting = self._spaces()
        while waiting and report.passes < passes_max:
            report.passes += 1
            for done, name in enumerate(waiting):
                made = Made()
                view = self._copy(name, made, (done, len(waiting)))
                standing[name], rows[name] = view.standing, sum(view.counts.values())
                problems.pop(name, None)
                if made.problems:
                    problems[name] = made.problems
                report.added += made.added
                report.removed += made.removed
                report.to_wipe += not made.wiped
            if passes_max == 1:
                waiting = []
            else:
                waiting = [name for name in self._spaces() if standing.get(name) != self._standing(name)]
        report.spaces, report.verified = len(standing), len(standing) - len(problems)
        for found in problems.values():
            for problem in found:
                report.blame(problem)
        report.behind = [_shown(name) for name in waiting[:_NAMED_MAX]]
        report.rows = sum(rows.values()) + self._copy_catalog(report, passes_max)
        return report

    def check(self) -> MoveReport:
        """Compare every row, and write none."""
        report = MoveReport(passes=1, different={})
        found: Counter[str] = Counter()
        names = self._spaces()
        for done, name in enumerate(names):
            self._tell(name, "", done, len(names))
            with ExitStack() as opened:
                source = opened.enter_context(self._source.open(*name, create=False))
                try:
                    target = opened.enter_context(self._target.open(*name, create=False))
                except NotFound:
                    report.blame(f"{_shown(name)} is not in the target")
                    continue
                with source.read() as reader, target.read() as copied:
                    found.update(unlike(reader, copied))
                    view = view_of(reader)
                problems = list(problems_of(view, opened.enter_context(target.read())))
            for problem in problems:
                report.blame(f"{_shown(name)}: {problem}")
            report.verified += not problems
        for name in self._spaces_of(self._target):
            if name not in set(names):
                report.blame(f"{_shown(name)} is not in the source")
        ours, theirs = self._source.catalog_rows(), self._target.catalog_rows()
        for table in CATALOG_TABLES:
            found[table.name] += sum(1 for _ in differences(ours, theirs, table, Count()))
        report.spaces = len(names)
        report.different = {name: count for name, count in found.items() if count}
        return report

    def _check_target(self) -> None:
        """Before anything is written: whatever is there must have come from here."""
        if (stranger := self._target.stranger()) is not None:
            raise NotACopy(f"the target is no data directory: there is {stranger!r} in it")
        ours = set(self._spaces())
        for name in self._spaces_of(self._target):
            if name not in ours:
                raise NotACopy(f"the target has a space {_shown(name)} that is not in the source")
            with (
                self._source.open(*name, create=False) as source,
                self._target.open(*name, create=False) as target,
                source.read() as reader,
                target.read() as copied,
            ):
                check_related(reader, copied)
        theirs = self._target.catalog_rows()
        for table in CATALOG_TABLES:
            if table.sort in (Sort.GROWS, Sort.LISTED):
                for row, there in differences(self._source.catalog_rows(), theirs, table, Count()):
                    if row is None and there is not None:
                        raise NotACopy(f"the target has a {table.name} that is not in the source")

    def _copy(self, name: Name, made: Made, place: tuple[int, int]) -> View:
        def told(table: str, rows: int) -> None:
            self._written += rows
            self._tell(name, table, *place)

        self._tell(name, "", *place)
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
                made.problems = [f"{_shown(name)}: {problem}" for problem in problems_of(view, copied)]
        return view

    def _copy_catalog(self, report: MoveReport, passes_max: int) -> int:
        """Last: it says where things live, and nobody is to be let in before they do. Whoever serves the source counts on
        in it, so that a look at it may not be the last."""
        made = Made()
        ours, theirs = self._source.catalog_rows(), self._target.catalog_rows()
        counts: dict[str, int] = {}
        for _ in range(passes_max):
            there = theirs.row_counts()
            sink = Sink(theirs, made, lambda _table, _rows: None)
            for table in CATALOG_TABLES:
                make_same(ours, sink, table, made, there=there[table.name])
            sink.flush()
            counts = theirs.row_counts()
            if ours.row_counts() == counts:
                break
        else:
            if passes_max > 1:
                report.behind.append("the catalog")
        report.added += made.added
        report.removed += made.removed
        return sum(counts.values())

    def _standing(self, name: Name) -> Standing:
        with self._source.open(*name, create=False) as store, store.read() as reader:
            return standing_of(reader)

    def _spaces(self) -> list[Name]:
        return list(self._spaces_of(self._source))

    @staticmethod
    def _spaces_of(stores: Stores) -> Iterator[Name]:
        return ((tenant, owner) for tenant in stores.tenants() for owner in stores.owners(tenant))

    def _tell(self, name: Name, table: str, done: int, whole: int) -> None:
        self._progress(Progress(*name, table, done, whole, self._written))


def _shown(name: Name) -> str:
    return repr("/".join(name))
