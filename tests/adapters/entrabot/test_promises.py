"""EntraBot's promises."""

import asyncio
import json
import threading
from datetime import UTC, datetime, timedelta

import pytest
from entrabot.storage.blob import ConcurrencyError
from entrabot.tools import promises
from entrabot.tools.promises import (
    PROMISES_KEY,
    Promise,
    PromiseNotFound,
    PromiseStoreConflict,
    add_promise,
    list_promises,
    resolve_promise,
)

from blob_server import CONTAINER, TOKEN
from memplane.adapters.entrabot import promise_log as book
from memplane.adapters.entrabot.storage.local import LocalBackend

NOW = datetime(2026, 4, 17, 12, 0, tzinfo=UTC)


@pytest.fixture
def backend(tmp_path):
    return LocalBackend(tmp_path)


def lines(backend):
    return [json.loads(line) for line in (backend.read_text(PROMISES_KEY) or "").splitlines()]


def add(description="ship it", **given):
    return asyncio.run(add_promise(**{"chat_id": "c1", "description": description} | given))


def listing(**given):
    return asyncio.run(list_promises(**given))


def resolve(promise_id, resolution="done", **given):
    return asyncio.run(resolve_promise(promise_id=promise_id, resolution=resolution, **given))


# Making one


def test_a_promise_is_an_open_line(backend):
    """
    With an id, a time, to whom and what.
    """
    made = add("announce the release", backend=backend)

    assert isinstance(made, Promise)
    assert (made.chat_id, made.description, made.status) == ("c1", "announce the release", "open")
    assert len(made.id) == 32
    assert datetime.fromisoformat(made.created_at).tzinfo is not None
    assert lines(backend) == [
        {
            "id": made.id,
            "created_at": made.created_at,
            "chat_id": "c1",
            "description": "announce the release",
            "status": "open",
        }
    ]


def test_when_it_is_due_is_kept(backend):
    """
    As it was given.
    """
    due = "2026-04-25T17:00:00+00:00"

    made = add(due_by=due, backend=backend)

    assert (made.due_by, lines(backend)[0]["due_by"]) == (due, due)


def test_promises_stand_in_their_order(backend):
    """
    A line each.
    """
    made = [add("first", backend=backend), add("second", backend=backend)]

    assert [line["id"] for line in lines(backend)] == [one.id for one in made]


# Listing them


def test_without_a_file_there_is_none(backend):
    """
    And no error.
    """
    assert listing(backend=backend) == []


def test_open_ones_are_listed(backend):
    """
    Those that are settled are not.
    """
    first, second = add("first", backend=backend), add("second", backend=backend)
    resolve(first.id, backend=backend)

    assert [(one.id, one.status) for one in listing(backend=backend, open_only=True)] == [(second.id, "open")]


def test_all_are_listed_when_asked_for(backend):
    """
    With how they were settled.
    """
    first, second = add("first", backend=backend), add("second", backend=backend)
    resolve(first.id, "shipped", backend=backend)

    found = {one.id: (one.status, one.resolution) for one in listing(backend=backend, open_only=False)}

    assert found == {first.id: ("resolved", "shipped"), second.id: ("open", None)}


def test_the_last_line_about_a_promise_holds(backend):
    """
    Whoever wrote it.
    """
    made = add(backend=backend)
    newer = made.to_entry() | {"status": "resolved", "resolution": "wrapped up"}
    backend.append_text(PROMISES_KEY, json.dumps(newer) + "\n")

    (found,) = listing(backend=backend, open_only=False)

    assert (found.status, found.resolution) == ("resolved", "wrapped up")


# Settling one


def test_settling_adds_a_line(backend):
    """
    The first stays as it was.
    """
    made = add(backend=backend)

    settled = resolve(made.id, "merged", backend=backend)

    assert (settled.id, settled.status, settled.resolution) == (made.id, "resolved", "merged")
    assert settled.resolved_at
    assert lines(backend) == [made.to_entry(), settled.to_entry()]


def test_settling_what_was_not_promised_is_an_error(backend):
    """
    And writes nothing.
    """
    with pytest.raises(PromiseNotFound):
        resolve("does-not-exist", backend=backend)

    assert lines(backend) == []


def test_settling_twice_changes_nothing(backend):
    """
    The first answer is given again.
    """
    made = add(backend=backend)
    first = resolve(made.id, "done", backend=backend)

    second = resolve(made.id, "still done", backend=backend)

    assert second == first
    assert len(lines(backend)) == 2


# Compaction


def old_file(now):
    """800 that were settled long ago, 100 settled lately, 3 open: 1,803 lines."""

    def both(name, at):
        opened = {"id": name, "created_at": at, "chat_id": "c1", "description": name, "status": "open"}
        return [opened, opened | {"status": "resolved", "resolved_at": at, "resolution": "done"}]

    long_ago, lately = ((now - timedelta(days=days)).isoformat() for days in (60, 5))
    entries = [entry for number in range(800) for entry in both(f"old-{number}", long_ago)]
    entries += [entry for number in range(100) for entry in both(f"late-{number}", lately)]
    entries += [both(f"open-{number}", lately)[0] for number in range(3)]
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def test_a_long_file_is_compacted_with_the_next_promise(backend):
    """
    What is open stays, what was settled within thirty days stays, and the new one: 104 lines.
    """
    backend.write_text(PROMISES_KEY, old_file(datetime.now(UTC)))

    made = add(backend=backend)

    ids = [line["id"] for line in lines(backend)]
    assert len(ids) == len(set(ids)) == 104
    assert not [name for name in ids if name.startswith("old-")]
    assert {made.id, "late-0", "late-99", "open-0", "open-2"} <= set(ids)


# Two at once


class Tripping:
    """A store as EntraBot's tests bring it: refuses so many writes, as if somebody else were faster."""

    def __init__(self, trips):
        self.data, self.etag, self.trips, self.puts = b"", "", trips, []

    async def get(self, path):
        return self.data, self.etag

    async def put(self, path, data, *, if_match=None):
        self.puts.append(if_match)
        if self.trips:
            self.trips -= 1
            self.data += json.dumps({"id": f"theirs-{self.trips}", "created_at": ""}).encode() + b"\n"
            self.etag = f"etag-of-theirs-{self.trips}"
            raise ConcurrencyError("412")
        self.data, self.etag = data, f"etag-{len(self.puts)}"
        return self.etag


def test_a_refused_write_is_made_again_on_what_is_there_now(monkeypatch):
    """
    Once; then both lines are in the file.
    """
    store = Tripping(1)
    monkeypatch.setattr(promises, "_get_conditional_store", lambda: store)

    made = add()

    assert store.puts == [None, "etag-of-theirs-0"]
    assert [json.loads(line)["id"] for line in store.data.splitlines()] == ["theirs-0", made.id]


def test_a_write_refused_twice_is_a_conflict(monkeypatch):
    """
    It is not tried for ever.
    """
    store = Tripping(9)
    monkeypatch.setattr(promises, "_get_conditional_store", lambda: store)

    with pytest.raises(PromiseStoreConflict):
        add()

    assert len(store.puts) == 2


# Beyond


@pytest.fixture
def container(blob_server, entrabot_settings):
    entrabot_settings(blob_endpoint=blob_server.endpoint, blob_container=CONTAINER, storage_token=TOKEN)
    return blob_server


def test_in_a_container_every_write_is_on_a_condition(container):
    """
    The first only where there is nothing, the others only on what was read.
    """
    made = add()
    resolve(made.id)

    written = [asked for asked in container.asked if asked.method == "PUT"]
    assert written[0].headers["if-none-match"] == "*"
    assert written[1].headers["if-match"].startswith('"0x8DC')
    assert [one.status for one in listing(open_only=False)] == ["resolved"]


def test_two_that_create_the_file_at_once_both_keep_their_promise(container):
    """
    EntraBot's own client would let the second replace the first.
    """
    there = []

    def interfere(asked):
        if asked.method == "PUT" and not there:
            there.append(True)
            container.put(PROMISES_KEY, b'{"id": "theirs", "created_at": ""}\n')

    container.before = interfere
    made = add()

    assert [one.id for one in listing()] == ["theirs", made.id]


def test_promises_of_many_at_once_are_all_there(container):
    """
    Each is there, or its maker was told that it is not.
    """
    made, refused = [], []

    def work():
        for _ in range(3):
            try:
                made.append(add().id)
            except PromiseStoreConflict:
                refused.append(True)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(one.id for one in listing()) == sorted(made)
    assert len(made) + len(refused) == 9


@pytest.mark.parametrize(
    "work",
    [
        lambda backend: add(chat_id="", backend=backend),
        lambda backend: add(" ", backend=backend),
        lambda backend: resolve("", backend=backend),
        lambda backend: resolve("x", " ", backend=backend),
    ],
)
def test_a_promise_that_says_nothing_is_a_value_error(backend, work):
    """
    And writes nothing.
    """
    with pytest.raises(ValueError):
        work(backend)

    assert lines(backend) == []


def test_a_line_that_is_none_is_kept_and_passed_over(backend):
    """
    Also by a compaction: it is not known to be old. One that was cut off takes none with it.
    """
    backend.write_text(PROMISES_KEY, old_file(datetime.now(UTC)) + "not a line\n" + '{"id": "cut')

    made = add(backend=backend)

    text = backend.read_text(PROMISES_KEY)
    assert "not a line\n" in text
    assert '{"id": "cut\n' in text
    assert made.id in {one.id for one in listing(backend=backend)}


def test_what_others_say_of_a_promise_is_kept(backend):
    """
    Fields that are not ours go on with it.
    """
    backend.write_text(PROMISES_KEY, '{"id": "x", "created_at": "2026-04-17", "mood": 3}\n')

    resolve("x", backend=backend)

    assert [line["mood"] for line in lines(backend)] == [3, 3]


def test_thirty_days_are_thirty_days():
    """
    To the second; a time that cannot be read is not past.
    """

    def settled(name, at):
        return json.dumps({"id": name, "status": "resolved", "resolved_at": at}) + "\n"

    edge = NOW - timedelta(days=30)
    text = settled("in", edge.isoformat()) + settled("out", (edge - timedelta(seconds=1)).isoformat())
    text += settled("odd", "last week") + settled("naive", edge.replace(tzinfo=None).isoformat())

    assert [one.id for one in book.listed(book.compacted(text, now=NOW), open_only=False)] == [
        "in",
        "odd",
        "naive",
    ]


def test_a_lost_answer_makes_no_second_line():
    """
    Adding what is there already changes nothing.
    """
    made = book.promise(chat_id="c", description="d", now=NOW)
    once = book.added("", made, now=NOW)

    assert book.added(once, made, now=NOW) == once
