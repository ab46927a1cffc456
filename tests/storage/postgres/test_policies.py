"""Row-level security as a fact: what a bare connection in the role of spaces can see and do, asked of the database itself.

The tables are read from its catalog, so that one which is added later is tried with the others.
"""

import itertools

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import errors, sql

from conftest import HandClock, costly
from memplane import Memplane
from memplane.errors import MemplaneError
from memplane.storage.postgres.migrate import ROLE, SCHEMA
from stub_embedder_enrich import BagOfWords

HERS, HIS = "alice", "bob"


@pytest.fixture(scope="module")
def database(postgres_server):
    """Two spaces with a row of theirs in every table that has a space."""
    with postgres_server.database() as url:
        with Memplane.open(url, embedder=BagOfWords(dimension=8)) as plane:
            for owner in (HERS, HIS):
                fill(plane.space(owner))
        with psycopg.connect(url, autocommit=True) as owning:
            places = places_of(owning)
            for owner, table in itertools.product((HERS, HIS), tables_of(owning)):
                fill_table(owning, table, places[owner])
        yield url


def fill(space):
    """A bit of everything, as people do it."""
    space.retain("I live in Rome", conversation="c", id=f"said-{space.owner}")
    space.retain("I live in Oslo", conversation="c")
    space.store("fact", "The lamp flickers", tags=["lamp"])
    space.put("lamp/first", "on", category="lamp")
    space.put("lamp/first", "off", category="lamp")
    space.documents.create_collection("Lamps", id="lamps", project="p")
    space.documents.upload(
        "# Lamps\n\nThey flicker at night.", name="lamps.md", id="book", collection="lamps"
    )
    space.enrich()
    space.forget(entries=[space.retain("Forget this").id])


def places_of(connection):
    found = connection.execute(f"SELECT owner, tenant, number FROM {SCHEMA}.space").fetchall()
    return {owner: (tenant, number) for owner, tenant, number in found}


def tables_of(connection):
    """Every table with a column named `space`, partitioned or not."""
    found = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'space' "
        "AND NOT a.attisdropped WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1",
        (SCHEMA,),
    )
    return [table for (table,) in found.fetchall()]


def columns_of(connection, table):
    found = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum",
        (f"{SCHEMA}.{table}",),
    )
    return dict(found.fetchall())


SOME = {"text": "x", "bytea": b"x", "halfvec": "[1,2]", "boolean": True, "text[]": ["x"]}


def a_row(connection, table, place, number=77):
    """A value of its type for every column."""
    columns = columns_of(connection, table)
    values = {name: SOME.get(kind, number) for name, kind in columns.items()}
    values |= {"tenant": place[0], "space": place[1]}
    return sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(SCHEMA, table),
        sql.SQL(", ").join(map(sql.Identifier, columns)),
        sql.SQL(", ").join(
            sql.Literal(values[name]) + sql.SQL(f"::{kind}") for name, kind in columns.items()
        ),
    )


def fill_table(connection, table, place):
    """With a row of this space, where the engine left none: as the owner of the table may."""
    held = sql.SQL("SELECT 1 FROM {} WHERE (tenant, space) = (%s, %s)").format(sql.Identifier(SCHEMA, table))
    if not connection.execute(held, place).fetchone():
        connection.execute(a_row(connection, table, place))


class Bare:
    """A connection of one's own in the role, past everything that Memplane does."""

    def __init__(self, url):
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute(f"SET search_path = {SCHEMA}, public")
        self.places = places_of(self.connection)
        self.tables = tables_of(self.connection)
        self.connection.execute(f"SET ROLE {ROLE}")

    def at(self, owner):
        tenant, space = self.places[owner]
        self.connection.execute(f"SET memplane.tenant = '{tenant}'")
        self.connection.execute(f"SET memplane.space = '{space}'")

    def seen(self, table):
        asked = sql.SQL("SELECT DISTINCT tenant, space FROM {}").format(sql.Identifier(SCHEMA, table))
        return self.connection.execute(asked).fetchall()


@pytest.fixture
def bare(database):
    made = Bare(database)
    yield made
    made.connection.close()


def test_every_table_of_a_space_has_the_policy(bare):
    """
    There is none that somebody forgot: each is keyed by both numbers, and has a policy for every command.
    """
    guarded = bare.connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_policy p ON p.polrelid = c.oid AND p.polcmd = '*' "
        "WHERE c.relnamespace = %s::regnamespace AND c.relrowsecurity "
        "AND p.polqual IS NOT NULL AND p.polwithcheck IS NOT NULL ORDER BY 1",
        (SCHEMA,),
    ).fetchall()
    unkeyed = bare.connection.execute(
        "SELECT i.indrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
        "WHERE c.relname = ANY(%s) AND c.relnamespace = %s::regnamespace AND i.indisunique "
        "AND (SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid "
        "AND attnum IN (i.indkey[0], i.indkey[1])) IS DISTINCT FROM ARRAY['tenant', 'space']",
        (bare.tables, SCHEMA),
    ).fetchall()

    assert len(bare.tables) > 30
    assert [table for (table,) in guarded] == bare.tables
    assert unkeyed == []


def test_without_a_space_nothing_is_seen_in_any_table(bare):
    """
    A query that does not say where it is finds nothing, and neither does one that says half of it, or nonsense.
    """
    seen = {table: bare.seen(table) for table in bare.tables}
    bare.connection.execute(f"SET memplane.tenant = '{bare.places[HERS][0]}'")
    half = {table: bare.seen(table) for table in bare.tables}
    bare.connection.execute("SET memplane.space = ''")
    empty = {table: bare.seen(table) for table in bare.tables}
    bare.connection.execute("SET memplane.space = '1 OR true'")
    with pytest.raises(errors.InvalidTextRepresentation):
        bare.seen("ledger")

    nothing = {table: [] for table in bare.tables}
    assert (seen, half, empty) == (nothing, nothing, nothing)


def test_with_a_space_only_its_rows_are_seen(bare):
    """
    In every table: hers, and of those something; also where somebody asks for the others by number.
    """
    bare.at(HERS)
    seen = {table: bare.seen(table) for table in bare.tables}
    tenant, space = bare.places[HIS]
    asked = {
        table: bare.connection.execute(
            f"SELECT count(*) FROM {table} WHERE tenant = {tenant} AND space = {space} OR space <> space"
        ).fetchone()
        for table in bare.tables
    }

    assert seen == {table: [bare.places[HERS]] for table in bare.tables}
    assert asked == dict.fromkeys(bare.tables, (0,))


def test_no_row_is_written_into_another_space(bare, postgres_server, database):
    """
    Neither by inserting one with its numbers, nor by moving one, nor over one that is there, nor by COPY.
    """
    bare.at(HERS)
    his, hers = bare.places[HIS], bare.places[HERS]
    refused = {}
    for table in bare.tables:
        tries = [
            a_row(bare.connection, table, his, 991),
            a_row(bare.connection, table, his, 991) + sql.SQL(" ON CONFLICT DO NOTHING"),
            sql.SQL(f"UPDATE {table} SET tenant = {his[0]}, space = {his[1]}"),
        ]
        refused[table] = [raised(bare.connection, statement) for statement in tries]
        bare.at(HERS)
        refused[table].append(copied(bare.connection, table, his))
    untouched = [
        bare.connection.execute(f"DELETE FROM {table} WHERE space = {his[1]}").rowcount
        for table in bare.tables
        if table not in {"ledger", "payload", "tombstone", "audit"}
    ]

    forbidden = errors.InsufficientPrivilege
    kept = errors.RaiseException  # the triggers come first where rows must stay
    assert hers != his
    assert {table: all(kind in {forbidden, kept} for kind in kinds) for table, kinds in refused.items()} == (
        dict.fromkeys(bare.tables, True)
    ), refused
    assert set(untouched) == {0}


def raised(connection, statement):
    """What the database says to it; it is undone in any case."""
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(statement)
    except psycopg.Error as exc:
        return type(exc)
    return None


def copied(connection, table, place):
    columns = columns_of(connection, table)
    text = {"bytea": "\\\\x78", "halfvec": "[1,2]", "boolean": "t", "text": "x", "text[]": "{x}"}
    values = {name: text.get(kind, "992") for name, kind in columns.items()}
    values |= {"tenant": str(place[0]), "space": str(place[1])}
    try:
        with connection.transaction(force_rollback=True), connection.cursor() as cursor:
            names = ", ".join(f'"{name}"' for name in columns)
            with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                copy.write("\t".join(values[name] for name in columns) + "\n")
    except psycopg.Error as exc:
        # COPY FROM is refused as a whole where there is row-level security.
        return errors.InsufficientPrivilege if isinstance(exc, errors.FeatureNotSupported) else type(exc)
    return None


def test_the_role_owns_nothing_and_cannot_change_the_rules(bare):
    """
    No table, function or schema is its own; it cannot empty, alter or switch off, nor become somebody who can.
    """
    connection = bare.connection
    owned = connection.execute(
        "SELECT count(*) FROM pg_shdepend WHERE refobjid = %s::regrole AND deptype = 'o'", (ROLE,)
    ).fetchone()
    role = connection.execute(
        "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolcanlogin FROM pg_roles WHERE rolname = %s",
        (ROLE,),
    ).fetchone()
    tries = [
        "TRUNCATE memory",
        "TRUNCATE turn_word",
        "DROP POLICY here ON memory",
        "ALTER POLICY here ON memory USING (true)",
        "CREATE POLICY all_of_it ON memory USING (true)",
        "ALTER TABLE memory DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE ledger DISABLE TRIGGER ALL",
        "DROP TRIGGER ledger_kept ON ledger",
        "CREATE OR REPLACE FUNCTION here_space() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE memplane.mine (space integer)",
        "INSERT INTO migration (number) VALUES (999)",
        "SET session_replication_role = replica",
        f"ALTER ROLE {ROLE} BYPASSRLS",
    ]
    said = {statement: raised(connection, statement) for statement in tries}

    assert owned == (0,)
    assert role == (False, False, False, False, False)
    assert {kind and kind.__name__ for kind in said.values()} == {"InsufficientPrivilege"}, said


def test_switching_row_security_off_shows_nothing(bare):
    """
    Whoever sets `row_security` off is told that there is something to see, not what.
    """
    bare.connection.execute("SET row_security = off")

    assert {raised(bare.connection, f"SELECT * FROM {table}") for table in bare.tables} == {
        errors.InsufficientPrivilege
    }


def test_a_place_lasts_as_long_as_its_transaction(database):
    """
    A connection that served her serves him next: nothing of where it was is left on it.
    """
    with Memplane.open(database, embedder=None) as plane:
        plane.space(HERS).turns()
        connections = plane._stores.engine._connections
        with connections.transaction("BEGIN") as connection:
            left = connection.execute(
                "SELECT nullif(current_setting('memplane.tenant', true), ''), "
                "nullif(current_setting('memplane.space', true), ''), current_user"
            ).fetchone()
            seen = connection.execute("SELECT count(*) FROM ledger").fetchone()

    assert left == (None, None, ROLE)
    assert seen == (0,)


HOSTILE = st.sampled_from(
    [
        "'; DROP TABLE memplane.ledger; --",
        "' OR 1=1 --",
        "1; SET memplane.space = '1'",
        "%(space)s",
        "%s %d %%",
        "{where} {columns} {texts:ids:each}",
        ":space ?1 $1",
        '"; RESET ROLE; --',
        "\\'; SELECT pg_sleep(1); --",
        "$$; RESET ROLE; $$",
        "E'\\x00'",
        "a\x00b",
        "\uf8ff0\uf8ff1",
        "'::json ->> '",
        "\u202e\ufeff\U0010ffff",
    ]
)
ANYTHING = st.one_of(HOSTILE, st.text(min_size=1, max_size=40), st.tuples(HOSTILE, HOSTILE).map("".join))


@pytest.fixture(scope="module")
def planes(database, tmp_path_factory):
    """One on each engine, on the same clock."""
    clock = HandClock()
    with (
        Memplane.open(tmp_path_factory.mktemp("twin"), embedder=None, clock=clock) as files,
        Memplane.open(database, embedder=None, clock=clock) as rows,
    ):
        yield files, rows


NUMBERS = itertools.count()


@given(st.lists(ANYTHING, min_size=5, max_size=5))
@costly(25)
def test_nothing_that_is_said_is_ever_a_statement(planes, words):
    """
    As an owner's name, an id, a word, a tag, a key or a place, it is what it is: PostgreSQL answers what SQLite does, and
    nothing of anybody else is told or changed.
    """
    number = next(NUMBERS)
    files, rows = ([*answers(plane, number, *words)] for plane in planes)

    assert rows == files
    assert [planes[1].space(owner).get("lamp/first").text for owner in (HERS, HIS)] == ["off", "off"]


def answers(plane, number, owner, id_, word, tag, key):
    space = plane.space(f"{number}{owner}")
    for act in (
        lambda: space.retain(f"lantern {word}", id=f"{number}{id_}", conversation=tag).deduped,
        lambda: space.retain(f"lantern {word}", id=f"{number}{id_}", conversation=tag).deduped,
        lambda: space.store("fact", f"lantern {word}", tags=[tag, word]).text,
        lambda: space.put(key, word, category=tag).text,
        lambda: space.get(key).text,
        lambda: [(fact.key, fact.text) for fact in space.facts.list(prefix=key[:1])],
        lambda: [turn.text for turn in space.turns(conversation=tag)],
        lambda: sorted(hit.text for hit in space.search("lantern", limit=100)),
        lambda: sorted(hit.text for hit in space.search(word, limit=100)),
        lambda: sorted(hit.text for hit in space.search("lantern", tags=[tag])),
        lambda: space.forget(conversation=tag).counts,
        lambda: [entry.id for entry in space.ledger.entries() if entry.id.startswith(str(number))],
        lambda: sorted(stone.id for stone in space.ledger.tombstones() if stone.id.startswith(str(number))),
        lambda: space.ledger.verify().ok,
        lambda: f"{number}{owner}" in set(plane.spaces()),
    ):
        try:
            yield act()
        except MemplaneError as exc:
            yield type(exc), str(exc)
