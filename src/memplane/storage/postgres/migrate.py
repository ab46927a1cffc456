"""Forward-only migrations under an advisory lock. A newer database is refused rather than harmed.

They are run by whoever owns the database. Everything else is done in a role of its own, which owns nothing: row-level
security holds for it, and every table with a `space` has it, also those that a later migration adds.
"""

from functools import cache
from importlib import resources
from typing import Any

from psycopg import Connection, errors

from memplane.errors import StorageTooNew, StorageUnavailable

SCHEMA = "memplane"
ROLE = "memplane_space"
"""What every session works as."""

_LOCK = 0x4D454D50
_VERSION_MIN = 150_000
_PACKAGE = "memplane.storage.postgres"


@cache
def migrations() -> tuple[str, ...]:
    folder = resources.files(_PACKAGE).joinpath("migrations")
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    return tuple(file.read_text(encoding="utf-8") for file in files)


def migrate(connection: Connection[Any]) -> None:
    """Bring the database up to date. Done already, it costs one look."""
    if connection.info.server_version < _VERSION_MIN:
        raise StorageUnavailable("the database is too old; Memplane needs PostgreSQL 15 or newer")
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
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (errors.UndefinedFile, errors.FeatureNotSupported, errors.InsufficientPrivilege) as exc:
        raise StorageUnavailable(
            "the database has no pgvector; install it on the server and run CREATE EXTENSION vector as a superuser"
        ) from exc
    if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone():
        _create_role(connection)
    past = connection.execute(
        "SELECT 1 FROM pg_roles WHERE rolname = %s AND (rolsuper OR rolbypassrls)", (ROLE,)
    )
    if past.fetchone():
        raise StorageUnavailable(
            f"the role {ROLE} sees past row-level security, so that nothing would part spaces; run ALTER ROLE {ROLE} "
            "NOSUPERUSER NOBYPASSRLS; as a superuser"
        )
    is_member = connection.execute("SELECT pg_has_role(current_user, %s, 'MEMBER')", (ROLE,)).fetchone()
    if is_member != (True,):
        connection.execute(f"GRANT {ROLE} TO CURRENT_USER".encode())
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
    connection.execute(f"SET LOCAL search_path = {SCHEMA}, public".encode())
    connection.execute(
        "CREATE TABLE IF NOT EXISTS migration "
        "(number integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
    )


def _create_role(connection: Connection[Any]) -> None:
    try:
        with connection.transaction():
            connection.execute(f"CREATE ROLE {ROLE} NOLOGIN NOBYPASSRLS".encode())
    except (errors.DuplicateObject, errors.UniqueViolation):
        pass  # roles are the whole server's: somebody just made it for another database
    except errors.InsufficientPrivilege as exc:
        raise StorageUnavailable(
            f"this user may not create the role {ROLE}; run CREATE ROLE {ROLE} NOLOGIN; GRANT {ROLE} TO …; as one who may"
        ) from exc


def tables(connection: Connection[Any]) -> list[str]:
    """Those that hold rows of spaces."""
    found = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'space' "
        "WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p') ORDER BY c.relname",
        (SCHEMA,),
    )
    return [str(table) for (table,) in found.fetchall()]


def _guard(connection: Connection[Any]) -> None:
    """Row-level security on everything that is a space's, and what the role may do.

    Where one is, is asked once for each statement, and a plan is made without knowing it: it serves other spaces, too.
    """
    here = "tenant = here_tenant() AND space = here_space()"
    asked_once = "tenant = (SELECT here_tenant()) AND space = (SELECT here_space())"
    for table in tables(connection):
        connection.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY".encode())
        connection.execute(f"DROP POLICY IF EXISTS here ON {table}".encode())
        connection.execute(f"CREATE POLICY here ON {table} USING ({asked_once}) WITH CHECK ({here})".encode())
        # A space is of one tenant. Whoever plans without knowing that expects next to no rows of it, and takes any index.
        connection.execute(
            f"CREATE STATISTICS IF NOT EXISTS {table}_place (dependencies) ON tenant, space FROM {table}".encode()
        )
    connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE}".encode())
    connection.execute(
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {SCHEMA} TO {ROLE}".encode()
    )
    connection.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {SCHEMA} TO {ROLE}".encode())
    connection.execute(f"REVOKE INSERT, UPDATE, DELETE ON migration FROM {ROLE}".encode())
