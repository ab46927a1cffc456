"""Statements that replace each other: whether what is told as true is the current one.

Two shapes: dated statements with what is current and what is not, and numbered facts of which the later wins. Each
statement is a turn at its time; a question is answered with facts. A baseline has no facts and tells the turns it
finds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memplane_eval.report import Row
from memplane_eval.retrieval import EvalQuestion, EvalStore, EvalTurn, first_questions
from memplane_eval.systems import Figures, QuestionResult, rows_of

_NUMBERED = re.compile(r"\d+\. ")
_EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
_FIRST = 5


def is_scenarios(samples: Any) -> bool:
    return bool(samples) and "propositions" in samples[0]


def load_scenarios(samples: Sequence[Mapping[str, Any]], limit: int | None = None) -> list[EvalStore]:
    """One store a scenario, with its questions about what is the case now."""
    stores = []
    for sample in samples:
        sessions = list(dict.fromkeys(said["session"] for said in sample["propositions"]))
        turns = [
            EvalTurn(
                id=f"{sample['id']}:{place}",
                session=sessions.index(said["session"]),
                speaker="user",
                text=said["text"],
                at=_moment(said["asserted_at"]),
            )
            for place, said in enumerate(sample["propositions"])
        ]
        questions = [
            EvalQuestion(text=asked["q"], category=sample["family"], evidence=frozenset())
            for asked in _about_now(sample)
        ]
        if questions:
            stores.append(EvalStore(name=sample["id"], turns=turns, questions=questions))
    return first_questions(stores, limit)


def scenario_rows(
    samples: Sequence[Mapping[str, Any]], asked: Mapping[str, Sequence[QuestionResult]]
) -> Iterator[Row]:
    wanted = {
        (sample["id"], question["q"]): question for sample in samples for question in _about_now(sample)
    }
    figures: dict[str, list[Figures]] = {
        system: [
            (one.question.category, _scenario_figures(one, wanted[one.store.name, one.question.text]))
            for one in cases
        ]
        for system, cases in asked.items()
    }
    yield from rows_of(figures)


def load_consolidation(samples: Sequence[Mapping[str, Any]], limit: int | None = None) -> list[EvalStore]:
    """One store a set: its numbered lines, a minute apart."""
    stores = []
    for sample in samples:
        lines = [line for line in sample["context"].splitlines() if _NUMBERED.match(line)]
        turns = [
            EvalTurn(
                id=str(place), session=0, speaker="user", text=line, at=_EPOCH + timedelta(minutes=place)
            )
            for place, line in enumerate(lines)
        ]
        name = sample["metadata"]["source"]
        questions = [
            EvalQuestion(text=question, category=name, evidence=frozenset())
            for question in sample["questions"]
        ]
        stores.append(EvalStore(name=name, turns=turns, questions=questions[:limit]))
    return stores


def consolidation_rows(
    samples: Sequence[Mapping[str, Any]], asked: Mapping[str, Sequence[QuestionResult]]
) -> Iterator[Row]:
    answers = {
        (sample["metadata"]["source"], question): [answer.lower() for answer in golden]
        for sample in samples
        for question, golden in zip(sample["questions"], sample["answers"], strict=True)
    }
    figures: dict[str, list[Figures]] = {
        system: [
            (one.question.category, _consolidation_figures(one, answers[one.store.name, one.question.text]))
            for one in cases
        ]
        for system, cases in asked.items()
    }
    yield from rows_of(figures)


def _scenario_figures(one: QuestionResult, wanted: Mapping[str, Any]) -> dict[str, float]:
    facts = [fact.lower() for fact in one.found.facts]
    current = [value.lower() for value in wanted["expected_current_contains"]]
    superseded = [value.lower() for value in wanted["expected_superseded_contains"]]
    told = "\n".join(facts)
    has = all(value in told for value in current)
    free = not any(value in told for value in superseded)
    first = facts[0] if facts else ""
    first_is_current = bool(first) and all(value in first for value in current)
    return {
        "active": float(has and free),
        "current told": float(has),
        "superseded not told": float(free),
        "first is current": float(first_is_current and not any(value in first for value in superseded)),
    }


def _consolidation_figures(one: QuestionResult, answers: Sequence[str]) -> dict[str, float]:
    def told(facts: Sequence[str]) -> float:
        return float(any(answer in fact.lower() for answer in answers for fact in facts))

    return {"first fact": told(one.found.facts[:1]), f"first {_FIRST} facts": told(one.found.facts[:_FIRST])}


def _about_now(sample: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [question for question in sample["questions"] if question["type"] == "current_belief"]


def _moment(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
