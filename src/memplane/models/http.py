"""HTTP clients for one endpoint: JSON with retries, and lines page by page."""

import email.utils
import http.client
import io
import random
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any

import msgspec

from memplane.errors import SettingsInvalid

# JSON: retries temporary failures, follows no redirect, and never shows the key.


_WAIT_FIRST_S = 0.5
_WAIT_MAX_S = 30.0
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class NoResponse(Exception):
    """No usable answer. The message never quotes the endpoint, which may repeat the key."""

    def __init__(
        self, message: str, *, retryable: bool, status: int | None = None, wait_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.status = status
        """The status; None if there was no response."""
        self.wait_s = wait_s
        """The requested delay before a retry."""


class JsonClient:
    """POST to or GET from one endpoint. Each call opens its own connection, so threads share nothing."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        timeout_s: float,
        attempts_max: int,
        answer_bytes_max: int,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`timeout_s` applies to connecting, to sending and to receiving the whole answer, each."""
        check_endpoint(url, headers, timeout_s, attempts_max)
        self.place = display_address(url)
        self._url = url.rstrip("/")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        self._timeout_s = timeout_s
        self._attempts_max = attempts_max
        self._answer_bytes_max = answer_bytes_max
        self._sleep = sleep
        self._opener = opener()

    def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """The body of a successful answer; raises `NoResponse` after the last attempt."""
        return self.exchange(path, body)[0]

    def exchange(self, path: str, body: Mapping[str, Any]) -> tuple[bytes, Mapping[str, str]]:
        """Like `post`, with the response headers, case-insensitive."""
        request = urllib.request.Request(  # noqa: S310  # the constructor checked the scheme
            f"{self._url}{path}", msgspec.json.encode(body), self._headers, method="POST"
        )
        return self._insist(request)

    def get(self) -> bytes:
        """GET the endpoint; raises like `post`."""
        request = urllib.request.Request(self._url, headers=self._headers)  # noqa: S310  # as above
        return self._insist(request)[0]

    def _insist(self, request: urllib.request.Request) -> tuple[bytes, Mapping[str, str]]:
        pauses = retry_delays()
        for attempt in range(1, self._attempts_max + 1):
            try:
                return self._send(request)
            except NoResponse as failed:
                if not failed.retryable:
                    raise
                if attempt == self._attempts_max:
                    raise NoResponse(
                        f"{failed}; {attempt} attempts were made", retryable=True, status=failed.status
                    ) from None
                wait = next(pauses)
                self._sleep(wait if failed.wait_s is None else min(failed.wait_s, _WAIT_MAX_S))
        raise AssertionError("attempts_max is at least 1")

    def _send(self, request: urllib.request.Request) -> tuple[bytes, Mapping[str, str]]:
        with reaching(self.place), self._opener.open(request, timeout=self._timeout_s) as answer:
            body: bytes = answer.read(self._answer_bytes_max + 1)
            headers: Mapping[str, str] = answer.headers
            missing = len(body) <= self._answer_bytes_max and answer.length
        if missing:
            raise NoResponse(f"{self.place} hung up in the middle of its answer", retryable=True)
        if len(body) > self._answer_bytes_max:
            raise NoResponse(f"{self.place} sent too long an answer", retryable=False)
        return body, headers


@contextmanager
def reaching(place: str) -> Iterator[None]:
    """Translate transport errors into `NoResponse`. Causes are dropped: they may contain the URL with a key."""
    try:
        yield
    except urllib.error.HTTPError as exc:
        with exc:
            wait_s = retry_after(exc.headers.get("Retry-After"))
        raise NoResponse(
            f"{place} answered {exc.code}", retryable=exc.code in _RETRIED, status=exc.code, wait_s=wait_s
        ) from None
    except (OSError, http.client.HTTPException, ValueError) as exc:
        cause = exc.reason if isinstance(exc, urllib.error.URLError) else exc
        raise NoResponse(f"{place} cannot be reached: {type(cause).__name__}", retryable=True) from None


def opener() -> urllib.request.OpenerDirector:
    """Follows no redirect; the timeout covers the whole answer, not each byte."""
    return urllib.request.build_opener(_NoRedirect, _Plain, _Secure)


def display_address(url: str) -> str:
    """The URL without user, password and query."""
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    return urllib.parse.urlunsplit(
        (parts.scheme, f"{host}:{parts.port}" if parts.port else host, parts.path, "", "")
    )


def well_formed(text: str) -> str:
    """Replace lone surrogates, which are valid in a Python string and nowhere else; the length stays."""
    return text.encode("utf-8", "replace").decode("utf-8")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would send the key to an unknown host."""

    def redirect_request(self, *_args: object, **_rest: object) -> None:
        return None


class _Timed(io.RawIOBase):
    """A socket timeout restarts with every byte, so a slow stream never ends; this deadline does not."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._sock = sock
        self._ends = time.monotonic() + (sock.gettimeout() or 0.0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._ends - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("the answer took too long")
        self._sock.settimeout(left_s)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **rest: Any) -> None:
        super().__init__(sock, *args, **rest)
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock))


class _PlainConnection(http.client.HTTPConnection):
    response_class = _Answer


class _SecureConnection(http.client.HTTPSConnection):
    response_class = _Answer


class _Plain(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_PlainConnection, req)


class _Secure(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, req)


def check_endpoint(url: str, headers: Mapping[str, str], timeout_s: float, attempts_max: int) -> None:
    try:
        parts = urllib.parse.urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise SettingsInvalid("the address of an endpoint begins with http:// or https:// and names a host")
    if attempts_max < 1 or timeout_s <= 0:
        raise SettingsInvalid("an endpoint needs at least one attempt and a timeout above 0")
    # The standard library would reject it too, with the key in the message.
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise SettingsInvalid("the key of an endpoint holds a character that cannot be sent")


def retry_delays() -> Iterator[float]:
    """Exponential back-off with jitter."""
    wait = _WAIT_FIRST_S
    while True:
        yield wait * random.uniform(0.5, 1.0)  # noqa: S311  # nothing secret
        wait = min(wait * 2, _WAIT_MAX_S)


def retry_after(value: str | None) -> float | None:
    """Seconds, from a number or a date; None if absent."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


_SKIP_BYTES = 64 * 1024


class LinesResponse(msgspec.Struct, frozen=True, kw_only=True):
    """One page."""

    lines: list[bytes]
    """Lines without their newlines; empty and overlong ones are dropped."""
    count: int
    """The number of lines, including dropped ones."""
    broken: NoResponse | None = None
    """Why there may be more lines; a truncated last line is not included."""


class LinesClient:
    """Fetches pages from one endpoint. Each call opens its own connection."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        timeout_s: float,
        line_bytes_max: int,
        lines_max: int,
    ) -> None:
        """`timeout_s` applies to connecting and to receiving the whole answer, each."""
        check_endpoint(url, headers, timeout_s, 1)
        self.place = display_address(url)
        self._url = url.rstrip("/")
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._line_bytes_max = line_bytes_max
        self._lines_max = lines_max
        self._opener = opener()

    def get(self, path: str) -> LinesResponse:
        """Raises `NoResponse` if no page began."""
        request = urllib.request.Request(f"{self._url}{path}", headers=self._headers)  # noqa: S310  # checked
        with reaching(self.place):
            answer = self._opener.open(request, timeout=self._timeout_s)
        with answer:
            return self._read(answer)

    def _read(self, answer: Any) -> LinesResponse:
        lines: list[bytes] = []
        count = 0
        broken = None
        try:
            while count < self._lines_max and (raw := answer.readline(self._line_bytes_max + 2)):
                ended = raw.endswith(b"\n")
                if not ended and len(raw) > self._line_bytes_max:
                    _skip(answer)
                elif not ended and (answer.length or not raw.rstrip().endswith(b"}")):
                    broken = NoResponse(f"{self.place} hung up in the middle of a line", retryable=True)
                    break
                elif raw.isspace():
                    continue
                else:
                    lines.append(raw.strip())
                count += 1
        except (OSError, http.client.HTTPException, ValueError) as exc:
            broken = NoResponse(f"{self.place} hung up: {type(exc).__name__}", retryable=True)
        if broken is None and answer.length and count < self._lines_max:
            broken = NoResponse(f"{self.place} hung up in the middle of its answer", retryable=True)
        return LinesResponse(lines=lines, count=count, broken=broken)


def _skip(answer: IO[bytes]) -> None:
    with suppress(ValueError):
        while (piece := answer.readline(_SKIP_BYTES)) and not piece.endswith(b"\n"):
            pass
