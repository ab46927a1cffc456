"""Paths of the files an agent keeps: `/memories/notes/today.md`. A path is a name in a space and never reaches a disk;
it is checked as if it did, because whoever reads it later may take it for one."""

import re

from memplane.errors import InvalidRequest
from memplane.memory.checks import check_encodable, check_no_secret
from memplane.safety.sanitize import visible

ROOT = "/memories"
PATH_CHARS_MAX = 512

_ENCODED = re.compile(r"%(?:2e|2f|5c|25|00)", re.IGNORECASE)


def checked_path(path: str, *, field: str = "path") -> str:
    """The one way to write it: no doubled, trailing or dotted parts. Anything that tries to leave is refused, also where
    it would lead back in."""
    if not isinstance(path, str):
        raise InvalidRequest(f"{field}: give text, not {type(path).__name__}", field=field)
    check_encodable(path, field=field)
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise InvalidRequest(f"{field} must begin with {ROOT}/", field=field)
    if "\\" in path or _ENCODED.search(path):
        raise InvalidRequest(
            f"{field} holds a backslash or an encoded separator; use plain names", field=field
        )
    if not path.isprintable() or visible(path) != path:
        raise InvalidRequest(f"{field} holds a character that cannot be seen; use plain names", field=field)
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
    """Whether a key could have been made by `checked_path`: other doors may put a fact under any key."""
    try:
        return checked_path(key) == key
    except InvalidRequest:
        return False


def folders_above(path: str) -> list[str]:
    """`/memories/a/b.md` lies in `/memories/a`; the root is not among them."""
    parts = path.removeprefix(ROOT).split("/")[1:-1]
    return ["/".join((ROOT, *parts[: n + 1])) for n in range(len(parts))]
