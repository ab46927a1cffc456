"""Hot, warm and cold."""

from hypothesis import given
from hypothesis import strategies as st

from memplane.extract.claims import tier_of
from memplane.types import Tier

ORDER = [Tier.COLD, Tier.WARM, Tier.HOT]
importances = st.floats(0, 1)
counts = st.integers(0, 10**9)


def test_the_ends_of_the_scale():
    """
    Important is hot, unimportant is cold, in between is warm.
    """
    assert [tier_of(importance=importance) for importance in (0.0, 0.5, 0.9)] == ORDER


def test_a_hot_predicate_is_hot():
    """
    Identity and instructions are always recalled.
    """
    assert tier_of(importance=0.6, hot=True) is Tier.HOT


def test_use_lifts():
    """
    What is recalled often comes to be recalled always.
    """
    assert tier_of(importance=0.7) is Tier.WARM
    assert tier_of(importance=0.7, accesses=20) is Tier.HOT


@given(importances, importances, counts, counts, st.booleans())
def test_more_is_never_colder(one, other, few, many, hot):
    """
    More importance and more use never move a memory down.
    """
    low = tier_of(importance=min(one, other), accesses=min(few, many), hot=hot)
    high = tier_of(importance=max(one, other), accesses=max(few, many), hot=hot)

    assert ORDER.index(low) <= ORDER.index(high)
