"""Translation of the errors of psycopg."""

import re

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout

from memplane.errors import (
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageUnavailable,
    StorageUnreachable,
)
from memplane.storage.postgres.address import ENCODE

FATAL = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)
"""Errors of the database, not of the work that met them."""
_TOO_MANY = ("too many clients", "remaining connection slots", "too many connections")
"""Messages of a server without free connections; the driver has no class for them."""
_REFUSALS = {
    "authentication failed": "the database refuses the password of this user; set it right in the address, in "
    "~/.pgpass or in PGPASSWORD",
    "no password supplied": "the database asks for a password; give it in ~/.pgpass, in PGPASSWORD or in the address",
    "no pg_hba.conf entry": "the database refuses connections from here as this user; see its pg_hba.conf, and ?sslmode= of "
    "the address",
    "permission denied for database": "the database does not let this user connect; run GRANT CONNECT ON DATABASE … TO … as "
    "its owner",
    'database "': "there is no such database on the server; create it as docs/guides/postgresql.md says",
    'role "': "the database server has no such user; create it as docs/guides/postgresql.md says",
    "does not support SSL": "the database server has no TLS, which ?sslmode= of the address asks for",
    "root certificate file": "there is no certificate to check the database server by; name one with ?sslrootcert=, or "
    "take ?sslrootcert=system",
    "certificate": "TLS with the database server failed for the sake of a certificate: it is not signed by whom "
    "?sslrootcert= says, not for this host, or over",
}
"""Messages of a server, or of the driver, after which a retry is of no use, and our messages: never the
original text, which repeats parts of the address. The driver has no class for them. A message in another
language is not recognized, and counts as a server that cannot be reached."""
_ABSENCES = {
    "resolve host": "no server has this name",
    "Connection refused": "nothing listens there",
    "No such file or directory": "nothing listens there",
    "timeout expired": "the server does not answer",
}
_BAD_VALUE = re.compile(r'invalid (\w+) value|for connection option "(\w+)"')
"""Messages of the driver before it contacts a server."""


class translate_postgres_errors:  # noqa: N801 - used like the function it would be
    """Translates the errors of a block."""

    __slots__ = ("_where",)

    def __init__(self, where: str) -> None:
        """`where` is the address for messages; empty if it may contain a part of a password."""
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, psycopg.Error | PoolClosed | PoolTimeout):
            translated = _translated(error, self._where)
            if translated is not None:
                raise translated from error


def _translated(error: Exception, where: str) -> StorageError | None:  # noqa: PLR0911 - a table
    match error:
        case errors.DiskFull() | errors.OutOfMemory():
            return StorageFull("the database has no room left; nothing was written, free some space on it")
        case (
            errors.QueryCanceled()
            | errors.LockNotAvailable()
            | errors.DeadlockDetected()
            | errors.SerializationFailure()
            | errors.TooManyConnections()
            | errors.IdleInTransactionSessionTimeout()
            | PoolTimeout()
        ):
            return StorageBusy("the database is too busy to answer in time; nothing was written, try again")
        case errors.InsufficientPrivilege() | errors.InvalidAuthorizationSpecification():
            return StorageUnavailable(
                "the database does not let this user in; see docs/guides/postgresql.md for what it must be granted"
            )
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return StorageCorrupt("the database reports damage; restore it from a backup")
        case errors.ReadOnlySqlTransaction():
            return StorageUnreachable(
                "the database takes no writes: it is a standby, or becoming the primary; nothing was written, try again"
            )
        case errors.ProgramLimitExceeded() | errors.StatementTooComplex():
            return None
        case psycopg.OperationalError() if any(words in str(error) for words in _TOO_MANY):
            return StorageBusy(
                "the database has no connection left for us; nothing was written, try again, or let it take more"
            )
        case psycopg.OperationalError() | psycopg.InterfaceError() | PoolClosed():
            return _no_connection(str(error), where)
        case _:
            return None


def _no_connection(said: str, where: str) -> StorageError:
    """If several servers were tried, the message of the last one comes first and decides."""
    last = said.partition("\n")[0]
    if (bad := _BAD_VALUE.search(last)) is not None:
        name = bad[1] or bad[2]
        return StorageUnavailable(
            f"{name} in the address of the database, or in PG{name.upper().replace('_', '')}, has a value that there is not; set it right"
        )
    asked = f" (asked at {where})" if where else f"; {ENCODE}"
    for words, meaning in _REFUSALS.items():
        if words in last and (not words.endswith('"') or "does not exist" in last):
            return StorageUnavailable(f"{meaning}{asked}")
    why = next((meaning for words, meaning in _ABSENCES.items() if words in last), None)
    reason = "" if why is None else f": {why}"
    return StorageUnreachable(
        f"the database cannot be reached{reason}{asked}; nothing was written, try again when it is back"
    )
