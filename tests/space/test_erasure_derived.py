"""Forgetting is a promise about what was derived, too: facts, quotes, evidence, claims, vectors, episodes and what a
language model read. After a forget, no byte of the forgotten words is in any file of the data directory."""

import json
from contextlib import ExitStack, contextmanager
from datetime import timedelta

import apsw
import pytest
from tests.conftest import HandClock
from tests.space.test_erasure import Secret, Traces, exported
from tests.support.stub_embedder_enrich import BagOfWords

from memplane import Memplane
from memplane.memory import projection
from memplane.models.llm import Completion
from memplane.storage.sqlite.names import space_path
from memplane.types import Kind, Op

DERIVED = ("memory", "evidence", "conflict", "cited", "untold", "turn_vector", "memory_vector", "access")


class Parrot:
    """A language model that claims of every message what it says, word for word."""

    model_id = "parrot"

    def complete(self, system, user, schema, tokens_max):
        claims = [
            {
                "message": message["message"],
                "quote": message["text"],
                "subject": "user",
                "predicate": "likes",
                "relation": "like",
                "object": message["text"],
                "topic": message["text"],
                "negative": False,
                "update": False,
                "replaces": message["text"],
                "tense": "present",
                "when": "",
            }
            for message in json.loads(user)
        ]
        return Completion(text=json.dumps({"claims": claims}), input_tokens=1, output_tokens=1)


@contextmanager
def opened(folder, llm=None):
    clock = HandClock()
    with Memplane.open(folder, embedder=BagOfWords(), llm=llm, clock=clock) as plane:
        yield plane.space("alice"), clock


def rows(folder, *, vectors_only=False):
    connection = apsw.Connection(str(space_path(folder / "spaces" / "default", "alice")))
    try:
        tables = DERIVED[-3:-1] if vectors_only else DERIVED
        counts = {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables
        }
    finally:
        connection.close()
    return {table: count for table, count in counts.items() if count}


def live_through(space, clock, secret):
    """Everything that can become of a secret: a fact, one more place of it, a conflict about it, something in its place,
    an episode that quotes it, and the name of the conversation; answers the entries."""
    where = {"conversation": f"talk {secret.tag}", "project": secret.mixed, "speaker": secret.ascii}
    said = [
        f"I live in {secret.ascii}",
        f"Yes, I live in {secret.ascii}.",
        f"I live in {secret.accented}",
        f"I work at {secret.mixed} with the {secret.ideographs} people",
        f"My favorite color is {secret.accented} and nothing but {secret.accented}",
        f"My name is {secret.ascii} and I like {secret.mixed} very much indeed",
    ]
    ids = []
    for text in said:
        ids.append(space.retain(text, **where).id)
        clock.advance(minutes=1)
    space.enrich()
    clock.advance(timedelta(days=2))
    ids.append(space.retain(f"I moved to {secret.mixed}", **where).id)
    space.enrich()
    clock.advance(timedelta(days=2))
    space.enrich()
    return ids


@pytest.mark.parametrize("reader", ["rules", "llm"])
@pytest.mark.parametrize("scope", ["entries", "conversation", "time", "everything", "one by one"])
def test_nothing_derived_outlives_a_forget(tmp_path, reader, scope):
    """Whatever the scope and whoever read the facts; not after a replay, and not in the files of a closed space."""
    secret = Secret(f"derived {reader} {scope}")
    words = [word for word in secret.words if not (scope == "conversation" and word == secret.tag)]
    with opened(tmp_path, Parrot() if reader == "llm" else None) as (space, clock):
        ids = live_through(space, clock, secret)
        made = rows(tmp_path)
        written = Traces(tmp_path).of(secret.ascii, secret.mixed)
        scopes = {
            "entries": [{"entries": ids}],
            "conversation": [{"conversation": f"talk {secret.tag}"}],
            "time": [{"since": "2026-01-01T00:00:00Z"}],
            "everything": [{"everything": True}],
            "one by one": [{"entries": [id_]} for id_ in ids],
        }[scope]
        receipts = [space.forget(**forget) for forget in scopes]
        left = Traces(tmp_path, exported(space)).of(*words)
        rows_left = rows(tmp_path)
        space.enrich()
        space.ledger.replay()
        space.enrich()
        after_replay = Traces(tmp_path, exported(space)).of(*words)
        derive = [entry for entry in space.ledger.entries() if entry.op is Op.DERIVE]
        checks = space.ledger.verify().problems, space.ledger.check()
    closed = Traces(tmp_path).of(*words)

    assert written
    assert {"memory", "turn_vector", "memory_vector", "cited"} <= made.keys()
    assert (reader == "llm") == bool(derive)
    assert all(entry.body is None for entry in derive)
    assert all(receipt.off_disk for receipt in receipts)
    assert (left, after_replay, closed) == ([], [], [])
    assert rows_left == rows(tmp_path) == {}
    assert checks == ((), [])


@pytest.mark.parametrize("reader", ["rules", "llm"])
def test_what_is_kept_says_nothing_of_what_is_forgotten(tmp_path, reader):
    """One turn among others: its words leave the facts, the evidence, the conflicts and the episode it was part of; the
    others stay known."""
    secret = Secret(f"one of many {reader}")
    talk = [
        "I live in Lisbon, in the house with the blue door",
        f"I live in {secret.ascii}, in the house with the {secret.mixed} door",
        "The blue door of the house in Lisbon needs paint",
        "The house has a garden behind the blue door",
        "I like the garden of the house more than the house",
    ]
    with opened(tmp_path, Parrot() if reader == "llm" else None) as (space, clock):
        ids = []
        for text in talk:
            ids.append(space.retain(text, conversation="c").id)
            clock.advance(minutes=1)
        clock.advance(hours=3)
        space.enrich()
        before = [memory.kind for memory in space.overview.newest_memories(99)]
        receipt = space.forget(entries=[ids[1]])
        at_once = Traces(tmp_path, exported(space)).of(*secret.words)
        space.enrich()
        left = Traces(tmp_path, exported(space)).of(*secret.words)
        known = " ".join(memory.text for memory in space.overview.newest_memories(99))
        told = space.recall("where do I live, and which door does my house have?", conversation="c").text

    assert Kind.EPISODE in before
    assert receipt.off_disk
    assert (at_once, left) == ([], [])
    assert "Lisbon" in known
    assert "Lisbon" in told


def test_a_purge_leaves_no_vector_of_what_it_dropped(tmp_path):
    """What is no memory any more has no vector; what is left has one each."""
    with opened(tmp_path) as (space, clock):
        for place in ("Lisbon", "Rome", "Oslo"):
            space.retain(f"I live in {place}")
            space.enrich()
            clock.advance(timedelta(days=2))
        before = rows(tmp_path, vectors_only=True)
        purged = space.purge(0)
        after = rows(tmp_path, vectors_only=True)

    assert before == {"turn_vector": 3, "memory_vector": 3}
    assert purged == 2
    assert after == {"turn_vector": 3, "memory_vector": 1}


def test_a_forget_between_a_replay_and_the_worker_takes_the_vectors_along(tmp_path):
    """A replay keeps vectors to use them again; those of what is forgotten meanwhile are not among them."""
    with ExitStack() as stack:
        space, _ = stack.enter_context(opened(tmp_path))
        gone = space.retain("I live in Lisbon").id
        space.retain("I like jazz")
        space.enrich()
        with space._context.store() as store:
            store.write(lambda writer: projection.replay(writer, lambda _: None))
        space.forget(entries=[gone])
        space.enrich()
        after = rows(tmp_path, vectors_only=True)

    assert after == {"turn_vector": 1, "memory_vector": 1}
