"""The official client of CLAIV Memory, `claiv-memory`, through every method it has, against a running server."""

import base64
import re
import uuid
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from claiv import (
    AsyncClaivClient,
    ClaivApiError,
    ClaivClient,
    ClaivError,
    ClaivNetworkError,
    ClaivTimeoutError,
)
from claiv import types as claiv

from claiv_client import Driver, methods_of, misfits
from http_server import LOCKED, OWNER, serving
from memplane.errors import StorageBusy
from stub_server import Handler, StubServer

LEGACY = {"recall_v2", "forget_v2", "ingest_v3", "recall_v3", "forget_v3", "feedback_v3"}
"""Calls of versions 2 and 3, which are not served: docs/reference/compatibility.md."""
HERE = {"user_id": "alice", "conversation_id": "monday"}
MANUAL = """# Heat pump manual

Keep this booklet.

## Installation

Mount the unit on a concrete base, 30 cm from the wall.

## Maintenance

Clean the filter every three months.

| part | interval |
|---|---|
| filter | 3 months |
| coolant | 2 years |
"""


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    """The client believes the environment about proxies."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def waits(monkeypatch):
    """How long the client meant to wait before it tried again; nobody does wait."""
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    monkeypatch.setattr("claiv.client.time", SimpleNamespace(sleep=waited.append))
    monkeypatch.setattr("claiv.client.asyncio", SimpleNamespace(sleep=sleep))
    return waited


@pytest.fixture(params=["sync", "async"])
def drive(request, server):
    """`drive(credential)` is a client of the server."""
    made = []

    def make(credential=OWNER, url=server.url, **options):
        made.append(Driver(url, credential, kind=request.param, **options))
        return made[-1]

    yield make
    for driver in made:
        driver.close()


@pytest.fixture
def client(drive):
    return drive()


def said(client, content, **more):
    return client.ingest({**HERE, "type": "message", "role": "user", "content": content, **more})


def uploaded(client, **more):
    return client.upload_document(
        {"user_id": "alice", "project_id": "house", "document_name": "Manual", "content": MANUAL, **more}
    )


def refused(call, *given, **named):
    with pytest.raises(ClaivApiError) as found:
        call(*given, **named)
    assert found.value.request_id
    return found.value.status, found.value.code


def test_every_method_of_the_client_is_driven():
    """
    A method that a test of this file does not call would have to be said to be left out.
    """
    source = Path(__file__).read_text("utf-8")
    driven = set(re.findall(r"\bclient\.(\w+)\(", source))

    for kind in (ClaivClient, AsyncClaivClient):
        assert methods_of(kind) - LEGACY - driven == set()


# ── memory ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_ingested_is_recalled(client):
    """
    Said in one conversation, it is told in the next, with the words it was read from.
    """
    kept = said(client, "I live in Lisbon since March")
    told = client.recall({**HERE, "conversation_id": "tuesday", "query": "Where do I live?"})

    assert misfits(kept, claiv.IngestResponse) == []
    assert kept["deduped"] is False
    assert misfits(told, claiv.RecallResponse) == []
    fact = told["answer_facts"][0]
    assert (fact["subject"], fact["predicate"]) == ("user", "lives_in")
    assert fact["object_text"].startswith("Lisbon")
    assert fact["source_text"] in "I live in Lisbon since March"
    assert fact["tier"] in {"hot", "warm", "cold"}
    assert (fact["state"], fact["superseded_at"]) == ("active", None)
    assert "Lisbon" in told["llm_context"]["text"]
    assert fact["fact_id"] in told["llm_context"]["fact_ids"]
    assert told["llm_context"]["conversation_history"] == []
    assert told["working_memory"] is None


@pytest.mark.parametrize("version", ["v5", "v6"])
def test_the_named_versions_are_the_same_calls(client, version):
    """
    `…_v5` and `…_v6` go where the unnamed methods go.
    """
    event = {**HERE, "type": "message", "content": "I live in Lisbon"}
    if version == "v5":
        kept = client.ingest_v5(event)
        told = client.recall_v5({**HERE, "query": "Where do I live?"})
        noted = client.feedback_v5(told["recall_id"], {"selected_ids": told["llm_context"]["fact_ids"]})
    else:
        kept = client.ingest_v6(event)
        told = client.recall_v6({**HERE, "query": "Where do I live?"})
        noted = client.feedback_v6(told["recall_id"], {"selected_ids": told["llm_context"]["fact_ids"]})

    assert misfits(kept, claiv.V5IngestResponse) == []
    assert misfits(noted, claiv.V5FeedbackResponse) == []
    assert noted == {"recall_id": told["recall_id"], "facts_recorded": len(told["llm_context"]["fact_ids"])}


def test_the_conversation_is_told(client):
    """
    What was said lately here is inside `llm_context`, and what it is about under `working_memory`.
    """
    said(client, "Tomorrow I fly to Oslo with Ingrid")
    said(client, "Have a good flight", role="assistant")
    told = client.recall({**HERE, "query": "Where am I going?"})

    assert [turn["role"] for turn in told["llm_context"]["conversation_history"]] == ["user", "assistant"]
    assert told["working_memory"]["focus"]["entities"]
    assert told["llm_context"]["anchor_source"] == "server_now"


def test_nothing_is_known_of_a_stranger(client, server):
    """
    A user nobody has heard of gets a whole answer with nothing in it, and no space.
    """
    told = client.recall({**HERE, "user_id": "nobody", "query": "Who am I?"})

    assert misfits(told, claiv.RecallResponse) == []
    assert (told["answer_facts"], told["llm_context"]["text"]) == ([], "")
    assert list(server.plane.spaces()) == []


def test_an_idempotency_key_holds_for_a_day(client, clock):
    """
    Within it the first event's id comes back; afterwards it is a new event.
    """
    first = said(client, "I drink tea", idempotency_key="one")
    again = said(client, "I drink tea", idempotency_key="one")
    clock.advance(hours=25)
    later = said(client, "I drink tea", idempotency_key="one")

    assert again == {"event_id": first["event_id"], "deduped": True}
    assert later["deduped"] is False
    assert later["event_id"] != first["event_id"]


@pytest.mark.parametrize(
    ("moment", "spelled"),
    [("2026-03-01T10:00:00Z", "2026-03-01T10:00:00.000Z"), (1_772_359_200, "2026-03-01T10:00:00.000Z")],
)
def test_an_event_has_its_own_time(client, moment, spelled):
    """
    As ISO 8601 or as Unix seconds.
    """
    said(client, "The roof was mended today", event_time=moment)
    told = client.recall({**HERE, "query": "When was the roof mended?"})

    assert told["llm_context"]["conversation_history"][0]["event_time"] == spelled


def test_scopes(client):
    """
    Said for a conversation or a project, it is told only there.
    """
    said(client, "My favorite color is teal", scope="conversation")
    said(client, "My favorite tree is the larch", scope="project", project_id="garden")

    def text(query, **where):
        return client.recall({**HERE, "query": query, **where})["llm_context"]["text"]

    assert "teal" in text("What is my favorite color?") + str(client.recall({**HERE, "query": "teal"}))
    assert "teal" not in text("What is my favorite color?", conversation_id="other")
    assert "larch" in text("What is my favorite tree?", conversation_id="other", project_id="garden")
    assert "larch" not in text("What is my favorite tree?", conversation_id="other", project_id="kitchen")
    assert refused(said, client, "homeless", scope="project") == (400, "invalid_request")


def test_the_reference_time_and_debug(client):
    """
    `reference_time` anchors relative words; `include.debug` says why each fact was found.
    """
    said(client, "I started at Acme last week", event_time="2026-03-10T10:00:00Z")
    asked = {**HERE, "query": "Where did I start last week?", "reference_time": "2026-03-12T10:00:00Z"}
    told = client.recall(asked | {"include": {"debug": True, "pending_plan": True}, "mode_hint": "single"})

    assert told["llm_context"]["anchor_source"] == "request"
    assert told["llm_context"]["reference_time"] == "2026-03-12T10:00:00.000Z"
    assert told["pending_plan"] is None
    assert set(told["debug"]["facts"]) == set(told["llm_context"]["fact_ids"])
    assert "total" in told["debug"]["timings_ms"]
    assert "debug" not in client.recall(asked | {"include": {"debug": False}})


def test_limits(client):
    """
    No more of each than was asked for.
    """
    for city in ("Oslo", "Rome", "Lima", "Kyiv", "Bern"):
        said(client, f"I visited {city} for work")
    told = client.recall(
        {
            **HERE,
            "query": "Which cities did I visit?",
            "limits": {"answer_facts": 1, "supporting_facts": 1, "background_facts": 0, "max_list_items": 2},
        }
    )

    assert len(told["answer_facts"]) <= 2
    assert len(told["supporting_facts"]) <= 1
    assert told["background_context"] == []


# ── documents and collections ────────────────────────────────────────────────────────────────────────────────────


def test_a_document_from_upload_to_deletion(client):
    """
    It is found at once, each passage is an exact slice, and after deletion nothing of it is left.
    """
    made = uploaded(client, document_id="manuals/heat-pump")
    assert misfits(made, claiv.DocumentUploadResponse) == []
    assert made["document_id"] == "manuals/heat-pump"
    assert [section["title"] for section in made["sections"]][-2:] == ["Installation", "Maintenance"]

    listed = client.list_documents(user_id="alice", project_id="house")
    assert misfits(listed, claiv.DocumentListResponse) == []
    assert [item["document_id"] for item in listed["documents"]] == ["manuals/heat-pump"]
    assert listed["documents"][0]["document_status"]["spans_created"] == made["spans_created"]

    told = client.recall(
        {
            **HERE,
            "query": "How often is the filter cleaned?",
            "document_id": "manuals/heat-pump",
            "limits": {"document_chunks": 3},
        }
    )
    assert misfits(told, claiv.RecallResponse) == []
    assert told["routing"]["strategy"] == "document"
    assert 1 <= len(told["document_spans"]) <= 3
    for span in told["document_spans"]:
        assert MANUAL[span["start"] : span["end"]] == span["text"]
    assert any("every three months" in span["text"] for span in told["document_spans"])

    assert client.delete_document("manuals/heat-pump")["deleted"] is True
    assert client.list_documents(user_id="alice")["total"] == 0
    assert refused(client.delete_document, "manuals/heat-pump") == (404, "not_found")


def test_a_collection_from_making_to_deletion(client):
    """
    Documents go in and out of it, keep their order, and stay when it goes.
    """
    made = client.create_collection(
        {
            "user_id": "alice",
            "project_id": "house",
            "name": "Manuals",
            "ordered": True,
            "collection_id": "m/1",
        }
    )
    assert misfits(made, claiv.CollectionCreateResponse) == []
    uploaded(client, document_id="b", collection_id="m/1", position=2)
    uploaded(client, document_id="a/documents/x")
    added = client.add_document_to_collection(
        "m/1", {"document_id": "a/documents/x", "user_id": "alice", "position": 1}
    )
    assert added == {"added": True, "collection_id": "m/1", "document_id": "a/documents/x"}

    listed = client.list_collections(user_id="alice")
    assert misfits(listed, claiv.CollectionListResponse) == []
    assert listed["collections"][0]["document_count"] == 2
    read = client.get_collection("m/1", user_id="alice")
    assert misfits(read, claiv.CollectionGetResponse) == []
    assert [member["document_id"] for member in read["documents"]] == ["a/documents/x", "b"]
    told = client.recall({**HERE, "query": "How far from the wall?", "collection_id": "m/1"})
    assert told["routing"]["strategy"] == "collection"

    removed = client.remove_document_from_collection("m/1", "a/documents/x")
    assert removed == {"removed": True, "collection_id": "m/1", "document_id": "a/documents/x"}
    assert client.delete_collection("m/1", user_id="alice") == {"deleted": True, "collection_id": "m/1"}
    assert refused(client.get_collection, "m/1", user_id="alice") == (404, "not_found")
    assert client.list_documents(user_id="alice")["total"] == 2


def test_an_upload_replaces_what_was_under_its_id(client):
    """
    Nothing of the former text is found any more.
    """
    uploaded(client, document_id="manual")
    uploaded(client, document_id="manual", content="# Leaflet\n\nThrow the filter away after a year.")
    told = client.recall({**HERE, "query": "filter", "document_id": "manual"})

    assert client.list_documents(user_id="alice")["total"] == 1
    assert "three months" not in str(told)
    assert "after a year" in str(told)


def test_other_formats_come_as_base64(server):
    """
    An extension: `data` holds the bytes, `content_type` says what they are, `filename` names the document.
    """
    page = b"<html><body><h1>Terms</h1><p>Pay within 14 days.</p></body></html>"
    answer = server.client().post(
        "/v6/documents",
        json={
            "user_id": "alice",
            "project_id": "house",
            "filename": "terms.html",
            "content_type": "text/html",
            "data": base64.b64encode(page).decode(),
        },
    )

    assert answer.status_code == 200, answer.text
    read = server.client().get(f"/v6/documents/{answer.json()['document_id']}?content=true").json()
    assert "Pay within 14 days." in read["content"]
    assert read["content_type"] == "text/html"


# ── forgetting ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_forgetting_leaves_a_receipt(client):
    """
    What was said is gone, the receipt says how much, and it can be listed and read afterwards.
    """
    said(client, "I prefer Svelte for frontends")
    client.recall({**HERE, "query": "Svelte"})
    gone = client.forget(HERE)

    assert misfits(gone, claiv.ForgetResponse) == []
    assert (gone["deleted_counts"]["events"], gone["deleted_counts"]["facts"]) == (1, 1)
    assert "Svelte" not in str(client.recall({**HERE, "query": "What do I prefer?"}))

    receipts = client.list_deletion_receipts(user_id="alice")
    assert misfits(receipts, claiv.ListDeletionReceiptsResponse) == []
    assert [one["receipt_id"] for one in receipts["receipts"]] == [gone["receipt_id"]]
    assert client.list_deletion_receipts()["total"] == 1
    one = client.get_deletion_receipt(gone["receipt_id"])
    assert misfits(one, claiv.DeletionReceipt) == []
    assert one == receipts["receipts"][0]
    assert one["scope"]["conversation_id"] == "monday"
    assert one["deleted_counts"] == gone["deleted_counts"]


def test_with_nothing_but_a_user_all_is_forgotten(client):
    """
    Events and documents; somebody else's stay.
    """
    said(client, "I live in Lisbon")
    uploaded(client)
    said(client, "I live in Rome", user_id="bob")
    gone = client.forget({"user_id": "alice"})

    assert gone["deleted_counts"]["events"] == 1
    assert gone["deleted_counts"]["chunks"] > 0
    assert client.list_documents(user_id="alice")["total"] == 0
    assert "Rome" in str(client.recall({**HERE, "user_id": "bob", "query": "Where do I live?"}))


@pytest.mark.parametrize(
    "scope",
    [
        {"project_id": "house"},
        {"thread_id": "monday"},
        {"from_time": "2026-03-01T00:00:00Z", "to_time": "2026-03-02T00:00:00Z"},
    ],
)
def test_forgetting_is_narrowed(client, scope):
    """
    By project, by conversation under its former name, by time.
    """
    said(client, "I live in Lisbon", project_id="house", event_time="2026-03-01T10:00:00Z")
    said(client, "I work at Acme", conversation_id="tuesday", event_time="2026-04-01T10:00:00Z")
    gone = client.forget({"user_id": "alice", **scope})

    assert gone["deleted_counts"]["events"] == 1
    assert "Acme" in str(client.recall({**HERE, "conversation_id": "x", "query": "Where do I work?"}))


# ── usage, health ────────────────────────────────────────────────────────────────────────────────────────────────


def test_usage(client):
    """
    Every range is summed up; without a quota nothing is limited.
    """
    said(client, "I live in Lisbon")
    for span in ("7d", "30d", "month", "today"):
        summary, breakdown = client.get_usage_summary(span), client.get_usage_breakdown(span)
        assert misfits(summary, claiv.UsageSummaryResponse) == []
        assert misfits(breakdown, claiv.UsageBreakdownResponse) == []
        assert summary["totals"]["ingest_events"] == 1
        assert "POST /v6/ingest" in [one["endpoint"] for one in breakdown["endpoints"]]
    limits = client.get_usage_limits()
    assert misfits(limits, claiv.UsageLimitsResponse) == []
    assert limits["is_within_quota"] is True
    assert limits["limits"]["ingest_events"]["used"] == 1


def test_health_needs_no_credential(client, server):
    """
    As the client asks for it.
    """
    assert client.health_check()["ok"] is True
    assert server.keys.seen == []


# ── errors and retries ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "user_id"),
        ({**HERE, "type": "message"}, "content"),
        ({**HERE, "type": "shout", "content": "x"}, "type"),
        ({**HERE, "type": "message", "content": "x", "tenant_id": "t"}, "tenant_id"),
        ({**HERE, "type": "message", "content": "x", "event_time": "someday"}, "event_time"),
        ({**HERE, "type": "message", "content": ""}, "content"),
    ],
)
def test_a_wrong_body_is_refused_by_name(client, body, named):
    """
    400 `invalid_request` with the member that is wrong, a request id, and no second try.
    """
    with pytest.raises(ClaivApiError) as found:
        client.ingest(body)

    assert (found.value.status, found.value.code) == (400, "invalid_request")
    assert named in str(found.value)
    assert found.value.details == {"field": named}
    assert isinstance(found.value, ClaivError)


def test_a_wrong_member_is_named_as_it_was_sent(client):
    """
    Also where it is in another object, or the engine has another name for it.
    """
    with pytest.raises(ClaivApiError) as nested:
        client.recall({**HERE, "query": "x", "limits": {"document_chunks": 0}})
    with pytest.raises(ClaivApiError) as turned:
        client.forget({"user_id": "alice", "from_time": "2026-02-01", "to_time": "2026-01-01"})

    assert nested.value.details == {"field": "limits.document_chunks"}
    assert turned.value.details == {"field": "from_time"}
    assert str(turned.value) == "the range of time must end after it begins"


def test_refusals_are_objects_the_client_can_read(drive, server):
    """
    Whoever refuses, and why: `error` is an object with a code, a message and the request's id.
    """
    server.keys.add("bob-key", subject="bob", spaces={"bob"})
    server.keys.add("other-door", subject="alice", adapters={"plane"})

    assert refused(drive("wrong").recall, {**HERE, "query": "x"}) == (401, "unauthorized")
    assert refused(drive("bob-key").recall, {**HERE, "query": "x"}) == (403, "forbidden")
    assert refused(drive("other-door").get_usage_limits) == (403, "forbidden")
    assert refused(drive().get_deletion_receipt, str(uuid.uuid4())) == (404, "not_found")
    assert refused(drive().feedback_v6, "made-up", {"selected_ids": []}) == (404, "not_found")
    for method, path, status in (
        ("PATCH", "/v6/recall", 405),
        ("GET", "/v6/nothing", 404),
        ("DELETE", "/v1/usage/summary", 405),
        ("GET", "/v6/documents/%ff", 400),
    ):
        answer = server.client().request(method, path)
        assert (answer.status_code, set(answer.json()["error"])) == (
            status,
            {"code", "message", "request_id"},
        )


def test_a_body_that_is_too_large(open_plane, monkeypatch):
    """
    413 in the same shape.
    """
    plane = open_plane()
    settings = plane.settings.__class__(body_bytes_max=1_000)
    with serving(plane, settings=settings) as small:
        answer = small.client().post("/v6/ingest", json={**HERE, "type": "message", "content": "x" * 2_000})

    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


def test_the_client_waits_as_long_as_it_is_told(drive, waits):
    """
    `details.retry_after` is in the body, where it looks; after two more tries it gives up.
    """
    assert refused(drive(LOCKED).recall, {**HERE, "query": "x"}) == (429, "locked_out")

    assert waits == [30, 30]


def test_the_client_tries_again_when_the_store_is_busy(client, server, waits, monkeypatch):
    """
    A space that another process holds is a 503 for a moment, and the call succeeds in the end.
    """
    busy = [StorageBusy("held"), StorageBusy("held")]
    retain = type(server.plane.space("alice")).retain

    def held(space, *given, **named):
        if busy:
            raise busy.pop()
        return retain(space, *given, **named)

    monkeypatch.setattr("memplane.space.Space.retain", held)

    assert said(client, "I live in Lisbon")["deduped"] is False
    assert waits == [1, 1]


def test_the_client_gives_up_on_a_server_that_is_broken(drive, waits):
    """
    Somebody else's 500 without a word is tried twice more, with growing pauses; a refused connection is not.
    """

    class Broken(Handler):
        def answer(self):
            self.send_response(500)
            self.send_header("content-length", "0")
            self.end_headers()

    stub = StubServer(Broken, "")
    try:
        with pytest.raises(ClaivApiError) as found:
            drive(url=stub.url).get_usage_limits()
    finally:
        stub.close()
    assert (found.value.status, found.value.code) == (500, "unknown")
    assert 0.5 <= waits[0] <= 0.75
    assert 1 <= waits[1] <= 1.5
    with pytest.raises(ClaivNetworkError):
        drive(url=stub.url).get_usage_limits()
    assert len(waits) == 2


def test_a_slow_server_is_a_timeout(drive):
    """
    An error of its own, and no second try.
    """
    stub = None

    class Slow(Handler):
        def answer(self):
            stub.release.wait(30)

    stub = StubServer(Slow, "")
    try:
        with pytest.raises(ClaivTimeoutError):
            drive(url=stub.url, timeout=0.05).get_usage_limits()
    finally:
        stub.close()


def test_every_delete_answers_with_json(server):
    """
    The client reads a body from whatever is below 400, so there must be one.
    """
    owner = server.client()
    uploads = {"user_id": "alice", "project_id": "p", "document_name": "n", "content": "Some words."}
    owner.post(
        "/v6/collections", json={"user_id": "alice", "project_id": "p", "name": "n", "collection_id": "c"}
    )
    owner.post("/v6/documents", json=uploads | {"document_id": "d", "collection_id": "c"})

    for path in ("/v6/collections/c/documents/d", "/v6/collections/c?user_id=alice", "/v6/documents/d"):
        answer = owner.delete(path)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        assert isinstance(answer.json(), dict)


def test_the_client_refuses_nonsense_by_itself():
    """
    What its constructor takes is not ours to say, but a guide relies on it.
    """
    for wrong in ({"api_key": ""}, {"api_key": "k", "timeout": 0}, {"api_key": "k", "max_retries": -1}):
        with pytest.raises(ValueError, match=r"api_key|timeout|max_retries"):
            ClaivClient(**wrong)
    with httpx.Client(trust_env=False) as http, ClaivClient(api_key="k", http_client=http):
        pass
