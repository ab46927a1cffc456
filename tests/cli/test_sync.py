"""`memplane sync`: two data directories as two machines, and a directory as the place."""

import json
import os
import signal

import msgspec
import pytest

from command_line import Inside
from memplane.cli.sync import remembered


@pytest.fixture
def place(tmp_path):
    return f"file://{tmp_path}/place"


class Machine(Inside):
    """The command line of a machine with a data directory of its own."""

    def __init__(self, folder):
        super().__init__(folder)
        self._wiring = self.wiring

    def __call__(self, *arguments, **environment):
        self.wiring = msgspec.structs.replace(
            self._wiring,
            environment={**self._wiring.environment, "MEMPLANE_EMBEDDING": "none", **environment},
        )
        return super().__call__(*arguments)


@pytest.fixture
def desk(tmp_path):
    machine = Machine(tmp_path / "desk")
    machine("store", "preference", "Prefers green tea", "--space", "alice")
    return machine


@pytest.fixture
def lap(tmp_path):
    return Machine(tmp_path / "lap")


def test_a_memory_follows(desk, lap, place):
    """
    Push on one machine, pull on the other; where to is remembered on both.
    """
    pushed = desk("sync", "push", "alice", "--to", place, "--yes", "--json")
    pulled = lap("sync", "pull", "alice", "--to", place, "--json")

    assert (pushed.code, pushed.json["given"]["entries"]) == (0, 1)
    assert (pulled.code, pulled.json["taken"]["added"]) == (0, 1)
    assert "green tea" in lap("brief", "--space", "alice").out
    lap("put", "theme", "dark", "--space", "alice")
    assert lap("sync", "push", "alice").code == 0
    assert "1 entry" in desk("sync", "push", "alice").out
    assert desk("get", "theme", "--space", "alice").out == "dark\n"


def test_status_says_what_is_missing(desk, place):
    """
    Exit code 3 while the sides are not even, 0 once they are.
    """
    before = desk("sync", "status", "alice", "--to", place, "--json")
    desk("sync", "push", "alice", "--yes")
    after = desk("sync", "status", "alice", "--json")

    assert (before.code, before.json["unpushed"], before.json["empty"]) == (3, 1, True)
    assert (after.code, after.json["unpushed"], after.json["even"]) == (0, 0, True)
    assert "In sync" in desk("sync", "status", "alice").out


@pytest.mark.parametrize("options", [(), ("--look",)])
def test_a_pull_from_a_place_where_nothing_is_fails(lap, place, tmp_path, options):
    """
    A mistyped address makes no space and is not remembered.
    """
    pulled = lap("sync", "pull", "alice", "--to", place, *options)

    assert (pulled.code, pulled.out) == (1, "")
    assert f"{place} is empty" in pulled.err
    assert lap("spaces").out == ""
    lap("store", "fact", "Likes cats", "--space", "alice")
    lap("sync", "pull", "alice", "--to", place)
    assert "never synced" in lap("sync", "status", "alice").err
    assert not (tmp_path / "place").exists()


def test_a_place_that_holds_only_files_by_hand_is_one(lap, place, tmp_path):
    """
    No machine has pushed there yet.
    """
    folder = tmp_path / "place" / "behavioral"
    folder.mkdir(parents=True)
    (folder / "tea.md").write_text("Prefers green tea")

    assert lap("sync", "pull", "alice", "--to", place, "--look").code == 0
    assert "green tea" in lap("memories", "--space", "alice").out


def test_the_first_push_says_how_much_and_needs_a_yes(desk, place, tmp_path):
    """
    Where nobody can be asked, nothing is uploaded.
    """
    done = desk("sync", "push", "alice", "--to", place)

    assert done.code == 1
    assert "1 entry (~1 KB) of 'alice' would be uploaded" in done.err
    assert not (tmp_path / "place").exists()


@pytest.mark.parametrize("arguments", [("--keep-memory-local",), ()])
@pytest.mark.parametrize("command", ["push", "pull", "status", "watch"])
def test_memory_that_is_to_stay_stays(desk, command, arguments):
    """
    With the option or the variable, a place elsewhere is refused before anything is asked of it.
    """
    environment = {} if arguments else {"MEMPLANE_KEEP_MEMORY_LOCAL": "true"}
    done = desk("sync", command, "alice", "--to", "s3://bucket/alice", *arguments, **environment)

    assert done.code == 1
    assert "kept on this machine" in done.err


def test_a_directory_is_on_this_machine(desk, place):
    """
    What is kept local may be synced with a directory.
    """
    assert desk("sync", "push", "alice", "--to", place, "--yes", "--keep-memory-local").code == 0


def test_nowhere_to_sync_to(desk):
    """
    Without an address, and none to remember, it says what to give.
    """
    done = desk("sync", "push", "alice")

    assert done.code == 1
    assert "--to URL" in done.err


def test_two_names_are_one_too_many(desk, place):
    """
    A space named twice must be the same.
    """
    assert desk("sync", "push", "alice", "--space", "alice", "--to", place, "--yes").code == 0
    assert "conflicting spaces" in desk("sync", "push", "alice", "--space", "bob", "--to", place).err


def test_damage_is_told(desk, lap, place, tmp_path):
    """
    Exit code 3, one line about what was passed over, and the rest is taken in.
    """
    desk("sync", "push", "alice", "--to", place, "--yes")
    (segment,) = (tmp_path / "place" / "ledger").rglob("*.jsonl")
    segment.write_bytes(segment.read_bytes()[:-5])

    done = lap("sync", "pull", "alice", "--to", place)

    assert done.code == 3
    assert "damaged" in done.err


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://a.blob.core.windows.net/c/p?sv=1&sig=x", "https://a.blob.core.windows.net/c/p"),
        ("az://account/container/a?b", "az://account/container/a?b"),
        ("s3://bucket/alice", "s3://bucket/alice"),
        ("/mnt/place", "/mnt/place"),
    ],
)
def test_a_token_is_not_remembered(given, kept):
    """
    What stands behind the ? of an https address opens the place for whoever reads it.
    """
    assert remembered(given) == kept


def test_a_watch_syncs_and_ends_with_sigterm(desk, place, commands):
    """
    What is written while it runs is pushed; it ends by itself, with exit code 0.
    """
    command = ["sync", "watch", "alice", "--to", place, "--yes", "--every", "1", "--json"]
    environment = {"PATH": os.environ["PATH"], "MEMPLANE_DATA": str(desk.data), "MEMPLANE_EMBEDDING": "none"}
    with commands.start(command, environment=environment, stderr=2) as running:
        try:
            first = json.loads(running.stdout.readline())
            desk("retain", "more", "--space", "alice")
            second = json.loads(running.stdout.readline())
            running.send_signal(signal.SIGTERM)

            assert (first["given"]["entries"], second["given"]["entries"]) == (1, 1)
            assert running.wait(30) == 0
        finally:
            running.kill()
