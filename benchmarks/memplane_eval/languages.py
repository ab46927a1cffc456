"""Memories and indirect questions with the same content in many languages: how often the memory comes first.

[{"en": {"memory": "…", "question": "…"}, "de": {"memory": "…", "question": "…"}}, …]

Each language has a space with its memories. Every question is put to the space of its own language and to the spaces of
all others.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product

import numpy as np

from memplane.errors import InvalidRequest
from memplane.main import Memplane
from memplane.models.embedding import Embedder
from memplane.types import Kind
from memplane_eval.report import MEMPLANE, Advance, Row, mean

Texts = Mapping[str, str]
LanguageCases = Sequence[Mapping[str, Texts]]
First = Callable[[str], int | None]
"""The place of the memory that comes first for a question; None if nothing is found."""
ONE, ACROSS = "one language", "across languages"
DENSE = "dense"


def checked_cases(rows: LanguageCases) -> LanguageCases:
    """Raises `InvalidRequest` unless every row has the languages of the first."""
    if not rows or any(row.keys() != rows[0].keys() for row in rows):
        raise InvalidRequest("every row must have a memory and a question in the same languages")
    return rows


def language_rows(rows: LanguageCases, embedder: Embedder | None, advance: Advance) -> Iterator[Row]:
    """The share of questions whose memory comes first: of each language, and of each language in the spaces of the others."""
    languages = list(rows[0])
    shares: dict[tuple[str, str, str], float] = {}
    for done, told in enumerate(languages, 1):
        memories = [row[told]["memory"] for row in rows]
        with _memplane(memories, embedder) as first:
            systems = {MEMPLANE: first} | ({} if embedder is None else {DENSE: _dense(memories, embedder)})
            for system, asked in product(systems, languages):
                places = [systems[system](row[asked]["question"]) for row in rows]
                shares[system, asked, told] = mean([float(at == place) for at, place in enumerate(places)])
        advance(done, len(languages))
    for asked in languages:
        values = {system: shares[system, asked, asked] for system in systems}
        yield Row(group=ONE, metric=asked, questions=len(rows), values=values)
    for asked in languages:
        others = [told for told in languages if told != asked]
        values = {system: mean([shares[system, asked, told] for told in others]) for system in systems}
        yield Row(group=ACROSS, metric=asked, questions=len(rows) * len(others), values=values)


@contextmanager
def _memplane(memories: Sequence[str], embedder: Embedder | None) -> Iterator[First]:
    """The first stored memory of a recall's ranking."""
    with (
        tempfile.TemporaryDirectory(prefix="memplane-eval-") as folder,
        Memplane.open(folder, embedder=embedder) as plane,
    ):
        space = plane.space("languages")
        places = {space.store(Kind.FACT, memory).id: place for place, memory in enumerate(memories)}
        space.enrich()

        def first(question: str) -> int | None:
            hits = space.recall(question).hits
            return next((places[hit.memory.id] for hit in hits if hit.memory is not None), None)

        yield first


def _dense(memories: Sequence[str], embedder: Embedder) -> First:
    """The nearest vector."""
    vectors = embedder.embed_texts(memories)
    return lambda question: int(np.argmax(vectors @ embedder.embed_query(question)))
