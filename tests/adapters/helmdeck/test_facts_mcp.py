"""The facts door over its MCP transports, with the official client and by hand.

Upstream: qmd_server_test, mcp_qmd_sse_test, my_resources_test, resources_test, and the parts of memory_store_test that
go through MCP.
"""

import json
import re
from contextlib import ExitStack, asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from mcp import ClientSession, MCPError
from mcp.client.sse import sse_client
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from facts_callers import People, record_plans, record_runs, store
from http_server import PATIENCE_SECONDS, serving
from memplane.adapters.helmdeck.routes import StreamTimeouts
from memplane.adapters.helmdeck.routes import adapter as helmdeck_adapter
from sse_talk import talking

SSE = "/api/v1/mcp/sse"
QMD = "/api/v1/mcp/qmd/sse"
RESOURCES = ["packs", "routing-guide", "my-defaults", "my-memory", "context-budgets", "my-plans"]


@pytest.fixture
def people(server):
    return People(server)


@asynccontextmanager
async def session(server, path, token="alice-token"):
    headers = {"authorization": f"Bearer {token}"}
    async with (
        sse_client(server.url + path, headers=headers, timeout=PATIENCE_SECONDS) as streams,
        ClientSession(*streams) as opened,
    ):
        opened.greeting = await opened.initialize()
        yield opened


def text_of(result):
    return json.loads(result.content[0].text)


# ── the official client ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_official_client_over_sse(people):
    """
    Initialise, list, call and read as every MCP client does.
    """

    async def talk():
        async with session(people.server, SSE) as mcp:
            assert (mcp.greeting.server_info.name, mcp.greeting.protocol_version) == (
                "helmdeck",
                "2024-11-05",
            )
            tools = {tool.name: tool for tool in (await mcp.list_tools()).tools}
            assert list(tools) == ["helmdeck.memory_store", "helmdeck.memory_forget"]
            assert tools["helmdeck.memory_store"].input_schema["required"] == ["key", "value"]
            stored = await mcp.call_tool("helmdeck.memory_store", {"key": "a/b", "value": "React"})
            assert not stored.is_error
            assert text_of(stored)["output"]["key"] == "a/b"
            assert [resource.name for resource in (await mcp.list_resources()).resources] == RESOURCES
            told = json.loads((await mcp.read_resource("helmdeck://my-memory")).contents[0].text)
            assert told["scope"] == "caller=alice"
            assert told["categories"] == [{"name": "user_facts", "count": 1, "recent_keys": ["a/b"]}]
            forgotten = await mcp.call_tool("helmdeck.memory_forget", {"scope": "key:a/b"})
            assert text_of(forgotten)["output"] == {"scope": "key:a/b", "deleted": 1}

    anyio.run(talk)


def test_the_official_client_on_the_qmd_endpoint(people):
    """
    One tool; a query finds the fact of the caller, as structured content and as text.
    """
    store(people.alice, "preferences/frontend", "React over Vue")
    store(people.bob, "preferences/frontend", "React is bob's")

    async def talk():
        async with session(people.server, QMD) as mcp:
            assert (mcp.greeting.server_info.name, mcp.greeting.server_info.version) == ("helmdeck", "1.0.0")
            assert [tool.name for tool in (await mcp.list_tools()).tools] == ["query"]
            found = await mcp.call_tool(
                "query", {"searches": [{"type": "lex", "query": "React"}], "limit": 6}
            )
            assert found.structured_content == text_of(found)
            assert found.structured_content["results"] == [
                {
                    "docid": "user_facts/preferences/frontend",
                    "score": 0.9,
                    "snippet": "## preferences/frontend\n\nReact over Vue\n\n(category: user_facts)",
                    "collection": "helmdeck-user_facts",
                    "file": "facts/preferences/frontend",
                }
            ]
            with pytest.raises(MCPError, match=r"unknown tool: search \(only 'query' is supported"):
                await mcp.call_tool("search", {})

    anyio.run(talk)


def test_errors_of_a_tool_are_results(people):
    """
    What is wrong with the input is told as a result with `isError`; an unknown tool is an error of the protocol.
    """

    async def talk():
        async with session(people.server, SSE) as mcp:
            failed = await mcp.call_tool("helmdeck.memory_store", {"key": "k"})
            assert failed.is_error
            assert text_of(failed) == {"error": "invalid_input", "message": 'missing required field "value"'}
            with pytest.raises(MCPError, match="unknown tool: nothing"):
                await mcp.call_tool("nothing", {})
            with pytest.raises(MCPError, match="helmdeck://nothing"):
                await mcp.read_resource("helmdeck://nothing")

    anyio.run(talk)


# ── resources: my_resources_test, resources_test ─────────────────────────────────────────────────────────────────


def read(talk, name):
    contents = talk.call("resources/read", {"uri": f"helmdeck://{name}"})["result"]["contents"]
    assert (contents[0]["uri"], contents[0]["mimeType"]) == (f"helmdeck://{name}", "application/json")
    return json.loads(contents[0]["text"])


def test_resources_are_made_for_the_caller(people, clock):
    """
    Upstream made them for `unknown`, whoever asked. Each caller reads their own, over SSE and over a websocket.
    """
    record_runs(people.server.plane, clock)
    record_plans(people.server.plane, clock)
    store(people.alice, "k")

    with talking(people.alice) as talk:
        assert [read(talk, name)["scope"] for name in ("my-memory", "my-defaults", "my-plans")] == [
            "caller=alice"
        ] * 3
        defaults = read(talk, "my-defaults")
        assert defaults["packs"][0]["common_inputs"] == {"persona": "technical"}
        assert not {"recent", "common_findings", "note"} & set(defaults)
        assert read(talk, "my-plans")["groups"] == [
            {
                "intent_sha": "aa",
                "count": 2,
                "complexity": "simple",
                "top_tools": ["blog.publish"],
                "last_unix": 30,
                "models": ["small"],
            },
            {
                "intent_sha": "bb",
                "count": 1,
                "complexity": "simple",
                "top_tools": ["lint"],
                "last_unix": 20,
                "models": ["small"],
            },
        ]
    with talking(people.bob) as talk:
        assert read(talk, "my-memory")["categories"] == []
        assert read(talk, "my-defaults")["packs"] == []
        assert read(talk, "my-plans")["groups"] == []


def test_empty_resources_have_notes_of_their_own(people):
    """
    `[]` rather than null, and three different notes.
    """
    with talking(people.alice) as talk:
        notes = [read(talk, name)["note"] for name in ("my-memory", "my-defaults", "my-plans")]
        assert read(talk, "my-memory")["categories"] == []
        assert (read(talk, "my-defaults")["packs"], read(talk, "my-defaults")["pipelines"]) == ([], [])

    assert len(set(notes)) == 3
    assert "helmdeck.memory_store" in notes[0]


def test_my_memory_is_compact(people, clock):
    """
    Categories by name, the five newest keys of each, no values, no runs.
    """
    record_runs(people.server.plane, clock)
    for number in range(7):
        clock.advance(seconds=1)
        store(people.alice, f"z/{number}", "the value", category="zebras")
    store(people.alice, "a", "the value", category="apples")

    with talking(people.alice) as talk:
        told = read(talk, "my-memory")

    assert told["categories"] == [
        {"name": "apples", "count": 1, "recent_keys": ["a"]},
        {"name": "zebras", "count": 7, "recent_keys": ["z/6", "z/5", "z/4", "z/3", "z/2"]},
    ]
    assert "the value" not in json.dumps(told)


def test_all_resources_can_be_read(people):
    """
    What is listed can be read, by whoever has nothing too.
    """
    with talking(people.alice) as talk:
        listed = talk.call("resources/list")["result"]["resources"]
        assert [set(resource) for resource in listed] == [{"uri", "name", "description", "mimeType"}] * 6
        assert all(read(talk, resource["name"]) for resource in listed)


# ── the wire, by hand ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", [SSE, QMD])
def test_the_stream_begins_with_its_endpoint(people, path):
    """
    mcp_qmd_sse_test: the headers, the first frame, 202 with nothing in it, the answer on the stream.
    """
    with talking(people.alice, path) as talk:
        headers = talk.response.headers
        assert headers["content-type"] == "text/event-stream"
        assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-store", "no")
        assert re.fullmatch(rf"{path}/message\?sessionId=[0-9a-f]{{32}}", talk.endpoint)
        answer = talk.post({"jsonrpc": "2.0", "id": "x", "method": "initialize", "params": {}})
        assert (answer.status_code, answer.content) == (202, b"")
        name, data = talk.event()

    assert name == "message"
    assert json.loads(data)["result"]["serverInfo"]["name"] == "helmdeck"


@pytest.mark.parametrize("path", [SSE, QMD])
def test_posting_to_no_session(people, path):
    """
    Missing 400, unknown 404; POST to the stream itself 405, which is how mcporter learns that it must GET.
    """

    def refused(answer):
        return answer.status_code, answer.json()["error"]

    assert refused(people.alice.post(f"{path}/message")) == (400, "missing_session")
    for unknown in ("0" * 32, "nonsense", "../../etc/passwd", "0" * 31 + "g", "%00"):
        assert refused(people.alice.post(f"{path}/message?sessionId={unknown}")) == (404, "unknown_session")
    probe = people.alice.post(path, json={"jsonrpc": "2.0", "id": 1, "method": "initialize"})
    assert refused(probe) == (405, "method_not_allowed")
    assert "GET" in probe.headers["allow"]


@pytest.mark.parametrize(
    ("message", "code", "id_"),
    [
        (b"not json", -32_700, None),
        (b"[1]", -32_700, None),
        (b'{"jsonrpc":"2.0","id":[],"method":"initialize"}', -32_700, None),
        (b"[" * 100_000, -32_700, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"prompts/list"}', -32_601, 7),
        (b'{"jsonrpc":"2.0","id":7}', -32_601, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":["x"]}', -32_601, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}', -32_602, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}', -32_602, 7),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}', -32_601, 7),
        (
            b'{"jsonrpc":"2.0","id":"a","method":"resources/read","params":{"uri":"helmdeck://x"}}',
            -32_602,
            "a",
        ),
        (b'{"jsonrpc":"2.0","id":"a","method":"resources/read","params":{"uri":5}}', -32_602, "a"),
    ],
)
def test_bad_messages_have_their_codes(people, message, code, id_):
    """
    JSON-RPC's own codes, and the session goes on.
    """
    with talking(people.alice) as talk:
        assert talk.post(message).status_code == 202
        _, data = talk.event()
        told = json.loads(data)
        assert (told["error"]["code"], told["id"], told["jsonrpc"]) == (code, id_, "2.0")
        assert talk.call("ping")["result"] == {}


def test_notifications_are_not_answered(people):
    """
    Without an id, or with null, nothing comes back, not even an error.
    """
    with talking(people.alice) as talk:
        for message in (
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": None, "method": "nonsense"},
        ):
            assert talk.post(message).status_code == 202
        assert talk.call("ping", id=9)["id"] == 9


def test_a_message_that_is_too_large(people):
    """
    Over a mebibyte is refused before it is looked at.
    """
    with talking(people.alice) as talk:
        answer = talk.post(b" " * ((1 << 20) + 1))
        assert (answer.status_code, answer.json()["error"]) == (400, "read_body")
        assert talk.call("ping")["result"] == {}


@pytest.mark.parametrize(
    "name",
    [
        "helmdeck.memory_store",
        "helmdeck__memory_store",
        "helmdeck__helmdeck_memory_store",
        "helmdeck__helmdeck.memory_store",
        "helmdeck_memory_store",
        "memory_store",
        "mcp__helmdeck__memory_store",
    ],
)
def test_tools_answer_to_their_aliases(people, name):
    """
    The dotted name and what clients and documents make of it.
    """
    with talking(people.alice) as talk:
        told = talk.call("tools/call", {"name": name, "arguments": {"key": "k", "value": "v"}})["result"]

    assert told["isError"] is False
    assert json.loads(told["content"][0]["text"])["pack"] == "helmdeck.memory_store"


# ── QMD: qmd_server_test ─────────────────────────────────────────────────────────────────────────────────────────


def query(talk, **arguments):
    told = talk.call("tools/call", {"name": "query", "arguments": arguments})
    return told["result"]["structuredContent"]["results"]


def test_qmd_finds_runs(people, clock):
    """
    Audit rows are told as text, with the inputs that were used.
    """
    record_runs(people.server.plane, clock)

    with talking(people.alice, QMD) as talk:
        pack = query(talk, query="blog.publish persona: technical")[0]
        pipeline = query(talk, searches=[{"type": "vec", "query": "run-1"}])[0]

    assert pack["snippet"] == (
        "## Pack call: blog.publish\n\nOutcome: ok\nVersion: v1\nDuration: 12ms\n\nInputs used:\n- persona: technical\n"
    )
    assert (pack["file"], pack["collection"]) == ("audit/pack/blog.publish", "helmdeck-pack_history")
    assert pipeline["snippet"] == (
        "## Pipeline run: builtin.brief\n\nOutcome: succeeded\nRun ID: run-1\n\nInputs used:\n- persona: technical\n"
    )
    assert pipeline["file"] == "audit/pipeline/builtin.brief"


def test_qmd_limits(people, clock):
    """
    Twenty of thirty where the limit is none or out of bounds; nothing asked finds everything, newest first.
    """
    for number in range(30):
        clock.advance(seconds=1)
        store(people.alice, f"k{number}")

    with talking(people.alice, QMD) as talk:
        assert [len(query(talk, limit=limit)) for limit in (0, -1, 101, 5, 30)] == [20, 20, 20, 5, 30]
        everything = query(talk, searches=[{"type": "lex", "query": " "}])
        assert [found["docid"] for found in everything[:2]] == ["user_facts/k29", "user_facts/k28"]
        assert {found["score"] for found in everything} == {0.5}


def test_qmd_scores(people):
    """
    A phrase 0.9; words by their share, so that all of them apart are more than the phrase; what shares none is left out.
    """
    store(people.alice, "a", "deploy via Konflux, never kubectl")
    store(people.alice, "b", "tea")

    with talking(people.alice, QMD) as talk:
        scores = {
            asked: [(found["docid"], found["score"]) for found in query(talk, query=asked)]
            for asked in ("VIA KONFLUX", "kubectl deploy", "kubectl nomad", "x tea", "nothing")
        }

    assert scores == {
        "VIA KONFLUX": [("user_facts/a", 0.9)],
        "kubectl deploy": [("user_facts/a", 1.0)],
        "kubectl nomad": [("user_facts/a", 0.5)],
        "x tea": [("user_facts/b", 0.5)],
        "nothing": [],
    }


def test_qmd_prefers_the_words_searched_for(people):
    """
    The first `lex` that says something, else the first search, else the plain query.
    """
    for word in ("alpha", "beta", "gamma"):
        store(people.alice, word, word)
    searches = [
        {"type": "vec", "query": "beta"},
        {"type": "lex", "query": " "},
        {"type": "lex", "query": "alpha"},
    ]

    with talking(people.alice, QMD) as talk:
        assert [found["docid"] for found in query(talk, searches=searches)] == ["user_facts/alpha"]
        assert [found["docid"] for found in query(talk, searches=searches[:2])] == ["user_facts/beta"]
        assert [found["docid"] for found in query(talk, query="gamma", collections=["x"])] == [
            "user_facts/gamma"
        ]


@pytest.mark.parametrize(
    "arguments",
    [
        {"searches": "x"},
        {"searches": [1]},
        {"query": 1},
        {"searches": [{"query": 1}]},
        {"limit": "x"},
        [],
        "x",
    ],
)
def test_qmd_bad_arguments(people, arguments):
    """
    -32602, and the session goes on.
    """
    with talking(people.alice, QMD) as talk:
        told = talk.call("tools/call", {"name": "query", "arguments": arguments})
        assert told["error"]["code"] == -32_602
        assert talk.call("resources/list")["error"]["code"] == -32_601


def test_qmd_bob_sees_nothing(people, clock):
    """
    The corpus is the caller's.
    """
    record_runs(people.server.plane, clock)
    store(people.alice, "k", "React")

    with talking(people.bob, QMD) as talk:
        assert query(talk) == query(talk, query="React") == query(talk, query="Pack call") == []


# ── whose session it is ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_session_belongs_to_who_opened_it(people):
    """
    Others cannot write to it, even where they know its id: for them there is none. Nor can the other endpoint.
    """
    reader = people.server.client(
        people.server.keys.add("alice-reads", subject="alice", spaces={"alice"}, rights={"read"})
    )
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    with talking(people.alice) as talk:
        for stranger in (people.bob, people.admin, reader):
            answer = talk.post(message, client=stranger)
            assert (answer.status_code, answer.json()["error"]) == (404, "unknown_session")
        other = talk.post(message, endpoint=talk.endpoint.replace("/sse/", "/qmd/sse/"))
        assert other.status_code == 404
        assert talk.call("ping")["result"] == {}


def test_a_renewed_token_goes_on(people):
    """
    The same caller with a newer token is the same caller.
    """
    keys = people.server.keys
    renewed = people.server.client(
        keys.add(
            "alice-renewed", subject="alice", spaces={"alice"}, rights=keys.principals["alice-token"].rights
        )
    )

    with talking(people.alice) as talk:
        talk.client = renewed
        assert talk.call("ping")["result"] == {}


def test_a_session_ends_with_its_stream(people):
    """
    Whoever hangs up has no session any more.
    """
    with talking(people.alice) as talk:
        endpoint = talk.endpoint

    def gone():
        return people.alice.post(endpoint, content=b"{}").status_code == 404

    with anyio.from_thread.start_blocking_portal() as portal:
        portal.call(_until, gone)


async def _until(true):
    with anyio.fail_after(PATIENCE_SECONDS):
        while not await anyio.to_thread.run_sync(true):
            await anyio.lowlevel.checkpoint()


def test_sessions_are_bounded(people):
    """
    One caller cannot take all: beyond a number it is refused, and others still get in. Who leaves makes room.
    """
    with ExitStack() as opened:
        for _ in range(32):
            opened.enter_context(talking(people.alice))
        with talking(people.alice) as talk:
            assert talk.response.status_code == 503
        with talking(people.bob) as talk:
            assert talk.call("ping")["result"] == {}
        with pytest.raises(InvalidStatus) as refused:
            connected(people, additional_headers=bearer("alice-token"))
        assert refused.value.response.status_code == 503


def test_keepalives_and_revocation(plane):
    """
    A silent stream says something now and then, and ends when its credential does.
    """
    bounds = StreamTimeouts(keepalive_seconds=0.01)
    with serving(plane, adapters=[helmdeck_adapter(plane, plane.settings, bounds=bounds)]) as server:
        people = People(server)
        with talking(people.alice) as talk:
            assert talk.event() == (None, "keepalive")
            assert talk.event() == (None, "keepalive")
            del server.keys.principals["alice-token"]
            while (event := talk.event()) is not None:
                assert event == (None, "keepalive")


# ── websockets ───────────────────────────────────────────────────────────────────────────────────────────────────


def connected(people, **options):
    address = people.server.url.replace("http", "ws") + "/api/v1/mcp/ws"
    return connect(address, open_timeout=PATIENCE_SECONDS, **options)


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def ask(socket, method, params=None):
    socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}))
    return json.loads(socket.recv(timeout=PATIENCE_SECONDS))


def test_mcp_over_a_websocket(people):
    """
    One message a frame; resources and tools are the caller's.
    """
    store(people.bob, "k", "bob's")

    with connected(people, additional_headers=bearer("alice-token")) as socket:
        assert ask(socket, "initialize")["result"]["serverInfo"] == {"name": "helmdeck", "version": "0.2.0"}
        socket.send('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        told = ask(socket, "resources/read", {"uri": "helmdeck://my-memory"})
        text = json.loads(told["result"]["contents"][0]["text"])
        assert (text["scope"], text["categories"]) == ("caller=alice", [])
        stored = ask(
            socket, "tools/call", {"name": "memory_store", "arguments": {"key": "k", "value": "hers"}}
        )
        assert stored["result"]["isError"] is False
        socket.send("not json")
        assert json.loads(socket.recv(timeout=PATIENCE_SECONDS))["error"]["code"] == -32_700

    assert people.alice.get("/api/v1/memory/facts/k").json()["value"] == "hers"
    assert people.bob.get("/api/v1/memory/facts/k").json()["value"] == "bob's"


def test_a_websocket_needs_a_credential(people):
    """
    401 before the handshake is done; a plain GET is told what it is.
    """
    with pytest.raises(InvalidStatus) as refused:
        connected(people)

    assert refused.value.response.status_code == 401
    assert people.alice.get("/api/v1/mcp/ws").status_code in {405, 426}


def test_a_websocket_ends_with_its_credential(people):
    """
    A revoked key is refused at the next message, not at the next connection.
    """
    with connected(people, additional_headers=bearer("alice-token")) as socket:
        assert "result" in ask(socket, "ping")
        del people.server.keys.principals["alice-token"]
        with pytest.raises(ConnectionClosed) as closed:
            ask(socket, "ping")

    assert closed.value.rcvd.code == 1_008


@pytest.mark.parametrize(("frame", "code"), [(b"\x00", 1_003), ("x" * ((1 << 20) + 1), 1_009)])
def test_a_websocket_takes_text_of_bounded_size(people, frame, code):
    """
    Anything else ends it with the code that says why.
    """
    with connected(people, additional_headers=bearer("alice-token")) as socket:
        socket.send(frame)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=PATIENCE_SECONDS)

    assert closed.value.rcvd.code == code


def test_a_websocket_unpacks_nothing(people):
    """
    Compression is not agreed to: thousands of messages in one packet would be unpacked before the first is answered.
    """
    with connected(people, additional_headers=bearer("alice-token")) as socket:
        assert "sec-websocket-extensions" not in socket.response.headers
        assert "result" in ask(socket, "ping")
