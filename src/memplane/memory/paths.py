"""Paths of agent files: `/memories/notes/today.md`. A path is a name in a space and never reaches a disk, but it is
validated as if it did, because a later reader may use it as one."""

import re

from memplane.errors import InvalidRequest
from memplane.memory.checks import check_encodable, check_no_secret
from memplane.safety.sanitize import visible

ROOT = "/memories"
PATH_CHARS_MAX = 512

_ENCODED = re.compile(r"%(?:2e|2f|5c|25|00)", re.IGNORECASE)


def checked_path(path: str, *, field: str = "path") -> str:
    """The canonical form: no doubled, trailing or dotted parts. Any path that tries to leave the root is rejected,
    even if it leads back."""
    if not isinstance(path, str):
        raise InvalidRequest(f"{field}: give text, not {type(path).__name__}", field=field)
    check_encodable(path, field=field)
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise InvalidRequest(f"{field} must begin with {ROOT}/", field=field)
    if "\\" in path or _ENCODED.search(path):
        raise InvalidRequest(
            f"{field} contains a backslash or an encoded separator; use plain names", field=field
        )
    if not path.isprintable() or visible(path) != path:
        raise InvalidRequest(f"{field} contains an invisible character; use plain names", field=field)
    parts = [part for part in path.removeprefix(ROOT).split("/") if part not in ("", ".")]
    if ".." in parts:
        raise InvalidRequest(f"{field} would leave {ROOT}; leave out the ..", field=field)
    if any(part != part.strip() for part in parts):
        raise InvalidRequest(f"{field} has a name that begins or ends with a blank", field=field)
    canonical = "/".join((ROOT, *parts))
    if len(canonical) > PATH_CHARS_MAX:
        raise InvalidRequest(f"{field} is longer than {PATH_CHARS_MAX} characters", field=field)
    return check_no_secret(canonical, field=field)


def is_path(key: str) -> bool:
    """Whether a key could come from `checked_path`: other adapters may use any key for a fact."""
    try:
        return checked_path(key) == key
    except InvalidRequest:
        return False


def folders_above(path: str) -> list[str]:
    """`/memories/a/b.md` is in `/memories/a`; the root is not listed."""
    parts = path.removeprefix(ROOT).split("/")[1:-1]
    return ["/".join((ROOT, *parts[: n + 1])) for n in range(len(parts))]
