"""The catalog row by row: what a move to another database copies."""

from collections.abc import Sequence

from memplane.storage.catalog.catalog import Catalog, CatalogWriter
from memplane.storage.tables import CATALOG_TABLES, Key, Row, Table, counts_of, flagged, page


class CatalogTables:
    """As `Tables` of a space, without a transaction of the caller's own."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def rows(self, table: Table, *, after: Key | None, limit: int, bytes_max: int) -> list[Row]:
        """See `Tables.rows`."""
        return page(self._catalog.read, table, after, limit, bytes_max)

    def counts(self) -> dict[str, int]:
        """See `Tables.counts`."""
        found = self._catalog.read("copy_counts")
        return counts_of(CATALOG_TABLES, found[0] if found else (0,) * len(CATALOG_TABLES))

    def restore(self, parts: Sequence[tuple[Table, Sequence[Row]]]) -> None:
        """Add rows as they are, all or none. Durable when it returns."""

        def work(writer: CatalogWriter) -> None:
            for table, copied in parts:
                writer.run_many(f"copy_{table.name}_add", flagged(table, copied))

        self._catalog.write(work)

    def remove(self, table: Table, copied: Sequence[Row]) -> None:
        """Delete these rows. Durable when it returns."""
        keys = [table.key_of(row) for row in copied]
        self._catalog.write(lambda writer: writer.run_many(f"copy_{table.name}_drop", keys))
