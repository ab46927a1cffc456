"""Conversations cut into episodes and told in their own words."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memplane.extract.episodes import PAUSE, SENTENCES, TURNS_MAX, EpisodeTurn, split_episodes

START = datetime(2026, 5, 4, 10, 0, tzinfo=UTC)
GARDEN = [
    "I planted tomatoes in the garden this morning.",
    "Tomatoes in a garden need plenty of sun and water.",
    "My garden gets sun all day, so the tomatoes should grow.",
    "Water the tomatoes in the garden every evening.",
]
DATABASE = [
    "The migration of the database failed on the production server.",
    "Did the database server run out of disk during the migration?",
    "Yes, the production database disk was full, so the migration stopped.",
    "Grow the disk of the database server and run the migration again.",
]


def talk(*texts, gap=timedelta(minutes=1)):
    return [EpisodeTurn(text, START + gap * place) for place, text in enumerate(texts)]


def test_nothing_said_is_no_episode():
    """
    An empty conversation has none.
    """
    assert split_episodes([]) == []


def test_a_pause_ends_an_episode():
    """
    Who comes back later begins a new one.
    """
    turns = talk(*GARDEN[:2]) + [EpisodeTurn(text, START + PAUSE * 2) for text in GARDEN[2:]]

    assert [(one.first, one.after) for one in split_episodes(turns)] == [(0, 2), (2, 4)]


def test_a_new_topic_ends_an_episode():
    """
    Turns that share no words with those before them are about something else.
    """
    assert [(one.first, one.after) for one in split_episodes(talk(*GARDEN, *DATABASE))] == [(0, 4), (4, 8)]


def test_a_summary_is_in_the_words_of_the_conversation():
    """
    A few central sentences, each verbatim, in their order; questions and interjections are not among them.
    """
    turns = talk("Hi!", *DATABASE, "Ok.")
    (episode,) = split_episodes(turns)

    assert len(episode.quotes) == SENTENCES
    assert all("database" in quote.text for quote in episode.quotes)
    assert [quote.turn for quote in episode.quotes] == sorted(quote.turn for quote in episode.quotes)
    assert not any("?" in quote.text for quote in episode.quotes)


@given(st.lists(st.tuples(st.text(max_size=80), st.integers(0, 300)), max_size=120))
def test_every_turn_is_in_one_episode_and_every_quote_is_exact(said):
    """
    Episodes cover the conversation without gap or overlap, none is too long, and quotes are verbatim.
    """
    at = START
    turns = []
    for text, minutes in said:
        at += timedelta(minutes=minutes)
        turns.append(EpisodeTurn(text, at))
    episodes = split_episodes(turns)

    assert [turn for one in episodes for turn in range(one.first, one.after)] == list(range(len(turns)))
    for one in episodes:
        assert one.after - one.first <= TURNS_MAX
        assert all(turns[quote.turn].text[quote.start : quote.end] == quote.text for quote in one.quotes)
        assert all(one.first <= quote.turn < one.after for quote in one.quotes)
