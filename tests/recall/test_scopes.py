"""What is said for one project or conversation alone is told there and nowhere else, and so is what is read out of it."""

import pytest
from tests.conftest import HandClock
from tests.support.stub_embedder import StubEmbedder

from engines import both_if_thorough
from memplane.adapters.clawdapus.importer import append_history, history_lines
from memplane.errors import InvalidRequest
from memplane.ledger.payloads import decode
from memplane.recall.result import Limits
from memplane.types import State, Visibility, within

pytestmark = both_if_thorough

HERE = {"project": {"project": "p"}, "conversation": {"conversation": "c"}}
ELSEWHERE = [{}, {"project": "q"}, {"conversation": "d"}, {"conversation": "p", "project": "c"}]


def said(space, text, scope, **rest):
    return space.retain(text, conversation="c", project="p", scope=scope, **rest)


# ── what may be asked ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scope", ["project", "conversation"])
def test_what_belongs_to_a_place_names_it(space, scope):
    """A scope without the name it needs is refused, and nothing is kept."""
    with pytest.raises(InvalidRequest, match=f"scope {scope} needs a {scope}"):
        space.retain("I live in Rome", scope=scope)

    assert space.overview.stats().entries == 0


def test_an_unknown_scope_is_refused(space):
    with pytest.raises(InvalidRequest, match="use one of global, project, conversation") as refused:
        space.retain("I live in Rome", scope="team")

    assert refused.value.field == "scope"


def test_the_ledger_says_the_scope_only_where_there_is_one(space):
    """An entry that is told everywhere reads as it always did."""
    said(space, "everywhere", "global")
    said(space, "here", "project")
    everywhere, here = space.ledger.entries()

    assert b"scope" not in everywhere.body
    assert decode(here).scope is Visibility.PROJECT


def test_a_scope_without_its_place_cannot_be_told():
    """Not even one that an import brings: the entry is unreadable rather than told everywhere."""
    with pytest.raises(ValueError, match="needs a project"):
        within(Visibility.PROJECT, conversation="c", project=None)


# ── who is told ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scope", ["project", "conversation"])
@pytest.mark.parametrize("embeds", [True, False])
def test_only_who_names_the_place_is_told(open_plane, scope, embeds):
    """By recall, in whatever part of it, by words, by search and by the brief."""
    space = open_plane(embedder=StubEmbedder() if embeds else None).space("alice")
    said(space, "I live in Rome and I prefer short answers.", scope)
    space.enrich()

    for asked in (HERE[scope], *ELSEWHERE):
        told = space.recall("Where do I live? Rome?", **asked)
        parts = [told.text, str(told.hits), str(told.conversation_history), str(told.working_memory)]
        others = (
            space.recall_by_words("Rome", **asked).blocks,
            space.recall_by_words("Rome", **asked).text,
            space.search("Rome", **asked),
            space.brief(**asked).entries,
        )
        heard = asked == HERE[scope]
        assert any("Rome" in part for part in parts) is heard, asked
        assert [bool(found) for found in others] == [heard] * 4, asked


def test_a_conversation_shows_its_turns_to_who_may_hear_them(space):
    """Its history holds what was said for the project only when the project is named too."""
    said(space, "for the project", "project")
    said(space, "for all", "global")
    said(space, "between us", "conversation")

    texts = [turn.text for turn in space.recall("?", conversation="c").conversation_history]
    both = [turn.text for turn in space.recall("?", conversation="c", project="p").conversation_history]

    assert texts == ["for all", "between us"]
    assert both == ["for the project", "for all", "between us"]


def test_the_owner_sees_everything(space):
    """Listing is not telling."""
    said(space, "I live in Rome.", "conversation")
    space.enrich()

    assert [turn.text for turn in space.turns()] == ["I live in Rome."]
    assert len(space.overview.newest_memories(9)) == 1
    assert space.forget(conversation="c", dry_run=True).counts["turns"] == 1


def test_why_not_says_where_it_is_told(space):
    """In words, for an entry and for a memory; who may hear it is told something else."""
    kept = said(space, "I live in Rome.", "project")
    space.enrich()
    (memory,) = space.overview.newest_memories(9)

    for id_ in (kept.id, memory.id):
        assert space.why_not("Rome", id_) == "It is limited to project 'p', and is returned only there."
    assert space.why_not("Rome", kept.id, project="p") == "It is returned."


def test_hidden_turns_take_no_places(open_plane):
    """However many there are elsewhere, and however well they fit: what may be told here is found."""
    space = open_plane(embedder=StubEmbedder()).space("alice")
    for number in range(40):
        said(space, f"Rome Rome Rome {number}: I love Rome.", "project")
    seen = space.retain("A week in Rome, once.")
    space.enrich()

    told = space.recall("Rome", limits=Limits(turns=1, facts=1))
    assert [block.id for block in told.blocks if block.kind == "turn"] == [seen.id]


# ── what is read out of it ───────────────────────────────────────────────────────────────────────────────────────


def test_places_do_not_argue(space, clock: HandClock):
    """What holds in a project neither replaces nor contests what holds everywhere, nor is it evidence for it."""
    space.retain("I live in Rome.")
    said(space, "Actually, I live in Oslo now.", "project")
    said(space, "I live in Rome.", "conversation")
    clock.advance(days=30)
    space.retain("I live in Rome.", project="q", scope="project")
    space.enrich()
    memories = space.overview.newest_memories(9)

    assert {memory.within for memory in memories} == {None, "project:p", "conversation:c", "project:q"}
    assert {memory.state for memory in memories} == {State.ACTIVE}
    assert all(len(space.evidence(memory.id)) == 1 for memory in memories)
    assert space.review.conflicts() == []


def test_within_a_place_later_words_count(space):
    """There it goes as everywhere: the update replaces what was said before, and the same again is evidence."""
    said(space, "I live in Oslo.", "project")
    said(space, "I live in Oslo.", "project")
    said(space, "Actually, I live in Rome.", "project")
    space.enrich()
    told = space.recall("Where do I live?", project="p")
    (old,) = [memory for memory in space.overview.chain(_first(space)) if memory.state is State.SUPERSEDED]

    assert [hit.memory.object_text for hit in told.answer_facts] == ["Rome"]
    assert len(space.evidence(old.id)) == 2


def _first(space) -> str:
    hits = space.search("Oslo", project="p", turns=False, include_superseded=True)
    return min((hit.memory for hit in hits), key=lambda memory: memory.seq).id


def test_a_conflict_is_told_only_where_both_sides_are(space):
    said(space, "I live in Oslo.", "project")
    said(space, "I live in Rome.", "project")
    space.enrich()

    assert len(space.review.conflicts()) == 1
    assert len(space.recall("Where do I live?", project="p").conflicts) == 1
    assert space.recall("Where do I live?").conflicts == ()


def test_an_episode_has_one_audience(space, clock: HandClock):
    """Of a conversation that speaks in two places, each is told for itself."""
    for number in range(5):
        said(space, f"We talked about the orchard, part {number}, for a long while.", "global")
        said(space, f"The password of the orchard door is tulip number {number}, keep it here.", "project")
        clock.advance(minutes=1)
    clock.advance(hours=3)
    space.enrich()
    here = space.recall("orchard", conversation="c", project="p").episodes
    there = space.recall("orchard", conversation="c").episodes

    assert {episode.within for episode in here} == {None, "project:p"}
    assert [episode.within for episode in there] == [None]
    assert "tulip" not in there[0].text


def test_a_replay_tells_the_same(space, clock: HandClock):
    """Turns, memories and episodes keep their place."""
    for number in range(5):
        said(
            space, f"I live in Rome, street number {number}, by the river.", ("global", "project")[number % 2]
        )
    clock.advance(hours=3)
    space.enrich()
    before = space.turns(), sorted((m.id, m.within, m.state) for m in space.overview.newest_memories(99))
    space.ledger.replay()
    space.enrich()

    assert (
        space.turns(),
        sorted((m.id, m.within, m.state) for m in space.overview.newest_memories(99)),
    ) == before


def test_a_session_history_keeps_the_place(plane, space, tmp_path):
    """A line that goes out and comes back elsewhere is told no wider than it was."""
    said(space, "I live in Rome.", "project")
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"\n".join(history_lines(space)) + b"\n")
    other = plane.space("bob")
    append_history(other, path)
    other.ledger.catch_up()

    assert other.search("Rome") == []
    assert len(other.search("Rome", memories=False, turns=True)) == 0
    assert [block.kind for block in other.recall("Rome", project="p").blocks] == ["turn"]
