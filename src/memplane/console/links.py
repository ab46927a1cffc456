"""Where pages are. Any text is a legal name of a space, so it never stands in a path as it is."""

import re
from urllib.parse import quote, unquote, urlencode

ROOT = "/console"
SIGN_IN = f"{ROOT}/sign-in"

_ADDRESS = re.compile(r"[A-Za-z0-9/?@%&=+~_.,:;!$'()*-]{1,2000}", re.ASCII)
_NOWHERE = frozenset({"sign-in", "sign-out", "enter", "static"})
"""What nobody is led back to."""
_NO_NAMES = frozenset({"", ".", ".."})
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


def safe_redirect(asked: str) -> str:
    """Where somebody was going, if that is a page of ours and nothing else; else the first page. Browsers take a backslash
    for a slash, drop line breaks, and climb with `..` however it is written: such an address is no page."""
    path = asked.partition("?")[0]
    root, *parts = path.removeprefix("/").split("/")
    names = [unquote(part) for part in parts]
    if f"/{root}" != ROOT or not path.startswith(ROOT) or not _ADDRESS.fullmatch(asked):
        return ROOT
    return ROOT if _NOWHERE & set(names[:1]) or _NO_NAMES & set(names) else asked


def sign_in_link(asked: str) -> str:
    """To the door, and from there to where somebody was going."""
    to = safe_redirect(asked)
    return with_query(SIGN_IN, to="" if to == ROOT else to)


def named(value: str) -> str:
    """A name as one segment of a path."""
    return f"{_MARK}{quote(value, safe='')}"
