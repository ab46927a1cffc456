"""From an id alone to the space that holds it."""

import apsw
import pytest

from memplane.adapters.importers import export_lines, import_file
from memplane.errors import InvalidRequest, NotFound
from memplane.storage.catalog.directory import KEPT, ResourceKind

TENANT = "default"
DOCUMENT, RECEIPT = ResourceKind.DOCUMENT, ResourceKind.RECEIPT


@pytest.fixture
def catalog(tmp_path):
    return tmp_path / "data" / "catalog.db"


def without_directory(catalog):
    """As an installation looks that is older than the directory."""
    connection = apsw.Connection(str(catalog))
    connection.execute("DELETE FROM place; DELETE FROM complete")
    connection.close()


def forget_something(plane, clock, owner):
    clock.advance(seconds=1)
    space = plane.space(owner)
    space.store("fact", f"{owner} at {clock.moment}")
    return space.forget(everything=True)


def listed(page):
    return [(one.owner, one.receipt.id) for one in page.receipts]


def test_receipts_of_all_spaces_newest_first(plane, clock):
    """
    Page by page, with how many there are; of one owner or of some.
    """
    made = [(owner, forget_something(plane, clock, owner).id) for owner in ("alice", "bob", "alice", "carol")]
    newest = made[::-1]

    assert listed(plane.receipts(TENANT)) == newest
    assert plane.receipts(TENANT).total == 4
    page = plane.receipts(TENANT, limit=2, offset=1)
    assert (listed(page), page.total) == (newest[1:3], 4)
    page = plane.receipts(TENANT, owners=frozenset({"alice"}), limit=1)
    assert (listed(page), page.total) == (newest[1:2], 2)
    assert plane.receipts(TENANT, owners=["nobody"]).total == 0
    assert plane.receipts("another tenant").total == 0
    assert not plane.has_space("nobody")


def test_a_receipt_by_its_id(plane, clock):
    """
    As the ledger has it; of a space that one may not see it does not exist.
    """
    given = forget_something(plane, clock, "alice")
    kept = plane.space("alice").ledger.receipts()[0]

    found = plane.receipt(TENANT, given.id)
    assert (found.owner, found.receipt) == ("alice", kept)
    assert (kept.digest, kept.counts) == (given.digest, given.counts)
    assert plane.receipt(TENANT, given.id, owners={"alice"}) == found
    for tenant, id_, owners in [
        (TENANT, given.id, {"bob"}),
        (TENANT, "receipt-nobody", None),
        ("other", given.id, None),
    ]:
        with pytest.raises(NotFound):
            plane.receipt(tenant, id_, owners=owners)


def test_no_entry_but_a_forget_passes_for_a_receipt(plane):
    """
    Whatever the directory says.
    """
    kept = plane.space("alice").retain("hello")
    plane._parts.directory.note(TENANT, RECEIPT, kept.id, "alice", now=plane.clock())

    assert plane.owners_of(TENANT, RECEIPT, kept.id) == []
    assert plane.receipts(TENANT).total == 0


def test_receipts_from_before_there_was_a_directory(open_plane, clock, catalog):
    """
    Are found when somebody asks, and in their place among the newer ones.
    """
    plane = open_plane()
    old = [forget_something(plane, clock, owner).id for owner in ("alice", "bob")]
    plane.close()
    without_directory(catalog)
    plane = open_plane()
    new = forget_something(plane, clock, "alice").id

    assert plane.receipt(TENANT, old[1]).owner == "bob"
    assert [id_ for _, id_ in listed(plane.receipts(TENANT))] == [new, *old[::-1]]


def test_a_lost_catalog_is_made_anew(open_plane, clock, catalog):
    """
    Of what the spaces say.
    """
    plane = open_plane()
    given = forget_something(plane, clock, "alice").id
    plane.receipts(TENANT)
    plane.close()
    for path in catalog.parent.glob("catalog.db*"):
        path.unlink()

    assert open_plane().receipt(TENANT, given).owner == "alice"


def test_what_a_space_does_not_have_is_not_said_to_be_there(plane, clock):
    """
    A crash between note and commit leaves an entry too many: nobody is told of it, and after a while it goes.
    """
    directory = plane._parts.directory
    plane.space("alice").retain("hello")
    for owner in ("alice", "nobody"):
        directory.note(TENANT, RECEIPT, "receipt-lost", owner, now=clock())
    kept = forget_something(plane, clock, "alice").id

    assert plane.owners_of(TENANT, RECEIPT, "receipt-lost") == []
    page = plane.receipts(TENANT)
    assert (listed(page), page.total) == ([("alice", kept)], 1)
    assert directory.owners(TENANT, RECEIPT, "receipt-lost") == ["alice", "nobody"]
    clock.set(clock() + KEPT)
    plane.receipts(TENANT)
    assert directory.owners(TENANT, RECEIPT, "receipt-lost") == []
    assert not plane.has_space("nobody")


def test_a_sweep_gives_no_receipt_to_be_found(plane, clock):
    """
    Nobody asked for it.
    """
    space = plane.space("alice")
    space.put("k", "v", ttl=3_600)
    clock.advance(hours=2)
    assert space.facts.sweep() == 1

    assert plane.receipts(TENANT).total == 0


def test_imported_receipts_are_found(plane, clock, tmp_path):
    """
    In the space they came to, beside the one they came from.
    """
    given = forget_something(plane, clock, "alice").id
    file = tmp_path / "alice.jsonl"
    file.write_bytes(b"\n".join(export_lines(plane.space("alice"), "full")))
    import_file(plane.space("bob"), file)
    plane._parts.directory.set_complete(TENANT, ["alice", "bob"])

    assert plane.owners_of(TENANT, RECEIPT, given) == ["alice", "bob"]
    assert sorted(listed(plane.receipts(TENANT))) == [("alice", given), ("bob", given)]


def test_a_refused_forget_leaves_no_receipt(plane, clock):
    """
    Its note, if there is one, is nobody's.
    """
    with pytest.raises(InvalidRequest):
        plane.space("alice").forget()

    assert plane.receipts(TENANT).total == 0


def test_names_in_any_script(plane, clock):
    """
    Owners are text, whatever it says.
    """
    owner = "O'Brien; \u2603\n%_\U0001f600"
    given = forget_something(plane, clock, owner).id

    assert plane.receipt(TENANT, given, owners=[owner]).owner == owner
    assert plane.receipts(TENANT, owners=[owner]).total == 1


def test_another_key_for_everything(open_plane, clock, tmp_path):
    """
    The directory goes on working after the key was changed under it.
    """
    plane = open_plane()
    before = forget_something(plane, clock, "alice").id
    plane.rotate_key("11" * 32)
    after = forget_something(plane, clock, "alice").id

    assert [id_ for _, id_ in listed(plane.receipts(TENANT))] == [after, before]
    plane.close()
    assert open_plane(key="11" * 32).receipts(TENANT).total == 2


def test_documents_and_collections_by_their_ids(plane):
    """
    In every space that has one under this id, and in no other.
    """
    for owner in ("alice", "bob"):
        plane.space(owner).documents.upload("Some text.", name="notes", id="shared")
    own = plane.space("alice").documents.upload("Other text.", name="more")
    shelf = plane.space("bob").documents.create_collection("shelf")

    assert plane.owners_of(TENANT, DOCUMENT, "shared") == ["alice", "bob"]
    assert plane.owners_of(TENANT, DOCUMENT, own.id) == ["alice"]
    assert plane.owners_of(TENANT, ResourceKind.COLLECTION, shelf.id) == ["bob"]
    assert plane.owners_of(TENANT, DOCUMENT, shelf.id) == []


def test_a_document_that_goes_and_comes_back(plane, clock):
    """
    Is found exactly while it is there, whoever looked in between.
    """
    space = plane.space("alice")
    found = []
    for _ in range(3):
        space.documents.upload("Some text.", name="notes", id="d")
        found.append(plane.owners_of(TENANT, DOCUMENT, "d"))
        clock.set(clock() + KEPT)
        space.documents.delete("d")
        found.append(plane.owners_of(TENANT, DOCUMENT, "d"))

    assert found == [["alice"], []] * 3


def test_documents_are_found_without_their_notes(open_plane, catalog):
    """
    A catalog that knows nothing learns it from the spaces.
    """
    plane = open_plane()
    plane.space("alice").documents.upload("Some text.", name="notes", id="d")
    shelf = plane.space("alice").documents.create_collection("shelf").id
    plane.close()
    without_directory(catalog)

    plane = open_plane()
    assert plane.owners_of(TENANT, DOCUMENT, "d") == ["alice"]
    assert plane.owners_of(TENANT, ResourceKind.COLLECTION, shelf) == ["alice"]


@pytest.mark.parametrize(
    "forget",
    [
        lambda space: space.documents.delete("medical record 4711"),
        lambda space: space.forget(project="p"),
        lambda space: space.forget(everything=True),
    ],
    ids=["document", "project", "everything"],
)
def test_the_catalog_forgets_with_the_space(plane, catalog, forget):
    """
    An id may say as much as a name; of what is forgotten it is in no file beside the receipt.
    """
    space = plane.space("alice")
    space.documents.upload("Words.", name="a", id="medical record 4711", project="p")
    space.documents.upload("Words.", name="b", id="another")
    space.documents.create_collection("c", id="cases of 2026", project="p")
    files = [catalog, catalog.with_name("catalog.db-wal")]

    def kept(id_):
        return any(id_.encode() in path.read_bytes() for path in files if path.exists())

    assert kept("medical record 4711")
    receipt = forget(space)

    assert receipt.off_disk
    assert not kept("medical record 4711")
    assert kept("cases of 2026") == ("document" in receipt.scope)
    assert kept("another") == ("everything" not in receipt.scope)
    assert plane.owners_of(TENANT, DOCUMENT, "medical record 4711") == []


def test_what_comes_back_while_it_is_forgotten_is_found(plane):
    """
    It was noted before the forget dropped its id, and is there after it.
    """
    space = plane.space("alice")
    space.documents.upload("Words.", name="a", id="d")
    plane.owners_of(TENANT, DOCUMENT, "nothing")
    drop = space._context.parts.directory.drop

    def upload_first(*given):
        space.documents.upload("Words.", name="a", id="d")
        drop(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(space._context.parts.directory), "drop", lambda _, *given: upload_first(*given))
        space.documents.delete("d")

    assert plane.owners_of(TENANT, DOCUMENT, "d") == ["alice"]
