"""`GET /internal/context/{agent}/snapshot`: what an agent would be told now, and to whom that is shown."""

import json

import pytest

from http_server import serving
from memplane import Settings
from memplane.auth.principal import Right

READ = (Right.READ,)


@pytest.fixture
def contexts(tmp_path):
    folder = tmp_path / "context" / "analyst"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def server(plane, contexts):
    settings = Settings(claw_context_root=str(contexts.parent), recall_answer_ms=60_000)
    with serving(plane, settings=settings) as running:
        space = plane.space("analyst")
        space.store("preference", "Prefers short answers")
        space.retain("Alpha launches on Monday")
        running.keys.add("own", subject="analyst", spaces={"analyst"}, rights=READ)
        running.keys.add("other", subject="bob", spaces={"analyst", "bob"}, rights=READ)
        running.keys.add("elsewhere", subject="owner", tenant="elsewhere")
        yield running


def ask(server, credential, agent="analyst", **params):
    return server.client(credential).get(f"/internal/context/{agent}/snapshot", params=params)


@pytest.mark.parametrize("credential", ["own", "owner-key"])
def test_the_agent_and_the_owner_see_it(server, credential):
    """
    The brief, who is asked, and how much there is; a question also shows what would be recalled for it.
    """
    shown = ask(server, credential, query="when does alpha launch?").json()

    assert shown["agent_id"] == "analyst"
    assert shown["memory_service"] == "memplane"
    assert "Prefers short answers" in shown["brief"]
    assert (shown["counts"]["turns"], shown["manifest"], shown["manifest_error"]) == (1, None, "")
    assert "Alpha launches on Monday" in shown["recall"]["text"]
    assert shown["recall"]["text"].startswith("--- BEGIN MEMORY (from memplane) ---\n")


def test_without_a_question_nothing_is_recalled(server):
    """
    A look costs no recall.
    """
    assert ask(server, "own").json()["recall"] is None


@pytest.mark.parametrize(
    ("credential", "status", "text"),
    [("other", 403, "forbidden\n"), ("made-up", 403, "forbidden\n"), ("", 401, "missing bearer token\n")],
)
def test_nobody_else_does(server, credential, status, text):
    """
    Not even one who may read the agent's space: a snapshot shows how the agent is wired.
    """
    answer = ask(server, credential)

    assert (answer.status_code, answer.text) == (status, text)


def test_an_agent_nobody_has_heard_of(server):
    """
    Looking creates no space.
    """
    answer = ask(server, "owner-key", agent="nobody")

    assert (answer.status_code, answer.text) == (404, "agent context not found\n")
    assert "nobody" not in list(server.plane.spaces())


def test_a_manifest_is_shown_without_its_token(server, contexts):
    """
    Another service is asked then, and it gives no brief.
    """
    document = {
        "version": 1,
        "service": "mem-svc",
        "base_url": "http://mem-svc:8080",
        "recall": {"path": "/recall"},
        "auth": {"type": "bearer", "token": "hush-hush"},
    }
    (contexts / "memory.json").write_text(json.dumps(document))
    (contexts / "metadata.json").write_text('{"pod":"desk","type":"openclaw","token":"analyst:hush-hush"}')

    answer = ask(server, "own", query="alpha")

    assert "hush-hush" not in answer.text
    shown = answer.json()
    assert shown["manifest"] == {
        "service": "mem-svc",
        "base_url": "http://mem-svc:8080",
        "operations": {"recall": "/recall"},
        "auth": "bearer",
    }
    assert (shown["memory_service"], shown["brief"], shown["recall"]) == ("mem-svc", "", None)
    assert shown["metadata"] == {"pod": "desk", "type": "openclaw"}


def test_a_manifest_that_cannot_be_read_is_said(server, contexts):
    """
    The first thing an operator wants to know.
    """
    (contexts / "memory.json").write_text("{}")

    assert ask(server, "own").json()["manifest_error"] == "memory.json version must be 1, got 0"


def test_links_are_not_followed(server, contexts, tmp_path):
    """
    A context that leads elsewhere is none.
    """
    (tmp_path / "secret.json").write_text('{"version":1,"service":"leak","base_url":"http://leak"}')
    (contexts / "memory.json").symlink_to(tmp_path / "secret.json")

    assert "leak" not in ask(server, "own").text


def test_another_tenant_sees_nothing_of_the_pod(server, contexts):
    """
    A space of the same name elsewhere has no manifest here.
    """
    server.plane.space("analyst", tenant="elsewhere").retain("theirs")
    (contexts / "memory.json").write_text('{"version":1,"service":"m","base_url":"http://m"}')

    shown = ask(server, "elsewhere").json()

    assert (shown["manifest"], shown["counts"]["turns"]) == (None, 1)
