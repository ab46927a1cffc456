"""The ledger half of the contract that every engine passes: order, chain, works that stand or fall alone."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import pytest
from tests.conftest import MORNING, Scribe, a_memory

from memplane.clock import to_instant
from memplane.errors import InvalidRequest
from memplane.storage.chain import GENESIS, audit_digest, entry_digest, payload_digest
from memplane.storage.filter import Filter, ForgetScope
from memplane.storage.ledger import SessionUsage
from memplane.storage.store import Writer
from memplane.types import Caller, LedgerHead, NewEntry, Op, Turn

ROUNDS = 12


def seqs(store) -> list[int]:
    with store.read() as reader:
        return [entry.seq for entry in reader.ledger.entries(limit=100_000)]


def ids(store) -> list[str]:
    with store.read() as reader:
        return [entry.id for entry in reader.ledger.entries(limit=100_000)]


# ── appending ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_empty_ledger_has_a_head(open_store):
    """A new space is a valid, empty ledger."""
    with open_store().read() as reader:
        assert reader.ledger.head() == LedgerHead(0, bytes(32), 0)
        assert reader.state.cursor() == 0
        assert reader.ledger.entries() == []
        assert reader.ledger.get("nothing") is None


def test_append_gives_gap_free_places(scribe):
    """Places begin with 1 and have no gaps, within one work and across works."""
    drafts = [scribe.draft() for _ in range(5)]
    first = scribe.store.write(lambda writer: writer.ledger.append(drafts, recorded=scribe.clock()))
    second = scribe.entry()

    assert [entry.seq for entry in (*first, second)] == [1, 2, 3, 4, 5, 6]
    assert seqs(scribe.store) == [1, 2, 3, 4, 5, 6]


def test_append_keeps_everything_of_a_draft(scribe):
    """An entry comes back exactly as it was given, bytes included."""
    caller = Caller(actor="ann", adapter="mcp", session="s1")
    body = bytes(range(256))
    entry = scribe.entry("x", op=Op.STORE, body=body, caller=caller, ref="y")

    with scribe.store.read() as reader:
        found = reader.ledger.get("x")

    assert found == entry
    assert (found.op, found.body, found.caller, found.ref) == (Op.STORE, body, caller, "y")
    assert found.recorded == scribe.clock()


def test_a_draft_from_another_ledger_keeps_its_time(scribe):
    """An entry that brings the time it was recorded elsewhere keeps it."""
    draft = NewEntry("x", Op.TURN, b"{}", recorded=12)
    scribe.store.write(lambda writer: writer.ledger.append([draft, scribe.draft("y")], recorded=34))

    with scribe.store.read() as reader:
        assert [entry.recorded for entry in reader.ledger.entries()] == [12, 34]


def test_entries_come_in_pages(scribe):
    """`after` and `limit` page through the ledger in order."""
    for _ in range(5):
        scribe.entry()

    with scribe.store.read() as reader:
        assert [entry.seq for entry in reader.ledger.entries(after=1, limit=3)] == [2, 3, 4]
        assert reader.ledger.entries(after=5) == []


def test_entries_are_found_by_their_places(scribe):
    """In order, whichever way they are asked for; those without a payload are not there."""
    entries = [scribe.entry() for _ in range(4)]
    scribe.store.write(lambda writer: writer.ledger.erase([(2, entries[1].id)], position=4, at=0, reason=""))

    with scribe.store.read() as reader:
        assert reader.ledger.at([4, 2, 1, 9]) == [entries[0], entries[3]]
        assert reader.ledger.at([]) == []


def test_what_was_said_is_told_in_order_of_arrival(scribe):
    """Turns and histories; nothing else, and nothing erased."""
    for op in (Op.TURN, Op.STORE, Op.HISTORY, Op.TURN):
        scribe.entry(op=op)
    scribe.store.write(lambda writer: writer.ledger.erase([(1, "e1")], position=4, at=0, reason=""))

    with scribe.store.read() as reader:
        assert reader.ledger.turn_entries(after=0, limit=9) == [3, 4]
        assert reader.ledger.turn_entries(after=0, limit=1) == [3]
        assert reader.ledger.turn_entries(after=3, limit=9) == [4]


def test_what_was_said_is_told_in_order_of_time(scribe, clock):
    """Each entry once, by its own time, strictly between; that of a turn of our own counts in whole seconds."""
    second = to_instant(MORNING)
    late = MORNING + timedelta(seconds=2)
    scribe.turn("late", at=late)
    scribe.turns(["one", "two"], id="both", at=MORNING + timedelta(milliseconds=700))
    history = scribe.entry("h", op=Op.HISTORY)
    turn = Turn(
        entry_id="h", seq=history.seq, role="user", text="h", at=MORNING + timedelta(milliseconds=300)
    )
    scribe.store.write(lambda writer: writer.turns.add([turn]))

    with scribe.store.read() as reader:
        told = reader.ledger.turn_entries_between(second - 1, None, limit=None)
        assert [(said.seq, said.at - second) for said in told] == [(3, 300_000), (2, 0), (1, 2_000_000)]
        assert reader.ledger.turn_entries_between(second - 1, None, limit=1) == told[:1]
        assert [said.seq for said in reader.ledger.turn_entries_between(second, None, limit=None)] == [3, 1]
        assert [
            said.seq for said in reader.ledger.turn_entries_between(second - 1, to_instant(late), limit=None)
        ] == [3, 2]


def test_known_and_tombstoned_pick_from_what_is_asked(scribe):
    """`known` says where, `tombstoned` says which; neither says more than was asked."""
    kept, gone = scribe.entry("kept"), scribe.entry("gone")
    scribe.entry("other")
    scribe.store.write(lambda writer: writer.ledger.erase([(gone.seq, "gone")], position=3, at=0, reason=""))

    with scribe.store.read() as reader:
        assert reader.ledger.known(["kept", "gone", "never"]) == {"kept": kept.seq, "gone": gone.seq}
        assert reader.ledger.tombstoned(["kept", "gone", "never"]) == {"gone"}
        assert reader.ledger.known([]) == {}
        assert reader.ledger.tombstoned([]) == set()


@pytest.mark.parametrize("id_", ['a"b', "a'b", "[]", "\\", "日本", "a,b", "{}", "%", " "])
def test_any_text_is_an_id(scribe, id_):
    """An id is data in every look-up, never syntax."""
    entry = scribe.entry(id_)

    with scribe.store.read() as reader:
        assert reader.ledger.known([id_]) == {id_: entry.seq}
        assert reader.ledger.get(id_) == entry


def test_a_work_sees_what_it_wrote(scribe):
    """Inside a work every read includes the work's own appends, before they are durable."""

    def work(writer: Writer) -> tuple:
        (entry,) = writer.ledger.append([scribe.draft("new")], recorded=5)
        return (
            writer.ledger.head().seq,
            writer.ledger.known(["new"]),
            writer.ledger.get("new") == entry,
            [e.id for e in writer.ledger.entries()],
            [e.id for e in writer.ledger.ops(since=None, until=None, limit=9)],
            [row.entry.id for row in writer.ledger.rows()],
        )

    assert scribe.store.write(work) == (1, {"new": 1}, True, ["new"], ["new"], ["new"])


# ── the chain ────────────────────────────────────────────────────────────────────────────────────────────────────


def rebuild_chain(rows) -> list[bytes]:
    digest, digests = GENESIS, []
    for row in rows:
        entry = row.entry
        draft = NewEntry(row.chained_id, entry.op, b"", entry.caller, entry.ref, origin=row.origin)
        digest = entry_digest(digest, row.payload_digest, row.position, draft, entry.recorded)
        digests.append(digest)
    return digests


def test_every_entry_continues_the_chain(scribe, clock):
    """Each digest covers the one before it, so the last covers everything."""
    for number in range(4):
        clock.advance(seconds=1)
        scribe.entry(body=b"%d" % number, caller=Caller("a", "b", "c"), ref="r" if number % 2 else None)

    with scribe.store.read() as reader:
        rows = reader.ledger.rows()
        head = reader.ledger.head()

    assert [row.digest for row in rows] == rebuild_chain(rows)
    assert head == LedgerHead(4, rows[-1].digest, 4)


def test_payload_digests_are_salted(scribe):
    """Equal bodies have unequal digests, so that an erased one cannot be guessed."""
    scribe.entry(body=b"same")
    scribe.entry(body=b"same")

    with scribe.store.read() as reader:
        one, two = reader.ledger.rows()

    assert one.payload_digest != two.payload_digest
    assert one.payload_digest == payload_digest(one.salt, b"same")


def test_the_chain_goes_on_after_a_reopen(scribe, open_store):
    """Another program continues the chain where this one left it."""
    scribe.entry("here")
    there = Scribe(open_store(elsewhere=True), scribe.clock)
    there.entry("there")
    scribe.entry("here again")

    with scribe.store.read() as reader:
        rows = reader.ledger.rows()

    assert [row.entry.id for row in rows] == ["here", "there", "here again"]
    assert [row.digest for row in rows] == rebuild_chain(rows)


def test_erasing_leaves_place_digest_and_ref(scribe):
    """An erased entry loses body and salt; its place, digests, caller and ref stay, so the chain still holds."""
    scribe.entry("a")
    gone = scribe.entry("b", body=b"secret", caller=Caller("ann"), ref="a")
    scribe.entry("c")
    with scribe.store.read() as reader:
        before = reader.ledger.rows()
    scribe.store.write(
        lambda writer: writer.ledger.erase([(gone.seq, "b")], position=3, at=7, reason="asked")
    )

    with scribe.store.read() as reader:
        rows = reader.ledger.rows()
        found = reader.ledger.get("b")

    assert [row.digest for row in rows] == [row.digest for row in before] == rebuild_chain(rows)
    assert (rows[1].salt, rows[1].entry.body, rows[1].tombstoned) == (None, None, True)
    assert (found.body, found.ref, found.caller) == (None, "a", Caller("ann"))
    assert [row.tombstoned for row in rows] == [False, True, False]


def test_an_unseen_id_gets_its_tombstone(scribe):
    """Forgetting an id that never arrived keeps it from arriving."""
    scribe.entry("a")
    scribe.store.write(lambda writer: writer.ledger.erase([(0, "later")], position=1, at=7, reason="asked"))

    with scribe.store.read() as reader:
        (tombstone,) = reader.ledger.tombstones()
        assert (tombstone.id, tombstone.reason) == ("later", "asked")
        assert reader.ledger.tombstoned(["later"]) == {"later"}
        assert reader.ledger.get("a").body is not None


def test_every_forget_keeps_its_tombstones(scribe):
    """Two replicas may each have forgotten an id: erasing it again for the same forget changes nothing, for another one
    adds its tombstone."""
    for position, reason in ((1, "first"), (2, "second"), (1, "other")):
        scribe.store.write(
            lambda writer, at=position, why=reason: writer.ledger.erase(
                [(0, "x")], position=at, at=7, reason=why
            )
        )

    with scribe.store.read() as reader:
        stones = reader.ledger.tombstones()
        assert reader.overview.sizes(now=0).tombstones == 1
    assert [(stone.position, stone.reason) for stone in stones] == [(1, "first"), (2, "second")]


def test_erasing_again_changes_nothing(scribe):
    """Neither rows nor tombstones nor the chain."""
    gone = scribe.memory("zebra", id="m")
    seen = []
    for _ in range(2):
        scribe.store.write(
            lambda writer: writer.ledger.erase([(gone.seq, "m")], position=1, at=7, reason="first")
        )
        with scribe.store.read() as reader:
            seen.append((reader.ledger.rows(), reader.ledger.tombstones(), reader.overview.sizes(now=0)))

    assert seen[0] == seen[1]
    assert scribe.store.check() == []


def test_a_tombstone_names_its_forget(scribe):
    """Id, time, reason, and the place of the forget it belongs to."""
    scribe.store.write(
        lambda writer: writer.ledger.erase([(0, "b"), (0, "a")], position=3, at=7, reason="asked")
    )

    with scribe.store.read() as reader:
        stones = reader.ledger.tombstones()
    assert [(stone.id, stone.position, stone.reason) for stone in stones] == [
        ("a", 3, "asked"),
        ("b", 3, "asked"),
    ]
    assert {to_instant(stone.at) for stone in stones} == {7}


def test_forgets_are_the_receipts(scribe):
    """Every forget in order, with its digest; a sweep is not among them."""
    for op in (Op.FORGET, Op.TURN, Op.SWEEP, Op.PURGE, Op.FORGET):
        scribe.entry(op=op)

    with scribe.store.read() as reader:
        assert [row.entry.seq for row in reader.ledger.forgets()] == [1, 5]
        assert [row.digest for row in reader.ledger.forgets()] == [
            reader.ledger.rows()[n].digest for n in (0, 4)
        ]


def test_replacement_is_the_last_that_refers(scribe):
    """Through the ledger, so a forgotten replacement is still one."""
    scribe.entry("a")
    scribe.entry("b", ref="a")
    last = scribe.entry("c", ref="a")
    scribe.store.write(lambda writer: writer.ledger.erase([(last.seq, "c")], position=3, at=1, reason=""))

    with scribe.store.read() as reader:
        assert reader.ledger.replacement("a") == "c"
        assert reader.ledger.replacement("c") is None
        assert reader.ledger.replacement("never") is None


# ── works ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Unwell(Exception):
    """What a failing work raises."""


def _append(writer: Writer, id_: str) -> int:
    return writer.ledger.append([NewEntry(id_, Op.TURN, b"{}")], recorded=1)[0].seq


def _append_only(writer: Writer, id_: str) -> None:
    _append(writer, id_)


def _with_a_turn(writer: Writer, id_: str) -> None:
    seq = _append(writer, id_)
    writer.turns.add([Turn(entry_id=id_, seq=seq, role="user", text=f"turn {id_}", at=MORNING)])


def _with_a_memory(writer: Writer, id_: str) -> None:
    seq = _append(writer, id_)
    writer.memories.add([a_memory(f"memory {id_}", id=id_, seq=seq, tags=("t",))])


def _with_a_note(writer: Writer, id_: str) -> None:
    writer.state.set_note("last", id_)
    _append(writer, id_)


def _with_a_tombstone(writer: Writer, id_: str) -> None:
    seq = _append(writer, id_)
    writer.ledger.erase([(0, f"unseen {id_}")], position=seq, at=1, reason="")


def _with_an_audit_record(writer: Writer, id_: str) -> None:
    writer.audit.add(at=1, caller=Caller(), action=id_, target=None, outcome="ok", detail="")
    _append(writer, id_)


WORKS: list[Callable[[Writer, str], None]] = [
    _append_only,
    _with_a_turn,
    _with_a_memory,
    _with_a_note,
    _with_a_tombstone,
    _with_an_audit_record,
]


def traces(store) -> dict[str, set[str]]:
    """Whose changes are there, by kind of change."""
    where = Filter(now=0)
    with store.read() as reader:
        return {
            "entries": set(ids(store)),
            "turns": {turn.entry_id for turn in reader.turns.find(where, limit=10_000)},
            "memories": {memory.id for memory in reader.memories.find(where, limit=10_000)},
            "found": {memory.id for memory in reader.memories.match(["memory"], where, limit=10_000)},
            "tombstones": {tombstone.id.removeprefix("unseen ") for tombstone in reader.ledger.tombstones()},
            "audit": {row.record.action for row in reader.audit.rows()},
        }


@pytest.mark.parametrize("sound", WORKS)
@pytest.mark.parametrize("broken", WORKS)
def test_a_failing_work_undoes_itself_alone(open_store, broken, sound):
    """Works that come at once may share a commit; the one that raises takes back its own changes and no others,
    and its own caller gets its own exception."""
    store = open_store()
    start = threading.Barrier(4, timeout=120)
    lost: list[str] = []

    def run(name: str, work: Callable[[Writer, str], None], *, fails: bool) -> None:
        for turn in range(ROUNDS):
            id_ = f"{name}{turn}"

            def whole(writer: Writer, id_: str = id_) -> str:
                work(writer, id_)
                if fails:
                    raise Unwell(id_)
                return id_

            start.wait()
            if fails:
                with pytest.raises(Unwell, match=f"^{id_}$"):
                    store.write(whole)
                lost.append(id_)
            else:
                assert store.write(whole) == id_

    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(run, "good", sound, fails=False),
            pool.submit(run, "bad", broken, fails=True),
            pool.submit(run, "fine", broken, fails=False),
            pool.submit(run, "ill", sound, fails=True),
        ]
        for job in jobs:
            job.result()

    left = traces(store)
    kept = {f"{name}{turn}" for name in ("good", "fine") for turn in range(ROUNDS)}
    assert sorted(lost) == sorted(f"{name}{turn}" for name in ("bad", "ill") for turn in range(ROUNDS))
    assert left["entries"] == kept
    assert all(names <= kept for names in left.values())
    assert left["found"] == left["memories"]
    assert seqs(store) == list(range(1, 2 * ROUNDS + 1))
    with store.read() as reader:
        rows = reader.ledger.rows()
    assert [row.digest for row in rows] == rebuild_chain(rows)


def test_a_database_error_falls_on_its_own_work(scribe):
    """A work the database itself refuses is undone like any other, and the store goes on."""
    scribe.memory("first", id="m")

    def work(writer: Writer) -> None:
        writer.ledger.append([scribe.draft("other")], recorded=1)
        writer.memories.add([a_memory("twin", id="m", seq=2)])

    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        scribe.store.write(work)

    assert ids(scribe.store) == ["m"]
    assert scribe.entry("next").seq == 2


def test_an_error_of_ours_reaches_its_caller_unchanged(open_store):
    """What a work raises is what its caller catches."""
    error = InvalidRequest("no", field="x")

    def work(_: Writer) -> None:
        raise error

    with pytest.raises(InvalidRequest) as caught:
        open_store().write(work)

    assert caught.value is error


def test_many_threads_leave_no_gap(open_store):
    """Concurrent writers get distinct places, all of them, in one chain."""
    store = open_store()

    def run(name: int) -> list[int]:
        return [
            store.write(
                lambda writer, n=n: writer.ledger.append(
                    [NewEntry(f"{name}-{n}", Op.TURN, b"{}")], recorded=n
                )
            )[0].seq
            for n in range(25)
        ]

    with ThreadPoolExecutor(8) as pool:
        got = [seq for places in pool.map(run, range(8)) for seq in places]

    assert sorted(got) == seqs(store) == list(range(1, 201))
    with store.read() as reader:
        rows = reader.ledger.rows()
    assert [row.digest for row in rows] == rebuild_chain(rows)


def test_two_programs_leave_no_gap(open_store):
    """Programs that share the data queue for it and lose nothing."""
    stores = [open_store(), open_store(elsewhere=True), open_store(elsewhere=True)]

    def run(number: int) -> None:
        for n in range(20):
            draft = NewEntry(f"{number}-{n}", Op.TURN, b"{}")
            stores[number].write(lambda writer, draft=draft: writer.ledger.append([draft], recorded=1))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(run, range(3)))

    for store in stores:
        assert seqs(store) == list(range(1, 61))


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_read_is_a_snapshot(scribe):
    """What is written during a read does not show in it, whatever is asked; the next read sees it."""
    scribe.entry("a")
    scribe.memory("blue", id="m")
    with scribe.store.read() as reader:
        head = reader.ledger.head()
        scribe.entry("b")
        scribe.store.write(lambda writer: writer.ledger.erase([(2, "m")], position=3, at=0, reason=""))
        scribe.store.write(lambda writer: writer.state.set_note("n", "1"))

        assert reader.ledger.head() == head
        assert [entry.id for entry in reader.ledger.entries()] == ["a", "m"]
        assert reader.memories.get("m").text == "blue"
        assert reader.ledger.tombstones() == []
        assert reader.state.note("n") is None

    with scribe.store.read() as reader:
        assert [entry.id for entry in reader.ledger.entries()] == ["a", "m", "b"]
        assert reader.memories.get("m") is None
        assert reader.state.note("n") == "1"


def test_a_write_is_there_when_it_returns(scribe, open_store):
    """When `write` returns, another program already sees it."""
    there = open_store(elsewhere=True)
    for number in range(20):
        entry = scribe.entry()

        with there.read() as reader:
            assert reader.ledger.head().seq == entry.seq == number + 1


def test_a_reader_does_not_block_a_writer(scribe):
    """Writing goes on while somebody reads."""
    with scribe.store.read() as reader:
        reader.ledger.entries()
        scribe.entry("a")

    assert ids(scribe.store) == ["a"]


def test_spaces_do_not_see_each_other(open_store, clock):
    """Nothing written in one space can be read in another, by any method that takes an id."""
    alice, bob = Scribe(open_store("alice"), clock), Scribe(open_store("bob"), clock)
    alice.memory("apples", id="m", key="k", category="c", expires_at=None)
    alice.turn("apples again", id="t")
    alice.store.write(lambda writer: writer.state.set_note("n", "1"))
    alice.store.write(
        lambda writer: writer.audit.add(
            at=1, caller=Caller(session="s"), action="a", target=None, outcome="ok", detail=""
        )
    )
    alice.entry("s1", op=Op.STORE, caller=Caller(session="s"))

    with bob.store.read() as reader:
        where = Filter(now=0)
        assert reader.ledger.head().seq == 0
        assert reader.ledger.entries() == reader.audit.rows() == reader.ledger.tombstones() == []
        assert (
            reader.memories.get("m") is reader.memories.by_key("k", now=0) is reader.state.note("n") is None
        )
        assert reader.memories.find(where, limit=9) == reader.turns.find(where, limit=9) == []
        assert reader.memories.match(["apples"], where, limit=9) == []
        assert reader.turns.match(["apples"], where, limit=9) == []
        assert reader.words.frequencies(["appl"]) == {"appl": 0}
        assert reader.ledger.usage("s") == SessionUsage(0, 0, 0)
        assert reader.ledger.in_scope(ForgetScope(everything=True)) == []
        assert reader.memories.categories(now=0, keys_max=5) == []


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_usage_counts_a_sessions_entries(scribe):
    """Stores, supersedes among them, and forgets, of this session only."""
    mine, other = Caller(session="mine"), Caller(session="other")
    for op, caller, ref in [
        (Op.STORE, mine, None),
        (Op.STORE, mine, "x"),
        (Op.FORGET, mine, None),
        (Op.PUT, mine, "y"),
        (Op.SWEEP, mine, None),
        (Op.TURN, mine, None),
        (Op.STORE, other, None),
        (Op.STORE, Caller(), None),
    ]:
        scribe.entry(op=op, caller=caller, ref=ref)

    with scribe.store.read() as reader:
        assert reader.ledger.usage("mine") == SessionUsage(stores=2, supersedes=1, deletes=1)
        assert reader.ledger.usage("other") == SessionUsage(1, 0, 0)
        assert reader.ledger.usage("nobody") == SessionUsage(0, 0, 0)
        assert reader.ledger.usage("") == SessionUsage(0, 0, 0)


def test_usage_survives_forgetting_and_clearing(scribe):
    """A session cannot win back its quota by forgetting what it stored."""
    entry = scribe.entry(op=Op.STORE, caller=Caller(session="s"), ref="x")
    scribe.store.write(
        lambda writer: writer.ledger.erase([(entry.seq, entry.id)], position=1, at=0, reason="")
    )
    scribe.store.write(lambda writer: writer.state.clear_projection())

    with scribe.store.read() as reader:
        assert reader.ledger.usage("s") == SessionUsage(1, 1, 0)


def test_ops_are_newest_first_and_have_no_bodies(scribe, clock):
    """The trail of what succeeded: half-open in time, newest first, never the content."""
    start = clock()
    for _ in range(4):
        scribe.entry(body=b"secret")
        clock.advance(seconds=1)

    with scribe.store.read() as reader:
        found = reader.ledger.ops(since=start + 1_000_000, until=start + 3_000_000, limit=9)
        assert [entry.seq for entry in found] == [3, 2]
        assert [entry.body for entry in found] == [None, None]
        assert [entry.seq for entry in reader.ledger.ops(since=None, until=None, limit=3)] == [4, 3, 2]


def test_sizes_count_exactly(scribe, clock):
    """Every figure of `sizes` is the number of things there are."""
    scribe.turns(["a", "b"])
    old = scribe.memory("old", id="old")
    scribe.memory("new", supersedes="old")
    scribe.memory("keyed", key="k", category="c")
    scribe.memory("gone soon", key="l", category="c", expires_at=clock.moment)
    lost = scribe.entry("lost")
    scribe.store.write(lambda writer: writer.memories.supersede(old.id, by="new", at=1))
    scribe.store.write(
        lambda writer: writer.ledger.erase([(lost.seq, "lost"), (0, "unseen")], position=1, at=1, reason="")
    )
    scribe.store.write(
        lambda writer: writer.audit.add(
            at=1, caller=Caller(), action="a", target=None, outcome="ok", detail=""
        )
    )

    with scribe.store.read() as reader:
        sizes = reader.overview.sizes(now=clock())

    assert (sizes.entries, sizes.erased, sizes.turns, sizes.tombstones, sizes.audit) == (7, 1, 2, 2, 1)
    assert (sizes.memories, sizes.active, sizes.superseded, sizes.expired, sizes.keys) == (4, 2, 1, 1, 1)


# ── the rest ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_audit_records_are_a_chain_of_their_own(scribe):
    """Audit records are numbered without gaps, and each digest covers the one before."""
    caller = Caller("ann", "cli", "s")
    for number in range(3):
        scribe.store.write(
            lambda writer, n=number: writer.audit.add(
                at=n, caller=caller, action="export", target=None if n else "t", outcome="ok", detail=f"{n}"
            )
        )

    with scribe.store.read() as reader:
        rows = reader.audit.rows()
        assert [row.seq for row in reader.audit.rows(after=1, limit=1)] == [2]

    digest = GENESIS
    for row in rows:
        record = row.record
        digest = audit_digest(
            digest, row.seq, row.at, caller, record.action, record.target, record.outcome, record.detail
        )
        assert row.digest == digest
    assert [row.seq for row in rows] == [1, 2, 3]
    assert [(row.record.actor, row.record.adapter, row.record.session) for row in rows] == [
        ("ann", "cli", "s")
    ] * 3
    assert {row.record.space for row in rows} == {"alice"}


def test_the_audit_log_is_counted_apart(scribe, open_store):
    """How many records were ever added is known without them, and a failed work adds none."""

    def add(writer: Writer) -> None:
        writer.audit.add(at=1, caller=Caller(), action="a", target=None, outcome="ok", detail="")

    def add_and_fail(writer: Writer) -> None:
        add(writer)
        raise Unwell

    for _ in range(3):
        scribe.store.write(add)
        with pytest.raises(Unwell):
            scribe.store.write(add_and_fail)

    with open_store(elsewhere=True).read() as reader:
        assert reader.audit.count() == len(reader.audit.rows()) == reader.overview.sizes(now=0).audit == 3


def test_notes_are_kept_and_replaced(scribe, open_store):
    """A note is there for everyone until it is written over."""
    scribe.store.write(lambda writer: writer.state.set_note("name", "one"))
    scribe.store.write(lambda writer: writer.state.set_note("name", "two"))

    with open_store(elsewhere=True).read() as reader:
        assert reader.state.note("name") == "two"
        assert reader.state.note("other") is None


def test_the_cursor_is_kept(scribe, open_store):
    """Where the projection stands survives, and goes back with a failed work."""
    scribe.entry()
    scribe.store.write(lambda writer: writer.state.set_cursor(1))

    def work(writer: Writer) -> None:
        writer.state.set_cursor(99)
        raise Unwell

    with pytest.raises(Unwell):
        scribe.store.write(work)

    with open_store(elsewhere=True).read() as reader:
        assert reader.state.cursor() == 1


def test_rows_that_must_stay_cannot_be_altered(scribe, engine):
    """The database itself refuses to change or delete a ledger entry, a payload nobody forgot, a tombstone or an
    audit record: append-only is a fact, not good manners."""
    scribe.entry("kept", body=b"kept")
    lost = scribe.entry("lost")
    scribe.store.write(lambda writer: writer.ledger.erase([(lost.seq, "lost")], position=2, at=1, reason="r"))
    scribe.store.write(
        lambda writer: writer.audit.add(
            at=1, caller=Caller(), action="a", target=None, outcome="ok", detail=""
        )
    )
    before = {table: engine.execute("alice", f"SELECT * FROM {table}") for table in engine.append_only}

    for table, columns in engine.append_only.items():
        for column in columns.split(", "):
            with pytest.raises(engine.refusal):
                engine.execute("alice", f"UPDATE {table} SET {column} = {column}")
        with pytest.raises(engine.refusal):
            engine.execute("alice", f"DELETE FROM {table}")

    assert {
        table: engine.execute("alice", f"SELECT * FROM {table}") for table in engine.append_only
    } == before
    assert all(before.values())


def test_a_row_cannot_be_written_over(scribe, engine):
    """Nor does writing a row anew get around it."""
    scribe.entry("a", body=b"kept")
    lost = scribe.entry("lost")
    scribe.store.write(
        lambda writer: writer.ledger.erase([(lost.seq, "lost")], position=2, at=1, reason="first")
    )
    scribe.store.write(
        lambda writer: writer.audit.add(
            at=1, caller=Caller(), action="a", target=None, outcome="ok", detail=""
        )
    )
    before = {table: engine.execute("alice", f"SELECT * FROM {table}") for table in engine.append_only}

    for sql in engine.overwrites:
        with suppress(engine.refusal):
            engine.execute("alice", sql)

    assert {
        table: engine.execute("alice", f"SELECT * FROM {table}") for table in engine.append_only
    } == before
