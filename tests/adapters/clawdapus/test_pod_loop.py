"""All of it together: a compiled pod, our proxy in the place of cllama, the reference adapter as the memory service, the
histories the proxy writes, and the operator's commands on them."""

import json
import threading

import pytest
from typer.testing import CliRunner

from memory_service import ReferenceMemory
from memplane.__main__ import open_plane as open_from_environment
from memplane.cli.app import assembled
from memplane.ledger.history import parse_line
from memplane.terminal.call import Wiring
from proxy_server import ALICE, fronting

DESCRIPTOR = {"version": 2, "memory": {name: {"path": f"/{name}"} for name in ("recall", "retain", "forget")}}
POD = """
x-claw: {{pod: desk}}
services:
  alice:
    x-claw: {{cllama: passthrough, memory: {{service: "127.0.0.1", timeout-ms: 30000}}}}
  "127.0.0.1":
    build: .
    expose: ["{port}"]
"""


@pytest.fixture
def service(tmp_path):
    made = ReferenceMemory(tmp_path / "reference")
    yield made
    made.close()


@pytest.fixture
def pod(tmp_path, service):
    """The directory of a compiled pod whose memory service is the one on this machine."""
    folder = tmp_path / "pod"
    folder.mkdir()
    (folder / "claw-pod.yml").write_text(POD.format(port=service.url.rpartition(":")[2]))
    (folder / ".claw-describe.json").write_text(json.dumps(DESCRIPTOR))
    run(folder, "up")
    return folder


def run(pod, *arguments):
    wiring = Wiring(open=open_from_environment, environment={})
    done = CliRunner().invoke(assembled(), [*arguments, "--file", str(pod / "claw-pod.yml")], obj=wiring)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def wait_for(there):
    """A live retain comes after the answer."""
    pause = threading.Event()
    while not (found := there()):
        pause.wait(0.01)
    return found


def test_a_pod_with_our_proxy_and_the_reference_adapter(pod, service, open_plane):
    """
    Told in one conversation, recalled from the service in the next; forgotten there, it is not recalled or replayed.
    """
    with fronting(
        open_plane,
        claw_context_root=str(pod / ".claw-runtime" / "context"),
        session_history_dir=str(pod / ".claw-session-history"),
    ) as fronted:
        client = fronted.openai()

        def ask(text, conversation):
            client.chat.completions.create(
                model="gpt-4o",
                messages=[{"role": "user", "content": text}],
                extra_headers={"X-Memplane-Conversation": conversation},
            )
            return fronted.provider.requests[-1].body.decode()

        ask("When does alpha launch?", "one")
        wait_for(lambda: service.entries("alice"))
        told = ask("Tell me about the alpha launch", "two")

        assert "--- BEGIN MEMORY (from 127.0.0.1) ---" in told

        wait_for(lambda: len(service.entries("alice")) == 2)
        history = pod / ".claw-session-history" / "alice" / "history.jsonl"
        first, second = [parse_line(raw) for raw in history.read_bytes().splitlines()]
        assert {it["entry_id"] for it in service.entries("alice")} == {first.id, second.id}

        for line in (first, second):
            run(pod, "memory", "forget", "127.0.0.1", "--entry-id", line.id, "--url", service.url)

        assert "BEGIN MEMORY" not in ask("What about the alpha launch?", "three")

        wait_for(lambda: len(service.entries("alice")) == 3)
        service.asked.clear()
        out = run(pod, "memory", "backfill", "127.0.0.1", "--url", service.url)

        assert out.startswith("Replayed 1 entry for alice\n")
        assert not {first.id, second.id} & {body["entry"]["id"] for body in service.bodies("/retain")}

        # The same histories can be told to Memplane itself, which knows these turns already.
        before = len(fronted.entries())
        run(pod, "memory", "backfill", "127.0.0.1", "--url", fronted.server.url, "--auth-token", ALICE)
        assert len(fronted.entries()) == before
