"""Memory services to call: one that behaves as Clawdapus' reference adapter does, and any misbehaviour before it."""

import json
import re
from urllib.parse import quote

from stub_server import Handler, StubServer

_TOKEN = re.compile(r"[a-z0-9][a-z0-9_-]{2,}")
_TEXT_KEYS = ("content", "text", "output_text")
SILENT_SECONDS = 30


class ReferenceMemory(StubServer):
    """Keeps its files in `folder`. `plan` holds misbehaviours, one a request; `asked` what came, as (path, headers, body)."""

    def __init__(self, folder, *, token=None):
        self.folder = folder
        self.token = token
        self.plan = []
        self.asked = []
        service = self

        class Answering(Handler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                service.asked.append((self.path, dict(self.headers), raw))
                try:
                    if service.plan:
                        service.plan.pop(0)(self)
                    else:
                        service.behave(self, raw)
                except OSError:
                    self.close_connection = True

        super().__init__(Answering, "")

    def bodies(self, path):
        return [json.loads(raw) for asked, _, raw in self.asked if asked == path]

    def behave(self, handler, raw):
        if self.token is not None and handler.headers["Authorization"] != f"Bearer {self.token}":
            return send(handler, 401, b"unauthorized\n")
        if handler.path == "/health":
            return send(handler, 200)
        if handler.command != "POST":
            return send(handler, 405, b"method not allowed\n")
        name = handler.path.removeprefix("/")
        try:
            asked = json.loads(raw)
        except ValueError as exc:
            return send(handler, 400, f"decode {name} request: {exc}\n".encode())
        if not str(asked.get("agent_id") or "").strip():
            return send(handler, 400, b"agent_id is required\n")
        return {"recall": self._recall, "retain": self._retain, "forget": self._forget}[name](handler, asked)

    def _file(self, agent, name):
        return self.folder / quote(agent, safe="") / name

    def _lines(self, agent, name):
        path = self._file(agent, name)
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _add(self, agent, name, line):
        path = self._file(agent, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def entries(self, agent):
        return self._lines(agent, "entries.jsonl")

    def buried(self, agent):
        return {it["entry_id"] for it in self._lines(agent, "tombstones.jsonl")}

    def _retain(self, handler, asked):
        agent, entry = asked["agent_id"], asked.get("entry") or {}
        if not entry.get("id"):
            return send(handler, 400, b"entry.id is required\n")
        known = {it["entry_id"] for it in self.entries(agent)}
        if entry["id"] not in known | self.buried(agent):
            request = entry.get("request_effective") or entry.get("request_original")
            said = _texts((entry.get("response") or {}).get("json")) or _texts(request)
            summary = " ".join(" ".join(said).split()) or "retained session history entry"
            line = {
                "agent_id": agent,
                "entry_id": entry["id"],
                "ts": entry.get("ts", ""),
                "requested_model": entry.get("requested_model", ""),
                "summary": summary if len(summary) <= 280 else summary[:280] + "...",
                "search_text": " ".join([*_texts(request), *said]).lower()[:8192],
            }
            self._add(agent, "entries.jsonl", line)
        return send(handler, 202)

    def _forget(self, handler, asked):
        ids = asked.get("entry_ids") or []
        if not ids:
            return send(handler, 400, b"entry_ids is required\n")
        for entry_id in ids:
            if entry_id not in self.buried(asked["agent_id"]):
                line = {
                    "agent_id": asked["agent_id"],
                    "entry_id": entry_id,
                    "reason": asked.get("reason", ""),
                }
                self._add(asked["agent_id"], "tombstones.jsonl", line)
        return send(handler, 204)

    def _recall(self, handler, asked):
        agent = asked["agent_id"]
        words = " ".join(_texts([asked.get("messages"), asked.get("system")])).lower()
        tokens = set(_TOKEN.findall(words))
        live = [it for it in self.entries(agent) if it["entry_id"] not in self.buried(agent)]
        scored = [(sum(token in it["search_text"] for token in tokens), it["ts"], it) for it in live]
        scored.sort(key=lambda it: it[:2], reverse=True)
        if tokens:
            scored = [it for it in scored if it[0]] or scored[:1]
        blocks = [
            {
                "text": it["summary"],
                "score": score or 0.1,
                "kind": "reference_memory",
                "source": "reference-memory",
                "ts": it["ts"],
            }
            for score, _, it in scored[:4]
        ]
        send(handler, 200, json.dumps({"memories": blocks or None}).encode())


def _texts(value):
    """Strings, and what stands under the keys of a text, anywhere."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    if isinstance(value, dict):
        return [
            text
            for key, item in value.items()
            if key in _TEXT_KEYS or isinstance(item, dict | list)
            for text in _texts(item)
        ]
    return []


def send(handler, status, body=b"", *, length=None, **headers):
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)
    handler.wfile.flush()


def answering(status, body=b"", **more):
    """A step that answers so."""
    return lambda handler: send(handler, status, body, **more)


def hanging_up(handler):
    """A step that closes the connection without a word."""
    handler.close_connection = True
    handler.connection.close()


def breaking_off(handler):
    """A step that promises more than it sends."""
    send(handler, 200, b'{"memories":[', length=500)
    handler.close_connection = True


def silent(service):
    """A step that does not answer until the server is closed."""
    return lambda _handler: service.release.wait(SILENT_SECONDS)


def stuck(service):
    """A step that answers, and stops in the middle of its body."""

    def step(handler):
        send(handler, 200, b'{"memories":[', length=500)
        service.release.wait(SILENT_SECONDS)

    return step
