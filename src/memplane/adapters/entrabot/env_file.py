"""EntraBot's `.env`: a line `NAME=value` for each setting. It holds secrets of others, so no copy of it is left about."""

from collections.abc import Mapping
from pathlib import Path

from memplane.adapters.entrabot.config import PREFIX
from memplane.adapters.mcp.install import replace_file
from memplane.errors import InvalidRequest


def read_env(path: Path) -> dict[str, str]:
    """EntraBot's settings in it; none where there is no such file. Later lines win."""
    found: dict[str, str] = {}
    for line in _text(path).splitlines():
        name, assigned, value = line.strip().partition("=")
        if assigned and name.strip().startswith(PREFIX):
            found[name.strip()] = value.strip()
    return found


def write_env(path: Path, values: Mapping[str, str]) -> bool:
    """Set these and leave every other line as it is; whether anything had to be changed."""
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
    """A name that stands there keeps its place, and stands there once."""
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
