"""EntraBot's two state files: the watched chats, and the timestamp of the last mail read.

EntraBot's code keeps them at the top of its data, ADR-005 below `state/`. Both are found; a write goes to the
existing file, or to the top.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from memplane.sync.backend import TextBackend

WATCHED_CHATS: Final = "watched_chats"
EMAIL_CURSOR: Final = "email_cursor.txt"

_BELOW = "state/"
_STEP = timedelta(milliseconds=1)


def read_watched_chats(backend: TextBackend) -> list[str]:
    """Unique chat ids, sorted."""
    return sorted({line.strip() for line in _read(backend, WATCHED_CHATS).split("\n") if line.strip()})


def write_watched_chats(backend: TextBackend, chat_ids: Iterable[str]) -> None:
    """Write one id per line, sorted. Raises `ValueError` for an id with a line break."""
    ids = sorted({chat_id.strip() for chat_id in chat_ids} - {""})
    if any(not chat_id.isprintable() for chat_id in ids):
        raise ValueError("a chat id is one line without control characters")
    _write(backend, WATCHED_CHATS, "".join(f"{chat_id}\n" for chat_id in ids))


def read_email_cursor(backend: TextBackend) -> str | None:
    """The timestamp of the last mail read; None before the first."""
    return _read(backend, EMAIL_CURSOR).strip() or None


def write_email_cursor(backend: TextBackend, moment: str) -> None:
    """Write the timestamp. Raises `ValueError` if it is not a valid one."""
    datetime.fromisoformat(moment.strip())
    _write(backend, EMAIL_CURSOR, moment.strip())


def advanced(moment: str) -> str:
    """One millisecond later, so that the same mail is not read again."""
    found = datetime.fromisoformat(moment.strip())
    later = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC) + _STEP
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read(backend: TextBackend, name: str) -> str:
    return backend.read_text(name) or backend.read_text(f"{_BELOW}{name}") or ""


def _write(backend: TextBackend, name: str, text: str) -> None:
    is_below = not backend.exists(name) and backend.exists(f"{_BELOW}{name}")
    backend.write_text(f"{_BELOW}{name}" if is_below else name, text)
