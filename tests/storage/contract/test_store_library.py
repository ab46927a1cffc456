"""The part of the contract that is about documents: shelves, spans, their words and vectors, collections."""

import pytest
from tests.conftest import MORNING

from memplane.storage.documents import DocumentMarks, PreparedDocument
from memplane.storage.filter import ForgetScope
from memplane.storage.numbers import section_id, span_id, span_number
from memplane.storage.vectors import SpanVector
from memplane.types import Collection, Document, DocumentStatus, Op, Section, Span


@pytest.fixture
def shelf(scribe):
    return Shelf(scribe)


class Shelf:
    """Documents and collections, each of an entry of its own."""

    def __init__(self, scribe):
        self.store = scribe.store
        self._scribe = scribe

    def document(self, id, *texts, name="Manual", project=None, titles=("Intro",)):
        """One section a title, one span a text; all spans are in the last section."""
        entry = self._scribe.entry(op=Op.DOCUMENT)
        ends = [sum(map(len, texts[: n + 1])) for n in range(len(texts))]
        shelved = PreparedDocument(
            text="".join(texts),
            sections=tuple(
                Section(
                    id=section_id(entry.id, n), ordinal=n, title=title, level=1, path=(title,), start=0, end=0
                )
                for n, title in enumerate(titles)
            ),
            spans=tuple(
                Span(
                    id=span_id(entry.id, n),
                    document=id,
                    ordinal=n,
                    section=len(titles) - 1,
                    start=end - len(text),
                    end=end,
                    text=text,
                )
                for n, (text, end) in enumerate(zip(texts, ends, strict=True))
            ),
            leads=tuple(f"{name} > {title}\n" for title in titles),
        )
        document = Document(
            id=id,
            entry_id=entry.id,
            seq=entry.seq,
            name=name,
            project=project,
            bytes=1,
            chars=len(shelved.text),
            sections=len(titles),
            spans=len(texts),
            created_at=MORNING,
            updated_at=MORNING,
        )

        def work(writer):
            writer.documents.note_upload(
                entry.seq, document=id, collection=None, project=project, at=self._scribe.clock()
            )
            writer.documents.add(document, shelved)

        self.store.write(work)
        return document

    def collection(self, id, *, ordered=False, project=None):
        entry = self._scribe.entry(op=Op.COLLECT)
        made = Collection(
            id=id, entry_id=entry.id, name=id, project=project, ordered=ordered, created_at=MORNING
        )

        def work(writer):
            writer.documents.note_upload(
                entry.seq, document=None, collection=id, project=project, at=self._scribe.clock()
            )
            writer.documents.add_collection(made, seq=entry.seq)

        self.store.write(work)
        return made

    def member(self, collection, document, position=None):
        entry = self._scribe.entry(op=Op.COLLECT)
        at = self._scribe.clock()

        def work(writer):
            writer.documents.note_upload(
                entry.seq, document=document, collection=collection, project=None, at=at
            )
            writer.documents.add_member(collection, document, position=position, seq=entry.seq, at=at)

        self.store.write(work)
        return entry

    def read(self, look):
        with self.store.read() as reader:
            return look(reader)


def found(shelf, stem):
    return shelf.read(lambda reader: reader.words.span_occurrences(stem))


def test_a_document_comes_back_as_it_was(shelf):
    """
    The document, its sections, its spans; and what is not there is not there.
    """
    kept = shelf.document("d1", "one ", "two", titles=("Intro", "Body"))

    assert shelf.read(lambda reader: reader.documents.get("d1")) == kept
    assert shelf.read(lambda reader: reader.documents.get("d2")) is None
    assert [s.title for s in shelf.read(lambda reader: reader.documents.sections("d1"))] == ["Intro", "Body"]
    spans = shelf.read(lambda reader: reader.documents.spans("d1"))
    assert [(span.text, span.start, span.end, span.section) for span in spans] == [
        ("one ", 0, 4, 1),
        ("two", 4, 7, 1),
    ]
    assert shelf.read(lambda reader: reader.documents.spans("d1", first=1, limit=1)) == spans[1:]
    assert shelf.read(lambda reader: reader.documents.spans_at([span_number(kept.seq, 1), 5])) == spans[1:]


def test_words_are_found_at_once_with_the_titles_they_stand_under(shelf):
    """
    By stem, once for each time; titles belong to every span of their section.
    """
    kept = shelf.document("d1", "the cats sleep, the cat wakes", "dogs bark", titles=("Pets",))

    first, second = span_number(kept.seq, 0), span_number(kept.seq, 1)
    assert found(shelf, "cat") == [first, first]
    assert found(shelf, "dog") == [second]
    assert sorted(found(shelf, "pet")) == [first, second]
    assert shelf.read(lambda reader: reader.words.common_in_spans(["pets", "dogs"], beyond=1)) == {"pets"}


def test_another_upload_takes_the_place_of_all_there_was(shelf):
    """
    No span, section, word or vector of the first is left, and the marks say that something went.
    """
    first = shelf.document("d1", "cats", "more cats", titles=("A", "B"))
    model = shelf.store.write(lambda writer: writer.vectors.use_model("m", 2))
    vector = SpanVector(span_number(first.seq, 0), b"d", b"\x01\x02")
    shelf.store.write(lambda writer: writer.vectors.add_spans(model, [vector]))
    before = shelf.read(lambda reader: reader.documents.marks())

    second = shelf.document("d1", "dogs")

    assert shelf.read(lambda reader: reader.documents.get("d1")) == second
    assert [span.text for span in shelf.read(lambda reader: reader.documents.spans("d1"))] == ["dogs"]
    assert len(shelf.read(lambda reader: reader.documents.sections("d1"))) == 1
    assert found(shelf, "cat") == []
    assert shelf.read(lambda reader: reader.vectors.spans(model, after=0, limit=9)) == []
    after = shelf.read(lambda reader: reader.documents.marks())
    assert after.generation > before.generation
    assert after.last_span == span_number(second.seq, 0)


def test_marks_of_an_empty_space(shelf):
    """
    All zero, so that a cache has something to compare with.
    """
    assert shelf.read(lambda reader: reader.documents.marks()) == DocumentMarks(0, 0, 0)


def test_documents_are_listed_by_project_and_collection(shelf):
    """
    The newest first; an ordered collection by position, what has none at its end.
    """
    for id_, project in (("d1", "p"), ("d2", "q"), ("d3", "p")):
        shelf.document(id_, "text", project=project)
    shelf.collection("c", ordered=True)
    for id_, position in (("d1", None), ("d2", 2), ("d3", 1)):
        shelf.member("c", id_, position)

    def listed(**where):
        where = {"project": None, "collection": None, "limit": 10, "offset": 0} | where
        return [document.id for document in shelf.read(lambda reader: reader.documents.find(**where))]

    assert listed() == ["d3", "d2", "d1"]
    assert listed(limit=1, offset=1) == ["d2"]
    assert listed(project="p") == ["d3", "d1"]
    assert listed(collection="c") == ["d3", "d2", "d1"]
    assert listed(collection="c", project="p") == ["d3", "d1"]
    assert shelf.read(lambda reader: reader.documents.count(project="p", collection=None)) == 2
    assert shelf.read(lambda reader: reader.documents.count(project="p", collection="c")) == 2
    assert shelf.read(lambda reader: reader.documents.get("d1")).collections == ("c",)
    assert [head.id for head in shelf.read(lambda reader: reader.documents.heads())] == ["d1", "d2", "d3"]


def test_vectors_wait_and_come(shelf):
    """
    Every span waits until it has one of the model in use; another model makes all wait again.
    """
    kept = shelf.document("d1", "one", "two", titles=("T",))
    model = shelf.store.write(lambda writer: writer.vectors.use_model("m", 2))
    first, second = span_number(kept.seq, 0), span_number(kept.seq, 1)

    assert shelf.read(lambda reader: reader.vectors.pending_spans(limit=9)) == [
        (first, "Manual > T\none"),
        (second, "Manual > T\ntwo"),
    ]
    vectors = [SpanVector(first, b"d1", b"\x01\x00"), SpanVector(second + 7, b"gone", b"\x02\x00")]
    shelf.store.write(lambda writer: writer.vectors.add_spans(model, vectors))
    assert shelf.read(lambda reader: reader.vectors.pending_span_count()) == 1
    ((stamp, kept_vector),) = shelf.read(lambda reader: reader.vectors.spans(model, after=0, limit=9))
    assert kept_vector == vectors[0]
    assert shelf.read(lambda reader: reader.vectors.spans_at(model, [first, second])) == {first: b"\x01\x00"}
    assert shelf.read(lambda reader: reader.vectors.span_digests(model, [first, second])) == {first: b"d1"}
    assert shelf.read(lambda reader: reader.documents.marks()).stamp == stamp

    shelf.store.write(lambda writer: writer.vectors.keep_spans(model, [first]))
    assert shelf.read(lambda reader: reader.documents.marks()).stamp > stamp

    shelf.store.write(lambda writer: writer.vectors.use_model("other", 2))
    assert shelf.read(lambda reader: reader.vectors.pending_span_count()) == 2


def test_distillations_are_for_the_upload_they_were_made_from(shelf):
    """
    A document that was replaced meanwhile keeps waiting for its own.
    """
    first = shelf.document("d1", "one", titles=("A", "B"))
    second = shelf.document("d1", "two", titles=("A", "B"))

    def distil(seq):
        return shelf.store.write(
            lambda writer: writer.documents.set_distillation("d1", seq=seq, whole="all", sections=["a", None])
        )

    assert [
        document.seq for document in shelf.read(lambda reader: reader.documents.undistilled(limit=9))
    ] == [second.seq]
    assert not distil(first.seq)
    assert distil(second.seq)
    assert shelf.read(lambda reader: reader.documents.undistilled_count()) == 0
    document = shelf.read(lambda reader: reader.documents.get("d1"))
    assert (document.status, document.distillation) == (DocumentStatus.READY, "all")
    assert [s.distillation for s in shelf.read(lambda reader: reader.documents.sections("d1"))] == ["a", None]

    shelf.store.write(lambda writer: writer.documents.fail("d1", seq=second.seq, error="away"))
    document = shelf.read(lambda reader: reader.documents.get("d1"))
    assert (document.status, document.error) == (DocumentStatus.ERROR, "away")


def test_a_collection_that_comes_again_is_empty(shelf):
    """
    What was in the one before it was in that one.
    """
    shelf.document("d1", "text")
    first = shelf.collection("c")
    brought = shelf.member("c", "d1")
    assert shelf.read(lambda reader: reader.documents.membership("c", "d1")) == brought.id
    assert shelf.read(lambda reader: reader.documents.collection("c")).documents == 1

    shelf.store.write(lambda writer: writer.documents.remove(first.entry_id))
    assert shelf.read(lambda reader: reader.documents.collection("c")) is None
    shelf.collection("c")

    assert shelf.read(lambda reader: reader.documents.members("c")) == []
    assert shelf.read(lambda reader: reader.documents.membership("c", "d1")) is None


def test_membership_outlives_a_new_upload_and_ends_with_its_entry(shelf):
    """
    A document is meant by its id; taking the entry away takes the document out.
    """
    shelf.document("d1", "text")
    shelf.collection("c")
    brought = shelf.member("c", "d1", 3)
    shelf.document("d1", "another text")

    (member,) = shelf.read(lambda reader: reader.documents.members("c"))
    assert (member.document, member.position) == ("d1", 3)
    shelf.store.write(lambda writer: writer.documents.remove(brought.id))
    assert shelf.read(lambda reader: reader.documents.members("c")) == []


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        (ForgetScope(document="d1"), ["d2"]),
        (ForgetScope(project="p"), ["d2"]),
        (ForgetScope(everything=True), []),
        (ForgetScope(conversation="x"), ["d2", "d1"]),
        (ForgetScope(key="x"), ["d2", "d1"]),
    ],
    ids=str,
)
def test_a_forget_finds_every_upload_of_a_document(shelf, scope, left):
    """
    Those that were replaced, too: their payloads are still there.
    """
    first = shelf.document("d1", "one", project="p")
    second = shelf.document("d1", "two", project="p")
    shelf.document("d2", "three")

    victims = shelf.read(lambda reader: reader.ledger.in_scope(scope))
    shelf.store.write(lambda writer: writer.ledger.erase(victims, position=99, at=1, reason=""))

    listed = shelf.read(
        lambda reader: reader.documents.find(project=None, collection=None, limit=9, offset=0)
    )
    assert [document.id for document in listed] == left
    if "d1" not in left:
        assert {first.seq, second.seq} <= {seq for seq, _ in victims}
        assert found(shelf, "one") == found(shelf, "two") == []
        assert shelf.read(lambda reader: reader.ledger.in_scope(ForgetScope(document="d1"))) == []
