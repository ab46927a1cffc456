"""The v6 door over HTTP: what goes beyond what CLAIV's own client asks for."""

import base64

import pytest

from http_server import serving
from memplane.adapters.claiv import documents
from memplane.auth.principal import Right
from memplane.config import Settings
from memplane.space.context import SpaceContext

HERE = {"user_id": "alice", "conversation_id": "monday"}
USUAL = (Right.READ, Right.WRITE)


def say(client, content, **more):
    return client.post("/v6/ingest", json={**HERE, "type": "message", "content": content, **more})


def upload(client, user="alice", **more):
    body = {"user_id": user, "project_id": "p", "document_name": "Notes", "content": f"Words of {user}."}
    return client.post("/v6/documents", json=body | more)


def ask(client, query, **more):
    return client.post("/v6/recall", json={**HERE, "query": query, **more}).json()


def error(answer):
    return answer.status_code, answer.json()["error"]["code"]


# ── facts and conversations ──────────────────────────────────────────────────────────────────────────────────────


def test_facts_are_listed_and_narrowed(server):
    """
    The newest first; by what they are of, where they were said, and whether they still hold.
    """
    client = server.client()
    say(client, "I live in Rome", conversation_id="a")
    say(client, "I work at Acme", conversation_id="b", project_id="p")
    say(client, "Actually, I live in Lisbon", conversation_id="c")
    ask(client, "anything")

    def listed(**query):
        answer = client.get("/v6/facts", params={"user_id": "alice", **query}).json()
        return [fact["object_text"] for fact in answer["facts"]]

    assert listed() == ["Lisbon", "Acme", "Rome"]
    assert listed(state="superseded") == ["Rome"]
    assert listed(predicate="lives_in") == ["Lisbon", "Rome"]
    assert listed(conversation_id="b") == listed(project_id="p") == ["Acme"]
    assert len(listed(limit=1)) == 1
    assert listed(limit=1) != listed(limit=1, offset=1)
    assert client.get("/v6/facts", params={"user_id": "nobody"}).json()["facts"] == []
    assert error(client.get("/v6/facts", params={"user_id": "alice", "state": "odd"})) == (
        400,
        "invalid_request",
    )


def test_a_fact_says_where_it_comes_from(server):
    """
    Each place where it was said, as an exact slice; what replaced it; and which document it is about.
    """
    client = server.client()
    say(client, "I live in Rome", document_id="d", document_name="Letters")
    say(client, "I live in Rome", conversation_id="tuesday")
    fact_id = ask(client, "Where do I live?")["answer_facts"][0]["fact_id"]
    fact = client.get(f"/v6/facts/{fact_id}", params={"user_id": "alice"}).json()

    assert [place["conversation_id"] for place in fact["evidence"]] == ["monday", "tuesday"]
    assert {"I live in Rome"[place["start"] : place["end"]] for place in fact["evidence"]} == {
        place["source_text"] for place in fact["evidence"]
    }
    assert (fact["document_id"], fact["document_name"]) == ("d", "Letters")
    assert (fact["feedback"]["selected"], fact["feedback"]["ignored"]) == (0, 0)
    assert error(client.get("/v6/facts/none", params={"user_id": "alice"})) == (404, "not_found")
    assert error(client.get(f"/v6/facts/{fact_id}", params={"user_id": "bob"})) == (404, "not_found")


def test_feedback_shows(server):
    """
    What was selected gains importance, what was passed over fades; both are counted.
    """
    client = server.client()
    say(client, "I live in Rome")
    say(client, "I work at Acme")
    told = ask(client, "Where do I live, and where do I work?")
    ids = [fact["fact_id"] for fact in told["answer_facts"] + told["supporting_facts"]]
    assert len(ids) >= 2

    def importance(fact_id):
        return client.get(f"/v6/facts/{fact_id}", params={"user_id": "alice"}).json()["importance"]

    before = [importance(ids[0]), importance(ids[1])]
    answer = client.post(f"/v6/recall/{told['recall_id']}/feedback", json={"selected_ids": [ids[0]]})

    assert answer.status_code == 200, answer.text
    assert importance(ids[0]) > before[0]
    assert importance(ids[1]) < before[1]
    fact = client.get(f"/v6/facts/{ids[0]}", params={"user_id": "alice"}).json()
    assert (fact["feedback"]["selected"], fact["feedback"]["ignored"]) == (1, 0)
    assert fact["feedback"]["importance_before"] == before[0]


def test_conversations_are_listed_and_read(server, clock):
    """
    The latest first, in pages; an id may hold slashes.
    """
    client = server.client()
    for name in ("a/1", "b"):
        for n in range(3):
            say(client, f"Sentence {n} of {name}", conversation_id=name)
            clock.advance(minutes=1)

    listed = client.get("/v6/conversations", params={"user_id": "alice"}).json()
    assert [one["conversation_id"] for one in listed["conversations"]] == ["b", "a/1"]
    assert listed["conversations"][0]["turns"] == 3
    read = client.get("/v6/conversations/a/1", params={"user_id": "alice", "limit": 2}).json()
    assert [turn["content"] for turn in read["turns"]] == ["Sentence 2 of a/1", "Sentence 1 of a/1"]
    assert read["more"] is True
    rest = client.get("/v6/conversations/a%2F1", params={"user_id": "alice", "limit": 2, "offset": 2}).json()
    assert ([turn["content"] for turn in rest["turns"]], rest["more"]) == (["Sentence 0 of a/1"], False)
    assert error(client.get("/v6/conversations/none", params={"user_id": "alice"})) == (404, "not_found")


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_document_is_read_with_its_sections(server):
    """
    Sections are exact slices of the text, which comes where it is asked for.
    """
    client = server.client()
    text = "# One\n\nFirst words.\n\n## Two\n\nMore words.\n"
    upload(client, document_id="d", content=text)
    plain = client.get("/v6/documents/d").json()
    read = client.get("/v6/documents/d", params={"content": "true"}).json()

    assert "content" not in plain
    assert read["content"] == text
    assert [section["title"] for section in read["sections"]] == ["One", "Two"]
    assert "".join(text[section["start"] : section["end"]] for section in read["sections"]) == text
    assert client.get("/v6/documents/d/status").json()["spans_created"] >= 1


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda space: space.documents.upload("# Second\n\nTwo.\n\n# Third\n\nThree.\n", name="d.md", id="d"),
        lambda space: space.documents.delete("d"),
    ],
    ids=["replaced", "deleted"],
)
def test_an_upload_answers_for_itself(server, monkeypatch, meanwhile):
    """
    Whatever becomes of the document meanwhile does not change what was uploaded.
    """
    client, space, write = server.client(), server.plane.space("alice"), SpaceContext.write

    def written(self, name, work):
        done = write(self, name, work)
        monkeypatch.setattr(SpaceContext, "write", write)
        meanwhile(space)
        return done

    monkeypatch.setattr(SpaceContext, "write", written)
    answer = upload(client, document_id="d", content="# First\n\nOne.\n")

    assert answer.status_code == 200
    assert [section["title"] for section in answer.json()["sections"]] == ["First"]


def test_a_document_is_read_whole(server, monkeypatch):
    """
    Name, sections and text are of one upload, whenever the next one comes.
    """
    client, space = server.client(), server.plane.space("alice")
    space.documents.upload("# First\n\nOne.\n", name="first.md", id="d")
    item = documents._item

    def replaced(*given):
        space.documents.upload("# Second\n\nTwo.\n", name="second.md", id="d")
        return item(*given)

    monkeypatch.setattr(documents, "_item", replaced)
    read = client.get("/v6/documents/d", params={"content": True}).json()

    assert (read["document_name"], read["content"]) == ("first.md", "# First\n\nOne.\n")
    assert [section["title"] for section in read["sections"]] == ["First"]


def test_one_id_of_several_users(server):
    """
    Nobody guesses whose it is: a 409 says how to ask. A key that opens one of them has no such trouble.
    """
    owner = server.client()
    server.keys.add("bob", subject="bob", spaces={"bob"}, rights=USUAL)
    upload(owner, "alice", document_id="d")
    upload(owner, "bob", document_id="d")

    assert error(owner.get("/v6/documents/d")) == (409, "ambiguous")
    assert owner.get("/v6/documents/d", params={"user_id": "bob"}).json()["user_id"] == "bob"
    assert server.client("bob").delete("/v6/documents/d").json()["deleted"] is True
    assert owner.get("/v6/documents/d").json()["user_id"] == "alice"
    assert error(server.client("bob").delete("/v6/documents/d")) == (404, "not_found")
    assert error(server.client("bob").delete("/v6/documents/d?user_id=alice")) == (403, "forbidden")


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"content": None}, "content"),
        ({"data": "aGk="}, "data"),
        ({"content": None, "data": "not base64!"}, "data"),
        ({"document_name": None}, "document_name"),
        ({"content": ""}, "content"),
        ({"chunk_size": 200}, "chunk_size"),
        ({"position": -1}, "position"),
        (
            {
                "content": None,
                "data": base64.b64encode(b"\x00\x01\x02").decode(),
                "content_type": "image/png",
            },
            "",
        ),
    ],
)
def test_what_is_no_document(server, more, named):
    """
    400, with the member that is wrong, and nothing is kept.
    """
    answer = upload(server.client(), **more)

    assert answer.status_code == 400, answer.text
    assert named in answer.json()["error"]["message"]
    assert server.client().get("/v6/documents?user_id=alice").json()["total"] == 0


def test_a_document_that_is_too_large(open_plane):
    """
    It fits into a body and is refused with the limit; whatever fits the limit fits into a body, however it is spelled.
    """
    plane = open_plane(document_bytes_max=10_000)
    with serving(plane, settings=Settings(document_bytes_max=10_000, body_bytes_max=1_000)) as server:
        client = server.client()
        large = upload(client, content="word " * 2_001)
        escaped = client.post(
            "/v6/documents",
            content='{"user_id":"a","project_id":"p","document_name":"n","content":"%s"}'
            % ("\\u00e9" * 4_999),
            headers={"content-type": "application/json"},
        )

    assert error(large) == (400, "invalid_request")
    assert "10,000" in large.json()["error"]["message"]
    assert escaped.status_code == 200, escaped.text


def test_a_collection_is_made_once(server):
    """
    A second one under the same id is a 409, and the first is as it was.
    """
    client = server.client()
    body = {"user_id": "alice", "project_id": "p", "name": "First", "collection_id": "c"}
    client.post("/v6/collections", json=body)

    assert error(client.post("/v6/collections", json=body | {"name": "Second"})) == (409, "collection_taken")
    read = client.get("/v6/collections/c", params={"user_id": "alice"}).json()
    assert read["collection"]["name"] == "First"
    assert error(client.delete("/v6/collections/c/documents/none")) == (404, "not_found")


# ── quotas and rates ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def bounded(open_plane):
    """A server with a quota of five events, and two recalls a minute."""
    plane = open_plane(quota_ingest_events=5, recall_per_minute=2)
    with serving(plane) as running:
        yield running


def test_a_quota(bounded):
    """
    From 80 % on every answer warns; then it is a 429 that says when the next cycle begins. A repetition counts too.
    """
    client = bounded.client()
    answers = [say(client, "I drink tea", idempotency_key="one") for _ in range(6)]
    read = client.get("/v6/documents?user_id=alice")

    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert "x-quota-warning" not in answers[2].headers
    assert answers[3].headers["x-quota-ingests-pct"] == "80"
    assert read.headers["x-quota-warning"] == "approaching_limit"
    refused = answers[5].json()["error"]
    assert refused["code"] == "quota_exceeded"
    assert refused["details"]["usage"] == {"ingest_events": 5, "limit": 5}
    assert refused["details"]["reset_date"] == read.headers["x-quota-reset-date"]
    limits = client.get("/v1/usage/limits").json()
    assert (limits["is_within_quota"], limits["limits"]["ingest_events"]["remaining"]) == (False, 0)


def test_a_wrong_event_costs_nothing(bounded):
    """
    What is refused is given back.
    """
    client = bounded.client()
    for _ in range(6):
        assert say(client, "\x00").status_code == 400

    assert say(client, "I drink tea").status_code == 200


def test_a_rate(bounded, clock):
    """
    The third recall of a minute is a 429 that says how long to wait; then it works again.
    """
    client = bounded.client()

    def recall():
        return client.post("/v6/recall", json={**HERE, "query": "x"})

    assert [recall().status_code for _ in range(2)] == [200, 200]
    refused = recall()
    assert error(refused) == (429, "rate_limited")
    wait = refused.json()["error"]["details"]["retry_after"]
    assert refused.headers["retry-after"] == str(wait)
    clock.advance(seconds=wait)
    assert recall().status_code == 200


def test_what_a_recall_tells_besides(server):
    """
    Conflicts, episodes and times are told as further members.
    """
    client = server.client()
    say(client, "My dentist appointment is on 4 December 2026")
    told = ask(client, "When is my dentist appointment?", include={"debug": True})

    times = [match for fact in told["answer_facts"] for match in fact["temporal_matches"]]
    assert times[0]["temporal_range"] == {"start": times[0]["ts_start"], "end": times[0]["ts_end"]}
    assert times[0]["ts_start"].startswith("2026-12-04")
    assert (told["conflicts"], told["episodes"], told["document_spans"]) == ([], [], [])
    assert told["routing"]["channels"]
