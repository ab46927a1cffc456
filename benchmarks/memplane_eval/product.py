"""Memplane as its users have it: a data directory, retain, enrich, recall. Nothing here ranks or decides."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from memplane.main import Memplane
from memplane.models.embedding import Embedder
from memplane.recall.result import SPANS_MAX, Limits, Recall
from memplane.safety.sanitize import visible
from memplane.space import Space
from memplane.types import Role, State
from memplane_eval.retrieval import EvalQuestion, EvalStore, EvalTurn, Finder, QuerySystem, RetrievalResult

_WIDE = Limits(turns=100, facts=20)
"""Enough turns that ten sessions or documents are among them; the usual limits are what is timed."""
_WIDE_SPANS = Limits(spans=SPANS_MAX)
_CURRENT = frozenset({State.ACTIVE, State.CONTESTED})


def memplane(embedder: Embedder | None) -> Finder:
    """Keeps a store's turns in a data directory of their own, which is deleted in the end. A turn without visible text
    says nothing and is left out; downloaded data has such turns."""

    @contextmanager
    def prepare(store: EvalStore) -> Iterator[QuerySystem]:
        with (
            tempfile.TemporaryDirectory(prefix="memplane-eval-") as folder,
            Memplane.open(folder, embedder=embedder) as plane,
        ):
            space = plane.space(store.name)
            spoken = [(place, turn) for place, turn in enumerate(store.turns) if visible(turn.text).strip()]
            places = {retain(space, turn): place for place, turn in spoken}
            space.enrich()

            def ask(question: EvalQuestion) -> RetrievalResult:
                started = time.perf_counter()
                usual = space.recall(question.text, reference_time=question.asked_at)
                ms = (time.perf_counter() - started) * 1_000
                embedding_ms = usual.timings.get("embed", 0.0)
                told = space.recall(question.text, reference_time=question.asked_at, limits=_WIDE)
                turns = [(hit.turn, hit.score) for hit in told.hits if hit.turn is not None]
                return RetrievalResult(
                    places=[places[turn.entry_id] for turn, _ in turns],
                    facts=current_facts(told),
                    score=turns[0][1] if turns else 0.0,
                    embedding_ms=embedding_ms,
                    rest_ms=ms - embedding_ms,
                )

            yield ask

    return prepare


def memplane_documents(embedder: Embedder | None, documents: Sequence[tuple[str, str, int]]) -> Finder:
    """Uploads documents (name, text, place of the first span among the store's turns) and finds spans of them."""

    @contextmanager
    def prepare(store: EvalStore) -> Iterator[QuerySystem]:
        with (
            tempfile.TemporaryDirectory(prefix="memplane-eval-") as folder,
            Memplane.open(folder, embedder=embedder) as plane,
        ):
            space = plane.space(store.name)
            firsts = {space.documents.upload(text, name=name).id: first for name, text, first in documents}
            space.enrich()

            def ask(question: EvalQuestion) -> RetrievalResult:
                started = time.perf_counter()
                usual = space.recall(question.text, reference_time=question.asked_at)
                ms = (time.perf_counter() - started) * 1_000
                embedding_ms = usual.timings.get("embed", 0.0)
                told = space.recall(question.text, reference_time=question.asked_at, limits=_WIDE_SPANS)
                return RetrievalResult(
                    places=[firsts[hit.span.document] + hit.span.ordinal for hit in told.spans],
                    facts=[],
                    score=told.spans[0].score if told.spans else 0.0,
                    embedding_ms=embedding_ms,
                    rest_ms=ms - embedding_ms,
                )

            yield ask

    return prepare


def retain(space: Space, turn: EvalTurn) -> str:
    """A speaker that is no role is a user with a name."""
    is_role = turn.speaker in set(Role)
    kept = space.retain(
        turn.text,
        role=turn.speaker if is_role else Role.USER,
        speaker=None if is_role else turn.speaker,
        conversation=f"s{turn.session}",
        at=turn.at,
    )
    return kept.id


def current_facts(told: Recall) -> list[str]:
    """What is told as true; a fact that another one contests is told, a superseded one must not be."""
    memories = (hit.memory for hit in told.facts if hit.memory is not None)
    return [memory.text for memory in memories if memory.state in _CURRENT]
