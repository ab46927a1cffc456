"""What was said becomes memories: quoted exactly, counted once, replaced, contested or ended as the words say."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.conftest import MORNING
from tests.support.stub_embedder_enrich import BagOfWords

from engines import both_if_thorough
from memplane import Memplane
from memplane.errors import InvalidRequest, NotFound
from memplane.extract import deriver
from memplane.models.embedding import EmbeddingUnavailable
from memplane.storage.filter import Filter
from memplane.types import Kind, State, Tier
from memplane.worker import pipeline as worker

pytestmark = both_if_thorough

DAY = timedelta(days=1)
TALK = (
    "We adopted a grey puppy called Biscuit from the shelter.",
    "The puppy Biscuit chews on every shoe in the house.",
    "The trainer says a puppy like Biscuit needs long walks.",
    "Tomorrow the puppy Biscuit goes to the vet for his shots.",
)


@pytest.fixture
def space(open_plane):
    return open_plane(embedder=BagOfWords()).space("alice")


def derived(space, *, superseded=False):
    """Every memory that was read out of what was said, oldest first."""
    with space._context.read() as reader:
        found = reader.memories.find(Filter(now=0, include_superseded=superseded), limit=1_000)
    return [memory for memory in reversed(found) if memory.derived and memory.kind is not Kind.EPISODE]


def episodes(space):
    return [memory for memory in space.overview.newest_memories(1_000) if memory.kind is Kind.EPISODE]


def evidence(space, memory):
    with space._context.read() as reader:
        return [place.own for place in reader.claims.evidence([memory.id])]


def texts(space, **options):
    return [memory.quote for memory in derived(space, **options)]


def note(space, name):
    with space._context.read() as reader:
        return reader.state.note(name)


def say(space, *said, **where):
    """Each is retained and enriched by itself; answers the ids."""
    ids = []
    for text in said:
        ids.append(space.retain(text, **where).id)
        space.enrich()
    return ids


# ── facts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_fact_quotes_its_turn_exactly(space):
    """The quote is the turn's text from start to end, character by character, and names its entry."""
    said = "Hello! 🎉 I live in Lisbon, and I work at Acme. Isn't that nice?"
    (entry,) = say(space, said, conversation="c", project="p")
    found = derived(space)

    assert [(memory.predicate, memory.object_text) for memory in found] == [
        ("lives_in", "Lisbon"),
        ("works_at", "Acme"),
    ]
    for memory in found:
        assert memory.quote == said[memory.start : memory.end]
        assert memory.quote
        assert (memory.entry_id, memory.conversation, memory.project) == (entry, "c", "p")
        assert (memory.subject, memory.ordinal, memory.state) == ("user", 0, State.ACTIVE)


def test_an_entry_waits_until_the_worker_comes(space):
    """Retaining never waits for enrichment; the lag says what is left to do, and none is left after it."""
    space.retain("I live in Lisbon")
    waiting = space.overview.enrichment().waiting
    steps = space.enrich()
    done = space.overview.enrichment().waiting

    assert (waiting.entries, waiting.turns, waiting.nothing) == (1, True, False)
    assert steps > 0
    assert done.nothing
    assert space.enrich() == 0
    assert texts(space) == ["I live in Lisbon"]


def test_what_is_said_twice_is_one_memory_with_evidence(space):
    """Nothing is copied; every place is kept, each with its own quote."""
    first, second, third = say(space, "I live in Lisbon", "As I said, I live in Lisbon", "I live in Lisbon.")
    (memory,) = derived(space)
    places = evidence(space, memory)

    assert memory.entry_id == first
    assert [place.entry_id for place in places] == [second, third]
    for place in places:
        turn = next(turn for turn in space.turns() if turn.entry_id == place.entry_id)
        assert place.quote == turn.text[place.start : place.end]


def test_the_next_place_takes_over_when_the_first_is_forgotten(space):
    """It was still said. The last one forgotten takes the memory along."""
    first, second, third = say(space, "I live in Lisbon", "I live in Lisbon!", "I live in Lisbon.")
    space.forget(entries=[first])
    (memory,) = derived(space)

    assert memory.entry_id == second
    assert [place.entry_id for place in evidence(space, memory)] == [third]
    space.forget(entries=[second, third])
    assert derived(space) == []


def test_the_heir_of_what_was_replaced_is_replaced(space, clock):
    """Forgetting one of two places does not bring an old value back, and a replay does not either."""
    first, _ = say(space, "I live in Lisbon", "I live in Lisbon!")
    clock.advance(DAY)
    say(space, "I live in Rome")
    space.forget(entries=[first])
    before = [(memory.quote, memory.state) for memory in derived(space, superseded=True)]
    space.ledger.replay()

    assert before == [("I live in Lisbon", State.SUPERSEDED), ("I live in Rome", State.ACTIVE)]
    assert [(memory.quote, memory.state) for memory in derived(space, superseded=True)] == before


def test_greetings_and_questions_are_no_memories(space):
    """They stay in the ledger and can be searched there."""
    say(space, "Hi there!", "Thanks a lot", "Do I live in Lisbon?", "How are you?")

    assert derived(space) == []
    assert len(space.turns()) == 4


def test_enriching_again_changes_nothing(space):
    """Neither does a second program that does the same."""
    say(space, "I live in Lisbon", "I like jazz")
    before = derived(space)
    with space._context.store() as store:
        store.write(lambda writer: writer.state.set_derived(0))
    space.enrich()

    assert derived(space) == before
    assert [evidence(space, memory) for memory in before] == [[], []]


# ── replaced, contested, ended ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("old", "new", "days"),
    [
        ("I live in Lisbon", "Actually, I live in Rome", 0),
        ("I prefer dark mode", "I switched to light mode", 0),
        ("I live in Lisbon", "I moved to Berlin", 0),
        ("I live in Lisbon", "I live in Rome", 1),
        ("My favorite color is green", "My favorite color is blue", 400),
    ],
)
def test_a_later_word_replaces_the_value(space, clock, old, new, days):
    """By its words, or because another day has come. The old one is history, and recall tells the new one only."""
    say(space, old)
    clock.advance(DAY * days, seconds=1)
    say(space, new)
    before, after = derived(space, superseded=True)

    assert (before.state, before.tier, before.superseded_by) == (State.SUPERSEDED, Tier.COLD, after.id)
    assert before.superseded_at == after.created_at == clock.moment
    assert after.state is State.ACTIVE
    assert [hit.id for hit in space.recall(new).facts if hit.memory and hit.memory.derived] == [after.id]


def test_two_values_on_one_day_are_contested(space, clock):
    """Neither wins: both are marked, the conflict is listed, and recall says that they are at odds."""
    say(space, "I live in Lisbon")
    clock.advance(hours=23)
    say(space, "I live in Rome")
    left, right = derived(space)
    told = space.recall("Where do I live?")

    assert left.state is right.state is State.CONTESTED
    assert [{one.left.id, one.right.id} for one in space.review.conflicts()] == [{left.id, right.id}]
    assert [{one.left.id, one.right.id} for one in told.conflicts] == [{left.id, right.id}]
    assert "Lisbon" in told.text
    assert "Rome" in told.text


def test_somebody_can_settle_it(space):
    """The winner holds, the loser is replaced by it, on record: a replay comes to the same end."""
    say(space, "I live in Lisbon", "I live in Rome")
    left, right = derived(space)
    settled = space.review.resolve(left.id)

    def standing():
        return [(memory.id, memory.state, memory.superseded_by) for memory in derived(space, superseded=True)]

    expected = [(left.id, State.ACTIVE, None), (right.id, State.SUPERSEDED, left.id)]
    assert settled.state is State.ACTIVE
    assert standing() == expected
    assert space.review.conflicts() == []
    space.ledger.replay()
    space.enrich()
    assert standing() == expected
    assert space.review.conflicts() == []


def test_only_what_is_contested_can_be_settled(space):
    """A memory without a conflict, and one that nobody knows, are named in the refusal."""
    say(space, "I live in Lisbon")
    for id_ in (derived(space)[0].id, "nobody"):
        with pytest.raises(NotFound, match=id_):
            space.review.resolve(id_)


def test_saying_it_once_more_settles_it(space):
    """A later word of the user for one of the two values decides between them."""
    say(space, "I live in Lisbon", "I live in Rome", "I live in Rome")
    live = derived(space)

    assert [(memory.object_text, memory.state) for memory in live] == [("Rome", State.ACTIVE)]
    assert space.review.conflicts() == []


def test_an_assistant_never_overrules_a_user(space, clock):
    """Not on the same day, not later, not with `actually`; and a user overrules an assistant at once."""
    say(space, "I live in Lisbon")
    clock.advance(DAY * 30)
    say(space, "You live in Oslo", "Actually, you moved to Oslo", role="assistant")
    say(space, "You work at Acme", role="tool")
    say(space, "I work at Globex")

    assert [(memory.object_text, memory.state) for memory in derived(space)] == [
        ("Lisbon", State.ACTIVE),
        ("Globex", State.ACTIVE),
    ]


def test_a_system_message_says_nothing_about_anyone(space):
    """Instructions of an application are not what the user said."""
    say(space, "I live in Lisbon. Always answer in French.", role="system")

    assert derived(space) == []


def test_people_with_names_do_not_contradict_each_other(space):
    """Two speakers who both say `I` are two people."""
    say(space, "I live in Lisbon", speaker="Ann")
    say(space, "I live in Rome", speaker="Bob")
    found = derived(space)

    assert [(memory.subject, memory.state) for memory in found] == [
        ("ann", State.ACTIVE),
        ("bob", State.ACTIVE),
    ]
    assert space.review.conflicts() == []
    say(space, "I live in Oslo", speaker="Ann")
    assert [memory.subject for memory in derived(space) if memory.state is State.CONTESTED] == ["ann", "ann"]


def test_what_ended_is_replaced_by_nothing(space):
    """`No longer` ends a value; nothing is left active, and the end is on record."""
    say(space, "I live in Lisbon", "I no longer live in Lisbon")

    assert derived(space) == []
    assert texts(space, superseded=True) == ["I live in Lisbon", "I no longer live in Lisbon"]
    assert {memory.state for memory in derived(space, superseded=True)} == {State.SUPERSEDED}


def test_an_older_statement_that_arrives_late_is_history(space, clock):
    """An import of what was said last year does not overrule what was said this year."""
    say(space, "I live in Rome")
    say(space, "I live in Lisbon", at=clock.moment - 300 * DAY)
    live, late = sorted(derived(space, superseded=True), key=lambda memory: memory.seq)

    assert (live.object_text, live.state) == ("Rome", State.ACTIVE)
    assert (late.object_text, late.state, late.superseded_by) == ("Lisbon", State.SUPERSEDED, live.id)
    assert late.tier is Tier.COLD
    assert space.review.conflicts() == []


def test_a_stored_memory_can_replace_a_derived_one(space):
    """And still does after a replay: what was decided on purpose is not undone by reading the turn again."""
    say(space, "I like jazz")
    (memory,) = derived(space)
    stored = space.store("preference", "Prefers silence", supersedes=memory.id)
    before = space.memory(memory.id)
    space.ledger.replay()
    space.enrich()
    after = space.memory(memory.id)

    assert (before.state, before.superseded_by) == (State.SUPERSEDED, stored.id)
    assert (after.state, after.superseded_by) == (State.SUPERSEDED, stored.id)


def test_what_was_said_before_a_fact_is_replaced_belongs_to_it(space):
    """Although the worker had not come to it yet: it is the same after a replay."""
    say(space, "I like jazz")
    (memory,) = derived(space)
    space.retain("I like jazz")
    space.store("preference", "Prefers silence", supersedes=memory.id)
    space.enrich()
    before = derived(space, superseded=True)
    space.ledger.replay()

    assert [(each.id, each.state) for each in before] == [(memory.id, State.SUPERSEDED)]
    assert derived(space, superseded=True) == before


# ── tiers and times ──────────────────────────────────────────────────────────────────────────────────────────────


def test_what_matters_most_is_always_told(space):
    """An allergy is hot and among the facts whatever is asked; what they like is in the text when it is relevant; an
    assistant's claim is worth half and never hot."""
    say(space, "I am allergic to peanuts", "I like jazz")
    say(space, "You work at Acme", role="assistant")
    tiers = {memory.object_text: memory.tier for memory in derived(space)}
    importance = {memory.object_text: memory.importance for memory in derived(space)}
    joke = space.recall("tell me a joke")

    assert tiers == {"allergic to peanuts": Tier.HOT, "jazz": Tier.WARM, "Acme": Tier.WARM}
    assert importance["allergic to peanuts"] > importance["jazz"] > importance["Acme"] > 0
    assert "allergic to peanuts" in [hit.memory.object_text for hit in joke.facts]
    assert "jazz" not in joke.text
    assert "jazz" in space.recall("what music do I like?").text


def test_times_are_told_against_the_entry_not_the_import(space):
    """`Yesterday` in an entry of March is a day in March, whenever it is imported."""
    said = datetime(2024, 3, 10, 15, 0, tzinfo=UTC)
    say(space, "I went to Porto yesterday", at=said)
    (memory,) = derived(space)
    (told,) = memory.times

    assert (told.begin, told.until) == (datetime(2024, 3, 9, tzinfo=UTC), datetime(2024, 3, 10, tzinfo=UTC))
    assert told.raw == "yesterday"
    assert memory.created_at == said


# ── trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("where", ["reading", "filing"])
def test_a_poison_entry_is_isolated_and_counted(space, monkeypatch, where):
    """One entry that nothing can be made of keeps no other from being read; it is counted once, after a replay too."""
    poison = "I live in Poisonville"
    if where == "reading":
        original = deriver.extract

        def extract(text, **options):
            if text == poison:
                raise ValueError("poison")
            return original(text, **options)

        monkeypatch.setattr(deriver, "extract", extract)
    else:
        file_memory = worker.file_memory

        def file_or_fail(writer, memory, catalog, **options):
            file_memory(writer, memory, catalog, **options)
            if memory.quote == poison:
                raise AssertionError("poison")

        monkeypatch.setattr(worker, "file_memory", file_or_fail)
    for number in range(3):
        space.retain(f"I like jazz number {number}")
    space.retain(poison)
    space.retain("I work at Acme")
    space.enrich()
    read = texts(space)
    counted = note(space, worker.POISONED)
    space.ledger.replay()
    space.enrich()

    assert read == [f"I like jazz number {number}" for number in range(3)] + ["I work at Acme"]
    assert counted == "1"
    assert space.overview.enrichment().waiting.nothing
    assert [turn.text for turn in space.turns() if turn.text == poison] == [poison]
    assert texts(space) == read
    assert note(space, worker.POISONED) == "1"


def test_an_embedding_model_that_is_away_loses_nothing(open_plane):
    """Facts are there, vectors follow when it is back; a recall meanwhile goes by words and says so."""
    model = BagOfWords()
    space = open_plane(embedder=model).space("alice")
    space.retain("I live in Lisbon")
    model.away = True
    with pytest.raises(EmbeddingUnavailable):
        space.enrich()
    told = space.recall("Where do I live?")
    model.away = False
    space.enrich()

    assert texts(space) == ["I live in Lisbon"]
    assert "Lisbon" in told.text
    assert told.degraded
    assert space.overview.enrichment().waiting.nothing
    assert space.recall("Where do I live?").degraded == ()


# ── episodes ─────────────────────────────────────────────────────────────────────────────────────────────────────


def hold(space, clock, *said, conversation="c"):
    """A talk with a minute between its turns; answers the ids."""
    ids = []
    for text in said:
        ids.append(space.retain(text, conversation=conversation).id)
        clock.advance(minutes=1)
    return ids


def test_a_sitting_is_told_once_it_is_over(space, clock):
    """Not before a pause, and then in its own sentences, with who said them."""
    hold(space, clock, *TALK)
    space.enrich()
    during = episodes(space)
    clock.advance(hours=2)
    space.enrich()
    (told,) = episodes(space)

    assert during == []
    assert told.conversation == "c"
    assert (told.created_at, told.updated_at) == (MORNING, MORNING + timedelta(minutes=3))
    rest = told.text
    for sentence in TALK:
        rest = rest.replace(sentence, "")
    assert rest.strip() == "user:"
    assert space.recall("How is my dog Biscuit?", conversation="c").episodes[0].id == told.id
    assert space.recall("How is my dog Biscuit?").episodes == ()


def test_the_next_turn_after_a_pause_ends_a_sitting(space, clock):
    """Without any worker in between: the two sittings are two episodes."""
    hold(space, clock, *TALK)
    clock.advance(hours=3)
    hold(space, clock, *(text.replace("Biscuit", "Pebble") for text in TALK))
    clock.advance(hours=3)
    space.enrich()

    assert sorted("Biscuit" in told.text for told in episodes(space)) == [False, True]


def test_short_talks_and_turns_outside_of_any_are_not_told(space, clock):
    """A few turns are read as quickly as they are summed up."""
    hold(space, clock, *TALK[:3])
    hold(space, clock, *TALK, conversation=None)
    clock.advance(hours=3)
    space.enrich()

    assert episodes(space) == []


@pytest.mark.parametrize("which", range(4))
def test_an_episode_is_told_anew_without_what_was_forgotten(space, clock, which):
    """Whether or not it quoted the turn: its words, and the choice it had a part in, are gone. As a replay tells it."""
    ids = hold(space, clock, *TALK, "And Biscuit sleeps on the old green sofa every single night.")
    clock.advance(hours=3)
    space.enrich()
    (before,) = episodes(space)
    space.forget(entries=[ids[which]])
    at_once = episodes(space)
    space.enrich()
    (after,) = episodes(space)
    space.ledger.replay()
    space.enrich()

    assert TALK[which] in before.text or before.text
    assert all(TALK[which] not in told.text for told in at_once)
    assert TALK[which] not in after.text
    assert episodes(space) == [after]


def test_a_sitting_that_goes_on_is_not_told_because_another_lost_a_turn(space, clock):
    """What is over is told anew at once; what is not over waits for its end."""
    gone, *_ = hold(space, clock, *TALK, "And Biscuit sleeps on the old green sofa every single night.")
    clock.advance(hours=3)
    hold(space, clock, *(text.replace("Biscuit", "Pebble") for text in TALK))
    space.enrich()
    space.forget(entries=[gone])
    space.enrich()
    during = ["Biscuit" in told.text for told in episodes(space)]
    hold(space, clock, "Pebble barks.")
    clock.advance(hours=3)
    space.enrich()

    assert during == [True]
    assert ["Biscuit" in told.text for told in episodes(space)] == [False, True]


def test_an_episode_goes_when_too_little_is_left(space, clock):
    """Three turns are no sitting worth telling, in memory as after a replay."""
    ids = hold(space, clock, *TALK)
    clock.advance(hours=3)
    space.enrich()
    assert episodes(space)
    space.forget(entries=[ids[1]])
    space.enrich()
    left = episodes(space)
    space.ledger.replay()
    space.enrich()

    assert left == episodes(space) == []


def test_a_sitting_goes_on_when_more_of_it_arrives_late(space, clock):
    """An import in pieces, with a worker in between, ends as one in a single piece: what is told of a sitting depends on
    its turns alone."""
    said = [f"{text} Day {number}." for number in range(3) for text in TALK]
    begun = clock.moment - 30 * DAY
    for number, text in enumerate(said):
        space.retain(text, conversation="c", at=begun + timedelta(minutes=number))
        if number in {5, 9}:
            space.enrich()
    space.enrich()
    in_pieces = episodes(space)
    space.ledger.replay()
    space.enrich()

    assert in_pieces == episodes(space)


def test_an_episode_cannot_be_deleted_by_itself(space, clock):
    """It would be told anew; the refusal says what to forget instead."""
    hold(space, clock, *TALK)
    clock.advance(hours=3)
    space.enrich()
    (told,) = episodes(space)
    with pytest.raises(InvalidRequest, match="conversation or entries"):
        space.delete(told.id)


def test_forgetting_the_end_of_a_talk_keeps_its_beginning(space, clock):
    """A scope in time takes the turns of that time and no others, whatever an episode quotes."""
    hold(space, clock, *TALK)
    last = clock.moment - timedelta(minutes=1)
    clock.advance(hours=3)
    space.enrich()
    receipt = space.forget(since=last)

    assert receipt.counts["turns"] == 1
    assert [turn.text for turn in reversed(space.turns())] == list(TALK[:3])


# ── another model ────────────────────────────────────────────────────────────────────────────────────────────────


def vectors_of(plane: Memplane, model: BagOfWords):
    """How many turns and memories have a vector of this model."""
    with plane.space("alice")._context.read() as reader:
        number = reader.vectors.model(model.model_id, model.dimension)
        if number is None:
            return (0, 0)
        return (
            len(reader.vectors.turns(number, after=0, limit=1_000)),
            len(reader.vectors.memories(number, after=0, limit=1_000)),
        )


@pytest.mark.parametrize("turns", [True, False], ids=["turns and memories", "memories only"])
def test_another_model_embeds_anew_and_recall_says_so(open_plane, turns):
    """Vectors of two models are never compared: until all are made anew, an answer says `degraded`. Going back to the
    first model is a change like any other."""
    models = [BagOfWords("first", 16), BagOfWords("second", 24)]
    for model in (*models, models[0]):
        plane = open_plane(embedder=model, recall_work_ms=0)
        space = plane.space("alice")
        if model is models[0] and not model.embedded:
            space.store("fact", "The lighthouse is red")
            if turns:
                space.retain("I live in Lisbon")
        whole = (1, 2) if turns else (0, 1)
        before = space.recall("lighthouse")
        space.enrich()
        after = space.recall("lighthouse")

        assert any("vectors" in reason for reason in before.degraded)
        assert after.degraded == ()
        assert vectors_of(plane, model) == whole
        assert space.overview.enrichment().waiting.nothing
        asked = len(model.embedded)
        space.enrich()
        assert len(model.embedded) == asked


def test_a_replay_uses_the_vectors_it_finds(open_plane):
    """What the same text was embedded for once is not paid for twice."""
    model = BagOfWords()
    space = open_plane(embedder=model).space("alice")
    for text in ("I live in Lisbon", "I like jazz", "I work at Acme"):
        space.retain(text, conversation="c")
    space.enrich()
    asked = len(model.embedded)
    space.ledger.replay()
    space.enrich()

    assert asked
    assert len(model.embedded) == asked
    assert space.recall("jazz").degraded == ()


def test_the_turn_after_a_forgotten_one_is_embedded_anew(open_plane):
    """A turn's vector is made of the turn before it, too; when that is forgotten, nothing of it is left in a vector."""
    forgetting, never = (open_plane(embedder=BagOfWords()).space(owner) for owner in ("alice", "bob"))
    gone = forgetting.retain("The treasure is under the oak", conversation="c").id
    for space in (forgetting, never):
        space.retain("That is what the pirate said", conversation="c")
        space.enrich()
    forgetting.forget(entries=[gone])
    forgetting.enrich()

    def vectors(space):
        with space._context.read() as reader:
            number = reader.vectors.model("bag-1", 32)
            assert number is not None
            return [
                (vector.digest, vector.vector) for _, vector in reader.vectors.turns(number, after=0, limit=9)
            ]

    assert vectors(forgetting) == vectors(never)
