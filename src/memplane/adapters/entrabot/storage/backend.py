"""EntraBot's backends: text under keys, in a directory or in a container. EntraBot's settings choose between them."""

import asyncio
import atexit
import logging
import os
import random
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from memplane.adapters.entrabot.config import CACHE_DIR, CONTAINER, ENDPOINT, EntraBotConfig
from memplane.adapters.entrabot.environment import get_config
from memplane.adapters.entrabot.storage.blob import BlobStore, ConcurrencyError
from memplane.adapters.entrabot.storage.blob_objects import BlobObjects
from memplane.adapters.entrabot.storage.local import LocalBackend
from memplane.adapters.entrabot.tokens import acquire_agent_user_storage_token
from memplane.clock import Clock, system_clock
from memplane.errors import (
    Changed,
    InvalidRequest,
    MemplaneError,
    RemoteDenied,
    RemoteUnavailable,
    StorageError,
)
from memplane.sync.backend import TextBackend as MemoryBackend
from memplane.sync.backend import bytes_of
from memplane.sync.cached import CachedBackend
from memplane.sync.store import ABSENT

__all__ = [
    "BlobBackend",
    "BlobStore",
    "CachedBlobBackend",
    "ConcurrencyError",
    "LocalBackend",
    "MemoryBackend",
    "acquire_agent_user_storage_token",
    "backend_for",
    "blob_store_for",
    "close_backends",
    "get_backend",
    "get_config",
    "run_sync",
]

_log = logging.getLogger("entrabot.storage.backend")

_ATTEMPTS: Final = 12
_PAUSE_S_MAX = 1.0

MANIFEST_S: Final = 5
"""How long the entry of a written blob may wait for the manifest, so that a burst of writes changes it once."""

Result = TypeVar("Result")


def run_sync(work: Coroutine[Any, Any, Result]) -> Result:
    """Run async work from synchronous code; inside a running event loop, in a thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, work).result()


class BlobBackend:
    """UTF-8 text in a container. `write_text` replaces a blob unconditionally, as its callers expect; `append_text`
    is conditional, so that concurrent appends lose nothing."""

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
        """Like `write_text` if the key does not exist yet; returns False, without a change, if it does."""
        try:
            run_sync(self._store.put(key, text.encode("utf-8"), if_none_match="*"))
        except ConcurrencyError:
            return False
        return True

    def append_text(self, key: str, text: str) -> None:
        """Append with a conditional write, retried after a random delay. Raises `ConcurrencyError` if other writers
        are always faster."""
        run_sync(self._append(key, text.encode("utf-8")))

    async def _append(self, key: str, content: bytes) -> None:
        fetch = getattr(self._store, "fetch", None)
        if fetch is None:  # a store of EntraBot's tests, without ETags
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


class CachedBlobBackend(BlobBackend):
    """A container behind a cache on this machine, listed in `manifest.json`.

    * A read is answered from the cache while the manifest, which is read at most every 5 seconds, says that the blob is
      unchanged. With `validate_each_read` the blob's ETag decides, at the cost of a request.
    * `interactions/` are sent in batches: after 5 seconds, or once 4 KB wait. Other writes are sent before the call returns.
    * The manifest lists a written blob within 5 seconds.
    * Without a connection or a token, reads are answered from the cache and writes wait on disk, also across restarts.

    A read that the cache cannot answer raises the error of EntraBot's client: `TokenExpiredError` or `httpx.HTTPError`.
    """

    def __init__(
        self,
        store: BlobStore,
        cache_dir: Path,
        *,
        validate_each_read: bool = False,
        clock: Clock = system_clock,
    ) -> None:
        super().__init__(store)
        self._objects = BlobObjects(store)
        with self._own_errors():
            self._cache = CachedBackend(
                self._objects,
                cache_dir,
                validate="each" if validate_each_read else "manifest",
                manifest_s=MANIFEST_S,
                background=True,
                clock=clock,
            )

    def use(self, store: BlobStore) -> None:
        """Send requests through this client from now on: it may have another source of tokens."""
        self._store = self._objects.store = store

    def read_text(self, key: str) -> str | None:
        with self._own_errors():
            return self._cache.read_text(key)

    def write_text(self, key: str, text: str) -> None:
        with self._own_errors():
            self._cache.write_text(key, text)

    def create_text(self, key: str, text: str) -> bool:
        with self._own_errors():
            data = bytes_of(text, key)
            try:
                version = self._objects.put(key, data, expect=ABSENT)
            except Changed:
                return False
            self._cache.adopt(key, data, version)
        return True

    def append_text(self, key: str, text: str) -> None:
        with self._own_errors():
            self._cache.append_text(key, text)

    def exists(self, key: str) -> bool:
        with self._own_errors():
            return self._cache.exists(key)

    def list(self, prefix: str = "") -> list[str]:
        with self._own_errors():
            return self._cache.list(prefix)

    def adopt(self, key: str, data: bytes, etag: str) -> None:
        """Take a blob that the caller wrote itself into the cache and the manifest."""
        self._cache.adopt(key, data, etag)

    def flush(self) -> int:
        """Send what waits and update the manifest now; returns how many bytes still wait."""
        return self._cache.flush()

    def close(self) -> None:
        """Send what can be sent, and log what cannot: it is on disk for the next process."""
        try:
            self._cache.close()
        except MemplaneError as exc:
            _log.warning("what waits in the cache could not be sent: %s", exc)
        finally:
            self._objects.close()

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        try:
            yield
        except InvalidRequest as exc:
            raise ValueError(str(exc)) from exc
        except StorageError as exc:
            raise OSError(f"{exc}; {CACHE_DIR} names another directory for the cache") from exc
        except (RemoteDenied, RemoteUnavailable) as exc:
            raise (self._objects.failure or exc) from exc


_opened: dict[tuple[int, Path, bool], CachedBlobBackend] = {}
_opening = threading.Lock()


def _cached(store: BlobStore, config: EntraBotConfig) -> CachedBlobBackend:
    """One for each cache directory and process: it holds connections, and a thread while something waits."""
    cache_dir, each = config.cache_of(store.url), config.validate_each_read
    with _opening:
        place = (os.getpid(), cache_dir, each)
        if place not in _opened:
            _opened[place] = CachedBlobBackend(store, cache_dir, validate_each_read=each)
        _opened[place].use(store)
        return _opened[place]


def close_backends() -> None:
    """Send what waits, as at the end of the process; the next `get_backend` opens the cache again."""
    with _opening:
        mine = [place for place in _opened if place[0] == os.getpid()]
        for place in mine:
            _opened.pop(place).close()


atexit.register(close_backends)


def get_backend() -> MemoryBackend:
    """The backend that the environment names now: the data directory if `ENTRABOT_KEEP_MEMORY_LOCAL` is set, the container
    if an endpoint and a container are, else the data directory. Only one of endpoint and container logs a warning."""
    return backend_for(get_config(), token=lambda: acquire_agent_user_storage_token(get_config()))


def backend_for(config: EntraBotConfig, *, token: Callable[[], str] | None = None) -> MemoryBackend:
    store = blob_store_for(config, token=token)
    return LocalBackend(config.data_dir) if store is None else _cached(store, config)


def blob_store_for(config: EntraBotConfig, *, token: Callable[[], str] | None = None) -> BlobStore | None:
    """The configured container; None if memory stays local."""
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
