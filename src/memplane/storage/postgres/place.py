"""Where a space is among the others of a database."""

from typing import NamedTuple


class SpaceKey(NamedTuple):
    """The two numbers that every row of a space has."""

    tenant: int
    space: int

    def said(self) -> str:
        """For row-level security, until the end of the transaction."""
        return f"SET LOCAL memplane.tenant = '{self.tenant:d}'; SET LOCAL memplane.space = '{self.space:d}'"

    def locked(self) -> str:
        """A transaction in which nobody else writes to the space."""
        row = f"tenant = {self.tenant:d} AND number = {self.space:d}"
        return f"BEGIN; {self.said()}; SELECT 1 FROM space WHERE {row} FOR UPDATE"
