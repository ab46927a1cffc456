"""Ask the cases of real spaces, through the product: what is fitted is what is used."""

import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from memplane.extract.relevance import Question
from memplane.main import Memplane
from memplane.models.embedding import Embedder
from memplane.recall.result import Limits, Recall
from memplane.space import Space
from memplane_eval.calibrate.fitting import SEED
from memplane_eval.product import retain
from memplane_eval.retrieval import EvalStore
from memplane_eval.returned.cases import Cases, CaseSpace

_WIDE = Limits(turns=48, facts=60)
_KEYWORDS = 2
_QUESTIONS_PER_STORE = 80
_TURNS_PER_SPACE = 60


class Query(msgspec.Struct, frozen=True):
    """One recall with what is known about it."""

    result: Recall
    helps: bool | None
    """Whether memory helps with the turn; None: not known."""
    turns: frozenset[str] = frozenset()
    """Ids of the entries that answer."""
    memories: frozenset[str] = frozenset()
    """Ids of the memories that answer."""
    labelled: bool = True
    """Whether it is known which items answer."""


@contextmanager
def _space(embedder: Embedder | None) -> Iterator[Space]:
    with (
        tempfile.TemporaryDirectory(prefix="memplane-calibrate-") as folder,
        Memplane.open(folder, embedder=embedder) as plane,
    ):
        yield plane.space("calibrate")


def _asked(space: Space, question: str, **known: object) -> Query:
    return Query(space.recall(question, limits=_WIDE, counted=False), **known)  # type: ignore[arg-type]


def _pairs(space: Space, case: CaseSpace, ids: Sequence[str], field: str) -> Iterator[Query]:
    for pair in case.pairs:
        known = {field: frozenset({ids[pair.memory]})}
        yield _asked(space, pair.question, helps=True, **known)
        stored = case.memories[pair.memory].stored
        for text in (" ".join(Question(stored).words[:_KEYWORDS]), f"Is it true: {stored}?"):
            yield _asked(space, text, helps=True, **known)


def _stored(space: Space, case: CaseSpace) -> list[str]:
    return [space.store(memory.kind, memory.stored).id for memory in case.memories]


def _said(space: Space, case: CaseSpace) -> list[str]:
    return [space.retain(memory.said).id for memory in case.memories]


def _unneeded(space: Space, cases: Cases, language: str, draw: random.Random) -> Iterator[Query]:
    turns = [turn.text for turn in (*cases.turns, *cases.needs_not) if turn.language == language]
    for text in draw.sample(turns, min(len(turns), _TURNS_PER_SPACE)):
        yield _asked(space, text, helps=False, labelled=False)


def queries(cases: Cases, stores: Sequence[EvalStore], embedder: Embedder | None) -> Iterator[Query]:
    """Every case asked of a space of its own, and among the turns of long conversations."""
    draw = random.Random(SEED)
    for case in cases.spaces:
        with _space(embedder) as space:
            ids = _stored(space, case)
            space.enrich()
            yield from _pairs(space, case, ids, "memories")
            yield from _unneeded(space, cases, case.language, draw)
        with _space(embedder) as space:
            ids = _said(space, case)
            space.enrich()
            yield from _pairs(space, case, ids, "turns")
            yield from _unneeded(space, cases, case.language, draw)
    english = [case for case in cases.spaces if case.language == "en"]
    for at, store in enumerate(stores):
        with _space(embedder) as space:
            entries = [retain(space, turn) for turn in store.turns]
            mixed = english[at % len(english)] if english else None
            ids = _stored(space, mixed) if mixed is not None else []
            space.enrich()
            if mixed is not None:
                yield from _pairs(space, mixed, ids, "memories")
            for asked in draw.sample(list(store.questions), min(len(store.questions), _QUESTIONS_PER_STORE)):
                yield Query(
                    space.recall(asked.text, limits=_WIDE, reference_time=asked.asked_at, counted=False),
                    helps=True,
                    turns=frozenset(entries[place] for place in asked.evidence),
                )
            yield from _unneeded(space, cases, "en", draw)
