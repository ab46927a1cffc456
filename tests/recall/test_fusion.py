"""Fusion: the score of a turn is the sum of what its channels say, and each channel says what it should."""

import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.clock import to_instant
from memplane.models.vectors import VectorTable, standard
from memplane.recall.fusion import (
    WEIGHTS,
    FusedScores,
    Weights,
    best,
    best_of_session,
    fuse,
    word_scores,
)
from memplane.recall.periods import Period
from memplane.recall.query import QueryAnalysis
from memplane.recall.turn_index import TurnColumns, TurnColumnsBuilder
from memplane.storage.turns import TurnHead

HOUR = 3_600 * 1_000_000
JULY = to_instant(datetime(2023, 7, 10, 12, tzinfo=UTC))


def a_turn(n, *, at=JULY, conversation="c", role="user", speaker=None, words=5, asks=0) -> TurnHead:
    return TurnHead(n, conversation, None, role, speaker, at, words, asks)


def turns_of(*heads: TurnHead) -> TurnColumns:
    columns = TurnColumnsBuilder()
    for head in heads:
        columns.add(head)
    return TurnColumns(columns, VectorTable(0))


def asked(**fields) -> QueryAnalysis:
    nothing = {"text": "", "speakers": frozenset(), "of_assistant": True}
    return QueryAnalysis(**(nothing | fields))


def fused_of(turns, question, **channels) -> FusedScores:
    silent = np.zeros(turns.count)
    channels = {"meaning": None, "words": silent, "passage": silent} | channels
    return fuse(turns, np.arange(turns.count), question, **channels)


# ── making opinions comparable ───────────────────────────────────────────────────────────────────────────────────


def test_standard_has_mean_nought_and_deviation_one():
    """Whatever a channel counts in, one of its numbers is as large as another's."""
    values = standard(np.array([3.0, 5.0, 10.0, 20.0]))

    assert values.mean() == pytest.approx(0)
    assert values.std() == pytest.approx(1)
    assert np.all(np.diff(values) > 0)


def test_what_is_missing_has_no_opinion():
    """A turn whose vector is still to come is neither near nor far, and does not change what is usual."""
    values = standard(np.array([1.0, np.nan, 3.0, np.nan]))

    assert values.tolist() == [-1, 0, 1, 0]


@pytest.mark.parametrize(
    "values", [[], [2.0], [2.0, 2.0, 2.0], [np.nan], [np.nan, np.nan], [np.nan, 2.0, 2.0]]
)
def test_a_channel_that_says_one_thing_says_nothing(values):
    """No division by a deviation of nothing."""
    assert standard(np.array(values)).tolist() == [0.0] * len(values)


def test_the_sample_says_what_is_usual():
    """In a large space the candidates are all unusual; the sample alone is measured."""
    values = np.array([9.0, 1.0, 3.0])

    assert standard(values, np.array([False, True, True])).tolist() == [7.0, -1.0, 1.0]
    assert standard(np.array([9.0, 1.0, np.nan]), np.array([False, True, True])).tolist() == [0.0, 0.0, 0.0]


def test_the_best_of_a_sitting():
    """Every turn stands with the best turn of its own sitting, and no other."""
    values = np.array([1.0, 5.0, -3.0, -2.0])

    assert best_of_session(values, np.array([0, 0, 2, 2]), 3).tolist() == [5, 5, -2, -2]


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def spoken(draw):
    """Turns of a few words in a few conversations, out of order at times, with pauses."""
    lengths = st.one_of(st.integers(1, 12), st.integers(50, 130))
    heads = []
    at = JULY
    for n in range(1, draw(st.integers(1, 14)) + 1):
        at += draw(st.sampled_from([0, HOUR // 10, -HOUR, 2 * HOUR - 1, 2 * HOUR, 30 * HOUR]))
        heads.append(
            a_turn(n, at=at, conversation=draw(st.sampled_from([None, "a", "b"])), words=draw(lengths))
        )
    return heads


def slow_passages(heads) -> list[list[int]]:
    """For every turn the places of its passage, by the definition: up to two turns before and after it in its sitting,
    as far as those of one side hold at most 120 words."""
    sittings: list[list[int]] = []
    last: dict[str | None, list[int]] = {}
    for place, head in enumerate(heads):
        sitting = last.get(head.conversation)
        if sitting is None or abs(head.at - heads[sitting[-1]].at) >= 2 * HOUR:
            sitting = last[head.conversation] = []
            sittings.append(sitting)
        sitting.append(place)
    passages = {}
    for sitting in sittings:
        for at, place in enumerate(sitting):
            passage = [place]
            for side in (sitting[max(0, at - 2) : at][::-1], sitting[at + 1 : at + 3]):
                passage += [
                    other
                    for reach, other in enumerate(side, start=1)
                    if sum(heads[near].words for near in side[:reach]) <= 120
                ]
            passages[place] = passage
    return [passages[place] for place in range(len(heads))]


@given(spoken(), st.data())
def test_words_score_as_bm25_does(heads, data):
    """BM25 of a turn and of its passage, as a textbook would compute it, one word after another."""
    turns = turns_of(*heads)
    count = len(heads)
    holding = st.dictionaries(st.integers(0, count - 1), st.integers(1, 4), max_size=count)
    question = data.draw(st.lists(holding, max_size=3))
    passages = slow_passages(heads)
    lengths = [head.words for head in heads]
    passage_lengths = [sum(lengths[other] for other in passage) for passage in passages]

    def bm25(held, length, usual, frequency) -> float:
        rarity = math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))
        return rarity * held * 2.2 / (held + 1.2 * (0.25 + 0.75 * length / usual))

    words, passage = word_scores(
        [(np.array(list(held), np.int64), np.array(list(held.values()), float)) for held in question], turns
    )
    for place in range(count):
        own = sum(
            bm25(held[place], lengths[place], sum(lengths) / count, len(held))
            for held in question
            if place in held
        )
        around = 0.0
        for held in question:
            total = sum(held.get(other, 0) for other in passages[place])
            usual = sum(passage_lengths) / count
            around += bm25(total, passage_lengths[place], usual, len(held)) if total else 0.0
        assert words[place] == pytest.approx(own)
        assert passage[place] == pytest.approx(around)


# ── the channels ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_the_question_names_is_believed():
    """Said by the one who is asked about, against it if said by another who has a name; where nobody is named, nothing."""
    turns = turns_of(
        a_turn(1, speaker="Ann"), a_turn(2, speaker="Bob"), a_turn(3), a_turn(4, speaker="assistant")
    )

    fused = fused_of(turns, asked(speakers=frozenset({"Ann"})))
    assert fused.channels["speaker"].tolist() == [1, -1, 0, 0]
    assert "speaker" not in fused_of(turns, asked(speakers=frozenset({"Ann", "Bob"}))).channels
    assert "speaker" not in fused_of(turns, asked()).channels


def test_the_user_is_asked_about_unless_the_assistant_is():
    """A question about what the assistant said gives the user's turns no head start."""
    turns = turns_of(a_turn(1), a_turn(2, role="assistant"))

    assert fused_of(turns, asked(of_assistant=False)).channels["user"].tolist() == [1, 0]
    assert "user" not in fused_of(turns, asked()).channels


def test_who_asks_tells_little():
    """Of two turns that are otherwise alike, the one that ends with a question comes second."""
    turns = turns_of(a_turn(1), a_turn(2, asks=1))
    fused = fused_of(turns, asked())

    assert best(fused, 2) == [0, 1]
    assert fused.contributions([1])[0]["asks"] == WEIGHTS.asks < 0


# ── adding up ────────────────────────────────────────────────────────────────────────────────────────────────────


OPINION = st.one_of(st.floats(-5, 5), st.just(0.0))


@given(spoken(), st.data())
def test_contributions_add_up_to_the_score(heads, data):
    """What is shown is what was computed: nothing else decides, and a turn without a vector is no exception."""
    heads = [
        a_turn(
            head.n,
            at=head.at,
            conversation=head.conversation,
            words=head.words,
            role=data.draw(st.sampled_from(["user", "assistant", "tool"])),
            speaker=data.draw(st.sampled_from([None, "Ann", "Bob"])),
            asks=data.draw(st.integers(0, 1)),
        )
        for head in heads
    ]
    turns = turns_of(*heads)

    def opinions(values=OPINION):
        return np.array(data.draw(st.lists(values, min_size=turns.count, max_size=turns.count)))

    question = asked(
        speakers=frozenset(data.draw(st.sets(st.sampled_from(["Ann", "Bob", "Eve"])))),
        of_assistant=data.draw(st.booleans()),
        periods=(Period(JULY, JULY + HOUR, any_year=True),) if data.draw(st.booleans()) else (),
    )
    fused = fused_of(
        turns,
        question,
        meaning=data.draw(st.sampled_from([None, "some"]))
        and opinions(st.one_of(OPINION, st.just(math.nan))),
        words=np.abs(opinions()),
        passage=np.abs(opinions()),
        fact=data.draw(st.sampled_from([None, "some"])) and np.abs(opinions()),
    )

    assert np.isfinite(fused.scores).all()
    for place in range(turns.count):
        (parts,) = fused.contributions([place])
        assert sum(parts.values()) == pytest.approx(float(fused.scores[place]), abs=1e-9)
        assert [abs(part) for part in parts.values()] == sorted(map(abs, parts.values()), reverse=True)
        for name, rank in fused.ranks([place])[0].items():
            channel = fused.channels[name]
            assert rank == 1 + sorted(channel, reverse=True).index(channel[place])
        assert set(fused.ranks([place])[0]) == set(fused.channels) - {"asks", "user", "speaker", "date"}


def test_a_weight_of_nought_takes_a_channel_out():
    """Without its weight a channel decides nothing."""
    turns = turns_of(a_turn(1, conversation="a"), a_turn(2, conversation="b"))
    words = np.array([0.0, 1.0])
    silent = Weights(words=0, passage=0, session=0, asks=0, user=0)
    fused = fuse(turns, np.arange(2), asked(), meaning=None, words=words, passage=words * 0, weights=silent)

    assert fused.scores.tolist() == [0, 0]
    assert best(fused_of(turns, asked(), words=words), 1) == [1]


@given(st.lists(st.sampled_from([-math.inf, -1.0, 0.0, 0.5, 0.5, 2.0]), max_size=30), st.integers(0, 35))
def test_the_best_come_first_and_the_later_of_equals(scores, limit):
    """As a full sort would order them, however few are wanted and however many are equal."""
    fused = FusedScores(indexes=np.arange(len(scores)), scores=np.array(scores), channels={}, weights=WEIGHTS)

    wanted = sorted(range(len(scores)), key=lambda place: (-scores[place], -place))
    assert best(fused, limit) == wanted[:limit]
