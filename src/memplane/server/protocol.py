"""uvicorn's HTTP protocol with additional limits: the time and size of request headers, and of data after a body."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX = 64 * 1024
HEAD_SECONDS_MAX = 15.0
_SLICE_BYTES = 16 * 1024
_BODY_HEAD = b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\n"


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection with an error response if its headers are late or too large."""

    _deadline: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _idle_bytes = 0
    """Bytes since the last body byte that belong to no body: chunk sizes and trailers."""
    _in_head = True

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """In slices: one read of the socket may hold more than a head may have, and its end too."""
        start = 0
        while start < len(data) and not self.transport.is_closing():
            room = HEAD_BYTES_MAX - (self._head_bytes if self._in_head else self._idle_bytes)
            if room <= 0:
                self._refuse(b"431 Request Header Fields Too Large", b"the headers are too large\n")
                return
            piece = data[start : start + min(room, _SLICE_BYTES)]
            start += len(piece)
            if self._in_head:
                self._head_bytes += len(piece)
            else:
                self._idle_bytes += len(piece)
            super().data_received(piece)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._in_head:
            self._await_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Drop trailers: they arrive after the headers were checked, so a proxy in front would not have seen a
        credential or a host in them."""
        if self._in_head:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        self._idle_bytes = 0
        super().on_body(body)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_bytes = self._idle_bytes = 0
        self._forget_deadline()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._in_head = True
        self._forget_deadline()
        self._deadline = self.loop.call_later(HEAD_SECONDS_MAX, self._too_slow)

    def _too_slow(self) -> None:
        if not self.transport.is_closing():
            self._refuse(b"408 Request Timeout", b"the headers did not arrive in time\n")

    def _refuse(self, status: bytes, message: bytes) -> None:
        length = str(len(message)).encode()
        self.transport.write(
            b"HTTP/1.1 "
            + status
            + b"\r\n"
            + _BODY_HEAD
            + b"content-length: "
            + length
            + b"\r\n\r\n"
            + message
        )
        self.transport.close()

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


PROTOCOL = BoundedProtocol
