"""EntraBot's settings for memory. They are read with every call, as EntraBot's programs expect."""

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memplane.adapters.mcp.install import replace_file
from memplane.errors import InvalidRequest

PREFIX: Final = "ENTRABOT_"
KEEP_LOCAL: Final = "ENTRABOT_KEEP_MEMORY_LOCAL"
ENDPOINT: Final = "ENTRABOT_BLOB_ENDPOINT"
CONTAINER: Final = "ENTRABOT_BLOB_CONTAINER"
ENV_FILE: Final = "ENTRABOT_ENV_FILE"
CACHE_DIR: Final = "ENTRABOT_CACHE_DIR"
CACHE_VALIDATE: Final = "ENTRABOT_CACHE_VALIDATE"
PERSONA_SYNC: Final = "ENTRABOT_PERSONA_SYNC"

_YES = ("true", "1", "yes")


@dataclass(frozen=True, kw_only=True)
class EntraBotConfig:
    """The settings for memory. The token is excluded from the representation."""

    data_dir: Path
    cache_dir: Path
    """Where copies of the container are kept, and what was written and is not sent yet."""
    validate_each_read: bool = False
    """For containers that other programs write to without updating the manifest."""
    blob_endpoint: str | None = None
    blob_container: str | None = None
    keep_memory_local: bool = False
    persona_sync: bool = False
    tenant_id: str | None = None
    agent_user_id: str | None = None
    agent_user_upn: str | None = None
    storage_token: str | None = field(default=None, repr=False)

    def cache_of(self, url: str) -> Path:
        """The directory of one container's copies: programs that name the same container share it."""
        return self.cache_dir / hashlib.sha256(url.encode()).hexdigest()[:16]

    @property
    def half_configured(self) -> bool:
        """Whether only one of endpoint and container is set, which is a mistake."""
        return bool(self.blob_endpoint) != bool(self.blob_container)


def config_from(environment: Mapping[str, str]) -> EntraBotConfig:
    data = environment.get("ENTRABOT_DATA_DIR")
    cache = environment.get(CACHE_DIR)
    data_dir = Path(data).expanduser() if data else _home_of_data(environment)
    return EntraBotConfig(
        data_dir=data_dir,
        cache_dir=Path(cache).expanduser() if cache else data_dir.parent / "cache" / "blob",
        validate_each_read=environment.get(CACHE_VALIDATE, "").strip().lower() == "each",
        blob_endpoint=environment.get(ENDPOINT) or None,
        blob_container=environment.get(CONTAINER) or None,
        keep_memory_local=environment.get(KEEP_LOCAL, "").strip().lower() in _YES,
        persona_sync=environment.get(PERSONA_SYNC, "").strip().lower() == "on",
        tenant_id=environment.get("ENTRABOT_TENANT_ID"),
        agent_user_id=environment.get("ENTRABOT_AGENT_USER_ID"),
        agent_user_upn=environment.get("ENTRABOT_AGENT_UPN") or environment.get("ENTRABOT_AGENT_USER_UPN"),
        storage_token=environment.get("ENTRABOT_STORAGE_TOKEN"),
    )


def home_of(environment: Mapping[str, str]) -> Path:
    """The user's home directory, taken from the environment."""
    home = environment.get("USERPROFILE" if sys.platform == "win32" else "HOME")
    return Path(home) if home else Path.home()


def _home_of_data(environment: Mapping[str, str]) -> Path:
    if sys.platform == "win32" and (local := environment.get("LOCALAPPDATA")):
        return Path(local) / "entrabot" / "data"
    return home_of(environment) / ".entrabot" / "data"


# The `.env` file: a line NAME=value for each setting. It contains other programs' secrets, so no copy of it is made.


def read_env(path: Path) -> dict[str, str]:
    """EntraBot's settings in a `.env` file; empty if there is no such file. Later lines take precedence."""
    found: dict[str, str] = {}
    for line in _text(path).splitlines():
        name, assigned, value = line.strip().partition("=")
        if assigned and name.strip().startswith(PREFIX):
            found[name.strip()] = value.strip()
    return found


def write_env(path: Path, values: Mapping[str, str]) -> bool:
    """Set these values and keep all other lines; returns whether the file changed."""
    before = _text(path)
    after = _with(before, values)
    if after == before:
        return False
    target = path.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, after.encode("utf-8", "surrogateescape"))
    except OSError as exc:
        raise InvalidRequest(f"{path} cannot be written: {exc.strerror}") from exc
    return True


def _with(text: str, values: Mapping[str, str]) -> str:
    """An existing name keeps its position and appears once."""
    for value in values.values():
        if not value.isprintable():
            raise InvalidRequest("a setting must be one line without control characters")
    left = dict(values)
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        name = line.partition("=")[0].strip()
        if name not in values:
            lines.append(line)
        elif name in left:
            lines.append(f"{name}={left.pop(name)}\n")
    if left and lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join([*lines, *(f"{name}={value}\n" for name, value in left.items())])


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
    except OSError as exc:
        raise InvalidRequest(f"{path} cannot be read: {exc.strerror}") from exc
