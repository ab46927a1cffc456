"""What the tables promise to whoever distributes them over machines."""

from typing import Any

import psycopg
import pytest

from memplane.storage.postgres.migrate import SCHEMA, tables


@pytest.fixture
def connection(postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        opened.execute(f"SET search_path = {SCHEMA}, public".encode())
        yield opened


def _rows(connection: psycopg.Connection[Any], query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode(), {"tables": tables(connection)}).fetchall()


def test_every_unique_key_of_a_space_begins_with_it(connection):
    """
    What is distributed by a column is unique only together with it, and a key that begins with it is looked up on one
    machine.
    """
    keys = _rows(
        connection,
        "SELECT c.relname, ARRAY(SELECT a.attname::text FROM unnest(i.indkey[0:1]) WITH ORDINALITY AS k (number, place) "
        "JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number ORDER BY k.place) "
        "FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "WHERE i.indisunique AND i.indrelid = ANY(%(tables)s::regclass[])",
    )

    assert len(keys) > 30
    assert [name for name, columns in keys if columns != ["tenant", "space"]] == []


def test_no_table_of_a_space_has_what_a_distributed_one_may_not(connection):
    """
    No foreign keys to or from it, no identity column, no exclusion constraint, and a primary key; every column of it is
    filled on the machine that holds the row.
    """
    foreign = _rows(
        connection,
        "SELECT conname FROM pg_constraint WHERE contype IN ('f', 'x') "
        "AND (conrelid = ANY(%(tables)s::regclass[]) OR confrelid = ANY(%(tables)s::regclass[]))",
    )
    identities = _rows(
        connection,
        "SELECT attrelid::regclass::text FROM pg_attribute WHERE attrelid = ANY(%(tables)s::regclass[]) AND attidentity <> ''",
    )
    keyed = _rows(
        connection,
        "SELECT conrelid::regclass::text FROM pg_constraint "
        "WHERE contype = 'p' AND conrelid = ANY(%(tables)s::regclass[])",
    )

    assert foreign == []
    assert identities == []
    assert sorted(name for (name,) in keyed) == sorted(tables(connection))


def test_a_trigger_looks_at_the_rows_of_its_own_space_alone(connection):
    """
    What a trigger reads lies on the same machine: its conditions name the tenant and the space of the row.
    """
    bodies = _rows(
        connection,
        "SELECT DISTINCT p.proname, p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
        "WHERE t.tgrelid = ANY(%(tables)s::regclass[]) AND NOT t.tgisinternal",
    )

    reading = {name for name, body in bodies if "SELECT" in body}
    assert reading <= {"keep_payload", "note_work"}
    for name, body in bodies:
        if name in reading:
            assert ".tenant" in body
            assert ".space" in body


def test_a_plan_for_any_table_of_a_space_is_one_for_a_large_space(connection):
    """
    Left to itself, the planner takes the mean of all spaces for the size of each.
    """
    hinted = _rows(
        connection,
        "SELECT attrelid::regclass::text FROM pg_attribute WHERE attrelid = ANY(%(tables)s::regclass[]) "
        "AND attname IN ('tenant', 'space') AND attoptions @> ARRAY['n_distinct=1']",
    )

    assert sorted(name for (name,) in hinted) == sorted(2 * [f"{table}" for table in tables(connection)])
