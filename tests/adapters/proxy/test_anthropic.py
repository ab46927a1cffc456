"""The official client of Anthropic, unchanged, through the proxy; and with memory off, the very bytes of going direct."""

import asyncio
import json
import socket
from urllib.parse import urlsplit

import anthropic
import pytest

from provider_server import (
    TOKENS,
    chat_stream,
    message,
    message_stream,
    packed,
    replies,
    response_stream,
    says,
    streams,
    too_many,
    whole,
)
from proxy_server import SERVER_KEY, fronting

TOLD = "My dog is called Rex"
ASKED = "What is my dog called?"
PLACES = ("x-api-key", "authorization")
TOOLS = [{"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}]


@pytest.fixture
def fronted(open_plane):
    with fronting(open_plane) as running:
        yield running


def ask(client, text, **options):
    options = {"model": "claude", "max_tokens": 50, "messages": [{"role": "user", "content": text}]} | options
    return client.messages.create(**options)


def test_what_is_told_in_one_conversation_is_known_in_the_next(fronted):
    """
    Memory comes as a message behind what the user said last; what the client set as system stays as it is.
    """
    client = fronted.anthropic()
    ask(client, TOLD, system="Be kind")
    ask(client, ASKED, system="Be kind")

    body = fronted.provider.bodies[1]
    *_, user, told = body["messages"]
    assert body["system"] == "Be kind"
    assert user == {"role": "user", "content": ASKED}
    assert (told["role"], told["content"][0]["type"]) == ("user", "text")
    assert TOLD in told["content"][0]["text"]


def test_streams_sync_and_async(fronted):
    """
    Events arrive as they were sent, unknown ones too, and the turn is kept when the stream has ended.
    """
    fronted.provider.plan.append(says("One two three"))
    with fronted.anthropic().messages.stream(
        model="claude", max_tokens=50, messages=[{"role": "user", "content": TOLD}]
    ) as stream:
        said = stream.get_final_text()
    assert said == "One two three"
    assert fronted.turns() == [("user", TOLD), ("assistant", "One two three")]

    async def talk():
        async with fronted.anthropic(client=anthropic.AsyncAnthropic) as client:
            whole_one = await ask(client, TOLD)
            events = [event.type async for event in await ask(client, ASKED, stream=True)]
        return whole_one.content[0].text, events

    text, events = asyncio.run(talk())
    assert text == "Noted."
    assert events[0] == "message_start"
    assert events[-1] == "message_stop"
    assert len(fronted.turns()) == 6


def test_tools(fronted):
    """
    A tool is called and answers; memory goes behind the answer, so that what must follow a call follows it.
    """
    client = fronted.anthropic()
    ask(client, TOLD)
    use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Lisbon"}}
    fronted.provider.plan.append(whole(message("", [use])))
    called = ask(client, "How is the weather for my dog?", tools=TOOLS)
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "27 degrees"}
    messages = [
        {"role": "user", "content": "How is the weather for my dog?"},
        {"role": "assistant", "content": [block.to_dict() for block in called.content]},
        {"role": "user", "content": [result]},
    ]
    ask(client, "", messages=messages, tools=TOOLS)

    assert called.content[0].input == {"city": "Lisbon"}
    *_, answered, told = fronted.provider.bodies[2]["messages"]
    assert answered == messages[2]
    assert "Rex" in told["content"][0]["text"]
    assert ("assistant", 'tool_call weather {"city":"Lisbon"}') in fronted.turns()
    assert ("tool", "27 degrees") in fronted.turns()


def test_what_is_to_be_cached_stays_as_it_is(fronted):
    """
    Marks for the cache, and every byte before the last of them, are the client's own; memory comes after.
    """
    client = fronted.anthropic()
    ask(client, TOLD)
    mark = {"cache_control": {"type": "ephemeral"}}
    options = {
        "system": [{"type": "text", "text": "Be kind", **mark}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": ASKED, **mark}]}],
    }
    ask(client, "", **options, extra_headers={"x-memplane-memory": "off"})
    ask(client, "", **options)

    direct, with_memory = fronted.provider.bodies[1], fronted.provider.bodies[2]
    assert with_memory["system"] == direct["system"] == options["system"]
    assert options["messages"][0] in with_memory["messages"]
    position = with_memory["messages"].index(options["messages"][0])
    assert "cache_control" not in json.dumps(with_memory["messages"][position + 1 :])
    assert with_memory["messages"][position + 1 :]


def test_the_next_request_begins_as_the_last_one_did(fronted):
    """
    From turn to turn the prompt grows at its end: all that was before the newest memory comes again, byte for byte.
    """
    fronted.plane.space("alice").store("preference", "Prefers short answers")
    client = fronted.anthropic()
    messages = [{"role": "user", "content": "Hello"}]
    ask(client, "", messages=messages)
    messages += [{"role": "assistant", "content": "Noted."}, {"role": "user", "content": ASKED}]
    fronted.plane.space("alice").store("fact", "A dog barks")
    ask(client, "", messages=messages)

    def written(at, count):
        return [json.dumps(one) for one in fronted.provider.bodies[at]["messages"][:count]]

    assert "Prefers short answers" in written(0, 1)[0]
    assert written(0, 2) == written(1, 2)


def test_who_claude_code_is(fronted):
    """
    It names its user and its sitting in one: the first is the space, the second the conversation.
    """
    fronted.server.keys.add("of-many", subject="many")
    ask(fronted.anthropic("of-many"), TOLD, metadata={"user_id": "user_ab_account_cd_session_ef-12"})

    assert list(fronted.plane.spaces()) == ["user_ab_account_cd"]
    found = fronted.plane.space("user_ab_account_cd").search(memories=False)
    assert {hit.turn.conversation for hit in found} == {"ef-12"}


def test_refusals_and_errors(fronted):
    """
    The provider's 429 and its error within a stream are its own; ours have Anthropic's shape.
    """
    client = fronted.anthropic()
    fronted.provider.plan.append(too_many)
    with pytest.raises(anthropic.RateLimitError) as refused:
        ask(client, TOLD)
    assert refused.value.response.headers["retry-after"] == "7"

    error = (
        b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}\n\n'
    )
    fronted.provider.plan.append(streams([*message_stream("Half of it")[:4], error]))
    with pytest.raises(anthropic.APIError, match="busy"):
        list(ask(client, TOLD, stream=True))
    assert fronted.turns() == []

    with pytest.raises(anthropic.AuthenticationError) as wrong:
        ask(fronted.anthropic("wrong"), TOLD)
    assert wrong.value.body["type"] == "error"
    assert wrong.value.body["error"]["type"] == "authentication_error"
    with pytest.raises(anthropic.AuthenticationError):
        fronted.anthropic("wrong").models.list()
    with pytest.raises(anthropic.PermissionDeniedError):
        ask(client, TOLD, extra_headers={"x-memplane-space": "bob"})


def test_keys_and_other_calls(fronted):
    """
    The server's own key stands where Anthropic looks for it, the client's where its client puts it; counting tokens passes and keeps nothing.
    """
    client = fronted.anthropic()
    counted = client.messages.count_tokens(model="claude", messages=[{"role": "user", "content": TOLD}])
    own = fronted.anthropic("sk-ant-of-client", default_headers={"x-memplane-key": "key-of-alice"})
    ask(own, TOLD)

    assert counted.input_tokens == 12
    first, second = (
        {name: asked.headers.get(name) for name in PLACES} for asked in fronted.provider.requests
    )
    assert first == {"x-api-key": SERVER_KEY, "authorization": None}
    assert {"sk-ant-of-client", "Bearer sk-ant-of-client"} & set(second.values())
    assert SERVER_KEY not in second.values()
    assert len(fronted.entries()) == 1
    usage = json.loads(fronted.entries()[0].body)["usage"]
    assert usage == {"prompt_tokens": TOKENS[0], "completion_tokens": TOKENS[1]}


# ── with memory off ──────────────────────────────────────────────────────────────────────────────────────────────

BODY = b'{ "model":"m",  "stream" : %s, "n":1e0, "messages":[{"role":"user","content":"\\u0041 <&>"}], "input":"x"}\n'


def over_a_socket(url, path, body, **headers):
    """The answer of a server to bytes written by hand: its status, its headers, and its body without its chunks."""
    address = urlsplit(url)
    headers = {"host": address.netloc, "content-length": str(len(body)), "connection": "close"} | headers
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, rest = received.partition(b"\r\n\r\n")
    status, *found = head.decode("latin-1").split("\r\n")
    named = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in found)}
    return status.split(" ")[1], named, _unchunked(rest) if "transfer-encoding" in named else rest


def _unchunked(rest):
    found = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        found, rest = found + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return found


STEPS = {
    "whole": replies,
    "packed": packed("Very well"),
    "refused": too_many,
    "no JSON": whole(b"\x00\xff not JSON at all", 502, content_type="application/octet-stream"),
    "empty": whole(b"", 200),
}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
@pytest.mark.parametrize("step", [*STEPS, "stream"])
def test_with_memory_off_the_bytes_are_those_of_going_direct(fronted, path, step):
    """
    Both ways: the provider gets the client's bytes, and the client the provider's, with its status and headers.
    """
    made = {
        "/v1/chat/completions": chat_stream,
        "/v1/responses": response_stream,
        "/v1/messages": message_stream,
    }
    answer = STEPS[step] if step in STEPS else streams(made[path]("One two three"), x_vendor="v")
    body = BODY % (b"true" if step == "stream" else b"false")
    fronted.provider.plan += [answer, answer]
    asked = {"content_type": "application/json", "authorization": "Bearer sk-of-the-client", "x_custom": "1"}
    direct = over_a_socket(fronted.provider.root, path, body, **asked)
    ours = {"x_memplane_key": "key-of-alice", "x_memplane_memory": "off"}
    through = over_a_socket(fronted.server.url, path, body, **asked, **ours)

    def plain(headers):
        hop = {"date", "server", "connection", "transfer-encoding", "keep-alive", "x-request-id"}
        return {name: value for name, value in headers.items() if name not in hop}

    first, second = fronted.provider.requests
    assert (second.method, second.path, second.body) == (first.method, first.path, first.body)
    assert second.body == body
    assert {**second.headers, "host": ""} == {
        name: "" if name == "host" else value for name, value in first.headers.items() if name != "connection"
    }
    assert through[0] == direct[0]
    assert through[2] == direct[2]
    assert plain(through[1]) == plain(direct[1])
    assert not fronted.plane.has_space("alice")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_with_memory_on_the_answer_is_still_the_providers_bytes(fronted, path):
    """
    Memory changes what is asked and never what is answered.
    """
    made = {
        "/v1/chat/completions": chat_stream,
        "/v1/responses": response_stream,
        "/v1/messages": message_stream,
    }
    events = made[path]("One two three")
    for stream, expected in ((b"true", b"".join(events)), (b"false", None)):
        if expected is not None:
            fronted.provider.plan += [streams(events), streams(events)]
        asked = {"content_type": "application/json", "authorization": "Bearer key-of-alice"}
        direct = over_a_socket(fronted.provider.root, path, BODY % stream, **asked)
        through = over_a_socket(fronted.server.url, path, BODY % stream, **asked)

        assert through[2] == direct[2]
        assert expected in {None, through[2]}
    assert len(fronted.entries()) == 2
