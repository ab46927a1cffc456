"""Entries, requests and a proxy as Clawdapus has them, for the tests of the memory plane."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, unquote, urlsplit

from memplane.clock import to_instant
from memplane.ledger.history import Payload, compose_line
from stub_server import Handler, StubServer

NOON = datetime(2026, 4, 3, 12, 0, tzinfo=UTC)


def entry_line(said="when does alpha launch?", answered="Alpha launches on Monday.", *, at=NOON, **members):
    """One line of a session history, with its true id."""
    request = {"model": "openai/gpt-4o", "messages": [{"role": "user", "content": said}]}
    fields = {
        "at": to_instant(at),
        "claw_id": "analyst",
        "path": "/v1/chat/completions",
        "requested_model": "openai/gpt-4o",
        "effective_provider": "openai",
        "effective_model": "gpt-4o",
        "request_original": request,
        "request_effective": request,
        "response": Payload(json={"choices": [{"message": {"role": "assistant", "content": answered}}]}),
    }
    return compose_line(**(fields | members))


def retain_body(line, agent="analyst"):
    """A retain as cllama sends it."""
    metadata = {"path": "retain", "requested_model": "openai/gpt-4o", "service": agent, "type": "openclaw"}
    return {"agent_id": agent, "pod": "desk", "metadata": metadata, "entry": json.loads(line.line)}


def recall_body(said, agent="analyst", **members):
    """A recall as cllama sends it."""
    return {
        "agent_id": agent,
        "pod": "desk",
        "messages": [{"content": "SYS", "role": "system"}, {"content": said, "role": "user"}],
        "metadata": {"path": "openai", "service": agent, "type": "openclaw"},
    } | members


class Cllama(StubServer):
    """A proxy on a free port that tells `histories` as the original does: in file order, strictly after a second, cut at
    the limit. `plan` holds misbehaviours, one a request."""

    token = "memplane-history:0123456789abcdef"

    def __init__(self):
        self.histories = {}
        self.plan = []
        self.asked = []
        proxy = self

        class Answering(Handler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                proxy.asked.append(self.path)
                step = proxy.plan.pop(0) if proxy.plan else Cllama.tell
                try:
                    step(proxy, self)
                except OSError:
                    self.close_connection = True

        super().__init__(Answering, "/history")

    def page(self, handler):
        """What the original would send: status and body."""
        if handler.headers["Authorization"] != f"Bearer {self.token}":
            return 403, b"forbidden\n"
        parts = urlsplit(handler.path)
        agent = unquote(parts.path.removeprefix("/history/"))
        if agent not in self.histories:
            return 404, b"agent context not found\n"
        asked = parse_qs(parts.query)
        after = asked.get("after", [""])[0]
        told = [line for line in self.histories[agent] if not after or _ts(line) > after]
        return 200, b"".join(line + b"\n" for line in told[: int(asked["limit"][0])])

    def tell(self, handler):
        status, body = self.page(handler)
        send(handler, status, body)


def _ts(line):
    try:
        return json.loads(line)["ts"]
    except ValueError:
        return "9999"


def send(handler, status, body, *, length=None):
    handler.send_response(status)
    handler.send_header("Content-Type", "application/x-ndjson")
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)
    if length is not None:
        handler.close_connection = True


def failing(status):
    """A step that refuses."""
    return lambda _proxy, handler: send(handler, status, b"boom\n")


def cut_off(proxy, handler):
    """A step that hangs up in the middle of the last line."""
    _, body = proxy.page(handler)
    send(handler, 200, body[: len(body) - 40], length=len(body))


def silent(proxy, _handler):
    """A step that does not answer until the test lets it."""
    proxy.release.wait(30)


def later(seconds):
    return NOON + timedelta(seconds=seconds)
