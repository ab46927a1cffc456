"""One measurement from a file to a report: `memplane eval` and `make eval` both end here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from memplane.errors import InvalidRequest
from memplane.extract.catalog import load_catalog
from memplane.main import embedder_of
from memplane.models.embedding import Embedder
from memplane_eval import conflicts
from memplane_eval.cache import CachedEmbedder, Stopwatch
from memplane_eval.changes import ChangeCase, change_rows
from memplane_eval.extraction import PrecisionRecall, score_dialogues
from memplane_eval.files import read_json
from memplane_eval.languages import checked_cases, language_rows
from memplane_eval.multihop import TOKENS_MAX, load_multihop, multihop_rows, reachable
from memplane_eval.product import memplane_documents
from memplane_eval.report import EVERYTHING, MEMPLANE, Advance, EvaluationRequest, Report, Row
from memplane_eval.retrieval import EvalStore, first_questions, load_locomo, load_longmemeval, recalls
from memplane_eval.returned.measure import measure_returned
from memplane_eval.systems import Figures, QuestionResult, finders, latency_rows, query_all, rows_of
from memplane_eval.temporal import TemporalScore as Accuracy
from memplane_eval.temporal import score_ctparse, score_duckling

LOCOMO_CATEGORIES = {"1": "1 multi-hop", "2": "2 temporal", "3": "3 open-domain", "4": "4 single-hop"}

Measure = Callable[[EvaluationRequest, Advance], Report]


def run(request: EvaluationRequest, advance: Advance = lambda _done, _total: None) -> Report:
    """Measure. Raises `InvalidRequest` for a file that is missing or of another kind."""
    return _MEASURES[request.subject](request, advance)


@contextmanager
def _reading(request: EvaluationRequest) -> Iterator[None]:
    """What is not there, or not of the expected type, means that the file is something else."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as exc:
        raise InvalidRequest(
            f"{request.path} does not look like data for `eval {request.subject}`: {exc!r}"
        ) from exc


# ── what is found ────────────────────────────────────────────────────────────────────────────────────────────────


def _locomo(request: EvaluationRequest, advance: Advance) -> Report:
    with _reading(request):
        stores = [_named(store) for store in load_locomo(request.path)]
    return _turns(request, first_questions(stores, request.limit), advance)


def _longmemeval(request: EvaluationRequest, advance: Advance) -> Report:
    with _reading(request):
        stores = load_longmemeval(request.path, request.limit)
    return _turns(request, stores, advance)


def _turns(request: EvaluationRequest, stores: Sequence[EvalStore], advance: Advance) -> Report:
    with _query_systems(request, stores, advance) as asked:
        figures: dict[str, list[Figures]] = {
            system: [
                (one.question.category, recalls(one.store, one.question, one.found.places)) for one in cases
            ]
            for system, cases in asked.items()
        }
        return _report(request, asked, [*rows_of(figures), *latency_rows(asked)])


def _multihop(request: EvaluationRequest, advance: Advance) -> Report:
    with _reading(request):
        articles = load_multihop(request.path, request.limit)
    documents = [(document.name, document.body, document.first) for document in articles.documents]
    with _query_systems(request, [articles.store], advance, documents) as asked:
        rows = [*multihop_rows(articles, asked), *latency_rows(asked)]
    return _report(
        request,
        asked,
        rows,
        f"{len(documents)} articles in {len(articles.spans):,} spans; one span holds {reachable(articles):.3f} of the"
        " evidence whole",
        f"evidence and words: within {TOKENS_MAX:,} tokens of spans, as `tokens_of` counts them",
        "nothing told: the share of questions that get no span; among those that no article answers it should be large",
    )


def _conflicts(request: EvaluationRequest, advance: Advance) -> Report:
    samples = read_json(request.path)
    with _reading(request):
        if conflicts.is_scenarios(samples):
            stores, make_rows = conflicts.load_scenarios(samples, request.limit), conflicts.scenario_rows
        else:
            stores = conflicts.load_consolidation(samples, request.limit)
            make_rows = conflicts.consolidation_rows
    with _query_systems(request, stores, advance) as asked:
        return _report(request, asked, [*make_rows(samples, asked), *latency_rows(asked)])


def _returned(request: EvaluationRequest, advance: Advance) -> Report:
    with _reading(request):
        report = measure_returned(request, advance)
    return _report(request, dict.fromkeys(report.systems), report.rows, *report.notes)


def _languages(request: EvaluationRequest, advance: Advance) -> Report:
    with _reading(request):
        cases = checked_cases(read_json(request.path))[: request.limit]
    with _embedder(request) as embedder:
        rows = list(language_rows(cases, embedder, advance))
    return _report(
        request,
        rows[0].values,
        rows,
        f"the share of questions whose memory comes first of {len(cases)} in a space of one language",
    )


def _changes(request: EvaluationRequest, advance: Advance) -> Report:
    with _reading(request):
        cases = msgspec.convert(read_json(request.path), list[ChangeCase])[: request.limit]
    _check_some(request, len(cases))
    with _embedder(request) as embedder:
        rows = list(change_rows(cases, embedder, advance))
    return _report(
        request,
        rows[0].values,
        rows,
        "what is current: the text has the current statement without a mark, and the outdated one marked or not at all",
    )


@contextmanager
def _embedder(request: EvaluationRequest) -> Iterator[Embedder | None]:
    """The model that the settings name, behind a cache if there is one."""
    inner = embedder_of(request.settings) if request.embeddings else None
    if inner is None or request.cache is None:
        yield inner
        return
    with CachedEmbedder(inner, request.cache) as cached:
        yield cached


@contextmanager
def _query_systems(
    request: EvaluationRequest,
    stores: Sequence[EvalStore],
    advance: Advance,
    documents: Sequence[tuple[str, str, int]] | None = None,
) -> Iterator[dict[str, list[QuestionResult]]]:
    """With documents, these are what Memplane is given instead of turns."""
    _check_some(request, sum(len(store.questions) for store in stores))
    with _embedder(request) as inner:
        embedder = None if inner is None else Stopwatch(inner)
        product = None if documents is None else memplane_documents(embedder, documents)
        yield query_all(stores, finders(request.compare, embedder, product), advance)


def _named(store: EvalStore) -> EvalStore:
    """LoCoMo numbers its categories; people know their names."""
    questions = [
        msgspec.structs.replace(
            question, category=LOCOMO_CATEGORIES.get(question.category, question.category)
        )
        for question in store.questions
    ]
    return msgspec.structs.replace(store, questions=questions)


# ── what is understood ───────────────────────────────────────────────────────────────────────────────────────────


def _msc(request: EvaluationRequest, advance: Advance) -> Report:
    _refuse_comparison(request)
    with _reading(request):
        scores = score_dialogues(read_json(request.path)[: request.limit], load_catalog())
    _check_some(request, scores.messages)
    advance(1, 1)
    rows = [
        Row(group=group, metric=metric, questions=scores.messages, values={MEMPLANE: value})
        for group in ("gate", "stored", "facts", "notes")
        for metric, value in _parts(getattr(scores, group))
    ]
    quotes = Row(
        group="quotes", metric="exact", questions=scores.messages, values={MEMPLANE: scores.quotes_exact}
    )
    return _report(
        request,
        {MEMPLANE: None},
        [*rows, quotes],
        "gate: messages that pass; stored: messages of which a fact is kept; facts: each sentence people wrote down; notes:"
        " each turn's note as a whole. Sentences match at a token F1 of 0.5",
    )


def _temporal(request: EvaluationRequest, advance: Advance) -> Report:
    _refuse_comparison(request)
    data = read_json(request.path)
    with _reading(request):
        if isinstance(data, list):
            scores: dict[str, Accuracy] = {EVERYTHING: score_ctparse(data[: request.limit])}
        else:
            parts = {part: data[part][: request.limit] for part in ("positive", "negative")}
            scores = score_duckling({**data, **parts})
    _check_some(request, sum(score.cases for score in scores.values()))
    advance(1, 1)
    rows = [
        Row(group=name, metric="accuracy", questions=score.cases, values={MEMPLANE: score.accuracy})
        for name, score in scores.items()
    ]
    return _report(request, {MEMPLANE: None}, rows)


def _check_some(request: EvaluationRequest, count: int) -> None:
    if not count:
        raise InvalidRequest(f"{request.path} holds nothing that can be measured")


def _refuse_comparison(request: EvaluationRequest) -> None:
    if request.compare:
        raise InvalidRequest(
            f"`eval {request.subject}` searches nothing, so there is no baseline to compare with"
        )


def _parts(score: PrecisionRecall) -> Iterator[tuple[str, float]]:
    yield from (("precision", score.precision), ("recall", score.recall), ("F1", score.f1))


def _report(
    request: EvaluationRequest, asked: Mapping[str, object], rows: Sequence[Row], *notes: str
) -> Report:
    if request.limit is not None:
        notes = (*notes, f"limited to the first {request.limit:,}, so not comparable with the whole data set")
    if not request.embeddings:
        notes = (*notes, "without embeddings: words only")
    return Report(
        subject=request.subject,
        file=request.path.name,
        systems=tuple(asked),
        rows=tuple(rows),
        notes=notes,
    )


_MEASURES: dict[str, Measure] = {
    "locomo": _locomo,
    "longmemeval": _longmemeval,
    "msc": _msc,
    "conflicts": _conflicts,
    "temporal": _temporal,
    "multihop": _multihop,
    "returned": _returned,
    "languages": _languages,
    "changes": _changes,
}
