"""The engine seam: what every database engine must do. See `memplane.storage.engine`."""

import threading

import pytest

from memplane.errors import NotFound, StorageBusy
from memplane.storage.engine import Request
from memplane.storage.words import prefix_term

TENANT = "default"
PATIENCE_S = 60


@pytest.fixture
def storage(engine):
    stores = engine.stores()
    yield stores.engine
    stores.close()


@pytest.fixture
def database(storage):
    with storage.open(TENANT, "alice", create=True) as opened:
        yield opened


def note(database, name, value):
    with database.write() as connection:
        connection.execute_many("set_note", [(name, value)])


def noted(database, name):
    with database.read() as connection:
        return [value for (value,) in connection.execute("note", {"name": name})]


def test_a_space_that_does_not_exist_is_only_created_on_request(storage):
    with pytest.raises(NotFound), storage.open(TENANT, "nobody", create=False):
        pass

    assert list(storage.owners(TENANT)) == []


def test_an_open_space_is_one_object(storage, database):
    """
    Code over the seam keeps something with it.
    """
    with storage.open(TENANT, "alice", create=False) as again:
        assert again is database
    assert database.attached is None


def test_owners_and_tenants_are_in_the_order_of_their_bytes(storage):
    for tenant, owner in (("b", "é"), ("b", "Z"), ("b", "a"), ("A", "x")):
        with storage.open(tenant, owner, create=True):
            pass

    assert list(storage.owners("b")) == ["Z", "a", "é"]
    assert list(storage.tenants()) == ["A", "b"]


def test_a_read_sees_one_snapshot(database):
    note(database, "x", "before")
    with database.read() as connection:
        first = connection.execute("note", {"name": "x"})
        note(database, "x", "after")
        second = connection.execute("note", {"name": "x"})

    assert first == second == [("before",)]
    assert noted(database, "x") == ["after"]


def test_a_block_that_raises_is_rolled_back(database):
    def write():
        with database.write() as connection:
            connection.execute_many("set_note", [("x", "1")])
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert noted(database, "x") == []


def test_a_savepoint_undoes_what_came_after_it(database):
    with database.write() as connection:
        connection.execute_many("set_note", [("x", "1")])
        connection.execute("savepoint")
        connection.execute_many("set_note", [("y", "2")])
        connection.execute("rollback_to_savepoint")
        connection.execute("release_savepoint")

    assert (noted(database, "x"), noted(database, "y")) == (["1"], [])


def test_one_transaction_writes_at_a_time(storage, database):
    begun_, go_on = threading.Event(), threading.Event()

    def write():
        with database.write() as connection:
            connection.execute_many("set_note", [("x", "first")])
            begun_.set()
            assert go_on.wait(PATIENCE_S)

    thread = threading.Thread(target=write)
    thread.start()
    assert begun_.wait(PATIENCE_S)
    try:
        with pytest.raises(StorageBusy), database.write(wait=False):
            pass
    finally:
        go_on.set()
        thread.join()
    note(database, "x", "second")

    assert noted(database, "x") == ["second"]


def test_parameters_are_values_and_lists_of_values(database):
    with database.read() as connection:
        assert connection.execute("known", {"ids": ["a", "it's", '"', "{}", "%"]}) == []
        assert connection.execute("entries_at", {"seqs": [1, 2]}) == []
        assert connection.execute("known", {"ids": []}) == []


def test_conditions_take_the_place_of_where(database):
    parameters = {"limit": 1, "offset": 0, "text": "%"}
    with database.read() as connection:
        assert connection.execute("memories", parameters, "m.text = :text") == []


def test_many_rows_may_be_none(database):
    with database.write() as connection:
        connection.execute_many("set_note", [])
        connection.execute_many("set_note", [("x", "1"), ("y", "2")])

    assert (noted(database, "x"), noted(database, "y")) == (["1"], ["2"])


def test_a_batch_is_what_its_statements_are(database):
    note(database, "x", "1")
    requests = [Request("note", {"name": "x"}), Request("known", {"ids": ["a"]}), Request("memory_count")]
    with database.read() as connection:
        together = connection.execute_batch(requests)
        alone = [connection.execute(*request) for request in requests]
        none = connection.execute_batch([])

    assert together == alone == [[("1",)], [], [(0,)]]
    assert none == []


def test_the_word_index_finds_what_was_added(database):
    texts = [(256, "tea and tea"), (512, "coffee, no tea")]
    with database.write() as connection:
        connection.words.add("turn", texts)
        added = connection.words.occurrences("turn", ["tea", "coffe", "jazz"])
        beginning = connection.words.occurrences("turn", [prefix_term("cof")])
        connection.words.drop("turn", texts[:1])
        dropped = connection.words.occurrences("turn", ["tea"])
        count = sum(count for _, count in connection.words.frequencies(["tea"]))
        connection.words.clear()
        cleared = connection.words.occurrences("turn", ["tea"])

    assert added == {"tea": [256, 256, 512], "coffe": [512], "jazz": []}
    assert list(beginning.values()) == [[512]]
    assert dropped == {"tea": [512]}
    assert count == 1
    assert cleared == {"tea": []}


@pytest.mark.parametrize("word", ["tea OR", '"', "a*", "NEAR(", "col:", "-", "'", "\x00", "(", ""])
def test_nothing_in_a_word_is_an_operator(database, word):
    parameters = {"limit": 5}
    with database.write() as connection:
        parameters["match"] = connection.words.match("memory", [word, "tea"])

        assert connection.execute("match_memories", parameters, "TRUE") == []


def test_reading_a_catalog_creates_none(engine, storage):
    catalog = storage.catalog()
    with catalog.read() as connection:
        before = connection.execute("keys")
    with catalog.write(durable=False) as connection:
        connection.execute_many("set_complete", [(TENANT, "alice")])
    elsewhere = engine.stores()
    with elsewhere.engine.catalog().read() as connection:
        after = connection.execute("complete", {"tenant": TENANT})
    elsewhere.close()
    catalog.close()
    with catalog.read() as connection:
        again = connection.execute("complete", {"tenant": TENANT})

    assert before == []
    assert after == again == [("alice",)]


def test_a_database_can_be_wiped_and_checked(storage, database):
    note(database, "x", "1")
    storage.probe()

    assert database.wipe()
    assert database.check() == []
    assert storage.foreign_file() is None
    assert storage.index_vectors() == 0
    assert noted(database, "x") == ["1"]
