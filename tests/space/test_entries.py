"""Typed memories, as Carapace's memory tools know them: kinds, provenance, supersession, session limits, deletion.

Tests that restate a title of `contracts/carapace.md` B10 are named after it.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from tests.conftest import counted

from memplane import Caller, Kind, State, Tier
from memplane.errors import InvalidRequest, LimitReached, NotFound
from memplane.memory.supersession import chain_of
from memplane.types import STORABLE_KINDS, Op

BEHAVIORAL = {"preference", "instruction", "correction"}


def current(space) -> list[str]:
    return [hit.text for hit in space.search(turns=False, limit=100)]


def in_session(plane, session="s1", owner="alice"):
    return plane.space(owner, caller=Caller(actor="agent", adapter="ipc", session=session))


def use_up(action, times: int) -> None:
    for _ in range(times):
        action()


# ── storing ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_stores_a_valid_entry_and_returns_it(space, clock):
    """The answer is the memory itself, and the very next read has it."""
    memory = space.store("preference", "Prefers TypeScript", tags=["coding"])

    assert (memory.kind, memory.text, memory.tags) == (Kind.PREFERENCE, "Prefers TypeScript", ("coding",))
    assert memory.created_at == memory.updated_at == clock.moment
    assert (memory.state, memory.tier) == (State.ACTIVE, Tier.WARM)
    assert (memory.supersedes, memory.superseded_by, memory.key) == (None, None, None)
    assert space.memory(memory.id) == memory


def test_creates_an_entry_with_generated_id_and_timestamp(space):
    """Ids have Carapace's form and never repeat, even for the same content."""
    one, two = space.store("fact", "same"), space.store("fact", "same")

    assert one.id.startswith("mem-")
    assert len(one.id) == len("mem-00000000-0000-4000-8000-000000000000")
    assert one.id != two.id
    assert sorted(current(space)) == ["same", "same"]


@pytest.mark.parametrize("kind", [kind.value for kind in STORABLE_KINDS])
def test_derives_behavioral_from_kind(space, kind):
    """Preference, instruction and correction are behavioral; fact and context are not; nobody sets it."""
    assert space.store(kind, "x").behavioral is (kind in BEHAVIORAL)


def test_behavioral_cannot_be_given(space):
    """There is no way to say it: not as an argument of `store`."""
    with pytest.raises(TypeError):
        space.store("fact", "x", behavioral=True)


@pytest.mark.parametrize("kind", ["episode", "Fact", "", "note", "fact; DROP TABLE memory"])
def test_returns_error_on_invalid_entry_type(space, kind):
    """An unknown kind is refused by name; an episode is only ever derived."""
    with pytest.raises(InvalidRequest, match="unknown kind") as caught:
        space.store(kind, "x")

    assert caught.value.field == "kind"
    assert space.ledger.entries() == []


def test_populates_provenance_from_context_not_arguments(plane):
    """Who, through which door, in which session: from the caller, and it survives a replay."""
    space = in_session(plane)
    memory = space.store("fact", "x")
    space.ledger.replay()

    assert memory.caller == Caller("agent", "ipc", "s1")
    assert space.memory(memory.id).caller == memory.caller
    for argument in ("session", "session_id", "group", "created_at", "id", "caller"):
        with pytest.raises(TypeError):
            space.store("fact", "x", **{argument: "forged"})


def test_stores_with_tags(space):
    """Tags keep their order and spelling; saying one twice is saying it once."""
    memory = space.store("fact", "x", tags=["b", "a", "b", "A b", "日本"])

    assert memory.tags == ("b", "a", "A b", "日本")


@pytest.mark.parametrize(
    "tags",
    [
        [str(n) for n in range(11)],
        ["x" * 51],
        [""],
        ["  "],
        ["a\x00b"],
        ["\ud800"],
        [1],
        "coding",
    ],
)
def test_tags_have_limits(space, tags):
    """At most ten, at most fifty characters each, real text, and a list."""
    with pytest.raises(InvalidRequest, match="tag"):
        space.store("fact", "x", tags=tags)

    assert space.ledger.entries() == []


def test_tags_at_the_limit_are_kept(space):
    """Ten tags of fifty characters are fine."""
    tags = [f"{n}" * 50 for n in range(10)]

    assert space.store("fact", "x", tags=tags).tags == tuple(tags)


@pytest.mark.parametrize("size", [1, 1_999, 2_000])
def test_accepts_content_at_exactly_the_limit(space, size):
    """Characters count, not bytes."""
    assert space.store("fact", "日" * size).text == "日" * size


@pytest.mark.parametrize("content", ["x" * 2_001, "", "  \n", "a\x00b", "half \ud83d"])
def test_throws_for_content_that_cannot_be_kept(space, content):
    """Too long, empty, NUL or half a character: refused before anything is written."""
    with pytest.raises(InvalidRequest) as caught:
        space.store("fact", content)

    assert caught.value.field == "content"
    assert space.ledger.entries() == []


@pytest.mark.parametrize(
    "content",
    [
        "'; DROP TABLE memory; --",
        "x' UNION SELECT * FROM ledger --",
        '"quoted" and ""doubled""',
        "back\\slash \\' \\\"",
        "/* comment */ -- comment",
        "PRAGMA user_version = 99",
        "content: NEAR(a b) * ^ {x}",
        '{"json": ["tags"]}',
    ],
)
def test_content_is_data(space, content):
    """Whatever is stored comes back as it was, is found by its words, and does nothing."""
    memory = space.store("fact", content, tags=[content[:50]])

    assert space.memory(memory.id).text == content
    assert [hit.id for hit in space.search(content)] == [memory.id]
    assert [hit.id for hit in space.search(tags=[content[:50]])] == [memory.id]
    assert space.ledger.check() == []


def test_content_of_memory_itself_is_refused(space):
    """What a recall or a brief put into a prompt is no news: storing only that would be hearing our own echo."""
    space.store("fact", "Lives in Lisbon")

    for echo in (space.recall("Lisbon").text, space.brief().markdown):
        with pytest.raises(InvalidRequest) as caught:
            space.store("fact", echo)
        assert caught.value.field == "content"
    assert current(space) == ["Lives in Lisbon"]


def test_a_secret_is_not_kept_in_memory(space):
    """The derived memory holds a placeholder; the ledger keeps what was said."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    memory = space.store("fact", f"The token is {token} for CI")

    assert token not in memory.text
    assert memory.text.startswith("The token is [REDACTED")
    assert space.search(token[4:20]) == []
    assert token.encode() in space.ledger.entries()[0].body


def test_the_evidence_is_the_whole_content(space):
    """A stored memory quotes its entry from the first to the last character."""
    memory = space.store("fact", "Ünïcode 日本 🎉")

    assert (memory.entry_id, memory.start, memory.end) == (memory.id, 0, len("Ünïcode 日本 🎉"))


# ── superseding ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_handles_supersession(space, clock):
    """The old one stays, marked with who replaced it and when; only the new one is current."""
    old = space.store("preference", "Tea")
    clock.advance(days=1)
    new = space.store("preference", "Coffee", supersedes=old.id)

    before = space.memory(old.id)
    assert new.supersedes == old.id
    assert (before.state, before.tier, before.superseded_by) == (State.SUPERSEDED, Tier.COLD, new.id)
    assert before.superseded_at == clock.moment
    assert current(space) == ["Coffee"]


def test_handles_supersession_chain(space):
    """Replacing something already replaced replaces the newest of its chain: there is one current answer."""
    first = space.store("fact", "one")
    second = space.store("fact", "two", supersedes=first.id)
    third = space.store("fact", "three", supersedes=first.id)

    assert third.supersedes == second.id
    assert space.memory(first.id).superseded_by == second.id
    assert space.memory(second.id).superseded_by == third.id
    assert current(space) == ["three"]
    with space._context.read() as reader:
        assert [memory.text for memory in chain_of(reader, first.id)] == ["one", "two", "three"]


def test_a_chain_is_followed_however_long(space):
    """A long chain has one end, whichever link is named."""
    links = [space.store("fact", "0")]
    for number in range(1, 30):
        links.append(space.store("fact", f"{number}", supersedes=links[number // 2].id))

    assert current(space) == ["29"]
    assert [memory.supersedes for memory in links[1:]] == [memory.id for memory in links[:-1]]


@pytest.mark.parametrize("replayed", [False, True])
def test_a_chain_survives_a_forgotten_link(space, replayed):
    """With the middle of a chain forgotten, replacing its beginning still replaces its end: old and new never stand
    side by side."""
    first = space.store("fact", "one")
    second = space.store("fact", "two", supersedes=first.id)
    third = space.store("fact", "three", supersedes=second.id)
    space.delete(second.id)
    if replayed:
        space.ledger.replay()
    fourth = space.store("fact", "four", supersedes=first.id)

    assert fourth.supersedes == third.id
    assert current(space) == ["four"]


def test_replacing_what_lost_its_replacement_works(space):
    """Once the replacement is forgotten, what it replaced can be replaced anew, and is still not current."""
    first = space.store("fact", "one")
    second = space.store("fact", "two", supersedes=first.id)
    space.delete(second.id)
    assert current(space) == []

    third = space.store("fact", "three", supersedes=first.id)

    assert third.supersedes == first.id
    assert current(space) == ["three"]


def test_returns_error_when_superseding_non_existent_entry(space):
    """Nothing is stored when there is nothing to replace: it is one transaction."""
    with pytest.raises(NotFound, match="mem-nope"):
        space.store("fact", "x", supersedes="mem-nope")

    assert space.ledger.entries() == []
    assert current(space) == []


def test_a_failed_store_leaves_the_old_one_current(space):
    """If the new memory cannot be kept, the old one is not touched."""
    old = space.store("fact", "old")

    with pytest.raises(InvalidRequest):
        space.store("fact", "x" * 2_001, supersedes=old.id)

    assert space.memory(old.id).state is State.ACTIVE


def test_supersession_stays_within_a_space(plane):
    """A memory of another space is not there to be replaced."""
    theirs = plane.space("bob").store("fact", "theirs")

    with pytest.raises(NotFound):
        plane.space("alice").store("fact", "mine", supersedes=theirs.id)

    assert plane.space("bob").memory(theirs.id).state is State.ACTIVE


def test_two_threads_superseding_the_same_memory_leave_one_current(space):
    """Whoever comes second replaces the first one's answer; two current answers are impossible."""
    old = space.store("fact", "old")

    with ThreadPoolExecutor(8) as pool:
        new = list(pool.map(lambda n: space.store("fact", f"new {n}", supersedes=old.id), range(16)))

    (survivor,) = current(space)
    assert survivor in {memory.text for memory in new}
    assert len({memory.supersedes for memory in new}) == 16
    with space._context.read() as reader:
        assert len(chain_of(reader, old.id)) == 17


def test_two_programs_superseding_the_same_memory_leave_one_current(open_plane):
    """The same holds across programs."""
    spaces = [open_plane().space("alice") for _ in range(3)]
    old = spaces[0].store("fact", "old")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda n: spaces[n % 3].store("fact", f"new {n}", supersedes=old.id), range(12)))

    assert len(current(spaces[0])) == 1


def test_a_keyed_fact_can_be_superseded_by_a_memory(space):
    """A memory may replace a fact; the key is then free for a new value."""
    fact = space.put("theme", "dark")
    space.store("correction", "No theme at all", supersedes=fact.id)

    assert current(space) == ["No theme at all"]
    with pytest.raises(NotFound):
        space.get("theme")
    space.put("theme", "light")
    assert space.get("theme").text == "light"


# ── session limits ───────────────────────────────────────────────────────────────────────────────────────────────


def test_enforces_max_20_stores_per_session(plane):
    """The twenty-first store of a session is refused and leaves nothing but an audit record."""
    space = in_session(plane)
    use_up(lambda: space.store("fact", "x"), 20)

    with pytest.raises(LimitReached) as caught:
        space.store("fact", "one too many")

    assert (caught.value.action, caught.value.limit, caught.value.code) == ("store", 20, "rate_limited")
    assert len(current(space)) == 20
    refusals = [record for record in space.ledger.audit() if record.outcome == "refused: rate_limited"]
    assert [(record.action, record.session) for record in refusals] == [("store", "s1")]


def test_enforces_max_5_supersedes_per_session(plane):
    """The sixth supersession is refused; an ordinary store still works."""
    space = in_session(plane)
    first = space.store("fact", "0")
    use_up(lambda: space.store("fact", "x", supersedes=first.id), 5)

    with pytest.raises(LimitReached) as caught:
        space.store("fact", "y", supersedes=first.id)

    assert (caught.value.action, caught.value.limit) == ("supersede", 5)
    assert space.store("fact", "z").text == "z"


def test_enforces_max_5_deletes_per_session(plane):
    """The sixth deletion is refused, whether by id or by scope, and removes nothing."""
    space = in_session(plane)
    memories = [space.store("fact", f"{n}") for n in range(7)]
    use_up(lambda: space.delete(memories.pop().id), 4)
    space.forget(entries=[memories.pop().entry_id])

    with pytest.raises(LimitReached) as caught:
        space.delete(memories[0].id)
    with pytest.raises(LimitReached):
        space.forget(everything=True)

    assert (caught.value.action, caught.value.limit) == ("delete", 5)
    assert len(current(space)) == 2


def test_rate_limits_are_per_session_not_global(plane):
    """Another session of the same space starts afresh."""
    use_up(lambda: in_session(plane, "one").store("fact", "x"), 20)

    assert in_session(plane, "two").store("fact", "y").text == "y"


def test_rate_limits_are_per_space(plane):
    """The same session name in another space is another session."""
    use_up(lambda: in_session(plane, "s", "alice").store("fact", "x"), 20)

    assert in_session(plane, "s", "bob").store("fact", "y").text == "y"


def test_no_session_no_limit(space):
    """Who comes without a session, an operator or a program of one's own, is not counted."""
    use_up(lambda: space.store("fact", "x"), 25)

    assert len(current(space)) == 25


def test_only_successful_calls_consume_quota(plane):
    """A refused call costs nothing: not a bad kind, not an unknown id, not one that was over the limit."""
    space = in_session(plane)
    for _ in range(30):
        with pytest.raises(InvalidRequest):
            space.store("nonsense", "x")
        with pytest.raises(NotFound):
            space.store("fact", "x", supersedes="mem-nope")
        with pytest.raises(NotFound):
            space.delete("mem-nope")
        space.forget(everything=True, dry_run=True)

    use_up(lambda: space.store("fact", "x"), 20)
    assert len(current(space)) == 20


def test_limits_survive_a_restart(plane, open_plane):
    """The count is in the ledger: a new process, a replay and a forget change nothing about it."""
    space = in_session(plane)
    first = space.store("fact", "x")
    use_up(lambda: space.store("fact", "x", supersedes=first.id), 5)
    use_up(lambda: space.store("fact", "x"), 14)
    plane.close()
    space = in_session(open_plane())
    space.ledger.replay()
    space.delete(first.id)

    with pytest.raises(LimitReached):
        space.store("fact", "x")


def test_limits_hold_when_many_threads_ask_at_once(plane):
    """Twenty of forty simultaneous stores succeed, not one more."""
    space = in_session(plane)

    def attempt(number: int) -> bool:
        try:
            space.store("fact", f"{number}")
        except LimitReached:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(attempt, range(40)))

    assert sum(outcomes) == len(current(space)) == 20


def test_limits_can_be_set(open_plane):
    """Settings decide, and 0 forbids."""
    plane = open_plane(session_stores_max=1, session_supersedes_max=0, session_deletes_max=0)
    space = in_session(plane)
    memory = plane.space("alice").store("fact", "x")

    with pytest.raises(LimitReached, match="supersede"):
        space.store("fact", "y", supersedes=memory.id)
    with pytest.raises(LimitReached, match="delete"):
        space.delete(memory.id)
    space.store("fact", "y")
    with pytest.raises(LimitReached, match="store"):
        space.store("fact", "z")


# ── purging ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def replaced(space, clock):
    """Three memories superseded 100, 90 and 10 days ago, and one that is current."""
    ages = []
    start = clock.now
    for days in (100, 90, 10):
        clock.set(start - timedelta(days=days) // timedelta(microseconds=1))
        old = space.store("fact", f"replaced {days} days ago")
        space.store("fact", f"current {days}", supersedes=old.id)
        ages.append(old)
    clock.set(start)
    return ages


def test_removes_superseded_entries_older_than_specified_days(space, replaced):
    """Superseded more than that long ago, counted from the supersession; exactly that long ago is not more."""
    assert space.purge(90) == 1

    kept = {hit.text for hit in space.search(include_superseded=True)}
    assert "replaced 100 days ago" not in kept
    assert {"replaced 90 days ago", "replaced 10 days ago"} <= kept
    with pytest.raises(NotFound):
        space.memory(replaced[0].id)


def test_does_not_purge_active_entries(space, replaced, clock):
    """However old, what is current stays; a second purge finds nothing."""
    clock.advance(days=10_000)

    assert space.purge() == 3
    assert space.purge() == 0
    assert sorted(current(space)) == ["current 10", "current 100", "current 90"]


def test_purge_uses_the_setting_by_default(space, replaced, clock):
    """Ninety days unless told otherwise."""
    clock.advance(seconds=1)

    assert space.purge() == 2


def test_a_purge_is_about_what_is_derived(space, replaced):
    """The ledger keeps the entries, verifies, and a replay does not bring the memories back."""
    entries = len(space.ledger.entries())
    space.purge(0)
    space.ledger.replay()

    assert len(space.ledger.entries()) == entries + 1
    assert [entry.op for entry in space.ledger.entries()][-1] is Op.PURGE
    assert all(entry.body for entry in space.ledger.entries())
    assert sorted(hit.text for hit in space.search(include_superseded=True)) == [
        "current 10",
        "current 100",
        "current 90",
    ]
    assert space.ledger.verify().ok


def test_an_empty_purge_leaves_no_entry(space):
    """Nothing done, nothing recorded."""
    space.store("fact", "x")

    assert space.purge(0) == 0
    assert [entry.op for entry in space.ledger.entries()] == [Op.STORE]


@pytest.mark.parametrize("days", [-1, -(10**12)])
def test_purge_refuses_a_negative_age(space, days):
    """The future has no superseded memories."""
    with pytest.raises(InvalidRequest):
        space.purge(days)


def test_purge_takes_any_age(space):
    """Longer ago than time itself purges nothing, and is no error."""
    assert space.purge(10**12) == 0


# ── deleting ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_deletes_an_existing_entry(space):
    """It is gone from every read, and its receipt says so."""
    memory = space.store("fact", "zebra crossing", tags=["t"])
    receipt = space.delete(memory.id)

    assert receipt.counts == counted(entries=1, memories=1)
    assert receipt.reason == "deleted"
    with pytest.raises(NotFound):
        space.memory(memory.id)
    assert current(space) == space.search("zebra") == space.search(tags=["t"]) == []


def test_returns_error_for_non_existent_entry(space):
    """An unknown id, and one deleted before, is not found."""
    memory = space.store("fact", "x")
    space.delete(memory.id)

    for id_ in (memory.id, "mem-nope"):
        with pytest.raises(NotFound) as caught:
            space.delete(id_)
        assert caught.value.name == id_


@pytest.mark.parametrize("id_", ["' OR 1=1 --", "%", "*", "日本"])
def test_memory_delete_handles_injection_in_id_field(space, id_):
    """An id is data: nothing else is deleted."""
    space.store("fact", "stays")

    with pytest.raises(NotFound):
        space.delete(id_)

    assert current(space) == ["stays"]


def test_deleting_a_replacement_does_not_bring_the_replaced_back(space):
    """What was replaced stays replaced, also after a replay."""
    old = space.store("fact", "old")
    new = space.store("fact", "new", supersedes=old.id)
    space.delete(new.id)

    assert current(space) == []
    space.ledger.replay()
    assert current(space) == []
    assert space.memory(old.id).state is State.SUPERSEDED


def test_entries_stored_under_one_group_are_only_in_that_group(plane):
    """A space cannot see, delete or count another's memories."""
    mine, theirs = plane.space("alice"), plane.space("bob")
    memory = theirs.store("fact", "theirs")

    assert current(mine) == []
    with pytest.raises(NotFound):
        mine.memory(memory.id)
    with pytest.raises(NotFound):
        mine.delete(memory.id)
    assert mine.brief().entry_count == 0
    assert sorted(plane.spaces()) == ["alice", "bob"]


@pytest.mark.parametrize("before", [10**30, -(10**30)])
def test_a_place_that_no_ledger_has_is_beyond_its_end(space, before):
    """
    Anybody may write one into an address.
    """
    said = space.retain("hi")

    assert [one.id for one in space.overview.timeline(before=before)] == ([said.id] if before > 0 else [])
