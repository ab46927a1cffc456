"""EntraBot's promises. In a container, writes are conditional on what was read; on disk, a line is appended."""

import asyncio
import logging
from datetime import UTC, datetime
from typing import Final, Protocol, TypeVar

from memplane.adapters.entrabot import promise_log as book
from memplane.adapters.entrabot.environment import get_config
from memplane.adapters.entrabot.promise_log import Promise
from memplane.adapters.entrabot.storage import backend as backends
from memplane.adapters.entrabot.storage.backend import CachedBlobBackend, MemoryBackend
from memplane.adapters.entrabot.storage.blob import BlobStore, ConcurrencyError
from memplane.errors import InvalidRequest, NotFound
from memplane.sync.backend import TextBackend

__all__ = [
    "PROMISES_KEY",
    "Promise",
    "PromiseNotFound",
    "PromiseStoreConflict",
    "add_promise",
    "list_promises",
    "resolve_promise",
]

PROMISES_KEY: Final = book.KEY

_ATTEMPTS = 2
_ODD = "surrogateescape"
"""Invalid UTF-8 is preserved."""

_log = logging.getLogger("entrabot.tools.promises")

Result = TypeVar("Result")


class PromiseNotFound(Exception):
    """No promise has this id."""


class PromiseStoreConflict(Exception):
    """Other writers were faster twice; nothing was written. Retry."""


class ConditionalStore(Protocol):
    """The calls that a conditional write needs."""

    async def get(self, path: str) -> tuple[bytes, str]:
        """The content and its ETag; both empty if it does not exist."""

    async def put(self, path: str, data: bytes, *, if_match: str | None = None) -> str:
        """Write if the ETag still matches; without an ETag, only if it does not exist."""


class _ConditionalBlobs:
    """The container as a `ConditionalStore`. Each write is reported to the cache, so that the manifest lists it."""

    def __init__(self, store: BlobStore, backend: MemoryBackend) -> None:
        self._store = store
        self._backend = backend

    async def get(self, path: str) -> tuple[bytes, str]:
        try:
            return await self._store.fetch(path)
        except KeyError:
            return b"", ""

    async def put(self, path: str, data: bytes, *, if_match: str | None = None) -> str:
        if if_match:
            etag = await self._store.put(path, data, if_match=if_match)
        else:
            etag = await self._store.put(path, data, if_none_match="*")
        if isinstance(self._backend, CachedBlobBackend):
            await asyncio.to_thread(self._backend.adopt, path, data, etag)
        return etag


def _get_conditional_store() -> ConditionalStore | None:
    """The container, if memory is in one. Replaced by tests."""
    store = backends.blob_store_for(
        get_config(), token=lambda: backends.acquire_agent_user_storage_token(get_config())
    )
    return None if store is None else _ConditionalBlobs(store, backends.get_backend())


async def add_promise(
    *, chat_id: str, description: str, due_by: str | None = None, backend: TextBackend | None = None
) -> Promise:
    """Add a promise and return it. Raises `ValueError` without a chat or a description."""
    now = datetime.now(UTC)
    try:
        new = book.promise(chat_id=chat_id, description=description, due_by=due_by, now=now)
    except InvalidRequest as exc:
        raise ValueError(str(exc)) from exc
    return await _change(lambda text: (book.added(text, new, now=now), new), backend)


async def list_promises(*, open_only: bool = True, backend: TextBackend | None = None) -> list[Promise]:
    """All promises, or only those that are open."""
    store = _get_conditional_store() if backend is None else None
    if store is not None:
        raw, _ = await store.get(PROMISES_KEY)
        text = raw.decode("utf-8", _ODD)
    else:
        text = (backend or backends.get_backend()).read_text(PROMISES_KEY) or ""
    return book.listed(text, open_only=open_only)


async def resolve_promise(*, promise_id: str, resolution: str, backend: TextBackend | None = None) -> Promise:
    """Resolve a promise; a resolved one is not changed. Raises `PromiseNotFound` for an unknown id."""
    now = datetime.now(UTC)
    try:
        return await _change(lambda text: book.resolved(text, promise_id, resolution, now=now), backend)
    except NotFound as exc:
        raise PromiseNotFound(promise_id) from exc
    except InvalidRequest as exc:
        raise ValueError(str(exc)) from exc


async def _change(change: book.Change[Result], backend: TextBackend | None) -> Result:
    store = _get_conditional_store() if backend is None else None
    if store is None:
        return book.change_text(backend or backends.get_backend(), change)
    for _ in range(_ATTEMPTS):
        raw, etag = await store.get(PROMISES_KEY)
        before = raw.decode("utf-8", _ODD)
        after, result = change(before)
        if after == before:
            return result
        try:
            await store.put(PROMISES_KEY, after.encode("utf-8", _ODD), if_match=etag or None)
        except ConcurrencyError:
            _log.warning("%s was changed by another writer; reading it again", PROMISES_KEY)
        else:
            return result
    raise PromiseStoreConflict(f"{PROMISES_KEY} was changed twice by other writers; try again")
