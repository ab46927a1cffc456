"""Sets of positions, beside the sets of Python."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memplane.sync.segments import Positions, union

NUMBERS = st.sets(st.integers(1, 40))


@given(NUMBERS, NUMBERS)
def test_they_are_sets(left, right):
    """
    Union, intersection, difference, membership and size are those of sets.
    """
    one, other = Positions.of(left), Positions.of(right)

    assert set(one | other) == left | right
    assert set(one & other) == left & right
    assert set(one - other) == left - right
    assert set(union([one, other, one])) == left | right
    assert (len(one), bool(one)) == (len(left), bool(left))
    assert [number in one for number in range(42)] == [number in left for number in range(42)]
    assert (one == other) == (left == right)


@given(NUMBERS, st.integers(0, 45))
def test_what_is_missing_up_to_a_number(numbers, last):
    """
    Everything from 1 to there that is not among them.
    """
    assert set(Positions.of(numbers).missing(last)) == set(range(1, last + 1)) - numbers


@given(NUMBERS)
def test_runs_are_in_order_and_apart(numbers):
    """
    Runs say the same as the numbers, and no two of them could be one.
    """
    runs = Positions.of(numbers).runs

    assert [n for first, last in runs for n in range(first, last + 1)] == sorted(numbers)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(runs))
