"""URLs of the console. Any text is a legal space name, so names are always escaped in a path."""

import re
from urllib.parse import quote, unquote, urlencode

ROOT = "/console"
SIGN_IN = f"{ROOT}/sign-in"

_ADDRESS = re.compile(r"[A-Za-z0-9/?@%&=+~_.,:;!$'()*-]{1,2000}", re.ASCII)
_NOWHERE = frozenset({"sign-in", "sign-out", "enter", "static"})
"""Paths that a redirect after sign-in must not use."""
_NO_NAMES = frozenset({"", ".", ".."})
_MARK = "@"
"""A prefix of every name, so that a space called `..` does not change the path."""


def space_link(owner: str, page: str = "", /, **query: object) -> str:
    path = f"{ROOT}/space/{_MARK}{quote(owner, safe='')}"
    return with_query(f"{path}/{page}" if page else path, **query)


def with_query(path: str, **query: object) -> str:
    given = {name: value for name, value in query.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(given)}" if given else path


def owner_of(segment: str) -> str:
    """Return the name that a path segment encodes."""
    return segment.removeprefix(_MARK)


def safe_redirect(asked: str) -> str:
    """Return the target if it is a console page, else the first page. Browsers treat a backslash as a slash, ignore
    line breaks, and resolve `..` in every encoding; such targets are rejected."""
    path = asked.partition("?")[0]
    root, *parts = path.removeprefix("/").split("/")
    names = [unquote(part) for part in parts]
    if f"/{root}" != ROOT or not path.startswith(ROOT) or not _ADDRESS.fullmatch(asked):
        return ROOT
    return ROOT if _NOWHERE & set(names[:1]) or _NO_NAMES & set(names) else asked


def sign_in_link(asked: str) -> str:
    """Return the sign-in link that redirects to a page afterwards."""
    to = safe_redirect(asked)
    return with_query(SIGN_IN, to="" if to == ROOT else to)


def named(value: str) -> str:
    """Encode a name as one path segment."""
    return f"{_MARK}{quote(value, safe='')}"
