"""Vectors in memory: exact while they are few, codes beyond, and never one place's vector for another's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.models.embedding import normalised
from memplane.models.vectors import VectorTable, unpacked

DIMENSIONS = [1, 7, 40, 63, 64, 65, 128]


def packed(vectors) -> list[bytes]:
    return [row.astype(np.float16).tobytes() for row in vectors]


def random_vectors(count, dimension, seed=0):
    return normalised(np.random.default_rng(seed).standard_normal((count, dimension)))


def clustered_vectors(count, dimension, seed=0):
    """What real texts look like: some topics, and a direction that all of them share."""
    chance = np.random.default_rng(seed)
    topics = chance.standard_normal((12, dimension))
    own = chance.standard_normal((count, dimension))
    return normalised(topics[chance.integers(0, 12, count)] + 0.6 * own + 2.0)


def all_scores(table: VectorTable, query):
    return table.scores(query, np.arange(table._count))


def filled(vectors, **options) -> VectorTable:
    table = VectorTable(vectors.shape[1], **options)
    table.extend(len(vectors))
    table.put(np.arange(len(vectors)), packed(vectors))
    return table


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_scores_are_dot_products(dimension):
    """While it is exact, every place has the dot product of its own vector, as precise as it is stored."""
    vectors, query = random_vectors(300, dimension), random_vectors(1, dimension, seed=1)[0]
    table = filled(vectors)

    assert table.exact
    assert np.allclose(
        all_scores(table, query), vectors.astype(np.float16).astype(np.float32) @ query, atol=1e-6
    )
    assert unpacked(packed(vectors)).shape == vectors.shape


def test_a_place_without_a_vector_has_no_score():
    """What waits for its vector is unknown, and not zero; it is never near, either."""
    vectors, query = random_vectors(6, 64), random_vectors(1, 64, seed=1)[0]
    table, coded = VectorTable(64), VectorTable(64, exact_max=0)
    bare = VectorTable(64, exact_max=0, kept_max=0)
    for one in (table, coded, bare):
        one.extend(6)
        one.put(np.array([1, 4]), packed(vectors[[1, 4]]))

    for one in (table, coded):
        assert np.flatnonzero(np.isfinite(all_scores(one, query))).tolist() == [1, 4]
    for one in (coded, bare):
        assert sorted(one.near(query, 6)) == [1, 4]
        assert sorted(one.near(query, 4)) == [1, 4]
    assert all_scores(bare, query) is None


def test_a_vector_is_replaced():
    """A second vector takes the place of the first, exact or coded, and touches no other place."""
    vectors, others = random_vectors(200, 65), random_vectors(200, 65, seed=1)
    table, coded = filled(vectors), filled(vectors, exact_max=10)
    table.put(np.array([7]), packed(others[[7]]))
    coded.put(np.array([7]), packed(others[[7]]))

    assert np.argmax(all_scores(table, others[7])) == np.argmax(all_scores(coded, others[7])) == 7
    assert 7 in coded.near(others[7], 3)
    assert 7 not in coded.near(vectors[7], 3)
    assert all(place in coded.near(vectors[place], 1) for place in (0, 6, 8, 199))


@pytest.mark.parametrize("dimension", [7, 64, 100])
def test_growing_past_what_is_exact(dimension):
    """A table that outgrows exactness keeps what it knew, takes what comes, and knows what is missing."""
    vectors = random_vectors(60, dimension)
    table = VectorTable(dimension, exact_max=40)
    for count in (10, 30, 40):
        table.extend(count)
        places = np.arange(count - 10, count)
        table.put(places[1:], packed(vectors[places[1:]]))  # the first of each ten is missing
    assert table.exact
    table.extend(60)
    table.put(np.arange(41, 60), packed(vectors[41:60]))

    assert not table.exact
    there = set(table.near(vectors[0], 60).tolist())
    assert there == set(range(60)) - {0, 20, 30, 40} - set(range(10, 20))
    coded = filled(vectors, exact_max=10)
    assert len(coded.near(vectors[0], 60)) == 60


def test_without_a_model_nothing_is_near():
    """No dimension, no vectors, however large the space; nothing breaks on the way."""
    table = VectorTable(0, exact_max=4)
    for count in (0, 3, 9):
        table.extend(count)
        table.put(np.zeros(0, np.int64), [])

    assert not table.exact


@pytest.mark.parametrize("dimension", [100, 384])
@pytest.mark.parametrize(("make", "share"), [(random_vectors, 0.6), (clustered_vectors, 0.85)])
def test_codes_lead_to_the_nearest(make, share, dimension):
    """The tenth of a space that codes choose holds the nearest practically always, and of the nearest hundredth as much
    as chance or topics set it apart. Without the common direction taken out, clustered vectors would share one code."""
    vectors = make(4_000, dimension)
    table = filled(vectors, exact_max=100)
    found = nearest = 0.0
    for place in range(0, 4_000, 133):
        query = normalised((vectors[place] + 0.7 * make(1, dimension, seed=place)[0])[None, :])[0]
        best = np.argsort(-(vectors @ query))[:40]
        near = set(table.near(query, 400).tolist())
        found += len(near & set(best.tolist())) / 40
        nearest += best[0] in near

    assert nearest >= 30
    assert found / 31 >= share


@pytest.mark.parametrize("dimension", [7, 64, 100])
def test_a_byte_a_number_is_enough(dimension):
    """Where codes choose, what is kept of a vector says its dot product to a hundredth, whatever its length."""
    vectors = random_vectors(200, dimension) * np.linspace(0.01, 3, 200, dtype=np.float32)[:, None]
    query = random_vectors(1, dimension, seed=1)[0]
    coded = filled(vectors, exact_max=10)
    places = np.array([199, 3, 77])

    exact = vectors[places] @ query
    lengths = np.linalg.norm(vectors[places], axis=1)
    assert np.all(np.abs(coded.scores(query, places) - exact) <= 0.01 * lengths)


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 99)), max_size=30),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_a_table_is_a_list_of_vectors(writes, exact_max, kept_max):
    """Extending and putting in any order gives what a plain list would hold, however much of it is kept; codes forget no
    place and invent none."""
    vectors = random_vectors(100, 10)
    table = VectorTable(10, exact_max=exact_max, kept_max=max(exact_max, kept_max))
    kept: dict[int, int] = {}
    count = 0
    for place, which in writes:
        count = max(count, place + 1)
        table.extend(count)
        table.put(np.array([place]), packed(vectors[[which]]))
        kept[place] = which

    assert table.exact is (count <= exact_max)
    if not table.exact:
        assert sorted(table.near(vectors[0], 1_000)) == sorted(kept)
    scores = all_scores(table, vectors[0])
    assert (scores is None) is (count > max(exact_max, kept_max))
    if scores is not None:
        assert np.flatnonzero(np.isfinite(scores)).tolist() == sorted(kept)
        for place, which in kept.items():
            assert scores[place] == pytest.approx(float(vectors[which] @ vectors[0]), abs=2e-2)
