"""Several servers on one data directory: one owner key, and a revocation that holds everywhere at once."""

import multiprocessing
import stat
from contextlib import closing

import pytest
from tests.support import identity_workers as workers
from tests.support.identity_workers import PATIENCE_SECONDS

from memplane import Memplane
from memplane.auth.keys import Grant
from memplane.errors import StorageCorrupt, StorageTooNew, StorageUnavailable

forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["tests.support.identity_workers"])


def started(work, *arguments):
    process = forked.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


def ended(processes):
    for process in processes:
        process.join(PATIENCE_SECONDS)
        assert process.exitcode == 0
        process.close()


def test_the_owner_key_is_minted_once_by_racing_servers(tmp_path):
    """
    Six processes begin at once on a directory that is not there yet: one gets a key, and it works.
    """
    count = 6
    answers, begin = forked.Queue(), forked.Barrier(count)
    processes = [started(workers.first_serve, str(tmp_path / "data"), begin, answers) for _ in range(count)]
    got = [answers.get(timeout=PATIENCE_SECONDS) for _ in range(count)]
    ended(processes)
    answers.close()

    (bearer,) = [key for key in got if key is not None]
    with Memplane.open(tmp_path / "data", embedder=None) as plane, closing(plane.identity()) as identity:
        assert [record.name for record in identity.list_keys()] == ["owner"]
        assert identity.authenticate(bearer, peer="here").spaces is None


def test_a_revocation_is_seen_by_the_next_request_of_every_process(tmp_path):
    """
    Three servers keep letting a caller in; the first request after the revocation is refused by each.
    """
    with Memplane.open(tmp_path / "data", embedder=None) as plane, closing(plane.identity()) as identity:
        minted = identity.create_key(Grant(name="soon gone"))
        answers, revoked = forked.Queue(), forked.Event()
        warm = [forked.Event() for _ in range(3)]
        processes = [
            started(
                workers.serve_requests, str(tmp_path / "data"), minted.bearer.reveal(), each, revoked, answers
            )
            for each in warm
        ]
        assert all(each.wait(PATIENCE_SECONDS) for each in warm)

        identity.revoke(minted.key.id)
        revoked.set()

        got = [answers.get(timeout=PATIENCE_SECONDS) for _ in warm]
        ended(processes)
        answers.close()
    assert got == ["this key was revoked"] * 3


# ── a catalog in trouble ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def catalog(tmp_path):
    """A catalog with a key in it, closed."""
    with Memplane.open(tmp_path / "data", embedder=None) as plane, closing(plane.identity()) as identity:
        identity.create_key(Grant())
    return tmp_path / "data" / "catalog.db"


def look(tmp_path):
    with Memplane.open(tmp_path / "data", embedder=None) as plane, closing(plane.identity()) as identity:
        return identity.list_keys()


@pytest.mark.parametrize("left", [0, 100])
def test_a_catalog_that_was_cut_off_lets_nobody_in(tmp_path, catalog, left):
    """
    It is not taken for a new one, which would mint another owner key.
    """
    catalog.write_bytes(catalog.read_bytes()[:left])

    with pytest.raises(StorageCorrupt):
        look(tmp_path)
    with (
        Memplane.open(tmp_path / "data", embedder=None) as plane,
        closing(plane.identity()) as identity,
        pytest.raises(StorageCorrupt),
    ):
        identity.owner_key()
    assert catalog.stat().st_size == left


def test_a_catalog_from_the_future_is_left_alone(tmp_path, catalog):
    """
    A newer Memplane wrote it.
    """
    raw = bytearray(catalog.read_bytes())
    raw[60:64] = (99).to_bytes(4, "big")  # where SQLite keeps user_version
    catalog.write_bytes(raw)

    with pytest.raises(StorageTooNew):
        look(tmp_path)
    assert catalog.read_bytes() == raw


def test_a_catalog_is_a_file_of_its_own(tmp_path, catalog):
    """
    A link could lead anywhere.
    """
    catalog.rename(tmp_path / "elsewhere.db")
    catalog.symlink_to(tmp_path / "elsewhere.db")

    with pytest.raises(StorageUnavailable, match="link"):
        look(tmp_path)


def test_only_its_owner_may_read_it(tmp_path, catalog):
    """
    Hashes of secrets are nobody's business, and neither is who has a key.
    """
    assert stat.S_IMODE(catalog.stat().st_mode) == 0o600
    assert stat.S_IMODE(catalog.parent.stat().st_mode) & 0o077 == 0


def test_the_catalog_is_not_a_space(tmp_path, catalog):
    """
    It stands beside the spaces, not among them.
    """
    with Memplane.open(tmp_path / "data", embedder=None) as plane:
        assert list(plane.spaces()) == []
