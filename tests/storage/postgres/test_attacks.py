"""Attacks on the database engine: by what is said, by what is asked at once, and by whoever has the role of spaces."""

import psycopg
import pytest
from psycopg import errors

from memplane import Memplane
from memplane.config import Settings
from memplane.errors import StorageUnavailable
from memplane.storage.postgres.engine import PostgresEngine
from memplane.storage.postgres.indexing import index_large_spaces
from memplane.storage.postgres.migrate import ROLE, SCHEMA, migrate
from memplane.storage.stores import Stores
from stub_embedder_enrich import BagOfWords


def test_who_has_a_connection_never_waits_for_another_of_the_same(postgres_url):
    """
    A forget notes where its receipt is while it writes: as many of them as there are connections would keep each other,
    and everybody else, waiting.
    """
    with Memplane.open(postgres_url, embedder=None, settings=Settings(database_connections_max=1)) as plane:
        space = plane.space("alice")
        receipt = space.forget(entries=[space.retain("Forget this").id])
        space.documents.create_collection("Lamps", id="lamps")
        space.documents.upload("They flicker.", name="lamps.md", collection="lamps")

    assert receipt.counts["entries"] == 1


def test_a_zero_character_in_what_a_model_claimed_ends_no_look(postgres_url):
    """
    A model says what it was talked into saying. Its claim stays, and so does what is derived after it.
    """
    with Memplane.open(postgres_url, embedder=None) as plane:
        space = plane.space("alice")
        space.retain("I live in Rome.")
        space.enrich()
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(
            f"""UPDATE {SCHEMA}.memory SET claim = '{{"x":"\\u0000",' || substr(claim, 2)""".encode()
        )
    stores = Stores(PostgresEngine(postgres_url))
    with stores.open("default", "alice", create=False) as store:
        found = store.write(
            lambda writer: writer.claims.rivals("user", "lives_in", [], limit=1, topic="t", within=None)
        )
    stores.close()

    assert [rival.subject for rival in found] == ["user"]


def test_no_table_in_front_of_ours_opens_the_ledger(postgres_url):
    """
    Anybody may make temporary tables, which are found before all others.
    """
    with Memplane.open(postgres_url, embedder=None) as plane:
        plane.space("alice").retain("The lamp flickers")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"SET search_path = {SCHEMA}; SET ROLE {ROLE}".encode())
        connection.execute(
            "SELECT set_config('memplane.tenant', tenant::text, false), set_config('memplane.space', number::text, false) "
            "FROM space"
        )
        connection.execute("CREATE TEMP TABLE tombstone AS SELECT tenant, space, id FROM ledger")
        with pytest.raises(errors.RaiseException, match="only what is forgotten is erased"):
            connection.execute("DELETE FROM payload")


def test_a_role_past_every_policy_is_refused(postgres_server):
    """
    Roles are the whole server's: somebody else may have made this one, for something else.
    """
    name = postgres_server.create(migrated=False)
    with postgres_server.connect(name) as owner:
        owner.execute(f"ALTER ROLE {ROLE} BYPASSRLS".encode())
        try:
            with pytest.raises(StorageUnavailable, match="NOBYPASSRLS"):
                migrate(owner)
        finally:
            owner.execute(f"ALTER ROLE {ROLE} NOBYPASSRLS".encode())
        migrate(owner)
    postgres_server.drop(name)


def test_vectors_too_long_for_an_index_keep_no_other_space_from_one(postgres_url):
    """
    Their space is loaded, as every space is until it has an index.
    """
    for owner, dimension in (("alice", 4_096), ("bob", 8)):
        with Memplane.open(postgres_url, embedder=BagOfWords(dimension=dimension)) as plane:
            plane.space(owner).retain("The lamp flickers")
            plane.space(owner).enrich()

    assert len(index_large_spaces(postgres_url, large=1)) == 1
