"""Documents are a projection, too: whatever was uploaded, collected and forgotten, in whatever order, a replay gives the
same documents, spans and collections."""

from contextlib import ExitStack, suppress
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from tests.conftest import HandClock, run_machine
from tests.support.stub_embedder_enrich import BagOfWords

from engines import HOME, both_engines
from memplane import Memplane
from memplane.errors import MemplaneError

pytestmark = both_engines

TEXTS = ("# One\n\ncats sleep\n", "dogs bark\n\n## Two\n\nloudly", "plain words", "# One\n\ncats sleep\n")
DOCUMENT = st.sampled_from(["d1", "d2", "d3"])
COLLECTION = st.sampled_from(["c1", "c2"])
PROJECT = st.sampled_from([None, "p", "q"])


class LibraryMachine(RuleBasedStateMachine):
    """What a rule is refused changes nothing; what must hold is looked at in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = ExitStack()
        self.clock = HandClock()
        data = self.opened.enter_context(HOME.fresh())
        plane = Memplane.open(data, embedder=BagOfWords(dimension=4), clock=self.clock)
        self.space = self.opened.enter_context(plane).space("alice")

    def teardown(self) -> None:
        with self.opened:
            self.space.enrich()
            before = self.everything()
            self.space.ledger.replay()
            self.space.enrich()
            assert self.everything() == before
            assert self.space.ledger.verify().ok

    def everything(self):
        space = self.space
        documents = space.documents.list(limit=100)
        with space._context.read() as reader:
            model = reader.vectors.current_model()
            words = {
                stem: reader.words.span_occurrences(stem) for stem in ("cat", "dog", "word", "one", "two")
            }
            vectors = [] if model is None else reader.vectors.spans(model, after=0, limit=1_000)
            waiting = reader.vectors.pending_span_count()
        return {
            "documents": documents,
            "spans": [space.documents.spans(document.id) for document in documents],
            "sections": [space.documents.sections(document.id) for document in documents],
            "collections": [
                (made, space.documents.members(made.id)) for made in space.documents.collections()
            ],
            "words": words,
            "vectors": sorted((vector.n, vector.digest, vector.vector) for _, vector in vectors),
            "waiting": waiting,
        }

    def attempt(self, call, *args, **fields):
        self.clock.advance(seconds=20)
        with suppress(MemplaneError):
            call(*args, **fields)

    @rule(id=DOCUMENT, text=st.sampled_from(TEXTS), project=PROJECT, collection=st.none() | COLLECTION)
    def upload(self, id, text, project, collection):
        self.attempt(
            self.space.documents.upload, text, name=f"{id}.md", id=id, project=project, collection=collection
        )

    @rule(id=DOCUMENT)
    def delete(self, id):
        self.attempt(self.space.documents.delete, id)

    @rule(id=COLLECTION, project=PROJECT, ordered=st.booleans())
    def create(self, id, project, ordered):
        self.attempt(self.space.documents.create_collection, id, id=id, project=project, ordered=ordered)

    @rule(id=COLLECTION)
    def give_up(self, id):
        self.attempt(self.space.documents.delete_collection, id)

    @rule(collection=COLLECTION, document=DOCUMENT, position=st.none() | st.integers(0, 3))
    def add(self, collection, document, position):
        self.attempt(self.space.documents.add_to_collection, collection, document, position=position)

    @rule(collection=COLLECTION, document=DOCUMENT)
    def remove(self, collection, document):
        self.attempt(self.space.documents.remove_from_collection, collection, document)

    @rule(project=st.sampled_from(["p", "q"]))
    def forget_project(self, project):
        self.attempt(self.space.forget, project=project)

    @rule(first=st.integers(0, 40), length=st.integers(1, 6))
    def forget_a_while(self, first, length):
        """Any stretch of what came in, so that what undoes something may go without what it undid."""
        seqs = self.space.ledger.entries(limit=1_000)
        chosen = [entry for entry in seqs if entry.body][first : first + length]
        if chosen:
            since, until = chosen[0].recorded, chosen[-1].recorded + 1
            self.attempt(
                self.space.forget,
                since=self.clock.moment - timedelta(microseconds=self.clock.now - since),
                until=self.clock.moment - timedelta(microseconds=self.clock.now - until),
            )

    @rule()
    def work(self):
        self.space.enrich()


def test_a_library_is_derived_again():
    run_machine(LibraryMachine, 25, steps=20)
