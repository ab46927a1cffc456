"""The key of a space in a database."""

from typing import NamedTuple


class SpaceKey(NamedTuple):
    """The two numbers in every row of a space."""

    tenant: int
    space: int

    def said(self) -> str:
        """Statements that select the space for row-level security, until the end of the transaction."""
        return f"SET LOCAL memplane.tenant = '{self.tenant:d}'; SET LOCAL memplane.space = '{self.space:d}'"

    def locked(self) -> str:
        """Statements that begin a transaction in which no other transaction writes to the space."""
        row = f"tenant = {self.tenant:d} AND number = {self.space:d}"
        return f"BEGIN; {self.said()}; SELECT 1 FROM space WHERE {row} FOR UPDATE"
