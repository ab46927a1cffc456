"""Both engines keep the same tables: whoever adds a column to one is told of the other."""

import apsw

from memplane.storage.sqlite.catalog.database import PACKAGE
from memplane.storage.sqlite.migrate import SPACE, migrate

OF_SQLITE = {"sqlite_sequence"}
OF_POSTGRES = {
    "migration",
    "tenant",
    "space",
    "turn_word",
    "memory_word",
    "span_word",
    "job",
    "work",
    "worker",
}
"""What one engine needs for itself."""
PLACE = {"tenant", "space"}


def of_sqlite() -> dict[str, set[str]]:
    found = {}
    for package in (SPACE, PACKAGE):
        connection = apsw.Connection(":memory:")
        migrate(connection, "a new file", package=package)
        for name, sql in connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
        ).fetchall():
            own = "VIRTUAL" in sql or name.split("_index")[0] != name
            if not own and name not in OF_SQLITE:
                rows = connection.execute(f"SELECT name FROM pragma_table_info('{name}')")
                found[name] = {column for (column,) in rows}
        connection.close()
    return found


def test_tables_and_columns_are_the_same(postgres_server):
    """
    But for the numbers of tenant and space, which a file has no need of.
    """
    with (
        postgres_server.database() as url,
        postgres_server.connect(url.split("/")[3].split("?")[0]) as connection,
    ):
        rows = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'memplane' "
            "AND is_generated = 'NEVER'"
        ).fetchall()
    found: dict[str, set[str]] = {}
    for table, column in rows:
        if table not in OF_POSTGRES:
            found.setdefault(table, set()).add(column)
    theirs = of_sqlite()

    assert set(found) == set(theirs)
    assert {table: columns - PLACE for table, columns in found.items()} == {
        table: columns - PLACE for table, columns in theirs.items()
    }
