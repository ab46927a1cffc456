"""The frame of the HTTP doors, over real sockets."""

import json
import threading
from contextlib import ExitStack
from queue import SimpleQueue

import httpx
import msgspec
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from http_server import LOCKED, serving
from memplane.adapters.clawdapus.errors import FORMAT as PLAIN
from memplane.adapters.helmdeck.errors import FORMAT as FLAT
from memplane.auth.principal import Right
from memplane.config import Settings
from memplane.errors import InvalidRequest, LimitReached, NotFound, StorageBusy
from memplane.server.endpoint import Adapter, AsgiRoute, Endpoint, Query
from memplane.server.protocol import BoundedProtocol
from memplane.server.responses import json_response

PATIENCE_SECONDS = 60
PREFIXES = ("/api/v1/test", "/history/test", "/test")


class Note(msgspec.Struct):
    """A body."""

    text: str
    extra: object = None


class Echoed(msgspec.Struct):
    """An answer."""

    text: str
    subject: str


class Bench:
    """A door for tests, with the same endpoints below each prefix; `release` lets the slow one go on."""

    def __init__(self):
        self.entered = threading.Event()
        self.release = threading.Event()
        self.dropped = threading.Event()
        self.handled = []
        self.begun = threading.Semaphore(0)
        """Of each request, once the server has begun with it."""

    def begin(self, exchange):
        self.begun.release()

    def end(self, exchange):
        pass

    def wait_for(self, requests):
        for _ in range(requests):
            assert self.begun.acquire(timeout=PATIENCE_SECONDS)

    def adapters(self):
        return [self.adapter(), Adapter(name="plane", routes=(), paths=("/history/",), errors=PLAIN)]

    def adapter(self):
        routes = [route for prefix in PREFIXES for route in self.routes(prefix)]
        return Adapter(name="facts", routes=tuple(routes), paths=("/api/v1/",), errors=FLAT)

    def routes(self, prefix):
        def made(method, path, handle, right=Right.READ, **fields):
            return Endpoint(
                method=method,
                path=prefix + path,
                adapter="facts",
                summary="",
                handle=handle,
                right=right,
                **fields,
            )

        yield made(
            "POST", "/echo", self.echo, body=Note, answer=Echoed, query=(Query(name="times", type=int),)
        )
        yield made("POST", "/raise/{what}", self.fail, body=bytes, media=None)
        yield made("GET", "/slow", self.slow)
        yield made("GET", "/stream", self.stream)
        yield made("GET", "/endless", self.endless)
        yield made("GET", "/spaces/{owner}", self.space)
        yield made("POST", "/open-post", lambda call: json_response({}), right=None, body=bytes, media=None)
        yield made("GET", "/open", lambda call: json_response({}), right=None)
        yield AsgiRoute(
            path=f"{prefix}/asgi", adapter="facts", summary="", app=asgi, right=Right.WRITE, methods=("POST",)
        )
        yield AsgiRoute(path=f"{prefix}/events", adapter="facts", summary="", app=events, right=Right.READ)
        yield AsgiRoute(
            path=f"{prefix}/ws", adapter="facts", summary="", app=websocket, right=Right.READ, websocket=True
        )

    def echo(self, call):
        self.handled.append(call.body.text)
        return json_response(Echoed(call.body.text, call.principal.subject))

    def fail(self, call):
        raise {
            "invalid": InvalidRequest("no"),
            "missing": NotFound("memory", "m1"),
            "limit": LimitReached("store", 20),
            "busy": StorageBusy("x.db is held"),
            "bug": KeyError("what alice said"),
        }[call.path_params["what"]]

    def slow(self, call):
        self.entered.set()
        self.release.wait(2 * PATIENCE_SECONDS)
        return json_response({"done": True})

    def endless(self, call):
        def pieces():
            try:
                while True:
                    yield b"x" * 65_536
            finally:
                self.dropped.set()

        return call.stream(pieces(), media="text/plain", headers={})

    def stream(self, call):
        return call.stream(iter([b"one\n", b"two\n"]), media="application/x-ndjson", headers={})

    def space(self, call):
        return json_response({"turns": len(call.space(call.path_params["owner"]).turns("c1"))})


async def asgi(scope, receive, send):
    message = await receive()
    said = f"{scope['memplane.principal'].subject} {len(message['body'])} {scope['memplane.request_id']}"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": said.encode()})


async def events(scope, receive, send):
    """A stream that lasts until the client is gone."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"data: hello\n\n", "more_body": True})
    while (await receive())["type"] != "http.disconnect":
        pass
    await send({"type": "http.response.body", "body": b""})


async def websocket(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": scope["memplane.principal"].subject})
    while (await receive())["type"] != "websocket.disconnect":
        pass


@pytest.fixture
def bench():
    bench = Bench()
    yield bench
    bench.release.set()


@pytest.fixture
def server(plane, bench):
    settings = Settings(body_bytes_max=1 << 20, origins=("https://console.example",))
    with serving(plane, settings=settings, adapters=bench.adapters(), observers=[bench]) as running:
        yield running


def raw_exchange(server, sent, *, close=True):
    """Everything the server says to these bytes."""
    with server.socket() as connection:
        connection.sendall(sent)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
            if not close and b"\r\n\r\n" in answer:
                break
        return answer


def statuses_of(answer):
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


# ── envelopes ────────────────────────────────────────────────────────────────────────────────────────────────────


def check_shape(prefix, answer):
    assert answer.headers["x-request-id"]
    if prefix == "/api/v1/test":
        assert set(answer.json()) == {"error", "message"}
    elif prefix == "/history/test":
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.text.endswith("\n")
    else:
        assert set(answer.json()["error"]) == {"code", "message", "request_id"}
        assert answer.json()["error"]["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_every_refusal_has_the_shape_of_its_prefix(server, prefix):
    """
    Those of the frame just as those of the doors: 400 to 503.
    """
    client = server.client()
    nobody, wrong, locked = server.client(None), server.client("wrong"), server.client(LOCKED)
    reader = server.client(server.keys.add("reader", subject="reader", rights={Right.READ}))
    elsewhere = server.client(server.keys.add("elsewhere", subject="e", adapters={"mcp"}))
    unprocessable = 422 if prefix == "/test" else 400
    echo = f"{prefix}/echo"
    tried = [
        (400, client.post(echo, content=b"{", headers={"content-type": "application/json"})),
        (400, client.post(echo, content=b"[" * 90_000, headers={"content-type": "application/json"})),
        (unprocessable, client.post(echo, json={"text": 5})),
        (unprocessable, client.post(f"{echo}?times=x", json={"text": "a"})),
        (unprocessable, client.post(f"{prefix}/raise/invalid")),
        (401, nobody.post(echo, json={"text": "a"})),
        (401, wrong.post(echo, json={"text": "a"})),
        (403, reader.post(f"{prefix}/asgi")),
        (403, elsewhere.post(echo, json={"text": "a"})),
        (403, client.post(echo, json={"text": "a"}, headers={"origin": "https://evil.example"})),
        (404, client.get(f"{prefix}/nothing")),
        (404, client.post(f"{prefix}/raise/missing")),
        (405, client.delete(echo)),
        (413, client.post(echo, json={"text": "a" * (1 << 20)})),
        (413, client.post(f"{prefix}/asgi", content=b"a" * ((1 << 20) + 1))),
        (415, client.post(echo, content=b"{}", headers={"content-type": "text/plain"})),
        (421, client.get(f"{prefix}/open", headers={"host": "evil.example"})),
        (426, client.get(f"{prefix}/ws")),
        (429, locked.get(f"{prefix}/slow")),
        (429, client.post(f"{prefix}/raise/limit")),
        (500, client.post(f"{prefix}/raise/bug")),
        (503, client.post(f"{prefix}/raise/busy")),
    ]

    assert [answer.status_code for _, answer in tried] == [status for status, _ in tried]
    for _, answer in tried:
        check_shape(prefix, answer)
    assert "alice" not in "".join(answer.text for _, answer in tried)


def test_refusals_say_what_helps(server):
    """
    401 how to prove who one is, 405 what is allowed, 429 and 503 when to come back.
    """
    client = server.client()

    assert server.client(None).get("/test/slow").headers["www-authenticate"].startswith("Bearer ")
    assert client.delete("/test/echo").headers["allow"] == "POST"
    assert server.client(LOCKED).get("/test/slow").headers["retry-after"] == "30"
    assert client.post("/test/raise/busy").headers["retry-after"] == "1"


# ── what works ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_call_is_answered(server):
    """
    The body is decoded, the caller known, the answer encoded; HEAD has all but the body.
    """
    client = server.client()
    answer = client.post("/test/echo", json={"text": "hé"})
    head = client.head("/test/open")

    assert answer.json() == {"text": "hé", "subject": "owner"}
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "2", b"")
    assert client.get("/test/stream").text == "one\ntwo\n"


def test_the_key_may_stand_in_its_own_header(server):
    """
    `x-api-key` is as good as `Authorization`.
    """
    assert server.client(None).get("/test/stream", headers={"x-api-key": "owner-key"}).status_code == 200


def test_a_request_keeps_a_sane_id_and_is_given_one_otherwise(server):
    """
    What a proxy chose comes back; line breaks and novels do not.
    """
    client = server.client()
    ids = [
        client.get("/test/open", headers={"x-request-id": given}).headers["x-request-id"]
        for given in ("a-1:b", "a b", "x" * 200)
    ]

    assert ids[0] == "a-1:b"
    assert all(len(made) == 32 for made in ids[1:])
    assert client.post("/test/asgi", headers={"x-request-id": "a-1"}).text == "owner 0 a-1"


def test_a_door_cannot_open_what_the_credential_does_not(server):
    """
    Spaces are checked where they are opened, and the tenant is the credential's own.
    """
    server.plane.space("alice").retain("hello", conversation="c1")
    alice = server.client(server.keys.add("alice", subject="alice", spaces={"alice"}))
    other = server.client(server.keys.add("other", subject="alice", tenant="other", spaces={"alice"}))

    assert alice.get("/test/spaces/alice").json() == {"turns": 1}
    assert alice.get("/test/spaces/bob").status_code == 403
    assert other.get("/test/spaces/alice").json() == {"turns": 0}


def test_without_authentication_everybody_is_the_default_caller(plane, bench):
    """
    What `--no-auth` means.
    """
    with serving(plane, adapters=bench.adapters(), auth=False) as running:
        assert running.client(None).post("/test/echo", json={"text": "a"}).json()["subject"] == "default"


def test_pages_of_configured_origins_may_call(server):
    """
    Their browser asks first and is told yes; answers may be read.
    """
    client = server.client(None)
    asked = client.options(
        "/test/echo", headers={"origin": "https://console.example", "access-control-request-method": "POST"}
    )
    read = client.get("/test/open", headers={"origin": "https://console.example"})

    assert asked.status_code == 204
    assert "authorization" in asked.headers["access-control-allow-headers"]
    assert read.headers["access-control-allow-origin"] == "https://console.example"


# ── who sends too much, too slowly, or nonsense ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/test/echo", "/test/asgi"])
def test_a_hundred_megabytes_are_refused_and_others_served(server, path):
    """
    The client gets to read why; nothing reached a handler, and the memory was not taken either.
    """
    piece = b"x" * (1 << 20)
    answer = server.client().post(
        path, content=(piece for _ in range(100)), headers={"content-type": "application/json"}
    )

    assert answer.status_code == 413
    assert server.client().get("/test/open").status_code == 200


def test_who_asks_first_is_told_before_sending(server):
    """
    `Expect: 100-continue` with too large a length is refused at once.
    """
    answer = raw_exchange(
        server,
        b"POST /test/echo HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer owner-key\r\n"
        b"content-type: application/json\r\ncontent-length: 99999999\r\nexpect: 100-continue\r\n\r\n",
    )

    assert statuses_of(answer) == [413]


def test_a_slow_sender_is_given_up(plane, bench):
    """
    A body that does not come is a 408, and the connection is closed.
    """
    with serving(plane, settings=Settings(body_seconds_max=1), adapters=bench.adapters()) as server:
        answer = raw_exchange(
            server,
            b"POST /test/echo HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer owner-key\r\n"
            b'content-type: application/json\r\ncontent-length: 100\r\n\r\n{"text":',
        )

    assert statuses_of(answer) == [408]
    assert bench.handled == []


def test_who_is_refused_and_goes_on_sending_slowly_is_hung_up_on(server, monkeypatch):
    """
    Without a key one gets an answer and no connection to keep.
    """
    monkeypatch.setattr("memplane.server.app._DISCARD_SECONDS_MAX", 0.2)
    with server.socket() as connection:
        connection.sendall(b"POST /test/echo HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900000\r\n\r\n{")
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece

    assert statuses_of(answer) == [401]
    assert b"connection: close" in answer


def test_a_client_that_hangs_up_disturbs_nobody(server, bench):
    """
    Half a body and gone: nothing is handled, nothing breaks.
    """
    with server.socket() as connection:
        connection.sendall(
            b"POST /test/echo HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer owner-key\r\n"
            b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{"
        )

    assert server.client().get("/test/open").status_code == 200
    assert bench.handled == []


HEAD = b"POST /test/echo HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer owner-key\r\ncontent-type: application/json\r\n"
SMUGGLED = b"GET /test/open HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
GOOD = b'{"text":"a"}'


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"content-length: 12\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
        HEAD + b"content-length: 12\r\ncontent-length: 0\r\n\r\n" + GOOD + SMUGGLED,
        HEAD + b"content-length: +12\r\n\r\n" + GOOD + SMUGGLED,
        HEAD + b"content-length: 0x0c\r\n\r\n" + GOOD + SMUGGLED,
        HEAD + b"content-length : 12\r\n\r\n" + GOOD + SMUGGLED,
        HEAD + b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n" + GOOD + SMUGGLED,
        HEAD + b"transfer-encoding: xchunked\r\n\r\n" + GOOD + SMUGGLED,
        HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n" + GOOD + b"\r\n0\r\n\r\n" + SMUGGLED,
        HEAD + b"transfer-encoding: chunked\r\n\r\n-1\r\n" + GOOD + SMUGGLED,
        HEAD + b"transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + GOOD + SMUGGLED,
        HEAD + b" folded: header\r\ncontent-length: 12\r\n\r\n" + GOOD + SMUGGLED,
        HEAD + b"bad\x00name: x\r\ncontent-length: 12\r\n\r\n" + GOOD + SMUGGLED,
        b"GET /test/open\r\n\r\n",
        b"GET /test/open HTTP/9.9\r\nhost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /test/open HTTP/1.1\r\nconnection: close\r\n\r\n",
        b"GET /test/open HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\nconnection: close\r\n\r\n",
    ],
)  # fmt: skip
def test_requests_that_two_readers_would_read_differently_are_refused(server, bench, sent):
    """
    One refusal, the connection is closed, and what was hidden behind it is never answered.
    """
    answer = raw_exchange(server, sent)

    assert len(statuses_of(answer)) <= 1
    assert all(400 <= status < 500 for status in statuses_of(answer))
    assert bench.handled == []
    assert server.client().get("/test/open").status_code == 200


def test_a_lying_length_hides_nothing(server, bench):
    """
    What follows the declared length is the next request, and is read as one.
    """
    answer = raw_exchange(server, HEAD + b"content-length: 12\r\n\r\n" + GOOD + SMUGGLED)

    assert statuses_of(answer) == [200, 200]
    assert bench.handled == ["a"]


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"http://evil.example/test/open", 200),
        (b"/test/../test/open", 404),
        (b"/test/%2e%2e/test/open", 404),
        (b"/test%2Fopen", 404),
        (b"//test/open", 404),
        (b"/test/open%00", 404),
        (b"/test/open;x=1", 404),
        (b"/test/open?", 200),
        (b"/test/open?a=%00", 200),
        (b"/test/%c0%ae", 400),
        (b"/test/%zz", 404),
    ],
)
def test_paths_are_what_they_say(server, target, status):
    """
    Dots, doubled slashes, zero bytes and encoded slashes lead nowhere; whose server it is, the Host header says.
    """
    answer = raw_exchange(
        server, b"GET " + target + b" HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    )

    assert statuses_of(answer) == [status]


def test_headers_without_end_are_cut_off(server):
    """
    431, long before memory is a question.
    """
    answer = raw_exchange(server, b"GET /test/open HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 100_000)

    assert statuses_of(answer) == [431]


CHUNKED = (
    b"POST /test/echo HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n"
)


def test_what_follows_a_body_is_no_header(server, bench):
    """
    A credential after the body is none: whatever stands in front of the server has judged the request without it.
    """
    answer = raw_exchange(server, CHUNKED + b"\r\nc\r\n" + GOOD + b"\r\n0\r\nx-api-key: owner-key\r\n\r\n")

    assert statuses_of(answer) == [401]
    assert bench.handled == []


@pytest.mark.parametrize("piece", [b"a:b\r\n", b"a"], ids=["many", "one"])
@pytest.mark.parametrize("key", [b"", b"x-api-key: owner-key\r\n"], ids=["stranger", "owner"])
def test_what_follows_a_body_is_cut_off_too(server, piece, key, monkeypatch):
    """
    Headers after the body, or one of them without end, are bounded as those before it are.
    """
    first, heard, read = CHUNKED + key + b"\r\nc\r\n" + GOOD + b"\r\n0\r\na:", SimpleQueue(), 0
    real = BoundedProtocol.data_received

    def data_received(self, data):
        real(self, data)
        heard.put(len(data))

    monkeypatch.setattr(BoundedProtocol, "data_received", data_received)
    with server.socket() as connection:
        connection.sendall(first)
        while read < len(first):
            read += heard.get(timeout=PATIENCE_SECONDS)
        connection.sendall(piece * (80_000 // len(piece)))
        answer = connection.recv(65_536)

    assert statuses_of(answer) == [431]


def test_a_body_in_many_small_chunks_is_taken(server):
    """
    What chunks cost in sizes is no header, however many there are.
    """
    body = json.dumps({"text": "a" * 40_000}).encode()
    chunks = b"".join(b"1;x=%d\r\n%c\r\n" % (at, byte) for at, byte in enumerate(body))

    answer = raw_exchange(server, CHUNKED + b"x-api-key: owner-key\r\n\r\n" + chunks + b"0\r\n\r\n")

    assert statuses_of(answer) == [200]


def test_many_at_once_are_served_while_one_is_slow(server, bench):
    """
    A handler that waits keeps its thread and nobody else's.
    """
    client = server.client()
    slow = threading.Thread(target=lambda: server.client().get("/test/slow"))
    slow.start()
    assert bench.entered.wait(PATIENCE_SECONDS)

    assert client.get("/test/open").status_code == 200
    bench.release.set()
    slow.join()


def test_one_caller_cannot_keep_everybody_waiting(server, bench):
    """
    Whoever asks for more at once than there are threads waits for their own turn: others are served, and whoever asks
    whether the server lives is answered.
    """
    other = server.client(server.keys.add("other-key", subject="other"))
    with ExitStack() as crowd:
        for _ in range(130):
            crowd.enter_context(server.socket()).sendall(
                b"GET /test/slow HTTP/1.1\r\nhost: localhost\r\nx-api-key: owner-key\r\n\r\n"
            )
        bench.wait_for(130)

        assert other.get("/test/spaces/other").status_code == 200
        assert server.client("").get("/test/open").status_code == 200
        bench.release.set()


def test_a_client_that_takes_nothing_is_dropped(server, bench, monkeypatch):
    """
    What it asked for is not kept for it for ever.
    """
    monkeypatch.setattr("memplane.server.exchange._SEND_SECONDS_MAX", 0.2)
    with server.socket() as connection:
        connection.sendall(b"GET /test/endless HTTP/1.1\r\nhost: localhost\r\nx-api-key: owner-key\r\n\r\n")

        assert bench.dropped.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("path", ["/test/echo", "/test/open-post"], ids=["with a key", "open"])
def test_one_caller_has_few_large_bodies_in_memory(plane, bench, path):
    """
    Further ones are not read until there is room, and nobody with another key waits for it.
    """
    head = (
        f"POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: owner-key\r\ncontent-length: 100000\r\n\r\n"
    )
    large = {"text": "a" * 100_000}
    settings = Settings(body_seconds_max=2 * PATIENCE_SECONDS)
    with serving(plane, adapters=bench.adapters(), settings=settings, observers=[bench]) as server:
        other = server.client(server.keys.add("other-key", subject="other"))
        with ExitStack() as stack:
            for _ in range(4):
                stack.enter_context(server.socket()).sendall(head.encode() + b"{")
            bench.wait_for(4)

            with pytest.raises(httpx.ReadTimeout):
                server.client().post(path, json=large, timeout=httpx.Timeout(30, read=1))
            assert server.client().post(path, json={"text": "a"}).status_code == 200
            assert other.post("/test/echo", json=large).status_code == 200

        assert server.client().post(path, json=large).status_code == 200


# ── streams ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_stream_ends_when_the_server_does(plane, bench):
    """
    Nobody waits for a client that only listens.
    """
    with serving(plane, adapters=bench.adapters()) as running:
        connection = running.socket()
        connection.sendall(b"GET /test/events HTTP/1.1\r\nhost: localhost\r\nx-api-key: owner-key\r\n\r\n")
        received = b""
        while b"data: hello" not in received:
            received += connection.recv(65_536)

    rest = b""
    with connection:
        while piece := connection.recv(65_536):
            rest += piece
    assert rest.endswith(b"0\r\n\r\n")


def test_a_websocket_is_let_in_by_the_same_rules(server):
    """
    With a key it is told who it is; without, or from a foreign page, it is refused before it begins.
    """
    url = f"ws://127.0.0.1:{server.port}/test/ws"

    with connect(url, additional_headers={"authorization": "Bearer owner-key"}, proxy=None) as socket:
        assert socket.recv() == "owner"
    for headers, status in (
        ({}, 401),
        ({"authorization": "Bearer owner-key", "origin": "https://evil.example"}, 403),
    ):
        with pytest.raises(InvalidStatus) as refused:
            connect(url, additional_headers=headers, proxy=None)
        assert refused.value.response.status_code == status
        assert json.loads(refused.value.response.body)["error"]["code"]
