"""A model for the tour, which needs no network and no weights: it says back what it was told, memory included.

It speaks OpenAI's chat completions, whole or as a stream, and always answers the same to the same request.
"""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from memplane.governance.fence import BRIEF_INTRODUCTION
from memplane.ledger.history_reply import content_text

MODEL = "echo"
NOTED = "Noted."
UNKNOWN = "I do not know that yet."
REMEMBERED = "You told me:"

_BODY_BYTES_MAX = 32 * 1024 * 1024
_BEGIN, _END = "--- BEGIN MEMORY", "--- END MEMORY ---"
_ENTRY = re.compile(r"- \[[a-z]+\] (.*?)(?: \(\d+d ago\))?")
"""A line of the brief: its kind and its age say nothing."""
_WORD = re.compile(r"\w{3,}")
_TOKEN_CHARS = 4


def answer_of(request: Any) -> str:
    """What the model says to a request: of what memory or the conversation told it, that which shares most words with
    the question."""
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
    # What was recalled for this turn stands after what the conversation began with.
    for text in reversed(texts):
        for line in _remembered(text):
            remembered.setdefault(_bare(line), line)
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
    """What is the same but for its dot is the same."""
    return line.strip(" .!").lower()


def _text(message: Any) -> str:
    return content_text(message.get("content")) if isinstance(message, dict) else ""


def _remembered(text: str) -> Iterator[str]:
    """The lines between the marks that say something: no attributes, no headings, no questions, nothing of its own."""
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
        }
        if inside and not silent and not line.endswith("?"):
            yield line


class EchoModel:
    """Listens on this machine until it is left."""

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

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the library
        """Nobody reads it."""

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
            self._refuse(413, "the request is too long, or does not say how long it is")
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
    """Roughly; nobody pays for them."""
    return len(text) // _TOKEN_CHARS + 1
