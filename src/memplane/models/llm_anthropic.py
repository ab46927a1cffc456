"""Any endpoint that speaks Anthropic's `/v1/messages`."""

import json
import time
from collections.abc import Callable
from typing import Any

import msgspec

from memplane.models.http import well_formed
from memplane.models.llm import Completion, Schema, StopReason
from memplane.models.llm_endpoint import LLMConnection, LLMEndpoint, tokens_of

_URL = "https://api.anthropic.com/v1"
_VERSION = "2023-06-01"
_TOOL = "answer"
_STOPS = {
    "max_tokens": StopReason.CUT,
    "model_context_window_exceeded": StopReason.CUT,
    "refusal": StopReason.REFUSED,
}
_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class _Block(msgspec.Struct):
    type: str
    text: Any = None
    input: Any = None


class _Answer(msgspec.Struct):
    content: list[_Block]
    stop_reason: Any = None
    usage: Any = None


class AnthropicMessages:
    """`LLM` over messages. A forced tool call requests the schema."""

    def __init__(self, endpoint: LLMEndpoint, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._endpoint = endpoint
        headers = {"anthropic-version": _VERSION}
        if endpoint.key:
            headers["x-api-key"] = endpoint.key
        self._line = LLMConnection(endpoint, url=_URL, headers=headers, sleep=sleep)

    @property
    def model_id(self) -> str:
        return self._endpoint.model

    def complete(self, system: str, user: str, schema: Schema, tokens_max: int) -> Completion:
        body = {
            "model": self._endpoint.model,
            "max_tokens": tokens_max,
            "system": well_formed(system),
            "messages": [{"role": "user", "content": well_formed(user)}],
            "tools": [{"name": _TOOL, "description": "Give the answer.", "input_schema": schema}],
            "tool_choice": {"type": "tool", "name": _TOOL},
        }
        answer = self._line.post("/messages", body, _Answer)
        return Completion(
            text=_words(answer.content),
            stop=_STOPS.get(str(answer.stop_reason), StopReason.DONE),
            input_tokens=tokens_of(answer.usage, *_READ),
            output_tokens=tokens_of(answer.usage, "output_tokens"),
        )


def _words(blocks: list[_Block]) -> str:
    """The tool's arguments; some endpoints do not support tools and answer in text."""
    for block in blocks:
        if block.type == "tool_use":
            try:
                return json.dumps(block.input)
            except RecursionError:
                return ""
    return "".join(block.text for block in blocks if isinstance(block.text, str))
