"""Which turns or spans hold a word, as the store said last."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memplane.storage.postings import Postings, places_of

HELD = {"cat": [3, 3, 7], "dog": [7], "owl": [], "hen": [9], "ant": [1]}


def read_with(asked):
    """The store, which notes what it is asked for."""

    def read(stem):
        asked[stem] += 1
        return HELD[stem]

    return read


def test_words_that_were_not_asked_for_lately_leave():
    """
    Only so much is kept, and what left is read again.
    """
    asked, postings = Counter(), Postings(kept_max=1)
    for _ in range(2):
        for stem, held in HELD.items():
            numbers, counts = postings.of(stem, "state", read_with(asked))

            assert dict(zip(numbers.tolist(), counts.tolist(), strict=True)) == Counter(held)
    assert [stem for stem in HELD if stem in postings] == [stem]
    assert set(asked.values()) == {2}


def test_the_store_is_asked_again_once_it_changed():
    """
    Not before that.
    """
    asked, postings = Counter(), Postings()
    for state in (1, 1, 2, 2):
        postings.of("cat", state, read_with(asked))

    assert asked["cat"] == 2


@given(st.lists(st.integers(0, 50)), st.sets(st.integers(0, 50)))
def test_places_are_where_numbers_stand(numbers, among):
    """
    Every number that is in the column has its place there, and no other has any.
    """
    column = np.array(sorted(among), np.int64)
    places, there = places_of(np.array(numbers, np.int64), column)

    assert there.tolist() == [number in among for number in numbers]
    assert column[places[there]].tolist() == [number for number in numbers if number in among]
