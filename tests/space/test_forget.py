"""Forgetting is a promise: gone from every read, gone from disk, proven by a receipt, and not back after a replay."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from tests.conftest import counted

from engines import both_if_thorough
from memplane import Caller
from memplane.clock import iso
from memplane.errors import InvalidRequest, NotFound
from memplane.ledger.payloads import TurnPayload, encode
from memplane.memory.runs import PackRun
from memplane.types import NewEntry, Op

pytestmark = both_if_thorough

SECOND = timedelta(seconds=1)
NOTHING = counted()


def texts(space) -> set[str]:
    """Everything any read gives away."""
    found = {hit.text for hit in space.search(include_superseded=True, limit=100)}
    found |= {hit.text for hit in space.search("zebra", include_superseded=True, limit=100)}
    found |= {turn.text for turn in space.turns(limit=1_000)}
    found |= {block.text.rpartition(": ")[2] for block in space.recall("zebra").blocks}
    found |= {entry.content.rpartition(": ")[2] for entry in space.brief().entries}
    found |= {fact.text for fact in space.facts.list()}
    return found


@pytest.fixture
def full(space, clock):
    """Something of every sort, each a second after the last."""
    space.retain("zebra turn c", conversation="c", project="p", id="tc")
    clock.advance(SECOND)
    space.retain("zebra turn d", conversation="d", project="p", id="td")
    clock.advance(SECOND)
    space.store("fact", "zebra memory c", conversation="c")
    clock.advance(SECOND)
    space.put("k", "zebra value")
    clock.advance(SECOND)
    space.put("k/2", "zebra other value")
    clock.advance(SECOND)
    space.facts.record_run(PackRun(pack="p", outcome="ok", at_unix=1))
    clock.advance(SECOND)
    return space


ALL = {"zebra turn c", "zebra turn d", "zebra memory c", "zebra value", "zebra other value"}

SCOPES = {
    "entries": ({"entries": ["tc", "td"]}, {"zebra turn c", "zebra turn d"}, counted(entries=2, turns=2)),
    "key": ({"key": "k"}, {"zebra value"}, counted(entries=1, facts=1)),
    "prefix": ({"prefix": "k"}, {"zebra value", "zebra other value"}, counted(entries=2, facts=2)),
    "every key": (
        {"prefix": ""},
        {"zebra value", "zebra other value"},
        counted(entries=3, facts=2, runs=1),
    ),
    "conversation": (
        {"conversation": "c"},
        {"zebra turn c", "zebra memory c"},
        counted(entries=2, turns=1, memories=1),
    ),
    "project": ({"project": "p"}, {"zebra turn c", "zebra turn d"}, counted(entries=2, turns=2)),
    "place": ({"project": "p", "conversation": "d"}, {"zebra turn d"}, counted(entries=1, turns=1)),
    "since": (
        {"since": "2026-11-15T08:30:02Z"},
        {"zebra memory c", "zebra value", "zebra other value"},
        counted(entries=4, memories=1, facts=2, runs=1),
    ),
    "until": ({"until": "2026-11-15T08:30:01Z"}, {"zebra turn c"}, counted(entries=1, turns=1)),
    "range": (
        {"since": "2026-11-15T08:30:01Z", "until": "2026-11-15T08:30:03Z"},
        {"zebra turn d", "zebra memory c"},
        counted(entries=2, turns=1, memories=1),
    ),
    "narrowed": (
        {"prefix": "k", "since": "2026-11-15T08:30:04Z"},
        {"zebra other value"},
        counted(entries=1, facts=1),
    ),
    "everything": ({"everything": True}, ALL, counted(entries=6, turns=2, memories=1, facts=2, runs=1)),
    "nothing there": ({"conversation": "nobody's"}, set(), NOTHING),
}


@pytest.mark.parametrize(("scope", "gone", "removed"), SCOPES.values(), ids=SCOPES.keys())
def test_every_scope_forgets_what_it_says(full, scope, gone, removed):
    """What is in scope is gone from every read, also after a replay and a reopen; the rest stays; the receipt counts
    it; and the ledger still verifies."""
    receipt = full.forget(**scope)

    assert texts(full) == ALL - gone
    assert receipt.counts == removed
    full.ledger.replay()
    assert texts(full) == ALL - gone
    assert full.ledger.verify(expected={receipt.seq: receipt.digest}).ok
    assert full.ledger.check() == []


@pytest.mark.parametrize(("scope", "gone", "removed"), SCOPES.values(), ids=SCOPES.keys())
def test_a_dry_run_tells_the_truth_and_does_nothing(full, scope, gone, removed):
    """The counts of a dry run are those of the real one, and it leaves no trace."""
    before = full.ledger.entries()
    dry = full.forget(**scope, dry_run=True)

    assert (dry.counts, dry.dry_run, dry.id, dry.seq) == (removed, True, "", 0)
    assert full.ledger.entries() == before
    assert full.ledger.tombstones() == full.ledger.receipts() == []
    assert texts(full) == ALL
    real = full.forget(**scope)
    assert (real.counts, real.scope) == (dry.counts, dry.scope)


@pytest.mark.parametrize("arguments", [{}, {"entries": []}, {"reason": "because"}, {"dry_run": True}])
def test_a_forget_without_a_scope_is_refused(full, arguments):
    """Nobody empties a space by leaving something out."""
    with pytest.raises(InvalidRequest, match="say what to forget"):
        full.forget(**arguments)

    assert texts(full) == ALL


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"everything": True, "key": "k"}, "everything"),
        ({"everything": True, "entries": ["x"]}, "everything"),
        ({"entries": ["x"], "conversation": "c"}, "entries"),
        ({"entries": ["x"], "since": 0}, "entries"),
        ({"entries": "tc"}, "entries"),
        ({"entries": ["\ud800"]}, "entries"),
        ({"key": "\ud800"}, "key"),
        ({"prefix": "a\x00"}, "prefix"),
        ({"conversation": "\ud800"}, "conversation"),
        ({"project": "\ud800"}, "project"),
        ({"key": "k", "reason": "\ud800"}, "reason"),
        ({"since": "2026-11-15", "until": "2026-11-15"}, "since"),
        ({"since": "2026-11-16", "until": "2026-11-15"}, "since"),
        ({"since": "last week"}, "since"),
        ({"until": float("nan")}, "until"),
    ],
)
def test_an_unclear_scope_is_refused(full, arguments, field):
    """What contradicts itself or cannot be read forgets nothing, and says why."""
    with pytest.raises(InvalidRequest) as caught:
        full.forget(**arguments)

    assert caught.value.field == field
    assert texts(full) == ALL
    assert full.ledger.tombstones() == []


# ── receipts ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_receipt_says_what_when_and_where(full, clock, home):
    """Scope as asked, times as dates, counts, reason, moment, place and digest."""
    receipt = full.forget(conversation="c", since=clock.moment - timedelta(days=1), reason="asked to")

    assert receipt.scope == {"conversation": "c", "since": iso(clock() - 86_400_000_000)}
    assert (receipt.reason, receipt.at, receipt.dry_run) == ("asked to", clock.moment, False)
    assert receipt.id.startswith("receipt-")
    assert receipt.seq == full.ledger.entries()[-1].seq
    assert receipt.off_disk is (home.server is None)


def test_receipts_are_kept(full, open_plane):
    """Every forget can be shown later, in order, from any process; a sweep is no forget."""
    given = [
        full.forget(key="k"),
        full.delete(full.search("memory")[0].id),
        full.forget(everything=True, reason="r"),
    ]
    full.put("short", "lived", ttl=3_600)
    full.facts.sweep()

    again = open_plane().space("alice").ledger.receipts()
    assert [(r.id, r.counts, r.reason, r.seq, r.digest) for r in again] == [
        (r.id, r.counts, r.reason, r.seq, r.digest) for r in given
    ]
    assert [receipt.scope for receipt in again] == [
        {"key": "k"},
        {"entries": [given[1].scope["entries"][0]]},
        {"everything": True},
    ]


def test_receipts_are_witnesses(full):
    """Each digest is one the ledger passes through; a wrong one is noticed."""
    for scope in ({"key": "k"}, {"conversation": "c"}):
        full.forget(**scope)
    expected = {receipt.seq: receipt.digest for receipt in full.ledger.receipts()}

    assert full.ledger.verify(expected=expected).ok
    assert not full.ledger.verify(expected=dict.fromkeys(expected, "00" * 32)).ok
    assert not full.ledger.verify(expected=expected | {999: "00" * 32}).ok


def test_a_receipt_cannot_be_forgotten(full):
    """What proves a forget stays, whoever asks, by id or by everything."""
    receipt = full.forget(key="k")
    assert full.forget(entries=[receipt.id]).counts == NOTHING
    full.forget(everything=True)

    assert full.ledger.receipts()[0].id == receipt.id
    assert receipt.id not in {tombstone.id for tombstone in full.ledger.tombstones()}
    assert full.ledger.verify().ok


def test_a_receipt_holds_no_content(full):
    """Nothing of what was forgotten is in the record of forgetting it."""
    full.forget(everything=True)

    bodies = b"".join(entry.body for entry in full.ledger.entries() if entry.body)
    assert b"zebra" not in bodies


# ── tombstones ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_forgotten_id_stays_forgotten(full):
    """Retaining it again is suppressed: nothing is written, now or after a replay."""
    full.forget(entries=["tc"])
    head = full.ledger.entries()[-1].seq

    again = full.retain("zebra turn c", id="tc")
    assert (again.suppressed, again.seq, again.id) == (True, 0, "tc")
    full.ledger.replay()
    assert full.retain("zebra turn c", id="tc").suppressed
    assert "zebra turn c" not in texts(full)
    assert full.ledger.entries()[-1].seq == head


def test_a_forgotten_idempotency_key_stays_forgotten(space):
    """The key names the entry, so forgetting the entry forgets the key."""
    kept = space.retain("zebra", idempotency_key="once")
    assert space.retain("zebra", idempotency_key="once").deduped
    space.forget(entries=[kept.id])

    assert space.retain("zebra", idempotency_key="once").suppressed


def test_an_unknown_id_gets_its_tombstone(space):
    """What is forgotten before it arrives does not arrive, by retain or by import."""
    receipt = space.forget(entries=["not yet", "nor this"])

    assert receipt.counts == NOTHING
    assert space.retain("zebra", id="not yet").suppressed
    draft = NewEntry("nor this", Op.TURN, encode(TurnPayload(role="user", content="zebra", at=0)))
    assert space.ledger.load([draft]).forgotten == 1
    assert texts(space) == set()
    assert [tombstone.id for tombstone in space.ledger.tombstones()] == ["nor this", "not yet"]


def test_a_tombstone_says_when_and_why(full, clock):
    """And the first one stays."""
    full.forget(entries=["tc"], reason="asked")
    first = clock.moment
    clock.advance(days=1)
    full.forget(entries=["tc"], reason="again")

    (tombstone,) = full.ledger.tombstones()
    assert (tombstone.id, tombstone.at, tombstone.reason) == ("tc", first, "asked")


def test_forgetting_twice_counts_once(full):
    """The second time there is nothing left."""
    assert full.forget(conversation="c").counts["entries"] == 2
    assert full.forget(conversation="c").counts == NOTHING


def test_forgetting_a_replacement_does_not_bring_the_replaced_back(space):
    """Neither at once nor after a replay, for memories and for keys."""
    old = space.store("fact", "zebra old")
    new = space.store("fact", "zebra new", supersedes=old.id)
    space.put("k", "zebra one")
    second = space.put("k", "zebra two")
    space.forget(entries=[new.entry_id, second.entry_id])

    for _ in range(2):
        assert space.search("zebra") == []
        with pytest.raises(NotFound):
            space.get("k")
        space.ledger.replay()


def test_forgetting_a_turn_of_an_import_that_is_not_searchable_yet(space, clock):
    """A scope reaches what a bulk import left for later."""
    said = [
        TurnPayload(role="user", content=f"zebra {n}", at=clock(), conversation="c" if n % 2 else "d")
        for n in range(50)
    ]
    space.ledger.load([NewEntry(f"t{n}", Op.TURN, encode(payload)) for n, payload in enumerate(said)])

    assert space.forget(conversation="c").counts == counted(entries=25, turns=25)
    assert len(space.search("zebra", limit=100)) == 25


def test_a_forget_reaches_hundreds(space):
    """Indexed and waiting alike, in one receipt."""
    for number in range(150):
        space.retain(f"zebra {number}", conversation="c")
    space.retain("zebra stays")

    assert space.forget(conversation="c").counts == counted(entries=150, turns=150)
    assert texts(space) == {"zebra stays"}


def test_forgetting_stays_within_a_space(plane):
    """Everything is everything of this space."""
    for owner in ("alice", "bob"):
        plane.space(owner).retain("zebra", id="same")
    plane.space("alice").forget(everything=True)
    plane.space("alice").forget(entries=["same"])

    assert plane.space("alice").search("zebra") == []
    assert [hit.text for hit in plane.space("bob").search("zebra")] == ["zebra"]
    assert plane.space("bob").ledger.tombstones() == []


def test_a_forget_and_a_retain_of_the_same_id_never_both_win(plane):
    """Whichever comes first: in the end the id is forgotten and its content is nowhere."""
    space = plane.space("alice")

    def either(number: int) -> None:
        if number % 2:
            space.retain(f"zebra {number // 2}", id=f"id{number // 2}")
        else:
            space.forget(entries=[f"id{number // 2}"])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(either, range(40)))

    assert space.search("zebra") == []
    assert all(entry.body is None for entry in space.ledger.entries() if entry.op is Op.TURN)
    assert len(space.ledger.tombstones()) == 20


# ── off the disk ─────────────────────────────────────────────────────────────────────────────────────────────────


def files_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.parent.iterdir()))


@pytest.mark.parametrize("crowd", [0, 200], ids=["alone", "in a crowd"])
def test_nothing_of_it_is_left_on_disk(space, space_file, crowd):
    """After a forget that says `off_disk`, no file of the space holds the content, its words or its key, whether it
    was indexed or not; what stays is still there."""
    word, later, name = "xylophonequartz", "zyzzyvaprism", "quokkakey"
    gone = space.retain(f"before {word} after")
    for number in range(crowd):
        space.retain(f"filler {number} keepsake")
    memory = space.store("fact", f"I said {word}", tags=[f"{word}tag"])
    space.put(name, f"{later} value")
    space.retain(f"{later} waits", conversation="c")
    assert word.encode() in files_of(space_file)

    receipts = [
        space.forget(entries=[gone.id]),
        space.delete(memory.id),
        space.forget(key=name),
        space.forget(conversation="c"),
    ]

    left = files_of(space_file)
    assert all(receipt.off_disk for receipt in receipts)
    for stem in (word, word[:10], later[:9]):
        assert stem.encode() not in left
    assert name.encode() in left  # the receipt names the key that was asked for
    assert (b"keepsake" in left) is bool(crowd)
    assert space.ledger.check() == []


def test_a_sweep_leaves_nothing_on_disk(space, space_file, clock):
    """Expiry is forgetting too."""
    space.put("k", "xylophonequartz", ttl=3_600)
    clock.advance(hours=1)
    space.facts.sweep()

    assert b"xylophonequartz" not in files_of(space_file)


@pytest.mark.timeout(50, func_only=True)  # a writer would wait for a minute
def test_a_receipt_says_when_a_reader_held_old_pages(space, space_file):
    """With a reader in the way the forget is done, quickly, and honest about the disk; the next one cleans up."""
    gone = space.retain("xylophonequartz")
    with space._context.read() as reader:
        reader.ledger.head()
        receipt = space.forget(entries=[gone.id])

        assert receipt.off_disk is False
        assert space.search("xylophonequartz") == []
    assert space.forget(entries=["anything"]).off_disk is True
    assert b"xylophonequartz" not in files_of(space_file)


def test_a_session_cannot_forget_more_than_its_share(plane):
    """Five forgets per session; a dry run is free."""
    space = plane.space("alice", caller=Caller(session="s"))
    for number in range(5):
        space.forget(entries=[f"{number}"])
        space.forget(everything=True, dry_run=True)

    with pytest.raises(InvalidRequest, match="5 times"):
        space.forget(entries=["6"])
    assert len(space.ledger.tombstones()) == 5
