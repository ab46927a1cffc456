"""What both wire formats of language models share: where to ask, what to make of a bad answer."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from memplane.models.http import JsonClient, NoResponse, display_address
from memplane.models.llm import LLMFailed, LLMUnavailable, LLMUnusable

_ANSWER_BYTES_MAX = 8 * 1024 * 1024
_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
"""Too long, or not liked: the endpoint may take another request."""

T = TypeVar("T")


class LLMEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where to ask, and for what. The key shows in no log, error or representation."""

    model: str
    url: str = ""
    """Empty: the provider's own address."""
    key: str | None = None
    timeout_s: float = 120.0
    attempts_max: int = 4

    def __repr__(self) -> str:
        return f"LLMEndpoint(model={self.model!r}, url={display_address(self.url)!r})"

    __str__ = __repr__


class LLMConnection:
    """The way to one endpoint, with errors as an `LLM` raises them."""

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
        """The answer in its shape."""
        try:
            answer = self._client.post(path, body)
        except NoResponse as exc:
            if exc.retryable:
                raise LLMUnavailable(str(exc)) from None
            if exc.status is None or exc.status in _ABOUT_THE_REQUEST:
                raise LLMUnusable(str(exc), status=exc.status) from None
            raise LLMFailed(str(exc)) from None
        try:
            # msgspec's own parser refuses half of a surrogate pair, which models do write, and all else with it.
            return msgspec.convert(json.loads(answer), shape)
        except (ValueError, RecursionError):
            raise LLMUnusable(f"{self._client.place} sent something that is not its answer format") from None


def tokens_of(usage: Any, *fields: str) -> int:
    """What an endpoint says it counted. Not all of them do, and an answer is worth more than its bill."""
    counts = [usage.get(field) for field in fields] if isinstance(usage, dict) else []
    return sum(count for count in counts if type(count) is int and count > 0)
