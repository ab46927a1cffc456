"""The contract every engine passes, but for ledger and search, which stand beside it: what is derived, how it is
filtered, superseded, purged and erased, and that spaces are apart."""

import string
from contextlib import ExitStack
from datetime import timedelta

import pytest
from tests.conftest import TENANT, Scribe, a_memory

from memplane.clock import SECOND, to_instant
from memplane.errors import InvalidRequest, NotFound
from memplane.storage.filter import Filter, ForgetScope
from memplane.storage.state import PINS_MAX
from memplane.storage.store import Writer
from memplane.types import RESERVED_CATEGORIES, Caller, Kind, Op, State, Tier


def everything(store, now=0, **conditions):
    with store.read() as reader:
        return reader.memories.find(Filter(now=now, **conditions), limit=1_000)


def texts(store, now=0, **conditions) -> list[str]:
    return [memory.text for memory in everything(store, now, **conditions)]


def erase(store, *things) -> None:
    victims = [(thing.seq, thing.entry_id) for thing in things]
    store.write(lambda writer: writer.ledger.erase(victims, position=1, at=1, reason="test"))


# ── memories ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_comes_back_whole(scribe, clock):
    """Every field of a memory survives, with the caller of the entry it came from."""
    caller = Caller("ann", "mcp", "s")
    draft = scribe.draft("m", op=Op.STORE, caller=caller)
    expires = clock.moment + timedelta(days=1)

    def work(writer: Writer):
        (entry,) = writer.ledger.append([draft], recorded=clock())
        memory = a_memory(
            "Tea, not coffee ☕",
            id="m",
            seq=entry.seq,
            kind=Kind.PREFERENCE,
            start=2,
            end=9,
            tags=("drink", "Ä b"),
            key="prefs/drink",
            category="preferences",
            created_at=clock.moment - timedelta(days=3),
            updated_at=clock.moment,
            expires_at=expires,
            supersedes="before",
            conversation="c",
            project="p",
            caller=caller,
        )
        writer.memories.add([memory])
        return memory

    memory = scribe.store.write(work)

    with scribe.store.read() as reader:
        assert reader.memories.get("m") == memory
        assert reader.memories.find(Filter(now=clock()), limit=1) == [memory]
        assert reader.memories.by_key("prefs/drink", now=clock()) == memory
        assert reader.memories.get("other") is None


def test_memories_come_newest_first(scribe, clock):
    """By time, and of the same time what came last comes first."""
    for text in "abc":
        scribe.memory(text)
    clock.advance(seconds=-5)
    scribe.memory("older")

    assert texts(scribe.store) == ["c", "b", "a", "older"]


def test_limit_and_offset_page_through(scribe):
    """Pages do not overlap and miss nothing."""
    for text in string.ascii_lowercase:
        scribe.memory(text)

    with scribe.store.read() as reader:
        pages = [reader.memories.find(Filter(now=0), limit=10, offset=offset) for offset in (0, 10, 20)]
    assert "".join(memory.text for page in pages for memory in page) == string.ascii_lowercase[::-1]


def test_turns_come_newest_first(scribe, clock):
    """By when they were said, not by when they arrived."""
    scribe.turn("said now")
    scribe.turn("said before", at=clock.moment - timedelta(days=1))
    scribe.turns(["first part", "second part"], id="both", at=clock.moment - timedelta(hours=1))

    with scribe.store.read() as reader:
        turns = reader.turns.find(Filter(now=clock()), limit=10)
    assert [turn.text for turn in turns] == ["said now", "second part", "first part", "said before"]
    assert [(turn.entry_id, turn.ordinal) for turn in turns[1:3]] == [("both", 1), ("both", 0)]


def test_a_turn_comes_back_whole(scribe, clock):
    """Every field of a turn survives."""
    turn = scribe.turn("hello", role="assistant", conversation="c", project="p", at=clock.moment)

    with scribe.store.read() as reader:
        assert reader.turns.find(Filter(now=0), limit=1) == [turn]


# ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_filter_by_kinds(scribe):
    """Any of the kinds asked for; none asked is all."""
    for kind in Kind:
        scribe.memory(kind.value, kind=kind)

    assert texts(scribe.store, kinds=(Kind.FACT, Kind.EPISODE)) == ["episode", "fact"]
    assert len(texts(scribe.store)) == len(Kind)


def test_filter_by_tags_is_and(scribe):
    """A memory has every tag asked for, spelled exactly so."""
    scribe.memory("both", tags=("a", "b"))
    scribe.memory("one", tags=("a",))
    scribe.memory("case", tags=("A", "B"))
    scribe.memory("part", tags=("ab",))

    assert texts(scribe.store, tags=("a", "b")) == ["both"]
    assert texts(scribe.store, tags=("b", "a", "b")) == ["both"]
    assert texts(scribe.store, tags=("a",)) == ["one", "both"]
    assert texts(scribe.store, tags=("c",)) == []


@pytest.mark.parametrize("tag", ["a'b", 'a"b', "%", "_", "a,b", "[x]", "日本", "'; DROP TABLE memory; --"])
def test_a_tag_is_data(scribe, tag):
    """A tag with syntax in it is found by itself and by nothing else."""
    scribe.memory("hit", tags=(tag,))
    scribe.memory("miss", tags=("plain",))

    assert texts(scribe.store, tags=(tag,)) == ["hit"]


def test_since_and_until_are_half_open(scribe, clock):
    """`since` is included, `until` is not, to the microsecond, for memories and for turns."""
    start = clock()
    for text in "abcd":
        scribe.memory(text)
        scribe.turn(text)
        clock.advance(microseconds=1)

    assert texts(scribe.store, since=start + 1, until=start + 3) == ["c", "b"]
    assert texts(scribe.store, since=start + 4) == []
    assert texts(scribe.store, until=start) == []
    with scribe.store.read() as reader:
        turns = reader.turns.find(Filter(now=0, since=start + 1, until=start + 3), limit=9)
    assert [turn.text for turn in turns] == ["c", "b"]


def test_filter_by_place(scribe):
    """Conversation and project narrow each other, for memories and for turns."""
    for conversation in ("c", "d", None):
        for project in ("p", "q", None):
            scribe.memory(f"{conversation}{project}", conversation=conversation, project=project)
            scribe.turn(f"{conversation}{project}", conversation=conversation, project=project)

    with scribe.store.read() as reader:
        for conditions, wanted in [
            ({"conversation": "c", "project": "q"}, ["cq"]),
            ({"conversation": "d"}, ["dNone", "dq", "dp"]),
            ({"project": "p"}, ["Nonep", "dp", "cp"]),
            ({"conversation": ""}, []),
        ]:
            where = Filter(now=0, **conditions)
            assert [memory.text for memory in reader.memories.find(where, limit=9)] == wanted
            assert [turn.text for turn in reader.turns.find(where, limit=9)] == wanted


@pytest.mark.parametrize(
    ("prefix", "wanted"),
    [
        ("", ["100%", "10/a", "A_b", "Ab", "a_b", "ab", "axb", "é/x", "日本/x"]),
        ("a", ["a_b", "ab", "axb"]),
        ("a_", ["a_b"]),
        ("A", ["A_b", "Ab"]),
        ("10", ["100%", "10/a"]),
        ("100%", ["100%"]),
        ("%", []),
        ("_", []),
        ("日", ["日本/x"]),
        ("é", ["é/x"]),
        ("ab", ["ab"]),
        ("abc", []),
    ],
)
def test_a_prefix_is_literal(scribe, prefix, wanted):
    """`%`, `_` and letter case in a prefix are ordinary characters; only keyed rows have a prefix, even an empty one."""
    for key in ["ab", "a_b", "axb", "Ab", "A_b", "10/a", "100%", "日本/x", "é/x"]:
        scribe.memory(key, key=key, category="c")
    scribe.memory("no key")

    assert sorted(texts(scribe.store, key_prefix=prefix)) == sorted(wanted)


def test_filter_by_category(scribe):
    """A category is matched whole."""
    scribe.memory("a", key="a", category="prefs")
    scribe.memory("b", key="b", category="prefs2")
    scribe.memory("c")

    assert texts(scribe.store, category="prefs") == ["a"]


@pytest.mark.parametrize("category", RESERVED_CATEGORIES)
def test_reserved_rows_are_left_out_unless_asked_for(scribe, category):
    """What the engine keeps for itself shows only to who asks."""
    scribe.memory("mine", key="mine", category="user_facts")
    scribe.memory("engine's", key=f"{category}/x/1", category=category)

    assert texts(scribe.store) == ["mine"]
    assert texts(scribe.store, key_prefix="") == ["mine"]
    assert sorted(texts(scribe.store, include_reserved=True)) == ["engine's", "mine"]
    with scribe.store.read() as reader:
        assert [memory.text for memory in reader.memories.brief(now=0, limit=9)] == ["mine"]
        assert [found.name for found in reader.memories.categories(now=0, keys_max=5)] == ["user_facts"]


def test_superseded_rows_are_left_out_unless_asked_for(scribe, clock):
    """An old version shows only to who asks, as superseded, cold, with who replaced it and when."""
    scribe.memory("old", id="old")
    scribe.memory("new", id="new", supersedes="old")
    assert scribe.store.write(lambda writer: writer.memories.supersede("old", by="new", at=clock())) is True

    assert texts(scribe.store) == ["new"]
    old = everything(scribe.store, include_superseded=True)[1]
    assert (old.state, old.tier, old.superseded_by) == (State.SUPERSEDED, Tier.COLD, "new")
    assert old.superseded_at == clock.moment
    with scribe.store.read() as reader:
        assert [memory.text for memory in reader.memories.brief(now=0, limit=9)] == ["new"]
        assert reader.memories.get("old") == old


def test_superseding_what_is_not_there_says_so(open_store):
    """False, and nothing happens."""
    assert open_store().write(lambda writer: writer.memories.supersede("nobody", by="x", at=1)) is False


def test_expired_rows_do_not_exist(scribe, clock):
    """A row lives until its expiry and not a microsecond longer, in every read that says what time it is."""
    now = clock()
    scribe.memory("fleeting", key="k", category="c", expires_at=clock.moment + timedelta(microseconds=1))

    with scribe.store.read() as reader:
        for when, alive in [(now, True), (now + 1, False), (now + 2, False)]:
            where = Filter(now=when, include_superseded=True)
            assert bool(reader.memories.find(where, limit=9)) is alive
            assert bool(reader.memories.match(["fleeting"], where, limit=9)) is alive
            assert bool(reader.memories.brief(now=when, limit=9)) is alive
            assert bool(reader.memories.by_key("k", now=when)) is alive
            assert bool(reader.memories.categories(now=when, keys_max=5)) is alive
            assert reader.overview.sizes(now=when).expired == (0 if alive else 1)


def test_every_filter_applies_before_the_limit(scribe, clock):
    """However many newer rows do not fit, the limit counts only those that do."""
    start = clock()
    fitting = {"conversation": "c", "project": "p", "key": "k/1", "category": "good", "tags": ("t", "u")}
    scribe.memory("needle hay", kind=Kind.CONTEXT, **fitting)
    scribe.turn("needle hay", conversation="c", project="p")
    clock.advance(seconds=1)
    for number in range(120):
        scribe.memory("needle hay", key=f"other/{number}", category="bad", tags=("t",))
    scribe.turns(["needle hay"] * 120, conversation="d", project="q")
    scribe.index()

    with scribe.store.read() as reader:
        for conditions in [
            {"kinds": (Kind.CONTEXT,)},
            {"tags": ("t", "u")},
            {"until": start + SECOND},
            {"conversation": "c"},
            {"project": "p"},
            {"key_prefix": "k/"},
            {"category": "good"},
        ]:
            where = Filter(now=clock(), **conditions)
            assert [memory.key for memory in reader.memories.find(where, limit=1)] == ["k/1"], conditions
            assert [memory.key for memory in reader.memories.match(["needle"], where, limit=1)] == ["k/1"], (
                conditions
            )
        for conditions in [{"until": start + SECOND}, {"conversation": "c"}, {"project": "p"}]:
            where = Filter(now=clock(), **conditions)
            assert [turn.conversation for turn in reader.turns.find(where, limit=1)] == ["c"], conditions
            assert [turn.conversation for turn in reader.turns.match(["needle"], where, limit=1)] == ["c"], (
                conditions
            )


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_has_one_live_value(scribe):
    """A second live value under a key is refused by the store itself."""
    scribe.memory("one", key="k", category="c")

    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        scribe.memory("two", key="k", category="c")

    assert texts(scribe.store) == ["one"]


def test_an_expired_value_still_holds_its_key(scribe, clock):
    """`keyed` says what lives, `holder` what is in the way of a new value."""
    scribe.memory("old", id="old", key="k", category="c", expires_at=clock.moment)
    with scribe.store.read() as reader:
        assert reader.memories.by_key("k", now=clock()) is None
        assert reader.memories.holder("k").id == "old"
        assert reader.memories.holder("other") is None
    scribe.store.write(lambda writer: writer.memories.supersede("old", by="new", at=clock()))

    with scribe.store.read() as reader:
        assert reader.memories.holder("k") is None
    scribe.memory("new", id="new", key="k", category="c")
    with scribe.store.read() as reader:
        assert reader.memories.holder("k").id == reader.memories.by_key("k", now=clock()).id == "new"


def test_key_history_is_oldest_first(scribe, clock):
    """Every kept value of a key, in the order it was given, of this key alone."""
    for number in range(3):
        scribe.memory(f"{number}", id=f"v{number}", key="k", category="c")
        scribe.memory(f"other {number}", key=f"k{number}", category="c")
        if number < 2:
            scribe.store.write(
                lambda writer, n=number: writer.memories.supersede(f"v{n}", by=f"v{n + 1}", at=clock())
            )
        clock.advance(seconds=1)

    with scribe.store.read() as reader:
        assert [memory.text for memory in reader.memories.history("k")] == ["0", "1", "2"]
        assert reader.memories.by_key("k", now=clock()).text == "2"
        assert reader.memories.history("none") == []


def test_categories_count_and_name_the_newest_keys(scribe, clock):
    """By name; each with its count and the keys written last, newest first, no more than asked for."""
    for number in range(4):
        scribe.memory("x", key=f"b{number}", category="b")
        clock.advance(seconds=1)
    scribe.memory("x", key="a0", category="a")
    scribe.memory("no key")

    with scribe.store.read() as reader:
        a, b = reader.memories.categories(now=clock(), keys_max=3)
    assert (a.name, a.count, a.recent_keys) == ("a", 1, ("a0",))
    assert (b.name, b.count, b.recent_keys) == ("b", 4, ("b3", "b2", "b1"))


def test_brief_puts_behavioral_first(scribe, clock):
    """Behavioral ones, newest first, then the others, newest first; the limit cuts at the end."""
    for kind in (Kind.FACT, Kind.PREFERENCE, Kind.CONTEXT, Kind.INSTRUCTION, Kind.CORRECTION, Kind.EPISODE):
        scribe.memory(kind.value, kind=kind)
        clock.advance(seconds=1)

    with scribe.store.read() as reader:
        order = [memory.kind.value for memory in reader.memories.brief(now=clock(), limit=9)]
        assert order == ["correction", "instruction", "preference", "episode", "context", "fact"]
        assert [memory.kind.value for memory in reader.memories.brief(now=clock(), limit=2)] == [
            "correction",
            "instruction",
        ]


# ── purging, erasing, clearing ───────────────────────────────────────────────────────────────────────────────────


def test_purge_removes_what_was_superseded_before(scribe, open_store):
    """Only superseded ones, only those superseded before then, from every index; returns how many."""
    for number in range(4):
        scribe.memory(f"word{number}", id=f"m{number}", tags=("t",))
    for number in range(3):
        scribe.store.write(lambda writer, n=number: writer.memories.supersede(f"m{n}", by="m3", at=100 + n))

    assert scribe.store.write(lambda writer: writer.memories.purge_superseded(before=102)) == 2

    assert texts(scribe.store, include_superseded=True) == ["word3", "word2"]
    with scribe.store.read() as reader:
        where = Filter(now=0, include_superseded=True)
        found = reader.memories.match(["word0", "word1", "word2"], where, limit=9)
        assert [memory.text for memory in found] == ["word2"]
        assert len(reader.memories.find(Filter(now=0, tags=("t",), include_superseded=True), limit=9)) == 2
        assert reader.memories.count() == 2
        assert [entry.body for entry in reader.ledger.entries()] == [b"{}"] * 4
    assert scribe.store.write(lambda writer: writer.memories.purge_superseded(before=102)) == 0


def test_erase_takes_everything_of_an_entry(scribe):
    """Payload, turns, memories, tags and words of the entry go in one step; its neighbours stay."""
    before = scribe.memory("before", tags=("t",))
    gone = scribe.memory("zebra", tags=("t",), key="k", category="c")
    turns = scribe.turns(["zebra one", "zebra two"], id="turns")
    after = scribe.turn("after")
    scribe.index()
    waiting = scribe.turn("zebra waits")
    erase(scribe.store, gone, turns[0], waiting)

    with scribe.store.read() as reader:
        where = Filter(now=0, include_superseded=True)
        assert reader.memories.get(gone.id) is None
        assert reader.memories.by_key("k", now=0) is None
        assert [memory.id for memory in reader.memories.find(where, limit=9)] == [before.id]
        assert [turn.entry_id for turn in reader.turns.find(where, limit=9)] == [after.entry_id]
        assert reader.memories.match(["zebra", "k"], where, limit=9) == []
        assert reader.turns.match(["zebra", "waits"], where, limit=9) == []
        assert reader.words.frequencies(["zebra", "one", "two", "wait"]) == {
            "zebra": 0,
            "one": 0,
            "two": 0,
            "wait": 0,
        }
        assert [entry.body for entry in reader.ledger.entries()] == [b"{}", None, None, b"{}", None]
        assert reader.memories.find(Filter(now=0, tags=("t",)), limit=9) == [reader.memories.get(before.id)]
    assert scribe.store.check() == []


def test_erase_and_supersede_and_project_share_a_work(scribe):
    """A work may do many things; its reads see them as it goes."""
    old = scribe.memory("old", id="old")

    def work(writer: Writer) -> list[str]:
        writer.ledger.append([scribe.draft("new", op=Op.STORE)], recorded=1)
        writer.memories.add([a_memory("new", id="new", seq=2)])
        writer.memories.supersede("old", by="new", at=1)
        seen = [memory.text for memory in writer.memories.find(Filter(now=0), limit=9)]
        writer.ledger.erase([(old.seq, "old")], position=2, at=1, reason="")
        return [
            *seen,
            *(
                memory.text
                for memory in writer.memories.find(Filter(now=0, include_superseded=True), limit=9)
            ),
        ]

    assert scribe.store.write(work) == ["new", "new"]


def test_hidden_entries_are_kept_in_mind(scribe):
    """An entry that shows nothing is on a list until it is erased or the projection is dropped; purging puts what it
    drops there."""
    for name in ("a", "b"):
        entry = scribe.entry(name)
        for _ in range(2):
            scribe.store.write(lambda writer, seq=entry.seq: writer.ledger.hide(seq))
    old = scribe.memory("old", id="old")
    scribe.store.write(lambda writer: writer.memories.supersede("old", by="x", at=1))
    scribe.store.write(lambda writer: writer.memories.purge_superseded(before=2))

    def hidden() -> list[str]:
        with scribe.store.read() as reader:
            return [entry.id for entry in reader.ledger.hidden()]

    assert hidden() == ["a", "b", "old"]
    scribe.store.write(
        lambda writer: writer.ledger.erase([(1, "a"), (old.seq, "old")], position=1, at=1, reason="")
    )
    assert hidden() == ["b"]
    scribe.store.write(lambda writer: writer.state.clear_projection())
    assert hidden() == []


def test_clearing_the_projection_keeps_the_ledger(scribe):
    """Everything derived goes, the cursor goes back to 0, and the same rows can be derived again."""
    scribe.memory("memory", tags=("t",), key="k", category="c")
    scribe.turns(["indexed"] * 3)
    scribe.index()
    scribe.turn("waiting")
    scribe.store.write(lambda writer: writer.state.set_cursor(5))
    scribe.store.write(lambda writer: writer.state.clear_projection())

    with scribe.store.read() as reader:
        where = Filter(now=0, include_superseded=True)
        assert reader.memories.find(where, limit=9) == reader.turns.find(where, limit=9) == []
        assert reader.turns.match(["indexed", "waiting"], where, limit=9) == []
        assert reader.memories.match(["memory"], where, limit=9) == []
        assert reader.words.frequencies(["memori", "index"]) == {"memori": 0, "index": 0}
        assert (reader.state.cursor(), reader.ledger.head().seq, reader.memories.count()) == (0, 5, 0)
        assert [entry.body for entry in reader.ledger.entries()] == [b"{}"] * 5

    scribe.memory("memory", tags=("t",), key="k", category="c")
    scribe.turn("indexed")
    scribe.index()
    with scribe.store.read() as reader:
        assert len(reader.turns.match(["indexed"], where, limit=9)) == 1
        assert len(reader.memories.match(["memory"], where, limit=9)) == 1
    assert scribe.store.check() == []


# ── scopes ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def scoped(scribe, clock):
    """One row of each sort, at times a second apart."""
    scribe.turn("turn c", id="tc", conversation="c", project="p")
    clock.advance(seconds=1)
    scribe.turn("turn d", id="td", conversation="d", project="p", at=clock.moment)
    clock.advance(seconds=1)
    scribe.memory("memory c", id="mc", conversation="c")
    clock.advance(seconds=1)
    scribe.memory("fact", id="f", key="k", category="c", expires_at=clock.moment + timedelta(seconds=1))
    scribe.memory("fact", id="f2", key="k/2", category="c", expires_at=clock.moment + timedelta(days=1))
    scribe.memory("run", id="r", key="pack_history/x/1", category="pack_history")
    scribe.entry("receipt", op=Op.FORGET)
    scribe.entry("swept", op=Op.SWEEP)
    scribe.entry("purged", op=Op.PURGE)
    scribe.entry("silent")
    return scribe


def in_scope(store, **conditions) -> list[str]:
    with store.read() as reader:
        found = reader.ledger.in_scope(ForgetScope(**conditions))
        assert [seq for seq, _ in found] == sorted(seq for seq, _ in found)
        assert all(reader.ledger.get(id_).seq == seq for seq, id_ in found)
    return [id_ for _, id_ in found]


def test_scopes_name_the_entries_they_would_erase(scoped, clock):
    """Each condition alone, and several narrowing each other; records of forgetting are never in scope."""
    start = to_instant(clock.moment) - 3 * SECOND
    store = scoped.store

    assert in_scope(store, everything=True) == ["tc", "td", "mc", "f", "f2", "r", "silent"]
    assert in_scope(store, entries=("td", "never", "receipt", "f")) == ["td", "f"]
    assert in_scope(store, key="k") == ["f"]
    assert in_scope(store, prefix="k") == ["f", "f2"]
    assert in_scope(store, prefix="") == ["f", "f2", "r"]
    assert in_scope(store, conversation="c") == ["tc", "mc"]
    assert in_scope(store, project="p") == ["tc", "td"]
    assert in_scope(store, project="p", conversation="d") == ["td"]
    assert in_scope(store, since=start + SECOND, until=start + 3 * SECOND) == ["td", "mc"]
    assert in_scope(store, conversation="c", since=start + 1) == ["mc"]
    assert in_scope(store, key="k", until=start) == []
    assert in_scope(store, expired_by=start + 4 * SECOND - 1) == []
    assert in_scope(store, expired_by=start + 4 * SECOND) == ["f"]


def test_erased_entries_leave_every_scope(scoped):
    """What is erased is not counted again."""
    with scoped.store.read() as reader:
        victims = reader.ledger.in_scope(ForgetScope(conversation="c"))
    scoped.store.write(lambda writer: writer.ledger.erase(victims, position=1, at=1, reason=""))

    assert in_scope(scoped.store, conversation="c") == []
    assert in_scope(scoped.store, entries=("tc",)) == []
    assert "tc" not in in_scope(scoped.store, everything=True)


def test_scopes_are_counted_by_sort(scoped):
    """Entries, turns, memories, facts and runs, each counted once."""
    scoped.turns(["one", "two"], id="pair")

    with scoped.store.read() as reader:
        seqs = [seq for seq, _ in reader.ledger.in_scope(ForgetScope(everything=True))]
        of_all, of_none = reader.ledger.count_scope(seqs), reader.ledger.count_scope([])

    assert of_all == of_none | {"entries": 8, "turns": 4, "memories": 1, "facts": 2, "runs": 1}
    assert set(of_none.values()) == {0}


def test_many_entries_are_erased_in_one_go(scribe):
    """A scope of hundreds is one work like any other."""
    scribe.turns([f"number {n}" for n in range(300)], conversation="c")
    scribe.turn("stays")
    with scribe.store.read() as reader:
        victims = reader.ledger.in_scope(ForgetScope(conversation="c"))
    scribe.store.write(lambda writer: writer.ledger.erase(victims, position=301, at=1, reason=""))

    with scribe.store.read() as reader:
        assert len(victims) == 300
        assert [turn.text for turn in reader.turns.find(Filter(now=0), limit=9)] == ["stays"]
        assert reader.turns.match(["number"], Filter(now=0), limit=9) == []
        assert len(reader.ledger.tombstones()) == 300
    assert scribe.store.check() == []


# ── files and owners ─────────────────────────────────────────────────────────────────────────────────────────────


def test_wipe_and_check_are_quiet_when_all_is_well(scribe):
    """A sound store has nothing to report, and nothing hinders a wipe."""
    erase(scribe.store, scribe.memory("gone"))

    assert scribe.store.wipe() is True
    assert scribe.store.check() == []


def test_a_large_space_is_not_wiped_in_passing(scribe, engine):
    """Beyond the size given, a wipe says that it was not done; without one it is."""
    erase(scribe.store, scribe.memory("gone"))

    assert scribe.store.wipe(bytes_max=1) is False
    assert scribe.store.wipe(bytes_max=1 << 40) is engine.wipes_in_passing
    assert scribe.store.wipe() is True


@pytest.mark.timeout(50, func_only=True)  # a writer would wait for a minute
def test_a_reader_delays_no_wipe(scribe, engine):
    """A wipe that a reader prevents says so at once: nobody waits for it, least of all the next writer."""
    gone = scribe.memory("gone")
    with scribe.store.read() as reader:
        reader.memories.get(gone.id)
        erase(scribe.store, gone)

        assert scribe.store.wipe() is False

    assert scribe.store.wipe() is True


def test_check_is_not_fooled_by_what_a_reader_remembers(scribe):
    """A reader that saw the index before it was dropped and rebuilt does not make a sound store look damaged."""
    scribe.memory("zebra")
    with scribe.store.read() as reader:
        reader.memories.match(["zebra"], Filter(now=0), limit=9)
        reader.words.frequencies(["zebra"])
    scribe.store.write(lambda writer: writer.state.clear_projection())

    assert scribe.store.check() == []


OWNERS = [
    "alice",
    "Alice",
    "ALICE",
    "a/b",
    "a",
    "../../etc/passwd",
    "..",
    ".",
    "a.db",
    "con",
    "a b",
    "a_b",
    "a%62",
    "user@example.com",
    "日本",
    "é",
    "e\u0301",
    "x" * 1_024,
    "x" * 1_023,
    "-",
    "+",
    "\\",
    "a\x00b",
    "\n",
]


def test_any_text_is_an_owner(open_store, engine, clock):
    """Owners that differ at all have spaces that differ, and every one is listed by its own name."""
    for owner in OWNERS:
        Scribe(open_store(owner), clock).entry(f"of {owner}")

    for owner in OWNERS:
        with open_store(owner, elsewhere=True).read() as reader:
            assert [entry.id for entry in reader.ledger.entries()] == [f"of {owner}"]
    listed = engine.stores().owners(TENANT)
    assert sorted(listed) == sorted(OWNERS)


@pytest.mark.parametrize("owner", ["", "\ud800", "x" * 1_025])
def test_no_text_is_no_owner(open_store, owner):
    """What cannot be a name is refused, not mangled into one."""
    with pytest.raises(InvalidRequest):
        open_store(owner)


def test_owners_and_tenants_come_in_the_order_of_their_bytes(engine):
    """
    On every engine alike, whatever the script, and whether a name fits into that of a file.
    """
    names = ["研究", "Zoë", "alice", "b_1", "b-1", "Bob", "é", "\U0001f600", "m" * 300, "10", "9"]
    with ExitStack() as opened:
        stores = engine.stores()
        for name in names:
            opened.enter_context(stores.open(TENANT, name, create=True))
        for name in names[:3]:
            opened.enter_context(stores.open(name, "alice", create=True))
        listed, tenants = list(stores.owners(TENANT)), list(stores.tenants())

    assert listed == sorted(names, key=str.encode)
    assert tenants == sorted([TENANT, *names[:3]], key=str.encode)


def test_tenants_do_not_share_owners(engine):
    """The same owner of two tenants is two spaces."""
    stores = engine.stores()
    with (
        stores.open("one", "alice", create=True),
        pytest.raises(NotFound),
        stores.open("two", "alice", create=False),
    ):
        pass

    assert (list(stores.owners("one")), list(stores.owners("two"))) == (["alice"], [])
    stores.close()


def test_a_missing_space_is_not_made_by_looking(engine):
    """Opening without `create` leaves no trace."""
    stores = engine.stores()
    with pytest.raises(NotFound), stores.open(TENANT, "nobody", create=False):
        pass

    assert list(stores.owners(TENANT)) == []
    stores.close()


# ── listing ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_conversations_are_the_newest_first(scribe, clock):
    """Turns of none are in none; a project narrows to its own turns; the last turn's project is the conversation's."""
    scribe.turn("one", conversation="a", project="p")
    first = clock.moment
    scribe.turn("two", conversation="b")
    clock.advance(hours=1)
    scribe.turn("three", conversation="a", project="q", within="project:q")
    scribe.turn("four")

    with scribe.store.read() as reader:
        found = reader.turns.conversations(project=None, limit=9, offset=0)
        of_project = reader.turns.conversations(project="p", limit=9, offset=0)
        second = reader.turns.conversations(project=None, limit=1, offset=1)
    assert [(one.id, one.project, one.turns) for one in found] == [("a", "q", 2), ("b", None, 1)]
    assert (found[0].first_at, found[0].last_at) == (first, clock.moment)
    assert [(one.id, one.project, one.turns) for one in of_project] == [("a", "p", 1)]
    assert second == found[1:]


def test_memories_are_listed_by_state_tier_and_predicate(scribe, clock):
    """A state says what is meant whatever else does; expired is a matter of the clock."""
    now = clock()
    scribe.memory("warm", predicate="lives_in")
    scribe.memory("hot", tier=Tier.HOT)
    scribe.memory("old", state=State.SUPERSEDED, tier=Tier.COLD)
    scribe.memory("over", expires_at=clock.moment)
    scribe.memory("odd", state=State.CONTESTED, expires_at=clock.moment + timedelta(seconds=1))
    wanted = {
        "active": ["hot", "warm"],
        "contested": ["odd"],
        "superseded": ["old"],
        "expired": ["over"],
    }

    with scribe.store.read() as reader:
        for state, texts in wanted.items():
            found = reader.memories.find(Filter(now=now, state=State(state)), limit=9)
            assert [memory.text for memory in found] == texts
        assert [m.text for m in reader.memories.find(Filter(now=now, tier=Tier.HOT), limit=9)] == ["hot"]
        assert [m.text for m in reader.memories.find(Filter(now=now, predicate="lives_in"), limit=9)] == [
            "warm"
        ]


# ── what was told ────────────────────────────────────────────────────────────────────────────────────────────────


def pin(store, name, text, at=1):
    store.write(lambda writer: writer.state.pin(name, text, at=at))


def pinned(store, name):
    with store.read() as reader:
        return reader.state.pinned(name)


def test_what_is_pinned_last_stands(open_store):
    """By when it was told, not by when it was written down."""
    store = open_store("alice")
    for text, at in (("first", 1), ("third", 3), ("second", 2)):
        pin(store, "place", text, at)

    assert pinned(store, "place") == "third"
    assert pinned(store, "elsewhere") is None


def test_only_the_last_pins_stay(open_store):
    """However many conversations there are."""
    store = open_store("alice")

    def work(writer: Writer):
        for at in range(PINS_MAX + 2):
            writer.state.pin(f"place {at}", "told", at=at)

    store.write(work)

    assert [pinned(store, f"place {at}") for at in range(4)] == [None, None, "told", "told"]


@pytest.mark.parametrize("loses", ["erase", "purge", "replay"])
def test_whatever_goes_for_good_unpins_everything(scribe, clock, loses):
    """And is counted, so that nobody pins afterwards what was made before."""
    memory = scribe.memory("Ann takes tea")
    scribe.store.write(lambda writer: writer.memories.supersede(memory.id, by="another", at=clock()))
    pin(scribe.store, "place", "Ann takes tea")
    with scribe.store.read() as reader:
        before = reader.state.erasures()

    if loses == "erase":
        erase(scribe.store, memory)
    elif loses == "purge":
        scribe.store.write(lambda writer: writer.memories.purge_superseded(before=clock() + 1))
    else:
        scribe.store.write(lambda writer: writer.state.clear_projection())

    assert pinned(scribe.store, "place") is None
    with scribe.store.read() as reader:
        assert reader.state.erasures() == before + 1
