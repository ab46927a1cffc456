"""EntraBot's two small files of state: which chats it watches, and up to where it has read its mail.

EntraBot keeps them at the top of its data, its document below `state/`. They are read from where they are, and written
there, or at the top.
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
    """Chat ids, sorted, each once."""
    return sorted({line.strip() for line in _read(backend, WATCHED_CHATS).split("\n") if line.strip()})


def write_watched_chats(backend: TextBackend, chat_ids: Iterable[str]) -> None:
    """One id a line, sorted. Raises `ValueError` for an id that is not one line."""
    ids = sorted({chat_id.strip() for chat_id in chat_ids} - {""})
    if any(not chat_id.isprintable() for chat_id in ids):
        raise ValueError("a chat id is one line without control characters")
    _write(backend, WATCHED_CHATS, "".join(f"{chat_id}\n" for chat_id in ids))


def read_email_cursor(backend: TextBackend) -> str | None:
    """The timestamp of the last mail read; None before the first."""
    return _read(backend, EMAIL_CURSOR).strip() or None


def write_email_cursor(backend: TextBackend, moment: str) -> None:
    """Raises `ValueError` for what is not a time."""
    datetime.fromisoformat(moment.strip())
    _write(backend, EMAIL_CURSOR, moment.strip())


def advanced(moment: str) -> str:
    """A millisecond later, so that the mail of that moment is not read again."""
    found = datetime.fromisoformat(moment.strip())
    later = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC) + _STEP
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read(backend: TextBackend, name: str) -> str:
    return backend.read_text(name) or backend.read_text(f"{_BELOW}{name}") or ""


def _write(backend: TextBackend, name: str, text: str) -> None:
    is_below = not backend.exists(name) and backend.exists(f"{_BELOW}{name}")
    backend.write_text(f"{_BELOW}{name}" if is_below else name, text)
