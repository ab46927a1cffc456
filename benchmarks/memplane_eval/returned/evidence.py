"""How much of the evidence is in the text of a recall, for several budgets: LoCoMo and LongMemEval."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from memplane.config import Settings
from memplane.main import Memplane
from memplane.models.embedding import Embedder
from memplane.recall.result import Recall
from memplane.safety.outgoing import BLOCKS_MAX
from memplane.space import Space
from memplane_eval.product import retain
from memplane_eval.report import MEMPLANE, Advance, Row
from memplane_eval.retrieval import EvalQuestion, EvalStore, Ranker, best_first
from memplane_eval.returned.received import PlainLines, Shown, plane_blocks, recalled
from memplane_eval.returned.samples import TOKENS, Samples

BUDGETS = (400, 800, 1_200, 1_600, 2_000)
DEFAULT = "default"
BLOCKS = f"{BLOCKS_MAX} blocks"

EVIDENCE = "evidence"
OR_FACT = "evidence, or a fact of it"
ANSWER = "words of the answer"
PER_1000 = "evidence per 1,000 tokens"


def evidence_rows(
    stores: Sequence[EvalStore], embedder: Embedder | None, rankers: Mapping[str, Ranker], advance: Advance
) -> list[Row]:
    """One group a budget, one column a system. A baseline is filled with plain lines up to the same budget, and for the
    default up to the mean of what Memplane used."""
    samples = Samples()
    total, done = (1 + len(rankers)) * sum(len(store.questions) for store in stores), 0
    for store in stores:
        for question, space, ids in _asked(store, embedder):
            _ask_memplane(samples, store, question, space, ids)
            done += 1
            advance(done, total)
    default_tokens = samples.mean(DEFAULT, TOKENS)
    for system, ranker in rankers.items():
        for store in stores:
            score, lines = ranker(store), PlainLines(store.turns)
            for question in store.questions:
                _ask_baseline(samples, system, question, lines, best_first(score(question)), default_tokens)
                done += 1
                advance(done, total)
    return [*_with_rates(samples)]


def _asked(
    store: EvalStore, embedder: Embedder | None
) -> Iterator[tuple[EvalQuestion, Space, Sequence[str]]]:
    """Each question, with the space that holds the turns and the ids of their entries."""
    with (
        tempfile.TemporaryDirectory(prefix="memplane-eval-") as folder,
        Memplane.open(folder, embedder=embedder) as plane,
    ):
        space = plane.space(store.name)
        ids = [retain(space, turn) for turn in store.turns]
        space.enrich()
        for question in store.questions:
            yield question, space, ids


def _ask_memplane(
    samples: Samples, store: EvalStore, question: EvalQuestion, space: Space, ids: Sequence[str]
) -> None:
    for group, tokens in _groups():
        found = recalled(space, question.text, tokens=tokens, reference_time=question.asked_at)
        shown = Shown(found.text)
        turns = {place for place in question.evidence if shown.has(store.turns[place].text)}
        facts = _facts_of(found, shown, ids, question)
        samples.add(group, EVIDENCE, len(turns) / len(question.evidence))
        samples.add(group, OR_FACT, len(turns | facts) / len(question.evidence))
        _add_answer(samples, group, MEMPLANE, question, shown)
        samples.add(group, TOKENS, found.tokens)
    shown = Shown(plane_blocks(space, question.text, Settings(), reference_time=question.asked_at))
    turns = {place for place in question.evidence if shown.has(store.turns[place].text)}
    samples.add(BLOCKS, EVIDENCE, len(turns) / len(question.evidence))
    _add_answer(samples, BLOCKS, MEMPLANE, question, shown)


def _facts_of(found: Recall, shown: Shown, ids: Sequence[str], question: EvalQuestion) -> set[int]:
    """The places of evidence of which a derived memory is in the text."""
    entries = {
        memory.entry_id
        for hit in found.facts
        if (memory := hit.memory) is not None and memory.derived and shown.has(memory.line)
    }
    return {place for place in question.evidence if ids[place] in entries}


def _ask_baseline(
    samples: Samples,
    system: str,
    question: EvalQuestion,
    lines: PlainLines,
    ranked: Sequence[int],
    default_tokens: float,
) -> None:
    for group, tokens in _groups():
        places = lines.filled(ranked, default_tokens if tokens is None else tokens)
        _add_places(samples, group, system, question, lines, places)
        samples.add(group, TOKENS, lines.tokens(places), system=system)
    _add_places(samples, BLOCKS, system, question, lines, ranked[:BLOCKS_MAX])


def _add_places(
    samples: Samples,
    group: str,
    system: str,
    question: EvalQuestion,
    lines: PlainLines,
    places: Sequence[int],
) -> None:
    found = len(question.evidence.intersection(places)) / len(question.evidence)
    samples.add(group, EVIDENCE, found, system=system)
    _add_answer(samples, group, system, question, Shown(lines.text(places)))


def _add_answer(samples: Samples, group: str, system: str, question: EvalQuestion, shown: Shown) -> None:
    share = None if question.answer is None else shown.share_of_words(question.answer)
    if share is not None:
        samples.add(group, ANSWER, share, system=system)


def _groups() -> Iterator[tuple[str, int | None]]:
    yield DEFAULT, None
    yield from ((f"budget {tokens:,}", tokens) for tokens in BUDGETS)


def _with_rates(samples: Samples) -> Iterator[Row]:
    """After the mean of the tokens of a group, the evidence for 1,000 of them."""
    for row in samples.rows():
        yield row
        if row.metric == f"{TOKENS}, mean":
            rates = {
                system: samples.mean(row.group, EVIDENCE, system=system) / used * 1_000
                for system, used in row.values.items()
                if used
            }
            yield msgspec.structs.replace(row, metric=PER_1000, values=rates, unit="")
