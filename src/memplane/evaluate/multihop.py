"""MultiHop-RAG: questions whose evidence lies in several news articles, and questions that no article answers.

An article is kept as passages, each one turn of a conversation that is the article. All systems get the same passages.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from memplane.errors import InvalidRequest
from memplane.evaluate.files import read_json
from memplane.evaluate.report import Row
from memplane.evaluate.retrieval import EvalQuestion, EvalStore, EvalTurn, recall_at
from memplane.evaluate.systems import Asked, Figures, rows_of

WORDS_MIN = 150
WORDS_MAX = 200
NULL = "null_query"

_DOCUMENTS_AT = (5, 10)
_PASSAGES_AT = (4, 10)
_CORPUS = "corpus.json"
_PARAGRAPH = re.compile(r"\n\s*\n")
_SENTENCE = re.compile(r"(?<=[.!?])[\"'\u201d\u2019)]*\s+")


class Articles(msgspec.Struct, frozen=True, kw_only=True):
    """Articles as passages, and for each question what its evidence says, word for word."""

    store: EvalStore
    evidence: Mapping[str, Sequence[str]]
    """By question."""


def load_multihop(path: Path, limit: int | None = None) -> Articles:
    """With a limit: the first so many questions, the articles they need, and as many that they do not."""
    corpus, asked = _read(path)
    asked = asked[:limit]
    needed = {cited["url"] for question in asked for cited in question["evidence_list"]}
    others = [article["url"] for article in corpus if article["url"] not in needed]
    kept = needed.union(others if limit is None else others[: len(needed)])
    articles = [article for article in corpus if article["url"] in kept]
    turns = [turn for place, article in enumerate(articles) for turn in _turns(article, place)]
    sessions: dict[str, set[int]] = {}
    for place, turn in enumerate(turns):
        sessions.setdefault(articles[turn.session]["url"], set()).add(place)
    questions = [
        EvalQuestion(
            text=question["query"],
            category=question["question_type"],
            # Any passage of an article stands for the article.
            evidence=frozenset(
                place for cited in question["evidence_list"] for place in sessions.get(cited["url"], ())
            ),
        )
        for question in asked
    ]
    return Articles(
        store=EvalStore(name="multihop", turns=turns, questions=questions),
        evidence={
            question["query"]: [_plain(cited["fact"]) for cited in question["evidence_list"]]
            for question in asked
        },
    )


def multihop_rows(articles: Articles, asked: Mapping[str, Sequence[Asked]]) -> Iterator[Row]:
    """Documents and evidence found, by kind of question; then how well the best score tells what has no answer."""
    texts = [_plain(turn.text) for turn in articles.store.turns]
    figures: dict[str, list[Figures]] = {
        system: [
            (one.question.category, _figures(one, texts, articles.evidence[one.question.text]))
            for one in cases
            if one.question.evidence
        ]
        for system, cases in asked.items()
    }
    yield from rows_of(figures)
    null = [one for one in articles.store.questions if not one.evidence]
    if null and len(null) < len(articles.store.questions):
        separation = {system: _separation(cases) for system, cases in asked.items()}
        yield Row(group=NULL, metric="abstention AUC", questions=len(null), values=separation)


def reachable(articles: Articles) -> float:
    """The share of the evidence that one passage holds whole: what splitting articles leaves possible."""
    texts = [_plain(turn.text) for turn in articles.store.turns]
    facts = [fact for cited in articles.evidence.values() for fact in cited]
    return sum(any(fact in text for text in texts) for fact in facts) / max(len(facts), 1)


def passages(body: str) -> Iterator[str]:
    """Whole sentences, 150 to 200 words of them, ending with a paragraph where that is possible."""
    taken: list[str] = []
    words = 0
    for paragraph in _PARAGRAPH.split(body):
        for sentence in _sentences(paragraph):
            count = len(sentence.split())
            if taken and words + count > WORDS_MAX:
                yield " ".join(taken)
                taken, words = [], 0
            taken.append(sentence)
            words += count
        if words >= WORDS_MIN:
            yield " ".join(taken)
            taken, words = [], 0
    if taken:
        yield " ".join(taken)


def _sentences(paragraph: str) -> Iterator[str]:
    """A sentence longer than a passage, such as a table, is cut between words."""
    for sentence in _SENTENCE.split(paragraph.strip()):
        words = sentence.split()
        for start in range(0, len(words), WORDS_MAX):
            yield " ".join(words[start : start + WORDS_MAX])


def _read(path: Path) -> tuple[list[Any], list[Any]]:
    """Both lists in one document, or the questions with the corpus beside them, as they are published."""
    found = read_json(path)
    if isinstance(found, list):
        found = {"corpus": read_json(path.with_name(_CORPUS)), "questions": found}
    try:
        corpus, questions = found["corpus"], found["questions"]
        _ = corpus[0]["body"], questions[0]["evidence_list"]
    except (KeyError, IndexError, TypeError):
        raise InvalidRequest(f"{path} is no MultiHop-RAG: it has no corpus with questions") from None
    return corpus, questions


def _turns(article: Mapping[str, Any], session: int) -> Iterator[EvalTurn]:
    """Every passage says where it comes from, since questions do."""
    head = f"{article['title']} ({article['source']})"
    for place, passage in enumerate(passages(article["body"])):
        yield EvalTurn(
            id=f"{article['url']}#{place}",
            session=session,
            speaker="user",
            text=f"{head}\n\n{passage}",
            at=_published(article["published_at"]),
        )


def _published(text: str) -> datetime:
    """`2023-11-27 08:45:59.000000000Z`, `2023-11-18T15:33:09+00:00`."""
    at = datetime.fromisoformat(re.sub(r"\.\d+", "", text))
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _figures(one: Asked, texts: Sequence[str], facts: Sequence[str]) -> dict[str, float]:
    turns = one.store.turns
    wanted = {turns[place].session for place in one.question.evidence}
    ranked = list(dict.fromkeys(turns[place].session for place in one.found.places))
    figures: dict[str, float] = {}
    for k in _DOCUMENTS_AT:
        figures[f"document@{k}"] = recall_at(ranked, wanted, k)
    for k in _DOCUMENTS_AT:
        figures[f"all documents@{k}"] = float(wanted.issubset(ranked[:k]))
    for k in _PASSAGES_AT:
        told = [texts[place] for place in one.found.places[:k]]
        figures[f"evidence@{k}"] = sum(any(fact in text for text in told) for fact in facts) / len(facts)
    return figures


def _separation(cases: Sequence[Asked]) -> float:
    """How often a question with an answer has the better best score than one without: the area under the ROC."""
    answered = [one.found.score for one in cases if one.question.evidence]
    null = [one.found.score for one in cases if not one.question.evidence]
    won = sum((high > low) + (high == low) / 2 for high in answered for low in null)
    return won / (len(answered) * len(null))


def _plain(text: str) -> str:
    return " ".join(text.split())
