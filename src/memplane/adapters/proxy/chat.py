"""The implementation of `memplane chat`, imported when it runs."""

import json
import re
import secrets
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, cast

import msgspec
from rich.table import Table
from rich.text import Text

from memplane.adapters.all import build_app
from memplane.adapters.proxy.headers import RECALL_HEADER, RECALLED_HEADER, SHOW, read_blocks
from memplane.auth.principal import Principal, Right, Unauthenticated
from memplane.config import Settings, settings_from
from memplane.engine import Engine
from memplane.errors import InvalidRequest, MemplaneError
from memplane.ledger.history_text import content_text
from memplane.models.http import JsonClient, NoResponse
from memplane.safety.fence import BRIEF_INTRODUCTION, INTRODUCTION
from memplane.safety.outgoing import ServiceBlock
from memplane.safety.sanitize import one_line, printable
from memplane.server.serve import Server, uvicorn_config
from memplane.terminal.call import CommandContext
from memplane.terminal.output import line
from memplane.types import TENANT_DEFAULT

# An echo model for the tour, which needs no network and no weights: it repeats earlier messages and memories. It
# speaks OpenAI's chat completions, whole or streamed, and gives the same response to the same request.


MODEL = "echo"
NOTED = "Noted."
UNKNOWN = "I do not know that yet."
REMEMBERED = "You told me:"

_BODY_BYTES_MAX = 32 * 1024 * 1024
_BEGIN, _END = "--- BEGIN MEMORY", "--- END MEMORY ---"
_ENTRY = re.compile(r"- \[[a-z]+\] (.*?)(?: \(\d+d ago\))?")
"""Matches a line of the brief, without its kind and age."""
_WORD = re.compile(r"\w{3,}")
_TOKEN_CHARS = 4


def answer_of(request: Any) -> str:
    """Answer a question with the recalled or earlier line that shares the most words with it."""
    messages = request.get("messages") if isinstance(request, dict) else None
    texts = [_text(it) for it in messages] if isinstance(messages, list) else []
    said = [
        text
        for it, text in zip(messages or (), texts, strict=False)
        if isinstance(it, dict) and it.get("role") == "user" and _BEGIN not in text
    ]
    question = " ".join(said[-1].split()) if said else ""
    if not question.endswith("?"):
        return NOTED
    remembered: dict[str, str] = {}
    # Memories recalled for this turn come after the brief, so the newest are read first.
    for text in reversed(texts):
        for fact in _remembered(text):
            remembered.setdefault(_bare(fact), fact)
    for text in said[:-1]:
        if not text.strip().endswith("?"):
            remembered.setdefault(_bare(text), " ".join(text.split()))
    if not remembered:
        return UNKNOWN
    words = set(_WORD.findall(question.lower()))
    ranked = sorted(
        remembered.values(), key=lambda line: len(words & set(_WORD.findall(line.lower()))), reverse=True
    )
    return f'{REMEMBERED} "{ranked[0]}"'


def _bare(line: str) -> str:
    """Texts that differ only in a final dot count as equal."""
    return line.strip(" .!").lower()


def _text(message: Any) -> str:
    return content_text(message.get("content")) if isinstance(message, dict) else ""


def _remembered(text: str) -> Iterator[str]:
    """Yield the fact lines inside the memory fence, without attributes, headings, questions and earlier answers."""
    inside = False
    for raw in text.splitlines():
        if raw.startswith((_BEGIN, _END)):
            inside = raw.startswith(_BEGIN)
            continue
        entry = _ENTRY.fullmatch(raw.strip())
        line = entry[1] if entry else raw.strip()
        silent = line.startswith(("[", "#", ">", REMEMBERED, "According to the assistant")) or line in {
            "",
            UNKNOWN,
            NOTED,
            BRIEF_INTRODUCTION,
            INTRODUCTION,
        }
        if inside and not silent and not line.endswith("?"):
            yield line


class EchoModel:
    """An OpenAI-compatible echo model on a loopback port, while the context is open."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="memplane-echo", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's parameter name
        """Discard access log lines."""

    def do_GET(self) -> None:
        if self.path.rstrip("/").endswith("/models"):
            self._send(
                200, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "memplane"}]}
            )
        else:
            self._refuse(404, "the echo model has /v1/models and /v1/chat/completions")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _BODY_BYTES_MAX:
            self.close_connection = True
            self._refuse(413, "the request is too long or has no Content-Length")
            return
        raw = self.rfile.read(int(length))
        try:
            request = json.loads(raw)
        except (ValueError, RecursionError):
            self._refuse(400, "the request is not JSON")
            return
        if not self.path.rstrip("/").endswith("/chat/completions") or not isinstance(request, dict):
            self._refuse(404, "the echo model has /v1/models and /v1/chat/completions")
        elif request.get("stream"):
            self._stream(answer_of(request))
        else:
            self._whole(request, answer_of(request))

    def _whole(self, request: dict[str, Any], text: str) -> None:
        usage = {"prompt_tokens": _tokens(json.dumps(request)), "completion_tokens": _tokens(text)}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        self._send(
            200,
            {
                "id": "chatcmpl-echo",
                "object": "chat.completion",
                "created": 0,
                "model": MODEL,
                "choices": [choice],
                "usage": usage | {"total_tokens": sum(usage.values())},
            },
        )

    def _stream(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for word in text.splitlines(keepends=True):
            self._event({"index": 0, "delta": {"content": word}, "finish_reason": None})
        self._event({"index": 0, "delta": {}, "finish_reason": "stop"})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, choice: dict[str, Any]) -> None:
        chunk = {"id": "chatcmpl-echo", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
        self.wfile.write(b"data: " + json.dumps(chunk | {"choices": [choice]}).encode() + b"\n\n")

    def _refuse(self, status: int, message: str) -> None:
        self._send(status, {"error": {"message": message, "type": "invalid_request_error"}})

    def _send(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _tokens(text: str) -> int:
    """A rough count; echo tokens cost nothing."""
    return len(text) // _TOKEN_CHARS + 1


# A proxy for one chat: a server in this process on a free local port. Only this chat has its key.


_PATIENCE_MS = 30_000
"""In a chat, a complete recall matters more than a fast one."""
_POLL_S = 0.01


class SingleKeyAuthenticator:
    """An `Authenticator` for a single caller, for the life of the process."""

    def __init__(self, space: str) -> None:
        self.key = secrets.token_urlsafe(32)
        self._principal = Principal(
            tenant=TENANT_DEFAULT,
            subject=space,
            spaces=frozenset({space}),
            rights=frozenset({Right.READ, Right.WRITE}),
            credential="chat",
        )

    def authenticate(self, credential: str, *, peer: str) -> Principal:  # noqa: ARG002
        if not secrets.compare_digest(credential.encode(), self.key.encode()):
            raise Unauthenticated("the credential is not valid")
        return self._principal


@contextmanager
def proxy_before(plane: Engine, settings: Settings, upstream: str, space: str) -> Iterator[tuple[str, str]]:
    """Yield the address and key of a proxy in front of an upstream, while the block runs."""
    chosen = msgspec.structs.replace(
        settings,
        openai_base_url=upstream,
        proxy_recall_ms=_PATIENCE_MS,
        proxy_retain_ms=_PATIENCE_MS,
        recall_answer_ms=_PATIENCE_MS,
        claw_history_url=None,
        claw_context_root=None,
    )
    keys = SingleKeyAuthenticator(space)
    app = build_app(plane, keys, chosen)
    listening = socket.socket()
    try:
        listening.bind(("127.0.0.1", 0))
        server = Server(uvicorn_config(app, chosen), app)
        thread = threading.Thread(target=server.run, args=([listening],), name="memplane-chat", daemon=True)
        thread.start()
        while not server.started:
            thread.join(_POLL_S)
            if not thread.is_alive():
                raise MemplaneError("the proxy of this chat did not start")
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", keys.key
        finally:
            server.should_exit = True
            thread.join()
    finally:
        listening.close()


# One conversation: messages go to the model through the proxy, which reports the injected memories.


_TIMEOUT_S = 300.0
_ANSWER_BYTES_MAX = 32 * 1024 * 1024
_HEALTH_BYTES_MAX = 64 * 1024
_HEALTH_S = 10.0


class ChatExchange(msgspec.Struct, frozen=True, kw_only=True):
    """A message, the memories recalled for it, and the answer."""

    message: str = msgspec.field(name="said")
    recalled: tuple[ServiceBlock, ...]
    """The memories added to the prompt."""
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
    """Return whether the address is a Memplane server; anything else counts as a provider."""
    client = JsonClient(
        f"{root_of(url)}/healthz",
        headers={},
        timeout_s=_HEALTH_S,
        attempts_max=1,
        answer_bytes_max=_HEALTH_BYTES_MAX,
    )
    try:
        found = _HEALTH.decode(client.get())
    except (NoResponse, msgspec.DecodeError):
        return False
    return found.ok and bool(found.version)


def root_of(url: str) -> str:
    """Return the base URL without the version segment that OpenAI clients add."""
    return url.rstrip("/").removesuffix("/v1")


class ChatSession:
    """A client that sends the whole conversation with each request, like provider clients do."""

    def __init__(self, url: str, *, key: str, space: str, conversation: str, model: str) -> None:
        headers = {"X-Memplane-Conversation": conversation, "X-Memplane-Space": space, RECALL_HEADER: SHOW}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            raise InvalidRequest("space and conversation names in a chat must be ASCII")
        self._client = JsonClient(
            root_of(url),
            headers=headers,
            timeout_s=_TIMEOUT_S,
            attempts_max=1,
            answer_bytes_max=_ANSWER_BYTES_MAX,
        )
        self._model = model
        self._messages: list[dict[str, str]] = []

    def say(self, text: str) -> ChatExchange:
        """Send a message; raise `InvalidRequest` without an answer and leave the conversation unchanged."""
        messages = [*self._messages, {"role": "user", "content": text}]
        try:
            asked = {"model": self._model, "messages": messages}
            raw, headers = self._client.exchange("/v1/chat/completions", asked)
            choices = _COMPLETION.decode(raw).choices
        except NoResponse as exc:
            raise InvalidRequest(f"no answer: {exc}") from exc
        except msgspec.DecodeError as exc:
            raise InvalidRequest("the response is not a chat completion") from exc
        content = choices[0].message.content if choices else None
        answered = content if isinstance(content, str) else ""
        self._messages = [*messages, {"role": "assistant", "content": answered}]
        recalled = read_blocks(headers.get(RECALLED_HEADER))
        return ChatExchange(message=text, recalled=recalled, answered=answered)


_PROVIDER_MODEL = "gpt-4o-mini"
_ENDINGS = frozenset({"/quit", "/exit"})
_HELP = "/help"
_RECALLED_CHARS_MAX = 200


def chat(call: CommandContext, url: str | None, model: str | None, conversation: str | None) -> None:
    name = conversation or f"chat-{secrets.token_hex(4)}"
    exchanges: list[ChatExchange] = []
    failed: InvalidRequest | None = None
    with ExitStack() as opened:
        place, key, chosen = _reached(call, url, model, opened)
        talk = ChatSession(place, key=key, space=call.space_name, conversation=name, model=chosen)
        call.out.note(
            f"Conversation {name} in space {call.space_name}, with {chosen}. Ctrl-D or /quit exits."
        )
        for said in _input_lines(call):
            try:
                exchange = talk.say(said)
            except InvalidRequest as exc:
                failed = exc
                if not sys.stdin.isatty():
                    break
                call.out.warn(str(exc))
                continue
            failed = None
            exchanges.append(exchange)
            _show(call, exchange)
    if failed is not None:
        raise failed
    if call.out.json:
        document = {"space": call.space_name, "conversation": name, "model": chosen, "exchanges": exchanges}
        call.out.answer(document)


def _reached(
    call: CommandContext, url: str | None, model: str | None, opened: ExitStack
) -> tuple[str, str, str]:
    """Return address, key and model; start a local proxy unless the URL is a Memplane server."""
    environment = call.wiring.environment
    if url is not None and is_memplane(url):
        return url, environment.get("MEMPLANE_TOKEN", ""), model or _PROVIDER_MODEL
    upstream = opened.enter_context(EchoModel()).url if url is None else url
    settings = settings_from({**environment, **({} if url is not None else {"OPENAI_API_KEY": "echo"})})
    plane = cast("Engine", call.plane)
    place, key = opened.enter_context(proxy_before(plane, settings, upstream, call.space_name))
    return place, key, model or (MODEL if url is None else _PROVIDER_MODEL)


def _input_lines(call: CommandContext) -> Iterator[str]:
    """Yield the user's messages, line by line, from a terminal or a pipe."""
    while True:
        if sys.stdin.isatty():
            sys.stderr.write("> ")
            sys.stderr.flush()
        try:
            text = sys.stdin.readline()
        except UnicodeDecodeError as exc:
            raise InvalidRequest("stdin is not UTF-8; convert it first, for example with iconv") from exc
        if not text or text.strip() in _ENDINGS:
            if sys.stdin.isatty():
                call.out.note("")
            return
        if text.strip() == _HELP:
            call.out.show(
                line(
                    "Type a message. The recalled memories appear next to the answer. Ctrl-D or /quit exits.",
                )
            )
        elif text.strip():
            yield text.strip()


def _show(call: CommandContext, exchange: ChatExchange) -> None:
    if not sys.stdin.isatty():
        call.out.print_part(line((f"> {one_line(exchange.message)}", "bold")))
    beside = Table.grid(padding=(0, 3), expand=False)
    beside.add_column(overflow="fold", ratio=2)
    beside.add_column(overflow="fold", ratio=1, style="dim")
    beside.add_row(Text(printable(exchange.answered)), Text("\n".join(_recalled(exchange))))
    call.out.print_part(beside)


def _recalled(exchange: ChatExchange) -> list[str]:
    if not exchange.recalled:
        return ["nothing recalled"]
    shown = [one_line(it.text[:_RECALLED_CHARS_MAX]) for it in exchange.recalled]
    return [f"recalled ({len(shown)}):", *(f"· {text}" for text in shown)]
