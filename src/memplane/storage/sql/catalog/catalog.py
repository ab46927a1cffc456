"""What is not one space's: how its statements are run, whichever engine keeps it."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class CatalogWriter(Protocol):
    """Named statements inside a transaction."""

    def run(self, query: str, /, **parameters: Any) -> list[Any]: ...

    def run_many(self, query: str, rows: list[tuple[Any, ...]]) -> None: ...

    def alone(self, *what: str) -> None:
        """Until the end of the transaction, nobody else does what they named the same."""


class Catalog(Protocol):
    """Nobody who reads waits for a writer."""

    def read(self, query: str, /, **parameters: Any) -> list[Any]:
        """Every row; none where nothing was ever written."""

    def listed(self, values: Iterable[str]) -> Any:
        """A list as a parameter."""

    def write(self, work: Callable[[CatalogWriter], T]) -> T:
        """Durable when it returns."""

    def jot(self, work: Callable[[CatalogWriter], T]) -> T:
        """Seen by every process when it returns, and kept when this one is killed. Only a loss of power may take it,
        which saves a sync."""

    def try_jot(self, work: Callable[[CatalogWriter], object]) -> None:
        """As `jot`; gives up silently where it would have to wait or cannot write."""

    def leave_nothing(self) -> None:
        """What was deleted is not on the disk any more, as far as the engine can see to it."""

    def close(self) -> None:
        """Release every connection."""
