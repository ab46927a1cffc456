"""A client's configuration belongs to others: merged, shown, copied, replaced in one step, or left as it is."""

import json
from pathlib import Path

import pytest

from memplane.adapters.mcp.install import CLIENTS, config_path, planned, server_entry, write_change
from memplane.errors import InvalidRequest

ENTRY = {"command": "python", "args": ["-m", "memplane", "mcp"]}
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize(
    ("client", "platform", "environment", "place"),
    [
        ("claude-code", "linux", {"HOME": "/h"}, "/h/.claude.json"),
        ("claude-code", "darwin", {"HOME": "/h"}, "/h/.claude.json"),
        ("cursor", "linux", {"HOME": "/h"}, "/h/.cursor/mcp.json"),
        ("claude-desktop", "linux", {"HOME": "/h"}, "/h/.config/Claude/claude_desktop_config.json"),
        (
            "claude-desktop",
            "linux",
            {"HOME": "/h", "XDG_CONFIG_HOME": "/x"},
            "/x/Claude/claude_desktop_config.json",
        ),
        (
            "claude-desktop",
            "darwin",
            {"HOME": "/h"},
            "/h/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        (
            "claude-desktop",
            "win32",
            {"USERPROFILE": "/h", "APPDATA": "/h/Roaming"},
            "/h/Roaming/Claude/claude_desktop_config.json",
        ),
    ],
)
def test_each_client_has_its_place(client, platform, environment, place):
    """
    The file is where the client looks for it on that system.
    """
    assert config_path(client, environment, platform) == Path(place)


def test_without_a_home_there_is_no_place():
    """
    No home, no guess.
    """
    for client in CLIENTS:
        with pytest.raises(InvalidRequest, match="home"):
            config_path(client, {}, "linux")


def test_other_servers_and_settings_stay(tmp_path):
    """
    Only our own entry changes; the order, other servers and everything else are kept, and so is a copy.
    """
    file = tmp_path / "config.json"
    before = {"theme": "dark", "mcpServers": {"other": {"command": "x", "env": {"K": "v"}}}, "é": [1.5, None]}
    file.write_text(json.dumps(before), "utf-8")
    file.chmod(0o600)

    backup = write_change(planned(file, "memplane", ENTRY))

    after = json.loads(file.read_text("utf-8"))
    assert list(after) == ["theme", "mcpServers", "é"]
    assert after["mcpServers"] == {"other": before["mcpServers"]["other"], "memplane": ENTRY}
    assert json.loads(backup.read_text("utf-8")) == before
    assert (file.stat().st_mode & 0o777, backup.stat().st_mode & 0o777) == (0o600, 0o600)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "config.json.memplane-backup"]


def test_doing_it_again_changes_nothing(tmp_path):
    """
    The same entry needs no change; another one replaces ours and keeps the first copy.
    """
    file = tmp_path / "config.json"
    assert write_change(planned(file, "memplane", ENTRY)) is None
    assert not planned(file, "memplane", ENTRY).needed
    first = write_change(planned(file, "memplane", {**ENTRY, "args": []}))
    second = write_change(planned(file, "memplane", ENTRY))

    assert first != second
    assert json.loads(file.read_text("utf-8")) == {"mcpServers": {"memplane": ENTRY}}


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "// a comment\n{}",
        "[]",
        '"x"',
        '{"mcpServers": []}',
        '{"mcpServers": {}, "mcpServers": {"a": 1}}',
        "[" * 100_000,
    ],
)
def test_what_cannot_be_kept_is_not_touched(tmp_path, text):
    """
    A file that we could not write back as it was stays as it is.
    """
    file = tmp_path / "config.json"
    file.write_text(text, "utf-8")

    with pytest.raises(InvalidRequest):
        planned(file, "memplane", ENTRY)
    assert file.read_text("utf-8") == text


def test_bytes_that_are_no_text_are_not_touched(tmp_path):
    """
    Neither is a file in another encoding.
    """
    file = tmp_path / "config.json"
    file.write_bytes(b"\xff\xfe{\x00}\x00")

    with pytest.raises(InvalidRequest, match="UTF-8"):
        planned(file, "memplane", ENTRY)


def test_a_file_that_changed_meanwhile_is_left(tmp_path):
    """
    A client that writes its own file between showing and writing does not lose it.
    """
    file = tmp_path / "config.json"
    change = planned(file, "memplane", ENTRY)
    file.write_text('{"new": true}', "utf-8")

    with pytest.raises(InvalidRequest, match="has changed since"):
        write_change(change)
    assert file.read_text("utf-8") == '{"new": true}'


def test_a_linked_file_stays_a_link(tmp_path):
    """
    Who links their configuration from elsewhere still does so afterwards.
    """
    real, link = tmp_path / "dotfiles.json", tmp_path / "config.json"
    real.write_text("{}", "utf-8")
    link.symlink_to(real)
    write_change(planned(link, "memplane", ENTRY))

    assert link.is_symlink()
    assert "memplane" in real.read_text("utf-8")


def test_the_diff_shows_the_change_and_no_secret(tmp_path):
    """
    Lines around the change may hold other servers' tokens.
    """
    file = tmp_path / "config.json"
    text = json.dumps({"mcpServers": {"other": {"env": {"GITHUB_TOKEN": TOKEN}}}}, indent=2)
    file.write_text(text, "utf-8")
    diff = planned(file, "memplane", server_entry("cursor", "python", ["mcp"], {})).diff

    assert '+    "memplane": {' in diff
    assert TOKEN not in diff
