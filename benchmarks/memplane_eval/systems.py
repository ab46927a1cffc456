"""The systems that are measured, each given the same turns and the same questions."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from memplane.errors import InvalidRequest
from memplane_eval.cache import Stopwatch
from memplane_eval.product import memplane
from memplane_eval.report import BASELINES, EVERYTHING, MEMPLANE, Advance, Row, mean, percentile
from memplane_eval.retrieval import (
    EvalQuestion,
    EvalStore,
    Finder,
    QuerySystem,
    Ranker,
    RetrievalResult,
    best_first,
    bm25,
    dense,
)

Figures = tuple[str, Mapping[str, float]]
"""What one question gave: the group it belongs to, and its value by metric."""

LATENCY = "latency"
_FACTS = 20


class QuestionResult(msgspec.Struct, frozen=True, kw_only=True):
    """One question put to one system."""

    store: EvalStore
    question: EvalQuestion
    found: RetrievalResult


def finders(
    compare: Sequence[str], embedder: Stopwatch | None, product: Finder | None = None
) -> dict[str, Finder]:
    """Memplane first, which keeps turns unless another way to use it is given, then the baselines asked for. Without an embedder nothing can be compared with its vectors."""
    unknown = [name for name in compare if name not in BASELINES]
    if unknown:
        raise InvalidRequest(
            f"no baseline {unknown[0]!r}; there are {' and '.join(BASELINES)}", field="compare"
        )
    systems: dict[str, Finder] = {MEMPLANE: product or memplane(embedder)}
    for name in dict.fromkeys(compare):
        if name == "bm25":
            systems[name] = by_scores(bm25, None)
        elif embedder is None:
            raise InvalidRequest("the baseline dense needs embeddings", field="compare")
        else:
            systems[name] = by_scores(dense(embedder), embedder)
    return systems


def by_scores(ranker: Ranker, embedder: Stopwatch | None) -> Finder:
    """What scores every turn finds the best of them, and would tell what they say."""

    @contextmanager
    def prepare(store: EvalStore) -> Iterator[QuerySystem]:
        score = ranker(store)

        def ask(question: EvalQuestion) -> RetrievalResult:
            started, embedded_s = time.perf_counter(), embedder.queries_s if embedder else 0.0
            scores = score(question)
            places = best_first(scores)
            embedding_s = embedder.queries_s - embedded_s if embedder else 0.0
            rest_s = time.perf_counter() - started - embedding_s
            return RetrievalResult(
                places=places,
                facts=[store.turns[place].text for place in places[:_FACTS]],
                score=float(scores[places[0]]) if places else 0.0,
                embedding_ms=embedding_s * 1_000,
                rest_ms=rest_s * 1_000,
            )

        yield ask

    return prepare


def query_all(
    stores: Sequence[EvalStore], systems: Mapping[str, Finder], advance: Advance
) -> dict[str, list[QuestionResult]]:
    """Every question put to every system, one store at a time."""
    asked: dict[str, list[QuestionResult]] = {name: [] for name in systems}
    total = len(systems) * sum(len(store.turns) + len(store.questions) for store in stores)
    done = 0
    for name, finder in systems.items():
        for store in stores:
            with finder(store) as ask:
                done += len(store.turns)
                advance(done, total)
                for question in store.questions:
                    asked[name].append(QuestionResult(store=store, question=question, found=ask(question)))
                    done += 1
                    advance(done, total)
    return asked


def rows_of(figures: Mapping[str, Sequence[Figures]]) -> Iterator[Row]:
    """Means by system, over all questions and over each group of them."""
    names = {group for cases in figures.values() for group, _ in cases}
    for name in (EVERYTHING, *sorted(names - {EVERYTHING})):
        samples: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for system, cases in figures.items():
            for group, values in cases:
                for metric, value in values.items() if name in {EVERYTHING, group} else ():
                    samples[metric][system].append(value)
        for metric, by_system in samples.items():
            yield Row(
                group=name,
                metric=metric,
                questions=max(map(len, by_system.values())),
                values={system: mean(values) for system, values in by_system.items()},
            )


def latency_rows(asked: Mapping[str, Sequence[QuestionResult]]) -> Iterator[Row]:
    """How long an answer took, with the embedding of the question and the rest apart."""
    parts: dict[str, Callable[[RetrievalResult], float]] = {
        "question": lambda found: found.ms,
        "its embedding": lambda found: found.embedding_ms,
        "the rest": lambda found: found.rest_ms,
    }
    count = max((len(cases) for cases in asked.values()), default=0)
    for part, read in parts.items():
        for label, share in (("p50", 0.5), ("p95", 0.95)):
            values = {
                name: percentile([read(one.found) for one in cases], share) for name, cases in asked.items()
            }
            yield Row(group=LATENCY, metric=f"{part} {label}", questions=count, values=values, unit="ms")
