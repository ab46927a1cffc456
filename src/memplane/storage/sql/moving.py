"""`MoveReader` and `MoveWriter` in SQL, and `Rows` over the catalog."""

from collections.abc import Callable, Sequence
from typing import Any

from memplane.storage.moving import CATALOG_TABLES, META, SPACE_TABLES, Key, Row, Table
from memplane.storage.sql import rows
from memplane.storage.sql.catalog.catalog import Catalog, CatalogWriter
from memplane.storage.sql.session import SqlSession
from memplane.types import searchable

_INDEX_TURNS = 1_000


class SqlMoveReader(SqlSession):
    """See `MoveReader`."""

    def rows_of(self, table: Table, *, after: Key | None, limit: int, bytes_max: int) -> list[Row]:
        return _page(self._all, table, after, limit, bytes_max)

    def row_counts(self) -> dict[str, int]:
        return _counts(SPACE_TABLES, self._one("copy_counts"))

    def indexed(self) -> int:
        return self._indexed()


class SqlMoveWriter(SqlMoveReader):
    """See `MoveWriter`."""

    def restore(self, table: Table, copied: Sequence[Row]) -> None:
        self._ready()
        query = "set_note" if table == META else f"copy_{table.name}_add"
        self._many(query, _flagged(table, copied))
        self._words_of(table, copied, self._words.add)

    def remove(self, table: Table, copied: Sequence[Row]) -> None:
        self._ready()
        self._words_of(table, copied, self._words.drop)
        self._many(f"copy_{table.name}_drop", [table.key_of(row) for row in copied])

    def reorder(self, moves: Sequence[tuple[int, int]], names: Sequence[tuple[int, str, str | None]]) -> None:
        """By way of negative places, which nobody has: whatever moves where, no two ever meet."""
        self._ready()
        self._many("reorder_entry", [(-seq, position) for position, seq in moves])
        if moves:
            self._run("settle_entries")
        self._many("rename_entry", [(id_, chained_id, position) for position, id_, chained_id in names])

    def index_until(self, n: int) -> bool:
        indexed = self._indexed()
        if indexed > n:
            found = self._all("not_indexed", after=n, until=indexed, limit=_INDEX_TURNS)
            self._words.drop("turn", [(number, text) for number, text in found])
            last = found[-1][0] - 1 if len(found) == _INDEX_TURNS else n
        else:
            found = self._all("tail_texts", indexed=indexed, beyond=n + 1, limit=_INDEX_TURNS)
            self._words.add("turn", [(number, text) for number, text in found])
            last = found[-1][0] if len(found) == _INDEX_TURNS else n
        if last != indexed:
            self._set_note("indexed", str(last))
        return last != n

    def _words_of(
        self, table: Table, changed: Sequence[Row], change: Callable[[Any, Sequence[tuple[int, str]]], None]
    ) -> None:
        if table.words is None:
            return
        indexed = self._indexed() if table.words == "turn" else None
        texts = [
            (int(row[0]), _text_of(table, row)) for row in changed if indexed is None or row[0] <= indexed
        ]
        if texts:
            change(table.words, texts)


class SqlCatalogRows:
    """See `Rows`."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def rows_of(self, table: Table, *, after: Key | None, limit: int, bytes_max: int) -> list[Row]:
        return _page(self._catalog.read, table, after, limit, bytes_max)

    def row_counts(self) -> dict[str, int]:
        found = self._catalog.read("copy_counts")
        return _counts(CATALOG_TABLES, found[0] if found else (0,) * len(CATALOG_TABLES))

    def restore(self, parts: Sequence[tuple[Table, Sequence[Row]]]) -> None:
        def work(writer: CatalogWriter) -> None:
            for table, copied in parts:
                writer.run_many(f"copy_{table.name}_add", _flagged(table, copied))

        self._catalog.write(work)

    def remove(self, table: Table, copied: Sequence[Row]) -> None:
        keys = [table.key_of(row) for row in copied]
        self._catalog.write(lambda writer: writer.run_many(f"copy_{table.name}_drop", keys))


def _counts(tables: Sequence[Table], row: Sequence[int]) -> dict[str, int]:
    return {table.name: count for table, count in zip(tables, row, strict=True)}


def _page(
    read: Callable[..., list[Any]], table: Table, after: Key | None, limit: int, bytes_max: int
) -> list[Row]:
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
    """How many of the first have no more than so much together; one has to do."""
    whole = 0
    for count, size in enumerate(sizes):
        whole += size
        if whole > bytes_max and count:
            return count
    return len(sizes)


def _flagged(table: Table, changed: Sequence[Row]) -> list[Row]:
    """With true and false where a column holds those: one engine has numbers for them."""
    places = [table.place(column) for column in table.flags]
    if not places:
        return list(changed)
    return [
        tuple(bool(value) if place in places else value for place, value in enumerate(row)) for row in changed
    ]


def _text_of(table: Table, row: Row) -> str:
    """What the index of words holds of it."""
    match table.words:
        case "memory":
            text, key, tags = (row[table.place(column)] for column in ("text", "key", "tags"))
            return searchable(text, key, rows.tags_from(tags))
        case "span":
            return str(row[table.place("lead")]) + str(row[table.place("text")])
        case _:
            return str(row[table.place("text")])
