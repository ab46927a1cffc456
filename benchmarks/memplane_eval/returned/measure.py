"""`memplane eval returned`: which measurement a file asks for, and its report."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from memplane.errors import InvalidRequest
from memplane.main import embedder_of
from memplane.models.embedding import Embedder
from memplane_eval.cache import CachedEmbedder
from memplane_eval.files import DataMissing, read_json
from memplane_eval.report import MEMPLANE, Advance, EvaluationRequest, Report, Row
from memplane_eval.retrieval import (
    EvalStore,
    EvalTurn,
    Ranker,
    bm25,
    dense,
    first_questions,
    load_locomo,
    load_longmemeval,
)
from memplane_eval.returned.cases import is_cases, load_cases
from memplane_eval.returned.evidence import evidence_rows
from memplane_eval.returned.pairs import measure_instruction, measure_space, setups, spaces_for
from memplane_eval.returned.repetition import measure_repetition
from memplane_eval.returned.samples import Samples
from memplane_eval.returned.workbench import FILLER_TURNS, Workbench

_EVIDENCE_NOTES = (
    "evidence: share of the turns that answer a question whose text, or an excerpt of it, is in `recall().text`",
    (
        "bm25 and dense: plain lines up to the same budget; for the default, up to the mean tokens of Memplane; for blocks, the 8"
        " best turns at full length"
    ),
)
_CASES_NOTES = (
    "bm25 and dense: plain lines up to the mean tokens that Memplane returned in spaces of the same language",
    "a small space holds the memories of one case",
)


def measure_returned(request: EvaluationRequest, advance: Advance) -> Report:
    """One report for a data set, or for a file or folder of cases."""
    with _embedder(request) as embedder:
        rankers: dict[str, Ranker] = {"bm25": bm25}
        if embedder is not None:
            rankers["dense"] = dense(embedder)
        if request.path.is_dir() or is_cases(read_json(request.path)):
            rows, notes = _cases(request, embedder, rankers, advance)
        else:
            stores = _stores(request.path, request.limit)
            rows, notes = evidence_rows(stores, embedder, rankers, advance), _EVIDENCE_NOTES
    return Report(
        subject=request.subject,
        file=request.path.name,
        systems=(MEMPLANE, *rankers),
        rows=tuple(rows),
        notes=tuple(notes),
    )


@contextmanager
def _embedder(request: EvaluationRequest) -> Iterator[Embedder | None]:
    inner = embedder_of(request.settings) if request.embeddings else None
    if inner is None or request.cache is None:
        yield inner
    else:
        with CachedEmbedder(inner, request.cache) as cached:
            yield cached


def _stores(path: Path, limit: int | None) -> Sequence[EvalStore]:
    samples = read_json(path)
    first = samples[0] if isinstance(samples, list) and samples else None
    keys = first.keys() if isinstance(first, dict) else set[str]()
    if "conversation" in keys:
        return first_questions(load_locomo(path), limit)
    if "haystack_sessions" in keys:
        return load_longmemeval(path, limit)
    raise InvalidRequest(f"{path} is neither LoCoMo nor LongMemEval nor a file of cases")


def _cases(
    request: EvaluationRequest, embedder: Embedder | None, rankers: Mapping[str, Ranker], advance: Advance
) -> tuple[list[Row], Sequence[str]]:
    cases = load_cases(request.path, request.limit)
    filler, notes = _filler(request.filler)
    samples = Samples()
    with Workbench(embedder, filler) as workbench:
        ways = setups(workbench)
        total = len(cases.spaces) * len(ways) + len(cases.instructions) + 1
        done = 0
        for setup in ways:
            for space in cases.spaces:
                measure_space(samples, workbench, setup, space, cases, rankers)
                done += 1
                advance(done, total)
        for number, instruction in enumerate(cases.instructions):
            beside = spaces_for(cases, instruction, number)
            if beside is not None:
                measure_instruction(samples, workbench, instruction, beside)
            if workbench.filler:
                measure_instruction(samples, workbench, instruction, None)
            done += 1
            advance(done, total)
        measure_repetition(samples, workbench)
        advance(total, total)
    return list(samples.rows()), (*_CASES_NOTES, *notes)


def _filler(path: Path | None) -> tuple[Sequence[EvalTurn], Sequence[str]]:
    """Turns of other people for the space of 1,000, and a note if there are none."""
    try:
        stores = [] if path is None else load_locomo(path)
    except (DataMissing, KeyError, TypeError):
        stores = []
    turns = [turn for store in stores for turn in store.turns][:FILLER_TURNS]
    if turns:
        return turns, (f"the space of 1,000 holds {len(turns)} turns of LoCoMo besides the memories",)
    return (), ("space of 1,000 skipped: no LoCoMo file in MEMPLANE_EVAL_DATA to fill it with",)
