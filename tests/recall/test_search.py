"""Search: everything one tells a space is found by its words, best first, and filters come before the limit."""

from datetime import timedelta

import pytest

from memplane.errors import InvalidRequest
from memplane.memory.runs import PackRun


def found(space, *args, **kwargs) -> list[str]:
    return [hit.text for hit in space.search(*args, **kwargs)]


# ── without a question ───────────────────────────────────────────────────────────────────────────────────────────


def test_returns_empty_results_for_empty_store(space):
    """Nothing in, nothing out, asked or not."""
    assert space.search() == space.search("anything") == []


@pytest.mark.parametrize("query", ["", "  ", "\n\t"])
def test_returns_recent_entries_with_no_query(space, clock, query):
    """Memories, facts and turns together, newest first, without a score."""
    space.store("fact", "memory")
    clock.advance(seconds=1)
    space.retain("turn")
    clock.advance(seconds=1)
    space.put("key", "fact")

    hits = space.search(query)
    assert [hit.text for hit in hits] == ["fact", "turn", "memory"]
    assert [hit.score for hit in hits] == [0.0] * 3
    assert [(hit.memory is None, hit.turn is None) for hit in hits] == [
        (False, True),
        (True, False),
        (False, True),
    ]


def test_the_same_moment_is_ordered_by_arrival(space):
    """Ties fall to what came last."""
    for number in range(5):
        space.store("fact", f"m{number}")
        space.retain(f"t{number}")

    assert found(space, limit=4) == ["t4", "m4", "t3", "m3"]


@pytest.mark.parametrize("query", ["!!!", "---", '"', "...", "()", "\x00"])
def test_a_question_without_words_finds_nothing(space, query):
    """Marks alone ask for nothing that could be found; they do not ask for everything."""
    space.store("fact", "x")

    assert space.search(query) == []


# ── with one ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_searches_by_text_query(space):
    """Any word will do; the one that answers more comes first."""
    space.store("fact", "Likes green tea")
    space.store("fact", "Likes green shirts and black trousers")
    space.store("fact", "Plays chess")
    space.retain("I drank tea")

    assert found(space, "green tea")[0] == "Likes green tea"
    assert set(found(space, "green tea")) == {
        "Likes green tea",
        "Likes green shirts and black trousers",
        "I drank tea",
    }


def test_returns_relevance_score_for_queries(space):
    """Above 0, at most 1, falling; all of the question scores above three quarters, half of it near a half."""
    space.store("fact", "The deployment runs on Kubernetes")
    space.store("fact", "Kubernetes is hard")
    space.store("fact", "Unrelated")

    hits = space.search("deployment kubernetes")
    assert [hit.text for hit in hits] == ["The deployment runs on Kubernetes", "Kubernetes is hard"]
    assert 1 >= hits[0].score > 0.75 > hits[1].score > 0.2


def test_keyword_stuffing_does_not_produce_relevance_above_one(space):
    """Saying a word a hundred times is worth little more than saying it."""
    space.store("fact", "tea " * 400)
    space.store("fact", "tea")

    assert all(0 < hit.score <= 1 for hit in space.search("tea"))


@pytest.mark.parametrize("indexed", [False, True])
def test_a_rare_word_counts_more_than_a_common_one(space, clock, indexed):
    """Whether turns are in the index yet or not, the word that tells things apart decides."""
    space.retain("Lisbon")
    for number in range(100 if indexed else 30):
        clock.advance(seconds=1)
        space.retain(f"meeting number {number}")

    assert found(space, "the meeting in Lisbon")[0] == "Lisbon"


def test_stop_words_do_not_decide(space):
    """Words that say nothing find nothing by themselves, unless there is nothing else to go by."""
    space.store("fact", "the and of")
    space.store("fact", "Porto is where she lives")

    assert found(space, "where is the city of Porto") == ["Porto is where she lives"]
    assert found(space, "the and of") == ["the and of"]


def test_a_long_question_still_finds(space):
    """A question may be a whole page."""
    space.store("fact", "zebra")

    assert found(space, "zebra " + "other words here " * 3_000) == ["zebra"]


@pytest.mark.parametrize(
    "query",
    [
        'dark" AND (',
        "content:theme",
        "NEAR(dark theme)",
        "dark OR NOT theme",
        "dar*",
        '"dark theme"',
        "^dark",
        "(dark)",
        "{dark theme}",
        "dark; DROP TABLE memory",
        "theme -- comment",
        "' UNION SELECT text FROM memory --theme",
        "PRAGMA user_version=9 theme",
        "dark:*^(){},;'\"",
    ],
)
def test_fts_syntax_is_only_words(space, query):
    """Operators, quotes and SQL in a question are words like any others, and never an error."""
    space.store("fact", "dark theme")
    space.store("fact", "unrelated")

    assert found(space, query) in (["dark theme"], [] if query == "dar*" else ["dark theme"])
    assert space.ledger.check() == []


def test_turns_are_found_as_soon_as_they_are_retained(space):
    """There is no waiting for an index."""
    for number in range(150):
        space.retain(f"turn number{number}")
        assert found(space, f"number{number}") == [f"turn number{number}"]

    for number in (0, 63, 64, 127, 128, 149):
        assert found(space, f"number{number}") == [f"turn number{number}"]


# ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def mixed(space, clock):
    """One fitting thing of each sort, then many newer ones that fit nothing."""
    space.store("preference", "tea in the morning", tags=["drink", "habit"], conversation="c", project="p")
    space.put("likes/tea", "tea", category="likes", tags=["drink"])
    space.retain("tea, please", conversation="c", project="p")
    clock.advance(days=1)
    for number in range(40):
        space.store("context", f"tea {number}")
        space.retain(f"tea {number}")
        space.put(f"other/{number}", "tea", tags=["drink"])
    return space


@pytest.mark.parametrize("query", ["tea", ""])
def test_filters_by_type(mixed, query):
    """Kinds are of memories, so turns are left out."""
    assert found(mixed, query, kinds=["preference"], limit=1) == ["tea in the morning"]
    assert found(mixed, query, kinds=["preference", "correction"]) == ["tea in the morning"]
    assert all(hit.memory for hit in mixed.search(query, kinds=["fact", "context"], limit=100))


@pytest.mark.parametrize("query", ["tea", ""])
def test_filters_by_tags(mixed, query):
    """AND, before the limit."""
    assert found(mixed, query, tags=["drink", "habit"], limit=1) == ["tea in the morning"]
    assert found(mixed, query, tags=["drink", "nothing"]) == []


@pytest.mark.parametrize("query", ["tea", ""])
def test_filters_by_category(mixed, query):
    """A category is of facts."""
    assert [hit.memory.key for hit in mixed.search(query, category="likes", limit=1)] == ["likes/tea"]


@pytest.mark.parametrize("query", ["tea", ""])
def test_filters_by_place_and_time(mixed, query, clock):
    """Conversation, project, since (included) and until (not), each before the limit."""
    today = clock.moment
    both = {"tea in the morning", "tea, please"}

    assert set(found(mixed, query, conversation="c", limit=2)) == both
    assert set(found(mixed, query, project="p", limit=2)) == both
    assert set(found(mixed, query, until=today, limit=100)) == {*both, "tea"}
    assert len(found(mixed, query, since=today, until=today + timedelta(microseconds=1), limit=100)) == 100
    assert found(mixed, query, since=today + timedelta(microseconds=1)) == []
    assert found(mixed, query, conversation="c", since=today) == []


@pytest.mark.parametrize(
    "moment", ["2026-11-15T08:30:00Z", "2026-11-15T09:30:00+01:00", 1_794_731_400, 1_794_731_400.0]
)
def test_moments_may_be_spelled_in_any_way(space, moment):
    """A datetime, ISO 8601 in any zone, or Unix seconds."""
    space.store("fact", "x")

    assert found(space, since=moment) == ["x"]
    assert found(space, until=moment) == []


def test_excludes_superseded_entries_by_default(space):
    """And includes them when requested, best first all the same."""
    old = space.store("fact", "tea, green")
    space.store("fact", "tea, black", supersedes=old.id)

    assert found(space, "tea") == ["tea, black"]
    assert sorted(found(space, "tea", include_superseded=True)) == ["tea, black", "tea, green"]


def test_memories_and_turns_can_be_asked_for_alone(mixed):
    """Either, both or neither."""
    assert all(hit.turn for hit in mixed.search("tea", memories=False, limit=100))
    assert all(hit.memory for hit in mixed.search("tea", turns=False, limit=100))
    assert mixed.search("tea", turns=False, memories=False) == []


def test_respects_limit_parameter(mixed):
    """Twenty by default; from one to a hundred."""
    assert len(found(mixed, "tea")) == len(found(mixed)) == 20
    assert len(found(mixed, "tea", limit=1)) == 1
    assert len(found(mixed, "tea", limit=100)) == 100


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"limit": -1}, "limit"),
        ({"query": "x" * 65_537}, "query"),
        ({"kinds": ["nonsense"]}, "kind"),
        ({"since": "yesterday"}, "since"),
        ({"until": float("inf")}, "until"),
        ({"since": "0001-01-01T00:00:00+14:00"}, "since"),
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(space, arguments, field):
    """With a sentence that names what is wrong."""
    with pytest.raises(InvalidRequest) as caught:
        space.search(**arguments)

    assert caught.value.field == field


def test_combines_text_query_with_type_filter(space):
    """Both hold."""
    space.store("fact", "tea")
    space.store("preference", "tea")
    space.store("preference", "chess")

    assert [(hit.memory.kind, hit.text) for hit in space.search("tea", kinds=["preference"])] == [
        ("preference", "tea")
    ]


def test_runs_are_not_found(space):
    """What the engine keeps for itself is not the user's."""
    space.facts.record_run(PackRun(pack="zebra", outcome="ok", at_unix=1))

    assert space.search("zebra") == space.search() == []


def test_secrets_are_not_shown(space):
    """Not in a hit's text, whatever is asked."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    space.retain(f"deploy with {token}")

    (hit,) = space.search("deploy")
    assert token not in hit.text
    assert token not in hit.turn.text


def test_search_stays_within_a_space(plane):
    """Nobody finds another's memory."""
    plane.space("alice").store("fact", "zebra")
    plane.space("alice").retain("zebra")

    assert plane.space("bob").search("zebra") == []
