"""The one place where psycopg's errors become ours."""

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

FATAL = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError)
"""The database's trouble, not that of the work it struck."""


_TOO_MANY = ("too many clients", "remaining connection slots", "too many connections")
"""What a server says to whoever it does not let in any more; the driver has no class for it."""


class translate_errors:  # noqa: N801 - used like the function it would be
    """Around whatever talks to the database."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, psycopg.Error | PoolClosed | PoolTimeout):
            translated = _translated(error)
            if translated is not None:
                raise translated from error


def _translated(error: Exception) -> StorageError | None:  # noqa: PLR0911 - a table
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
            return StorageUnreachable(
                "the database cannot be reached; nothing was written, try again when it is back"
            )
        case _:
            return None
