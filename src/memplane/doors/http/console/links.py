"""Where pages are. Any text is a legal name of a space, so it never stands in a path as it is."""

from urllib.parse import quote, urlencode

ROOT = "/console"
SIGN_IN = f"{ROOT}/sign-in"

_MARK = "@"
"""Before a name: a space called `..` must not lead somewhere else."""


def space_link(owner: str, page: str = "", /, **query: object) -> str:
    path = f"{ROOT}/space/{_MARK}{quote(owner, safe='')}"
    return with_query(f"{path}/{page}" if page else path, **query)


def with_query(path: str, **query: object) -> str:
    given = {name: value for name, value in query.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(given)}" if given else path


def owner_of(segment: str) -> str:
    """The name that a segment of a path stands for."""
    return segment.removeprefix(_MARK)


def named(value: str) -> str:
    """A name as one segment of a path."""
    return f"{_MARK}{quote(value, safe='')}"
