"""Embeddings from any endpoint that speaks OpenAI's `/v1/embeddings`: OpenAI, Azure, vLLM, Ollama, LM Studio, …"""

import base64
import binascii
import email.utils
import http.client
import random
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memplane.errors import SettingsInvalid
from memplane.providers.embedding import (
    EmbeddingFailed,
    EmbeddingUnavailable,
    Vector,
    Vectors,
    normalised,
)

_WAIT_FIRST_S = 0.5
_WAIT_MAX_S = 30.0
_ANSWER_BYTES_MAX = 256 * 1024 * 1024
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where to ask, and for what. The key shows in no log, error or representation."""

    model: str
    dimension: int
    url: str = "https://api.openai.com/v1"
    key: str | None = None
    send_dimension: bool = False
    """Ask for `dimension` numbers; only for models that can be shortened."""
    query_prefix: str = ""
    text_prefix: str = ""
    timeout_s: float = 30.0
    attempts_max: int = 4
    batch_texts_max: int = 128
    text_chars_max: int = 24_000
    """Longer text is cut, since an endpoint refuses what does not fit its model."""

    def __repr__(self) -> str:
        return f"Endpoint(model={self.model!r}, dimension={self.dimension}, url={_place(self.url)!r})"

    __str__ = __repr__


class _Item(msgspec.Struct):
    embedding: list[float] | str
    index: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Item]


class OpenAIEmbedder:
    """`Embedder` over an `Endpoint`. Each call opens its own connection, so threads share nothing."""

    def __init__(self, endpoint: Endpoint, *, sleep: Callable[[float], None] = time.sleep) -> None:
        if urllib.parse.urlsplit(endpoint.url).scheme not in {"http", "https"}:
            raise SettingsInvalid("the address of an embedding endpoint begins with http:// or https://")
        if endpoint.dimension < 1 or endpoint.batch_texts_max < 1 or endpoint.attempts_max < 1:
            raise SettingsInvalid(
                "dimension, batch size and attempts of an embedding endpoint are at least 1"
            )
        self._endpoint = endpoint
        self._sleep = sleep
        self._opener = urllib.request.build_opener(_NoRedirect)

    @property
    def model_id(self) -> str:
        return f"{self._endpoint.model}@{self._endpoint.dimension}"

    @property
    def dimension(self) -> int:
        return self._endpoint.dimension

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        return self._embed([self._endpoint.text_prefix + text for text in texts])

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self._embed([self._endpoint.query_prefix + text])[0]
        return vector

    def _embed(self, texts: Sequence[str]) -> Vectors:
        size = self._endpoint.batch_texts_max
        rows = [np.empty((0, self.dimension), np.float32)]
        for start in range(0, len(texts), size):
            batch = [_sendable(text, self._endpoint.text_chars_max) for text in texts[start : start + size]]
            rows.append(self._vectors(self._ask(batch), len(batch)))
        return np.concatenate(rows)

    def _ask(self, texts: Sequence[str]) -> bytes:
        request = self._request(texts)
        waits = _waits()
        for attempt in range(1, self._endpoint.attempts_max + 1):
            try:
                return self._send(request)
            except _Refused as refused:
                if not refused.retryable:
                    raise EmbeddingFailed(str(refused)) from None
                if attempt == self._endpoint.attempts_max:
                    raise EmbeddingUnavailable(f"{refused}; {attempt} attempts were made") from None
                wait = next(waits)
                self._sleep(min(refused.wait_s, _WAIT_MAX_S) if refused.wait_s is not None else wait)
        raise AssertionError("attempts_max is at least 1")

    def _request(self, texts: Sequence[str]) -> urllib.request.Request:
        body: dict[str, Any] = {"model": self._endpoint.model, "input": texts, "encoding_format": "float"}
        if self._endpoint.send_dimension:
            body["dimensions"] = self.dimension
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        return urllib.request.Request(  # noqa: S310  # the constructor checked the scheme
            f"{self._endpoint.url.rstrip('/')}/embeddings", msgspec.json.encode(body), headers, method="POST"
        )

    def _send(self, request: urllib.request.Request) -> bytes:
        """The body of a good answer; what an endpoint says in a bad one may quote the key, so nobody sees it."""
        place = _place(self._endpoint.url)
        try:
            with self._opener.open(request, timeout=self._endpoint.timeout_s) as answer:
                body: bytes = answer.read(_ANSWER_BYTES_MAX + 1)
        except urllib.error.HTTPError as exc:
            with exc:
                wait_s = _retry_after(exc.headers.get("Retry-After"))
            raise _Refused(
                f"{place} answered {exc.code}", retryable=exc.code in _RETRIED, wait_s=wait_s
            ) from None
        except (OSError, http.client.HTTPException) as exc:
            cause = exc.reason if isinstance(exc, urllib.error.URLError) else exc
            raise _Refused(f"{place} cannot be reached: {type(cause).__name__}", retryable=True) from None
        if len(body) > _ANSWER_BYTES_MAX:
            raise _Refused(f"{place} sent too long an answer", retryable=False)
        return body

    def _vectors(self, body: bytes, count: int) -> Vectors:
        place = _place(self._endpoint.url)
        try:
            items = msgspec.json.decode(body, type=_Answer).data
        except msgspec.DecodeError as exc:
            raise EmbeddingFailed(f"{place} sent something that is not an embedding answer") from exc
        places = [number if item.index is None else item.index for number, item in enumerate(items)]
        if sorted(places) != list(range(count)):
            raise EmbeddingFailed(f"{place} was asked for {count} vectors and sent others")
        found = [_numbers(items[number].embedding) for number in np.argsort(places)]
        for vector in found:
            if len(vector) != self.dimension:
                raise EmbeddingFailed(
                    f"{place} sent vectors of {len(vector)} numbers where the settings say {self.dimension}"
                )
        rows = np.stack(found)
        if not np.isfinite(rows).all():
            raise EmbeddingFailed(f"{place} sent a vector that holds something other than numbers")
        return normalised(rows)


class _Refused(Exception):
    """One attempt failed."""

    def __init__(self, message: str, *, retryable: bool, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.wait_s = wait_s


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to somewhere nobody named."""

    def redirect_request(self, *_args: object, **_rest: object) -> None:
        return None


def _waits() -> Iterator[float]:
    """Twice as long each time, with some luck in it so that many clients do not come back at once."""
    wait = _WAIT_FIRST_S
    while True:
        yield wait * random.uniform(0.5, 1.0)  # noqa: S311  # nothing secret
        wait = min(wait * 2, _WAIT_MAX_S)


def _retry_after(value: str | None) -> float | None:
    """Seconds, from a number or a date; None when the endpoint does not say."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _numbers(embedding: list[float] | str) -> NDArray[np.float32]:
    if isinstance(embedding, list):
        return np.asarray(embedding, np.float32)
    try:
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float32)
    except (binascii.Error, ValueError) as exc:
        raise EmbeddingFailed("an embedding is neither a list of numbers nor base64 of them") from exc


def _sendable(text: str, chars_max: int) -> str:
    """Endpoints refuse empty input and halves of surrogate pairs."""
    return text[:chars_max].encode("utf-8", "replace").decode("utf-8") or " "


def _place(url: str) -> str:
    """The address without what may be secret in it: user, password, query."""
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    return urllib.parse.urlunsplit(
        (parts.scheme, f"{host}:{parts.port}" if parts.port else host, parts.path, "", "")
    )
