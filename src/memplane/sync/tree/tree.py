"""A space as a tree of plain files, in both directions.

`files_of` generates the files and `import_tree` applies files to a space. `write_tree` and `read_tree` do the same
with an object store, including the ledger, which is authoritative: with it another space becomes identical; without
it only the readable files can be imported.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from memplane.clock import Instant
from memplane.errors import InvalidRequest
from memplane.space import Space
from memplane.sync.digests import is_generated
from memplane.sync.interactions import day_of_key
from memplane.sync.tree.behavioral import (
    FileForgotten,
    FileNews,
    Verdict,
    is_our_index,
    judged,
    memory_files,
    parse_file,
)
from memplane.sync.tree.interactions import day_files, drafts_of, joined
from memplane.sync.tree.names import (
    BEHAVIORAL,
    FACTS,
    FILES,
    GENERATED,
    INDEX,
    PREFIXES,
    STATE,
    WRITTEN,
    below,
    check_path,
)
from memplane.sync.tree.report import TreeReport, TreeTally, WrittenFile, compose, digest_of, parse
from memplane.sync.tree.state import (
    agent_files,
    carried_files,
    facts_file,
    facts_in,
    judged_carried,
    judged_fact,
    judged_file,
    modified_at,
)
from memplane.sync.tree.versions import Versions
from memplane.types import NewEntry

There = Callable[[str], bytes | None]
"""What a file holds at the place that is written to; None where there is none."""

OWN_INDEX: Final = f"{BEHAVIORAL}/{INDEX}"
"""The name under which a person's own index is stored, whatever folder it is in."""

_BATCH = 500


def files_of(
    space: Space,
    *,
    prefix: str = BEHAVIORAL,
    there: There | None = None,
    days: Collection[str] | None = None,
    others: Iterable[tuple[str, bytes]] = (),
) -> Iterator[tuple[str, bytes]]:
    """(path, content) of every readable file; deterministic for the same space.

    `prefix` is the folder of memories. `there` is the current content of the remote: lines that others wrote into a
    day's file stay in it. `days` limits interactions to these days. `others` are files generated elsewhere, such as
    summaries and digests.
    """
    check_prefix(prefix)
    records: dict[str, WrittenFile] = {}

    def noted(path: str, text: str, entry: str) -> tuple[str, bytes]:
        data = text.encode("utf-8")
        if entry:
            records[path] = WrittenFile(entry, digest_of(data))
        return path, data

    yield from (noted(path, text, entry) for path, text, entry in _texts(space, prefix))
    if (facts := facts_file(space)) is not None:
        yield FACTS, facts
    yield from others  # before the days they are generated from, so that a digest exists when its day is removed
    for path, lines in day_files(space, days):
        yield path, joined(space, lines, (there(path) if there is not None else None) or b"")
    if records:
        yield WRITTEN, compose(records)


def _texts(space: Space, prefix: str) -> Iterator[tuple[str, str, str]]:
    """(path, text, entry id) of each file that shows one entry."""
    carried = {path: (text, entry) for path, text, entry in carried_files(space)}
    own_index = carried.pop(OWN_INDEX, None)
    for path, text, entry in memory_files(space):
        if path != INDEX or own_index is None:
            yield f"{prefix}/{path}", text, entry
    if own_index is not None:
        yield f"{prefix}/{INDEX}", *own_index
    yield from agent_files(space)
    for path, (text, entry) in carried.items():
        yield path, text, entry


def check_prefix(prefix: str) -> None:
    if prefix not in PREFIXES:
        raise InvalidRequest(
            f"memories are written below {' or '.join(PREFIXES)}, not {prefix!r}", field="prefix"
        )


def import_tree(
    space: Space,
    files: Iterable[tuple[str, bytes]],
    *,
    prefix: str = BEHAVIORAL,
    modified: Mapping[str, datetime] | None = None,
    there: Collection[str] | None = None,
    forget_missing: bool = False,
    dry_run: bool = False,
) -> TreeReport:
    """Import files. Known content changes nothing, so importing is idempotent.

    `modified` gives the files' modification times, so that every replica records the same edit identically. `there`
    names all existing files if `files` are only some of them; give it, or `WRITTEN` among the files, to detect
    missing ones. A memory whose file is missing is forgotten with `forget_missing` only, and written again
    otherwise. With `dry_run`, nothing is changed.
    """
    check_prefix(prefix)
    taking = _TreeImport(space, dict(files), prefix=prefix, modified=modified or {}, dry_run=dry_run)
    return taking.run(there, forget_missing=forget_missing)


class _TreeImport:
    """One take-in, from the first file to the report."""

    def __init__(
        self,
        space: Space,
        files: dict[str, bytes],
        *,
        prefix: str,
        modified: Mapping[str, datetime],
        dry_run: bool,
    ) -> None:
        self._space = space
        self._files = files
        self._prefixes = (prefix, *(other for other in PREFIXES if other != prefix))
        self._modified = modified
        self._dry_run = dry_run
        self._written = parse(files.get(WRITTEN))
        self._recorded = {
            record.entry: name
            for path, record in self._written.files.items()
            for folder in PREFIXES
            if (name := below(path, folder)) is not None
        }
        self._tally = TreeTally()
        self._drafts: list[NewEntry] = []
        self._touched: set[str] = set()

    def run(self, there: Collection[str] | None, *, forget_missing: bool) -> TreeReport:
        paths: list[str] = []
        for path in sorted(self._files):
            try:
                check_path(path)
            except InvalidRequest as exc:
                self._tally.rejected.append((path, str(exc)))
            else:
                paths.append(path)
        self._memories(paths, there)
        for path in paths:
            if not any(below(path, folder) for folder in PREFIXES):
                self._other(path, self._files[path])
        self._flush()
        if not self._dry_run:
            self._space.ledger.catch_up()
        self._missing(set(self._files if there is None else there), forget=forget_missing)
        return self._tally.report()

    def _other(self, path: str, data: bytes) -> None:
        """Any file but a memory's."""
        told_of = (self._space, path, data, self._written, self._at(path))
        if path == FACTS:
            self._facts(data)
        elif below(path, FILES) is not None:
            self._judge(path, partial(judged_file, *told_of))
            self._flush()  # the next one may be kept in addition to it
        elif below(path, STATE) is not None and path != WRITTEN:
            self._judge(path, partial(judged_carried, *told_of))
        elif day_of_key(path) is not None:
            self._day(path, data)
        elif any(below(path, folder) for folder in GENERATED) and is_generated(data):
            self._tally.unchanged[path] = None
        elif path != WRITTEN:
            self._tally.left.append(path)

    # ── memories ─────────────────────────────────────────────────────────────────────────────────────────────

    def _memories(self, paths: list[str], there: Collection[str] | None) -> None:
        """The folder that is written counts before the other one."""
        rows = [(name, path) for folder in self._prefixes for path in paths if (name := below(path, folder))]
        if not rows:
            return
        expected = {name: (text.encode("utf-8"), entry) for name, text, entry in memory_files(self._space)}
        homes = {entry: name for name, (_, entry) in expected.items() if entry}
        all_there = {
            name
            for path in (self._files if there is None else there)
            for folder in PREFIXES
            if (name := below(path, folder))
        }
        seen: dict[str, str] = {}
        for name, path in rows:
            data = self._files[path]
            if name in seen:
                self._import_again(path, data, seen[name])
                continue
            seen[name] = path
            if name in expected and expected[name][0] == data:
                self._tally.unchanged[path] = None
            elif name == INDEX:
                self._index(path, data)
            elif not name.endswith(".md"):
                self._tally.left.append(path)
            else:
                self._judge(path, partial(self._memory, name, path, data, homes, all_there))
                if len(self._drafts) >= _BATCH:
                    self._flush()

    def _memory(
        self, name: str, path: str, data: bytes, homes: Mapping[str, str], there: Collection[str]
    ) -> Verdict:
        file = parse_file(name, data)
        entry = file.entry
        if entry is not None and entry in self._touched:
            self._flush()
        versions = Versions(self._space)
        place = self._current_path(entry, path, homes)
        if place is not None and place in there:  # a copy of the file, made to write another one
            members = {name: value for name, value in file.members.items() if name not in ("id", "entry")}
            file = msgspec.structs.replace(file, members=members)
        moved = place is not None and place not in there and entry in self._recorded
        verdict = judged(self._space, versions, file, self._at(path), moved=moved)
        if isinstance(verdict, FileNews):
            self._touched.update(id_ for id_ in (verdict.draft.id, verdict.draft.ref, file.id) if id_)
        return verdict

    def _current_path(self, entry: str | None, path: str, homes: Mapping[str, str]) -> str | None:
        """The other path of the version that a file shows; None if the file is in its place."""
        if entry is None or self._written.base(path) == entry:
            return None
        place = self._recorded.get(entry) or homes.get(entry)
        return None if place is None or any(path == f"{folder}/{place}" for folder in PREFIXES) else place

    def _import_again(self, path: str, data: bytes, first: str) -> None:
        if self._files[first] == data:
            self._tally.unchanged[path] = None
        else:
            self._tally.rejected.append(
                (path, f"{first} is the same file and says something else; only that one counts")
            )

    def _index(self, path: str, data: bytes) -> None:
        """A generated index is regenerated; a person's own index is stored."""
        if is_our_index(data.decode("utf-8", "replace")):
            self._tally.unchanged[path] = None
            return
        judge = partial(
            judged_carried, self._space, path, data, self._written, self._at(path), name=OWN_INDEX
        )
        self._judge(path, judge)

    # ── the rest ─────────────────────────────────────────────────────────────────────────────────────────────

    def _facts(self, data: bytes) -> None:
        try:
            facts = facts_in(data)
        except InvalidRequest as exc:
            self._tally.rejected.append((FACTS, str(exc)))
            return
        live = {memory.key: memory for memory in self._space.facts.list(limit=1_000_000)}
        for key, raw in facts.items():
            known = live.get(key.strip())
            self._judge(FACTS, partial(judged_fact, self._space, known, key, raw, self._at(FACTS)), part=key)

    def _day(self, path: str, data: bytes) -> None:
        drafts, rejected = drafts_of(self._space, data)
        self._tally.rejected += [(f"{path}:{number}", why) for number, why in rejected]
        (self._tally.taken if drafts else self._tally.unchanged)[path] = None
        self._drafts += drafts
        self._flush()

    def _missing(self, there: Collection[str], *, forget: bool) -> None:
        """What was written and is not there any more. Only what the place itself says was written there can be missing."""
        for path, record in self._written.files.items():
            if path in there or path in self._tally.taken:
                continue
            known, _ = self._space.ledger.status([record.entry])
            if not known or self._space.ledger.replacements(record.entry):
                continue  # its replacement is in another file
            self._tally.missing.append(path)
            if forget:
                self._forget(path, record.entry)

    def _forget(self, path: str, entry: str) -> None:
        ids: list[str] = []
        at: str | None = entry
        while at is not None and at not in ids:
            ids.append(at)
            found = self._space.ledger.entries_by_id([at]).get(at)
            at = None if found is None else found.ref
        if not self._dry_run:
            self._space.forget(entries=ids, reason="its file was removed")
        self._tally.dropped.append(path)

    # ── how it is done ───────────────────────────────────────────────────────────────────────────────────────

    def _judge(self, path: str, judge: Callable[[], Verdict], *, part: str = "") -> None:
        named = f"{path}:{part}" if part else path
        try:
            verdict = judge()
        except InvalidRequest as exc:
            self._tally.rejected.append((named, str(exc)))
            return
        match verdict:
            case FileNews(draft=draft, replaced=odds):
                self._drafts.append(draft)
                self._tally.taken[path] = None
                if odds:
                    self._tally.conflicts.append(
                        (named, f"it was changed here too; both are kept ({', '.join(odds)})")
                    )
            case FileForgotten():
                self._tally.forgotten.append(named)
            case _:
                self._tally.unchanged[path] = None

    def _flush(self) -> None:
        if self._drafts:
            self._tally.entries += len(self._drafts)
            if not self._dry_run:
                self._space.ledger.merge(self._drafts, {})
            self._drafts = []
        self._touched.clear()

    def _at(self, path: str) -> Instant | None:
        return modified_at(self._modified.get(path))
