"""The memory-plane door over HTTP, as cllama and `claw memory` use it. Each test names the behaviour of the contract, or
the upstream test, that it puts in our words."""

import json
import threading
from itertools import pairwise

import pytest

from clawdapus import NOON, entry_line, later, recall_body, retain_body
from http_server import serving
from memplane import Settings
from memplane.auth.keys import Grant
from memplane.auth.principal import Secret
from memplane.ledger.history import Payload, ToolCall, ToolRound
from memplane.ledger.history_text import reply_text
from stub_embedder import StubEmbedder

AGENT = "analyst:000102030405060708090a0b0c0d0e0f1011121314151617"
OTHER = "other:0102030405060708090a0b0c0d0e0f101112131415161718"
REPLAY = "mem-svc-history:000102030405060708090a0b0c0d0e0f1011121314151617"
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3


@pytest.fixture
def adapter(plane):
    """A server in no hurry, so that what is told does not depend on how fast the machine is."""
    with serving(plane, settings=Settings(recall_answer_ms=60_000)) as running:
        running.keys.add(AGENT, subject="analyst", spaces={"analyst"})
        running.keys.add(OTHER, subject="other", spaces={"other"})
        running.keys.add(REPLAY, subject="mem-svc-history", spaces={"analyst"}, rights={"read"})
        yield running


@pytest.fixture
def client(adapter):
    return adapter.client()


def retained(client, *lines, agent="analyst"):
    for line in lines:
        answer = client.post("/retain", json=retain_body(line, agent))
        assert (answer.status_code, answer.content) == (202, b"")


def recalled(client, said, agent="analyst", **members):
    answer = client.post("/recall", json=recall_body(said, agent, **members))
    assert answer.status_code == 200, answer.text
    return answer.json()["memories"]


def told(client, path="/history/analyst", **query):
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


# ── retain, recall, forget ───────────────────────────────────────────────────────────────────────────────────────


ALPHA = {
    "agent_id": "analyst",
    "entry": {
        "id": "hist1_alpha",
        "ts": "2026-04-03T12:00:00Z",
        "requested_model": "openai/gpt-4o",
        "request_effective": {"messages": [{"role": "user", "content": "remember the alpha launch date"}]},
        "response": {
            "format": "json",
            "json": {"choices": [{"message": {"content": "Alpha launches on Monday at 9am Eastern."}}]},
        },
    },
}


def test_reference_memory_retain_dedupe_forget_and_replay_suppression(open_plane):
    """
    Upstream: TestReferenceMemoryRetainDedupeForgetAndReplaySuppression, step by step, the restart included.
    """
    plane = open_plane()
    settings = Settings(recall_answer_ms=60_000)
    with serving(plane, settings=settings) as running:
        client = running.client()
        assert [client.post("/retain", json=ALPHA).status_code for _ in range(2)] == [202, 202]
        (block,) = recalled(client, "when does alpha launch?")
        assert "Alpha launches on Monday" in block["text"]
        assert plane.space("analyst").overview.stats().entries == 1
        forgotten = {
            "agent_id": "analyst",
            "entry_ids": ["hist1_alpha"],
            "reason": "operator requested removal",
        }

        answer = client.post("/forget", json=forgotten)

        assert (answer.status_code, answer.content) == (204, b"")
        assert recalled(client, "when does alpha launch?") == []
        assert client.post("/retain", json=ALPHA).status_code == 202
        assert recalled(client, "when does alpha launch?") == []
        (tombstone,) = plane.space("analyst").ledger.tombstones()
        assert (tombstone.id, tombstone.reason) == ("hist1_alpha", "operator requested removal")
    with serving(open_plane(), settings=settings) as running:
        assert recalled(running.client(), "when does alpha launch?") == []


def test_retain_is_idempotent_by_agent_and_entry_id(client, plane):
    """
    Dedupe contract 1 to 3: the same id from live retain and from replay, scrubbed or not, is one entry; another agent's
    is another.
    """
    line = entry_line()
    scrubbed = retain_body(line)
    scrubbed["entry"]["request_original"] = {"messages": [{"content": "scrubbed", "role": "user"}]}

    assert client.post("/retain", json=scrubbed).status_code == 202
    retained(client, line, line)
    retained(client, line, agent="other")

    assert plane.space("analyst").overview.stats().entries == 1
    assert plane.space("other").overview.stats().entries == 1
    assert len(recalled(client, "alpha")) == len({block["text"] for block in recalled(client, "alpha")})


def test_retain_answers_the_reference_errors(client):
    """
    400 `agent_id is required`, `entry.id is required`, `decode retain request: …`; plain text with a newline.
    """
    for body, words in (
        ({}, "agent_id is required\n"),
        ({"agent_id": "  "}, "agent_id is required\n"),
        ({"agent_id": "a"}, "entry.id is required\n"),
        ({"agent_id": "a", "entry": None}, "entry.id is required\n"),
        ({"agent_id": "a", "entry": {"id": " "}}, "entry.id is required\n"),
        ({"agent_id": "a", "entry": {"id": "x", "version": 2}}, "version is 2, not 1\n"),
    ):
        answer = client.post("/retain", json=body)
        assert (answer.status_code, answer.text) == (400, words)
        assert answer.headers["content-type"].startswith("text/plain")
    for path in ("recall", "retain", "forget"):
        answer = client.post(
            f"/{path}", content=b'{"agent_id":', headers={"content-type": "application/json"}
        )
        assert answer.status_code == 400
        assert answer.text.startswith(f"decode {path} request: ")


def test_other_methods_are_refused(client):
    """
    405 `method not allowed` for anything but POST.
    """
    for path in ("/recall", "/retain", "/forget"):
        answer = client.get(path)
        assert (answer.status_code, answer.text) == (405, "method not allowed\n")


def test_health_answers_any_method_with_nothing(adapter):
    """
    200 and an empty body, to everybody.
    """
    for method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
        answer = adapter.client(None).request(method, "/health")
        assert (answer.status_code, answer.content) == (200, b"")


def test_the_descriptor_declares_the_three_operations(adapter):
    """
    A2.1: version 2, at least one of recall and retain, every path absolute, bearer auth.
    """
    described = adapter.client(None).get("/.claw-describe.json").json()

    assert described["version"] == 2
    assert described["memory"] == {
        "recall": {"path": "/recall"},
        "retain": {"path": "/retain"},
        "forget": {"path": "/forget"},
    }
    assert described["auth"]["type"] == "bearer"


def test_the_description_shows_what_clients_send(adapter):
    """
    The door reads bodies by itself; `/openapi.json` has their shapes all the same.
    """
    described = adapter.client().get("/openapi.json").json()

    body = described["paths"]["/retain"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/PlaneRetainBody"}
    assert set(described["paths"]["/history/{agent}"]["get"]["responses"]) >= {
        "200",
        "400",
        "401",
        "403",
        "404",
    }


def test_recall_of_nothing_is_an_empty_list(client, plane):
    """
    200 `{"memories":[]}`; and asking makes no space.
    """
    answer = client.post("/recall", json=recall_body("anything", "nobody"))

    assert (answer.status_code, answer.text) == (200, '{"memories":[]}')
    assert list(plane.spaces()) == []
    assert client.post("/recall", json={}).text == "agent_id is required\n"


def test_recall_blocks_have_the_shape_that_cllama_decodes(client):
    """
    A3.2: text, kind, source and ts are strings, score a number; a wrong type would fail the whole answer.
    """
    retained(client, entry_line("I prefer concise answers", "Noted."))

    blocks = recalled(client, "How do I like my answers? concise?")

    assert blocks
    for block in blocks:
        assert {type(block[name]) for name in ("text", "kind", "source", "ts")} == {str}
        assert isinstance(block["score"], float)
        assert block["ts"].endswith("Z")


@pytest.mark.parametrize(
    "members",
    [
        {"messages": [{"role": "user", "content": "where is the penguin?"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "where is the penguin?"}]}]},
        {
            "messages": [
                {"role": "user", "content": "where is the penguin?"},
                {"role": "assistant", "content": None, "tool_calls": []},
                {"role": "tool", "content": "walrus walrus walrus"},
            ]
        },
        {"messages": [{"role": "user", "content": "walrus"}, {"role": "user", "content": "penguin!"}]},
        {"messages": [], "system": "Say where the penguin lives."},
        {"messages": None, "system": [{"type": "text", "text": "Say where the penguin lives."}]},
        {"messages": [{"role": "system", "content": "Say where the penguin lives."}]},
    ],
)
def test_recall_is_shaped_by_the_current_turn(client, members):
    """
    The last thing the user said, as text or as blocks, and the system's words where nobody spoke.
    """
    retained(client, entry_line("The penguin lives in Porto.", "Lucky bird."))
    retained(client, entry_line("The walrus lives in Oslo.", "Cold.", at=later(60)))

    assert "penguin" in recalled(client, "", **members)[0]["text"]


@pytest.mark.parametrize("messages", ["text", 7, {"role": "user"}, [None, 3, "x", []], [{"role": "user"}]])
def test_recall_takes_any_messages(client, messages):
    """
    A3.1: `messages` may be any JSON.
    """
    retained(client, entry_line())

    assert client.post("/recall", json={"agent_id": "analyst", "messages": messages}).status_code == 200


def test_request_effective_is_never_read(client):
    """
    The feedback loop of A3.5: what was injected upstream is not remembered.
    """
    injected = {
        "messages": [{"role": "system", "content": "flamingo"}, {"role": "user", "content": "flamingo"}]
    }
    retained(client, entry_line("hello there", "hi", request_effective=injected))

    assert not any("flamingo" in block["text"] for block in recalled(client, "flamingo"))


def test_injected_memory_is_not_retained_again(client):
    """
    A memory block that a proxy put into what the user says is not the user's.
    """
    block = "--- BEGIN MEMORY (from mem-svc) ---\nflamingo\n--- END MEMORY ---\n\nwhat about the heron?"
    retained(client, entry_line(block, "It flew."))

    assert [b["text"] for b in recalled(client, "flamingo heron") if "flamingo" in b["text"]] == []


def test_streams_and_anthropic_shapes_are_read(client):
    """
    Retain reads the reply out of an event stream, and out of Anthropic's blocks.
    """
    deltas = "".join(
        "data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": part}}]}) + "\n\n"
        for part in ("The ", "ibis ", "is in Cairo.")
    )
    blocks = {"content": [{"type": "text", "text": "The stork is in Fez."}]}
    retained(
        client, entry_line("where is it?", response=Payload(text=deltas + "data: [DONE]\n\n"), stream=True)
    )
    retained(
        client, entry_line("and where?", path="/v1/messages", response=Payload(json=blocks), at=later(9))
    )

    assert any("ibis is in Cairo" in block["text"] for block in recalled(client, "ibis"))
    assert any("stork is in Fez" in block["text"] for block in recalled(client, "stork"))


def test_error_entries_are_on_record_and_not_memory(client):
    """
    A1.2: a managed turn that failed is written down, and not remembered.
    """
    retained(client, entry_line("deploy the pelican", "", status="error", status_code=502))

    assert recalled(client, "pelican") == []
    assert [entry["status"] for entry in told(client)] == ["error"]


def test_legacy_entries_without_id_need_one(client):
    """
    A1.3: `claw` gives a legacy line its id before it sends it; without one, nothing could be deduplicated.
    """
    body = retain_body(entry_line())
    del body["entry"]["id"]

    assert client.post("/retain", json=body).text == "entry.id is required\n"


def test_forget_answers_the_reference_codes(client, plane):
    """
    204 without a body; 400 `entry_ids is required`; ids are trimmed; ids nobody has seen are forgotten too.
    """
    for body in (
        {"agent_id": "analyst"},
        {"agent_id": "analyst", "entry_ids": []},
        {"agent_id": "analyst", "entry_ids": [" "]},
    ):
        answer = client.post("/forget", json=body)
        assert (answer.status_code, answer.text) == (400, "entry_ids is required\n")
    assert client.post("/forget", json={"entry_ids": ["x"]}).text == "agent_id is required\n"
    line = entry_line()

    answer = client.post("/forget", json={"agent_id": "analyst", "entry_ids": [f" {line.id} ", line.id]})

    assert answer.status_code == 204
    retained(client, line)
    assert recalled(client, "alpha") == []
    (receipt,) = plane.space("analyst").ledger.receipts()
    assert answer.headers["x-memplane-receipt"] == receipt.id
    assert receipt.scope == {"entries": [line.id]}


def test_forget_of_one_agent_leaves_the_others(client):
    """
    A tombstone belongs to one agent.
    """
    line = entry_line()
    retained(client, line)
    retained(client, line, agent="other")

    client.post("/forget", json={"agent_id": "analyst", "entry_ids": [line.id]})

    assert recalled(client, "alpha") == []
    assert recalled(client, "alpha", agent="other") != []
    assert [entry["id"] for entry in told(client, "/history/other")] == [line.id]


def test_many_ids_are_forgotten_at_once(client, plane):
    """
    An operator may name thousands.
    """
    ids = [f"hist1_{number:064x}" for number in range(5_000)]

    assert client.post("/forget", json={"agent_id": "analyst", "entry_ids": ids}).status_code == 204
    assert len(plane.space("analyst").ledger.tombstones()) == 5_000


# ── governance ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_secrets_are_scrubbed_on_every_way_out(client):
    """
    In what was asked and answered, in tools' arguments and results, and spread over the events of a stream: neither
    recall nor history tells a secret. What holds none is told byte for byte.
    """
    call = ToolCall("vault.read", arguments={"password": "hunter2hunter2"}, result={"key": SECRET})
    parts = [SECRET[at : at + 6] for at in range(0, len(SECRET), 6)]
    stream = "".join(
        "data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": part}}]}) + "\n\n"
        for part in parts
    )
    plain = entry_line("nothing to hide", at=later(30))
    retained(
        client,
        entry_line(f"my key is {SECRET}", f"Stored {SECRET}", tool_trace=[ToolRound(1, tool_calls=(call,))]),
        entry_line("stream me the key", response=Payload(text=stream), stream=True, at=later(10)),
        plain,
    )

    blocks = recalled(client, "what is my key?")
    history = client.get("/history/analyst")

    assert blocks
    assert SECRET not in json.dumps(blocks) + history.text
    assert "hunter2hunter2" not in history.text
    lines = history.content.splitlines()
    assert "REDACTED" in reply_text(json.loads(lines[1])["response"])
    assert all(SECRET not in reply_text(json.loads(line)["response"]) for line in lines)
    assert [json.loads(line)["id"] for line in lines] == [entry["id"] for entry in told(client)]
    assert lines[2] == plain.line


def test_recall_stays_within_blocks_and_bytes(client):
    """
    A3.2 and A3.3: 8 blocks, 8,192 bytes of text, 16,384 bytes in all, however much there is and however it is escaped.
    """
    for number in range(30):
        retained(client, entry_line(f'tea {number} "\\"' + '"\\é漢' * 400, "ok", at=later(number)))

    answer = client.post("/recall", json=recall_body("what did I say about tea?"))

    blocks = answer.json()["memories"]
    assert 0 < len(blocks) <= 8
    assert sum(len(block["text"].encode()) for block in blocks) <= 8_192
    assert len(answer.content) <= 16_384
    blocked = {"raw_transcript", "session_tail", "transcript_tail"}
    assert not blocked & {block[name] for block in blocks for name in ("kind", "source")}


def test_a_recall_that_is_late_answers_with_what_is_there(open_plane):
    """
    A3.1: who waits 300 ms gets an answer in that time. An embedding model that hangs costs the meaning, not the words,
    and the answer says so.
    """
    release = threading.Event()

    class Hanging(StubEmbedder):
        def embed_query(self, text):
            release.wait(60)
            return super().embed_query(text)

    plane = open_plane(embedder=Hanging())
    plane.space("analyst").retain("The penguin lives in Porto.")
    plane.space("analyst").enrich()
    with serving(plane, settings=Settings(recall_answer_ms=2_000)) as running:
        try:
            answer = running.client().post("/recall", json=recall_body("penguin")).json()
        finally:
            release.set()

    assert [block["text"] for block in answer["memories"]] == ["The penguin lives in Porto."]
    assert answer["degraded"] == ["words: only keyword matches; the full ranking was not ready in time"]


# ── who may ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_operations_need_a_credential_that_opens_the_agent(adapter):
    """
    401 without one, 403 for another agent's, for a right that is missing and for a door that is not theirs; and nothing
    happened.
    """
    facts_only = adapter.keys.add("facts-key", subject="f", adapters={"facts"})
    bodies = {
        "/recall": recall_body("alpha"),
        "/retain": retain_body(entry_line()),
        "/forget": {"agent_id": "analyst", "entry_ids": ["x"]},
    }
    for path, body in bodies.items():
        for credential, status, words in (
            (None, 401, "missing bearer token\n"),
            ("wrong", 401, "invalid bearer token\n"),
            (OTHER, 403, "forbidden\n"),
            (facts_only, 403, "forbidden\n"),
        ):
            answer = adapter.client(credential).post(path, json=body)
            assert (answer.status_code, answer.text) == (status, words)
    assert adapter.client(REPLAY).post("/retain", json=bodies["/retain"]).status_code == 403
    assert list(adapter.plane.spaces()) == []
    assert adapter.client(AGENT).post("/retain", json=bodies["/retain"]).status_code == 202


def test_own_history_is_for_the_agents_own_bearer(adapter):
    """
    A1.5, `GET /history`: own entries for `<agent>:<secret>`, also as x-api-key; 401 `invalid bearer token` without one
    and for the admin's and the replay token, 403 `invalid agent secret` for a wrong one.
    """
    line = entry_line()
    retained(adapter.client(), line)

    assert [entry["id"] for entry in told(adapter.client(AGENT), "/history")] == [line.id]
    by_key = adapter.client(None).get("/history", headers={"x-api-key": AGENT})
    assert by_key.content == line.line + b"\n"
    for credential, status, words in (
        (None, 401, "invalid bearer token\n"),
        ("owner-key", 401, "invalid bearer token\n"),
        (REPLAY, 401, "invalid bearer token\n"),
        ("analyst:wrong", 403, "invalid agent secret\n"),
        ("nobody:wrong", 403, "invalid agent secret\n"),
        (OTHER, 404, "agent context not found\n"),
    ):
        answer = adapter.client(credential).get("/history")
        assert (answer.status_code, answer.text) == (status, words)


def test_an_agents_history_is_for_admin_agent_and_replay_token(adapter):
    """
    A1.5, `GET /history/{agent}`: 200 for the three, 401 `missing bearer token`, 403 `forbidden`, 404 `agent context not
    found` for who may know.
    """
    line = entry_line()
    retained(adapter.client(), line)

    for credential in ("owner-key", AGENT, REPLAY):
        answer = adapter.client(credential).get("/history/analyst")
        assert (answer.status_code, answer.content) == (200, line.line + b"\n")
        assert answer.headers["content-type"] == "application/x-ndjson"
    for credential, status, words in (
        (None, 401, "missing bearer token\n"),
        ("wrong", 403, "forbidden\n"),
        (OTHER, 403, "forbidden\n"),
    ):
        answer = adapter.client(credential).get("/history/analyst")
        assert (answer.status_code, answer.text) == (status, words)
    assert adapter.client().get("/history/nobody").text == "agent context not found\n"
    assert adapter.client().get("/history/nobody").status_code == 404


def test_nobody_learns_which_agents_there_are(adapter):
    """
    Unlike the original, which looks for the agent first: without the right, one that is there and one that is not look
    the same.
    """
    retained(adapter.client(), entry_line())

    for credential in (None, "wrong", OTHER):
        there, not_there = (
            adapter.client(credential).get(f"/history/{name}") for name in ("analyst", "nobody")
        )
        assert (there.status_code, there.text) == (not_there.status_code, not_there.text)


def test_credentials_of_the_identity_open_their_own_agent(plane, tmp_path):
    """
    The real thing: an agent's `<agent>:<48 hex>` taken over from Clawdapus, a replay token and a key for the proxy.
    """
    identity = plane.identity()
    agent = identity.create_key(Grant(agent="analyst"), secret=Secret(AGENT)).bearer.reveal()
    proxy = identity.create_key(Grant(name="cllama", adapters=("plane",))).bearer.reveal()
    try:
        with serving(plane, keys=identity, settings=Settings(recall_answer_ms=60_000)) as running:
            retained(running.client(proxy), entry_line())
            assert recalled(running.client(proxy), "alpha")
            assert len(told(running.client(agent), "/history")) == 1
            assert running.client(proxy).get("/history").status_code == 401
            assert running.client("analyst:" + "0" * 48).get("/history").text == "invalid agent secret\n"
            assert running.client("garbage").post("/recall", json=recall_body("x")).status_code == 401
    finally:
        identity.close()
    assert agent == AGENT


# ── paging ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_after_is_strict_and_limit_is_read_as_the_original_reads_it(client):
    """
    A1.5: strict `>`, RFC 3339, default 100, cap 1000, and the words of its errors.
    """
    lines = [entry_line(f"turn {number}", at=later(number)) for number in range(120)]
    retained(client, *lines)
    ids = [line.id for line in lines]

    assert [entry["id"] for entry in told(client)] == ids[:100]
    assert [entry["id"] for entry in told(client, limit="5000")] == ids
    assert [entry["id"] for entry in told(client, limit="5abc")] == ids[:5]
    assert [entry["id"] for entry in told(client, after="2026-04-03T12:01:57Z")] == ids[118:]
    assert [entry["id"] for entry in told(client, after="2026-04-03T14:01:57+02:00", limit="")] == ids[118:]
    assert told(client, after="2030-01-01T00:00:00Z") == []
    for query, words in (
        ({"after": "yesterday"}, "after must be RFC3339\n"),
        ({"after": "2026-04-03"}, "after must be RFC3339\n"),
        ({"after": "2026-04-03T12:00:00"}, "after must be RFC3339\n"),
        ({"limit": "0"}, "limit must be > 0\n"),
        ({"limit": "-3"}, "limit must be > 0\n"),
        ({"limit": "many"}, "limit must be an integer\n"),
        ({"cursor": "x"}, "cursor must be one that an earlier page gave, or empty\n"),
    ):
        answer = client.get("/history/analyst", params=query)
        assert (answer.status_code, answer.text) == (400, words)


def test_paging_by_the_last_second_loses_nothing(client):
    """
    The original's pages may end within a second, and whoever asks for what came after it loses the rest. Ours go on to
    the end of the second; entries arrive in any order.
    """
    lines = [entry_line(f"turn {number}", at=later(number // 7)) for number in range(60)]
    retained(client, *lines[::2], *lines[1::2])
    found, after = [], ""

    while page := told(client, limit=3, after=after):
        found += page
        after = page[-1]["ts"]

    assert sorted(entry["id"] for entry in found) == sorted(line.id for line in lines)
    assert all(first["ts"] <= second["ts"] for first, second in pairwise(found))


def test_the_link_to_the_next_page_ends_with_the_last(client):
    """
    Added: `Link: <…>; rel="next"` as long as there is more.
    """
    lines = [entry_line(f"turn {number}", at=later(number)) for number in range(7)]
    retained(client, *lines)
    answer, found = client.get("/history/analyst", params={"limit": 3}), []

    found += answer.text.splitlines()
    while link := answer.links.get("next"):
        answer = client.get(link["url"])
        found += answer.text.splitlines()

    assert [json.loads(line)["id"] for line in found] == [line.id for line in lines]


def test_a_cursor_follows_the_order_of_arrival(client):
    """
    Added: with `cursor`, pages are exact and what arrives late, with a time long past, is met too.
    """
    retained(client, *(entry_line(f"turn {number}", at=later(number // 3)) for number in range(5)))
    cursor, found = "", []
    for _ in range(3):
        answer = client.get("/history/analyst", params={"cursor": cursor, "limit": 2})
        found.append([json.loads(line)["id"] for line in answer.text.splitlines()])
        cursor = answer.headers["x-next-cursor"]
    late = entry_line("late", at=NOON.replace(year=2020))
    retained(client, late)

    assert [len(page) for page in found] == [2, 2, 1]
    answer = client.get("/history/analyst", params={"cursor": cursor})
    assert answer.content == late.line + b"\n"


def test_history_tells_turns_of_other_doors_and_nothing_forgotten(client, plane):
    """
    One memory, many doors: what was retained elsewhere is told as lines of the same form, and what was forgotten is not.
    """
    space = plane.space("analyst")
    space.retain("I live in Lisbon", at="2026-04-03T11:00:00.700Z", id="mine")
    line = entry_line()
    retained(client, line)

    first, second = told(client)

    assert first["ts"] == "2026-04-03T11:00:00Z"
    assert first["request_original"]["messages"] == [{"role": "user", "content": "I live in Lisbon"}]
    assert second["id"] == line.id
    assert [entry["id"] for entry in told(client, after="2026-04-03T11:00:00Z")] == [line.id]
    space.forget(entries=["mine"])
    assert [entry["id"] for entry in told(client)] == [line.id]


def test_agent_ids_may_be_anything(client):
    """
    An id with slashes, dots or blanks names one agent and no path.
    """
    for agent, path in (("../../etc", "..%2F..%2Fetc"), ("a b/c", "a%20b%2Fc"), ("süd", "s%C3%BCd")):
        line = entry_line(f"I am {agent}")
        retained(client, line, agent=agent)
        assert [entry["id"] for entry in told(client, f"/history/{path}")] == [line.id]


def test_reading_a_history_out_is_audited(client, plane):
    """
    That memory left the space is on record.
    """
    retained(client, entry_line())
    told(client)

    assert "export" in {record.action for record in plane.space("analyst").ledger.audit()}
