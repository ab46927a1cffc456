"""An installation moves into another database, and nothing about it changes: whatever was done to it, whenever the move is
run, and however often."""

from contextlib import ExitStack

import apsw
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from tests.conftest import TENANT, fresh_folder
from tests.sync.test_merge import PICK, WHERE, Replica, Replicas, _by_seq, remembered

from memplane import Memplane
from memplane.auth.keys import Grant
from memplane.auth.principal import Unauthenticated
from memplane.errors import KeyMismatch
from memplane.space.recall import write_accesses
from memplane.storage.catalog.accounts import Account, Quota, UsageCounts
from memplane.storage.catalog.directory import ResourceKind
from memplane.storage.filter import Filter
from memplane.storage.sqlite.names import space_path
from memplane.storage.tables import CATALOG_TABLES, SPACE_TABLES
from memplane.transfer import tables as comparing
from memplane.transfer.move import Move
from memplane.transfer.tables import NotACopy
from memplane.types import Caller, NewEntry
from stub_embedder import StubEmbedder

KEY = "ab" * 32


def rows_of(plane, owner="alice", tenant=TENANT):
    """Every row of a space that a move is to take over."""
    with plane._stores.open(tenant, owner, create=False) as store, store.read() as reader:
        return {table.name: list(comparing.all_rows(reader.tables, table)) for table in SPACE_TABLES}


def told_by(space):
    """What a reader can tell that is in no single table."""
    with space._context.read() as reader:
        where = Filter(now=0, include_superseded=True, include_reserved=True, audience=None)
        return {
            "head": reader.ledger.head(),
            "ledger": reader.ledger.rows(limit=10_000),
            "audit": reader.audit.rows(limit=10_000),
            "found": [turn.text for turn in reader.turns.match(["live", "jazz"], where, limit=100)],
            "memories": [it.id for it in reader.memories.match(["silenc", "color"], where, limit=100)],
            "frequencies": reader.words.frequencies(["jazz", "lisbon", "color", "two"]),
            "occurrences": reader.words.occurrences("jazz"),
            "spans": reader.words.span_occurrences("two"),
            "sizes": reader.overview.sizes(now=space.now()),
            "verified": space.ledger.verify(),
        }


class Moving(Replicas):
    """Whatever replicas do, each of them is moved now and then, and in the end there and back: from files into a database,
    and from there into files."""

    server = None

    def at(self, where: int) -> Replica:
        replica = super().at(where)
        if not hasattr(replica, "copy"):
            url = self.opened.enter_context(self.server.database())
            replica.copy = self.opened.enter_context(Memplane.open(url, embedder=None, clock=replica.clock))
        return replica

    @rule(where=WHERE)
    def move(self, where):
        replica = self.at(where)
        replica.space.ledger.position()
        report = Move(replica.space._context.parts.stores, replica.copy._stores).run()
        assert (report.problems, report.behind) == ([], [])

    @rule(where=WHERE, pick=PICK)
    def use(self, where, pick):
        replica = self.at(where)
        if live := [memory.id for memory in _by_seq(replica)]:
            write_accesses(replica.space._context, [live[pick % len(live)]])

    @rule(where=WHERE, name=st.sampled_from("no"))
    def note(self, where, name):
        space = self.at(where).space
        space.ledger.set_bookmark(name, str(space.ledger.position()))
        space.ledger.add_audit("export", target=name, outcome="ok")

    def teardown(self) -> None:
        with self.opened:
            for number, replica in enumerate(self.replicas):
                self.move(number)
                back = self.opened.enter_context(
                    Memplane.open(
                        self.opened.enter_context(fresh_folder()), embedder=None, clock=replica.clock
                    )
                )
                assert Move(replica.copy._stores, back._stores).run().ok
                assert Move(replica.space._context.parts.stores, back._stores).check().ok
                space = back.space("alice")
                assert told_by(space) == told_by(replica.space)
                assert space.ledger.check() == []
                assert remembered(Seen(space)) == remembered(replica)
                for it in (replica.space, space):
                    it.ledger.replay()
                    it.enrich()
                assert remembered(Seen(space)) == remembered(replica)


class Seen:
    """A replica as `remembered` wants it."""

    def __init__(self, space):
        self.space = space


@pytest.fixture(scope="module", autouse=True)
def _server(postgres_server):
    Moving.server = postgres_server


Moving.TestCase.settings = settings(
    settings.default, max_examples=settings.default.max_examples // 20, stateful_step_count=20
)
TestMoving = Moving.TestCase


# ── one by one ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def folders(tmp_path, clock):
    """Opens data directories by name, on one clock."""
    with ExitStack() as opened:

        def open_(name, **options):
            options = {"embedder": None, **options}
            return opened.enter_context(Memplane.open(tmp_path / name, clock=clock, **options))

        yield open_


INTO = "into a database"
BOTH_WAYS = pytest.mark.parametrize("places", [INTO, "into files"], indirect=True)


@pytest.fixture
def places(request, folders, postgres_server, clock):
    """As `folders`, but that either the first one, `a`, is a database or all others are."""
    into = getattr(request, "param", INTO) == INTO
    with ExitStack() as opened:

        def open_(name, **options):
            if (name == "a") is into:
                return folders(name, **options)
            url = opened.enter_context(postgres_server.database())
            return opened.enter_context(Memplane.open(url, clock=clock, **{"embedder": None, **options}))

        yield open_


def move(source, target):
    return Move(source._stores, target._stores).run()


def fill(plane, owner="alice", **options):
    space = plane.space(owner, **options)
    space.retain("I live in Lisbon and like jazz", conversation="c")
    space.store("preference", "Prefers silence")
    space.put("k", "v")
    space.documents.upload("One.\n\nTwo words.", name="d", id="d")
    space.forget(entries=[space.retain("not to be kept").id])
    space.enrich()
    return space


@BOTH_WAYS
def test_vectors_come_along(places):
    """Nothing has to be embedded anew: the vectors are those of the source, and none waits."""
    source, target = places("a", embedder=StubEmbedder()), places("b", embedder=StubEmbedder())
    fill(source)
    assert move(source, target).ok

    assert rows_of(target) == rows_of(source)
    assert [len(rows_of(target)[f"{name}_vector"]) for name in ("turn", "memory", "span")] == [1, 4, 1]
    assert target.space("alice").overview.enrichment() == source.space("alice").overview.enrichment()
    asked = "which music does somebody in Lisbon like?"
    assert target.space("alice").recall(asked).hits == source.space("alice").recall(asked).hits


def test_every_tenant_and_odd_names_come_along(places):
    """Spaces are found by name, whatever the name is."""
    source, target = places("a"), places("b")
    names = [("default", "alice"), ("default", "Ünï / code"), ("other", "x" * 400), ("other", "..")]
    for tenant, owner in names:
        source.space(owner, tenant=tenant).retain(f"said by {owner}")
    report = move(source, target)

    assert (report.spaces, report.verified) == (4, 4)
    assert [target.space(owner, tenant=tenant).turns()[0].text for tenant, owner in names] == [
        f"said by {owner}" for _, owner in names
    ]


@BOTH_WAYS
def test_the_catalog_comes_along(places, clock):
    """A key that was minted before opens the same after, a revoked one does not, and a quota is used up as it was."""
    source, target = places("a"), places("b")
    fill(source)
    identity = source.identity()
    kept = identity.create_key(Grant(name="kept", subject="s"))
    gone = identity.create_key(Grant(name="gone", subject="s"))
    identity.revoke(gone.key.id)
    assert identity.owner_key() is not None
    source._stores.credentials().lock(b"somewhere", clock() + 10, now=clock())
    accounts, directory = source._stores.accounts(), source._stores.directory()
    accounts.take("t", "ingest", now=clock(), rate=5, quota=Quota(limit=9, since=1))
    accounts.add({Account("t", 5, "/x"): UsageCounts(requests=3, tokens=1 << 40)}, oldest=1)
    directory.note("t", ResourceKind.DOCUMENT, "d", "alice", now=clock())
    directory.set_complete("t", ["bob"])
    assert move(source, target).ok

    moved = target.identity()
    shown = kept.bearer.reveal()
    assert moved.authenticate(shown, peer="p") == identity.authenticate(shown, peer="p")
    with pytest.raises(Unauthenticated):
        moved.authenticate(gone.bearer.reveal(), peer="p")
    rows = [
        {table.name: list(comparing.all_rows(it._stores.catalog_tables(), table)) for table in CATALOG_TABLES}
        for it in (source, target)
    ]
    assert rows[0] == rows[1]
    assert all(rows[0].values())
    assert target._stores.accounts().used("t", "ingest", since=1) == 1
    identity.close()
    moved.close()


@BOTH_WAYS
def test_a_second_run_takes_over_what_came_since(places):
    """Only what differs is written; what was forgotten since is gone there too."""
    source, target = places("a"), places("b")
    space = fill(source)
    first = move(source, target)
    again = move(source, target)
    space.forget(conversation="c")
    space.retain("said later")
    space.enrich()
    third = move(source, target)

    assert (again.added, again.removed, again.rows) == (0, 0, first.rows)
    assert 0 < third.added < first.added
    assert third.removed > 0
    assert rows_of(target) == rows_of(source)
    assert not any(b"Lisbon" in body for _, _, body in rows_of(target)["payload"])


@BOTH_WAYS
def test_entries_that_came_in_late_are_placed_as_in_the_source(places):
    """Another replica's entries move those that were copied, and give another name to one of two bodies with one id."""
    source, target, other = places("a"), places("b"), places("c")
    other.space("alice").retain("said before", id="x", at="2026-01-01T00:00:00Z")
    source.space("alice").retain("said after", id="y")
    source.space("alice").retain("said as well", id="x")
    move(source, target)
    theirs = [
        NewEntry(it.id, it.op, it.body, it.caller, it.ref, it.recorded - 10)
        for it in other.space("alice").ledger.entries()
    ]
    source.space("alice").ledger.merge(theirs, {}, origin="r")
    before = {row[2]: row[1] for row in rows_of(target)["ledger"]}
    assert move(source, target).ok

    after = {row[2]: row[1] for row in rows_of(target)["ledger"]}
    assert rows_of(target) == rows_of(source)
    assert (before["y"], after["y"]) == (1, 2)
    assert sorted(it.partition("~")[0] for it in after) == ["x", "x", "y"]
    assert target.space("alice").ledger.verify().problems == ()


def test_no_erased_byte_stays_in_the_target(folders, tmp_path):
    """What was copied and then forgotten is in no file of the target after the next run."""
    source, target = folders("a"), folders("b")
    space = source.space("alice")
    for number in range(50):
        space.retain(f"lantern number {number}", conversation="c")
    move(source, target)
    space.forget(conversation="c")
    move(source, target)

    assert not any(b"lantern" in path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file())


def test_what_comes_in_meanwhile_is_taken_over(places):
    """Another pass copies what was written while the first went on; readers of the source never wait."""
    source, target = places("a"), places("b")
    space = fill(source)
    late = []

    def write(progress):
        if progress.table == "memory" and not late:
            late.append(space.retain("said meanwhile").id)

    report = Move(source._stores, target._stores, progress=write).run()

    assert (report.ok, report.passes) == (True, 2)
    assert rows_of(target) == rows_of(source)


def test_who_never_stops_writing_is_reported(places):
    """Nobody is told that it is done while it is not."""
    source, target = places("a"), places("b")
    space = fill(source)
    report = Move(
        source._stores,
        target._stores,
        progress=lambda it: space.retain("again") if it.table == "ledger" else None,
    ).run()

    assert not report.ok
    assert report.behind == ["'default/alice'"]
    assert move(source, target).ok


def test_a_target_of_its_own_is_left_alone(places):
    """What holds something else, or was used since, is refused before anything is written."""
    source = places("a")
    fill(source)
    others = {name: places(name) for name in ("same name", "other name", "used", "keys")}
    others["same name"].space("alice").retain("mine")
    others["other name"].space("bob").retain("mine")
    assert move(source, others["used"]).ok
    others["used"].space("alice").retain("used since")
    identity = others["keys"].identity()
    identity.create_key(Grant(name="n", subject="s"))
    identity.close()
    before = {name: [rows_of(it, owner) for owner in it.spaces()] for name, it in others.items()}
    for target in others.values():
        with pytest.raises(NotACopy, match="left as it is"):
            move(source, target)

    assert {name: [rows_of(it, owner) for owner in it.spaces()] for name, it in others.items()} == before


def test_an_audit_record_of_its_own_is_refused(places):
    """A chain that went on in the target is not cut."""
    source, target = places("a"), places("b")
    fill(source)
    assert move(source, target).ok
    target.space("alice").ledger.add_audit("export", target=None, outcome="ok")

    with pytest.raises(NotACopy, match="audit record 1"):
        move(source, target)


def test_encrypted_files_move_with_their_key(folders, tmp_path):
    """Under a key, both are; with another key nothing is read and nothing written."""
    source, target = folders("a", key=KEY), folders("b", key=KEY)
    fill(source, caller=Caller("me", "cli"))
    assert move(source, target).ok

    assert rows_of(target) == rows_of(source)
    assert not any(b"Lisbon" in path.read_bytes() for path in (tmp_path / "b").rglob("*") if path.is_file())
    with pytest.raises(KeyMismatch):
        move(folders("a", key="cd" * 32), folders("c"))
    assert not (tmp_path / "c").exists()


def test_a_check_names_what_differs(folders, tmp_path):
    """Every row is compared, and nothing is written."""
    source, target = folders("a"), folders("b")
    fill(source)
    move(source, target)
    file = space_path(tmp_path / "b" / "spaces" / TENANT, "alice")
    connection = apsw.Connection(str(file))
    connection.execute(
        "UPDATE memory SET importance = 0.9; DELETE FROM cited; DELETE FROM hidden; DELETE FROM access"
    )
    connection.execute("UPDATE meta SET value = 'x' WHERE name = 'library'")
    connection.close()
    source.space("bob").retain("later")
    report = Move(source._stores, target._stores).check()

    assert not report.ok
    assert report.different == {"memory": 4, "meta": 1}
    assert report.problems == ["'default/bob' is not in the target"]
    assert list(target.spaces()) == ["alice"]


def test_damage_in_the_source_is_not_hidden(folders, tmp_path):
    """A copy of a broken chain is a broken chain, and is said to be."""
    source, target = folders("a"), folders("b")
    fill(source)
    file = space_path(tmp_path / "a" / "spaces" / TENANT, "alice")
    connection = apsw.Connection(str(file))
    connection.execute("DROP TRIGGER payload_no_update; UPDATE payload SET body = x'00' WHERE position = 2")
    connection.close()
    report = move(source, target)

    assert not report.ok
    assert report.verified == 0
    assert "was changed" in report.problems[0]


def test_pages_are_small_enough_for_memory(places, monkeypatch):
    """However large the bodies are, no more than a few are held at a time, and all of them arrive."""
    monkeypatch.setattr(comparing, "PAGE_ROWS", 3)
    monkeypatch.setattr(comparing, "PAGE_BYTES", 3_000)
    source, target = places("a"), places("b")
    space = source.space("alice")
    for number in range(20):
        space.retain(f"{number} " + "long " * (number % 5 * 200))
    sizes = []
    with source._stores.open(TENANT, "alice", create=False) as store, store.read() as reader:
        table = next(it for it in SPACE_TABLES if it.name == "payload")
        after = None
        while page := reader.tables.rows(table, after=after, limit=3, bytes_max=3_000):
            sizes.append((len(page), sum(len(row[2]) for row in page)))
            after = table.key_of(page[-1])

    assert move(source, target).ok
    assert rows_of(target) == rows_of(source)
    assert sum(count for count, _ in sizes) == 20
    assert all(size <= 3_000 or count == 1 for count, size in sizes)
