"""Every table of a space and of the catalog, row by row: what a move to another database copies.

A move copies rows as they are, so that nothing changes: ids, places, digests, salts, vectors. Only what an engine makes for
itself is left out: its word index, and the stamps by which caches see what is new. A table that is added to a schema is added
here; tests/storage/contract/test_moving.py compares the two.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from memplane.storage import rows
from memplane.storage.engine import Indexed
from memplane.storage.session import SessionReader, WriteSession
from memplane.types import searchable

Row = tuple[Any, ...]
Key = tuple[Any, ...]
_QUOTED = frozenset({"end"})


class RowStability(StrEnum):
    """How a row may differ from its copy."""

    LEDGER = "ledger"
    """Its place or its id may change, nothing else."""
    GROWS = "grows"
    """It never changes: a row that only the copy has is from elsewhere."""
    ERASED = "erased"
    """It never changes, but may be erased."""
    LISTED = "listed"
    """It may change, but is never removed."""
    CHANGES = "changes"
    """It may change or be removed."""


class Table(msgspec.Struct, frozen=True):
    """A table as a move sees it. Columns are those that the engines have in common."""

    name: str
    key: tuple[str, ...]
    others: tuple[str, ...] = ()
    change: RowStability = RowStability.CHANGES
    heavy: str | None = None
    """A column that may be large: a page takes as many rows as fit into memory."""
    words: Indexed | None = None
    """Its rows are in this word index."""
    only: str | None = None
    """A condition for the rows that are moved."""
    flags: tuple[str, ...] = ()
    """Columns that hold true or false."""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.key + self.others

    def key_of(self, row: Row) -> Key:
        return row[: len(self.key)]

    def place(self, column: str) -> int:
        """The position of a column in a row."""
        return self.columns.index(column)


def _table(name: str, key: str, others: str = "", **more: Any) -> Table:
    return Table(name, tuple(key.split()), tuple(others.split()), **more)


LEDGER = _table(
    "ledger",
    "position",
    "seq id op recorded actor door session ref payload_digest digest chained_id origin",
    change=RowStability.LEDGER,
)
PAYLOAD = _table("payload", "position", "salt body", change=RowStability.ERASED, heavy="body")
META = _table(
    "meta",
    "name",
    "value",
    only="name <> 'indexed' AND substr(name, 1, 9) <> 'searched:' AND substr(name, 1, 7) <> 'erased:'",
)
SPACE_TABLES = (
    LEDGER,
    _table("variant", "id", "base", change=RowStability.GROWS),
    _table("tombstone", "id position", "at reason cause", change=RowStability.GROWS),
    PAYLOAD,
    _table(
        "audit", "seq", "at actor door session action target outcome detail digest", change=RowStability.GROWS
    ),
    _table("model", "n", "id dimension"),
    _table("turn", "n", "role text at conversation project speaker within flags", heavy="text", words="turn"),
    _table(
        "memory",
        "n",
        "id kind behavioral text seq start end state tier tags key category created updated expires supersedes "
        "superseded_by superseded conversation project turn quote extractor role subject predicate object claim "
        "importance confidence times time_from time_until embedded within chosen passed_over leaning importance_base flags",
        heavy="text",
        words="memory",
    ),
    _table("memory_tag", "tag n"),
    _table("ruling", "id", "released pinned"),
    _table("hidden", "seq"),
    _table("evidence", "memory seq id", "body"),
    _table("cited", "seq memory"),
    _table("untold", "conversation", "first last_at"),
    _table("conflict", "a b"),
    _table("overruled", "by id"),
    _table("purged", "by id", "seq entry at"),
    _table("access", "memory", "count last"),
    _table(
        "document",
        "seq",
        "id name project media_type bytes chars sections spans created updated status error distillation",
        heavy="distillation",
    ),
    _table("section", "n", "title level path start end distillation"),
    _table("span", "n", "section start end place words lead text embedded", heavy="text", words="span"),
    _table("collection", "seq", "id name project ordered created"),
    _table("member", "collection document", "seq position at"),
    _table("shelf_entry", "seq", "document collection project at"),
    _table(
        "promoted",
        "seq",
        "id layer day kind text at sources quote conversation project within recorded",
        heavy="text",
    ),
    _table("promoted_from", "source seq"),
    _table("judgement", "entry item", "day outcome line reason"),
    _table("verdict", "learning", "confirmed decider at memory"),
    _table("turn_vector", "n", "words asks model digest vector"),
    _table("memory_vector", "id", "model digest vector"),
    _table("span_vector", "n", "model digest vector"),
    _table("pinned", "name", "at text", heavy="text"),
    META,
)
"""In the order in which they are copied: payloads after the tombstones that allow to remove them, and progress
last."""

CATALOG_TABLES = (
    _table("once", "word", change=RowStability.GROWS),
    _table(
        "key",
        "id",
        "agent salt digest name tenant subject spaces doors rights created expires used revoked parent passing",
        change=RowStability.LISTED,
        flags=("passing",),
    ),
    _table("lock", "place", "until"),
    _table("place", "tenant sort id owner", "at noted"),
    _table("complete", "tenant owner"),
    _table(
        "usage",
        "tenant day endpoint",
        "requests errors latency_us request_bytes response_bytes ingest_events tokens work_units",
    ),
    _table("spent", "tenant what since", "used"),
    _table("passed", "tenant what n", "at"),
)

VECTOR_TABLES = ("turn_vector", "memory_vector", "span_vector")
"""Their last column is a vector."""


class TablesReader(SessionReader):
    """Reads of rows as they are."""

    def rows(self, table: Table, *, after: Key | None, limit: int, bytes_max: int) -> list[Row]:
        """Rows with a larger key, in the order of keys; none only at the end. For a table with a heavy column,
        as many as fit into `bytes_max`, and one at least."""
        return page(self._session.all, table, after, limit, bytes_max)

    def counts(self) -> dict[str, int]:
        """The number of rows of each table."""
        return counts_of(SPACE_TABLES, self._session.one("copy_counts"))


class TablesWriter(TablesReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def restore(self, table: Table, copied: Sequence[Row]) -> None:
        """Add rows as they are, and their words to the index. Their keys must be new, except in `meta`, where
        the value is replaced."""
        query = "set_note" if table == META else f"copy_{table.name}_add"
        self._session.many(query, flagged(table, copied))
        _change_words(self._session, table, copied, self._session.words.add)
        if table in (LEDGER, META):
            self._session.start()

    def remove(self, table: Table, copied: Sequence[Row]) -> None:
        """Remove these rows. A payload is removed only if its entry has a tombstone."""
        _change_words(self._session, table, copied, self._session.words.drop)
        self._session.many(f"copy_{table.name}_drop", [table.key_of(row) for row in copied])

    def reorder(self, moves: Sequence[tuple[int, int]], names: Sequence[tuple[int, str, str | None]]) -> None:
        """Give entries other places, all at once, as (position, seq), and other ids, as (position, id, chained
        id)."""
        self._session.many("reorder_entry", [(-seq, position) for position, seq in moves])
        if moves:
            self._session.run("settle_entries")
        self._session.many(
            "rename_entry", [(id_, chained_id, position) for position, id_, chained_id in names]
        )


def counts_of(tables: Sequence[Table], row: Sequence[int]) -> dict[str, int]:
    """The rows of each table, by its name."""
    return {table.name: count for table, count in zip(tables, row, strict=True)}


def page(
    read: Callable[..., list[Any]], table: Table, after: Key | None, limit: int, bytes_max: int
) -> list[Row]:
    """Rows after this key: as many as fit into `bytes_max`, and one at least."""
    end = "" if after is None else "_after"
    asked = (
        {}
        if after is None
        else {f"after_{column}": part for column, part in zip(table.key, after, strict=True)}
    )
    if table.heavy is not None:
        sizes = read(f"copy_{table.name}_sizes{end}", limit=limit, **asked)
        limit = _fitting([size for (size,) in sizes], bytes_max)
    return [tuple(row) for row in read(f"copy_{table.name}{end}", limit=limit, **asked)] if limit else []


def _fitting(sizes: Sequence[int], bytes_max: int) -> int:
    """How many of the first rows fit into `bytes_max`, and one at least."""
    whole = 0
    for count, size in enumerate(sizes):
        whole += size
        if whole > bytes_max and count:
            return count
    return len(sizes)


def flagged(table: Table, changed: Sequence[Row]) -> list[Row]:
    """With booleans in the columns that hold them: SQLite has numbers."""
    places = [table.place(column) for column in table.flags]
    if not places:
        return list(changed)
    return [
        tuple(bool(value) if place in places else value for place, value in enumerate(row)) for row in changed
    ]


def _text_of(table: Table, row: Row) -> str:
    """The text of a row that is in the word index."""
    match table.words:
        case "memory":
            text, key, tags = (row[table.place(column)] for column in ("text", "key", "tags"))
            return searchable(text, key, rows.tags_from(tags))
        case "span":
            return str(row[table.place("lead")]) + str(row[table.place("text")])
        case _:
            return str(row[table.place("text")])


def _change_words(
    session: WriteSession,
    table: Table,
    changed: Sequence[Row],
    change: Callable[[Indexed, Sequence[tuple[int, str]]], None],
) -> None:
    if table.words is None:
        return
    indexed = session.indexed() if table.words == "turn" else None
    texts = [(int(row[0]), _text_of(table, row)) for row in changed if indexed is None or row[0] <= indexed]
    if texts:
        change(table.words, texts)


def _statements_of(tables: Sequence[Table]) -> dict[str, str]:
    """The statements of a move by name, as `load` takes them."""
    found: dict[str, str] = {}
    for table in tables:
        found.update(_of(table))
    counts = ", ".join(f"(SELECT count(*) FROM {table.name}{_only(table)})" for table in tables)
    return found | {"copy_counts": f"SELECT {counts}"}


def _of(table: Table) -> dict[str, str]:
    name, columns, key = table.name, _listed(table.columns), _listed(table.key)
    asked = _listed([f":after_{column}" for column in table.key], quote=False)
    first = _only(table)
    later = f" WHERE ({key}) > ({asked})" + ("" if table.only is None else f" AND {table.only}")
    page = f"ORDER BY {key} LIMIT :limit"
    values = _listed(["?"] * len(table.columns), quote=False)
    matches = " AND ".join(f"{_name(column)} = ?" for column in table.key)
    return {
        f"copy_{name}": f"SELECT {columns} FROM {name}{first} {page}",
        f"copy_{name}_after": f"SELECT {columns} FROM {name}{later} {page}",
        f"copy_{name}_sizes": f"SELECT {_size(table)} FROM {name}{first} {page}",
        f"copy_{name}_sizes_after": f"SELECT {_size(table)} FROM {name}{later} {page}",
        f"copy_{name}_add": f"INSERT INTO {name} ({columns}) VALUES ({values})",
        f"copy_{name}_drop": f"DELETE FROM {name} WHERE {matches}",
    }


def _only(table: Table) -> str:
    return "" if table.only is None else f" WHERE {table.only}"


def _size(table: Table) -> str:
    return "0" if table.heavy is None else f"coalesce(octet_length({_name(table.heavy)}), 0)"


def _listed(names: Sequence[str], *, quote: bool = True) -> str:
    return ", ".join(_name(name) if quote else name for name in names)


def _name(column: str) -> str:
    return f'"{column}"' if column in _QUOTED else column


SPACE_MOVES = _statements_of(SPACE_TABLES)
CATALOG_MOVES = _statements_of(CATALOG_TABLES)
