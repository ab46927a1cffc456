"""Statements that change, deny, add to or repeat an earlier one, said as people say it: what an agent reads about it.

[{"id": "d-001", "kind": "update", "statements": [{"text": "…", "at": "2025-03-01T10:00:00"}, …], "question": "…",
  "current": ["…"], "outdated": ["…"]}, …]

`current` and `outdated` are parts of the statements. A statement counts as current if a line of the text has it without a mark.
"""

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import msgspec

from memplane.main import Memplane
from memplane.models.embedding import Embedder
from memplane.types import Role
from memplane_eval.report import EVERYTHING, MEMPLANE, Advance, Row, mean

_REPLACED, _UNSETTLED = "(since replaced", "not settled"
_CHANGES = frozenset({"update", "deny"})
_CONTRADICTS = "contradict"
_LATER = timedelta(days=1)


class ChangeStatement(msgspec.Struct, frozen=True):
    """What was said, and when."""

    text: str
    at: datetime
    speaker: str = ""


class ChangeCase(msgspec.Struct, frozen=True):
    """Statements about one matter in the order of time, and a question about it."""

    id: str
    kind: str
    statements: tuple[ChangeStatement, ...]
    question: str
    current: tuple[str, ...]
    outdated: tuple[str, ...] = ()


def change_rows(cases: Sequence[ChangeCase], embedder: Embedder | None, advance: Advance) -> Iterator[Row]:
    """Whether the text says what is current, by kind; and how many statements that still hold are marked as replaced."""
    right: dict[str, list[float]] = defaultdict(list)
    wrongly: list[float] = []
    with _lines(embedder) as lines_of:
        for done, case in enumerate(cases, 1):
            lines = lines_of(case)
            right[case.kind].append(float(_is_right(case, lines)))
            if case.kind not in _CHANGES:
                wrongly.append(float(any(replaced for _, replaced in _with_any(lines, case.current))))
            advance(done, len(cases))
    every = [value for kind, values in right.items() if kind != _CONTRADICTS for value in values]
    yield Row(
        group=EVERYTHING, metric="what is current", questions=len(every), values={MEMPLANE: mean(every)}
    )
    yield Row(
        group=EVERYTHING, metric="wrongly replaced", questions=len(wrongly), values={MEMPLANE: mean(wrongly)}
    )
    for kind, values in right.items():
        metric = "shown as not settled" if kind == _CONTRADICTS else "what is current"
        yield Row(group=kind, metric=metric, questions=len(values), values={MEMPLANE: mean(values)})


Line = tuple[str, bool]
"""A line of the text without its mark, and whether it is marked as replaced."""


def _is_right(case: ChangeCase, lines: Sequence[Line]) -> bool:
    if case.kind == _CONTRADICTS:
        return any(_UNSETTLED in text for text, _ in lines)
    told = all(
        any(part.lower() in text and not replaced for text, replaced in lines) for part in case.current
    )
    if case.kind not in _CHANGES:
        return told
    outdated = [
        replaced
        for text, replaced in _with_any(lines, case.outdated)
        if not any(part.lower() in text for part in case.current)
    ]
    return told and all(outdated)


def _with_any(lines: Sequence[Line], parts: Sequence[str]) -> list[Line]:
    return [line for line in lines if any(part.lower() in line[0] for part in parts)]


@contextmanager
def _lines(embedder: Embedder | None) -> Iterator["_Reader"]:
    with (
        tempfile.TemporaryDirectory(prefix="memplane-eval-") as folder,
        Memplane.open(folder, embedder=embedder) as plane,
    ):
        yield _Reader(plane)


class _Reader:
    """Gives each case a space of its own and reads the text for its question."""

    def __init__(self, plane: Memplane) -> None:
        self._plane = plane

    def __call__(self, case: ChangeCase) -> list[Line]:
        space = self._plane.space(case.id)
        moments = [statement.at.replace(tzinfo=statement.at.tzinfo or UTC) for statement in case.statements]
        for place, (statement, at) in enumerate(zip(case.statements, moments, strict=True)):
            space.retain(
                statement.text,
                role=Role.USER,
                speaker=statement.speaker or None,
                conversation=f"s{place}",
                at=at,
            )
        space.enrich()
        text = space.recall(case.question, reference_time=max(moments) + _LATER).text.lower()
        return [(line.partition(_REPLACED)[0], _REPLACED in line) for line in text.splitlines()]
