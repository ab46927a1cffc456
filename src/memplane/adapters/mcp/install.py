"""Add Memplane to the configuration of a local MCP client. The file belongs to another program, so the change is
shown first and merged, the file is backed up, and it is replaced atomically."""

import difflib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from memplane.errors import InvalidRequest
from memplane.safety.redact import redact

# Configuration files of other programs: replaced atomically, with the same permissions.


_OWNER_ONLY = 0o600


def replace_file(path: Path, data: bytes) -> None:
    """Replace the file's content. A new file is readable only by its owner."""
    mode = path.stat().st_mode & 0o777 if path.exists() else _OWNER_ONLY
    descriptor, aside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(aside).chmod(mode)
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


CLIENTS = ("claude-code", "claude-desktop", "cursor")
SERVERS = "mcpServers"

_CONFIG_BYTES_MAX = 64 * 1024 * 1024
_DESKTOP_FILE = "claude_desktop_config.json"


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A planned change of a file. `before` is None if the file does not exist."""

    path: Path
    before: str | None
    after: str

    @property
    def needed(self) -> bool:
        return self.before != self.after

    @property
    def diff(self) -> str:
        """The diff for display, without the secrets of other servers."""
        old = [] if self.before is None else self.before.splitlines()
        name = str(self.path)
        lines = difflib.unified_diff(old, self.after.splitlines(), name, name, lineterm="", n=3)
        return redact("\n".join(lines)).text


def config_path(client: str, environment: Mapping[str, str], platform: str) -> Path:
    """The path of a client's configuration for this user."""
    home = environment.get("USERPROFILE") if platform == "win32" else environment.get("HOME")
    if not home:
        raise InvalidRequest("no home directory is set; the client's configuration cannot be located")
    match client:
        case "claude-code":
            return Path(home) / ".claude.json"
        case "cursor":
            return Path(home) / ".cursor" / "mcp.json"
        case "claude-desktop":
            return _desktop_directory(Path(home), environment, platform) / "Claude" / _DESKTOP_FILE
    raise InvalidRequest(f"unknown client {client!r}; use one of {', '.join(CLIENTS)}")


def _desktop_directory(home: Path, environment: Mapping[str, str], platform: str) -> Path:
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        return Path(environment.get("APPDATA") or home / "AppData" / "Roaming")
    return Path(environment.get("XDG_CONFIG_HOME") or home / ".config")


def server_entry(
    client: str, command: str, arguments: Sequence[str], variables: Mapping[str, str]
) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "stdio"} if client == "claude-code" else {}
    entry |= {"command": command, "args": list(arguments)}
    return entry | {"env": dict(variables)} if variables else entry


def planned(path: Path, name: str, entry: Mapping[str, Any]) -> FileChange:
    """Plan the change: add this server and keep everything else. Raises `InvalidRequest` if the file cannot be read."""
    target = path.resolve()  # follow links, because people keep their configuration elsewhere
    before = read_config(target)
    document = {} if before is None or not before.strip() else parsed_config(target, before)
    servers = document.get(SERVERS, {})
    if not isinstance(servers, dict):
        raise InvalidRequest(f"{SERVERS} in {path} is not an object; fix the file first")
    if servers.get(name) == entry and before is not None:
        return FileChange(path=target, before=before, after=before)
    document[SERVERS] = servers | {name: dict(entry)}
    after = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return FileChange(path=target, before=before, after=after)


def write_change(change: FileChange) -> Path | None:
    """Write the change and return the path of the backup. A file that was changed since planning is not overwritten."""
    if read_config(change.path) != change.before:
        raise InvalidRequest(f"{change.path} has changed since it was read; run the command again")
    try:
        change.path.parent.mkdir(parents=True, exist_ok=True)
        backup = None if change.before is None else _copied(change.path)
        replace_file(change.path, change.after.encode("utf-8"))
    except OSError as exc:
        raise InvalidRequest(f"{change.path} cannot be written: {exc.strerror}") from exc
    return backup


def read_config(path: Path) -> str | None:
    """The text of a configuration file; None if it does not exist."""
    try:
        with path.open("rb") as file:
            raw = file.read(_CONFIG_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise InvalidRequest(f"{path} cannot be read: {exc.strerror}") from exc
    if len(raw) > _CONFIG_BYTES_MAX:
        raise InvalidRequest(f"{path} is too large for a configuration file; nothing was changed")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidRequest(f"{path} is not UTF-8; nothing was changed") from exc


def parsed_config(path: Path, text: str) -> dict[str, Any]:
    """Accept plain JSON only. A file with content that cannot be written back unchanged, such as comments, is
    rejected."""
    try:
        document = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as exc:
        raise InvalidRequest(
            f"{path} is not plain JSON ({exc}); add the server by hand, or fix the file"
        ) from exc
    if not isinstance(document, dict):
        raise InvalidRequest(f"{path} is not a JSON object; fix the file first")
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate name in an object")
    return found


def _copied(path: Path) -> Path:
    for number in count(1):
        backup = path.with_name(f"{path.name}.memplane-backup{'' if number == 1 else f'-{number}'}")
        with suppress(FileExistsError):
            descriptor = os.open(backup, os.O_CREAT | os.O_EXCL | os.O_WRONLY, path.stat().st_mode & 0o777)
            with os.fdopen(descriptor, "wb") as file:
                file.write(path.read_bytes())
            return backup
    raise AssertionError
