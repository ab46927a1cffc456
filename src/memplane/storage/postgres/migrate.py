"""Forward-only migrations under an advisory lock. A newer database is rejected.

The owner of the database runs them. Everything else runs in a role that owns nothing, so that row-level
security applies to it. Every table with a `space` has row-level security, also those of later migrations.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import resources
from typing import Any

from psycopg import Connection, errors

from memplane.errors import StorageTooNew, StorageUnavailable

SCHEMA = "memplane"
ROLE = "memplane_space"
"""The role of every session."""

_LOCK = 0x4D454D50
_VERSION_MIN = 150_000
_VERSION_WITH_SET = 160_000
"""From this version on, SET ROLE needs a grant of its own."""
_PACKAGE = "memplane.storage.postgres"


@cache
def migrations() -> tuple[str, ...]:
    folder = resources.files(_PACKAGE).joinpath("migrations")
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    return tuple(file.read_text(encoding="utf-8") for file in files)


def migrate(connection: Connection[Any]) -> None:
    """Migrate the database. If it is up to date, this costs one statement."""
    if connection.info.server_version < _VERSION_MIN:
        raise StorageUnavailable(
            f"the database server is PostgreSQL {connection.info.server_version // 10_000}; Memplane needs 15 or newer"
        )
    steps = migrations()
    if _version(connection) == len(steps):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        version = _version(connection)  # another process may have migrated while this one waited
        if version > len(steps):
            raise StorageTooNew(
                f"the database was written by a newer Memplane (its version is {version}, this program knows "
                f"{len(steps)}); upgrade Memplane to open it"
            )
        _prepare(connection)
        for number in range(version, len(steps)):
            connection.execute(steps[number].encode())
            connection.execute("INSERT INTO migration (number) VALUES (%s)", (number + 1,))
        _guard(connection)


def _version(connection: Connection[Any]) -> int:
    there = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.migration",)).fetchone()
    if there is None or there[0] is None:
        return 0
    found = connection.execute(f"SELECT coalesce(max(number), 0) FROM {SCHEMA}.migration".encode()).fetchone()
    assert found is not None
    return int(found[0])


def _prepare(connection: Connection[Any]) -> None:
    """Create what migrations need. If the user lacks a right, the error says which, and how to grant it."""
    _check_encoding(connection)
    _have_pgvector(connection)
    _have_role(connection)
    if _one(connection, f"SELECT to_regnamespace('{SCHEMA}')") is None:
        with _or_refused(
            f"this user may not create the schema {SCHEMA} in this database; run ALTER DATABASE … OWNER TO {{user}} "
            "as a superuser",
            connection,
        ):
            connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
    connection.execute(f"SET LOCAL search_path = {SCHEMA}, public".encode())
    with _or_refused(
        f"the schema {SCHEMA} is another user's; sign in as the one that Memplane was first started with",
        connection,
    ):
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migration "
            "(number integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
        )


@contextmanager
def _or_refused(message: str, connection: Connection[Any]) -> Iterator[None]:
    try:
        with connection.transaction():
            yield
    except errors.InsufficientPrivilege as exc:
        user = _one(connection, "SELECT quote_ident(current_user)")
        raise StorageUnavailable(message.replace("{user}", str(user))) from exc


def _one(connection: Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    return None if row is None else row[0]


def _check_encoding(connection: Connection[Any]) -> None:
    """Other encodings cannot store every text."""
    encoding = _one(connection, "SELECT getdatabaseencoding()")
    if encoding != "UTF8":
        raise StorageUnavailable(
            f"the database is in {encoding}; Memplane needs one in UTF-8: "
            "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )


def _have_pgvector(connection: Connection[Any]) -> None:
    try:
        with _or_refused(
            "the database has no pgvector, and this user may not create it; run CREATE EXTENSION vector in this "
            "database as a superuser",
            connection,
        ):
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (errors.UndefinedFile, errors.FeatureNotSupported) as exc:
        raise StorageUnavailable(
            "the database server has no pgvector; install it there (0.7 or newer), then start again"
        ) from exc
    if _one(connection, "SELECT to_regtype('halfvec')") is None:
        version = _one(connection, "SELECT extversion FROM pg_extension WHERE extname = 'vector'")
        raise StorageUnavailable(
            f"pgvector of the database is {version}, or in a schema of its own; Memplane needs 0.7 or newer in the "
            "schema public: install it on the server, and run ALTER EXTENSION vector UPDATE as a superuser"
        )


def _have_role(connection: Connection[Any]) -> None:
    """Create the role, one for the whole server. From PostgreSQL 16 on, its creator may not use it without a
    grant, unless a superuser."""
    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone():
        # Another process may have created it for another database.
        with (
            suppress(errors.DuplicateObject, errors.UniqueViolation),
            _or_refused(
                f"this user may not create the role {ROLE}; run CREATE ROLE {ROLE} NOLOGIN; GRANT {ROLE} TO {{user}}; "
                "as a superuser",
                connection,
            ),
        ):
            connection.execute(f"CREATE ROLE {ROLE} NOLOGIN NOBYPASSRLS".encode())
    if _one(connection, f"SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = '{ROLE}'"):
        raise StorageUnavailable(
            f"the role {ROLE} sees past row-level security, so that nothing would part spaces; run ALTER ROLE {ROLE} "
            "NOSUPERUSER NOBYPASSRLS; as a superuser"
        )
    may = "SET" if connection.info.server_version >= _VERSION_WITH_SET else "MEMBER"
    if not _one(connection, f"SELECT pg_has_role(current_user, '{ROLE}', '{may}')"):
        with _or_refused(
            f"this user may not work as {ROLE}; run GRANT {ROLE} TO {{user}} as a superuser", connection
        ):
            connection.execute(f"GRANT {ROLE} TO CURRENT_USER".encode())


def tables(connection: Connection[Any]) -> list[str]:
    """The tables with rows of spaces."""
    found = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'space' "
        "WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p') ORDER BY c.relname",
        (SCHEMA,),
    )
    return [str(table) for (table,) in found.fetchall()]


def _guard(connection: Connection[Any]) -> None:
    """Set up row-level security on every table of spaces, and the rights of the role. The policy reads the
    current space once for each statement, so that one plan serves all spaces."""
    here = "tenant = here_tenant() AND space = here_space()"
    asked_once = "tenant = (SELECT here_tenant()) AND space = (SELECT here_space())"
    for table in tables(connection):
        connection.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY".encode())
        connection.execute(f"DROP POLICY IF EXISTS here ON {table}".encode())
        connection.execute(f"CREATE POLICY here ON {table} USING ({asked_once}) WITH CHECK ({here})".encode())
        # A space belongs to one tenant. A planner that does not know this expects very few rows, and takes any index.
        connection.execute(
            f"CREATE STATISTICS IF NOT EXISTS {table}_place (dependencies) ON tenant, space FROM {table}".encode()
        )
    connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE}".encode())
    connection.execute(
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {ROLE}".encode()
    )
    connection.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {ROLE}".encode())
    connection.execute(f"REVOKE INSERT, UPDATE, DELETE ON migration FROM {ROLE}".encode())
