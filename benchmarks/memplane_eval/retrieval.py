"""How much of what answers a question is found: LoCoMo and LongMemEval, by turn and by session.

The data is the user's own download, in its upstream schema, gzipped or not. A `Ranker` is anything that scores every
turn of a store for a question; BM25 and plain vectors are here.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memplane.errors import InvalidRequest
from memplane.extract.relevance import Question
from memplane.models.embedding import Embedder, Vectors
from memplane.recall.turn_embedding import embedded_text
from memplane.storage.words import stems_of
from memplane_eval.files import read_json

Scores = NDArray[np.float64]
"""One number a turn; the largest is the best."""

TURNS_AT = (5, 10, 20)
SESSIONS_AT = (5, 10)

_LOCOMO_ANSWERED = frozenset({1, 2, 3, 4})
"""Category 5 asks for what nobody said."""
_LOCOMO_EVIDENCE = re.compile(r"D\d+:\d+")
_K1, _B = 1.2, 0.75
"""BM25's usual constants."""
_LOCOMO_SESSION = re.compile(r"session_(\d+)")


class EvalTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One thing said, in the order it was said."""

    id: str
    session: int
    speaker: str
    text: str
    at: datetime


class EvalQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, and the places of the turns that answer it."""

    text: str
    category: str
    evidence: frozenset[int]
    asked_at: datetime | None = None
    answer: str | None = None
    """The expected answer, if the data has one."""


class EvalStore(msgspec.Struct, frozen=True, kw_only=True):
    """Turns that are searched together, and the questions put to them."""

    name: str
    turns: Sequence[EvalTurn]
    questions: Sequence[EvalQuestion]


Ranker = Callable[[EvalStore], Callable[[EvalQuestion], Scores]]
"""Prepares a store once; then scores its turns, question by question."""


class RetrievalResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a system answers a question with, and how long that took."""

    places: Sequence[int]
    """Turns, best first."""
    facts: Sequence[str]
    """What it would tell as true, best first."""
    score: float
    """Of its best turn; 0 if it found none."""
    embedding_ms: float
    rest_ms: float

    @property
    def ms(self) -> float:
        return self.embedding_ms + self.rest_ms


QuerySystem = Callable[[EvalQuestion], RetrievalResult]
Finder = Callable[[EvalStore], AbstractContextManager[QuerySystem]]
"""Takes a store in, answers question by question, and lets go of it."""


# ── the data sets ────────────────────────────────────────────────────────────────────────────────────────────────


def load_locomo(path: Path) -> list[EvalStore]:
    """One store a conversation, with the questions that have an answer and name turns that are there."""
    return [_locomo_store(sample) for sample in _read(path)]


def load_longmemeval(path: Path, limit: int | None = None) -> list[EvalStore]:
    """All sessions of all questions (or of the first so many) in one store; a question without a marked turn is left
    out."""
    samples = _read(path)[:limit]
    turns: list[EvalTurn] = []
    begins: dict[str, int] = {}
    sessions = (
        session
        for sample in samples
        for session in zip(
            sample["haystack_session_ids"], sample["haystack_dates"], sample["haystack_sessions"], strict=True
        )
    )
    for id_, date, said in sessions:
        if id_ in begins:
            continue
        begins[id_] = len(turns)
        turns += [
            EvalTurn(
                id=f"{id_}:{place}",
                session=len(begins) - 1,
                speaker=turn["role"],
                text=turn["content"],
                at=_longmemeval_date(date),
            )
            for place, turn in enumerate(said)
        ]
    questions = [_longmemeval_question(sample, begins) for sample in samples]
    answered = [question for question in questions if question.evidence]
    return [EvalStore(name="longmemeval", turns=turns, questions=answered)]


def first_questions(stores: Sequence[EvalStore], limit: int | None) -> list[EvalStore]:
    """The first so many questions of all, each with the whole store it is put to."""
    kept, left = [], limit
    for store in stores:
        questions = store.questions[:left]
        left = None if left is None else left - len(questions)
        if questions:
            kept.append(msgspec.structs.replace(store, questions=questions))
    return kept


def _locomo_store(sample: Mapping[str, Any]) -> EvalStore:
    spoken = sample["conversation"]
    numbers = sorted(
        int(found[1]) for key, said in spoken.items() if (found := _LOCOMO_SESSION.fullmatch(key)) and said
    )
    turns = [
        EvalTurn(
            id=turn["dia_id"],
            session=session,
            speaker=turn["speaker"],
            text=_with_picture(turn),
            at=datetime.strptime(spoken[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(
                tzinfo=UTC
            ),
        )
        for session, number in enumerate(numbers)
        for turn in spoken[f"session_{number}"]
    ]
    places = {turn.id: place for place, turn in enumerate(turns)}
    questions = [
        EvalQuestion(
            text=asked["question"],
            category=str(asked["category"]),
            answer=_answer(asked),
            evidence=frozenset(
                places[id_]
                for cited in asked["evidence"]
                for id_ in _LOCOMO_EVIDENCE.findall(cited)
                if id_ in places
            ),
        )
        for asked in sample["qa"]
        if asked["category"] in _LOCOMO_ANSWERED
    ]
    answered = [question for question in questions if question.evidence]
    return EvalStore(name=sample["sample_id"], turns=turns, questions=answered)


def _answer(asked: Mapping[str, Any]) -> str | None:
    """Some answers are numbers."""
    answer = asked.get("answer")
    return None if answer is None else str(answer)


def _with_picture(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['text']} [shares {caption}]" if caption else str(turn["text"])


def _longmemeval_question(sample: Mapping[str, Any], begins: Mapping[str, int]) -> EvalQuestion:
    answerable = not sample["question_id"].endswith("_abs")
    sessions = zip(sample["haystack_session_ids"], sample["haystack_sessions"], strict=True)
    return EvalQuestion(
        text=sample["question"],
        category=sample["question_type"],
        answer=_answer(sample),
        asked_at=_longmemeval_date(sample["question_date"]),
        evidence=frozenset(
            begins[id_] + place
            for id_, said in sessions
            for place, turn in enumerate(said)
            if answerable and turn.get("has_answer")
        ),
    )


def _longmemeval_date(text: str) -> datetime:
    return datetime.strptime(re.sub(r" \(\w+\)", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)


def _read(path: Path) -> list[Any]:
    found = read_json(path)
    if not isinstance(found, list):
        raise InvalidRequest(f"{path} is no list of samples")
    return found


# ── the measure ──────────────────────────────────────────────────────────────────────────────────────────────────


def recall_at(ranked: Sequence[int], wanted: Iterable[int], k: int) -> float:
    """The share of what is wanted among the first k."""
    wanted = frozenset(wanted)
    return len(wanted.intersection(ranked[:k])) / len(wanted)


def recalls(
    store: EvalStore,
    question: EvalQuestion,
    ranked: Sequence[int],
    *,
    turns_at: Sequence[int] = TURNS_AT,
    sessions_at: Sequence[int] = SESSIONS_AT,
) -> dict[str, float]:
    """`turn@k` and `session@k` of one question, from the places of turns, best first. A session is as good as its
    best turn."""
    sessions = list(dict.fromkeys(store.turns[place].session for place in ranked))
    wanted = {store.turns[place].session for place in question.evidence}
    return {f"turn@{k}": recall_at(ranked, question.evidence, k) for k in turns_at} | {
        f"session@{k}": recall_at(sessions, wanted, k) for k in sessions_at
    }


def best_first(scores: Scores) -> list[int]:
    """The places of all turns; of two equals the earlier one."""
    return [int(place) for place in np.argsort(-scores, kind="stable")]


# ── the baselines ────────────────────────────────────────────────────────────────────────────────────────────────


class _Postings:
    """Which turns hold a stem, and how often."""

    def __init__(self, store: EvalStore) -> None:
        found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self.lengths = np.zeros(len(store.turns))
        for place, turn in enumerate(store.turns):
            stems = Counter(stems_of(turn.text))
            self.lengths[place] = sum(stems.values())
            for stem, count in stems.items():
                found[stem].append((place, count))
        self._found = {stem: np.array(pairs).T for stem, pairs in found.items()}

    def of(self, question: str) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        stems = dict.fromkeys(Question(question).stems.values())
        found = (self._found[stem] for stem in stems if stem in self._found)
        return [(places, counts.astype(np.float64)) for places, counts in found]


def bm25(store: EvalStore) -> Callable[[EvalQuestion], Scores]:
    """BM25 as FTS5 has it, over the index's own stems, each turn by itself."""
    postings = _Postings(store)
    total = len(store.turns)
    slack = _K1 * (1 - _B + _B * postings.lengths / max(float(postings.lengths.mean()), 1.0))

    def score(question: EvalQuestion) -> Scores:
        scores = np.zeros(total)
        for places, counts in postings.of(question.text):
            rarity = math.log(1 + (total - len(places) + 0.5) / (len(places) + 0.5))
            scores[places] += rarity * counts * (_K1 + 1) / (counts + slack[places])
        return scores

    return score


def dense(embedder: Embedder) -> Ranker:
    """The dot product with the question, and nothing else. A speaker who has a name says it first."""

    def prepare(store: EvalStore) -> Callable[[EvalQuestion], Scores]:
        vectors = _own_vectors(embedder, store)
        return lambda question: (vectors @ embedder.embed_query(question.text)).astype(np.float64)

    return prepare


def _own_vectors(embedder: Embedder, store: EvalStore) -> Vectors:
    return embedder.embed_texts([embedded_text(turn.speaker, turn.text) for turn in store.turns])
