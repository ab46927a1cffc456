"""One conversation: what is said goes to the model through the proxy; what memory had to say to it is asked beside it."""

from typing import Any

import msgspec

from memplane.errors import InvalidRequest
from memplane.providers.http_json import JsonClient, Unanswered

_TIMEOUT_S = 300.0
_ANSWER_BYTES_MAX = 32 * 1024 * 1024
_HEALTH_BYTES_MAX = 64 * 1024
_HEALTH_S = 10.0


class Recollection(msgspec.Struct, frozen=True):
    """One thing that was recalled."""

    text: str = ""
    kind: str = ""
    ts: str = ""
    score: float = 0.0


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """What was said, what came to mind, and what was answered."""

    said: str
    recalled: tuple[Recollection, ...]
    answered: str


class _Told(msgspec.Struct):
    memories: list[Recollection] | None = None


class _Message(msgspec.Struct):
    content: Any = None


class _Choice(msgspec.Struct):
    message: _Message = msgspec.field(default_factory=_Message)


class _Completion(msgspec.Struct):
    choices: list[_Choice] = []


class _Health(msgspec.Struct):
    ok: bool = False
    version: str = ""


_TOLD = msgspec.json.Decoder(_Told)
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
        headers = {"X-Memplane-Conversation": conversation, "X-Memplane-Space": space}
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
        self._space = space
        self._model = model
        self._messages: list[dict[str, str]] = []

    def say(self, text: str) -> Exchange:
        """Raises `InvalidRequest` where no answer comes; the conversation is then as it was."""
        messages = [*self._messages, {"role": "user", "content": text}]
        recalled = self._recalled(messages)
        try:
            raw = self._client.post("/v1/chat/completions", {"model": self._model, "messages": messages})
            choices = _COMPLETION.decode(raw).choices
        except Unanswered as exc:
            raise InvalidRequest(f"no answer: {exc}") from exc
        except msgspec.DecodeError as exc:
            raise InvalidRequest("no answer: what came is no chat completion") from exc
        content = choices[0].message.content if choices else None
        answered = content if isinstance(content, str) else ""
        self._messages = [*messages, {"role": "assistant", "content": answered}]
        return Exchange(said=text, recalled=recalled, answered=answered)

    def _recalled(self, messages: list[dict[str, str]]) -> tuple[Recollection, ...]:
        """As the proxy recalls for the same turn: not what the conversation says itself. A chat goes on without."""
        try:
            raw = self._client.post("/recall", {"agent_id": self._space, "messages": messages})
            told = _TOLD.decode(raw).memories or []
        except (Unanswered, msgspec.DecodeError):
            return ()
        said = " ".join(" ".join(message["content"].split()) for message in messages)
        return tuple(it for it in told if " ".join(it.text.split()) not in said)
