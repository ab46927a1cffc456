"""A database that cannot be used says why, and what to do: the first five minutes of whoever sets one up."""

import itertools
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from memplane.errors import SettingsInvalid, StorageUnavailable, StorageUnreachable
from memplane.main import Memplane
from memplane.storage.postgres.address import address_of
from memplane.storage.postgres.connections import Connections
from memplane.storage.postgres.migrate import ROLE, migrate
from object_servers import free_ports
from postgres_server import running

HUNTER = "hunter2"
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server():
    """One of its own: roles are the whole server's."""
    with running() as server:
        yield server


@pytest.fixture
def empty(server):
    name = server.create(migrated=False)
    yield name
    server.drop(name)


@pytest.fixture
def role(server):
    """Signs in, and may do nothing else. It goes with the server."""
    name = f"someone_{next(NUMBERS)}"
    with server.connect() as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN".encode())
    return name


def address(server, database, **others):
    """Its words, with some of them others."""
    return make_conninfo(**{**conninfo_to_dict(server.url(database)), **others})


def opened(conninfo):
    connections = Connections(conninfo)
    try:
        connections.open()
        with connections.transaction("BEGIN READ ONLY"):
            pass
    finally:
        connections.close()


def refused(conninfo, error=StorageUnavailable):
    with pytest.raises(error) as caught:
        opened(conninfo)
    assert HUNTER not in str(caught.value)
    assert type(caught.value) is error
    return str(caught.value)


def test_whoever_lacks_a_right_is_told_which_and_what_grants_it(server, empty, role):
    """
    One after the other, each remedy is what the message before said.
    """
    place = address(server, empty, user=role)
    with server.connect(empty) as owner:
        assert "run CREATE EXTENSION vector in this database as a superuser" in refused(place)
        owner.execute("CREATE EXTENSION vector")
        assert f"run GRANT {ROLE} TO {role} as a superuser" in refused(place)
        owner.execute(f"GRANT {ROLE} TO {role}")
        assert f"OWNER TO {role}" in refused(place)
        owner.execute(f"ALTER DATABASE {empty} OWNER TO {role}")
        opened(place)

        owner.execute(f"ALTER DATABASE {empty} OWNER TO postgres")
        opened(place)


def test_whoever_may_create_roles_need_not_be_granted_one(server, empty, role):
    """
    From PostgreSQL 16 on, whoever creates a role may grant it, and not yet work as it.
    """
    with server.connect(empty) as owner:
        owner.execute(f"CREATE EXTENSION vector; ALTER ROLE {role} CREATEROLE")
        owner.execute(f"ALTER DATABASE {empty} OWNER TO {role}; ALTER ROLE {ROLE} RENAME TO hidden")
        try:
            opened(address(server, empty, user=role))
        finally:
            with server.connect(empty) as connection:
                connection.execute(
                    f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}; ALTER ROLE hidden RENAME TO {ROLE}"
                )


def test_a_role_that_nobody_made_and_this_user_may_not(server, empty, role):
    with server.connect(empty) as owner:
        owner.execute(f"CREATE EXTENSION vector; ALTER ROLE {ROLE} RENAME TO hidden")
        try:
            assert f"CREATE ROLE {ROLE} NOLOGIN; GRANT {ROLE} TO {role}" in refused(
                address(server, empty, user=role)
            )
        finally:
            owner.execute(f"ALTER ROLE hidden RENAME TO {ROLE}")


def test_another_encoding_is_refused_before_anything_is_made(server):
    with server.connect() as owner:
        owner.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        try:
            assert "in LATIN1; Memplane needs one in UTF-8" in refused(address(server, "latin"))
        finally:
            owner.execute("DROP DATABASE latin WITH (FORCE)")


def test_pgvector_where_it_is_not_looked_for(server, empty):
    with server.connect(empty) as owner:
        owner.execute("CREATE SCHEMA extensions; CREATE EXTENSION vector SCHEMA extensions")

        assert "ALTER EXTENSION vector" in refused(address(server, empty))


def test_a_server_that_is_too_old(server):
    """
    None that old can be had here; the connection says it is.
    """

    class Old:
        class info:  # noqa: N801 - as the driver calls it
            server_version = 140_011

    with pytest.raises(StorageUnavailable, match=r"PostgreSQL 14; Memplane needs 15"):
        migrate(Old)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"user": "stranger"}, "has no such user"),
        ({"dbname": "nowhere"}, "there is no such database"),
        ({"user": "locked"}, "asks for a password"),
        ({"user": "locked", "password": HUNTER}, "refuses the password"),
        ({"user": "unwanted", "dbname": "closed"}, "run GRANT CONNECT ON DATABASE"),
        ({"sslmode": "verify-ful"}, "sslmode in the address of the database"),
        ({"target_session_attrs": "both"}, "or in PGTARGETSESSIONATTRS"),
    ],
)
def test_what_trying_again_does_not_mend(server, others, said):
    """
    Nothing of what the address says is repeated: part of a password may stand where another part is read.
    """
    with server.connect() as owner:
        owner.execute("DROP ROLE IF EXISTS locked")
        owner.execute("CREATE ROLE locked LOGIN PASSWORD 'open'")
        owner.execute("DROP DATABASE IF EXISTS closed")
        owner.execute("DROP ROLE IF EXISTS unwanted")
        owner.execute("CREATE DATABASE closed")
        owner.execute("REVOKE CONNECT ON DATABASE closed FROM PUBLIC; CREATE ROLE unwanted LOGIN")
        hba = Path(owner.execute("SHOW hba_file").fetchone()[0])
        before = hba.read_text(encoding="utf-8")
        hba.write_text(f"local all locked scram-sha-256\n{before}", encoding="utf-8")
        owner.execute("SELECT pg_reload_conf()")
        try:
            message = refused(address(server, "postgres", **others))
        finally:
            hba.write_text(before, encoding="utf-8")
            owner.execute("SELECT pg_reload_conf()")

    assert said in message


def test_a_server_that_is_not_there():
    """
    It may come back: whoever calls may try again.
    """
    (port,) = free_ports(1)
    there = f"postgresql://me:{HUNTER}@127.0.0.1:{port}/memory"

    assert f"nothing listens there (asked at 127.0.0.1:{port})" in refused(there, StorageUnreachable)
    assert "no server has this name (asked at db.invalid:5432)" in refused(
        f"postgresql://me:{HUNTER}@db.invalid/memory", StorageUnreachable
    )
    assert "%40" in refused(f"postgresql://127.0.0.1:{port}/{HUNTER}@db/memory", StorageUnreachable)


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (f"me:x@{HUNTER}@db.example/memory", "an @ too many"),
        (
            f"me:x/{HUNTER}@db.example/memory",
            "a port that there is not; it is a number up to 65535; a sign such as @",
        ),
        (f"me:{HUNTER}/x@db.example/memory", "%2F"),
        (f"me:{HUNTER}%zz@db.example/memory", "%25"),
        (f"me:{HUNTER} x@db.example/memory", "%20"),
        (f"me:{HUNTER}@db.example:eighty/memory", "a port that there is not"),
        (f"me:{HUNTER}@db.example:99999/memory", "a port that there is not"),
        (f"me@db.example/memory?password={HUNTER}&foo=bar", "a parameter 'foo' that there is not"),
        (f"me@db.example/memory?x={HUNTER}@db", "no address of a database"),
        (f"me:{HUNTER}@db.example/memory?connect_timeout=long", "no number of seconds"),
    ],
)
def test_an_address_that_no_server_could_mend(rest, said):
    """
    It is said before anybody is asked. What is read as a host, a port or a parameter may be a part of a password: it is
    named only where that cannot be.
    """
    assert said in refused(f"postgresql://{rest}", SettingsInvalid)
    assert said in refused(f"postgres://{rest}", SettingsInvalid)


def test_what_is_asked_at_is_said():
    """
    Several servers, an address with colons, and a socket.
    """
    wheres = {
        "postgresql://one:5,two:6/x": "one:5, two:6",
        "postgresql://one,two:6/x": "one:5432, two:6",
        "postgresql://[::1]/x": "[::1]:5432",
        "postgresql:///x?host=/run/pg": "/run/pg:5432",
        "postgresql:///x": "this machine:5432",
    }

    assert {url: address_of(url).where for url in wheres} == wheres


@pytest.mark.parametrize(
    "data", ["mysql://me:hunter2@db/memory", "Postgresql://me:hunter2@db/memory", "file:///memory"]
)
def test_an_address_that_is_no_database_is_no_directory_either(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SettingsInvalid, match="postgresql://user@host/name") as caught:
        Memplane.open(data)

    assert HUNTER not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_directory(tmp_path):
    (tmp_path / "memory.db").write_bytes(b"mine")

    with pytest.raises(SettingsInvalid, match="is a file; give a directory"):
        Memplane.open(tmp_path / "memory.db")

    assert (tmp_path / "memory.db").read_bytes() == b"mine"


def test_tables_of_another_user(server, empty, role):
    with server.connect(empty) as owner:
        migrate(owner)
        owner.execute(f"GRANT {ROLE} TO {role}; DELETE FROM memplane.migration WHERE number > 0")

        with pytest.raises(StorageUnavailable, match="sign in as the one"):
            opened(address(server, empty, user=role))
