"""The proxy as somebody sees it who means no good: other tenants, links, keys in odd places, bodies nobody would send."""

import json
import os
import threading

import pytest

from memplane.auth.principal import Right
from memplane.recall.timebox import TimeBox
from memplane.space import Space
from memplane.space.ledger import Ledger
from proxy_server import SERVER_KEY, TIME_ENOUGH_MS, body, fronting, until
from stub_server import Handler, StubServer

TOLD = "My dog is called Rex"
ASKED = "What is my dog called?"
OTHER_TENANT = "key-of-another-alice"


@pytest.fixture
def fronted(open_plane):
    with fronting(open_plane) as running:
        yield running


def let_in_another_alice(fronted):
    rights = (Right.READ, Right.WRITE)
    fronted.server.keys.add(OTHER_TENANT, subject="alice", tenant="other", spaces={"alice"}, rights=rights)


# ── a pod's files ────────────────────────────────────────────────────────────────────────────────────────────────


class Asked(StubServer):
    """A memory service that only notes what it was asked."""

    def __init__(self):
        self.asked = []
        service = self

        class Answering(Handler):
            def answer(self):
                self.rfile.read(int(self.headers["content-length"]))
                service.asked.append((self.path, self.headers.get("authorization")))
                self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

        super().__init__(Answering, "")


@pytest.fixture
def service():
    running = Asked()
    yield running
    running.close()


def subscribe(folder, service):
    folder.mkdir(parents=True)
    manifest = {
        "version": 1,
        "service": "mem-svc",
        "base_url": service.url,
        "recall": {"path": "/recall", "timeout_ms": TIME_ENOUGH_MS},
        "auth": {"type": "bearer", "token": "of-the-pod"},
    }
    (folder / "memory.json").write_text(json.dumps(manifest), "utf-8")


def test_a_pods_manifest_is_not_for_another_tenants_space_of_that_name(open_plane, service, tmp_path):
    """
    What another tenant's Alice says does not go to the service of the pod's Alice, under the pod's token.
    """
    subscribe(tmp_path / "context" / "alice", service)
    with fronting(open_plane, claw_context_root=str(tmp_path / "context")) as fronted:
        let_in_another_alice(fronted)
        fronted.openai(OTHER_TENANT).chat.completions.create(**body(TOLD))
        assert service.asked == []
        fronted.openai().chat.completions.create(**body(TOLD))

        assert service.asked == [("/recall", "Bearer of-the-pod")]


def test_a_link_in_a_pods_folder_leads_nowhere(open_plane, service, tmp_path):
    """
    Neither a folder nor a file that is a link is read; a pipe, which nobody writes to, holds nobody up.
    """
    root = tmp_path / "context"
    subscribe(tmp_path / "elsewhere", service)
    for name in ("file", "pipe"):
        (root / name).mkdir(parents=True)
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    (root / "file" / "memory.json").symlink_to(tmp_path / "elsewhere" / "memory.json")
    os.mkfifo(root / "pipe" / "memory.json")
    with fronting(open_plane, claw_context_root=str(root)) as fronted:
        fronted.server.keys.add("wide", subject="app", rights=(Right.READ, Right.WRITE))
        client = fronted.openai("wide")
        for space in ("folder", "file", "pipe", "../elsewhere", "x" * 300):
            client.chat.completions.create(**body(TOLD), user=space)
            assert len(fronted.entries(space)) == 1

        assert service.asked == []


def test_the_session_history_of_a_pod_holds_no_other_tenants_turns(open_plane, tmp_path):
    """
    It has a folder for each agent and none for a tenant, and whoever reads it takes its lines for the agent's.
    """
    with fronting(open_plane, session_history_dir=str(tmp_path)) as fronted:
        let_in_another_alice(fronted)
        fronted.openai(OTHER_TENANT).chat.completions.create(**body("a secret of another tenant"))
        fronted.openai().chat.completions.create(**body(TOLD))
        kept = fronted.plane.space("alice", tenant="other").ledger.entries()

    assert len(kept) == 1
    (line,) = (tmp_path / "alice" / "history.jsonl").read_text("utf-8").splitlines()
    assert TOLD in line


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_store_that_hangs_costs_the_time_of_one_recall(open_plane, monkeypatch):
    """
    All that is read before a turn shares one time: whoever is asked later has what is left of it.
    """
    let_go, given, quick, awaited = threading.Event(), [], TimeBox.quick, TimeBox.awaited

    def hanging(self, *_args, **_options):
        let_go.wait(20)

    def noted(method):
        def call(self, *args, seconds):
            given.append(seconds)
            return method(self, *args, seconds=seconds)

        return call

    with fronting(open_plane, proxy_recall_ms=60) as fronted:
        fronted.openai().chat.completions.create(**body(TOLD))
        monkeypatch.setattr(Ledger, "pinned_texts", hanging)
        for name in ("recall", "recall_by_words"):
            monkeypatch.setattr(Space, name, hanging)
        monkeypatch.setattr(TimeBox, "quick", noted(quick))
        monkeypatch.setattr(TimeBox, "awaited", noted(awaited))
        tools = [{"type": "function", "function": {"name": "look"}}]
        fronted.openai().chat.completions.create(**body(ASKED), tools=tools)
        let_go.set()

        assert 0 < sum(given) <= 0.061
        assert len(fronted.entries()) == 2


def test_a_turn_that_cannot_be_kept_for_no_known_reason_is_tried_again(fronted, monkeypatch):
    """
    A bug in memory neither breaks the turn nor loses it, and until it is kept the server says that something waits.
    """
    retain, fails, tried = Space.retain_entry, [True], []

    def failing(self, *args, **options):
        tried.append(1)
        if fails:
            raise ZeroDivisionError
        return retain(self, *args, **options)

    monkeypatch.setattr(Space, "retain_entry", failing)
    fronted.openai().chat.completions.create(**body(TOLD))
    until(lambda: len(tried) > 1)
    waiting = fronted.http().get("/readyz").json()["degraded"]
    fails.clear()
    until(fronted.entries)

    assert waiting == ["proxy_retain"]


# ── keys and paths ───────────────────────────────────────────────────────────────────────────────────────────────

KEY = "mp_0123456789abcdef_" + "a" * 43


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("authorization", f"Token {KEY}"),
        ("authorization", f"Bearer Bearer {KEY}"),
        ("x-goog-api-key", KEY),
        ("openai-organization", "key-of-alice"),
        ("cookie", f"key={KEY}"),
    ],
)
def test_a_key_of_ours_stays_here_wherever_it_stands(fronted, header, value):
    """
    In another manner, in a header that is no place for a key at all: no request of ours carries it on.
    """
    headers = {"x-memplane-key": "key-of-alice", header: value}
    answer = fronted.http(None).post("/v1/chat/completions", json=body(TOLD), headers=headers)

    assert answer.status_code == 200
    (sent,) = fronted.provider.requests
    assert not any("key-of-alice" in value or KEY in value for value in sent.headers.values())
    assert sent.headers["authorization"] == f"Bearer {SERVER_KEY}"


def test_a_key_of_ours_in_an_address_is_refused(fronted):
    """
    Addresses are logged wherever they pass; so the key is not used, and whoever put it there hears of it.
    """
    for key in (KEY, "key-of-alice", "key%2Dof-alice"):
        answer = fronted.http().post(f"/v1/chat/completions?api-key={key}", json=body(TOLD))
        assert answer.status_code == 400
        assert key not in answer.text

    assert fronted.provider.requests == []


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/chat/completions", "end the base URL in /v1"),
        ("/messages", "end the base URL in /v1"),
        ("/v1/v1/messages", "remove /v1 from the base URL"),
        ("/nowhere", "/docs lists every call"),
    ],
)
def test_a_base_url_with_the_version_left_out_or_twice(fronted, path, hint):
    """
    The two kinds of client differ in it; nothing goes upstream, and the answer says what to change.
    """
    answer = fronted.http().post(path, json=body(TOLD))

    assert answer.status_code == 404
    assert hint in answer.json()["error"]["message"]
    assert fronted.provider.requests == []


def test_messages_of_openais_are_not_anthropics(open_plane):
    """
    OpenAI has paths that end like Anthropic's. They are its own, nothing in them is a turn, and its key is not lent for
    them.
    """
    with fronting(open_plane, anthropic_base_url="http://127.0.0.1:9") as fronted:
        own = {"authorization": "Bearer sk-client", "x-memplane-key": "key-of-alice"}
        for method, path in (
            ("POST", "/v1/threads/thread_1/messages"),
            ("GET", "/v1/chat/completions/chatcmpl_1/messages"),
        ):
            lent = fronted.http().request(method, path)
            passed = fronted.http(None).request(method, path, headers=own)
            assert (lent.status_code, passed.status_code) == (403, 200)
            assert fronted.provider.last.path == path

        assert list(fronted.plane.spaces()) == []


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("memory", ["on", "off"])
def test_a_number_that_no_machine_has(fronted, memory):
    """
    It is refused like anything else that cannot be read; without memory it is the provider's to refuse.
    """
    raw = b'{"model":"m","temperature":1e999,"messages":[]}'
    answer = fronted.http().post("/v1/chat/completions", content=raw, headers={"x-memplane-memory": memory})

    assert answer.status_code == (400 if memory == "on" else 200)
    assert [asked.body for asked in fronted.provider.requests] == ([] if memory == "on" else [raw])


def test_a_user_of_openais_is_a_whole_name(fronted):
    """
    Only Claude Code joins who it is and its sitting, in its own form; nobody else's name is cut.
    """
    fronted.server.keys.add("wide", subject="app", rights=(Right.READ, Right.WRITE))
    fronted.openai("wide").chat.completions.create(**body(TOLD), user="bob_session_1")
    asked = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": TOLD}]}
    fronted.anthropic("wide").messages.create(**asked, metadata={"user_id": "eve_session_2"})

    assert set(fronted.plane.spaces()) == {"bob_session_1", "eve_session_2"}


def test_who_a_newer_claude_code_is(fronted):
    """
    It says the same as before in JSON, and its memory is the one it had.
    """
    fronted.server.keys.add("wide", subject="app", rights=(Right.READ, Right.WRITE))
    said = json.dumps({"device_id": "ab", "account_uuid": "cd", "session_id": "ef-12"})
    asked = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": TOLD}]}
    fronted.anthropic("wide").messages.create(**asked, metadata={"user_id": said})

    assert list(fronted.plane.spaces()) == ["user_ab_account_cd"]
    found = fronted.plane.space("user_ab_account_cd").search(memories=False)
    assert {hit.turn.conversation for hit in found} == {"ef-12"}
