"""Whatever breaks, memory never breaks a turn, and a turn that was completed is in the ledger in the end."""

import asyncio
import json
import socket
import threading

import apsw
import httpx
import openai
import pytest

from memplane.adapters.proxy.relay import _RETRY_S
from memplane.errors import StorageFull
from memplane.space import Space
from provider_server import chat_stream, dies, hangs, says, streams, waits
from proxy_server import ALICE, TIME_ENOUGH_MS, body, fronting, until
from stub_server import Handler, StubServer

TOLD = "My dog is called Rex"
ASKED = "What is my dog called?"
CHAT = "chat/completions"


@pytest.fixture
def fronted(open_plane):
    with fronting(open_plane) as running:
        yield running


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_upstream_that_dies_within_a_stream(fronted):
    """
    The client sees what it would see going direct: an answer without its end. What was said until then is kept, marked.
    """
    direct = httpx.Client(base_url=fronted.provider.root, timeout=30, trust_env=False)
    for stream, client in ((True, fronted.http()), (True, direct)):
        fronted.provider.plan.append(dies(CHAT))
        with (
            pytest.raises(httpx.RemoteProtocolError),
            client.stream("POST", "/v1/chat/completions", json=body(TOLD, stream=stream)) as answer,
        ):
            answer.read()
        client.close()

    until(lambda: fronted.plane.has_space("alice") and fronted.entries())
    assert json.loads(fronted.entries()[0].body)["status"] == "aborted"
    assert fronted.turns()[0] == ("user", TOLD)


def test_an_upstream_that_is_not_there(open_plane):
    """
    502 in the provider's shape, and nothing is kept.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with fronting(open_plane, openai_base_url=f"http://127.0.0.1:{port}/v1") as fronted:
            with pytest.raises(openai.InternalServerError) as refused:
                fronted.openai().chat.completions.create(**body(TOLD))

            assert refused.value.status_code == 502
            assert refused.value.code == "upstream_unreachable"
            assert not fronted.plane.has_space("alice")


def test_a_refused_connection_is_tried_again(open_plane, monkeypatch):
    """
    An upstream that is just being started again is waited for a moment: nothing of the request has left yet.
    """
    sleep, refused = asyncio.sleep, []
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))

        def answer():
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

        async def started_meanwhile(seconds):
            if seconds not in _RETRY_S:
                await sleep(seconds)
                return
            refused.append(seconds)
            listening.listen()
            threading.Thread(target=answer, daemon=True).start()
            await sleep(0)

        monkeypatch.setattr("memplane.adapters.proxy.relay.asyncio.sleep", started_meanwhile)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        with fronting(open_plane, openai_base_url=url) as fronted:
            assert fronted.http().post("/v1/embeddings", json={}).json() == {}
        monkeypatch.undo()

    assert len(refused) == 1


def test_nothing_is_asked_twice(fronted):
    """
    An upstream that took a request and hung up may have worked on it.
    """
    fronted.provider.plan.append(lambda asked: asked.hang_up())
    answer = fronted.http().post("/v1/chat/completions", json=body(TOLD))

    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_unreachable")
    assert len(fronted.provider.requests) == 1
    assert not fronted.plane.has_space("alice")


def test_an_upstream_that_hangs(open_plane):
    """
    504 after the time for it, in the provider's shape.
    """
    with fronting(open_plane, proxy_timeout_s=1) as fronted:
        fronted.provider.plan.append(hangs(fronted.provider))
        answer = fronted.http().post("/v1/chat/completions", json=body(TOLD))

        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "upstream_timeout")


def test_a_client_that_hangs_up_ends_the_upstreams_work(fronted):
    """
    The provider is hung up on too, and what it said until then is kept as an aborted turn.
    """
    fronted.provider.plan.append(waits(fronted.provider, CHAT, "Half of it", count=3))
    with fronted.http().stream("POST", "/v1/chat/completions", json=body(TOLD, stream=True)) as answer:
        next(answer.iter_bytes())

    until(lambda: fronted.provider.hung_up)
    until(lambda: fronted.plane.has_space("alice") and fronted.entries())
    assert json.loads(fronted.entries()[0].body)["status"] == "aborted"
    assert fronted.turns()[0] == ("user", TOLD)


def test_a_client_that_hangs_up_at_the_very_end(open_plane, monkeypatch):
    """
    The provider has said everything, and the client leaves while the turn is written: a completed turn, kept once.
    """
    writing, let_go, retain = threading.Event(), threading.Event(), Space.retain_entry

    def retain_entry(self, entry, **options):
        writing.set()
        let_go.wait(20)
        return retain(self, entry, **options)

    monkeypatch.setattr(Space, "retain_entry", retain_entry)
    with fronting(open_plane) as fronted:
        client = fronted.http()
        with client.stream("POST", "/v1/chat/completions", json=body(TOLD, stream=True)):
            writing.wait(20)
        let_go.set()
        assert fronted.http().post("/v1/chat/completions", json=body(ASKED)).status_code == 200

        until(lambda: len(fronted.entries()) == 2)
        entries = [json.loads(entry.body) for entry in fronted.entries()]
        assert [entry.get("status") for entry in entries] == [None, None]


def test_an_answer_that_breaks_off_is_no_turn(fronted):
    """
    Half of a whole answer is nothing: the client is not told that it was all, and nothing is kept.
    """

    def half(asked):
        asked.head(200, content_type="application/json", content_length="100")
        asked.write(b'{"choices": [')
        asked.hang_up()

    fronted.provider.plan.append(half)
    with pytest.raises(httpx.RemoteProtocolError):
        fronted.http().post("/v1/chat/completions", json=body(TOLD))

    assert not fronted.plane.has_space("alice")


def test_a_client_that_hangs_up_before_the_answer(fronted):
    """
    Nobody answered, so there is no turn; and the next request is served.
    """
    fronted.provider.plan.append(hangs(fronted.provider))
    asked = json.dumps(body(TOLD))
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ALICE}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(asked)}\r\n\r\n"
    )
    with fronted.server.socket() as connection:
        connection.sendall(f"{head}{asked}".encode())
        until(lambda: fronted.provider.requests)

    assert fronted.http().post("/v1/chat/completions", json=body(ASKED)).status_code == 200
    assert [text for _, text in fronted.turns()] == [ASKED, "Noted."]


# ── the store ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_locked_store_breaks_no_turn_and_loses_none(open_plane, space_file):
    """
    Another program holds the space's file: turns are answered meanwhile, and are in the ledger once it lets go.
    """
    with fronting(open_plane, proxy_retain_ms=50, proxy_recall_ms=50) as fronted:
        client = fronted.http()
        assert client.post("/v1/chat/completions", json=body("The first")).status_code == 200
        until(lambda: len(fronted.entries()) == 1)
        other = apsw.Connection(str(space_file))
        other.set_busy_timeout(60_000)  # what was answered may still be worked at
        other.execute("BEGIN IMMEDIATE")
        for number in range(3):
            answer = client.post("/v1/chat/completions", json=body(f"Turn {number}"))
            assert answer.json()["choices"][0]["message"]["content"] == "Noted."
        streamed = client.post("/v1/chat/completions", json=body("Turn 3", stream=True))
        assert streamed.text.endswith("data: [DONE]\n\n")
        assert len(fronted.entries()) == 1
        assert fronted.server.client(None).get("/readyz").json()["degraded"] == ["proxy_retain"]
        other.execute("ROLLBACK")
        other.close()

        until(lambda: len(fronted.entries()) == 5)
        said = {text for role, text in fronted.turns() if role == "user"}
        assert said == {"The first", *(f"Turn {number}" for number in range(4))}


def test_a_full_disk_breaks_no_turn_and_loses_none(open_plane, monkeypatch):
    """
    The ledger cannot be written: turns are answered without waiting, and written when there is room again.
    """
    full = threading.Event()
    full.set()
    retain = Space.retain_entry

    def retain_entry(self, entry, **options):
        if full.is_set():
            raise StorageFull("no room")
        return retain(self, entry, **options)

    monkeypatch.setattr(Space, "retain_entry", retain_entry)
    with fronting(open_plane) as fronted:
        answer = fronted.http().post("/v1/chat/completions", json=body(TOLD))
        assert answer.json()["choices"][0]["message"]["content"] == "Noted."
        assert not fronted.plane.has_space("alice")
        full.clear()

        until(lambda: fronted.plane.has_space("alice") and fronted.entries())
        assert fronted.turns() == [("user", TOLD), ("assistant", "Noted.")]


def test_what_waits_survives_the_end_of_the_process(open_plane, monkeypatch, tmp_path):
    """
    A turn that could not be written before the server ended is written by the next one.
    """
    retain = Space.retain_entry

    def refuses(self, entry, **_options):
        raise StorageFull("no room")

    monkeypatch.setattr(Space, "retain_entry", refuses)
    plane = open_plane()
    with fronting(open_plane, plane=plane, proxy_retain_ms=100) as fronted:
        assert fronted.http().post("/v1/chat/completions", json=body(TOLD)).status_code == 200
    assert not plane.has_space("alice")

    monkeypatch.setattr(Space, "retain_entry", retain)
    with fronting(open_plane, plane=plane) as fronted:
        until(lambda: fronted.plane.has_space("alice") and fronted.entries())
        assert fronted.turns() == [("user", TOLD), ("assistant", "Noted.")]
        until(lambda: not list((tmp_path / "data" / "proxy-pending").iterdir()))


def test_a_recall_that_hangs_costs_its_time_and_no_more(open_plane, monkeypatch):
    """
    The turn goes on without memory, and is kept.
    """
    let_go = threading.Event()

    def hanging(self, *_args, **_options):
        let_go.wait(20)
        raise StorageFull("too late")

    with fronting(open_plane, proxy_recall_ms=60) as fronted:
        fronted.openai().chat.completions.create(**body(TOLD))
        for name in ("recall", "recall_by_words", "brief"):
            monkeypatch.setattr(Space, name, hanging)
        for number in range(8):  # more than there are threads that could hang
            fronted.openai().chat.completions.create(**body(f"{ASKED} {number}"))

        assert all("MEMORY" not in asked.body.decode() for asked in fronted.provider.requests)
        assert len(fronted.entries()) == 9
        let_go.set()


def test_a_recall_that_fails_is_no_matter(fronted, monkeypatch):
    """
    Whatever goes wrong in memory before a turn, a bug too, the turn goes on without.
    """

    def fails(self, *_args, **_options):
        raise ZeroDivisionError

    for name in ("recall", "recall_by_words", "brief"):
        monkeypatch.setattr(Space, name, fails)
    answer = fronted.openai().chat.completions.create(**body(TOLD))

    assert answer.choices[0].message.content == "Noted."
    assert len(fronted.entries()) == 1


# ── a memory service of somebody else's ──────────────────────────────────────────────────────────────────────────


class MemoryService(StubServer):
    """What it was asked is in `asked`; what it answers to a recall, in `memories`, unless it `hangs`."""

    def __init__(self, folder):
        self._folder = folder
        self.asked = []
        self.memories = [{"text": "Rex is the dog", "kind": "profile", "source": "store", "score": 0.9}]
        self.hangs = False
        service = self

        class Answering(Handler):
            def answer(self):
                length = int(self.headers["content-length"])
                service.asked.append((self.path, json.loads(self.rfile.read(length))))
                if service.hangs:
                    service.release.wait(20)
                    return
                payload = json.dumps({"memories": service.memories}).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

        super().__init__(Answering, "")

    def enqueue(self, timeout_ms):
        """So long a recall of it may take."""
        manifest = {
            "version": 1,
            "service": "mem-svc",
            "base_url": self.url,
            "recall": {"path": "/recall", "timeout_ms": timeout_ms},
            "retain": {"path": "/retain"},
        }
        (self._folder / "memory.json").write_text(json.dumps(manifest), "utf-8")


@pytest.fixture
def service(tmp_path):
    """One that Alice's `memory.json` names."""
    folder = tmp_path / "context" / "alice"
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text(json.dumps({"pod": "desk", "timezone": "Europe/Lisbon"}), "utf-8")
    running = MemoryService(folder)
    running.enqueue(TIME_ENOUGH_MS)
    yield running
    running.close()


def test_a_service_of_somebody_elses_is_asked_and_told(open_plane, service, tmp_path):
    """
    Its blocks are governed and told under its name; afterwards it gets the entry; our own ledger has the turn too.
    """
    service.memories += [{"text": "dropped", "source": "raw_transcript"}, {"text": "key sk-abcdef123456"}]
    service.hangs = False
    with fronting(open_plane, claw_context_root=str(tmp_path / "context")) as fronted:
        fronted.openai().chat.completions.create(**body(ASKED))
        until(lambda: len(service.asked) == 2)

        (first, recall), (second, retain) = service.asked
        told = fronted.provider.bodies[0]["messages"][0]["content"]
        assert (first, second) == ("/recall", "/retain")
        assert (recall["agent_id"], recall["pod"], recall["messages"][0]["content"]) == (
            "alice",
            "desk",
            ASKED,
        )
        assert retain["entry"]["id"] == fronted.entries()[0].id
        assert (
            "--- BEGIN MEMORY (from mem-svc) ---\n[kind=profile, source=store, score=0.90]\nRex is the dog"
            in told
        )
        assert "dropped" not in told
        assert "sk-abcdef123456" not in told
        assert told.endswith("(Europe/Lisbon)")


def test_a_service_that_hangs_breaks_no_turn(open_plane, service, tmp_path):
    """
    Neither its recall nor its retain keeps anybody waiting, and the turn is in our ledger.
    """
    service.hangs = True
    service.enqueue(200)
    with fronting(open_plane, claw_context_root=str(tmp_path / "context")) as fronted:
        answer = fronted.openai().chat.completions.create(**body(ASKED))

        assert answer.choices[0].message.content == "Noted."
        assert "MEMORY" not in fronted.provider.last.body.decode()
        assert len(fronted.entries()) == 1


def test_a_manifest_that_cannot_be_read_breaks_no_turn(open_plane, tmp_path):
    """
    The turn goes on with the memory of this process.
    """
    folder = tmp_path / "context" / "alice"
    folder.mkdir(parents=True)
    (folder / "memory.json").write_text("{", "utf-8")
    with fronting(open_plane, claw_context_root=str(tmp_path / "context")) as fronted:
        fronted.openai().chat.completions.create(**body(TOLD))
        fronted.openai().chat.completions.create(**body(ASKED))

        assert TOLD in fronted.provider.last.body.decode()


# ── many at once ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_many_streams_at_once_are_all_kept(fronted):
    """
    Each client gets its own words, and every turn is in the ledger when the last stream has ended.
    """

    def step(asked):
        streams(chat_stream(asked.json["messages"][-1]["content"]), pause_s=0.002)(asked)

    fronted.provider.plan += [step] * 32

    async def talk():
        async with fronted.openai(client=openai.AsyncOpenAI) as client:

            async def one(number):
                text = f"turn number {number}"
                stream = await client.chat.completions.create(**body(text, stream=True))
                said = [event.choices[0].delta.content or "" async for event in stream if event.choices]
                return "".join(said) == text

            return await asyncio.gather(*(one(number) for number in range(32)))

    assert all(asyncio.run(talk()))
    assert len(fronted.entries()) == 32


def test_what_a_provider_says_late_is_passed_on(fronted):
    """
    A stream that says it is over and goes on: its client sees the rest as well.
    """
    fronted.provider.plan.append(streams([*chat_stream("Well"), b": and then\n\n"], pause_s=0.4))
    answer = fronted.http().post("/v1/chat/completions", json=body(TOLD, stream=True))

    assert answer.text.endswith("data: [DONE]\n\n: and then\n\n")
    assert len(fronted.entries()) == 1


def test_turn_after_turn_on_one_connection(fronted):
    """
    Each gets its own answer, and each is kept.
    """
    client = fronted.http()
    for number in range(3):
        fronted.provider.plan.append(says(f"answer {number}"))
        assert f"answer {number}" in client.post("/v1/chat/completions", json=body(TOLD)).text
    assert len(fronted.entries()) == 3
