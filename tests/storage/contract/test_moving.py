"""What a move takes over is everything there is."""

import apsw
import psycopg
import pytest

from memplane.storage.sqlite.catalog.database import PACKAGE
from memplane.storage.sqlite.migrate import SPACE, empty
from memplane.storage.tables import CATALOG_TABLES, META, PAYLOAD, SPACE_TABLES

MADE_BY_ENGINES = {"stamp"}


@pytest.mark.parametrize(("package", "tables"), [(SPACE, SPACE_TABLES), (PACKAGE, CATALOG_TABLES)])
def test_every_table_is_moved(tmp_path, package, tables):
    """A table or column that a migration adds is added to a move too."""
    file = tmp_path / "empty.db"
    file.write_bytes(empty(package))
    connection = apsw.Connection(str(file))
    names = connection.execute(
        "SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    columns = {
        name: {row[1] for row in connection.execute(f"PRAGMA table_info({name})")} - MADE_BY_ENGINES
        for (name,) in names
    }
    connection.close()

    assert {table.name: set(table.columns) for table in tables} == columns


POSTGRES_ITSELF = {
    *("migration", "tenant", "space"),
    *("turn_word", "memory_word", "span_word"),
    *("work", "job", "worker"),
}
"""Which spaces there are, which a move learns from `Stores`; the index of words; and what workers are at, which follows
from how far a space is."""


def test_every_table_of_the_database_is_moved(postgres_server):
    """As above; whatever is added here is moved, or is the engine's own."""
    with postgres_server.database() as url, psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT c.relname, array_agg(a.attname) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
            "WHERE c.relnamespace = 'memplane'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 "
            "AND NOT a.attisdropped AND a.attgenerated = '' GROUP BY c.relname"
        ).fetchall()
    columns = {name: set(names) - MADE_BY_ENGINES for name, names in found if name not in POSTGRES_ITSELF}

    assert {table.name: {"tenant", "space", *table.columns} for table in SPACE_TABLES} | {
        table.name: set(table.columns) for table in CATALOG_TABLES
    } == columns


def test_a_payload_goes_only_with_a_tombstone(engine, open_store, scribe):
    """Not even a move takes out what nobody forgot."""
    scribe.turn("kept")
    store = open_store()
    with store.read() as reader:
        rows = reader.tables.rows(PAYLOAD, after=None, limit=9, bytes_max=1 << 20)
    with pytest.raises(engine.refusal):
        store.write(lambda writer: writer.tables.remove(PAYLOAD, rows))

    with store.read() as reader:
        assert reader.tables.rows(PAYLOAD, after=None, limit=9, bytes_max=1 << 20) == rows


def test_the_index_is_brought_where_it_was(open_store, scribe):
    """Forwards and backwards; what waits for the index is found as well."""
    for number in range(5):
        scribe.turn(f"lantern {number}")
    store = open_store()
    with store.read() as reader:
        numbers = [
            row[0] for row in reader.tables.rows(SPACE_TABLES[6], after=None, limit=9, bytes_max=1 << 20)
        ]
    for last in (numbers[2], numbers[4], numbers[0], 0):
        while store.write(lambda writer, last=last: writer.words.index_until(last)):
            pass
        with store.read() as reader:
            assert reader.words.indexed() == last
            assert reader.words.occurrences("lantern") == [n for n in numbers if n <= last]
            assert reader.words.frequencies(["lantern"]) == {"lantern": 5}


def test_notes_are_replaced(open_store):
    """A space is never without the notes that say how far it is."""
    store = open_store()
    store.write(lambda writer: writer.tables.restore(META, [("cursor", "0"), ("note:a", "b")]))
    store.write(lambda writer: writer.tables.restore(META, [("note:a", "c")]))

    with store.read() as reader:
        assert (reader.state.note("a"), reader.state.cursor()) == ("c", 0)
