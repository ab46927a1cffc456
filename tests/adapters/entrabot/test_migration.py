"""EntraBot's move from files on a machine to a place for memory."""

import hashlib

import pytest
from entrabot.storage.backend import BlobBackend, LocalBackend
from entrabot.storage.blob import BlobStore
from entrabot.storage.migration import MigrationReport, migrate_local_to_backend

from blob_server import CONTAINER, TOKEN

FILES = {
    "interactions/2026-04-17.jsonl": '{"event": "msg"}\n{"event": "reply"}\n',
    "summaries/2026-04-17.html": "<html>day</html>",
    "state/watched_chats": "chat-id-1\nchat-id-2\n",
}


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


def digest(root):
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def source(tmp_path):
    return write(tmp_path / "source", FILES)


@pytest.fixture
def target(tmp_path):
    return LocalBackend(tmp_path / "target")


def contents(backend):
    return {key: backend.read_text(key) for key in backend.list()}


# One directory


def test_every_file_is_copied_under_its_own_path(source, target):
    """
    Text for text.
    """
    report = migrate_local_to_backend([(source, "")], target)

    assert contents(target) == FILES
    assert (report.copied, report.skipped) == (3, 0)


def test_what_is_there_already_is_left_alone(source, target):
    """
    The cloud is right when both have it, so moving twice changes nothing.
    """
    target.write_text("interactions/2026-04-17.jsonl", "ALREADY THERE")

    first = migrate_local_to_backend([(source, "")], target)
    second = migrate_local_to_backend([(source, "")], target)

    assert target.read_text("interactions/2026-04-17.jsonl") == "ALREADY THERE"
    assert (first.copied, first.skipped) == (2, 1)
    assert (second.copied, second.skipped) == (0, 3)


def test_the_files_stay(source, target):
    """
    They are the way back.
    """
    before = digest(source)

    migrate_local_to_backend([(source, "")], target)

    assert digest(source) == before


def test_a_directory_that_is_not_there_is_nothing_to_copy(tmp_path, target):
    """
    And no error.
    """
    report = migrate_local_to_backend([(tmp_path / "does-not-exist", "")], target)

    assert (report.copied, report.skipped, report.errors) == (0, 0, [])


def test_the_report_names_what_was_copied(source, target):
    """
    Key by key.
    """
    report = migrate_local_to_backend([(source, "")], target)

    assert isinstance(report, MigrationReport)
    assert set(report.keys_copied) == set(FILES)


def test_the_report_counts_characters(source, target):
    """
    Under the name of bytes, as EntraBot does.
    """
    (source / "zoe.txt").write_text("Zoë", "utf-8")

    report = migrate_local_to_backend([(source, "")], target)

    assert report.bytes_copied == sum(map(len, FILES.values())) + 3


# Several


def test_a_second_directory_goes_below_its_prefix(tmp_path, target):
    """
    Claude Code's memory beside the agent's own.
    """
    agent = write(tmp_path / "agent", {"email_cursor.txt": "cursor"})
    persona = write(tmp_path / "persona", {"MEMORY.md": "index", "user_role.md": "role"})

    report = migrate_local_to_backend([(agent, ""), (persona, "claude_memory")], target)

    assert contents(target) == {
        "email_cursor.txt": "cursor",
        "claude_memory/MEMORY.md": "index",
        "claude_memory/user_role.md": "role",
    }
    assert report.copied == 3


def test_what_is_there_below_a_prefix_is_left_alone(tmp_path, target):
    """
    As at the top.
    """
    persona = write(tmp_path / "persona", {"MEMORY.md": "local"})
    target.write_text("claude_memory/MEMORY.md", "cloud")

    report = migrate_local_to_backend([(persona, "claude_memory")], target)

    assert target.read_text("claude_memory/MEMORY.md") == "cloud"
    assert report.skipped == 1


def test_one_directory_that_is_not_there_does_not_keep_the_other(tmp_path, target):
    """
    Not everybody uses Claude Code.
    """
    agent = write(tmp_path / "agent", {"f.txt": "f"})

    report = migrate_local_to_backend([(agent, ""), (tmp_path / "none", "claude_memory")], target)

    assert (report.copied, report.errors) == (1, [])


def test_the_same_name_in_two_directories_gives_two_keys(tmp_path, target):
    """
    Neither overwrites the other.
    """
    first = write(tmp_path / "a", {"README.md": "A"})
    second = write(tmp_path / "b", {"README.md": "B"})

    migrate_local_to_backend([(first, ""), (second, "claude_memory")], target)

    assert contents(target) == {"README.md": "A", "claude_memory/README.md": "B"}


# Beyond


def test_a_file_that_is_no_text_is_named_and_the_others_are_copied(source, target):
    """
    With its key and the reason.
    """
    (source / "picture.png").write_bytes(b"\x89PNG\xff")

    report = migrate_local_to_backend([(source, "")], target)

    assert report.copied == 3
    assert [key for key, _ in report.errors] == ["picture.png"]


def test_a_link_to_elsewhere_is_not_uploaded(source, target, tmp_path):
    """
    Only what is in the directory was asked for.
    """
    (tmp_path / "private.txt").write_text("private")
    (source / "link.txt").symlink_to(tmp_path / "private.txt")

    report = migrate_local_to_backend([(source, "")], target)

    assert [key for key, _ in report.errors] == ["link.txt"]
    assert "private" not in contents(target).values()


def test_line_ends_and_letters_arrive_as_they_are(tmp_path, blob_server):
    """
    Byte for byte, in a container too.
    """
    source = write(tmp_path / "source", {"x.txt": "Zoë\r\n記憶\r"})
    store = BlobStore(endpoint=blob_server.endpoint, container=CONTAINER, token_provider=lambda: TOKEN)

    report = migrate_local_to_backend([(source, "")], BlobBackend(store))

    assert report.errors == []
    assert blob_server.blobs["x.txt"][0] == "Zoë\r\n記憶\r".encode()


def test_what_came_between_looking_and_writing_is_not_overwritten(source, blob_server):
    """
    A container is told to create and nothing else, so another machine's write stays.
    """
    store = BlobStore(endpoint=blob_server.endpoint, container=CONTAINER, token_provider=lambda: TOKEN)

    def interfere(asked):
        if asked.method == "PUT" and asked.path.endswith("watched_chats"):
            blob_server.put("state/watched_chats", b"theirs")

    blob_server.before = interfere
    report = migrate_local_to_backend([(source, "")], BlobBackend(store))

    assert blob_server.texts()["state/watched_chats"] == "theirs"
    assert (report.copied, report.skipped) == (2, 1)


class Killed(BaseException):
    """Nothing in the product catches this."""


@pytest.mark.parametrize("after", range(10))
def test_killed_at_any_point_it_goes_on_where_it_was(source, blob_server, after):
    """
    Whether the last request was carried out or not, the second run completes the first and changes nothing of it.
    """
    store = BlobStore(endpoint=blob_server.endpoint, container=CONTAINER, token_provider=lambda: TOKEN)

    class Dying(BlobBackend):
        left = after

        def _spend(self):
            Dying.left -= 1
            if Dying.left < 0:
                raise Killed

        def exists(self, key):
            self._spend()
            return super().exists(key)

        def create_text(self, key, content):
            self._spend()
            done = super().create_text(key, content)
            self._spend()
            return done

    before = digest(source)
    if after < 9:
        with pytest.raises(Killed):
            migrate_local_to_backend([(source, "")], Dying(store))
    else:
        migrate_local_to_backend([(source, "")], Dying(store))
    there = dict(blob_server.blobs)

    report = migrate_local_to_backend([(source, "")], BlobBackend(store))

    assert blob_server.texts() == FILES
    assert {name: blob_server.blobs[name] for name in there} == there
    assert (report.copied, report.skipped) == (3 - len(there), len(there))
    assert digest(source) == before
