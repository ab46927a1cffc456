"""The proxy as somebody sees it who means no good: other tenants, links, keys in odd places, bodies nobody would send."""

import json
import os

import pytest

from memplane.identity.principal import Right
from proxy_server import fronting
from stub_server import Handler, StubServer

TOLD = "My dog is called Rex"
ASKED = "What is my dog called?"
OTHER_TENANT = "key-of-another-alice"


def body(text, **more):
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}], **more}


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
        "recall": {"path": "/recall"},
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
        kept = fronted.plane.space("alice", tenant="other").entries()

    assert len(kept) == 1
    (line,) = (tmp_path / "alice" / "history.jsonl").read_text("utf-8").splitlines()
    assert TOLD in line
