"""Keys and tokens on the command line."""

import json
import re

import pytest

SECRET = "0123456789abcdef0123456789abcdef"
KEY = re.compile(r"mp_([0-9a-f]{16})_([0-9A-Za-z]{43})\n")


def test_a_key_is_printed_once_and_nothing_else(cli):
    """
    Stdout is the key, ready for a file; no later command shows it, nor its secret.
    """
    done = cli("key", "create", "laptop", "--space", "alice")
    key_id, secret = KEY.fullmatch(done.out).groups()

    assert (done.code, done.err) == (0, "")
    for shown in (cli("key", "list"), cli("key", "list", "--json"), cli("key", "revoke", key_id)):
        assert key_id in shown.out
        assert secret not in shown.out + shown.err


@pytest.mark.parametrize(
    ("arguments", "spaces", "subject", "rights"),
    [
        (["--space", "alice"], ["alice"], "alice", ["read", "write"]),
        (["-s", "b", "-s", "a"], ["a", "b"], "n", ["read", "write"]),
        (["--all-spaces", "--right", "read"], None, "n", ["read"]),
        (["--right", "admin"], None, "n", ["admin"]),
        (["--right", "admin", "--all-spaces"], None, "n", ["admin"]),
        (["--agent", "weston"], ["weston"], "weston", ["read", "write"]),
        (["--agent", "x-history", "-s", "a", "-s", "b", "-r", "read"], ["a", "b"], "x-history", ["read"]),
        (["--space", "alice", "--subject", "bob"], ["alice"], "bob", ["read", "write"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and value[0].startswith("-") else "",
)
def test_what_a_key_opens(cli, arguments, spaces, subject, rights):
    """
    As asked, and as the list shows it.
    """
    made = cli("key", "create", "n", *arguments, "--json").json
    (listed,) = cli("key", "list", "--json").json["keys"]

    assert (listed["spaces"], listed["subject"], listed["rights"]) == (spaces, subject, rights)
    assert made == listed | {"key": made["key"]}


def test_space_before_the_command_counts(cli):
    """
    A key for one space must not become one for all because of where the option stands.
    """
    made = cli("--space", "alice", "key", "create", "--space", "bob", "--json").json

    assert made["spaces"] == ["alice", "bob"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["name"],
        ["--space", "a", "--all-spaces"],
        ["--agent", "a", "--all-spaces"],
        ["--space", "a", "--right", "king"],
        ["--space", "a", "--ttl", "soon"],
    ],
    ids=" ".join,
)
def test_a_key_that_was_not_thought_through_is_2(cli, arguments):
    """
    What it opens must be said; nothing is created.
    """
    assert cli("key", "create", *arguments).code == 2
    assert not cli.data.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--space", "a", "--right", "admin"],
        ["--space", "a", "--door", "window"],
        ["--agent", ""],
        ["--space", "\x1b"],
    ],
    ids=str,
)
def test_a_key_that_makes_no_sense_is_1(cli, arguments):
    """
    The sentence says why.
    """
    done = cli("key", "create", *arguments)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("memplane: ")


def test_an_environment_variable_does_not_limit_a_key(cli):
    """
    MEMPLANE_SPACE is where commands work, not what a key opens.
    """
    cli.wiring = type(cli.wiring)(
        open=cli.wiring.open, environment={**cli.wiring.environment, "MEMPLANE_SPACE": "x"}
    )

    assert cli("key", "create").code == 2


def test_limits_are_shown(cli):
    """
    Doors, tenant and end.
    """
    cli(
        "key",
        "create",
        "n",
        "--all-spaces",
        "--interface",
        "mcp",
        "--door",
        "ipc",
        "--tenant",
        "acme",
        "--ttl",
        "2d",
    )
    shown = cli("key", "list").out

    assert "every space of acme" in shown
    assert "ipc, mcp" in shown
    assert cli("key", "list", "--json").json["keys"][0]["expires_at"]


def test_revoked_keys_are_listed_on_request(cli):
    """
    The list is of what opens something; the history is there.
    """
    made = cli("key", "create", "--space", "a", "--json").json

    assert cli("key", "revoke", made["id"]).out == f"Revoked {made['id']}, a.\n"
    assert cli("key", "revoke", made["id"], "--json").json["revoked_at"]
    assert cli("key", "list", "--json").json == {"keys": []}
    assert "revoked" in cli("key", "list", "--all").out


def test_a_key_given_instead_of_its_id_is_not_repeated(cli):
    """
    It is in the shell's history already; it need not be in a log as well.
    """
    bearer = cli("key", "create", "--space", "a").out.strip()
    done = cli("key", "revoke", bearer)

    assert (done.code, done.out) == (1, "")
    assert bearer[20:] not in done.err


def test_an_agents_token_is_taken_over_from_a_file_or_stdin(cli, tmp_path):
    """
    Never from an argument.
    """
    token = "weston:" + "0123456789abcdef" * 3
    (tmp_path / "token").write_text(token + "\n")

    from_file = cli("key", "create", "--agent", "weston", "--secret-file", str(tmp_path / "token"))
    from_stdin = cli("key", "create", "--agent", "weston", "--secret-file", "-", stdin=token + "\n")

    assert (from_file.out, from_stdin.out) == (f"{token}\n", f"{token}\n")


@pytest.mark.parametrize("content", [b"hunter2", b"\xff" * 60, None], ids=["weak", "binary", "missing"])
def test_a_token_that_cannot_be_taken_over(cli, tmp_path, content):
    """
    Said without repeating it.
    """
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    done = cli("key", "create", "--agent", "weston", "--secret-file", str(tmp_path / "token"))

    assert (done.code, done.out) == (1, "")
    assert "hunter2" not in done.err
    assert "Error" not in done.err


def test_looking_leaves_no_trace(cli):
    """
    A list of nothing does not make a data directory.
    """
    assert cli("key", "list", "--json").json == {"keys": []}
    assert cli("key", "revoke", "0" * 16).code == 1
    assert not cli.data.exists()


def test_a_token_needs_a_secret(cli):
    """
    The message names the settings.
    """
    done = cli("token", "mint", "alice")

    assert (done.code, done.out) == (1, "")
    assert "MEMPLANE_JWT_SECRET_FILE" in done.err


def test_a_short_secret_is_refused_and_not_repeated(shell):
    """
    Also where the whole program runs.
    """
    done = shell("token", "mint", "alice", MEMPLANE_JWT_SECRET="hunter2")

    assert (done.code, done.out) == (1, "")
    assert "32 bytes" in done.err
    assert "hunter2" not in done.err


def test_a_token_for_programs(cli):
    """
    With its subject and end.
    """
    cli.wiring = type(cli.wiring)(
        open=cli.wiring.open, environment={**cli.wiring.environment, "MEMPLANE_JWT_SECRET": SECRET}
    )
    made = cli("token", "mint", "alice", "--ttl", "1h", "--scope", "admin", "--json")

    assert made.json.keys() == {"token", "subject", "expires_at"}
    assert cli("token", "mint", "alice").out.count(".") == 2
    assert cli("token", "mint", "").code == 1
    assert cli("token", "mint", "alice", "--ttl", "9999w").code == 1
    assert SECRET not in json.dumps(made.json)
