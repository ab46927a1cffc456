"""What every engine must do for the directory of things."""

import pytest

from memplane.storage.catalog.directory import KEPT, ResourceKind, ResourceLocation

DOCUMENT, RECEIPT = ResourceKind.DOCUMENT, ResourceKind.RECEIPT
NOW = 1_790_000_000_000_000


@pytest.fixture
def directory(engine):
    return engine.directory()


@pytest.fixture
def elsewhere(engine):
    """Another program on the same data."""
    return engine.directory()


def test_looking_leaves_no_trace(directory, tmp_path):
    """
    Where nothing was noted there is nothing, and no file.
    """
    assert directory.owners("t", DOCUMENT, "d") == []
    assert directory.newest("t", RECEIPT, owners=None, limit=9, offset=0) == []
    assert directory.count("t", RECEIPT, owners=None) == 0
    assert directory.complete("t") == frozenset()
    assert list(tmp_path.iterdir()) == []


def test_what_is_noted_is_found_elsewhere(directory, elsewhere):
    """
    By tenant, sort and id; one id may live in several spaces, and noting twice is noting once.
    """
    for owner in ("bob", "alice", "bob"):
        directory.note("t", DOCUMENT, "d\n\u2603", owner, now=NOW)

    assert elsewhere.owners("t", DOCUMENT, "d\n\u2603") == ["alice", "bob"]
    assert elsewhere.owners("u", DOCUMENT, "d\n\u2603") == []
    assert elsewhere.owners("t", ResourceKind.COLLECTION, "d\n\u2603") == []


def test_an_entry_is_not_dropped_while_it_may_still_come_true(directory):
    """
    Somebody may have noted it and be about to commit; noting again begins that time anew.
    """
    directory.note("t", DOCUMENT, "d", "alice", now=NOW)
    directory.note("t", DOCUMENT, "d", "bob", now=NOW)
    directory.forget("t", DOCUMENT, "d", "alice", now=NOW + KEPT - 1)
    assert directory.owners("t", DOCUMENT, "d") == ["alice", "bob"]

    directory.note("t", DOCUMENT, "d", "bob", now=NOW + 10)
    for owner in ("alice", "bob"):
        directory.forget("t", DOCUMENT, "d", owner, now=NOW + KEPT)

    assert directory.owners("t", DOCUMENT, "d") == ["bob"]


def test_what_is_forgotten_is_dropped_at_once(directory, elsewhere):
    """
    However new it is; whoever noted it anew meanwhile is found by looking through the space.
    """
    directory.note_all("t", DOCUMENT, {"d": NOW, "e": NOW}, "alice", now=NOW)
    directory.note("t", DOCUMENT, "d", "bob", now=NOW)
    directory.note("t", ResourceKind.COLLECTION, "d", "alice", now=NOW)
    directory.set_complete("t", ["alice", "bob"])
    assert sorted(elsewhere.of("t", DOCUMENT, "alice")) == ["d", "e"]

    directory.drop("t", DOCUMENT, ["d", "unknown"], "alice")

    assert elsewhere.of("t", DOCUMENT, "alice") == ["e"]
    assert elsewhere.owners("t", DOCUMENT, "d") == ["bob"]
    assert elsewhere.of("t", ResourceKind.COLLECTION, "alice") == ["d"]
    assert elsewhere.complete("t") == {"bob"}


def test_a_clock_that_went_back_drops_nothing(directory):
    """
    The latest time an entry was noted at counts.
    """
    directory.note("t", DOCUMENT, "d", "alice", now=NOW)
    directory.note("t", DOCUMENT, "d", "alice", now=NOW - KEPT)
    directory.forget("t", DOCUMENT, "d", "alice", now=NOW + 1)

    assert directory.owners("t", DOCUMENT, "d") == ["alice"]


def test_the_newest_come_first(directory):
    """
    By the time each is listed under, page by page, for all owners or some.
    """
    directory.note_all("t", RECEIPT, {"r1": 10, "r3": 30}, "alice", now=NOW)
    directory.note_all("t", RECEIPT, {"r2": 20, "r4": 40}, "bob", now=NOW)
    directory.note_all("u", RECEIPT, {"r9": 90}, "alice", now=NOW)
    directory.note("t", DOCUMENT, "d", "alice", now=NOW)

    def ids(**asked):
        found = directory.newest("t", RECEIPT, **{"owners": None, "limit": 9, "offset": 0, **asked})
        return [place.id for place in found]

    assert ids() == ["r4", "r3", "r2", "r1"]
    assert ids(limit=2, offset=1) == ["r3", "r2"]
    assert ids(owners=["alice"]) == ["r3", "r1"]
    assert ids(owners={"alice", "bob", "carol"}) == ["r4", "r3", "r2", "r1"]
    assert ids(owners=[]) == []
    assert ids(offset=9) == []
    assert directory.newest("t", RECEIPT, owners=None, limit=1, offset=0) == [ResourceLocation("r4", "bob")]
    assert [directory.count("t", RECEIPT, owners=owners) for owners in (None, ["bob"], [])] == [4, 2, 0]


def test_the_listed_time_stays(directory):
    """
    Noting a thing again moves it nowhere.
    """
    directory.note_all("t", RECEIPT, {"r1": 10, "r2": 20}, "alice", now=NOW)
    directory.note("t", RECEIPT, "r1", "alice", now=NOW + 5)

    assert [one.id for one in directory.newest("t", RECEIPT, owners=None, limit=9, offset=0)] == ["r2", "r1"]


def test_an_owner_is_complete_until_something_new_is_noted(directory, elsewhere):
    """
    A note may be lost with the power only while its owner is not complete.
    """
    directory.set_complete("t", ["alice", "bob"])
    assert elsewhere.complete("t") == {"alice", "bob"}
    assert elsewhere.complete("u") == frozenset()

    elsewhere.note("t", DOCUMENT, "d", "alice", now=NOW)
    directory.note_all("t", DOCUMENT, {}, "bob", now=NOW)

    assert directory.complete("t") == {"bob"}
    assert directory.owners("t", DOCUMENT, "d") == ["alice"]
