"""`memplane migrate` and `memplane backup`, as a person types them."""

import signal
import sqlite3
from contextlib import closing

import pytest
from msgspec.structs import replace


def test_an_installation_moves(cli, tmp_path):
    """
    Everything is in the other place afterwards; moved again, nothing is left to do; compared, it is the same.
    """
    cli("retain", "I like jazz", "--space", "alice")
    cli("put", "k", "v", "--space", "bob")
    key = cli("key", "create", "laptop", "--space", "alice").out.strip()
    source, target = str(cli.data), str(tmp_path / "target")
    first = cli("migrate", source, target, "--json")
    again = cli("migrate", source, target)
    same = cli("migrate", source, target, "--check", "--json")

    assert (first.code, first.json["ok"], first.json["report"]["spaces"]) == (0, True, 2)
    assert "moving: 0 of 2 spaces" in first.err
    assert (again.code, "0 written" in again.out) == (0, True)
    assert (same.code, same.json["checked"], same.json["report"]["verified"]) == (0, True, 2)
    assert cli("get", "k", "--space", "bob", "--data", target).out == cli("get", "k", "--space", "bob").out
    assert key.split("_")[1] in cli("key", "list", "--data", target).out


def test_encrypted_files_move_into_a_database_and_back(cli, tmp_path, postgres_url):
    """
    The key is that of the files; with another one, nothing is read, and what is not encrypted any more is said to be.
    """
    environment = cli.wiring.environment
    cli.wiring = replace(cli.wiring, environment=environment | {"MEMPLANE_KEY": "ab" * 32})
    cli("put", "k", "v")
    there = cli("migrate", str(cli.data), postgres_url)
    back = cli("migrate", postgres_url, str(tmp_path / "back"), "--json")
    value = cli("get", "k", "--data", str(tmp_path / "back"))
    cli.wiring = replace(cli.wiring, environment=environment | {"MEMPLANE_KEY": "cd" * 32})
    wrong = cli("migrate", str(cli.data), str(tmp_path / "other"))

    assert (there.code, back.code, value.out) == (0, 0, "v\n")
    assert "does not encrypt" in there.err
    assert (wrong.code, "the key does not fit" in wrong.err) == (4, True)
    assert not (tmp_path / "other").exists()


def test_what_differs_is_an_exit_code(cli, tmp_path):
    """
    A script sees that something is missing.
    """
    cli("retain", "I like jazz")
    source, target = str(cli.data), str(tmp_path / "target")
    cli("migrate", source, target)
    cli("retain", "later")
    done = cli("migrate", source, target, "--check")

    assert done.code == 3
    assert "ledger: 1 row differs" in done.out
    assert cli("migrate", source, target).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{nowhere}", "{target}"], "does not exist"),
        (["{empty}", "{target}"], "is empty"),
        (["{source}", "{source}"], "are the same"),
        (["", "{target}"], "FROM is empty"),
        (["{source}", "{other}"], "not a copy of the source"),
        (["{source}", "postgresql://me:hunter2@127.0.0.1:1/x"], "cannot be reached"),
    ],
)
def test_what_cannot_be_moved_says_why(cli, tmp_path, arguments, message):
    """
    Bad input is normal input, and nothing is written; a password is never shown.
    """
    cli("retain", "I like jazz")
    cli("retain", "mine", "--data", str(tmp_path / "other"))
    (tmp_path / "empty").mkdir()
    places = {name: str(tmp_path / name) for name in ("nowhere", "empty", "target", "other")}
    done = cli("migrate", *(it.format(source=cli.data, **places) for it in arguments))

    assert done.code in {1, 4}
    assert message in done.err
    assert "hunter2" not in done.err + done.out
    assert not (tmp_path / "target").exists()
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_backup_is_restored(cli, tmp_path):
    """
    A backup is taken again and again; each is whole, holds nothing that was forgotten before, and can be used or moved.
    """
    backup, restored = str(tmp_path / "backup"), str(tmp_path / "restored")
    cli("retain", "I like jazz", "--conversation", "c")
    cli("put", "k", "v")
    first = cli("backup", backup)
    cli("forget", "--conversation", "c", "--yes")
    second = cli("backup", backup, "--json")

    assert (first.code, second.code, second.json["ok"]) == (0, 0, True)
    assert first.out.startswith("Copied: 1 space")
    assert cli("ledger", "verify", "--data", backup).code == 0
    assert cli("migrate", backup, restored).code == 0
    assert cli("doctor", "--data", restored).code == 0
    assert cli("get", "k", "--data", restored).out == "v\n"
    assert not any(
        b"jazz" in path.read_bytes() for path in (tmp_path / "backup").rglob("*") if path.is_file()
    )


def test_a_backup_does_not_write_over_another_installation(cli, tmp_path):
    """
    What is in the way is left as it is.
    """
    cli("retain", "I like jazz")
    cli("retain", "mine", "--data", str(tmp_path / "other"))
    done = cli("backup", str(tmp_path / "other"))

    assert (done.code, "not a copy of the source" in done.err) == (1, True)
    assert cli("backup", str(cli.data)).code == 1


@pytest.mark.parametrize("command", ["backup", "migrate {source}", "migrate --check {source}"])
@pytest.mark.parametrize(
    "junk", ["other.txt", "spaces/mine.txt", "spaces/default/mine.db", "catalog.db", ".bashrc"]
)
def test_a_directory_of_somebody_else_is_left_alone(cli, tmp_path, command, junk):
    """
    Nothing is written where something else is, whatever that is called, down to databases that are not ours.
    """
    cli("retain", "I like jazz")
    file = tmp_path / "junk" / junk
    file.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE mine (a)")
    before = file.read_bytes()
    done = cli(*command.format(source=cli.data).split(), str(tmp_path / "junk"))

    assert (done.code, f"there is '{junk}' in it" in done.err) == (1, True)
    assert file.read_bytes() == before
    assert [path for path in (tmp_path / "junk").rglob("*") if path.is_file()] == [file]


@pytest.mark.parametrize(
    "left",
    [
        "spaces/default/.0123.new",
        "spaces/default/.0123.new-wal",
        "databases/x/run",
        "lost+found/x",
        ".0.probe",
    ],
)
def test_an_unfinished_copy_is_finished(cli, tmp_path, left):
    """
    What a kill leaves behind, what this machine keeps beside a database, and what a disk has of itself are in nobody's way.
    """
    cli("retain", "I like jazz")
    file = tmp_path / "copy" / left
    file.parent.mkdir(parents=True)
    file.write_bytes(b"half")

    assert cli("backup", str(tmp_path / "copy")).code == 0


@pytest.mark.parametrize("command", ["backup", "migrate"])
def test_whoever_ends_a_copy_is_told_how_to_go_on(cli, tmp_path, command):
    """
    Ctrl-C leaves half a copy, which the next run makes whole.
    """
    cli("retain", "I like jazz")
    wiring, target = cli.wiring, str(tmp_path / "target")

    def interrupted(data, environment):
        if data == target:
            signal.raise_signal(signal.SIGINT)
        return wiring.open(data, environment)

    cli.wiring = replace(wiring, open=interrupted)
    arguments = [command, *([str(cli.data)] if command == "migrate" else []), target]
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # who tests with many processes ignores it
    try:
        ended = cli(*arguments)
    finally:
        signal.signal(signal.SIGINT, before)
    cli.wiring = wiring

    assert (ended.code, ended.out, "run it again to continue" in ended.err) == (130, "", True)
    assert cli(*arguments).code == 0
