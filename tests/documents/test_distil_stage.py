"""The stage that tells documents in short: nothing blocks it, and a replay does the same."""

import pytest

from memplane.types import DocumentStatus, Op
from memplane.worker import distillation as distilling


def in_short(space, id_):
    return [
        space.documents.get(id_).distillation,
        *(section.distillation for section in space.documents.sections(id_)),
    ]


def test_a_replay_tells_the_same(space):
    """
    Live and after a replay, to the letter, and nothing is put into the ledger for it.
    """
    texts = [
        "# A\n\nOne thing is said here. Another thing, too.\n",
        "",
        "no heading at all",
        "# 題\n\n茶を飲みます。",
    ]
    ids = [space.documents.upload(text or "x", name=f"n{place}").id for place, text in enumerate(texts)]
    space.enrich()
    before = [in_short(space, id_) for id_ in ids]
    space.ledger.replay()
    space.enrich()

    assert [in_short(space, id_) for id_ in ids] == before
    assert {space.documents.get(id_).status for id_ in ids} == {DocumentStatus.READY}
    assert all(entry.op is Op.DOCUMENT for entry in space.ledger.entries())


def test_a_document_that_cannot_be_told_blocks_no_other(space, monkeypatch):
    """
    It says so, is found all the same, and the next one is told.
    """
    made = distilling.distil

    def fails(sections, name):
        if name == "poison":
            raise ValueError("the text of a document must not be in an error: secret words")
        return made(sections, name)

    monkeypatch.setattr(distilling, "distil", fails)
    bad = space.documents.upload("Poisoned well.", name="poison").id
    good = space.documents.upload("Clean well.", name="good").id
    space.enrich()

    assert space.documents.get(bad).status is DocumentStatus.ERROR
    assert "ValueError" in (space.documents.get(bad).error or "")
    assert "secret" not in (space.documents.get(bad).error or "")
    assert space.documents.get(good).status is DocumentStatus.READY
    assert space.recall("poisoned").spans
    assert space.overview.enrichment().waiting.nothing


def test_what_cannot_be_written_blocks_nobody(space, monkeypatch):
    """
    The same where the trouble is in the writing.
    """
    monkeypatch.setattr(distilling, "_note", _fails_once(distilling._note))
    bad, good = (space.documents.upload(f"A well of {name}.", name=name).id for name in ("bad", "good"))
    space.enrich()

    assert [space.documents.get(id_).status for id_ in (bad, good)] == [
        DocumentStatus.ERROR,
        DocumentStatus.READY,
    ]
    assert space.documents.get(bad).distillation is None


def _fails_once(done):
    left = [True]

    def call(writer, document):
        if left:
            left.clear()
            raise LookupError("once")
        done(writer, document)

    return call


def test_a_crash_loses_nothing(space, monkeypatch):
    """
    What was not written is done by whoever comes next.
    """
    monkeypatch.setattr(distilling, "_note", _dies)
    id_ = space.documents.upload("A deep well.", name="well").id
    with pytest.raises(KeyboardInterrupt):
        space.enrich()
    status = space.documents.get(id_).status
    monkeypatch.undo()
    space.enrich()

    assert status is DocumentStatus.PROCESSING
    assert space.documents.get(id_).distillation == "A deep well."


def _dies(writer, document):
    raise KeyboardInterrupt


def test_a_new_upload_is_told_anew(space):
    """
    Under the same id, the old text's distillation is gone at once.
    """
    space.documents.upload("Birch coals.", name="n", id="d")
    space.enrich()
    space.documents.upload("Oak coals.", name="n", id="d")
    between = space.documents.get("d")
    space.enrich()

    assert (between.status, between.distillation) == (DocumentStatus.PROCESSING, None)
    assert space.documents.get("d").distillation == "Oak coals."
