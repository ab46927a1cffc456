"""MultiHop-RAG: questions whose evidence lies in several news articles, and questions that no article answers.

An article is uploaded as a document. The baselines get the same spans that Memplane cuts it into, each under the document's
name, so that what is compared is finding them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from memplane.clock import to_instant
from memplane.documents.preparation import prepare_document
from memplane.errors import InvalidRequest
from memplane.ledger.payloads import DocumentPayload
from memplane.recall.tokens import tokens_of
from memplane_eval.files import read_json
from memplane_eval.report import EVERYTHING, Row
from memplane_eval.retrieval import EvalQuestion, EvalStore, EvalTurn, recall_at
from memplane_eval.systems import Figures, QuestionResult, rows_of

NULL = "null_query"
TOKENS_MAX = 2_000

_DOCUMENTS_AT = (5, 10)
_CORPUS = "corpus.json"
_HALVES = ("even questions", "odd questions")
"""What is fitted on one half has to hold on the other."""
_PLAIN_TEXT = "text/plain"


class Article(msgspec.Struct, frozen=True, kw_only=True):
    """One document."""

    name: str
    body: str
    spans: Sequence[str]
    """As the product cuts it; joined, they are its text."""
    first: int
    """The place of its first span among all."""


class EvidenceFact(msgspec.Struct, frozen=True):
    """A piece of evidence: how many words it has, and how many of them stand in which span."""

    words: int
    held: Mapping[int, int]


class Articles(msgspec.Struct, frozen=True, kw_only=True):
    """Articles and their spans, and for each question what its evidence is."""

    documents: Sequence[Article]
    store: EvalStore
    spans: Sequence[str]
    tokens: Sequence[int]
    words: Sequence[int]
    """By span."""
    evidence: Mapping[str, Sequence[EvidenceFact]]
    """By question."""


def load_multihop(path: Path, limit: int | None = None) -> Articles:
    """With a limit: the first so many questions, the articles they need, and as many that they do not."""
    corpus, asked = _read(path)
    asked = asked[:limit]
    needed = {cited["url"] for question in asked for cited in question["evidence_list"]}
    others = [article["url"] for article in corpus if article["url"] not in needed]
    kept = needed.union(others if limit is None else others[: len(needed)])
    corpus = [article for article in corpus if article["url"] in kept]
    documents = list(_documents(corpus))
    by_url = dict(zip((article["url"] for article in corpus), documents, strict=True))
    spans = [span for document in documents for span in document.spans]
    questions = [
        EvalQuestion(
            text=question["query"],
            category=question["question_type"],
            # Any span of an article stands for the article.
            evidence=frozenset(
                place
                for cited in question["evidence_list"]
                if (document := by_url.get(cited["url"])) is not None
                for place in range(document.first, document.first + len(document.spans))
            ),
        )
        for question in asked
    ]
    return Articles(
        documents=documents,
        store=EvalStore(
            name="multihop",
            turns=[
                turn
                for session, (article, document) in enumerate(zip(corpus, documents, strict=True))
                for turn in _turns(article, document, session)
            ],
            questions=questions,
        ),
        spans=spans,
        tokens=[tokens_of(span) for span in spans],
        words=[len(span.split()) for span in spans],
        evidence={
            question["query"]: [
                _fact(by_url[cited["url"]], cited["fact"]) for cited in question["evidence_list"]
            ]
            for question in asked
        },
    )


def multihop_rows(articles: Articles, asked: Mapping[str, Sequence[QuestionResult]]) -> Iterator[Row]:
    """Documents and evidence found, by kind of question and by halves; then who says nothing where there is nothing."""
    figures = {
        system: [
            (place, one.question.category, _figures(one, articles))
            for place, one in enumerate(cases)
            if one.question.evidence
        ]
        for system, cases in asked.items()
    }
    by_kind: dict[str, list[Figures]] = {
        system: [(category, values) for _, category, values in cases] for system, cases in figures.items()
    }
    yield from rows_of(by_kind)
    by_half: dict[str, list[Figures]] = {
        system: [(_HALVES[place % 2], values) for place, _, values in cases]
        for system, cases in figures.items()
    }
    yield from (row for row in rows_of(by_half) if row.group != EVERYTHING)
    null = sum(not one.evidence for one in articles.store.questions)
    if null and null < len(articles.store.questions):
        yield from _abstention_rows(asked, null)


def reachable(articles: Articles) -> float:
    """The share of the evidence that one span holds whole."""
    facts = [fact for cited in articles.evidence.values() for fact in cited]
    return sum(len(fact.held) == 1 for fact in facts) / max(len(facts), 1)


def _abstention_rows(asked: Mapping[str, Sequence[QuestionResult]], null: int) -> Iterator[Row]:
    yield Row(
        group=NULL,
        metric="nothing told",
        questions=null,
        values={system: _silent(cases, answered=False) for system, cases in asked.items()},
    )
    yield Row(
        group=EVERYTHING,
        metric="nothing told",
        questions=max(len(cases) for cases in asked.values()) - null,
        values={system: _silent(cases, answered=True) for system, cases in asked.items()},
    )
    yield Row(
        group=NULL,
        metric="abstention AUC",
        questions=null,
        values={system: _separation(cases) for system, cases in asked.items()},
    )


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


def _documents(corpus: Sequence[Mapping[str, Any]]) -> Iterator[Article]:
    first = 0
    for article in corpus:
        name = f"{article['title']} ({article['source']})"
        uploaded = DocumentPayload(
            document=article["url"],
            name=name,
            media_type=_PLAIN_TEXT,
            text=article["body"],
            at=to_instant(_published(article["published_at"])),
        )
        spans = [span.text for span in prepare_document("", uploaded).spans]
        yield Article(name=name, body=article["body"], spans=spans, first=first)
        first += len(spans)


def _turns(article: Mapping[str, Any], document: Article, session: int) -> Iterator[EvalTurn]:
    """Every span says where it comes from, since questions do."""
    for place, span in enumerate(document.spans):
        yield EvalTurn(
            id=f"{article['url']}#{place}",
            session=session,
            speaker="user",
            text=f"{document.name}\n\n{span}",
            at=_published(article["published_at"]),
        )


def _published(text: str) -> datetime:
    """`2023-11-27 08:45:59.000000000Z`, `2023-11-18T15:33:09+00:00`."""
    at = datetime.fromisoformat(re.sub(r"\.\d+", "", text))
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _fact(document: Article, fact: str) -> EvidenceFact:
    """Where it stands. Spaces and lines do not count; what was cleaned away is held by no span."""
    words = fact.split()
    held: dict[int, int] = {}
    plain = " ".join(" ".join(document.spans).split())
    at = plain.find(" ".join(words))
    if at >= 0:
        begin = plain.count(" ", 0, at)
        start = 0
        for place, span in enumerate(document.spans):
            count = len(span.split())
            common = min(start + count, begin + len(words)) - max(start, begin)
            if common > 0:
                held[document.first + place] = common
            start += count
    return EvidenceFact(len(words), held)


def _figures(one: QuestionResult, articles: Articles) -> dict[str, float]:
    turns = one.store.turns
    wanted = {turns[place].session for place in one.question.evidence}
    ranked = list(dict.fromkeys(turns[place].session for place in one.found.places))
    figures: dict[str, float] = {}
    for k in _DOCUMENTS_AT:
        figures[f"document@{k}"] = recall_at(ranked, wanted, k)
    for k in _DOCUMENTS_AT:
        figures[f"all documents@{k}"] = float(wanted.issubset(ranked[:k]))
    facts = articles.evidence[one.question.text]
    told = _within(one.found.places, articles.tokens)
    figures["evidence"] = sum(bool(fact.held) and told.issuperset(fact.held) for fact in facts) / len(facts)
    common = sum(count for fact in facts for place, count in fact.held.items() if place in told)
    asked, given = sum(fact.words for fact in facts), sum(articles.words[place] for place in told)
    figures["words recall"] = common / max(asked, 1)
    figures["words precision"] = common / max(given, 1)
    figures["words IoU"] = common / max(asked + given - common, 1)
    return figures


def _within(places: Sequence[int], tokens: Sequence[int]) -> set[int]:
    """The best spans that `TOKENS_MAX` has room for."""
    told: set[int] = set()
    left = TOKENS_MAX
    for place in places:
        left -= tokens[place]
        if left < 0:
            break
        told.add(place)
    return told


def _silent(cases: Sequence[QuestionResult], *, answered: bool) -> float:
    chosen = [not one.found.places for one in cases if bool(one.question.evidence) == answered]
    return sum(chosen) / max(len(chosen), 1)


def _separation(cases: Sequence[QuestionResult]) -> float:
    """How often a question with an answer has the better best score than one without: the area under the ROC."""
    answered = [one.found.score for one in cases if one.question.evidence]
    null = [one.found.score for one in cases if not one.question.evidence]
    won = sum((high > low) + (high == low) / 2 for high in answered for low in null)
    return won / (len(answered) * len(null))
