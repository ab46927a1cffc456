"""What it takes to move a space, or the catalog, into another database: every table of it, row by row.

A move copies rows as they are, so that nothing changes: ids, places, digests, salts, vectors. Only what an engine makes for
itself stays behind: its index of words, and the stamps by which caches see what is new. A table that is added to a schema
is added here; tests/contract/test_moving.py compares the two.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal, Protocol

import msgspec

Row = tuple[Any, ...]
Key = tuple[Any, ...]
Indexed = Literal["turn", "memory", "span"]


class RowStability(StrEnum):
    """What may have become of a row since it was copied."""

    LEDGER = "ledger"
    """It may have another place in the order, or another name; nothing else of it changes."""
    GROWS = "grows"
    """It is as it was: a row that only the copy has is not from here."""
    ERASED = "erased"
    """It is as it was or it is gone."""
    LISTED = "listed"
    """It may have changed, but it is there."""
    CHANGES = "changes"
    """Anything."""


class Table(msgspec.Struct, frozen=True):
    """A table as a move sees it. Columns are those that the engines have in common."""

    name: str
    key: tuple[str, ...]
    others: tuple[str, ...] = ()
    sort: RowStability = RowStability.CHANGES
    heavy: str | None = None
    """A column that may be large: a page takes as many rows as fit into memory."""
    words: Indexed | None = None
    """Its rows are in this index of words."""
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
        """Where in a row this column stands."""
        return self.columns.index(column)


def _table(name: str, key: str, others: str = "", **more: Any) -> Table:
    return Table(name, tuple(key.split()), tuple(others.split()), **more)


LEDGER = _table(
    "ledger",
    "position",
    "seq id op recorded actor door session ref payload_digest digest chained_id origin",
    sort=RowStability.LEDGER,
)
PAYLOAD = _table("payload", "position", "salt body", sort=RowStability.ERASED, heavy="body")
META = _table("meta", "name", "value", only="name <> 'indexed' AND substr(name, 1, 9) <> 'searched:'")
SPACE_TABLES = (
    LEDGER,
    _table("variant", "id", "base", sort=RowStability.GROWS),
    _table("tombstone", "id position", "at reason cause", sort=RowStability.GROWS),
    PAYLOAD,
    _table(
        "audit", "seq", "at actor door session action target outcome detail digest", sort=RowStability.GROWS
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
"""In the order in which they are copied: what a tombstone allows comes after it, and how far a space is comes last."""

CATALOG_TABLES = (
    _table("once", "word", sort=RowStability.GROWS),
    _table(
        "key",
        "id",
        "agent salt digest name tenant subject spaces doors rights created expires used revoked parent passing",
        sort=RowStability.LISTED,
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


class MoveReader(Protocol):
    """Rows as they are, beside `Reader`."""

    def rows_of(self, table: Table, *, after: Key | None, limit: int, bytes_max: int) -> list[Row]:
        """Up to so many whose key is larger, in the order of keys; none at the end only. Of a table with a heavy column
        as many as have no more than `bytes_max` in it, and one at least."""

    def row_counts(self) -> dict[str, int]:
        """How many there are in each table."""

    def indexed(self) -> int:
        """The last turn that is in the index of words."""


class MoveWriter(Protocol):
    """The same inside a write transaction."""

    def restore(self, table: Table, copied: Sequence[Row]) -> None:
        """Add these as they are, with their entries in the index of words; none of the keys is taken, except in `meta`,
        where the value is replaced."""

    def remove(self, table: Table, copied: Sequence[Row]) -> None:
        """Take these out, as they are there. A payload goes only if its entry has a tombstone."""

    def reorder(self, moves: Sequence[tuple[int, int]], names: Sequence[tuple[int, str, str | None]]) -> None:
        """Give entries other places: (position, seq), all of them at once. And other names: (position, id, chained id)."""

    def index_until(self, n: int) -> bool:
        """Bring the index of words nearer to holding every turn up to this one, and none after; False when it is so."""


class Rows(Protocol):
    """Tables that can be read and written without a transaction of one's own: what the catalog is to a move."""

    def rows_of(self, table: Table, *, after: Key | None, limit: int, bytes_max: int) -> list[Row]:
        """See `MoveReader`."""

    def row_counts(self) -> dict[str, int]:
        """See `MoveReader`."""

    def restore(self, parts: Sequence[tuple[Table, Sequence[Row]]]) -> None:
        """As `MoveWriter` does, all of them or none. Durable when it returns."""

    def remove(self, table: Table, copied: Sequence[Row]) -> None:
        """Durable when it returns."""
