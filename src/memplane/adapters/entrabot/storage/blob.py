"""EntraBot's HTTP client for blobs, with its errors.

Beyond EntraBot's own client, it lists all pages with decoded names, accepts any blob name, and can create a blob
without replacing one.
"""

import re
import ssl
from collections.abc import Callable
from functools import cache
from html import unescape
from typing import Final, NamedTuple, Self
from urllib.parse import quote, unquote

import httpx
import msgspec

from memplane.adapters.entrabot.errors import TokenExpiredError
from memplane.adapters.entrabot.storage.local import checked_key

API_VERSION: Final = "2021-08-06"
"""The storage service's API version, pinned so that its behaviour cannot change."""

_UNAUTHORIZED, _NOT_FOUND, _CONFLICT, _STALE = 401, 404, 409, 412
_BLOB = re.compile(r"<Blob>(.*?)</Blob>", re.DOTALL)
_NAME = re.compile(r'<Name(?P<encoded>\s+Encoded="true")?\s*>(?P<name>[^<]*)</Name>')
_MARKER = re.compile(r"<NextMarker>([^<]+)</NextMarker>")


class ConcurrencyError(Exception):
    """The blob changed since it was read, and nothing was written. Read it again and retry."""


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """One blob of a listing."""

    name: str
    size: int
    etag: str
    modified: str


class ListingPage(NamedTuple):
    """One page of a listing, and the marker of the next."""

    blobs: list[Blob]
    marker: str | None

    @classmethod
    def read(cls, body: bytes) -> Self:
        text = body.decode("utf-8-sig", "replace")
        following = _MARKER.search(text)
        blobs = [_blob(part) for part in _BLOB.findall(text)]
        return cls(blobs, None if following is None else unescape(following[1]))


@cache
def _tls() -> ssl.SSLContext:
    """Reading the certificates takes longer than most requests, so it is done once."""
    return httpx.create_ssl_context()


class BlobStore:
    """A container. The token is requested for every request, so it may change at any time.

    Raises `TokenExpiredError` if the token is rejected and `httpx.HTTPStatusError` for any other error status.
    """

    def __init__(self, *, endpoint: str, container: str, token_provider: Callable[[], str]) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._container = container
        self._token_provider = token_provider

    @property
    def url(self) -> str:
        return f"{self._endpoint}/{self._container}"

    async def put(
        self, path: str, data: bytes, *, if_match: str | None = None, if_none_match: str | None = None
    ) -> str:
        """Write the whole blob and return its ETag. Raises `ConcurrencyError` if a condition fails."""
        headers = {"x-ms-blob-type": "BlockBlob"}
        if if_match is not None:
            headers["If-Match"] = if_match
        if if_none_match is not None:
            headers["If-None-Match"] = if_none_match
        response = await self._send("PUT", self.address_of(path), headers=headers, content=data)
        existed = if_none_match is not None and response.status_code == _CONFLICT
        if response.status_code == _STALE or existed:
            raise ConcurrencyError(f"{path!r} was changed by another writer; nothing was written")
        response.raise_for_status()
        return str(response.headers.get("ETag", ""))

    async def get(self, path: str) -> bytes:
        """The whole blob. Raises `KeyError` if it does not exist."""
        return (await self.fetch(path))[0]

    async def fetch(self, path: str) -> tuple[bytes, str]:
        """Like `get`, with the ETag for a conditional write."""
        response = await self._send("GET", self.address_of(path))
        if response.status_code == _NOT_FOUND:
            raise KeyError(path)
        response.raise_for_status()
        return response.content, response.headers.get("ETag", "")

    async def exists(self, path: str) -> bool:
        """Whether the blob exists, without downloading it."""
        response = await self._send("HEAD", self.address_of(path))
        if response.status_code == _NOT_FOUND:
            return False
        response.raise_for_status()
        return True

    async def listing(self, prefix: str = "") -> list[Blob]:
        """Like `list`, with the properties of each blob."""
        found: list[Blob] = []
        marker: str | None = None
        while True:
            response = await self._send("GET", self.url, params=listing_query(prefix, marker))
            response.raise_for_status()
            page = ListingPage.read(response.content)
            found += page.blobs
            if page.marker is None:
                return found
            marker = page.marker

    async def list(self, prefix: str = "") -> list[str]:
        """The names of all blobs with this prefix, from all pages."""
        return [blob.name for blob in await self.listing(prefix)]

    async def delete(self, path: str) -> None:
        """Delete the blob; no error if it does not exist."""
        response = await self._send("DELETE", self.address_of(path))
        if response.status_code != _NOT_FOUND:
            response.raise_for_status()

    def address_of(self, path: str) -> str:
        return f"{self.url}/{quote(checked_key(path), safe='/~')}"

    def headers(self) -> dict[str, str]:
        """The headers of every request. Raises what the token provider raises."""
        return {"Authorization": f"Bearer {self._token_provider()}", "x-ms-version": API_VERSION}

    async def _send(
        self,
        method: str,
        url: str,
        *,
        headers: dict[str, str] | None = None,
        params: dict[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        given = {**self.headers(), **(headers or {})}
        async with httpx.AsyncClient(verify=_tls()) as client:
            response = await client.request(method, url, headers=given, params=params, content=content)
        check_token(response)
        return response


def blocking_client() -> httpx.Client:
    """For callers without an event loop; it keeps connections open."""
    return httpx.Client(verify=_tls())


def check_token(response: httpx.Response) -> None:
    """Raise `TokenExpiredError` where the service does not accept the token."""
    if response.status_code == _UNAUTHORIZED:
        raise TokenExpiredError("the storage token has expired, or is not one for storage.azure.com")


def listing_query(prefix: str, marker: str | None) -> dict[str, str]:
    query = {"restype": "container", "comp": "list", "prefix": prefix}
    return query if marker is None else query | {"marker": marker}


def _blob(part: str) -> Blob:
    name = _NAME.search(part)
    text = "" if name is None else unescape(name["name"])

    def of(tag: str) -> str:
        found = re.search(rf"<{tag}>([^<]*)</{tag}>", part)
        return "" if found is None else unescape(found[1])

    size = of("Content-Length")
    return Blob(
        name=unquote(text) if name is not None and name["encoded"] else text,
        size=int(size) if size.isdecimal() else 0,
        etag=of("Etag"),
        modified=of("Last-Modified"),
    )
