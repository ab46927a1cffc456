"""Documents through the engine: kept whole, replaced at once, forgotten for good; collections of them."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import both_if_thorough
from memplane.documents.parsed import BlockKind, DocumentBlock, Heading, ParsedDocument
from memplane.documents.preparation import cleaned
from memplane.errors import CollectionTaken, InvalidRequest, NotFound
from memplane.storage.filter import ForgetScope
from memplane.types import NewEntry

pytestmark = both_if_thorough

TEXT = "# Manual\n\nTo install it, run make.\n\n## Use\n\nOpen the lid. Pour water in.\n\nClose the lid.\n"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_what_is_kept_is_what_was_uploaded(space):
    """
    Spans joined are the text; each is the slice that it says it is, and lies in a section.
    """
    kept = space.documents.upload(TEXT, name="manual.md", project="p", id="m")

    assert (kept.id, kept.project, kept.chars, kept.bytes) == ("m", "p", len(TEXT), len(TEXT))
    assert space.documents.text("m") == TEXT
    sections, spans = space.documents.sections("m"), space.documents.spans("m")
    assert [section.path for section in sections] == [("Manual",), ("Manual", "Use")]
    assert len(spans) == kept.spans
    assert all(TEXT[span.start : span.end] == span.text for span in spans)
    assert all(
        sections[span.section].start <= span.start and span.end <= sections[span.section].end
        for span in spans
    )


def test_the_same_id_replaces_everything(space):
    """
    Nothing of the first upload is left to be found; when it was first there is remembered.
    """
    first = space.documents.upload("cats and cats", name="a", id="d")
    second = space.documents.upload("dogs", name="b", id="d", project="p")

    assert (second.name, second.project, second.created_at) == ("b", "p", first.created_at)
    assert space.documents.text("d") == "dogs"
    assert space.documents.count() == 1
    with space._context.read() as reader:
        assert reader.words.span_occurrences("cat") == []


def test_a_reader_never_sees_half_of_each(space):
    """
    While one uploads two versions in turn, every look sees one of them whole.
    """
    versions = {letter: f"{letter} " * 3_000 for letter in "ab"}
    space.documents.upload(versions["a"], name="d", id="d")
    done = threading.Event()
    seen = []

    def look():
        while not done.is_set() or not seen:
            with space._context.read() as reader:
                whole = "".join(span.text for span in reader.documents.spans("d"))
                seen.append(whole in versions.values() and reader.documents.get("d").chars == len(whole))

    reader = threading.Thread(target=look)
    reader.start()
    for turn in range(20):
        space.documents.upload(versions["ab"[turn % 2]], name="d", id="d")
    done.set()
    reader.join()
    assert all(seen)


def test_secrets_are_not_in_what_is_derived(space):
    """
    Neither in spans nor in titles; the slices stay exact.
    """
    space.documents.upload(f"# Key {SECRET}\n\nThe token is {SECRET}, keep it.\n", name="k.md", id="k")

    whole = space.documents.text("k")
    assert SECRET not in whole
    assert "keep it." in whole
    assert all(whole[span.start : span.end] == span.text for span in space.documents.spans("k"))
    assert SECRET not in str(space.documents.sections("k"))
    with space._context.read() as reader:
        assert SECRET not in str(reader.vectors.pending_spans(limit=9))


@pytest.mark.parametrize(
    ("title", "sort"),
    [
        (f"{SECRET[:3]}\u200b{SECRET[3:]}", "github-token"),
        (f"{SECRET[:3]}\U000e0041{SECRET[3:]}", "github-token"),
        (f"{SECRET[:12]}**{SECRET[12:]}**", "token"),
    ],
    ids=["invisible", "tag", "bold"],
)
def test_a_title_hides_nothing(space, title, sort):
    """
    Neither a secret between whose letters something stands in the text, nor what no reader sees.
    """
    space.documents.upload(f"# Key {title}\n\nKeep it.\n", name="k.md", id="k")

    (section,) = space.documents.sections("k")
    assert section.title == section.path[0] == f"Key [REDACTED:{sort}]"
    with space._context.read() as reader:
        assert SECRET not in str(reader.vectors.pending_spans(limit=9))


def test_a_name_with_a_secret_is_shown_without_it(space):
    """
    A name is content, and content is cleaned.
    """
    kept = space.documents.upload("text", name=f"notes {SECRET}", id="n")

    assert SECRET not in kept.name
    with space._context.read() as reader:
        assert SECRET not in str(reader.vectors.pending_spans(limit=9))


@given(
    words=st.lists(st.sampled_from(["plain", SECRET, "\u200b", "\n\n", "é"]), min_size=1, max_size=12),
    cuts=st.lists(st.integers(0, 200), max_size=6),
)
def test_cleaning_moves_everything_along(words, cuts):
    """
    Blocks still tile the text, headings still lie in it.
    """
    text = " ".join(words)
    ends = sorted({min(cut, len(text)) for cut in cuts} | {len(text)} - {0})
    starts = [0, *ends[:-1]]
    blocks = tuple(
        DocumentBlock(start, end, BlockKind.PARAGRAPH)
        for start, end in zip(starts, ends, strict=True)
        if start < end
    )
    headings = tuple(Heading(block.start, block.end, "t", 1) for block in blocks[:1])

    made = cleaned(ParsedDocument(text, headings, blocks, ((0, 1), (len(text), 2))))

    assert SECRET not in made.text
    assert "\u200b" not in made.text
    assert "".join(made.text[block.start : block.end] for block in made.blocks) == made.text
    assert all(0 <= heading.start < heading.end <= len(made.text) for heading in made.headings)
    assert [offset for offset, _ in made.places] == [0, len(made.text)]


def test_deleting_leaves_nothing(space, space_file):
    """
    Not in lists, not in collections, not on disk, not after a replay; the receipt says how much it was.
    """
    space.documents.create_collection("c", id="c")
    space.documents.upload("the quokka jumps", name="q", id="d", collection="c")
    space.documents.upload("the quokka sleeps. " * 3, name="q", id="d")
    kept = space.documents.get("d")

    receipt = space.documents.delete("d")

    assert (receipt.counts["documents"], receipt.counts["spans"]) == (1, kept.spans)
    assert receipt.off_disk
    for _ in range(2):
        assert space.documents.list() == []
        assert space.documents.members("c") == []
        with pytest.raises(NotFound):
            space.documents.get("d")
        with space._context.read() as reader:
            assert reader.ledger.in_scope(ForgetScope(document="d")) == []
        space.ledger.replay()
    assert b"quokka" not in space_file.read_bytes()
    assert space.ledger.verify().ok


def test_a_forgotten_replacement_does_not_bring_the_first_back(space, clock):
    """
    Forgetting by time takes the newer upload; the older one stays replaced, after a replay too.
    """
    space.documents.upload("first", name="d", id="d")
    clock.advance(days=1)
    since = clock.moment
    space.documents.upload("second", name="d", id="d")

    space.forget(since=since)

    assert space.documents.list() == []
    space.ledger.replay()
    assert space.documents.list() == []


@pytest.mark.parametrize("call", ["get", "text", "sections", "spans", "delete"])
def test_an_unknown_document_is_not_found(space, call):
    """
    Whatever is asked of it.
    """
    with pytest.raises(NotFound, match="no document 'nowhere'"):
        getattr(space.documents, call)("nowhere")


def test_collections_hold_documents_and_give_them_up(space):
    """
    In order where there is one; deleting the collection leaves the documents.
    """
    made = space.documents.create_collection("Guides", project="p", ordered=True)
    for position, id_ in ((2, "b"), (1, "a"), (None, "c")):
        space.documents.upload(f"text of {id_}", name=id_, id=id_, collection=made.id, position=position)

    assert [member.document for member in space.documents.members(made.id)] == ["a", "b", "c"]
    space.documents.add_to_collection(made.id, "c", position=0)
    space.documents.remove_from_collection(made.id, "b")
    assert [member.document for member in space.documents.members(made.id)] == ["c", "a"]
    assert space.documents.collection(made.id).documents == 2
    assert [document.id for document in space.documents.list(collection=made.id)] == ["c", "a"]
    with pytest.raises(NotFound):
        space.documents.remove_from_collection(made.id, "b")

    space.documents.delete_collection(made.id)

    assert space.documents.collections() == []
    assert space.documents.count() == 3
    with pytest.raises(NotFound):
        space.documents.members(made.id)


def test_an_id_is_for_one_collection(space):
    """
    A second one is refused, and the first stays as it is.
    """
    space.documents.create_collection("first", id="c")

    with pytest.raises(CollectionTaken):
        space.documents.create_collection("second", id="c")

    assert space.documents.collection("c").name == "first"


def test_nothing_is_kept_of_an_upload_into_an_unknown_collection(space):
    """
    All or nothing.
    """
    with pytest.raises(NotFound):
        space.documents.upload("text", name="d", collection="nowhere")

    assert space.documents.list() == []


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        ("", {}),
        (" \n", {}),
        ("a\x00b", {}),
        ("\ud800", {}),
        ("text", {"name": ""}),
        ("text", {"id": "a\x00"}),
    ],
)
def test_bad_input_is_refused_with_a_reason(space, content, fields):
    """
    One sentence, and nothing is kept.
    """
    with pytest.raises(InvalidRequest):
        space.documents.upload(content, **{"name": "d", **fields})

    assert space.documents.list() == []


def test_a_document_that_is_too_large_says_so(open_plane):
    """
    With the limit in the message.
    """
    space = open_plane(document_bytes_max=1_000).space("alice")

    with pytest.raises(InvalidRequest, match="at most 1,000"):
        space.documents.upload("é" * 501, name="d")
    assert space.documents.upload("é" * 500, name="d").bytes == 1_000


def test_what_arrives_from_elsewhere_takes_its_place(plane, space, clock):
    """
    Of two documents under one id, the one that was uploaded last is there, whichever arrived later; who uploaded it knew
    of no other, so that the other one is there again when it is forgotten.
    """
    space.documents.create_collection("c", id="c")
    space.documents.upload(TEXT, name="m.md", id="m", collection="c")
    other = plane.space("bob")
    clock.advance(seconds=-1)
    other.documents.upload("older", name="m", id="m")

    entries = space.ledger.entries(limit=100)
    other.ledger.load([NewEntry(e.id, e.op, e.body, e.caller, e.ref, e.recorded) for e in entries])

    assert other.documents.text("m") == TEXT
    assert [member.document for member in other.documents.members("c")] == ["m"]
    other.forget(entries=[space.documents.get("m").entry_id])
    assert other.documents.text("m") == "older"
    other.ledger.replay()
    assert other.documents.text("m") == "older"
