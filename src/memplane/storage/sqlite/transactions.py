"""Write transactions on one connection, for works that share them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from memplane.storage.sql.commit import GroupCommit, Works
from memplane.storage.sqlite.connection import translate_sqlite_errors

FATAL = (apsw.FullError, apsw.IOError, apsw.CorruptError, apsw.NotADBError)
"""The file's trouble, not that of the work it struck."""

W = TypeVar("W", bound=Works)


def group_commit(connection: apsw.Connection, path: Path, writer: Callable[[], W]) -> GroupCommit[W]:
    """Concurrent writers share one sync."""

    @contextmanager
    def transaction() -> Iterator[W]:
        with translate_sqlite_errors(path):
            try:
                if connection.in_transaction:  # an interrupt came before it could be undone
                    connection.execute("ROLLBACK")
                connection.execute("BEGIN IMMEDIATE")
                yield writer()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    return GroupCommit(transaction, FATAL)
