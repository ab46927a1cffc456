"""What both LLM wire formats share: the endpoint, and error handling."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from memplane.models.http import JsonClient, NoResponse, display_address
from memplane.models.llm import LLMFailed, LLMUnavailable, LLMUnusable

_ANSWER_BYTES_MAX = 8 * 1024 * 1024
_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
"""Too long or rejected: the endpoint may accept another request."""

T = TypeVar("T")


class LLMEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint and model. The key appears in no log, error or repr."""

    model: str
    url: str = ""
    """Empty: the provider's default address."""
    key: str | None = None
    timeout_s: float = 120.0
    attempts_max: int = 4

    def __repr__(self) -> str:
        return f"LLMEndpoint(model={self.model!r}, url={display_address(self.url)!r})"

    __str__ = __repr__


class LLMConnection:
    """The connection to one endpoint, with errors as an `LLM` raises them."""

    def __init__(
        self,
        endpoint: LLMEndpoint,
        *,
        url: str,
        headers: Mapping[str, str],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = JsonClient(
            endpoint.url or url,
            headers=headers,
            timeout_s=endpoint.timeout_s,
            attempts_max=endpoint.attempts_max,
            answer_bytes_max=_ANSWER_BYTES_MAX,
            sleep=sleep,
        )

    def post(self, path: str, body: Mapping[str, Any], shape: type[T]) -> T:
        """The decoded answer."""
        try:
            answer = self._client.post(path, body)
        except NoResponse as exc:
            if exc.retryable:
                raise LLMUnavailable(str(exc)) from None
            if exc.status is None or exc.status in _ABOUT_THE_REQUEST:
                raise LLMUnusable(str(exc), status=exc.status) from None
            raise LLMFailed(str(exc)) from None
        try:
            # msgspec's parser rejects lone surrogates, which models do write.
            return msgspec.convert(json.loads(answer), shape)
        except (ValueError, RecursionError):
            raise LLMUnusable(f"{self._client.place} sent something that is not its answer format") from None


def tokens_of(usage: Any, *fields: str) -> int:
    """The reported token counts. Not all endpoints report them, and the answer matters more."""
    counts = [usage.get(field) for field in fields] if isinstance(usage, dict) else []
    return sum(count for count in counts if type(count) is int and count > 0)
