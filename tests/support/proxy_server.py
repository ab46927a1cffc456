"""The proxy in front of a provider, both real servers, and the official clients pointed at it."""

import time
from contextlib import ExitStack, contextmanager

import anthropic
import openai

from http_server import Keys, serving
from memplane import Settings
from memplane.auth.principal import Right
from provider_server import Provider

SERVER_KEY = "sk-of-the-server-0123456789"
ALICE = "key-of-alice"
TIME_ENOUGH_MS = 60_000
"""On a busy machine too: what is told must not depend on how fast it is."""


class Fronted:
    """`provider`, `server`, `plane`; clients of `openai` and `anthropic`, and what memory has."""

    def __init__(self, provider, server, stack):
        self.provider = provider
        self.server = server
        self.plane = server.plane
        self._stack = stack

    def openai(self, key=ALICE, *, client=openai.OpenAI, **options):
        made = client(base_url=f"{self.server.url}/v1", api_key=key, **({"max_retries": 0} | options))
        if client is openai.OpenAI:
            self._stack.callback(made.close)
        return made

    def anthropic(self, key=ALICE, *, client=anthropic.Anthropic, **options):
        made = client(base_url=self.server.url, api_key=key, **({"max_retries": 0} | options))
        if client is anthropic.Anthropic:
            self._stack.callback(made.close)
        return made

    def http(self, key=ALICE, **options):
        return self.server.client(key, **options)

    def turns(self, owner="alice"):
        """What was said, as memory has it: (role, text)."""
        space = self.plane.space(owner)
        return [
            (hit.turn.role, hit.turn.text)
            for hit in reversed(space.search(memories=False, limit=50))
            if hit.turn is not None
        ]

    def entries(self, owner="alice"):
        return self.plane.space(owner).ledger.entries()


@contextmanager
def fronting(open_plane, *, auth=True, plane=None, adapters=None, **changes):
    """Both servers until the block ends."""
    with ExitStack() as stack:
        provider = Provider()
        stack.callback(provider.close)
        chosen = {
            "openai_base_url": provider.url,
            "anthropic_base_url": provider.root,
            "openai_api_key": SERVER_KEY,
            "anthropic_api_key": SERVER_KEY,
            "proxy_recall_ms": TIME_ENOUGH_MS,
            "proxy_retain_ms": TIME_ENOUGH_MS,
            "shutdown_seconds_max": 5,
        } | changes
        plane = plane or open_plane()
        settings = Settings(data=plane.settings.data, **chosen)
        keys = Keys()
        keys.add(ALICE, subject="alice", spaces={"alice"}, rights=(Right.READ, Right.WRITE))
        server = stack.enter_context(
            serving(plane, keys=keys, settings=settings, auth=auth, adapters=adapters)
        )
        yield Fronted(provider, server, stack)
        assert server.faults == []


def body(text, **more):
    """A turn as a client of OpenAI's sends it."""
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}], **more}


def until(condition):
    """Wait for what happens in another thread; the test's own time limit ends it."""
    while not condition():
        time.sleep(0.01)
