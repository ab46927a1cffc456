"""The official client of OpenAI, unchanged, through the proxy: sync, async, streams, tools, and everything a provider may
do to it."""

import asyncio
import json
import re
from pathlib import Path

import openai
import pytest

from memplane.ledger.history import entry_id
from provider_server import (
    TOKENS,
    chat,
    chat_stream,
    packed,
    packed_stream,
    says,
    spell,
    streams,
    too_many,
    tool_call,
    whole,
)
from proxy_server import SERVER_KEY, fronting

TOLD = "My dog is called Rex"
ASKED = "What is my dog called?"
TOOLS = [
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
]


@pytest.fixture
def fronted(open_plane):
    with fronting(open_plane) as running:
        yield running


def ask(client, *texts, **options):
    messages = [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(texts)]
    return client.chat.completions.create(model="gpt-4o", messages=messages, **options)


def test_what_is_told_in_one_conversation_is_known_in_the_next(fronted):
    """
    The client changed its base URL and nothing else; the second conversation's prompt holds what the first one said.
    """
    client = fronted.openai()
    first = ask(client, TOLD)
    ask(client, ASKED)

    assert first.choices[0].message.content == "Noted."
    assert "BEGIN MEMORY" not in fronted.provider.requests[0].body.decode()
    *told, user = fronted.provider.bodies[1]["messages"]
    assert user == {"role": "user", "content": ASKED}
    assert {message["role"] for message in told} == {"system"}
    assert TOLD in told[-1]["content"]


def test_the_example_of_the_guide_runs(fronted):
    """
    As it stands, but for the address and the key.
    """
    page = (Path(__file__).parents[3] / "docs/guides/proxy.md").read_text("utf-8")
    (program,) = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    program = program.replace("http://127.0.0.1:8700", fronted.server.url).replace("mp_…", "key-of-alice")
    names = {}
    exec(program, names)
    names["client"].close()

    assert TOLD in fronted.provider.last.body.decode()
    assert ASKED in fronted.provider.last.body.decode()


def test_a_turn_is_kept_before_its_answer_ends(fronted):
    """
    Whoever has read the answer finds the turn in the ledger, streamed or not, with what was asked and answered.
    """
    client = fronted.openai()
    ask(client, TOLD)
    assert fronted.turns() == [("user", TOLD), ("assistant", "Noted.")]

    fronted.provider.plan.append(says("It is Rex"))
    words = [event.choices[0].delta.content for event in ask(client, ASKED, stream=True) if event.choices]

    assert "".join(word or "" for word in words) == "It is Rex"
    assert fronted.turns()[2:] == [("user", ASKED), ("assistant", "It is Rex")]


def test_what_was_injected_is_never_kept_as_said(fronted):
    """
    However often memory is told, the ledger has each thing once, and nothing of the prompt that carried it.
    """
    client = fronted.openai()
    ask(client, TOLD)
    for _ in range(3):
        ask(client, ASKED)

    assert [text for _, text in fronted.turns()].count(TOLD) == 1
    assert b"BEGIN MEMORY" not in b"".join(entry.body for entry in fronted.entries())


def test_the_async_client(fronted):
    """
    The same for the asynchronous client, several turns at once, streamed and whole.
    """

    async def talk():
        async with fronted.openai(client=openai.AsyncOpenAI) as client:
            answers = await asyncio.gather(*(ask(client, f"{TOLD} {number}") for number in range(4)))
            stream = await ask(client, ASKED, stream=True)
            said = [event.choices[0].delta.content or "" async for event in stream if event.choices]
        return [answer.choices[0].message.content for answer in answers], "".join(said)

    answers, said = asyncio.run(talk())

    assert (answers, said) == (["Noted."] * 4, "Noted.")
    assert len(fronted.turns()) == 10


def test_tools_are_called_and_their_results_are_kept(fronted):
    """
    A call of a tool reaches the client, its result the model, and both are in the ledger.
    """
    client = fronted.openai()
    fronted.provider.plan.append(whole(chat("", [tool_call("weather", {"city": "Lisbon"})])))
    messages = [{"role": "user", "content": "How is the weather?"}]
    called = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)
    call = called.choices[0].message.tool_calls[0]
    messages += [
        called.choices[0].message.to_dict(),
        {"role": "tool", "tool_call_id": call.id, "content": "27 degrees in Lisbon"},
    ]
    client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)

    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Lisbon"})
    assert ("assistant", 'tool_call weather {"city":"Lisbon"}') in fronted.turns()
    assert ("tool", "27 degrees in Lisbon") in fronted.turns()


def test_between_tool_calls_the_prompt_keeps_its_beginning(fronted, clock):
    """
    While an agent works on one thing, each request begins with all of the one before it, whatever is remembered and
    however late it gets meanwhile: what a provider has cached stays good.
    """
    client = fronted.openai()
    ask(client, TOLD)
    messages = [{"role": "system", "content": "Be kind"}, {"role": "user", "content": ASKED}]
    client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)
    clock.advance(minutes=5)
    fronted.plane.space("alice").store("fact", "Rex is a dog that barks")
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [tool_call("weather", {})]},
        {"role": "tool", "tool_call_id": "call_1", "content": "27 degrees"},
    ]
    client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)

    before, after = fronted.provider.bodies[1]["messages"], fronted.provider.bodies[2]["messages"]
    assert TOLD in json.dumps(before)
    assert after[: len(before)] == before


def test_the_brief_is_the_same_bytes_all_through_a_conversation(fronted, clock):
    """
    It stands where the conversation begins, behind the system's words, and does not change while that goes on, although
    memory does; the next conversation begins with the new one.
    """
    space = fronted.plane.space("alice")
    space.store("preference", "Prefers short answers")
    client = fronted.openai()
    system = {"role": "system", "content": "Be kind", "name": "x"}

    def say(*texts):
        roles = ("user", "assistant")
        messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
        client.chat.completions.create(model="gpt-4o", messages=[system, *messages])
        return fronted.provider.bodies[-1]["messages"]

    first = say("Hello")
    space.store("preference", "Prefers to be called Al")
    clock.advance(days=3)
    second = say("Hello", "Noted.", "How are you?")
    fresh = say("Good morning")

    assert first[0] == second[0] == system
    assert "Prefers short answers" in first[1]["content"]
    assert second[1] == first[1]
    assert "called Al" in fresh[1]["content"]


def test_what_is_forgotten_is_not_told_again_within_its_conversation(fronted):
    """
    Neither in the brief that the conversation began with nor between the calls of a tool, whatever that costs a cache.
    """
    client = fronted.openai()
    ask(client, TOLD)
    space = fronted.plane.space("alice")
    space.store("preference", "Prefers that Rex comes along")
    messages = [{"role": "user", "content": ASKED}]
    client.chat.completions.create(model="gpt-4o", messages=messages)
    assert fronted.provider.last.body.decode().count("Rex") >= 2
    space.forget(everything=True)
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [tool_call("weather", {})]},
        {"role": "tool", "tool_call_id": "call_1", "content": "27 degrees"},
    ]
    client.chat.completions.create(model="gpt-4o", messages=messages)

    assert "Rex" not in fronted.provider.last.body.decode()


def test_what_the_conversation_says_is_not_told_again(fronted):
    """
    Memory adds what the model cannot read already.
    """
    client = fronted.openai()
    ask(client, TOLD)
    ask(client, "My cat is called Tom")
    ask(client, TOLD, "Noted.", "What are my dog and my cat called?")

    told = fronted.provider.bodies[-1]["messages"][-2]["content"]
    assert "Tom" in told
    assert TOLD not in told


def test_what_was_told_to_a_model_can_be_forgotten_off_the_disk(fronted, tmp_path):
    """
    It was in the prompt of another turn, and that turn's entry does not hold it.
    """
    client = fronted.openai()
    ask(client, TOLD, extra_headers={"x-memplane-conversation": "talk-1"})
    ask(client, ASKED)
    assert TOLD in fronted.provider.last.body.decode()
    fronted.plane.space("alice").forget(conversation="talk-1")

    holding = [
        path for path in (tmp_path / "data").rglob("*") if path.is_file() and b"Rex" in path.read_bytes()
    ]
    assert holding == []


def test_what_the_client_sent_stays_byte_for_byte(fronted):
    """
    Around what is put in, the body is the client's own bytes, however it spells them: that is what a provider caches by.
    """
    ask(fronted.openai(), TOLD)
    odd = (
        b'{ "model" : "gpt-4o","temperature":1.0, "seed": 1e0,\n "messages":[ {"content":"S\\u00e9 \\/ <b>",'
        b'"role":"system"} , {"role":"user", "content":"What is my dog called?" }\t] , "x":"\\ud83d" }'
    )
    fronted.http().post("/v1/chat/completions", content=odd, headers={"content-type": "application/json"})

    sent = fronted.provider.last.body
    before, after = odd.split(b'{"role":"user"')
    assert sent.startswith(before)
    assert sent.endswith(b'{"role":"user"' + after)
    assert b"Rex" in sent[len(before) : -len(after)]


def test_responses_whole_and_streamed(fronted):
    """
    OpenAI's other API, with an input that is a text and one that is a list, has memory too.
    """
    client = fronted.openai()
    first = client.responses.create(model="gpt-4o", input=TOLD, instructions="Be kind")
    with client.responses.stream(model="gpt-4o", input=[{"role": "user", "content": ASKED}]) as stream:
        second = stream.get_final_response()
    client.responses.create(model="gpt-4o", input=ASKED)

    assert (first.output_text, second.output_text) == ("Noted.", "Noted.")
    assert fronted.provider.bodies[0]["input"] == TOLD
    for body in fronted.provider.bodies[1:]:
        assert body["input"][-1]["content"] == ASKED
        assert TOLD in body["input"][-2]["content"]
    assert fronted.turns()[:4] == [
        ("user", TOLD),
        ("assistant", "Noted."),
        ("user", ASKED),
        ("assistant", "Noted."),
    ]


def test_content_of_several_parts_is_kept(fronted):
    """
    Words beside a picture are remembered; the picture is in the ledger.
    """
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    content = [{"type": "text", "text": TOLD}, picture]
    fronted.openai().chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": content}])

    assert fronted.turns()[0] == ("user", TOLD)
    assert b"iVBORw0KGgo=" in fronted.entries()[0].body


def test_other_calls_pass(fronted):
    """
    Models and embeddings answer as the provider does; nothing of them is kept, and nobody has to say whose memory.
    """
    fronted.server.keys.add("of-many", subject="many")
    client = fronted.openai("of-many")

    assert [model.id for model in client.models.list()] == ["gpt-4o"]
    made = client.embeddings.create(model="text-embedding-3-small", input="x", encoding_format="float")
    assert made.data[0].embedding == [0.25, -0.5]
    assert list(fronted.plane.spaces()) == []


def test_a_refusal_is_the_providers_own_and_is_not_kept(fronted):
    """
    429 with its headers and body; the client's own retries work on it; a turn that failed is nowhere.
    """
    fronted.provider.plan.append(too_many)
    with pytest.raises(openai.RateLimitError) as refused:
        ask(fronted.openai(), TOLD)

    assert refused.value.code == "rate_limit_exceeded"
    assert refused.value.response.headers["retry-after"] == "7"
    assert refused.value.response.headers["x-ratelimit-remaining-tokens"] == "0"
    assert not fronted.plane.has_space("alice")

    fronted.provider.plan.append(whole(b"<html>no JSON</html>", 500, content_type="text/html"))
    assert ask(fronted.openai(max_retries=1), TOLD).choices[0].message.content == "Noted."
    assert len(fronted.entries()) == 1


def test_an_error_within_a_stream_reaches_the_client(fronted):
    """
    What the provider says in the middle of a stream is passed on; such a turn is on record, and nothing of it is memory.
    """
    error = b'data: {"error": {"message": "overloaded", "type": "server_error", "code": null}}\n\n'
    fronted.provider.plan.append(streams([*chat_stream("Half of it")[:2], error]))
    with pytest.raises(openai.APIError, match="overloaded"):
        list(ask(fronted.openai(), TOLD, stream=True))

    assert fronted.turns() == []
    assert json.loads(fronted.entries()[0].body)["status"] == "error"


@pytest.mark.parametrize("step", [packed, packed_stream])
def test_packed_answers_are_passed_packed_and_read(fronted, step):
    """
    Gzip goes through as it is, and what it holds is kept all the same.
    """
    fronted.provider.plan.append(step("Very well"))
    if step is packed:
        said = ask(fronted.openai(), TOLD).choices[0].message.content
    else:
        events = ask(fronted.openai(), TOLD, stream=True)
        said = "".join(event.choices[0].delta.content or "" for event in events if event.choices)

    assert said == "Very well"
    assert fronted.turns()[-1] == ("assistant", "Very well")


def test_a_stream_without_an_end_mark_and_one_that_is_cut_anywhere(fronted):
    """
    Where chunks begin and end means nothing: byte by byte, events halved, no `[DONE]` at all.
    """
    events = b"".join(chat_stream("One two three", usage=False))
    client = fronted.openai()
    for chunks in ([events[at : at + 1] for at in range(len(events))], [events[:-14]], [events]):
        fronted.provider.plan.append(streams(chunks))
        said = "".join(event.choices[0].delta.content or "" for event in ask(client, TOLD, stream=True))

        assert said == "One two three"
        assert fronted.turns()[-1] == ("assistant", "One two three")


def test_the_clients_own_key_goes_along_and_ours_does_not(fronted):
    """
    With a Memplane key beside it the provider gets the client's key; without, the server's. Ours reaches nobody.
    """
    own = fronted.openai("sk-of-the-client", default_headers={"x-memplane-key": "key-of-alice"})
    ask(own, TOLD)
    ask(fronted.openai(), ASKED)

    first, second = fronted.provider.requests
    assert first.headers["authorization"] == "Bearer sk-of-the-client"
    assert second.headers["authorization"] == f"Bearer {SERVER_KEY}"
    assert not [name for asked in fronted.provider.requests for name in asked.headers if "memplane" in name]
    assert all("key-of-alice" not in str(asked.headers) for asked in fronted.provider.requests)
    assert len(fronted.entries()) == 2


def test_refusals_of_ours_have_the_providers_shape(fronted):
    """
    A wrong key, no space, a foreign space, a bad header: the client's own exceptions, with words that say what to do.
    """
    fronted.server.keys.add("of-many", subject="many")
    with pytest.raises(openai.AuthenticationError):
        ask(fronted.openai("wrong"), TOLD)
    with pytest.raises(openai.BadRequestError, match="X-Memplane-Space") as unnamed:
        ask(fronted.openai("of-many"), TOLD)
    with pytest.raises(openai.PermissionDeniedError):
        ask(fronted.openai(), TOLD, extra_headers={"x-memplane-space": "bob"})
    with pytest.raises(openai.BadRequestError, match="on or off"):
        ask(fronted.openai(), TOLD, extra_headers={"x-memplane-memory": "maybe"})

    assert unnamed.value.body == {
        "message": unnamed.value.body["message"],
        "type": "invalid_request_error",
        "param": None,
        "code": "space_required",
    }
    assert fronted.provider.requests == []
    assert list(fronted.plane.spaces()) == []


def test_whose_memory_it_is(fronted):
    """
    A key of many spaces: the header comes before the metadata, and those before the user; each names the space.
    """
    fronted.server.keys.add("of-many", subject="many")
    client = fronted.openai("of-many")
    named = {"extra_headers": {"x-memplane-space": "by-header"}}
    ask(client, TOLD, user="by-user", metadata={"memplane_space": "by-metadata"}, **named)
    ask(client, TOLD, user="by-user", metadata={"memplane_space": "by-metadata"})
    ask(client, TOLD, user="by-user")
    ask(fronted.openai(), TOLD, user="somebody")

    assert sorted(fronted.plane.spaces()) == ["alice", "by-header", "by-metadata", "by-user"]


def test_a_conversation_can_be_named_and_forgotten(fronted):
    """
    By header or metadata; what was said in it goes with it, and stays gone when memory is derived anew.
    """
    client = fronted.openai()
    ask(client, TOLD, extra_headers={"x-memplane-conversation": "talk-1"})
    ask(client, "I live in Rome", metadata={"memplane_conversation": "talk-2"})
    space = fronted.plane.space("alice")
    space.forget(conversation="talk-1")
    space.ledger.replay()

    assert [text for _, text in fronted.turns()] == ["I live in Rome", "Noted."]
    assert {hit.turn.conversation for hit in space.search(memories=False) if hit.turn} == {"talk-2"}


def test_without_authentication_there_is_a_default(open_plane):
    """
    `--no-auth`: the client's own key goes to the provider, and memory is the default space unless the request says.
    """
    with fronting(open_plane, auth=False) as fronted:
        ask(fronted.openai("sk-of-the-client"), TOLD)
        ask(fronted.openai("memplane"), TOLD, user="bob")

        assert sorted(fronted.plane.spaces()) == ["bob", "default"]
        keys = [asked.headers["authorization"] for asked in fronted.provider.requests]
        assert keys == ["Bearer sk-of-the-client", f"Bearer {SERVER_KEY}"]


def test_several_upstreams_by_model_and_by_path(open_plane):
    """
    `vllm/llama` is `llama` there, with that upstream's key; the path does the same; an unknown prefix is a model's name.
    """
    with fronting(open_plane) as first:
        changes = {"upstreams": (f"vllm={first.provider.url}", f"azure=azure+{first.provider.root}")}
        keys = ("vllm=key-of-vllm", "azure=key-of-azure")
        with fronting(open_plane, **changes, upstream_keys=keys) as fronted:
            client = fronted.openai()
            client.chat.completions.create(model="vllm/llama", messages=[{"role": "user", "content": TOLD}])
            client.chat.completions.create(model="org/model", messages=[{"role": "user", "content": TOLD}])
            fronted.http().post("/proxy/vllm/v1/chat/completions", json={"model": "llama", "messages": []})
            path = "/openai/deployments/gpt/chat/completions?api-version=1"
            fronted.http().post(f"/proxy/azure{path}", json={"messages": [{"role": "user", "content": "hi"}]})
            unknown = fronted.http().post("/proxy/nobody/v1/chat/completions", json={})
            bare = fronted.http().get("/proxy/vllm")

            assert [asked.json.get("model") for asked in first.provider.requests] == ["llama", "llama", None]
            assert [asked.headers.get("authorization") for asked in first.provider.requests[:2]] == [
                "Bearer key-of-vllm"
            ] * 2
            assert first.provider.last.path == path
            assert first.provider.last.headers["api-key"] == "key-of-azure"
            assert fronted.provider.bodies[0]["model"] == "org/model"
            assert bare.status_code == 403
            assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "unknown_upstream")


def test_the_servers_key_is_lent_for_turns_only(fronted):
    """
    What a provider keeps for its customer would be everybody's who shares the key: those who bring their own may see it.
    """
    client = fronted.http()
    own = {"x-memplane-key": "key-of-alice", "authorization": "Bearer sk-of-the-client"}

    assert client.get("/v1/files").status_code == 403
    assert client.get("/v1/chat/completions").status_code == 403
    assert client.post("/v1/embeddings/../files", json={}).status_code in {403, 404}
    assert client.get("/v1/files", headers=own).json() == {"object": "list", "data": []}
    assert [asked.path for asked in fronted.provider.requests] == ["/v1/files"]
    assert fronted.provider.last.headers["authorization"] == "Bearer sk-of-the-client"


def test_tokens_are_counted(fronted):
    """
    As the provider counts them, in what the history says of the turn, streamed or not.
    """
    client = fronted.openai()
    ask(client, TOLD)
    list(ask(client, TOLD, stream=True))
    client.responses.create(model="gpt-4o", input=TOLD)

    usages = [json.loads(entry.body)["usage"] for entry in fronted.entries()]
    assert usages == [{"prompt_tokens": TOKENS[0], "completion_tokens": TOKENS[1]}] * 3


def test_a_body_that_cannot_be_read_is_refused_as_the_provider_would(fronted):
    """
    No JSON, a name that stands twice, something packed: nothing is sent on that would not be kept as it is.
    """
    client = fronted.http()
    for body in (b"", b"[]", b"{", b'{"model":"a","model":"b"}', b'{"messages":[1,]}', b"\xff"):
        answer = client.post("/v1/chat/completions", content=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"
    gzipped = client.post("/v1/chat/completions", content=b"{}", headers={"content-encoding": "gzip"})
    assert gzipped.status_code == 415
    for odd in ({"messages": None}, {"messages": "text"}, {"messages": [1, None, {}]}, {}):
        assert client.post("/v1/chat/completions", json=odd).status_code == 200

    assert next(asked.json for asked in fronted.provider.requests) == {"messages": None}


def test_a_very_long_turn_is_kept_without_what_is_no_words(fronted):
    """
    An entry has a largest size; a picture that does not fit goes before a word does.
    """
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * (9 << 20)}}
    content = [{"type": "text", "text": TOLD}, picture]
    fronted.openai().chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": content}])

    assert len(fronted.provider.last.body) > 9 << 20
    assert fronted.turns() == [("user", TOLD), ("assistant", "Noted.")]


def test_history_files_are_written_where_asked_for(open_plane, tmp_path):
    """
    One line a turn, with what went upstream, under the id that its own text proves and that the ledger has too.
    """
    with fronting(open_plane, session_history_dir=str(tmp_path / "history")) as fronted:
        ask(fronted.openai(), TOLD)
        ask(fronted.openai(), ASKED)
        lines = (tmp_path / "history" / "alice" / "history.jsonl").read_bytes().splitlines()
        ids = [entry.id for entry in fronted.entries()]

    assert [entry_id(line) for line in lines] == ids
    assert [json.loads(line)["id"] for line in lines] == ids
    effective = json.loads(lines[1])["request_effective"]
    assert effective == fronted.provider.bodies[1]
    assert spell(json.loads(lines[1])["request_original"]["messages"][0]["content"]) == spell(ASKED)
