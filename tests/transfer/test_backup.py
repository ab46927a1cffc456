"""Backups as docs/guides/backup.md says: taken while everything runs, restored, and proved."""

import subprocess
import threading
from contextlib import ExitStack
from pathlib import Path

import psycopg
from tests.support import move_victim

from memplane import Memplane
from memplane.storage.postgres.migrate import ROLE
from memplane.transfer.move import Move


def run(program: Path, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_dump_of_the_database_is_restored(postgres_server, tmp_path):
    """Row by row the same, every chain proved, row-level security as it was; and it is written to again."""
    dump = tmp_path / "memplane.dump"
    with ExitStack() as opened:
        url = opened.enter_context(postgres_server.database())
        move_victim.fill(url)
        run(postgres_server.programs / "pg_dump", "--format=custom", f"--file={dump}", url)
        name = postgres_server.create(migrated=False)
        opened.callback(postgres_server.drop, name)
        restored = postgres_server.url(name)
        whole = ("--exit-on-error", "--single-transaction")
        run(postgres_server.programs / "pg_restore", *whole, f"--dbname={restored}", str(dump))
        with Memplane.open(url, embedder=None) as here, Memplane.open(restored, embedder=None) as there:
            report = Move(here._stores, there._stores).check()
            entry = there.space("alice").retain("said after the restore")
            verified = there.space("alice").ledger.verify()
        with psycopg.connect(restored) as connection:
            connection.execute(f"SET ROLE {ROLE}".encode())
            seen = connection.execute("SELECT count(*) FROM memplane.ledger").fetchone()

    assert (report.different, report.problems, report.verified) == ({}, [], len(move_victim.OWNERS))
    assert verified.problems == ()
    assert entry.seq == verified.entries
    assert seen == (0,)


def test_nobody_else_is_given_a_part(postgres_server):
    """Whoever does not own the tables gets no dump, with or without rights on them."""

    def refused(url: str) -> str:
        url = url.replace("//postgres:@", "//somebody@")
        program = [postgres_server.programs / "pg_dump", f"--dbname={url}"]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.count("COPY memplane.ledger")) == (1, 0)
        return done.stderr

    with postgres_server.database() as url, psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE ROLE somebody LOGIN")
        try:
            without = refused(url)
            owner.execute("GRANT USAGE ON SCHEMA memplane TO somebody")
            owner.execute("GRANT SELECT ON ALL TABLES IN SCHEMA memplane TO somebody")
            owner.execute("GRANT SELECT ON ALL SEQUENCES IN SCHEMA memplane TO somebody")
            granted = refused(url)
        finally:
            owner.execute("DROP OWNED BY somebody; DROP ROLE somebody")

    assert "permission denied for schema memplane" in without
    assert "query would be affected by row-level security policy" in granted


def test_roles_are_not_in_a_dump(postgres_server):
    """What has to be there before a restore is what `pg_dumpall --roles-only` says."""
    roles = run(
        postgres_server.programs / "pg_dumpall", "--roles-only", f"--dbname={postgres_server.url('postgres')}"
    )

    assert f"CREATE ROLE {ROLE}" in roles


def test_a_backup_of_what_is_in_use_is_whole(tmp_path):
    """Somebody writes all the time; every copy is one that the source was at some moment."""
    source, copy = str(tmp_path / "source"), tmp_path / "copy"
    move_victim.fill(source)
    stop = threading.Event()
    with Memplane.open(source, embedder=None) as plane:

        def write() -> None:
            number = 0
            while not stop.is_set():
                space = plane.space(move_victim.OWNERS[number % 2])
                space.retain(f"said meanwhile {number}", id=f"m{number}")
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                with Memplane.open(copy, embedder=None) as target:
                    report = plane.move_to(target, lambda _: None, passes_max=1)
                assert (report.problems, report.verified) == ([], len(move_victim.OWNERS))
                assert_is_a_beginning(copy, plane)
        finally:
            stop.set()
            writer.join()


def assert_is_a_beginning(copy: Path, plane: Memplane) -> None:
    with Memplane.open(copy, embedder=None) as kept:
        for owner in move_victim.OWNERS:
            entries = kept.space(owner).ledger.entries(limit=100_000)
            assert plane.space(owner).ledger.entries(limit=len(entries)) == entries
            assert kept.space(owner).ledger.check() == []
