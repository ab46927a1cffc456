"""The connection to a provider: one connection pool per process, unchanged bytes, and no request sent twice."""

import asyncio
import io
import os
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import aiohttp
from multidict import CIMultiDict
from starlette.types import Receive
from yarl import URL

from memplane.adapters.proxy.upstreams import Upstream
from memplane.server.errors import HttpError

_CONNECT_S = 10.0
_RETRY_S = (0.05, 0.2)
"""Only for a refused connection: no part of the request was sent, so it cannot run twice."""
_KEEP_ALIVE_S = 15.0
_HEAD_BYTES_MAX = 64 * 1024
_LARGE_BYTES = 1 << 20
_AUTOMATIC = ("accept", "accept-encoding", "content-type", "user-agent")


class ProviderDisconnected(Exception):
    """The provider's response ended early."""


class ProviderClient:
    """Sends requests to providers. Bound to the event loop that creates it."""

    def __init__(self, *, idle_seconds_max: float) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S, ttl_dns_cache=60),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=idle_seconds_max),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_AUTOMATIC,
            max_line_size=_HEAD_BYTES_MAX,
            max_field_size=_HEAD_BYTES_MAX,
        )

    async def send(
        self, upstream: Upstream, method: str, address: str, headers: CIMultiDict[str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        """The response, as soon as its headers arrive. Raises `HttpError` if there is none."""
        for wait_s in (*_RETRY_S, None):
            try:
                return await self._session.request(
                    method,
                    URL(address, encoded=True),
                    headers=headers,
                    data=io.BytesIO(body) if body is not None and len(body) > _LARGE_BYTES else body,
                    allow_redirects=False,
                )
            except aiohttp.ClientConnectorError as exc:
                if wait_s is None or not isinstance(exc.os_error, ConnectionRefusedError):
                    raise _unreachable(upstream, _reason(exc.os_error)) from exc
                await asyncio.sleep(wait_s)
            except TimeoutError as exc:
                raise HttpError(
                    504, "upstream_timeout", f"the upstream {upstream.name} did not respond in time"
                ) from exc
            except (aiohttp.ClientError, OSError, ValueError) as exc:
                raise _unreachable(upstream, _reason(exc)) from exc
        raise AssertionError

    async def close(self) -> None:
        await self._session.close()


async def pieces_of(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Chunks as they arrive. Raises `ProviderDisconnected`."""
    while piece := await next_piece(response):
        yield piece


async def next_piece(response: aiohttp.ClientResponse) -> bytes:
    """Empty at the end."""
    try:
        return await response.content.readany()
    except (aiohttp.ClientError, OSError) as exc:  # includes timeouts
        raise ProviderDisconnected(_reason(exc)) from exc


async def until_disconnect(receive: Receive, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
    """Run until done, or cancel if the client disconnects. Returns whether it completed."""
    working = asyncio.ensure_future(work())
    leaving = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
            return True
    finally:
        leaving.cancel()
        working.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)
    return False


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _unreachable(upstream: Upstream, why: str) -> HttpError:
    return HttpError(502, "upstream_unreachable", f"the upstream {upstream.name} cannot be reached: {why}")


def _reason(error: BaseException) -> str:
    """The reason, in the system's words: those of libraries name addresses, which are nobody's business here."""
    if (
        not isinstance(error, OSError)
        or isinstance(error, ssl.SSLError)
        or not error.errno
        or error.errno < 0
    ):
        return type(error).__name__
    return os.strerror(error.errno).lower()
