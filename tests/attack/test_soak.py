"""Mixed load on a server for as long as `MEMPLANE_ATTACK_SOAK_SECONDS` says: memory and latency do not grow.

Every client forgets what it wrote before, so that the amount of memory stays the same and growth is a leak. A short run only checks
that nothing fails; a run of ten minutes or more also compares the last two quarters.
"""

import random
import statistics
import threading
import time
from pathlib import Path

import httpx
from tests.attack.conftest import SOAK_SECONDS

from serve_process import serve

CLIENTS = 4
SPACES = 24
SAMPLES = 40
JUDGED_FROM_SECONDS = 600
GROWTH_MAX = 1.05
SLOWER_MAX = 1.5
HEALTH_SECONDS_MAX = 10
WORDS = [f"word{number}" for number in range(3_000)]


class Load:
    """Clients that call everything, and a watcher that takes samples."""

    def __init__(self, served):
        self._served = served
        self.ends = time.monotonic() + SOAK_SECONDS
        self.calls, self.wrong, self.samples = [], [], []
        self._begun = time.monotonic()

    def run(self):
        threads = [threading.Thread(target=self._client, args=(number,)) for number in range(CLIENTS)]
        threads.append(threading.Thread(target=self._watch))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _client(self, number):
        rng = random.Random(number)
        with self._served.client() as client:
            step = 0
            while time.monotonic() < self.ends:
                step += 1
                act = rng.choice(
                    (self._ingest, self._ingest, self._recall, self._put, self._tool, self._document)
                )
                self._call(act, client, rng, step)
                if step % 40 == 0:
                    self._call(self._forget, client, rng, step)

    def _call(self, act, client, rng, step):
        begun = time.monotonic()
        user = f"user-{rng.randrange(SPACES)}"
        try:
            answer = act(client, user, " ".join(rng.choices(WORDS, k=20)), step)
        except httpx.HTTPError as exc:
            self.wrong.append(repr(exc))
            return
        self.calls.append((begun - self._begun, time.monotonic() - begun))
        if answer.status_code >= 400:
            self.wrong.append(answer.text[:300])

    def _ingest(self, client, user, text, step):
        body = {
            "user_id": user,
            "type": "message",
            "role": "user",
            "content": text,
            "conversation_id": f"c{step % 3}",
        }
        return client.post("/v6/ingest", json=body)

    def _recall(self, client, user, text, _step):
        body = {"user_id": user, "conversation_id": "c1", "query": text}
        return client.post("/v6/recall", json=body)

    def _put(self, client, user, text, step):
        body = {"key": f"keys/{step % 20}", "value": text}
        return client.post(f"/api/v1/memory/store?caller={user}", json=body)

    def _tool(self, client, user, text, _step):
        call = {"name": "memory_search", "arguments": {"query": text}}
        return client.post(
            f"/mcp?space={user}", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        )

    def _document(self, client, user, text, step):
        body = {
            "user_id": user,
            "document_id": f"d{step % 4}",
            "project_id": "garden",
            "document_name": "notes.md",
            "content": f"# Notes\n\n{text}",
        }
        return client.post("/v6/documents", json=body)

    def _forget(self, client, user, _text, _step):
        return client.post("/v6/forget", json={"user_id": user})

    def _watch(self):
        """(seconds, resident bytes, seconds of /healthz)."""
        with self._served.client() as client:
            while time.monotonic() < self.ends:
                begun = time.monotonic()
                client.get("/healthz").raise_for_status()
                took = time.monotonic() - begun
                self.samples.append((begun - self._begun, resident(self._served.process.pid), took))
                time.sleep(max(0.02, SOAK_SECONDS / SAMPLES / 10 - took))


def resident(pid):
    """The resident bytes of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * 4_096


def quarter(rows, number):
    """The rows of one quarter of the time, from 0."""
    begin, end = SOAK_SECONDS * number / 4, SOAK_SECONDS * (number + 1) / 4
    return [row for row in rows if begin <= row[0] < end] or rows[-1:]


def slowest(calls):
    took = sorted(seconds for _, seconds in calls)
    return took[min(len(took) - 1, len(took) * 99 // 100)]


def test_memory_and_latency_do_not_grow(tmp_path, figures):
    """
    No call fails. Over the last half of a long run, resident memory and the 99th percentile stay flat, and /healthz answers always.
    """
    with serve(tmp_path) as served:
        load = Load(served)
        load.run()
    memory = [statistics.median(row[1] for row in quarter(load.samples, number)) for number in range(4)]
    late = [slowest(quarter(load.calls, number)) for number in range(4)]
    health = slowest([(at, took) for at, _, took in load.samples])
    figures(
        seconds=round(SOAK_SECONDS),
        calls=len(load.calls),
        failed=len(load.wrong),
        resident_mb_by_quarter=" ".join(f"{size / 1e6:.0f}" for size in memory),
        p99_ms_by_quarter=" ".join(f"{seconds * 1_000:.0f}" for seconds in late),
        healthz_p99_ms=round(health * 1_000),
    )

    assert load.wrong == []
    assert load.calls
    if SOAK_SECONDS >= JUDGED_FROM_SECONDS:
        assert memory[3] <= memory[2] * GROWTH_MAX
        assert late[3] <= late[2] * SLOWER_MAX
        assert max(took for _, _, took in load.samples) < HEALTH_SECONDS_MAX
