"""The enrichment half of the contract: marks, vectors, claims and what they are at odds with, evidence, episodes."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.conftest import MORNING, a_memory

from memplane.clock import to_instant
from memplane.storage.claims import Evidence
from memplane.storage.episodes import OpenSitting
from memplane.storage.filter import Filter, ForgetScope
from memplane.storage.memories import Rating
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX, turn_number
from memplane.storage.state import Marks
from memplane.storage.vectors import MemoryVector, TurnVector
from memplane.types import Kind, Memory, MentionedTime, State, Tier, Turn
from recall_reads import candidates, episodes

NOW = Filter(now=0)
ALL = 1_000
LAST = 1 << 60


def number(turn: Turn) -> int:
    return turn_number(turn.seq, turn.ordinal)


def turn_vector(turn: Turn, mark: bytes = b"one", vector: bytes | None = b"\x01\x02") -> TurnVector:
    return TurnVector(number(turn), 3, False, mark, vector)


def claimed(scribe, text: str, *, subject="user", predicate="lives_in", **fields) -> Memory:
    """A memory as the worker derives it, of a turn that says nothing else."""
    turn = scribe.turn(text, conversation=fields.get("conversation"))
    made = a_memory(
        text,
        id=fields.pop("id", f"fact-{turn.entry_id}"),
        seq=turn.seq,
        ordinal=0,
        quote=text,
        extractor="rules-1",
        subject=subject,
        predicate=predicate,
        object_text=text.rsplit(maxsplit=1)[-1],
        claim="{}",
        **fields,
    )
    scribe.store.write(lambda writer: writer.memories.add([made]))
    with scribe.store.read() as reader:
        kept = reader.memories.get(made.id)
    assert kept is not None
    return kept


def episode(
    scribe, turns: list[Turn], *, id: str, conversation: str = "c", quoting: list[Turn], **fields
) -> Memory:
    made = a_memory(
        " ".join(turn.text for turn in quoting),
        id=id,
        seq=quoting[0].seq,
        kind=Kind.EPISODE,
        ordinal=0,
        conversation=conversation,
        extractor="episode-1",
        created_at=turns[0].at,
        updated_at=turns[-1].at,
        **fields,
    )
    seqs = sorted({turn.seq for turn in quoting})
    scribe.store.write(lambda writer: writer.episodes.add([(made, seqs)]))
    return made


def erase(store, *things) -> None:
    victims = [(thing.seq, thing.entry_id) for thing in things]
    store.write(lambda writer: writer.ledger.erase(victims, position=1, at=1, reason="test"))


def marks(store):
    with store.read() as reader:
        return reader.state.marks()


def ids(memories) -> list[str]:
    return [memory.id for memory in memories]


def state_of(store, memory: Memory) -> State:
    with store.read() as reader:
        found = reader.memories.get(memory.id)
    assert found is not None
    return found.state


# ── marks ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_marks_of_an_empty_space_are_nought(scribe):
    """Nothing is derived, indexed or embedded, and the first thing that is changes a mark."""
    assert marks(scribe.store) == Marks(0, 0, 0, 0, 0, 0, 0)


def test_marks_say_how_far_a_space_is(scribe):
    """Cursor, index, derivation and both stamps, each by itself; inside a write as in a read."""
    turn = scribe.turn("I live in Rome")
    memory = scribe.memory("Lives in Rome")
    scribe.index()

    def work(writer):
        model = writer.vectors.use_model("m", 2)
        writer.vectors.add_turns(model, [turn_vector(turn)], until=number(turn))
        writer.vectors.add_memories(model, [MemoryVector(memory.id, b"d", b"\x01\x00")])
        writer.state.set_derived(turn.seq)
        return writer.state.marks()

    seen_inside = scribe.store.write(work)
    seen = marks(scribe.store)

    assert seen == seen_inside
    assert (seen.cursor, seen.indexed, seen.derived) == (memory.seq, number(turn), turn.seq)
    assert seen.last_turn == number(turn)
    assert seen.turn_stamp > 0
    assert seen.memory_stamp > 0
    assert seen.generation == 0


@pytest.mark.parametrize("how", ["erase", "clear", "purge", "drop_episodes"])
def test_the_generation_grows_whenever_rows_go(scribe, how):
    """Who keeps a cache must see that it may hold what is gone, by whichever way it went."""
    turns = scribe.turns(["one", "two"], conversation="c")
    episode(scribe, turns, id="ep", quoting=turns)
    memory = scribe.memory("replaced")
    scribe.store.write(lambda writer: writer.memories.supersede(memory.id, by="x", at=1))
    before = marks(scribe.store).generation
    if how == "erase":
        erase(scribe.store, turns[0])
    elif how == "clear":
        scribe.store.write(lambda writer: writer.state.clear_projection())
    elif how == "purge":
        scribe.store.write(lambda writer: writer.memories.purge_superseded(before=2))
    else:
        scribe.store.write(lambda writer: writer.episodes.drop("c"))

    assert marks(scribe.store).generation > before


def test_the_generation_stays_while_rows_only_come(scribe):
    """Otherwise every write would make every cache begin anew."""
    turn = scribe.turn("hello")
    memory = scribe.memory("a memory")
    scribe.store.write(lambda writer: writer.memories.supersede(memory.id, by="x", at=9))
    scribe.store.write(lambda writer: writer.memories.purge_superseded(before=2))
    scribe.store.write(
        lambda writer: writer.vectors.add_turns(
            writer.vectors.use_model("m", 2), [turn_vector(turn)], until=number(turn)
        )
    )

    assert marks(scribe.store).generation == 0


def test_clearing_the_projection_begins_deriving_anew(scribe):
    """Derivation and embedding start from the first entry; what was derived is gone, vectors wait to be used again."""
    turn = scribe.turn("I live in Rome", conversation="c")
    first, second = claimed(scribe, "lives in Rome"), claimed(scribe, "lives in Oslo")
    episode(scribe, [turn], id="ep", quoting=[turn])

    def work(writer):
        model = writer.vectors.use_model("m", 2)
        writer.vectors.add_turns(model, [turn_vector(turn)], until=number(turn))
        writer.claims.contest(first.id, second.id)
        writer.claims.add_evidence(Evidence(first.id, second))
        writer.episodes.set_pending(OpenSitting("c", 1, 2))
        writer.state.set_derived(turn.seq)
        writer.state.clear_projection()
        return model

    model = scribe.store.write(work)
    with scribe.store.read() as reader:
        seen = reader.state.marks()
        left = (
            reader.claims.conflicts(()),
            reader.claims.evidence([first.id]),
            reader.episodes.pending(before=LAST, limit=ALL),
            episodes(reader, ["c"], NOW, limit=ALL),
        )
        kept = reader.vectors.turn_digests(model, [number(turn)])

        assert (seen.derived, seen.cursor, seen.indexed) == (0, 0, 0)
        assert reader.vectors.embedded(model) == 0
        assert left == ([], [], [], [])
        assert kept == {number(turn): b"one"}


# ── vectors of turns ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_model_has_one_number(scribe):
    """By id and dimension; unknown until it is used."""
    with scribe.store.read() as reader:
        assert reader.vectors.model("m", 2) is None
    one = scribe.store.write(lambda writer: writer.vectors.use_model("m", 2))
    again = scribe.store.write(lambda writer: writer.vectors.use_model("m", 2))
    wider = scribe.store.write(lambda writer: writer.vectors.use_model("m", 3))
    other = scribe.store.write(lambda writer: writer.vectors.use_model("n", 2))

    with scribe.store.read() as reader:
        assert (reader.vectors.model("m", 2), reader.vectors.model("m", 3), reader.vectors.model("n", 2)) == (
            one,
            wider,
            other,
        )
    assert one == again
    assert len({one, wider, other}) == 3


def test_turn_vectors_are_added_and_replaced(scribe):
    """A turn has one vector. One that is made anew has a new, larger stamp, so that a cache sees it."""
    turns = scribe.turns(["one", "two"])
    model = scribe.store.write(lambda writer: writer.vectors.use_model("m", 2))

    def add(vectors):
        scribe.store.write(lambda writer: writer.vectors.add_turns(model, vectors, until=number(turns[-1])))

    add([turn_vector(turn) for turn in turns])
    before = marks(scribe.store).turn_stamp
    add([turn_vector(turns[0], b"two", b"\x03\x04")])
    with scribe.store.read() as reader:
        all_of_them = reader.vectors.turns(model, after=0, limit=ALL)
        since = reader.vectors.turns(model, after=before, limit=ALL)

        assert [(vector.n, vector.digest) for _, vector in all_of_them] == [
            (number(turns[1]), b"one"),
            (number(turns[0]), b"two"),
        ]
        assert [vector.n for _, vector in since] == [number(turns[0])]
        assert reader.state.marks().turn_stamp == since[-1][0] > before
        assert reader.vectors.turns_at(model, [number(turn) for turn in turns]) == {
            number(turns[0]): b"\x03\x04",
            number(turns[1]): b"\x01\x02",
        }
        assert reader.vectors.turns(model, after=0, limit=1) == all_of_them[:1]


def test_a_stamp_is_never_used_again(scribe):
    """Not even when the vector that had the last one went: a cache that saw it would miss the next."""
    gone, kept = scribe.turns(["one", "two"])
    model = scribe.store.write(lambda writer: writer.vectors.use_model("m", 2))
    scribe.store.write(
        lambda writer: writer.vectors.add_turns(model, [turn_vector(gone)], until=number(gone))
    )
    last = marks(scribe.store).turn_stamp
    erase(scribe.store, gone)
    scribe.store.write(
        lambda writer: writer.vectors.add_turns(model, [turn_vector(kept)], until=number(kept))
    )

    assert marks(scribe.store).turn_stamp > last


def test_a_turn_that_is_gone_gets_no_vector(scribe):
    """It was forgotten while its vector was made; nothing of it comes back."""
    gone, kept = scribe.turns(["one", "two"])
    erase(scribe.store, gone)

    def work(writer):
        model = writer.vectors.use_model("m", 2)
        writer.vectors.add_turns(model, [turn_vector(gone), turn_vector(kept)], until=number(kept))
        return model

    model = scribe.store.write(work)

    with scribe.store.read() as reader:
        assert [vector.n for _, vector in reader.vectors.turns(model, after=0, limit=ALL)] == [number(kept)]
        assert reader.vectors.embedded(model) == number(kept)


def test_a_vector_may_be_missing(scribe):
    """Without an embedding model, what else is known about a turn is kept."""
    turn = scribe.turn("is it late?")

    def work(writer):
        model = writer.vectors.use_model("none", 0)
        writer.vectors.add_turns(model, [TurnVector(number(turn), 2, True, b"d", None)], until=number(turn))
        return model

    model = scribe.store.write(work)
    with scribe.store.read() as reader:
        (head,) = reader.turns.heads(after=0, until=LAST, limit=ALL)

        assert (head.words, bool(head.asks)) == (2, True)
        assert reader.vectors.turns_at(model, [number(turn)]) == {}
        assert reader.vectors.turn_digests(model, [number(turn)]) == {number(turn): b"d"}


def test_each_model_has_its_own_cursor(scribe):
    """What one model has embedded says nothing about another."""
    turn = scribe.turn("one")

    def work(writer):
        first = writer.vectors.use_model("m", 2)
        writer.vectors.add_turns(first, [turn_vector(turn)], until=number(turn))
        return first, writer.vectors.use_model("n", 2)

    first, second = scribe.store.write(work)

    with scribe.store.read() as reader:
        assert reader.vectors.embedded(second) == 0
        assert reader.vectors.turn_digests(first, [number(turn)]) == {number(turn): b"one"}
        assert reader.vectors.turn_digests(second, [number(turn)]) == {}
        assert reader.vectors.turns(second, after=0, limit=ALL) == []


def test_a_model_that_comes_back_has_lost_what_another_replaced(scribe):
    """A turn has room for one vector. When the first model is used again, `embedded` promises nothing that is not
    there any more."""
    turn = scribe.turn("one")

    def embed(name):
        def work(writer):
            model = writer.vectors.use_model(name, 2)
            done = writer.vectors.embedded(model)
            if done < number(turn):
                writer.vectors.add_turns(model, [turn_vector(turn)], until=number(turn))
            return model

        return scribe.store.write(work)

    first = embed("m")
    embed("n")
    again = embed("m")

    with scribe.store.read() as reader:
        assert again == first
        assert reader.vectors.embedded(first) == number(turn)
        assert reader.vectors.turns_at(first, [number(turn)]) == {number(turn): b"\x01\x02"}


def test_a_turn_can_be_embedded_again(scribe):
    """Its vector is gone at once, and what else is known about it stays; it waits until it has another one."""
    first, second, bare = scribe.turns(["one", "is it two?", "three"])
    vectors = [turn_vector(first), TurnVector(number(second), 3, True, b"d", b"\x01\x00")]
    model = scribe.store.write(lambda writer: writer.vectors.use_model("m", 2))
    scribe.store.write(lambda writer: writer.vectors.add_turns(model, vectors, until=number(second)))
    scribe.store.write(lambda writer: writer.vectors.reset_turns([number(second), number(bare)]))
    with scribe.store.read() as reader:
        assert reader.vectors.stale_turns(limit=9) == [number(second)]
        assert reader.vectors.turns_at(model, [number(first), number(second)]).keys() == {number(first)}
        assert reader.vectors.turn_digests(model, [number(second)]) == {number(second): b""}
        assert bool(reader.turns.heads(after=number(first), until=LAST, limit=1)[0].asks)
    scribe.store.write(lambda writer: writer.vectors.add_turns(model, vectors[1:], until=number(second)))

    with scribe.store.read() as reader:
        assert reader.vectors.stale_turns(limit=9) == []
        assert reader.vectors.turns_at(model, [number(second)]) == {number(second): b"\x01\x00"}


# ── vectors of memories ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_waits_until_it_has_a_vector(scribe):
    """Those that wait come in their order; adding a vector, or keeping the one from before, ends the wait."""
    first, second, third = (scribe.memory(text) for text in ("one", "two", "three"))
    with scribe.store.read() as reader:
        assert ids(reader.vectors.pending_memories(limit=2)) == [first.id, second.id]
        assert reader.vectors.pending_memory_count() == 3

    def work(writer):
        model = writer.vectors.use_model("m", 2)
        writer.vectors.add_memories(model, [MemoryVector(second.id, b"d", b"\x01\x00")])
        writer.vectors.keep_memories(model, [third.id])

    scribe.store.write(work)

    with scribe.store.read() as reader:
        assert ids(reader.vectors.pending_memories(limit=9)) == [first.id]
        assert reader.vectors.pending_memory_count() == 1


def test_memory_vectors_are_added_and_replaced(scribe):
    """As those of turns are; each says which turn its memory was read out of."""
    stored, derived = scribe.memory("stored"), claimed(scribe, "lives in Rome")
    model = scribe.store.write(lambda writer: writer.vectors.use_model("m", 2))

    def add(*vectors):
        scribe.store.write(lambda writer: writer.vectors.add_memories(model, vectors))

    add(MemoryVector(stored.id, b"a", b"\x01\x00"), MemoryVector(derived.id, b"b", b"\x02\x00"))
    before = marks(scribe.store).memory_stamp
    add(MemoryVector(stored.id, b"c", b"\x03\x00"))
    with scribe.store.read() as reader:
        found = [vector for _, vector in reader.vectors.memories(model, after=0, limit=ALL)]
        since = reader.vectors.memories(model, after=before, limit=ALL)

        assert found == [
            MemoryVector(derived.id, b"b", b"\x02\x00", turn_number(derived.seq, 0)),
            MemoryVector(stored.id, b"c", b"\x03\x00", None),
        ]
        assert [stamp for stamp, _ in since] == [reader.state.marks().memory_stamp]
        assert reader.vectors.memories_of(model, [stored.id, "other"]) == {stored.id: b"\x03\x00"}
        assert reader.vectors.memory_digests(model, [derived.id, "other"]) == {derived.id: b"b"}


def test_a_memory_that_is_gone_gets_no_vector(scribe):
    """It was forgotten while its vector was made."""
    gone = scribe.memory("gone")
    erase(scribe.store, gone)

    def work(writer):
        model = writer.vectors.use_model("m", 2)
        writer.vectors.add_memories(model, [MemoryVector(gone.id, b"d", b"\x01\x00")])
        return model

    model = scribe.store.write(work)

    with scribe.store.read() as reader:
        assert reader.vectors.memory_digests(model, [gone.id]) == {}
        assert reader.vectors.memories(model, after=0, limit=ALL) == []


def test_another_model_makes_memories_wait(scribe):
    """Old vectors stay until they are replaced; using the same model again changes nothing."""
    memory = scribe.memory("one")

    def embed(name, *, add):
        def work(writer):
            model = writer.vectors.use_model(name, 2)
            if add:
                writer.vectors.add_memories(model, [MemoryVector(memory.id, b"d", b"\x01\x00")])
            return model

        return scribe.store.write(work)

    first = embed("m", add=True)
    embed("m", add=False)
    with scribe.store.read() as reader:
        assert reader.vectors.pending_memory_count() == 0
    second = embed("n", add=False)
    with scribe.store.read() as reader:
        assert ids(reader.vectors.pending_memories(limit=9)) == [memory.id]
        assert reader.vectors.memory_digests(first, [memory.id]) == {memory.id: b"d"}
        assert reader.vectors.memory_digests(second, [memory.id]) == {}
    embed("n", add=True)
    with scribe.store.read() as reader:
        assert reader.vectors.pending_memory_count() == 0
        assert reader.vectors.memory_digests(first, [memory.id]) == {}
        assert reader.vectors.memory_digests(second, [memory.id]) == {memory.id: b"d"}


def test_vectors_outlive_a_cleared_projection_but_not_a_forget(scribe):
    """A replay finds the vectors again by the memories' ids. A forget that comes before the memories are back takes
    the vectors along all the same."""
    kept, gone = claimed(scribe, "lives in Rome"), claimed(scribe, "lives in Oslo")

    def work(writer):
        model = writer.vectors.use_model("m", 2)
        vectors = [MemoryVector(memory.id, b"d", b"\x01\x00") for memory in (kept, gone)]
        writer.vectors.add_memories(model, vectors)
        writer.state.clear_projection()
        writer.memories.add([kept])
        return model

    model = scribe.store.write(work)
    with scribe.store.read() as reader:
        assert reader.vectors.memory_digests(model, [kept.id]) == {kept.id: b"d"}
        assert reader.vectors.memories(model, after=0, limit=ALL) == []
    scribe.store.write(lambda writer: writer.vectors.keep_memories(model, [kept.id]))
    with scribe.store.read() as reader:
        assert [vector.id for _, vector in reader.vectors.memories(model, after=0, limit=ALL)] == [kept.id]
    erase(scribe.store, gone)

    with scribe.store.read() as reader:
        assert reader.vectors.memory_digests(model, [kept.id, gone.id]) == {kept.id: b"d"}


# ── turns and words ──────────────────────────────────────────────────────────────────────────────────────────────


def test_turn_heads_come_in_order_between_two_numbers(scribe, clock):
    """After the first, up to and including the last, with everything but the text."""
    turns = scribe.turns(
        ["one", "two?", "three"], id="e", conversation="c", project="p", role="tool", speaker="Ann"
    )
    later = scribe.turn("four")
    with scribe.store.read() as reader:
        heads = reader.turns.heads(after=number(turns[0]), until=number(turns[2]), limit=ALL)
        first = reader.turns.heads(after=0, until=LAST, limit=1)

    assert [head.n for head in heads] == [number(turn) for turn in turns[1:]]
    assert [head.n for head in first] == [number(turns[0])]
    head = heads[0]
    assert (head.conversation, head.project, head.role, head.speaker) == ("c", "p", "tool", "Ann")
    assert head.at == to_instant(clock.moment)
    assert [bool(each.asks) for each in heads] == [True, False]
    assert number(later) == later.seq * TURNS_PER_ENTRY_MAX


def test_the_newest_turns_are_those_said_last(scribe, clock):
    """By time, and by place in the ledger where the time is the same."""
    first, second = scribe.turns(["one", "two"], id="e")
    clock.advance(days=-1)
    old = scribe.turn("before them")
    with scribe.store.read() as reader:
        newest = reader.turns.newest(limit=2)
        every = reader.turns.newest(limit=9)

    assert newest == [number(second), number(first)]
    assert every == [*newest, number(old)]


def test_turns_are_fetched_by_number(scribe, clock):
    """One by one through a filter, or a range in order."""
    turns = scribe.turns(["one", "two", "three"], conversation="c")
    other = scribe.turn("four", at=clock.moment - timedelta(days=3))
    with scribe.store.read() as reader:
        wanted = [number(turns[2]), number(other), 12_345_678]
        found = reader.turns.at(wanted, NOW)
        narrowed = reader.turns.at(wanted, Filter(now=0, conversation="c"))
        before = reader.turns.at(wanted, Filter(now=0, as_of=to_instant(clock.moment) - 1))

        assert sorted(turn.text for turn in found) == ["four", "three"]
        assert [turn.text for turn in narrowed] == ["three"]
        assert [turn.text for turn in before] == ["four"]
        assert reader.turns.between(number(turns[0]), number(turns[1])) == turns[:2]


def test_the_turn_before(scribe, clock):
    """In its conversation by when it was said; among turns of none, the one that came before it, and never across."""
    early = scribe.turn("early", conversation="c", at=clock.moment - timedelta(hours=1))
    scribe.turn("elsewhere", conversation="d")
    outside = scribe.turn("outside")
    late = scribe.turn("late", conversation="c")
    outside_again = scribe.turn("outside again")
    with scribe.store.read() as reader:
        assert reader.turns.before(late) == early
        assert reader.turns.before(early) is None
        assert reader.turns.before(outside_again) == outside
        assert reader.turns.before(outside) is None
        assert reader.turns.of_conversation("c", since=0) == [early, late]
        assert reader.turns.of_conversation("c", since=number(late)) == [late]
        assert reader.turns.last_of("c", before=number(late)) == early
        assert reader.turns.last_of("c", before=number(early)) is None
        assert reader.turns.after(early, limit=9) == [late]
        assert reader.turns.after(late, limit=9) == []
        assert reader.turns.after(outside, limit=9) == [outside_again]
        assert reader.turns.conversations_of([early.seq, late.seq, outside.seq]) == ["c"]


def test_occurrences_count_every_time_a_stem_is_said(scribe):
    """Of indexed turns only; the others come as text."""
    first, second = scribe.turns(["run, running, ran", "she runs"])
    scribe.index()
    third = scribe.turn("run!")
    with scribe.store.read() as reader:
        assert sorted(reader.words.occurrences("run")) == sorted(
            [number(first), number(first), number(second)]
        )
        assert reader.words.occurrences("walk") == []
        assert reader.words.not_indexed(after=0, until=LAST, limit=ALL) == [(number(third), "run!")]


def test_what_is_not_indexed_comes_last_first(scribe):
    """Within two numbers, at most so many."""
    turns = scribe.turns(["one", "two", "three", "four"])
    with scribe.store.read() as reader:
        found = reader.words.not_indexed(after=number(turns[0]), until=number(turns[2]), limit=ALL)

        assert [text for _, text in found] == ["three", "two"]
        assert reader.words.not_indexed(after=0, until=LAST, limit=1) == [(number(turns[3]), "four")]


def test_common_words_are_told_apart(scribe):
    """Those that more than so many indexed turns hold, and not one that exactly so many do."""
    scribe.turns(["tea and milk", "tea", "tea and sugar"])
    scribe.index()
    with scribe.store.read() as reader:
        assert reader.words.common(["tea", "milk", "salt"], beyond=2) == {"tea"}
        assert reader.words.common(["tea", "milk", "salt"], beyond=3) == set()
        assert reader.words.common(["tea", "milk", "salt"], beyond=0) == {"tea", "milk"}


# ── claims ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rivals_share_a_subject(scribe, clock):
    """Live claims only: those of the predicate first, then the newest of any, then those that hold a word; nobody
    twice."""
    old = claimed(scribe, "lives in Rome", updated_at=clock.moment - timedelta(days=1))
    new = claimed(scribe, "lives in Oslo")
    by_word = claimed(scribe, "loves Oslo", predicate="likes")
    other = claimed(scribe, "loves tea", predicate="likes")
    claimed(scribe, "Bob lives in Oslo", subject="bob")
    replaced = claimed(scribe, "lives in Bern")
    contested = claimed(scribe, "lives in Kyiv")
    scribe.memory("stored on purpose about Oslo")
    scribe.store.write(lambda writer: writer.memories.supersede(replaced.id, by="x", at=1))
    scribe.store.write(lambda writer: writer.claims.contest(contested.id, new.id))
    with scribe.store.read() as reader:
        assert ids(reader.claims.rivals("user", "lives_in", ["oslo"], limit=ALL)) == [
            contested.id,
            new.id,
            old.id,
            other.id,
            by_word.id,
        ]
        assert ids(reader.claims.rivals("user", "lives_in", ["oslo"], limit=1)) == [contested.id, by_word.id]
        assert reader.claims.rivals("nobody", "lives_in", ["oslo"], limit=ALL) == []


def test_claims_are_found_by_predicate(scribe, clock):
    """Predicate by predicate in the order asked for, the newest of each first, through the filter."""
    older = claimed(scribe, "lives in Paris", updated_at=clock.moment - timedelta(days=2))
    old = claimed(scribe, "lives in Rome", updated_at=clock.moment - timedelta(days=1))
    new = claimed(scribe, "works at Acme", predicate="works_at")
    claimed(scribe, "likes tea", predicate="likes")
    replaced = claimed(scribe, "lives in Bern")
    scribe.store.write(lambda writer: writer.memories.supersede(replaced.id, by="x", at=1))
    with scribe.store.read() as reader:
        asked = ["lives_in", "works_at"]
        assert ids(candidates(reader, NOW, predicates=asked, per_predicate=ALL).of_predicates) == [
            old.id,
            older.id,
            new.id,
        ]
        assert ids(candidates(reader, NOW, predicates=asked, per_predicate=1).of_predicates) == [
            old.id,
            new.id,
        ]
        everything = Filter(now=0, include_superseded=True)
        assert replaced.id in ids(
            candidates(reader, everything, predicates=asked, per_predicate=ALL).of_predicates
        )
        assert candidates(reader, NOW, predicates=[], per_predicate=ALL).of_predicates == []


def test_memories_are_found_by_the_time_they_speak_of(scribe):
    """Ranges that touch the one asked for, half open, the latest first; then memories without a time that were said in it."""

    def on(day: int, text: str) -> Memory:
        begin = datetime(2026, 3, day, tzinfo=UTC)
        told = MentionedTime(
            begin=begin, until=begin + timedelta(days=1), raw="x", granularity="day", kind="date"
        )
        return claimed(scribe, text, predicate="experienced", times=(told,))

    third, second = on(3, "went to Porto"), on(2, "went to Faro")
    at_no_time = claimed(scribe, "at no time", updated_at=datetime(2026, 4, 2, tzinfo=UTC))
    with scribe.store.read() as reader:

        def told(begin: int, until: int, month: int = 3):
            first, last = (to_instant(datetime(2026, month, day, tzinfo=UTC)) for day in (begin, until))
            return ids(candidates(reader, NOW, times=[(first, last)], per_channel=ALL).of_times)

        assert told(1, 9) == [third.id, second.id]
        assert told(3, 4) == [third.id]
        assert told(4, 9) == []
        assert told(1, 2) == []
        assert told(1, 9, month=4) == [at_no_time.id]


def test_hot_memories_come_newest_first(scribe, clock):
    """Only those that are hot, and a change of tier counts; what was replaced is cold and stays cold."""
    old = claimed(scribe, "one", tier=Tier.HOT, updated_at=clock.moment - timedelta(days=1))
    new = claimed(scribe, "two")
    replaced = claimed(scribe, "three", tier=Tier.HOT)
    scribe.store.write(lambda writer: writer.memories.supersede(replaced.id, by="x", at=1))
    scribe.store.write(
        lambda writer: writer.memories.set_tiers([(new.id, Tier.HOT), (replaced.id, Tier.HOT)])
    )
    with scribe.store.read() as reader:
        assert ids(candidates(reader, NOW, hot=ALL).hot) == [new.id, old.id]
        assert ids(candidates(reader, NOW, hot=1).hot) == [new.id]
        assert ids(reader.memories.get_many([old.id, "other"], NOW)) == [old.id]


def test_accesses_are_counted(scribe):
    """For memories that are there; a forget takes the count along."""
    memory = scribe.memory("told often")
    scribe.store.write(lambda writer: writer.memories.add_accesses([memory.id, "other"], at=1))
    scribe.store.write(lambda writer: writer.memories.add_accesses([memory.id], at=2))
    with scribe.store.read() as reader:
        assert reader.memories.accesses([memory.id, "other"]) == {memory.id: 2}
    erase(scribe.store, memory)

    with scribe.store.read() as reader:
        assert reader.memories.accesses([memory.id]) == {}


# ── conflicts ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_at_odds_are_contested_once(scribe):
    """Whichever is named first, and however often."""
    left, right = claimed(scribe, "lives in Rome"), claimed(scribe, "lives in Oslo")
    scribe.store.write(lambda writer: writer.claims.contest(left.id, right.id))
    scribe.store.write(lambda writer: writer.claims.contest(right.id, left.id))
    pair = (min(left.id, right.id), max(left.id, right.id))
    with scribe.store.read() as reader:
        assert reader.claims.conflicts(()) == reader.claims.conflicts([right.id]) == [pair]
        assert reader.claims.conflicts(["other"]) == []
    assert state_of(scribe.store, left) is state_of(scribe.store, right) is State.CONTESTED


def test_who_is_settled_leaves_the_others_to_their_quarrel(scribe):
    """Only who is in no conflict any more is active again."""
    first, second, third = (claimed(scribe, f"lives in {place}") for place in ("Rome", "Oslo", "Bern"))

    def work(writer):
        writer.claims.contest(first.id, second.id)
        writer.claims.contest(second.id, third.id)
        writer.claims.settle(first.id)

    scribe.store.write(work)
    assert [state_of(scribe.store, memory) for memory in (first, second, third)] == [
        State.ACTIVE,
        State.CONTESTED,
        State.CONTESTED,
    ]
    scribe.store.write(lambda writer: writer.claims.settle(third.id))

    assert state_of(scribe.store, second) is state_of(scribe.store, third) is State.ACTIVE


@pytest.mark.parametrize("how", ["supersede", "erase", "purge"])
def test_who_leaves_a_conflict_ends_it(scribe, how):
    """Replaced, forgotten or purged: what it was at odds with holds again, and no conflict names it."""
    gone, kept = claimed(scribe, "lives in Rome"), claimed(scribe, "lives in Oslo")
    scribe.store.write(lambda writer: writer.claims.contest(gone.id, kept.id))
    if how == "erase":
        erase(scribe.store, gone)
    else:
        scribe.store.write(lambda writer: writer.memories.supersede(gone.id, by=kept.id, at=1))
    if how == "purge":
        scribe.store.write(lambda writer: writer.memories.purge_superseded(before=2))

    with scribe.store.read() as reader:
        assert reader.claims.conflicts(()) == []
    assert state_of(scribe.store, kept) is State.ACTIVE


def test_what_was_replaced_is_not_contested_again(scribe):
    """A conflict is between live memories; marking one that is history changes nothing about it."""
    old, new = claimed(scribe, "lives in Rome"), claimed(scribe, "lives in Oslo")
    scribe.store.write(lambda writer: writer.memories.supersede(old.id, by="x", at=1))
    scribe.store.write(lambda writer: writer.claims.contest(old.id, new.id))

    assert state_of(scribe.store, old) is State.SUPERSEDED


# ── evidence ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_evidence_comes_back_whole_and_in_order(scribe):
    """Adding it again changes nothing."""
    memory = claimed(scribe, "lives in Rome")
    turns = scribe.turns(["I live in Rome", "Rome is where I live"])
    places = [
        Evidence(memory.id, a_memory(turn.text, id=f"fact-{turn.entry_id}", seq=turn.seq, quote=turn.text))
        for turn in turns
    ]
    for place in (*reversed(places), *places):
        scribe.store.write(lambda writer, place=place: writer.claims.add_evidence(place))
    with scribe.store.read() as reader:
        assert reader.claims.evidence([memory.id, "other"]) == places
        assert reader.claims.evidence([]) == []


def test_evidence_goes_with_its_place_and_with_its_memory(scribe):
    """Of what was forgotten nothing is left to be quoted."""
    first, second = claimed(scribe, "lives in Rome"), claimed(scribe, "works at Acme")
    said, again = scribe.turns(["I live in Rome", "I work at Acme"])
    own = [a_memory(turn.text, id=f"fact-{turn.entry_id}", seq=turn.seq) for turn in (said, again)]
    scribe.store.write(lambda writer: writer.claims.add_evidence(Evidence(first.id, own[0])))
    scribe.store.write(lambda writer: writer.claims.add_evidence(Evidence(second.id, own[1])))
    erase(scribe.store, said)
    with scribe.store.read() as reader:
        assert [place.memory for place in reader.claims.evidence([first.id, second.id])] == [second.id]
    scribe.store.write(
        lambda writer: writer.ledger.erase([(second.seq, second.entry_id)], position=1, at=1, reason="")
    )

    with scribe.store.read() as reader:
        assert reader.claims.evidence([first.id, second.id]) == []


def test_memories_are_found_by_their_entry_and_by_what_they_replaced(scribe):
    """Whatever their state; of what was replaced, only what was derived is told."""
    new, old = claimed(scribe, "lives in Rome"), claimed(scribe, "lives in Oslo")
    stored = scribe.memory("stored")
    for memory in (old, stored):
        scribe.store.write(lambda writer, id_=memory.id: writer.memories.supersede(id_, by=new.id, at=1))
    with scribe.store.read() as reader:
        assert ids(reader.memories.of_entries([old.seq, new.seq])) == [new.id, old.id]
        assert reader.claims.replaced_by([new.id]) == [old.id]
        assert reader.claims.replaced_by([]) == []


# ── episodes ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_episodes_are_found_by_conversation(scribe, clock):
    """The newest first, at most so many."""
    first = scribe.turns(["one", "two"], conversation="c")
    clock.advance(hours=3)
    second = scribe.turns(["three", "four"], conversation="c")
    other = scribe.turns(["five"], conversation="d")
    old = episode(scribe, first, id="ep1", quoting=first)
    new = episode(scribe, second, id="ep2", quoting=[second[1]])
    episode(scribe, other, id="ep3", conversation="d", quoting=other)
    with scribe.store.read() as reader:
        assert ids(episodes(reader, ["c"], NOW, limit=9)) == [new.id, old.id]
        assert ids(episodes(reader, ["c"], NOW, limit=1)) == [new.id]


def test_an_episode_goes_with_the_first_turn_it_quotes(scribe):
    """Its words are the turn's words."""
    turns = scribe.turns(["the secret lighthouse", "two", "three"], conversation="c")
    episode(scribe, turns, id="ep", quoting=turns[:2])
    untouched = episode(scribe, turns, id="ep2", quoting=[turns[2]])
    erase(scribe.store, turns[1])
    with scribe.store.read() as reader:
        assert ids(episodes(reader, ["c"], NOW, limit=9)) == [untouched.id]
        assert reader.memories.match(["lighthouse"], NOW, limit=9) == []


def test_no_scope_reaches_an_entry_through_an_episode(scribe, clock):
    """An episode is of its whole sitting; forgetting the end of it does not forget what it quotes from the beginning."""
    first, last = scribe.turn("one", conversation="c", project="p"), None
    begun = clock()
    clock.advance(minutes=30)
    last = scribe.turn("two", conversation="c")
    episode(scribe, [first, last], id="ep", quoting=[first])
    with scribe.store.read() as reader:
        assert reader.ledger.in_scope(ForgetScope(since=begun + 1)) == [(last.seq, last.entry_id)]
        assert reader.ledger.in_scope(ForgetScope(until=begun + 1)) == [(first.seq, first.entry_id)]


def test_episodes_of_a_conversation_are_dropped_together(scribe):
    """And those of no other."""
    turns = scribe.turns(["one", "two"], conversation="c")
    others = scribe.turns(["three"], conversation="d")
    episode(scribe, turns, id="ep1", quoting=turns)
    kept = episode(scribe, others, id="ep2", conversation="d", quoting=others)
    scribe.store.write(lambda writer: writer.episodes.drop("c"))
    with scribe.store.read() as reader:
        assert ids(episodes(reader, ["c", "d"], NOW, limit=9)) == [kept.id]


def test_a_conversation_is_untold_until_it_is_told(scribe):
    """Once each, replaced by what comes after, those that paused first first."""
    scribe.store.write(lambda writer: writer.episodes.set_pending(OpenSitting("c", 1, 10)))
    scribe.store.write(lambda writer: writer.episodes.set_pending(OpenSitting("d", 2, 5)))
    scribe.store.write(lambda writer: writer.episodes.set_pending(OpenSitting("c", 1, 20)))
    with scribe.store.read() as reader:
        assert reader.episodes.pending_in("c") == OpenSitting("c", 1, 20)
        assert reader.episodes.pending_in("e") is None
        assert reader.episodes.pending(before=20, limit=9) == [
            OpenSitting("d", 2, 5),
            OpenSitting("c", 1, 20),
        ]
        assert reader.episodes.pending(before=20, limit=1) == [OpenSitting("d", 2, 5)]
        assert reader.episodes.pending(before=19, limit=9) == [OpenSitting("d", 2, 5)]
    scribe.store.write(lambda writer: writer.episodes.set_done("d"))

    with scribe.store.read() as reader:
        assert reader.episodes.pending_in("d") is None


# ── forgetting ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_erasing_an_entry_takes_everything_that_hangs_on_it(scribe, engine):
    """Vectors, evidence, conflicts, episodes that quote it, accesses: not a row with its number or id is left."""
    gone, kept = claimed(scribe, "lives in Rome", conversation="c"), claimed(scribe, "lives in Oslo")
    again = scribe.turn("I said Rome")
    (turn,) = turns_at(scribe, gone)
    episode(scribe, [turn], id="ep", quoting=[turn])

    def work(writer):
        model = writer.vectors.use_model("m", 2)
        writer.vectors.add_turns(model, [turn_vector(turn)], until=number(turn))
        writer.vectors.add_memories(
            model, [MemoryVector(id_, b"d", b"\x01\x00") for id_ in (gone.id, kept.id, "ep")]
        )
        writer.claims.contest(gone.id, kept.id)
        writer.claims.add_evidence(Evidence(gone.id, a_memory("Rome", id="own", seq=again.seq)))
        writer.claims.add_evidence(Evidence(kept.id, a_memory("Rome", id="own2", seq=gone.seq)))
        writer.memories.add_accesses([gone.id, kept.id, "ep"], at=1)

    scribe.store.write(work)
    erase(scribe.store, gone)
    rows = {
        "memory": "SELECT id FROM memory",
        "memory_vector": "SELECT id FROM memory_vector",
        "access": "SELECT memory FROM access",
        "turn_vector": "SELECT n FROM turn_vector",
        "evidence": "SELECT memory FROM evidence",
        "conflict": "SELECT a FROM conflict",
        "cited": "SELECT memory FROM cited",
    }
    left = {table: [row[0] for row in engine.execute("alice", sql)] for table, sql in rows.items()}

    assert left == {
        "memory": [kept.id],
        "memory_vector": [kept.id],
        "access": [kept.id],
        "turn_vector": [],
        "evidence": [],
        "conflict": [],
        "cited": [],
    }
    assert state_of(scribe.store, kept) is State.ACTIVE


def turns_at(scribe, memory: Memory) -> list[Turn]:
    with scribe.store.read() as reader:
        return reader.turns.between(turn_number(memory.seq, 0), turn_number(memory.seq, 255))


def test_a_scope_reaches_what_was_derived_through_its_turn(scribe, clock):
    """Conversation and time of a claim are those of its turn, so nothing is forgotten twice or missed."""
    claim = claimed(scribe, "lives in Rome", conversation="c")
    scribe.turn("elsewhere", conversation="d")
    with scribe.store.read() as reader:
        assert reader.ledger.in_scope(ForgetScope(conversation="c")) == [(claim.seq, claim.entry_id)]
        assert reader.ledger.count_scope([claim.seq])["memories"] == 1
        assert reader.ledger.in_scope(ForgetScope(since=to_instant(MORNING) + 1)) == []


def test_claims_are_counted_where_they_were_said(scribe):
    """At the first place of a memory and at every further one; episodes are no claims and hang on no entry alone."""
    first, second = claimed(scribe, "in Rome"), claimed(scribe, "in Oslo", id="fact-2")
    turns = scribe.turns(["one", "two"], conversation="c")
    episode(scribe, turns, id="episode-1", quoting=turns[:1])
    scribe.store.write(lambda writer: writer.claims.add_evidence(Evidence(first.id, second)))

    with scribe.store.read() as reader:
        counts = [reader.ledger.count_scope([seq]) for seq in (first.seq, second.seq, turns[0].seq)]
        assert [count["claims"] for count in counts] == [1, 2, 0]
        assert [count["memories"] for count in counts] == [1, 1, 0]


def test_episodes_are_counted_by_conversation(scribe):
    for place in "cd":
        turns = scribe.turns(["one", "two"], conversation=place)
        episode(scribe, turns, id=f"episode-{place}", conversation=place, quoting=turns[:1])

    with scribe.store.read() as reader:
        counts = [reader.episodes.count(names) for names in (["c"], ["c", "d"], ["e"], [])]
    assert counts == [1, 2, 0, 0]


def test_a_rating_keeps_the_first_importance(scribe):
    """Rated again, the base is still what it was before the first time; who is gone is not rated."""
    memory = claimed(scribe, "in Rome", importance=0.5)
    for leaning, importance in ((0.2, 0.58), (0.1, 0.54)):
        rating = Rating(memory.id, 2, 1, leaning, importance)
        scribe.store.write(lambda writer, rating=rating: writer.memories.rate(rating))
    scribe.store.write(lambda writer: writer.memories.rate(Rating("nobody", 1, 0, 0.2, 0.6)))

    with scribe.store.read() as reader:
        kept = reader.memories.get(memory.id)
    assert (kept.chosen, kept.passed_over, kept.leaning) == (2, 1, 0.1)
    assert (kept.importance, kept.importance_base) == (0.54, 0.5)


def test_what_faded_is_left_out_where_one_asks_for_what_to_tell(scribe):
    """Cold for want of use, that is; not what was replaced. What nobody would note from the start is shown only on request."""
    faded, poor, replaced = (claimed(scribe, "needle", id=f"fact-{n}", role="user") for n in range(3))

    def work(writer):
        for memory in (faded, replaced):
            writer.memories.rate(Rating(memory.id, 0, 9, -0.4, 0.1))
        writer.memories.set_tiers([(faded.id, Tier.COLD), (poor.id, Tier.COLD)])
        writer.memories.supersede(replaced.id, by=poor.id, at=1)

    scribe.store.write(work)
    told = Filter(now=0, include_faded=False, include_superseded=True)
    every = Filter(now=0, include_unnoted=True)
    cold = Filter(now=0, tier=Tier.COLD)
    with scribe.store.read() as reader:
        assert set(ids(reader.memories.find(told, limit=ALL))) == {replaced.id}
        assert set(ids(reader.memories.find(NOW, limit=ALL))) == {faded.id}
        assert set(ids(reader.memories.find(every, limit=ALL))) == {faded.id, poor.id}
        assert set(ids(reader.memories.find(cold, limit=ALL))) == {faded.id, poor.id}
