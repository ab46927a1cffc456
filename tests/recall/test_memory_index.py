"""The cache of memories' vectors, where readers see a space at different times."""

from contextlib import contextmanager

import pytest

from memplane import Memplane
from memplane.errors import StorageUnreachable
from memplane.recall.memory_index import MemoryIndex
from stub_embedder import StubEmbedder


class Lost:
    """Reads of a noun whose connection is lost as soon as memories are asked for."""

    def __init__(self, noun):
        self._noun = noun

    def __getattr__(self, name):
        return getattr(self._noun, name)

    def memories(self, *_, **__):
        raise StorageUnreachable("gone")


@pytest.fixture
def embedder():
    return StubEmbedder()


@pytest.fixture
def plane(tmp_path, embedder):
    with Memplane.open(tmp_path, embedder=embedder) as opened:
        yield opened


@pytest.fixture
def index(embedder):
    return MemoryIndex((embedder.model_id, embedder.dimension))


@contextmanager
def before_and_after_a_forget(plane):
    """A reader from before something was forgotten, and one from after it."""
    space = plane.space("alice")
    forgotten = space.store("fact", "the lamp is green")
    space.store("fact", "the office is in Milan")
    space.enrich()
    with plane._stores.open("default", "alice", create=False) as store, store.read() as older:
        older.state.marks()
        space.forget(entries=[forgotten.entry_id])
        with store.read() as newer:
            yield older, newer


def known(index, reader, embedder):
    model = reader.vectors.model(embedder.model_id, embedder.dimension)
    return {near.id for near in index.nearest(reader, model, embedder.embed_query("lamp"), 10)}


def test_an_older_reader_brings_back_nothing_that_was_forgotten(plane, index, embedder):
    with before_and_after_a_forget(plane) as (older, newer):
        now = known(index, newer, embedder)
        index.refresh(older)

        assert known(index, newer, embedder) == now
        assert len(now) == 1


def test_a_load_that_failed_is_done_again(plane, index, embedder):
    """
    Whoever asks next finds all there is, whichever time they see.
    """
    with before_and_after_a_forget(plane) as (older, newer):
        before = known(index, older, embedder)
        newer.vectors = Lost(newer.vectors)
        with pytest.raises(StorageUnreachable):
            index.refresh(newer)

        assert known(index, older, embedder) == before
        assert len(before) == 2
