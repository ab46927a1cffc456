"""Thousands of mixed requests while workers are killed: whatever was acknowledged is there."""

import os
import random
import signal
import threading
from contextlib import suppress

import httpx

from memplane import Memplane
from memplane.ledger.history_entry import Payload, compose_line
from serve_process import serve

CALLERS = 6
REQUESTS = 350
KILLS = 5
START = 1_790_000_000_000_000


def entry(agent, number):
    composed = compose_line(
        at=START + number * 1_000_000,
        claw_id=agent,
        path="/v1/chat/completions",
        requested_model="m",
        effective_provider="p",
        effective_model="m",
        request_original={
            "model": "m",
            "messages": [{"role": "user", "content": f"word{number} from {agent}"}],
        },
        response=Payload(json={"choices": [{"message": {"role": "assistant", "content": "Noted."}}]}),
    )
    return composed.line.strip()


class Caller(threading.Thread):
    """Writes and reads, remembers what was acknowledged, and tries again where nobody answered."""

    def __init__(self, served, number, done):
        super().__init__()
        self._served = served
        self._random = random.Random(number)
        self._done = done
        self.agent = f"agent-{number}"
        self.facts = {}
        self.entries = set()
        self.refused = []

    def run(self):
        with self._served.client() as client:
            for number in range(REQUESTS):
                getattr(self, self._random.choice(("fact", "entry", "recall")))(client, number)
                self._done.release()

    def fact(self, client, number):
        key, value = f"{self.agent}/k{number % 40}", f"value {number}"
        if self.ask(client, "/api/v1/memory/store", {"key": key, "value": value}):
            self.facts[key] = value

    def entry(self, client, number):
        line = entry(self.agent, number)
        if self.ask(client, "/retain", b'{"agent_id":"%s","entry":%s}' % (self.agent.encode(), line)):
            self.entries.add(f"word{number}")

    def recall(self, client, number):
        messages = [{"role": "user", "content": f"word{number}?"}]
        self.ask(client, "/recall", {"agent_id": self.agent, "messages": messages})

    def ask(self, client, path, body):
        """Whether it was acknowledged; a connection that broke is tried again, as a client would."""
        sent = (
            {"content": body, "headers": {"content-type": "application/json"}}
            if isinstance(body, bytes)
            else {"json": body}
        )
        while True:
            with suppress(httpx.TransportError):
                answer = client.post(path, **sent)
                break
        if not answer.is_success:
            self.refused.append((path, answer.status_code, answer.text))
        return answer.is_success


def test_every_acknowledged_write_survives_the_death_of_workers(tmp_path):
    """
    Two workers, six callers, one worker killed every so often: nothing is refused, nothing acknowledged is lost, and
    every chain verifies.
    """
    done = threading.Semaphore(0)
    with serve(tmp_path, "--workers", "2") as served:
        callers = [Caller(served, number, done) for number in range(CALLERS)]
        for caller in callers:
            caller.start()
        for _ in range(KILLS):
            for _ in range(CALLERS * REQUESTS // (KILLS + 1)):
                done.acquire()
            with suppress(ProcessLookupError):
                os.kill(served.workers()[0], signal.SIGKILL)
        for caller in callers:
            caller.join()
        code, _ = served.end()

    assert code == 0
    assert [caller.refused for caller in callers] == [[]] * CALLERS
    with Memplane.open(tmp_path / "data", embedder=None) as plane:
        owner = plane.space("default")
        for caller in callers:
            space = plane.space(caller.agent)
            words = {turn.text.split()[0] for turn in space.turns(limit=1_000) if turn.role == "user"}
            assert caller.entries <= words
            assert {key: owner.get(key).text for key in caller.facts} == caller.facts
            assert space.verify().ok
        assert owner.verify().ok
