"""A provider: a real HTTP/1.1 server on a free port that replays traffic in the shapes OpenAI and Anthropic document, and
misbehaves as `plan` says, one step a request. What it was sent is in `requests`, byte for byte."""

import gzip
import json
import time

from stub_server import Handler, StubServer

TOKENS = (21, 7)
SERVER_ID = "req_provider"


class Provider(StubServer):
    """`url` has the version in it, as OpenAI's base URLs do; `root` has not."""

    def __init__(self):
        self.plan = []
        self.requests = []
        self.hung_up = []
        provider = self

        class Answering(Handler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_DELETE(self):  # noqa: N802 - the name that the server looks for
                self.answer()

            def answer(self):
                asked = Asked(self)
                provider.requests.append(asked)
                step = provider.plan.pop(0) if provider.plan else replies
                try:
                    step(asked)
                except OSError:
                    provider.hung_up.append(asked)
                    self.close_connection = True

        super().__init__(Answering, "/v1")
        self.root = self.url.removesuffix("/v1")
        self.echo = "Noted."

    @property
    def bodies(self):
        return [json.loads(asked.body) for asked in self.requests]

    @property
    def last(self):
        return self.requests[-1]


class Asked:
    """One request as it came, and the means to answer it."""

    def __init__(self, handler):
        self._handler = handler
        self.method = handler.command
        self.path = handler.path
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.body = handler.rfile.read(int(self.headers.get("content-length", 0)))
        self.json = json.loads(self.body) if self.body[:1] == b"{" else {}

    @property
    def api(self):
        path = self.path.partition("?")[0]
        return next((api for api in _WHOLE if path.endswith(api)), None)

    def head(self, status=200, **headers):
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.end_headers()

    def send(self, payload, status=200, **headers):
        headers = {"content_type": "application/json", "x_request_id": SERVER_ID} | headers
        self.head(status, **headers, content_length=str(len(payload)))
        self.write(payload)

    def write(self, payload):
        self._handler.wfile.write(payload)
        self._handler.wfile.flush()

    def chunk(self, payload):
        self.write(b"%x\r\n%s\r\n" % (len(payload), payload))

    def hang_up(self):
        self._handler.close_connection = True


# ── what a good provider answers ─────────────────────────────────────────────────────────────────────────────────


def replies(asked, text="Noted."):
    if asked.api is None:
        asked.send(
            json.dumps(_OTHER.get(asked.path.partition("?")[0], {"object": "list", "data": []})).encode()
        )
    elif asked.json.get("stream"):
        streams(_STREAM[asked.api](text))(asked)
    else:
        asked.send(_WHOLE[asked.api](text))


def says(text):
    return lambda asked: replies(asked, text)


def whole(payload, status=200, **headers):
    """A body as it is."""
    return lambda asked: asked.send(payload, status, **headers)


def packed(text):
    """Whole, and gzipped."""
    return lambda asked: asked.send(gzip.compress(_WHOLE[asked.api](text), mtime=0), content_encoding="gzip")


def packed_stream(text):
    """A gzipped stream, whose events no chunk shows."""
    return lambda asked: streams(
        [gzip.compress(b"".join(_STREAM[asked.api](text)), mtime=0)], content_encoding="gzip"
    )(asked)


def streams(chunks, *, pause_s=0.0, ends=True, **headers):
    """Chunks as they are, each by itself."""

    def step(asked):
        asked.head(
            200, content_type="text/event-stream; charset=utf-8", transfer_encoding="chunked", **headers
        )
        for chunk in chunks:
            asked.chunk(chunk)
            if pause_s:
                time.sleep(pause_s)
        if ends:
            asked.write(b"0\r\n\r\n")
        else:
            asked.hang_up()

    return step


def dies(api, text="Half of it", count=2):
    """The stream breaks off after some events."""
    return streams(_STREAM[api](text)[:count], ends=False)


def waits(provider, api, text="Half of it", count=2):
    """Some events, and then nothing until the provider is let go; then more, to see whether anybody listens."""

    def step(asked):
        asked.head(200, content_type="text/event-stream", transfer_encoding="chunked")
        for chunk in _STREAM[api](text)[:count]:
            asked.chunk(chunk)
        while not provider.release.wait(0.01):
            asked.chunk(b": still here\n\n")

    return step


def hangs(provider):
    return lambda _asked: provider.release.wait(20)


def too_many(asked):
    """As OpenAI or Anthropic refuse for a while."""
    if asked.api == "messages":
        error = {
            "type": "error",
            "error": {"type": "rate_limit_error", "message": "slow down"},
            "request_id": "r",
        }
    else:
        error = {
            "error": {"message": "slow down", "type": "tokens", "param": None, "code": "rate_limit_exceeded"}
        }
    asked.send(json.dumps(error).encode(), 429, retry_after="7", x_ratelimit_remaining_tokens="0")


# ── the shapes ───────────────────────────────────────────────────────────────────────────────────────────────────


def spell(value):
    """Not as we would spell it: providers have blanks and an order of their own."""
    return json.dumps(value, separators=(", ", ": "), ensure_ascii=False).encode()


def chat(text, tool_calls=None):
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    if tool_calls:
        message |= {"content": None, "tool_calls": tool_calls}
    return spell(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": "gpt-4o-2024-08-06",
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "logprobs": None,
                    "finish_reason": "tool_calls" if tool_calls else "stop",
                }
            ],
            "usage": {
                "prompt_tokens": TOKENS[0],
                "completion_tokens": TOKENS[1],
                "total_tokens": sum(TOKENS),
                "prompt_tokens_details": {"cached_tokens": 5},
            },
            "service_tier": "default",
            "a_field_of_tomorrow": {"nested": [1.0, 1e-7, "\u2028"]},
        }
    )


def tool_call(name, arguments, id_="call_1"):
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def chat_stream(text, usage=True):
    base = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
        "model": "gpt-4o-2024-08-06",
    }
    deltas = [{"role": "assistant", "content": ""}, *({"content": word} for word in _words(text)), {}]
    events = [
        base
        | {
            "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}],
            "x_unknown": at,
        }
        for at, delta in enumerate(deltas)
    ]
    if usage:
        counts = {"prompt_tokens": TOKENS[0], "completion_tokens": TOKENS[1], "total_tokens": sum(TOKENS)}
        events.append(base | {"choices": [], "usage": counts})
    return [*(b"data: " + spell(event) + b"\n\n" for event in events), b"data: [DONE]\n\n"]


def response(text, output=None):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": content,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "gpt-4o-2024-08-06",
        "output": output or [message],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": TOKENS[0],
            "input_tokens_details": {"cached_tokens": 5},
            "output_tokens": TOKENS[1],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(TOKENS),
        },
    }


def response_stream(text):
    begun = response(text) | {"status": "in_progress", "output": [], "usage": None}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    empty = {"type": "output_text", "text": "", "annotations": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    events = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **place, "part": empty},
        *(
            {"type": "response.output_text.delta", **place, "delta": word, "logprobs": []}
            for word in _words(text)
        ),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
        {"type": "response.of_tomorrow", "anything": True},
        {"type": "response.completed", "response": response(text)},
    ]
    return [
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), spell(event | {"sequence_number": at}))
        for at, event in enumerate(events)
    ]


def message(text, content=None):
    return spell(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4",
            "content": content or [{"type": "text", "text": text}],
            "stop_reason": "tool_use" if content else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": TOKENS[0] - 6,
                "cache_creation_input_tokens": 1,
                "cache_read_input_tokens": 5,
                "output_tokens": TOKENS[1],
            },
        }
    )


def message_stream(text):
    begun = json.loads(message(text)) | {"content": [], "stop_reason": None}
    events = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
            for word in _words(text)
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "vendor_event_of_tomorrow", "anything": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": TOKENS[1]},
        },
        {"type": "message_stop"},
    ]
    return [b"event: %s\ndata: %s\n\n" % (event["type"].encode(), spell(event)) for event in events]


def _words(text):
    return [word + " " for word in text.split(" ")[:-1]] + [text.split(" ")[-1]]


_WHOLE = {
    "chat/completions": chat,
    "responses": lambda text: spell(response(text)),
    "messages": message,
}
_STREAM = {"chat/completions": chat_stream, "responses": response_stream, "messages": message_stream}
_OTHER = {
    "/v1/models": {
        "object": "list",
        "data": [{"id": "gpt-4o", "object": "model", "created": 1_790_000_000, "owned_by": "x"}],
    },
    "/v1/embeddings": {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.25, -0.5]}],
        "model": "text-embedding-3-small",
        "usage": {"prompt_tokens": 2, "total_tokens": 2},
    },
    "/v1/messages/count_tokens": {"input_tokens": 12},
}
