"""A blob container as an `ObjectStore`, so that the cache and the manifest of `sync/` work over EntraBot's own client.

Requests are synchronous and share connections. That also works while the interpreter shuts down, when no event loop can
resolve a host name any more and the cache sends what still waits.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, NoReturn

import httpx

from memplane.adapters.entrabot.storage.blob import (
    BlobStore,
    ListingPage,
    blocking_client,
    check_token,
    listing_query,
)
from memplane.errors import Changed, InvalidRequest, RemoteDenied, RemoteUnavailable, Unchanged
from memplane.sync.store import ABSENT, ObjectInfo, StoredObject, display_key, order

_NOT_MODIFIED, _NOT_FOUND, _TIMEOUT = 304, 404, 408
_CONFLICT, _STALE, _BUSY, _BROKEN = 409, 412, 429, 500
_DENIED: Final = frozenset({401, 403})
_LATER: Final = frozenset({_NOT_FOUND, _TIMEOUT, _BUSY})
"""Statuses to retry later. 404 means a missing container here; for a blob it is a normal answer."""


class BlobObjects:
    """`ObjectStore` over a `BlobStore`. Versions are ETags with their quotes.

    `failure` is the client's own error behind the last `RemoteError`, for callers that expect that one.
    """

    def __init__(self, store: BlobStore) -> None:
        self.store = store
        self.failure: Exception | None = None
        self._client: httpx.Client | None = None

    @property
    def url(self) -> str:
        return self.store.url

    def get(self, key: str, *, unless: str | None = None) -> StoredObject | None:
        response = self._send("GET", key, headers={} if unless is None else {"If-None-Match": unless})
        if response.status_code == _NOT_MODIFIED:
            raise Unchanged(key)
        if response.status_code == _NOT_FOUND:
            return None
        self._check(response, key)
        version = response.headers.get("ETag", "")
        if unless is not None and version == unless:  # a service that does not know the condition
            raise Unchanged(key)
        return StoredObject(response.content, version)

    def put(self, key: str, data: bytes, *, expect: str | None = None) -> str:
        condition = (
            {} if expect is None else {"If-None-Match": "*"} if expect == ABSENT else {"If-Match": expect}
        )
        response = self._send("PUT", key, headers={"x-ms-blob-type": "BlockBlob", **condition}, content=data)
        if expect is not None and response.status_code in {_STALE, _CONFLICT}:
            raise Changed(key)
        self._check(response, key)
        return str(response.headers.get("ETag", ""))

    def delete(self, key: str) -> None:
        response = self._send("DELETE", key)
        if response.status_code != _NOT_FOUND:
            self._check(response, key)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        found: dict[str, ObjectInfo] = {}
        marker: str | None = None
        while True:
            response = self._request("GET", self.url, params=listing_query(prefix, marker))
            self._check(response, prefix)
            page = ListingPage.read(response.content)
            for blob in page.blobs:
                found[blob.name] = ObjectInfo(
                    blob.name, blob.size, _quoted(blob.etag), _moment(blob.modified)
                )
            if page.marker is None:
                return iter(sorted(found.values(), key=lambda item: order(item.key)))
            marker = page.marker

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _send(
        self, method: str, key: str, *, headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> httpx.Response:
        try:
            address = self.store.address_of(key)
        except ValueError as exc:
            raise InvalidRequest(str(exc), field="key") from exc
        return self._request(method, address, headers=headers, content=content)

    def _request(
        self,
        method: str,
        address: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        try:
            given = {**self.store.headers(), **(headers or {})}
        except Exception as exc:  # noqa: BLE001 - the sign-in is foreign code and raises what it likes
            self._fail(exc, RemoteDenied(f"no token for {self.url}: {exc}"))
        if self._client is None:
            self._client = blocking_client()
        try:
            return self._client.request(method, address, headers=given, params=params, content=content)
        except httpx.HTTPError as exc:
            self._fail(exc, RemoteUnavailable(f"{self.url} cannot be reached: {type(exc).__name__}"))

    def _check(self, response: httpx.Response, key: str) -> None:
        status = response.status_code
        try:
            check_token(response)
            response.raise_for_status()
        except Exception as exc:  # noqa: BLE001 - EntraBot may put its own error in the place of `TokenExpiredError`
            if status in _DENIED:
                self._fail(exc, RemoteDenied(f"{self.url} denies access with status {status}"))
            if status in _LATER or status >= _BROKEN:
                self._fail(exc, RemoteUnavailable(f"{self.url} is unavailable: status {status}"))
            self._fail(
                exc,
                InvalidRequest(f"{self.url} refuses {display_key(key)} with status {status}", field="key"),
            )

    def _fail(self, cause: Exception, error: Exception) -> NoReturn:
        self.failure = cause
        raise error from cause


def _quoted(etag: str) -> str:
    """An ETag with quotes, as conditions need it: listings omit them."""
    return etag if etag.endswith('"') else f'"{etag}"'


def _moment(text: str) -> datetime:
    try:
        return parsedate_to_datetime(text)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
