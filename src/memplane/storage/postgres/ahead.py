"""Answers that are fetched before they are asked for: many with one trip to the server.

A recall asks some twenty questions, and each of them costs a trip, which takes longer than the answer. What asks them is
called twice: first with `Listening`, which finds nothing and notes what is asked, then as it would be anyway, when the
answers lie ready. What it asks only because of an answer is asked then.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NoReturn

from memplane.storage.postgres.statements import PostgresStatements, Question
from memplane.storage.sql.statements import Parameters, Row


class NoAnswer(Exception):
    """Whoever was listened to cannot go on without one."""


class Listening(PostgresStatements):
    """Statements that ask nothing."""

    def __init__(self, statements: PostgresStatements) -> None:
        super().__init__(statements.connection)
        self.ruled = statements.ruled
        self.asked: dict[Hashable, Question] = {}

    def _found(self, question: Question) -> list[Any]:
        self.asked[question.key] = question
        return []

    def one(self, query: str, parameters: Parameters | Row = ()) -> NoReturn:
        self.all(query, parameters)
        raise NoAnswer

    def together(self, asked: Sequence[tuple[str, Mapping[str, Any]]]) -> NoReturn:  # noqa: ARG002
        raise NoAnswer
