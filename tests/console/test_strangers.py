"""Nobody reaches another's memory through a page: every page, in a session of somebody else."""

import re

import pytest

from memplane.auth.keys import Grant
from memplane.auth.principal import Right

MARK = "quetzal"
WORD = re.compile(r'name="_word" value="([0-9a-f]+)"')
PARAMETER = re.compile(r"\{(\w+)\}")


@pytest.fixture
def alice(plane):
    space = plane.space("alice")
    space.retain(f"My favorite bird is the {MARK}", conversation="birds", id="said")
    space.documents.upload(f"All about the {MARK}", name=f"{MARK}.txt", id="book")
    space.enrich()
    return space


@pytest.fixture
def bob(console, identity, alice):
    """Signed in, with everything but an administrator's rights over a space of his own."""
    key = identity.create_key(Grant(name="bob", spaces=["bob"], rights=(Right.READ, Right.WRITE)))
    client = console.client(None, follow_redirects=False)
    word = WORD.search(client.get("/console/sign-in").text)[1]
    client.post("/console/sign-in", data={"key": key.bearer.reveal(), "_word": word})
    client.word = WORD.search(client.get("/console").text)[1]
    return client


def test_no_page_tells_a_stranger_anything(console, bob, alice):
    """
    Under Alice's names and ids, Bob is told nothing of hers, and nothing of hers changes.
    """
    ids = {"space": "@alice", "entry": "@said", "document": "@book", "memory": f"@{alice.memories()[0].id}"}
    before = alice.overview.stats()
    tried = 0
    for adapter in console.app.adapters:
        for route in adapter.routes if adapter.name == "console" else ():
            path = PARAMETER.sub(lambda found: ids.get(found[1], "@x"), route.path)
            for method in route.methods:
                data = None if method == "GET" else {"_word": bob.word, "sure": "yes", "winner": "x"}
                if path.endswith("/sign-out"):
                    continue
                answer = bob.request(method, path, data=data)
                tried += 1

                assert answer.status_code < 500, path
                assert MARK not in answer.text, path
                if "{space}" in route.path:
                    assert answer.status_code == 403, path
    assert tried > 15
    assert alice.overview.stats() == before
