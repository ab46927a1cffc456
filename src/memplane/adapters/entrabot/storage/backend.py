"""Text under keys, wherever it lives; which place it is follows from EntraBot's settings."""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from memplane.adapters.entrabot.config import CONTAINER, ENDPOINT, EntraBotConfig
from memplane.adapters.entrabot.environment import get_config
from memplane.adapters.entrabot.storage.blob import BlobStore, ConcurrencyError
from memplane.adapters.entrabot.storage.local import LocalBackend
from memplane.adapters.entrabot.tokens import acquire_agent_user_storage_token
from memplane.sync.backend import TextBackend as MemoryBackend

__all__ = [
    "BlobBackend",
    "BlobStore",
    "ConcurrencyError",
    "LocalBackend",
    "MemoryBackend",
    "acquire_agent_user_storage_token",
    "backend_for",
    "blob_store_for",
    "get_backend",
    "get_config",
    "run_sync",
]

_log = logging.getLogger("entrabot.storage.backend")

_ATTEMPTS: Final = 12
_PAUSE_S_MAX = 1.0

Result = TypeVar("Result")


def run_sync(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of async work for a caller that is not; one inside a running loop waits for a thread instead."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()


class BlobBackend:
    """Text in UTF-8 in a container. A text is replaced unconditionally, as its callers expect; appending loses nobody's
    words."""

    def __init__(self, store: BlobStore) -> None:
        self._store = store

    def read_text(self, key: str) -> str | None:
        try:
            return run_sync(self._store.get(key)).decode("utf-8")
        except KeyError:
            return None

    def write_text(self, key: str, text: str) -> None:
        run_sync(self._store.put(key, text.encode("utf-8")))

    def create_text(self, key: str, text: str) -> bool:
        """As `write_text`, where there is nothing yet; False where there is, which then stays as it is."""
        try:
            run_sync(self._store.put(key, text.encode("utf-8"), if_none_match="*"))
        except ConcurrencyError:
            return False
        return True

    def append_text(self, key: str, text: str) -> None:
        """Onto what is there, written only if that is still there; otherwise again, after a short while of a random
        length. Raises `ConcurrencyError` where others are always faster."""
        run_sync(self._append(key, text.encode("utf-8")))

    async def _append(self, key: str, content: bytes) -> None:
        fetch = getattr(self._store, "fetch", None)
        if fetch is None:  # somebody else's store, which tells no ETag
            before = await _or_nothing(self._store.get(key))
            await self._store.put(key, (before or b"") + content)
            return
        for attempt in range(_ATTEMPTS):
            found = await _or_nothing(fetch(key))
            try:
                if found is None:
                    await self._store.put(key, content, if_none_match="*")
                else:
                    await self._store.put(key, found[0] + content, if_match=found[1])
            except ConcurrencyError:
                if attempt + 1 == _ATTEMPTS:
                    raise
                await asyncio.sleep(random.uniform(0, min(_PAUSE_S_MAX, 0.01 * 2**attempt)))  # noqa: S311
            else:
                return

    def exists(self, key: str) -> bool:
        return bool(run_sync(self._store.exists(key)))

    def list(self, prefix: str = "") -> list[str]:
        return [*run_sync(self._store.list(prefix))]


async def _or_nothing(work: Coroutine[Any, Any, Result]) -> Result | None:
    try:
        return await work
    except KeyError:
        return None


def get_backend() -> MemoryBackend:
    """As the environment says now: local where `ENTRABOT_KEEP_MEMORY_LOCAL` says so, else the container where there is an
    endpoint and a container, else local. Half a place in the cloud is none, and a warning says so."""
    return backend_for(get_config(), token=lambda: acquire_agent_user_storage_token(get_config()))


def backend_for(config: EntraBotConfig, *, token: Callable[[], str] | None = None) -> MemoryBackend:
    store = blob_store_for(config, token=token)
    return LocalBackend(config.data_dir) if store is None else BlobBackend(store)


def blob_store_for(config: EntraBotConfig, *, token: Callable[[], str] | None = None) -> BlobStore | None:
    """The container these settings name; None where memory stays local."""
    if config.keep_memory_local:
        return None
    if config.half_configured:
        _log.warning("memory stays local: %s and %s are needed, and one is not set", ENDPOINT, CONTAINER)
    if not (config.blob_endpoint and config.blob_container):
        return None
    return BlobStore(
        endpoint=config.blob_endpoint,
        container=config.blob_container,
        token_provider=token or (lambda: acquire_agent_user_storage_token(config)),
    )
