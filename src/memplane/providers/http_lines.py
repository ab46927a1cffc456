"""Lines from one endpoint, a page at a time. What came whole before an endpoint hung up is kept."""

import http.client
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

import msgspec

from memplane.providers.http_json import Unanswered, check_endpoint, opener, place_of, reaching

_SKIP_BYTES = 64 * 1024


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """One answer."""

    lines: list[bytes]
    """Without their newlines; empty ones and those that are too long are left out."""
    count: int
    """How many there were, whatever was left out."""
    broken: Unanswered | None = None
    """Why there may have been more; a last line that was cut off is not among them."""


class LinesClient:
    """Gets pages of one endpoint. Each call opens its own connection."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        timeout_s: float,
        line_bytes_max: int,
        lines_max: int,
    ) -> None:
        """`timeout_s` is for connecting and for all of the answer, each."""
        check_endpoint(url, headers, timeout_s, 1)
        self.place = place_of(url)
        self._url = url.rstrip("/")
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._line_bytes_max = line_bytes_max
        self._lines_max = lines_max
        self._opener = opener()

    def get(self, path: str) -> Lines:
        """Raises `Unanswered` where not even a page began."""
        request = urllib.request.Request(f"{self._url}{path}", headers=self._headers)  # noqa: S310  # checked
        with reaching(self.place):
            answer = self._opener.open(request, timeout=self._timeout_s)
        with answer:
            return self._read(answer)

    def _read(self, answer: Any) -> Lines:
        lines: list[bytes] = []
        count = 0
        broken = None
        try:
            while count < self._lines_max and (raw := answer.readline(self._line_bytes_max + 2)):
                ended = raw.endswith(b"\n")
                if not ended and len(raw) > self._line_bytes_max:
                    _skip(answer)
                elif not ended and (answer.length or not raw.rstrip().endswith(b"}")):
                    broken = Unanswered(f"{self.place} hung up in the middle of a line", retryable=True)
                    break
                elif raw.isspace():
                    continue
                else:
                    lines.append(raw.strip())
                count += 1
        except (OSError, http.client.HTTPException, ValueError) as exc:
            broken = Unanswered(f"{self.place} hung up: {type(exc).__name__}", retryable=True)
        if broken is None and answer.length and count < self._lines_max:
            broken = Unanswered(f"{self.place} hung up in the middle of its answer", retryable=True)
        return Lines(lines=lines, count=count, broken=broken)


def _skip(answer: IO[bytes]) -> None:
    with suppress(ValueError):
        while (piece := answer.readline(_SKIP_BYTES)) and not piece.endswith(b"\n"):
            pass
