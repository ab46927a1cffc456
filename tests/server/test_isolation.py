"""Nobody reaches another's memory: every endpoint, with every other caller's credential, under the owner's names and ids."""

import json

import pytest

from engines import both_engines
from http_server import serving
from memplane import Settings
from memplane.adapters.claiv.recall import RecallReference, recall_id_of
from memplane.auth.principal import Right
from provider_server import Provider

pytestmark = both_engines

USUAL = (Right.READ, Right.WRITE)
MARK = "quetzal"
"""In everything that Alice ever said, and in no name or question."""
PATH, KEY, TALK = "/memories/birds.md", "birds/first", "talk-of-birds"
BOOK, SHELF = "book-of-birds", "shelf-of-birds"

OPEN = {
    "/",
    "/healthz",
    "/readyz",
    "/openapi.json",
    "/docs",
    "/docs/{name}",
    "/health",
    "/.claw-describe.json",
    "/api/v1/bridge/version",
}
"""These say nothing of anybody."""
CONSOLE = "console"
"""Its pages are for sessions: tests/console/test_strangers.py tries every one of them."""
OWN = {"/metrics", "/api/v1/auth/login"}
"""Numbers of the whole server; and a log-in, which has its own tests."""


@pytest.fixture
def provider():
    running = Provider()
    yield running
    running.close()


@pytest.fixture
def server(plane, provider):
    """Every door, a provider behind the proxy, and time enough for a recall on a busy machine."""
    settings = Settings(
        recall_answer_ms=60_000,
        proxy_recall_ms=60_000,
        openai_base_url=provider.url,
        openai_api_key="sk-of-the-server",
        anthropic_base_url=provider.root,
        upstreams=(f"other={provider.url}",),
    )
    with serving(plane, settings=settings) as running:
        yield running


@pytest.fixture
def alice(server):
    """Her space, with one of everything in it."""
    space = server.plane.space("alice")
    space.retain(f"My favorite bird is the {MARK}", conversation=TALK, id="turn-alice")
    space.store("fact", f"The {MARK} is a bird that nests in March", tags=[MARK])
    space.put(KEY, f"a {MARK}", category=MARK)
    space.files.create(PATH, f"a file about the {MARK}")
    space.documents.create_collection(f"all about the {MARK}", project="garden", id=SHELF)
    space.documents.upload(
        f"# The {MARK}\n\nIt nests in March.", name=f"{MARK}.md", id=BOOK, collection=SHELF
    )
    space.forget(entries=["never-said"], reason=MARK)
    space.enrich()
    return space


@pytest.fixture
def intruders(server):
    """Bob, who has a space of his own; the owner of another tenant; and keys of Alice's that open something else."""
    keys = server.keys
    keys.add("bob", subject="bob", spaces={"bob"}, rights=USUAL)
    keys.add("other-tenant", subject="alice", tenant="other")
    keys.add("other-door", subject="alice", spaces={"alice"}, adapters={"nothing"}, rights=USUAL)
    keys.add("no-rights", subject="alice", spaces={"alice"}, rights=())
    return ("bob", "other-tenant", "other-door", "no-rights", "made-up", "")


def attempts(alice):
    """Every path of every door, asked for Alice's: (path, method, url, JSON)."""
    memory = alice.overview.newest_memories(1)[0].id
    entry = {"version": 1, "id": "turn-alice", "ts": "2026-11-15T06:28:17Z", "claw_id": "alice"}
    messages = [{"role": "user", "content": "which bird?"}]
    yield "/recall", "POST", "/recall", {"agent_id": "alice", "messages": messages}
    yield "/retain", "POST", "/retain", {"agent_id": "alice", "entry": entry}
    yield "/forget", "POST", "/forget", {"agent_id": "alice", "entry_ids": ["turn-alice"], "reason": "mine"}
    yield "/history", "GET", "/history", None
    yield "/history/{agent}", "GET", "/history/alice?limit=10", None
    snapshot = "/internal/context/{agent}/snapshot"
    yield snapshot, "GET", "/internal/context/alice/snapshot?query=which+bird", None
    for what in ("store", "forget"):
        body = {"key": KEY, "value": "taken", "scope": f"key:{KEY}", "caller": "alice"}
        yield f"/api/v1/memory/{what}", "POST", f"/api/v1/memory/{what}?caller=alice", body
        yield f"/api/v1/packs/helmdeck.memory_{what}", "POST", f"/api/v1/packs/helmdeck.memory_{what}", body
    yield "/api/v1/packs/{pack}", "POST", "/api/v1/packs/helmdeck.memory_read", {"caller": "alice"}
    for what in ("defaults", "callers", "facts"):
        yield f"/api/v1/memory/{what}", "GET", f"/api/v1/memory/{what}?caller=alice&prefix=birds", None
    for what in ("facts", "history"):
        path = f"/api/v1/memory/{what}/{KEY}?caller=alice"
        yield f"/api/v1/memory/{what}/{{key:path}}", "GET", path, None
    for command in (
        {"command": "view", "path": PATH},
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": PATH, "file_text": "taken"},
        {"command": "str_replace", "path": PATH, "old_str": "file", "new_str": "taken"},
        {"command": "insert", "path": PATH, "insert_line": 0, "insert_text": "taken"},
        {"command": "delete", "path": PATH},
        {"command": "rename", "old_path": PATH, "new_path": "/memories/taken.md"},
    ):
        yield "/api/memory-tool", "POST", "/api/memory-tool?space=alice", command
    for tool, arguments in (
        ("memory_search", {"query": "bird"}),
        ("memory_recall", {"query": "which bird?"}),
        ("memory_brief", {}),
        ("memory_delete", {"id": memory}),
        ("memory_forget", {"conversation": TALK}),
        ("memory_store", {"type": "fact", "content": "taken", "supersedes": memory}),
        ("fact_get", {"key": KEY}),
        ("fact_put", {"key": KEY, "value": "taken"}),
        ("fact_list", {}),
    ):
        yield "/mcp", "POST", "/mcp?space=alice", rpc("tools/call", name=tool, arguments=arguments)
    yield "/mcp", "POST", "/mcp?space=alice", rpc("resources/read", uri=f"memplane://memory/{memory}")
    yield "/mcp", "POST", "/mcp?space=alice", rpc("resources/read", uri="memplane://brief")
    for message in ("/api/v1/mcp/sse/message", "/api/v1/mcp/qmd/sse/message"):
        yield message, "POST", f"{message}?sessionId={'0' * 32}", rpc("tools/list")
    yield from v6_attempts(memory, alice.ledger.receipts()[0].id)
    yield from proxy_attempts(messages)


def v6_attempts(memory, receipt):
    """Those of the v6 door, with the user's name where it can be said and without where it need not be."""
    hers = {"user_id": "alice", "conversation_id": TALK}
    recall = recall_id_of(RecallReference("alice", 0, (memory,)))
    yield "/v6/ingest", "POST", "/v6/ingest", hers | {"type": "message", "content": "taken"}
    yield "/v6/recall", "POST", "/v6/recall", hers | {"query": "which bird?", "include": {"debug": True}}
    yield "/v6/recall", "POST", "/v6/recall", hers | {"query": "march", "document_id": BOOK}
    feedback = "/v6/recall/{recall_id}/feedback"
    yield feedback, "POST", f"/v6/recall/{recall}/feedback", {"selected_ids": [memory]}
    yield "/v6/forget", "POST", "/v6/forget", {"user_id": "alice"}
    upload = {"user_id": "alice", "project_id": "garden", "document_name": "taken", "content": "taken"}
    yield "/v6/documents", "POST", "/v6/documents", upload | {"document_id": BOOK}
    yield "/v6/documents", "GET", "/v6/documents?user_id=alice", None
    make = {"user_id": "alice", "project_id": "garden", "name": "taken"}
    yield "/v6/collections", "POST", "/v6/collections", make
    yield "/v6/collections", "GET", "/v6/collections?user_id=alice", None
    shelf, book = "/v6/collections/{collection_id:path}", "/v6/documents/{document_id:path}"
    yield f"{shelf}/documents", "POST", f"/v6/collections/{SHELF}/documents", hers_in(BOOK)
    for user in ("", "?user_id=alice"):
        yield f"{book}/status", "GET", f"/v6/documents/{BOOK}/status{user}", None
        yield book, "GET", f"/v6/documents/{BOOK}{user or '?'}&content=true", None
        members = f"{shelf}/documents/{{document_id:path}}"
        yield members, "DELETE", f"/v6/collections/{SHELF}/documents/{BOOK}{user}", None
        yield shelf, "DELETE", f"/v6/collections/{SHELF}{user}", None
        yield book, "DELETE", f"/v6/documents/{BOOK}{user}", None
        one = "/v1/deletion-receipts/{receipt_id}"
        yield one, "GET", f"/v1/deletion-receipts/{receipt}{user}", None
        yield "/v1/deletion-receipts", "GET", f"/v1/deletion-receipts{user}", None
    yield shelf, "GET", f"/v6/collections/{SHELF}?user_id=alice", None
    yield "/v6/facts", "GET", "/v6/facts?user_id=alice", None
    yield "/v6/facts/{fact_id}", "GET", f"/v6/facts/{memory}?user_id=alice", None
    yield "/v6/conversations", "GET", "/v6/conversations?user_id=alice", None
    talks = "/v6/conversations/{conversation_id:path}"
    yield talks, "GET", f"/v6/conversations/{TALK}?user_id=alice", None
    for what in ("summary", "breakdown", "limits"):
        yield f"/v1/usage/{what}", "GET", f"/v1/usage/{what}", None


def hers_in(document):
    return {"user_id": "alice", "document_id": document, "position": 1}


def proxy_attempts(messages):
    asked = {"model": "m", "messages": messages, "input": "which bird?", "user": "alice"}
    asked["metadata"] = {"memplane_space": "alice", "memplane_conversation": TALK, "user_id": "alice"}
    for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"):
        yield path, "POST", path, asked
    yield "/v1/models", "GET", "/v1/models", None
    yield "/v1/{rest:path}", "GET", "/v1/files", None
    yield "/v1/{rest:path}", "DELETE", "/v1/chat/completions/of-alice", None
    path = "/proxy/{upstream}/{rest:path}"
    yield path, "POST", "/proxy/other/v1/chat/completions", asked


def rpc(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


STREAMS = {"/api/v1/mcp/sse", "/api/v1/mcp/qmd/sse", "/api/v1/mcp/ws"}
"""Whose stream it is, only its own credential says: tests/adapters/helmdeck/test_facts_mcp.py."""


def test_every_endpoint_is_tried(server, alice):
    """
    A new endpoint is tried before it is merged.
    """
    routes = {
        route.path for adapter in server.app.adapters for route in adapter.routes if adapter.name != CONSOLE
    }

    assert routes == {path for path, *_ in attempts(alice)} | OPEN | OWN | STREAMS


def test_nobody_reaches_another_through_any_endpoint(server, alice, intruders):
    """
    Whatever others ask for under Alice's names, they are told nothing of hers, and nothing of hers changes.
    """
    before = everything(alice)
    for credential in intruders:
        client = server.client(credential)
        for _, method, url, body in attempts(alice):
            answer = client.request(
                method,
                url,
                content=None if body is None else json.dumps(body),
                headers={"content-type": "application/json", "accept": "application/json, text/event-stream"},
            )

            assert answer.status_code < 500, (credential, method, url, answer.text)
            assert MARK not in answer.text, (credential, method, url, answer.text)
    assert everything(alice) == before
    assert "taken" not in json.dumps(before, default=str)


def test_nobody_has_anothers_memory_told_to_a_provider(server, alice, intruders, provider):
    """
    Nothing of Alice's went upstream for anybody else, whom the requests named as they liked; for her it does.
    """
    asked = {"model": "m", "messages": [{"role": "user", "content": "which bird?"}], "user": "alice"}
    for credential in intruders:
        for headers in ({}, {"x-memplane-space": "alice"}):
            server.client(credential).post("/v1/chat/completions", json=asked, headers=headers)
    assert MARK not in "".join(request.body.decode() for request in provider.requests)

    hers = server.client(server.keys.add("alice", subject="alice", spaces={"alice"}, rights=USUAL))
    hers.post("/v1/chat/completions", json=asked)
    assert MARK in provider.last.body.decode()


def test_what_an_intruder_writes_stays_with_the_intruder(server, alice, intruders):
    """
    Bob's own write under Alice's key lands with Bob, and neither sees the other's.
    """
    bob = server.client("bob")
    bob.post("/api/v1/memory/store?caller=alice", json={"key": KEY, "value": "of Bob"})

    assert server.plane.space("bob").get(KEY).text == "of Bob"
    assert alice.get(KEY).text == f"a {MARK}"


def test_the_owner_is_let_in(server, alice):
    """
    The same requests with the right credential do find it; or the tests above would prove nothing.
    """
    hers = server.client(server.keys.add("alice", subject="alice", spaces={"alice"}, rights=USUAL))
    found = [
        hers.post(
            "/recall", json={"agent_id": "alice", "messages": [{"role": "user", "content": "which bird?"}]}
        ).text,
        hers.get("/history/alice").text,
        hers.get(f"/api/v1/memory/facts/{KEY}").text,
        hers.post("/api/memory-tool", json={"command": "view", "path": PATH}).text,
        hers.get(f"/v6/documents/{BOOK}?content=true").text,
        hers.get("/v6/facts?user_id=alice").text,
        hers.get(f"/v6/conversations/{TALK}?user_id=alice").text,
        hers.get(f"/v6/collections/{SHELF}?user_id=alice").text,
    ]

    assert [MARK in text for text in found] == [True] * len(found)


def everything(space):
    """All that a space knows, and how far its ledger goes."""
    return (
        [(memory.id, memory.text, memory.state) for memory in space.overview.newest_memories(100)],
        space.overview.stats().entries,
        [(fact.key, fact.text) for fact in space.facts.list()],
        [(document.id, document.entry_id) for document in space.documents.list()],
        [(member.document, member.position) for member in space.documents.members(SHELF)],
    )
