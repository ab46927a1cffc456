"""One conversation: what is said goes to the model through the proxy, which shows what memory had to say to it."""

from typing import Any

import msgspec

from memplane.errors import InvalidRequest
from memplane.governance.outgoing import RecalledBlock
from memplane.providers.http_json import JsonClient, Unanswered
from memplane.turns.shown import RECALL_HEADER, SHOW, TOLD_HEADER, read_blocks

_TIMEOUT_S = 300.0
_ANSWER_BYTES_MAX = 32 * 1024 * 1024
_HEALTH_BYTES_MAX = 64 * 1024
_HEALTH_S = 10.0


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """What was said, what came to mind, and what was answered."""

    said: str
    recalled: tuple[RecalledBlock, ...]
    """What was put into the prompt."""
    answered: str


class _Message(msgspec.Struct):
    content: Any = None


class _Choice(msgspec.Struct):
    message: _Message = msgspec.field(default_factory=_Message)


class _Completion(msgspec.Struct):
    choices: list[_Choice] = []


class _Health(msgspec.Struct):
    ok: bool = False
    version: str = ""


_COMPLETION = msgspec.json.Decoder(_Completion)
_HEALTH = msgspec.json.Decoder(_Health)


def is_memplane(url: str) -> bool:
    """Whether a Memplane server is at an address; anything else is taken for a provider."""
    client = JsonClient(
        f"{root_of(url)}/healthz",
        headers={},
        timeout_s=_HEALTH_S,
        attempts_max=1,
        answer_bytes_max=_HEALTH_BYTES_MAX,
    )
    try:
        found = _HEALTH.decode(client.get())
    except (Unanswered, msgspec.DecodeError):
        return False
    return found.ok and bool(found.version)


def root_of(url: str) -> str:
    """A base URL without the version that OpenAI's clients want in it."""
    return url.rstrip("/").removesuffix("/v1")


class Talk:
    """Keeps the conversation and sends all of it each time, as any client of a provider does."""

    def __init__(self, url: str, *, key: str, space: str, conversation: str, model: str) -> None:
        headers = {"X-Memplane-Conversation": conversation, "X-Memplane-Space": space, RECALL_HEADER: SHOW}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            raise InvalidRequest("the names of a space and a conversation in a chat are plain ASCII")
        self._client = JsonClient(
            root_of(url),
            headers=headers,
            timeout_s=_TIMEOUT_S,
            attempts_max=1,
            answer_bytes_max=_ANSWER_BYTES_MAX,
        )
        self._model = model
        self._messages: list[dict[str, str]] = []

    def say(self, text: str) -> Exchange:
        """Raises `InvalidRequest` where no answer comes; the conversation is then as it was."""
        messages = [*self._messages, {"role": "user", "content": text}]
        try:
            asked = {"model": self._model, "messages": messages}
            raw, headers = self._client.exchange("/v1/chat/completions", asked)
            choices = _COMPLETION.decode(raw).choices
        except Unanswered as exc:
            raise InvalidRequest(f"no answer: {exc}") from exc
        except msgspec.DecodeError as exc:
            raise InvalidRequest("no answer: what came is no chat completion") from exc
        content = choices[0].message.content if choices else None
        answered = content if isinstance(content, str) else ""
        self._messages = [*messages, {"role": "assistant", "content": answered}]
        recalled = read_blocks(headers.get(TOLD_HEADER))
        return Exchange(said=text, recalled=recalled, answered=answered)
