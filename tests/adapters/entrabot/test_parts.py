"""Parts of EntraBot's memory on their own: its promises in an object store, its files of state, its settings."""

from datetime import UTC, datetime

import pytest

from memplane.adapters.entrabot import environment
from memplane.adapters.entrabot import promise_log as book
from memplane.adapters.entrabot.promise_log import KEY, PromiseBook
from memplane.adapters.entrabot.storage.local import LocalBackend
from memplane.adapters.entrabot.tools import state
from memplane.errors import Changed, NotFound
from memplane.sync.local import LocalObjects

NOW = datetime(2026, 4, 17, 12, 0, tzinfo=UTC)


class Contested(LocalObjects):
    """Somebody else writes just before so many of our writes, or our write happens and its answer is lost."""

    def __init__(self, root, *, others=0, lost=0):
        super().__init__(root)
        self.others, self.lost = others, lost

    def put(self, key, data, *, expect=None):
        if self.others:
            self.others -= 1
            got = super().get(key)
            super().put(key, (got.data if got else b"") + b'{"id": "theirs-%d"}\n' % self.others)
        version = super().put(key, data, expect=expect)
        if self.lost:
            self.lost -= 1
            raise Changed(key)
        return version


def made(description="ship it"):
    return book.promise(chat_id="c1", description=description, now=NOW)


def test_promises_in_a_store_are_made_listed_and_settled(tmp_path):
    """
    By whatever machine.
    """
    here, there = PromiseBook(LocalObjects(tmp_path)), PromiseBook(LocalObjects(tmp_path))
    one = here.add(made(), now=NOW)

    settled = there.resolve(one.id, "done", now=NOW)

    assert here.list() == []
    assert here.list(open_only=False) == [settled]
    assert there.resolve(one.id, "again", now=NOW) == settled
    with pytest.raises(NotFound):
        here.resolve("nobody", "x", now=NOW)


def test_a_promise_is_made_on_what_is_there_now(tmp_path):
    """
    Whoever was faster keeps theirs.
    """
    promises = PromiseBook(Contested(tmp_path, others=1))

    one = promises.add(made(), now=NOW)

    assert [found.id for found in promises.list()] == ["theirs-0", one.id]


def test_a_promise_that_is_always_too_late_is_not_made(tmp_path):
    """
    And its maker is told.
    """
    promises = PromiseBook(Contested(tmp_path, others=9))

    with pytest.raises(Changed):
        promises.add(made(), now=NOW)

    assert [found.id for found in promises.list()] == ["theirs-8", "theirs-7"]


def test_a_write_whose_answer_was_lost_is_not_made_twice(tmp_path):
    """
    It is found to be there.
    """
    promises = PromiseBook(Contested(tmp_path, lost=1))

    one = promises.add(made(), now=NOW)

    assert LocalObjects(tmp_path).get(KEY).data.decode().count(one.id) == 1


def test_bytes_that_are_no_text_stay_as_they_are(tmp_path):
    """
    Somebody may still make sense of them.
    """
    store = LocalObjects(tmp_path)
    store.put(KEY, b"\xff\xfe odd\n")

    one = PromiseBook(store).add(made(), now=NOW)

    assert store.get(KEY).data == b"\xff\xfe odd\n" + book.added("", one, now=NOW).encode()


def test_watched_chats_are_sorted_lines(tmp_path):
    """
    Each id once, with a line end behind the last.
    """
    backend = LocalBackend(tmp_path)

    state.write_watched_chats(backend, ["b", "a", "b", " "])

    assert (tmp_path / "watched_chats").read_bytes() == b"a\nb\n"
    assert state.read_watched_chats(backend) == ["a", "b"]
    with pytest.raises(ValueError, match="one line"):
        state.write_watched_chats(backend, ["a\nb"])


def test_the_cursor_of_the_mail_is_one_time(tmp_path):
    """
    Stripped, and a millisecond further than the last mail.
    """
    backend = LocalBackend(tmp_path)
    assert state.read_email_cursor(backend) is None

    state.write_email_cursor(backend, " 2026-04-17T20:00:00Z\n")

    assert (tmp_path / "email_cursor.txt").read_bytes() == b"2026-04-17T20:00:00Z"
    assert state.advanced(state.read_email_cursor(backend)) == "2026-04-17T20:00:00.001Z"
    with pytest.raises(ValueError):
        state.write_email_cursor(backend, "yesterday")


def test_state_stays_where_it_is(tmp_path):
    """
    At the top as in EntraBot's code, or below `state/` as in its document.
    """
    backend = LocalBackend(tmp_path)
    backend.write_text("state/watched_chats", "old\n")

    state.write_watched_chats(backend, [*state.read_watched_chats(backend), "new"])

    assert backend.list() == ["state/watched_chats"]
    assert backend.read_text("state/watched_chats") == "new\nold\n"


def test_settings_may_stand_in_a_file(tmp_path, monkeypatch):
    """
    The environment wins over it.
    """
    (tmp_path / "bot.env").write_text(
        "# mine\nENTRABOT_DATA_DIR=/from/file\nENTRABOT_KEEP_MEMORY_LOCAL=true\nPATH=/evil\nno line\n"
    )
    monkeypatch.setenv("ENTRABOT_ENV_FILE", str(tmp_path / "bot.env"))
    monkeypatch.setenv("ENTRABOT_DATA_DIR", str(tmp_path))
    monkeypatch.delenv("ENTRABOT_KEEP_MEMORY_LOCAL", raising=False)

    config = environment.get_config()

    assert (config.data_dir, config.keep_memory_local) == (tmp_path, True)


def test_a_token_is_in_no_message(monkeypatch):
    """
    Settings are shown in tracebacks and logs.
    """
    monkeypatch.setenv("ENTRABOT_STORAGE_TOKEN", "hush")

    assert "hush" not in repr(environment.get_config())
