"""What the official clients do besides turns, and what HTTP allows them: the rest of the providers' APIs pass as they are, and
what cannot pass is refused in words."""

import asyncio
import base64
import json
import os
import socket
from urllib.parse import urlsplit

import openai
import pytest

from provider_server import SERVER_ID, chat, chat_stream, spell, streams, whole
from proxy_server import ALICE, body, fronting

OWN = {"x-memplane-key": ALICE}
TOLD = "My dog is called Rex"
RATES = {
    "x_request_id": SERVER_ID,
    "openai_processing_ms": "42",
    "openai_version": "2020-10-01",
    "x_ratelimit_remaining_requests": "9",
    "anthropic_ratelimit_tokens_remaining": "1000",
    "anthropic_organization_id": "org",
    "retry_after": "3",
    "retry_after_ms": "3000",
    "x_should_retry": "false",
}


@pytest.fixture
def fronted(open_plane):
    with fronting(open_plane) as running:
        yield running


@pytest.fixture
def owner(fronted):
    """A client that brings its own key to the provider."""
    return fronted.openai("sk-of-the-client", default_headers=OWN)


def raw(fronted, request, *, until=b"\r\n\r\n"):
    """What comes back to bytes written by hand, until then."""
    address = urlsplit(fronted.server.url)
    connection = socket.create_connection((address.hostname, address.port), timeout=30)
    connection.sendall(request)
    received = b""
    while until not in received and (piece := connection.recv(65_536)):
        received += piece
    return connection, received


# ── the rest of the APIs ─────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_provider_keeps_passes_with_the_clients_own_key(fronted, owner):
    """
    Stored responses and completions, files, batches, sounds: path, method, body and answer as they are, and no memory of them.
    """
    sound = os.urandom(70_000)
    fronted.provider.plan += [
        whole(b'{"id":"resp_1","object":"response","output":[],"status":"completed"}'),
        whole(b'{"id":"resp_1","object":"response","deleted":true}'),
        whole(b'{"id":"file-1","object":"file"}'),
        whole(b'{"id":"batch_1","object":"batch"}'),
        whole(sound, content_type="audio/mpeg"),
        whole(b'{"text":"hello"}'),
    ]
    owner.responses.retrieve("resp_1", include=["message.input_image.image_url"])
    owner.responses.delete("resp_1")
    owner.files.create(file=("turns.jsonl", sound), purpose="batch")
    owner.batches.create(completion_window="24h", endpoint="/v1/chat/completions", input_file_id="file-1")
    spoken = owner.audio.speech.create(model="tts-1", voice="alloy", input="hello").read()
    heard = owner.audio.transcriptions.create(model="whisper-1", file=("a.mp3", sound)).text

    assert (spoken, heard) == (sound, "hello")
    assert [(asked.method, asked.path.partition("?")[0]) for asked in fronted.provider.requests] == [
        ("GET", "/v1/responses/resp_1"),
        ("DELETE", "/v1/responses/resp_1"),
        ("POST", "/v1/files"),
        ("POST", "/v1/batches"),
        ("POST", "/v1/audio/speech"),
        ("POST", "/v1/audio/transcriptions"),
    ]
    assert sound in fronted.provider.requests[2].body
    assert "include" in fronted.provider.requests[0].path
    assert {asked.headers["authorization"] for asked in fronted.provider.requests} == {
        "Bearer sk-of-the-client"
    }
    assert not fronted.plane.has_space("alice")


def test_completions_of_old_pass_whole_and_streamed(fronted):
    """
    They are no conversation, so nothing is told or kept.
    """
    answer = {"id": "c", "object": "text_completion", "choices": [{"text": "Noted.", "index": 0}]}
    event = b"data: " + json.dumps(answer).encode() + b"\n\n"
    fronted.provider.plan += [whole(spell(answer)), streams([event, b"data: [DONE]\n\n"])]
    client = fronted.openai()
    once = client.completions.create(model="gpt-3.5-turbo-instruct", prompt=TOLD)
    streamed = list(client.completions.create(model="gpt-3.5-turbo-instruct", prompt=TOLD, stream=True))

    assert once.choices[0].text == streamed[0].choices[0].text == "Noted."
    assert not fronted.plane.has_space("alice")


def test_azures_client(open_plane):
    """
    It names its deployment in the path and the version in the query; turns have memory there too.
    """
    with fronting(open_plane) as azure:
        changes = {
            "upstreams": (f"azure=azure+{azure.provider.root}",),
            "upstream_keys": ("azure=key-of-azure",),
        }
        with fronting(open_plane, **changes) as fronted:
            client = openai.AzureOpenAI(
                azure_endpoint=f"{fronted.server.url}/proxy/azure",
                api_key=ALICE,
                api_version="2024-10-21",
                max_retries=0,
            )
            with client:
                answer = client.chat.completions.create(**body(TOLD))
                list(client.chat.completions.create(**body(TOLD, stream=True)))
            asked = azure.provider.requests[0]

            assert answer.choices[0].message.content == "Noted."
            assert asked.path == "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"
            assert asked.headers["api-key"] == "key-of-azure"
            assert len(fronted.entries()) == 2


def test_a_conversation_that_the_provider_has(fronted):
    """
    `store` and `previous_response_id` pass; memory goes beside what the request brings.
    """
    fronted.plane.space("alice").retain(TOLD)
    client = fronted.openai()
    first = client.responses.create(model="gpt-4o", input="Hello", store=True)
    client.responses.create(model="gpt-4o", input="What is my dog called?", previous_response_id=first.id)
    sent = fronted.provider.bodies[1]

    assert sent["previous_response_id"] == first.id
    assert [item["role"] for item in sent["input"]] == ["system", "user"]
    assert TOLD in sent["input"][0]["content"]
    assert fronted.provider.bodies[0]["store"] is True


def test_events_of_a_response_arrive_as_they_are(fronted):
    """
    In order, with their types; the last says that it is completed.
    """
    with fronted.openai().responses.stream(model="gpt-4o", input=TOLD) as stream:
        types = [event.type for event in stream]

    assert types[0] == "response.created"
    assert "response.output_text.delta" in types
    assert types[-1] == "response.completed"
    assert fronted.turns()[0] == ("user", TOLD)


def test_several_choices_are_one_turn(fronted):
    """
    All of them reach the client. The entry has all; what is remembered as said is what a client would go on with.
    """
    answer = json.loads(chat("First"))
    other = json.loads(json.dumps(answer["choices"][0]))
    other["index"], other["message"]["content"] = 1, "Second"
    answer["choices"].append(other)
    fronted.provider.plan.append(whole(json.dumps(answer).encode()))
    found = fronted.openai().chat.completions.create(**body(TOLD, n=2))

    assert [choice.message.content for choice in found.choices] == ["First", "Second"]
    assert b"Second" in fronted.entries()[0].body
    assert ("assistant", "First") in fronted.turns()


def test_unknown_fields_pass_both_ways(fronted):
    """
    What nobody knows yet is nobody's to leave out.
    """
    answer = json.loads(chat("Well")) | {"next_year": {"x": [1, 2.50]}}
    fronted.provider.plan.append(whole(json.dumps(answer).encode()))
    client = fronted.openai()
    found = client.chat.completions.create(
        **body(TOLD), extra_body={"beyond": {"a": 1.0}, "reasoning_effort": "x"}
    )

    assert found.next_year == {"x": [1, 2.5]}
    assert fronted.provider.bodies[0]["beyond"] == {"a": 1.0}


# ── headers and refusals ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [200, 400, 401, 404, 409, 422, 429, 500, 503, 529])
def test_headers_that_matter_and_every_status_pass(fronted, status):
    """
    Ids for support, limits, when to come back; with a body that is the provider's own.
    """
    fronted.provider.plan.append(whole(b'{"error":{"message":"m","type":"t"}}', status, **RATES))
    answer = fronted.http().post("/v1/chat/completions", json=body(TOLD))

    assert answer.status_code == status
    assert answer.content == b'{"error":{"message":"m","type":"t"}}'
    for name, value in RATES.items():
        assert answer.headers.get_list(name.replace("_", "-")) == [value]
    assert not fronted.plane.has_space("alice") or status == 200


def test_the_answer_says_what_was_told(fronted):
    """
    In headers, and the blocks themselves to whoever asks; with memory off there is nothing to say.
    """
    fronted.plane.space("alice").retain(TOLD)
    asked = "What is my dog called?"
    quiet, shown, off = (
        fronted.http().post("/v1/chat/completions", json=body(asked), headers=headers)
        for headers in ({}, {"x-memplane-recall": "show"}, {"x-memplane-memory": "off"})
    )
    told = json.loads(base64.b64decode(shown.headers["x-memplane-told"]))

    assert quiet.headers["x-memplane-recall"].startswith("succeeded; blocks=1; bytes=")
    assert "x-memplane-told" not in quiet.headers
    assert told["memories"][0]["text"] == TOLD
    assert not {name for name in off.headers if name.startswith("x-memplane")}
    assert quiet.content == shown.content == off.content
    assert not {name for name in fronted.provider.last.headers if name.startswith("x-memplane")}


def test_a_websocket_is_refused_in_words(fronted):
    """
    Realtime sessions are not carried: whoever tries hears so at once, and nothing hangs.
    """
    request = (
        f"GET /v1/realtime?model=gpt-4o HTTP/1.1\r\nhost: {urlsplit(fronted.server.url).netloc}\r\n"
        f"authorization: Bearer {ALICE}\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    connection, received = raw(fronted, request.encode(), until=b"}")
    with connection:
        head, _, said = received.partition(b"\r\n\r\n")

    assert head.split(b" ")[1] == b"405"
    assert b"this path speaks no websockets" in said
    assert fronted.provider.requests == []


# ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────


def spelled(fronted, content, *headers):
    lines = (
        "POST /v1/chat/completions HTTP/1.1",
        f"host: {urlsplit(fronted.server.url).netloc}",
        f"authorization: Bearer {ALICE}",
        "content-type: application/json",
        f"content-length: {len(content)}",
        *headers,
    )
    return "\r\n".join((*lines, "", "")).encode()


def test_a_client_that_waits_to_be_told_to_go_on(fronted):
    """
    `Expect: 100-continue`, as curl sends it with a large body: it is told to, and the provider hears nothing of it.
    """
    content = json.dumps(body(TOLD)).encode()
    connection, received = raw(fronted, spelled(fronted, content, "expect: 100-continue"))
    with connection:
        assert received.startswith(b"HTTP/1.1 100 ")
        connection.sendall(content)
        answered = connection.recv(65_536)

    assert answered.startswith(b"HTTP/1.1 200 ")
    assert "expect" not in fronted.provider.last.headers


def test_a_connection_is_kept_for_the_next_turn(fronted):
    """
    Both ways: the client's to us, whole answers and streams by turns, and ours to the provider.
    """
    content = json.dumps(body(TOLD)).encode()
    streamed = json.dumps(body(TOLD, stream=True)).encode()
    connection, _ = raw(fronted, spelled(fronted, content) + content, until=b"Noted.")
    with connection:
        for sent, end in ((streamed, b"0\r\n\r\n"), (content, b"Noted.")):
            connection.sendall(spelled(fronted, sent) + sent)
            received = b""
            while end not in received:
                piece = connection.recv(65_536)
                assert piece
                received += piece
            assert received.startswith(b"HTTP/1.1 200 ")

    assert len(fronted.entries()) == 3


def test_a_large_body_passes(fronted):
    """
    Several pictures of megabytes each, with words that are remembered.
    """
    picture = "data:image/png;base64," + base64.b64encode(os.urandom(3 << 20)).decode()
    parts = [
        {"type": "text", "text": TOLD},
        *({"type": "image_url", "image_url": {"url": picture, "detail": "high"}} for _ in range(3)),
    ]
    fronted.openai().chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": parts}])

    assert len(fronted.provider.last.body) > 12 << 20
    assert fronted.provider.bodies[0]["messages"][-1]["content"] == parts
    assert fronted.turns()[0] == ("user", TOLD)


def test_too_large_a_body_is_refused_before_it_is_sent_on(open_plane):
    """
    In the provider's shape, with the limit.
    """
    with (
        fronting(open_plane, body_bytes_max=10_000) as fronted,
        pytest.raises(openai.APIStatusError) as refused,
    ):
        fronted.openai().chat.completions.create(**body("x" * 20_000))

    assert refused.value.status_code == 413
    assert "10000" in refused.value.message.replace(",", "")


def test_a_client_that_gives_up_gives_the_provider_up(fronted):
    """
    The asynchronous client, cancelled in the middle of a stream.
    """

    def endless(asked):
        asked.head(200, content_type="text/event-stream", transfer_encoding="chunked")
        while True:
            asked.chunk(chat_stream("One two")[0])
            fronted.provider.release.wait(0.005)

    fronted.provider.plan.append(endless)

    async def run():
        async with fronted.openai(client=openai.AsyncOpenAI) as client:
            stream = await client.chat.completions.create(**body(TOLD, stream=True))
            async for _ in stream:
                break
            await stream.close()

    asyncio.run(run())
    while not fronted.provider.hung_up:
        fronted.provider.release.wait(0.01)

    assert fronted.http().post("/v1/chat/completions", json=body(TOLD)).status_code == 200


def test_raw_answers_of_the_client(fronted):
    """
    Whoever wants headers gets them, with the parsed answer.
    """
    answer = fronted.openai().chat.completions.with_raw_response.create(**body(TOLD))

    assert answer.parse().choices[0].message.content == "Noted."
    assert answer.headers["x-request-id"] == SERVER_ID
