"""A real HTTP server that speaks the wire formats of OpenAI's chat completions and Anthropic's messages, and misbehaves
as `plan` says: one step a request, then as a good model would."""

import json
import re

from memplane.models.llm_anthropic import AnthropicMessages
from memplane.models.llm_endpoint import LLMEndpoint
from memplane.models.llm_openai import OpenAIChat
from stub_server import Handler, StubServer

KEY = "key-that-nobody-may-see"
TOKENS = (100, 20)
WIRES = {"openai": OpenAIChat, "anthropic": AnthropicMessages}
_LIVES = re.compile(r"[Ii] live in (\w+)")


class LLMServer(StubServer):
    """Listens on a free port until closed; `requests` holds what was asked, `waits` how long the client would sleep."""

    def __init__(self):
        self.plan = []
        self.requests = []
        self.waits = []
        server = self

        class Answering(Handler):
            def answer(self):
                exchange = Exchange(self, server)
                server.requests.append(exchange)
                step = server.plan.pop(0) if server.plan else good
                try:
                    step(exchange)
                except OSError:
                    self.close_connection = True

        super().__init__(Answering, "/v1")

    def llm(self, wire, **changes):
        endpoint = {"model": "m", "url": self.url, "key": KEY, "timeout_s": 60.0}
        return WIRES[wire](LLMEndpoint(**(endpoint | changes)), sleep=self.waits.append)


class Exchange:
    """One request, and the means to answer it."""

    def __init__(self, handler, server):
        self._handler = handler
        self.server = server
        self.path = handler.path
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        self.wire = "anthropic" if handler.path.endswith("/messages") else "openai"

    @property
    def system(self):
        return self.body["system"] if self.wire == "anthropic" else self.body["messages"][0]["content"]

    @property
    def messages(self):
        return json.loads(self.body["messages"][-1]["content"])

    def claims(self):
        """What a good model finds: where people live."""
        return [
            claim(message["message"], found.group(), object=found[1])
            for message in self.messages
            for found in _LIVES.finditer(message["text"])
        ]

    def summaries(self):
        """What a good model makes of sections: that it read them. Of a whole, number 0 alone is asked for."""
        parts = [part for part in self.messages if part["section"] == 0 and not part["text"]] or self.messages
        return [summary(part["section"], f"Told {part['title']} in short.") for part in parts]

    def answer(self, said, stop=None, tokens=TOKENS):
        """`said` in the envelope of the wire; a string is text, anything else is what the schema asked for."""
        openai = self.wire == "openai"
        return (_chat if openai else _message)(said, stop, tokens)

    def send(self, payload, status=200, headers=(), length=None):
        handler = self._handler
        handler.send_response(status)
        sent = {"Content-Type": "application/json"} | dict(headers)
        for name, value in sent.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(payload) if length is None else length))
        handler.end_headers()
        self.write(payload)

    def write(self, payload):
        self._handler.wfile.write(payload)
        self._handler.wfile.flush()

    def hang_up(self):
        self._handler.close_connection = True


def _chat(said, stop, tokens):
    refused = stop == "refused"
    text = said if isinstance(said, str) else json.dumps(said)
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None if refused else text,
                    "refusal": text if refused else None,
                },
                "finish_reason": "length" if stop == "cut" else "stop",
            }
        ],
        "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)},
    }


def _message(said, stop, tokens):
    if isinstance(said, str):
        block = {"type": "text", "text": said}
    else:
        block = {"type": "tool_use", "id": "toolu_1", "name": "answer", "input": said}
    reasons = {None: "tool_use", "cut": "max_tokens", "refused": "refusal"}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [block],
        "stop_reason": reasons[stop],
        "usage": {"input_tokens": tokens[0] - 1, "cache_read_input_tokens": 1, "output_tokens": tokens[1]},
    }


def claim(message=1, quote="I live in Rome", **changes):
    """A claim as a good model makes it."""
    return {
        "message": message,
        "quote": quote,
        "subject": "user",
        "predicate": "lives_in",
        "relation": "live in",
        "object": "Rome",
        "topic": "",
        "negative": False,
        "update": False,
        "replaces": "",
        "tense": "present",
        "when": "",
    } | changes


def summary(section, text):
    """A summary as a good model gives it."""
    return {"section": section, "summary": text}


def good(exchange):
    if exchange.messages and "section" in exchange.messages[0]:
        says({"summaries": exchange.summaries()})(exchange)
    else:
        says({"claims": exchange.claims()})(exchange)


def says(said, stop=None, **headers):
    return lambda exchange: exchange.send(
        json.dumps(exchange.answer(said, stop)).encode(), headers=_named(headers)
    )


def body(payload, **headers):
    """A body as it is, whatever it is."""
    return lambda exchange: exchange.send(payload, headers=_named(headers))


def status(code, **headers):
    """An error that quotes the key, as some do."""
    error = json.dumps({"error": {"message": f"bad key {KEY}"}}).encode()
    return lambda exchange: exchange.send(error, code, _named(headers))


def hangs(exchange):
    exchange.server.release.wait(120)


def hangs_up(exchange):
    exchange.hang_up()


def stops_halfway(exchange):
    whole = json.dumps(exchange.answer({"claims": exchange.claims()})).encode()
    exchange.send(whole[: len(whole) // 2], length=len(whole))
    exchange.hang_up()


def drips(exchange):
    """One byte after another, for ever."""
    exchange.send(b"{", length=10_000_000)
    while not exchange.server.release.wait(0.01):
        exchange.write(b" ")


def drips_headers(exchange):
    exchange.write(b"HTTP/1.1 200 OK\r\n")
    while not exchange.server.release.wait(0.01):
        exchange.write(b"X: y\r\n")


def breaks_on(word):
    """A model that babbles whenever it reads a word."""

    def step(exchange):
        exchange.server.plan.insert(0, step)
        if any(word in message["text"] for message in exchange.messages):
            says("la la la " * 50)(exchange)
        else:
            good(exchange)

    return step


def _named(headers):
    return {name.replace("_", "-"): value for name, value in headers.items()}
