"""Embeddings from any endpoint that speaks OpenAI's `/v1/embeddings`: OpenAI, Azure, vLLM, Ollama, LM Studio, …"""

import base64
import binascii
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memplane.errors import SettingsInvalid
from memplane.models.embedding import (
    EmbeddingFailed,
    EmbeddingUnavailable,
    EmbeddingUnusable,
    Vector,
    Vectors,
    normalised,
)
from memplane.models.http import JsonClient, NoResponse, display_address, well_formed

_ANSWER_BYTES_MAX = 256 * 1024 * 1024

_ABOUT_THE_TEXTS = frozenset({400, 413, 422})
"""Too long or rejected: the endpoint may accept other texts."""


class EmbeddingEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint and model. The key appears in no log, error or repr."""

    model: str
    dimension: int
    url: str = "https://api.openai.com/v1"
    key: str | None = None
    send_dimension: bool = False
    """Request `dimension` numbers; only for models that support shortening."""
    query_prefix: str = ""
    text_prefix: str = ""
    timeout_s: float = 30.0
    attempts_max: int = 4
    batch_texts_max: int = 128
    text_chars_max: int = 24_000
    """Longer text is cut, since an endpoint rejects what exceeds its model's limit."""

    def __repr__(self) -> str:
        return (
            f"Endpoint(model={self.model!r}, dimension={self.dimension}, url={display_address(self.url)!r})"
        )

    __str__ = __repr__


class _Item(msgspec.Struct):
    embedding: list[float] | str
    index: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Item]


class OpenAIEmbedder:
    """`Embedder` over an `EmbeddingEndpoint`."""

    def __init__(self, endpoint: EmbeddingEndpoint, *, sleep: Callable[[float], None] = time.sleep) -> None:
        if endpoint.dimension < 1 or endpoint.batch_texts_max < 1:
            raise SettingsInvalid("dimension and batch size of an embedding endpoint are at least 1")
        self._endpoint = endpoint
        self._client = JsonClient(
            endpoint.url,
            headers={"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {},
            timeout_s=endpoint.timeout_s,
            attempts_max=endpoint.attempts_max,
            answer_bytes_max=_ANSWER_BYTES_MAX,
            sleep=sleep,
        )

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
            rows.append(self._vectors(self._request(batch), len(batch)))
        return np.concatenate(rows)

    def _request(self, texts: Sequence[str]) -> bytes:
        body: dict[str, Any] = {"model": self._endpoint.model, "input": texts, "encoding_format": "float"}
        if self._endpoint.send_dimension:
            body["dimensions"] = self.dimension
        try:
            return self._client.post("/embeddings", body)
        except NoResponse as exc:
            if exc.retryable:
                raise EmbeddingUnavailable(str(exc)) from None
            raise (EmbeddingUnusable if exc.status in _ABOUT_THE_TEXTS else EmbeddingFailed)(
                str(exc)
            ) from None

    def _vectors(self, body: bytes, count: int) -> Vectors:
        place = self._client.place
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
            raise EmbeddingUnusable(f"{place} sent a vector that holds something other than numbers")
        return normalised(rows)


def _numbers(embedding: list[float] | str) -> NDArray[np.float32]:
    if isinstance(embedding, list):
        return np.asarray(embedding, np.float32)
    try:
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float32)
    except (binascii.Error, ValueError) as exc:
        raise EmbeddingFailed("an embedding is neither a list of numbers nor base64 of them") from exc


def _sendable(text: str, chars_max: int) -> str:
    """Endpoints reject empty input and lone surrogates."""
    return well_formed(text[:chars_max]) or " "
