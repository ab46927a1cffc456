"""Answers that are fetched before they are asked for: many with one trip to the server.

A recall asks some thirty questions, and each of them costs a trip, which takes longer than the answer. What asks them is
called twice: first with `Listening`, which finds nothing and notes what is asked, then as it would be anyway, when the
answers lie ready. What it asks only because of an answer is asked then.
"""

from collections.abc import Hashable
from typing import Any, NoReturn, cast

from psycopg import Connection

from memplane.storage.postgres.statements import PostgresStatements, Statement
from memplane.storage.sql.statements import Parameters, Row


class NoAnswer(Exception):
    """Whoever was listened to cannot go on without one."""


class _Nobody:
    """In place of a connection."""

    def __getattr__(self, name: str) -> NoReturn:
        raise NoAnswer


class Listening(PostgresStatements):
    """Statements that are noted, and that nobody is asked."""

    def __init__(self, *, ruled: bool) -> None:
        super().__init__(cast("Connection[Any]", _Nobody()))
        self.ruled = ruled
        self.noted: dict[Hashable, Statement] = {}

    def _found(self, statement: Statement) -> list[Any]:
        self.noted[statement.key] = statement
        return []

    def one(self, query: str, parameters: Parameters | Row = ()) -> NoReturn:
        self.all(query, parameters)
        raise NoAnswer
