"""Any endpoint that speaks OpenAI's `/v1/chat/completions`: OpenAI, Azure, vLLM, Ollama, LM Studio, …"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from memplane.models.http import well_formed
from memplane.models.llm import Completion, LLMUnusable, Schema, StopReason
from memplane.models.llm_endpoint import LLMConnection, LLMEndpoint, tokens_of

_URL = "https://api.openai.com/v1"
_FORM_REFUSED = frozenset({400, 422})
_STOPS = {"length": StopReason.CUT, "content_filter": StopReason.REFUSED}


class _Form(NamedTuple):
    """A variant of the same request."""

    response_format: str
    tokens_field: str


_FORMS = (
    _Form("json_schema", "max_tokens"),
    _Form("json_schema", "max_completion_tokens"),
    _Form("json_object", "max_tokens"),
    _Form("text", "max_tokens"),
)
"""From the most specific to the most widely understood. OpenAI's newer models reject `max_tokens`; others know
nothing else, and a few reject schemas."""


class _Message(msgspec.Struct):
    content: Any = None
    refusal: Any = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: Any = None


class _Answer(msgspec.Struct):
    choices: list[_Choice]
    usage: Any = None


class OpenAIChat:
    """`LLM` over chat completions. The accepted variant is determined once, with the first requests."""

    def __init__(self, endpoint: LLMEndpoint, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._endpoint = endpoint
        headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        self._line = LLMConnection(endpoint, url=_URL, headers=headers, sleep=sleep)
        self._settled: _Form | None = None

    @property
    def model_id(self) -> str:
        return self._endpoint.model

    def complete(self, system: str, user: str, schema: Schema, tokens_max: int) -> Completion:
        refused: LLMUnusable | None = None
        for form in (self._settled,) if self._settled else _FORMS:
            try:
                answer = self._line.post(
                    "/chat/completions", self._body(form, system, user, schema, tokens_max), _Answer
                )
            except LLMUnusable as exc:
                if exc.status not in _FORM_REFUSED:
                    raise
                refused = exc
                continue
            self._settled = form
            return self._completion(answer)
        assert refused is not None
        raise refused

    def _body(self, form: _Form, system: str, user: str, schema: Schema, tokens_max: int) -> dict[str, Any]:
        if form.response_format != "json_schema":
            system = f"{system}\n\nAnswer with one JSON object of this schema:\n{_text(schema)}"
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": [
                {"role": "system", "content": well_formed(system)},
                {"role": "user", "content": well_formed(user)},
            ],
            form.tokens_field: tokens_max,
        }
        if form.response_format == "json_schema":
            described = {"name": "answer", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        elif form.response_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def _completion(self, answer: _Answer) -> Completion:
        if not answer.choices:
            raise LLMUnusable("the language model sent no choice")
        choice = answer.choices[0]
        return Completion(
            text=_words(choice.message.content),
            stop=StopReason.REFUSED
            if choice.message.refusal
            else _STOPS.get(str(choice.finish_reason), StopReason.DONE),
            input_tokens=tokens_of(answer.usage, "prompt_tokens"),
            output_tokens=tokens_of(answer.usage, "completion_tokens"),
        )


def _words(content: Any) -> str:
    """A string, or parts of which some are text."""
    if isinstance(content, list):
        return "".join(_words(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _text(schema: Schema) -> str:
    return msgspec.json.encode(schema).decode()
