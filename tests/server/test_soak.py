"""Requests of every kind to a server whose workers are killed all the while: what was acknowledged is there.

Hundreds, and thousands with `MEMPLANE_TESTS=thorough`.
"""

import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
from tests.conftest import THOROUGH

from clawdapus import entry_line, recall_body, retain_body
from engines import both_engines
from memplane import Memplane
from serve_process import serve

CLIENTS = 8
REQUESTS = 3_200 if THOROUGH else 320
KILLS = 12 if THOROUGH else 4


class Soak:
    """Clients that each remember what they were told is kept."""

    def __init__(self, served, home):
        self._served = served
        self._home = home
        self.requests = max(200, home.fewer(REQUESTS))
        self._lock = threading.Lock()
        self.answered = 0
        self.kills = 0
        self.sent = set()
        self.entries, self.facts, self.files = set(), {}, {}
        self.chosen, self.forgotten = set(), set()
        self.wrong = []

    def run(self, number):
        rng = random.Random(number)
        with self._served.client() as client:
            for step in range(self.requests // CLIENTS):
                act = rng.choice(
                    (
                        self._retain,
                        self._retain,
                        self._put,
                        self._file,
                        self._recall,
                        self._list,
                        self._forget,
                    )
                )
                with suppress(httpx.TransportError):  # the worker died under it: nothing was promised
                    act(client, f"{number}-{step}", rng)
                    self._count()

    def _count(self):
        """Every so many answers a worker dies, at once and without a word, and every other time the database."""
        with self._lock:
            self.answered += 1
            workers = self._served.workers() if self.answered % (self.requests // KILLS) == 0 else []
            if not workers:
                return
            self.kills += 1
            if self._home.server is not None and self.kills % 2:
                self._home.server.crash()
                return
            with suppress(ProcessLookupError):
                os.kill(workers[self.kills % len(workers)], signal.SIGKILL)

    def _expect(self, answer, *statuses):
        """Where the database died under it, that is said, and nothing was promised."""
        away = self._home.server is not None and answer.status_code == 503
        if answer.status_code not in statuses and not away:
            self.wrong.append((answer.request.url.path, answer.status_code, answer.text))
        return answer.status_code in statuses

    def _retain(self, client, name, _rng):
        line = entry_line(f"this is {name}", f"noted {name}")
        with self._lock:
            self.sent.add(line.id)
        if self._expect(client.post("/retain", json=retain_body(line, "soak")), 202):
            with self._lock:
                self.entries.add(line.id)

    def _put(self, client, name, _rng):
        body = {"key": f"soak/{name}", "value": f"value of {name}"}
        if self._expect(client.post("/api/v1/memory/store", json=body), 200):
            self.facts[f"soak/{name}"] = f"value of {name}"

    def _file(self, client, name, _rng):
        body = {"command": "create", "path": f"/memories/{name}.md", "file_text": name}
        answer = client.post("/api/memory-tool", json=body, params={"space": "soak"})
        if self._expect(answer, 200) and not answer.json()["is_error"]:
            self.files[f"/memories/{name}.md"] = name

    def _recall(self, client, name, _rng):
        self._expect(client.post("/recall", json=recall_body(f"what of {name}?", "soak")), 200)

    def _list(self, client, _name, rng):
        path = rng.choice(("/api/v1/memory/facts", "/history/soak?limit=5", "/readyz", "/openapi.json"))
        self._expect(client.get(path), 200, *([404] if "history" in path else []))

    def _forget(self, client, _name, rng):
        with self._lock:
            known = sorted(self.entries - self.chosen)
            chosen = rng.choice(known) if known else None
            if chosen is not None:
                self.chosen.add(chosen)
        if chosen is not None:
            body = {"agent_id": "soak", "entry_ids": [chosen], "reason": "soak"}
            if self._expect(client.post("/forget", json=body), 204):
                self.forgotten.add(chosen)


@both_engines
def test_every_acknowledged_write_survives(home, plane_data, tmp_path, commands):
    """
    Workers die and come back; every write that was answered is in the ledger afterwards, and the chain holds.

    A worker that dies between its commit and its answer leaves a turn that nobody was promised: allowed, if sent.
    """
    with serve(tmp_path, "--workers", "2", data=plane_data, commands=commands) as served:
        soak = Soak(served, home)
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(soak.run, range(CLIENTS)))
        code, _ = served.end()
    with Memplane.open(plane_data, embedder=None) as plane:
        space, own = plane.space("soak"), plane.space("default")
        with space._context.read() as reader:
            kept = reader.ledger.known(sorted(soak.entries))
            gone = reader.ledger.tombstoned(sorted(soak.entries))
        said = {turn.entry_id for turn in space.turns(limit=1_000_000)}
        facts = {key: own.get(key).text for key in soak.facts}
        files = {path: space.files.read(path).text for path in soak.files}
        verified = [space.ledger.verify().ok, own.ledger.verify().ok]

    assert soak.wrong == []
    assert soak.kills >= KILLS // 2
    assert soak.answered > soak.requests * 0.7
    assert set(kept) == soak.entries
    assert soak.forgotten <= set(gone) <= soak.chosen
    assert soak.entries - set(gone) <= said <= soak.sent - set(gone)
    assert facts == soak.facts
    assert files == soak.files
    assert verified == [True, True]
    assert code == 0
