"""Promises of an agent, as lines of one file. The last line about a promise is the current one.

Lines are only appended. At `LINES_MAX` lines, promises resolved long ago are removed. Every change is a function
from the text of the file to its new text, so that it can be written conditionally and repeated if another writer
was faster.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self, TypeVar

import msgspec

from memplane.errors import Changed, InvalidRequest, NotFound
from memplane.sync.backend import TextBackend
from memplane.sync.interactions import line_of, object_of
from memplane.sync.store import ABSENT, ObjectStore

KEY: Final = "promises.jsonl"
LINES_MAX: Final = 1000
RESOLVED_RETENTION: Final = timedelta(days=30)

OPEN, RESOLVED = "open", "resolved"

_ATTEMPTS = 2

Result = TypeVar("Result")
Change = Callable[[str], tuple[str, Result]]
"""From the file's text to its new text and a result for the caller."""


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the agent announced to do."""

    id: str
    created_at: str
    chat_id: str
    description: str
    due_by: str | None = None
    status: str = OPEN
    resolved_at: str | None = None
    resolution: str | None = None

    @classmethod
    def from_entry(cls, entry: dict[str, Any]) -> Self:
        """Create a promise from a line that another program may have written."""

        def text(name: str) -> str | None:
            value = entry.get(name)
            return value if isinstance(value, str) else None

        return cls(
            id=text("id") or "",
            created_at=text("created_at") or "",
            chat_id=text("chat_id") or "",
            description=text("description") or "",
            due_by=text("due_by"),
            status=text("status") or OPEN,
            resolved_at=text("resolved_at"),
            resolution=text("resolution"),
        )

    def to_entry(self) -> dict[str, Any]:
        """The members of its line, without those that are None."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}


def promise(*, chat_id: str, description: str, due_by: str | None = None, now: datetime) -> Promise:
    """Create and validate a promise."""
    if not chat_id:
        raise InvalidRequest("chat_id is required", field="chat_id")
    if not description or not description.strip():
        raise InvalidRequest("description is required", field="description")
    return Promise(
        id=uuid.uuid4().hex,
        created_at=now.astimezone(UTC).isoformat(),
        chat_id=chat_id,
        description=description.strip(),
        due_by=due_by,
    )


def listed(text: str, *, open_only: bool = True) -> list[Promise]:
    """All promises in their current state, in the order of creation."""
    promises = [Promise.from_entry(entry) for entry in _folded(text).values()]
    return [found for found in promises if not open_only or found.status == OPEN]


def added(text: str, new: Promise, *, now: datetime) -> str:
    """The file with this promise appended; unchanged if it is there already, since the response to an earlier
    attempt may have been lost."""
    return text if new.id in _folded(text) else _with_line(text, new.to_entry(), now=now)


def resolved(text: str, promise_id: str, resolution: str, *, now: datetime) -> tuple[str, Promise]:
    """The file with this promise resolved. A resolved promise is not changed."""
    if not promise_id:
        raise InvalidRequest("promise_id is required", field="promise_id")
    if not resolution or not resolution.strip():
        raise InvalidRequest("resolution is required", field="resolution")
    entry = _folded(text).get(promise_id)
    if entry is None:
        raise NotFound("promise", promise_id, place=KEY)
    if entry.get("status") == RESOLVED:
        return text, Promise.from_entry(entry)
    settled = entry | {
        "status": RESOLVED,
        "resolved_at": now.astimezone(UTC).isoformat(),
        "resolution": resolution.strip(),
    }
    return _with_line(text, settled, now=now), Promise.from_entry(settled)


def _with_line(text: str, entry: dict[str, Any], *, now: datetime) -> str:
    """Append a line. A truncated last line is terminated first."""
    whole = text if not text or text.endswith("\n") else f"{text}\n"
    whole += line_of(entry)
    return compacted(whole, now=now) if whole.count("\n") >= LINES_MAX else whole


def compacted(text: str, *, now: datetime) -> str:
    """One line per promise, without those resolved more than thirty days ago. Lines that cannot be read are kept,
    because their age is unknown."""
    unreadable = [line for line in text.split("\n") if line.strip() and _entry(line) is None]
    kept = [
        line_of(entry) for entry in _folded(text).values() if not _is_past(entry, now - RESOLVED_RETENTION)
    ]
    return "".join(f"{line}\n" for line in unreadable) + "".join(kept)


def _is_past(entry: dict[str, Any], cutoff: datetime) -> bool:
    if entry.get("status", OPEN) == OPEN:
        return False
    try:
        moment = datetime.fromisoformat(entry.get("resolved_at") or entry.get("created_at") or "")
    except (ValueError, TypeError):
        return False
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) < cutoff


def _folded(text: str) -> dict[str, dict[str, Any]]:
    return {entry["id"]: entry for line in text.split("\n") if (entry := _entry(line)) is not None}


def _entry(line: str) -> dict[str, Any] | None:
    found = object_of(line)
    return found if found is not None and found.get("id") and isinstance(found["id"], str) else None


class PromiseBook:
    """The file in an object store with concurrent writers: each write is conditional on what was read. Raises
    `Changed` if other writers were faster twice."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        attempts: int = _ATTEMPTS,
        written: Callable[[str, bytes, str], None] | None = None,
    ) -> None:
        """`written` is called with key, content and version after each write, so that a cache can list it."""
        self._store = store
        self._attempts = attempts
        self._written = written

    def list(self, *, open_only: bool = True) -> list[Promise]:
        return listed(self._read()[0], open_only=open_only)

    def add(self, new: Promise, *, now: datetime) -> Promise:
        return self._change(lambda text: (added(text, new, now=now), new))

    def resolve(self, promise_id: str, resolution: str, *, now: datetime) -> Promise:
        return self._change(lambda text: resolved(text, promise_id, resolution, now=now))

    def _read(self) -> tuple[str, str]:
        got = self._store.get(KEY)
        return ("", ABSENT) if got is None else (got.data.decode("utf-8", "surrogateescape"), got.version)

    def _change(self, change: Change[Result]) -> Result:
        for _ in range(self._attempts):
            before, version = self._read()
            after, result = change(before)
            if after == before:
                return result
            data = after.encode("utf-8", "surrogateescape")
            try:
                version = self._store.put(KEY, data, expect=version)
            except Changed:
                continue
            if self._written is not None:
                self._written(KEY, data, version)
            return result
        raise Changed(KEY)


def change_text(backend: TextBackend, change: Change[Result]) -> Result:
    """Like `PromiseBook` for backends without conditional writes: a line is appended, unless the file is compacted."""
    before = backend.read_text(KEY) or ""
    after, result = change(before)
    if after != before:
        if after.startswith(before):
            backend.append_text(KEY, after[len(before) :])
        else:
            backend.write_text(KEY, after)
    return result
