"""Spaces too large to be loaded: PostgreSQL looks for vectors itself, and answers stay what they were."""

import random
import zlib
from collections.abc import Iterator

import numpy as np
import psycopg
import pytest

from memplane import Memplane, Space
from memplane.models.embedding import Vector
from memplane.storage.postgres.engine import PostgresEngine
from memplane.storage.stores import Stores
from statement_watch import Said, explaining, nodes, watched
from stub_embedder import StubEmbedder

_THINGS = (
    "garden",
    "kitchen",
    "bicycle",
    "guitar",
    "report",
    "invoice",
    "flight",
    "hotel",
    "recipe",
    "dentist",
)
_DOINGS = ("bought", "visited", "finished", "cancelled", "moved", "repaired", "planned", "painted", "lost")


_LOADING = (
    "FROM turn_vector\nWHERE stamp",
    "FROM memory_vector v JOIN memory m",
    "LEFT JOIN turn_vector v ON v.n = t.n\nWHERE t.n >",
)
"""Parts of statements that read a whole space."""


def _sentence(chance: random.Random, number: int) -> str:
    name = f"Kori{number % 37}"
    return f"I {chance.choice(_DOINGS)} the {chance.choice(_THINGS)} with {name} near the {chance.choice(_THINGS)}."


class AtRandom(StubEmbedder):
    """Vectors that have nothing to do with what is said: the worst there is for an index of neighbours."""

    def _embedded(self, text: str) -> Vector:
        return (
            np.random.default_rng(zlib.crc32(text.encode()))
            .standard_normal(self.dimension)
            .astype(np.float32)
        )


@pytest.fixture
def plane(postgres_url: str) -> Iterator[Memplane]:
    with Memplane.open(postgres_url, embedder=StubEmbedder()) as opened:
        yield opened


def _filled(plane: Memplane, count: int = 140) -> Space:
    space, chance = plane.space("alice"), random.Random(5)
    for number in range(count):
        space.retain(
            _sentence(chance, number),
            conversation=f"c{number // 12}",
            role="assistant" if number % 3 == 2 else "user",
        )
    space.enrich()
    return space


def _told(space: Space, questions: list[str]) -> list[list[str]]:
    return [[hit.id for hit in space.recall(question).hits[:10]] for question in questions]


@pytest.mark.parametrize("embedder", [StubEmbedder(), AtRandom()], ids=["alike", "at random"])
def test_a_large_space_answers_like_a_small_one_and_is_not_loaded(embedder, postgres_url):
    """
    At least 95 % of the first ten are the same with an index as with every vector compared, and no statement reads the
    vectors, the heads or the words of the whole space.
    """
    chance = random.Random(9)
    questions = [
        f"When did I say that Kori{number} {chance.choice(_DOINGS)} the {chance.choice(_THINGS)}?"
        for number in range(14)
    ]
    with Memplane.open(postgres_url, embedder=embedder) as plane:
        exact = _told(_filled(plane), questions)

    engine = PostgresEngine(postgres_url)
    stores = Stores(engine)
    assert engine.index_vectors(large=50) == 1
    assert engine.index_vectors(large=50) == 0
    stores.close()
    with watched() as said, Memplane.open(postgres_url, embedder=embedder) as fresh:
        found = _told(fresh.space("alice"), questions)

    same = sum(len(set(one) & set(other)) for one, other in zip(exact, found, strict=True))
    assert same >= 0.95 * sum(map(len, exact))
    assert not [text for text, _ in said if any(part in text for part in _LOADING)]


def test_a_search_of_a_large_space_does_not_load_it(postgres_url):
    """
    What is similar is found by the index, or among what passes the filter, mostly the same as with every vector compared.
    """
    queries = [f"{doing} the {thing}" for doing, thing in zip(_DOINGS, _THINGS, strict=False)]
    asked = [{}, {"conversation": "c3"}, {"turns": False}, {"turns": False, "kinds": ["fact"]}]

    def found(space: Space) -> list[set[str]]:
        return [{hit.id for hit in space.search(query, **one)[:8]} for query in queries for one in asked]

    with Memplane.open(postgres_url, embedder=StubEmbedder()) as plane:
        space = _filled(plane)
        exact = found(space)
        in_conversation = {turn.entry_id for turn in space.turns("c3")}
    engine = PostgresEngine(postgres_url)
    stores = Stores(engine)
    assert engine.index_vectors(large=50) == 1
    stores.close()
    with watched() as said, Memplane.open(postgres_url, embedder=StubEmbedder()) as fresh:
        space = fresh.space("alice")
        searched = found(space)
        hits = space.search("somebody painted kitchens", memories=False, conversation="c3")

    same = sum(len(one & other) for one, other in zip(exact, searched, strict=True))
    assert same >= 0.9 * sum(map(len, exact))
    assert {hit.id for hit in hits} <= in_conversation
    assert not [text for text, _ in said if any(part in text for part in _LOADING)]


def test_the_index_of_a_space_serves_its_searches(plane, postgres_url):
    """
    The plan of a search is the space's own index, in the role that sees one space.
    """
    space = _filled(plane, 70)
    PostgresEngine(postgres_url).index_vectors(large=50)
    with watched() as said:
        space.recall("Who painted the garden?")
    nearest = [(text, given) for text, given in said if "<#>" in text]

    with psycopg.connect(postgres_url) as connection:
        found = connection.execute(
            "SELECT tenant, number FROM memplane.space WHERE owner = 'alice'"
        ).fetchone()
    assert found is not None
    tenant, number = found
    with explaining(postgres_url, tenant=tenant, space=number, sorts=False) as plan:
        used = [{node.get("Index Name") for node in nodes(plan(statement))} for statement in nearest]

    assert [f"{sort}_vector_near_{tenant}_{number}_1" for sort in ("memory", "turn")] == [
        next(name for name in names if name and "_near_" in name) for names in used
    ]


def test_a_space_that_is_small_again_is_loaded_again(plane, postgres_url):
    """
    After a forget its indexes go, and it answers as before.
    """
    space = _filled(plane, 70)
    engine = PostgresEngine(postgres_url)
    stores = Stores(engine)
    engine.index_vectors(large=50)
    for number in range(1, 6):
        space.forget(conversation=f"c{number}")
    space.enrich()
    space.recall("Who painted the garden?")

    assert engine.index_vectors(large=80) == 0
    stores.close()
    with psycopg.connect(postgres_url) as connection:
        left = connection.execute(
            "SELECT count(*) FROM pg_indexes WHERE indexname LIKE '%near%' AND schemaname = 'memplane'"
        ).fetchone()
    assert left == (0,)
    (told,) = _told(space, ["Who painted the garden?"])
    with Memplane.open(postgres_url, embedder=StubEmbedder()) as fresh:
        (expected,) = _told(fresh.space("alice"), ["Who painted the garden?"])
    assert told == expected
    assert any(id_.startswith("turn") for id_ in told)


def test_a_space_that_nobody_wrote_to_since_is_not_asked_what_waits_there(plane, postgres_url):
    space = _filled(plane, 70)
    PostgresEngine(postgres_url).index_vectors(large=50)
    space.recall("Who painted the garden?")
    with watched() as again:
        space.recall("Who cancelled the flight?")
    space.retain("Zebediah painted the garden.")
    with watched() as since:
        told = space.recall("What did Zebediah do?")

    def waits(said: list[Said]) -> bool:
        return any("SELECT n, text FROM turn" in text for text, _ in said)

    assert not waits(again)
    assert waits(since)
    assert "Zebediah" in told.text
