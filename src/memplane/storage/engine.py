"""The engine seam: everything that differs between databases.

An engine keeps any number of spaces and one catalog. `StorageEngine` finds and opens them, `Database` begins transactions on one of
them, `Connection` runs statements inside a transaction, and `FullText` is the word index. The rest of this package is concrete
code over these protocols, written once. `sqlite/` and `postgres/` implement them; both pass tests/storage/contract/.

Statements have names. Their SQL is in `queries/`, one file for each noun, in the SQL that both engines share; a `Dialect` says how an
engine writes the few expressions that differ, and an engine may bring its own version of a named statement.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import msgspec

Row = Sequence[Any]
Parameters = Mapping[str, Any]
Indexed = Literal["turn", "memory", "span"]
"""What has a word index."""


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine writes what SQL dialects write differently.

    Each field but the last is a template. In a query, `{texts:ids:each}` stands for the template `texts` with the arguments
    `ids` and `each`.
    """

    texts: str
    """(parameter, alias): a list of texts as a table with one column, `value`."""
    numbers: str
    """(parameter, alias): the same for integers."""
    list_of: str
    """(column): all values of a column as one JSON array."""
    larger: str
    """(left, right): the larger of two values."""
    place_of: str
    """(part, text): the position of a part in a text, from 1; 0 if it does not occur."""
    member: str
    """(column, name): a member of a JSON object, as text."""
    entry_of: str
    """(turn): the ledger sequence number of a turn's entry."""
    document_of: str
    """(part): the same for a section or a span of a document."""
    no_bytes: str
    """(): an empty byte string."""
    finish: Callable[[str], str]
    """Rewrites the whole statement for the driver, for example its parameters."""


class Request(NamedTuple):
    """A named statement with its parameters, and the conditions that replace `{where}` in it."""

    query: str
    parameters: Parameters | Row = ()
    where: str | None = None


class FullText(Protocol):
    """The word index of one space, inside a transaction. No two engines have the same."""

    def add(self, kind: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        """Index (number, text) pairs. The numbers are new."""

    def drop(self, kind: Indexed, texts: Sequence[tuple[int, str]]) -> None:
        """Remove (number, text) pairs. The texts are those that were added."""

    def clear(self) -> None:
        """Remove everything."""

    def match(self, kind: Indexed, words: Sequence[str]) -> Any:
        """The value of the parameter `:match` that finds rows with any of the words. Nothing in a word is an operator. A word
        that `is_prefix` finds every word that begins with it."""

    def occurrences(self, kind: Literal["turn", "span"], stems: Sequence[str]) -> dict[str, list[int]]:
        """For each stem, the numbers of the rows that contain it, once for each occurrence. A stem may be a prefix, as in
        `match`."""

    def frequencies(self, stems: Sequence[str]) -> Iterable[tuple[str, int]]:
        """(stem, count) for memories and for turns that contain it: a stem may come twice. Counting may stop at 20,000."""


class Connection(Protocol):
    """One database connection inside a transaction. Parameters may be None, bool, int, float, str, bytes, or a list of int or
    str."""

    remote: ClassVar[bool]
    """Whether a statement costs a network round trip, so that a batch is faster than its parts."""
    reviewed: bool
    """False once the space is known to hold no review decisions. An engine may then leave their table out of statements."""

    @property
    def words(self) -> FullText:
        """The word index."""

    def execute(self, query: str, parameters: Parameters | Row = (), where: str | None = None) -> list[Any]:
        """Run the statement with this name and return every row. `where` replaces `{where}` in it."""

    def execute_many(self, query: str, rows: Sequence[Row]) -> None:
        """Run the statement once for each row of parameters. No rows is allowed."""

    def execute_batch(self, requests: Sequence[Request]) -> list[list[Any]]:
        """Run several statements that do not change anything and return the rows of each: in one round trip, where the
        connection is `remote`."""


class Database(Protocol):
    """One space, or the catalog. Any number of threads and processes use it at once."""

    single_writer: ClassVar[bool]
    """Whether transactions that write wait for each other, so that works of several threads should share one commit."""

    attached: object | None
    """Kept by the code over the seam for as long as the database is open; None at first. An engine only has the attribute."""
    fatal: ClassVar[tuple[type[Exception], ...]]
    """Errors of the database itself, such as a full disk: they fail every work that shares the transaction, not only the one
    that met them."""

    def read(self) -> AbstractContextManager[Connection]:
        """A consistent snapshot for the length of the block. Never blocked by a writer."""

    def write(self, *, durable: bool = True, wait: bool = True) -> AbstractContextManager[Connection]:
        """A transaction. No other transaction writes to the space until it ends. Leaving the block commits; an exception
        rolls back. Raises `StorageUncertain` if a lost connection leaves the outcome of the commit unknown.

        After a commit every process sees the changes, and they survive a killed process; if `durable`, also a loss of power.
        Without `wait`, raises `StorageBusy` rather than wait for another writer."""

    own_files: ClassVar[bool]
    """Whether files belong to this database alone, so that wiping them touches nothing else."""

    def wipe(self, *, bytes_max: int | None = None, retry: bool = False) -> bool:
        """Leave no erased byte in any file. Returns False if a reader prevents it for now, or if the database is larger than
        `bytes_max`: rewriting it blocks writers, and is better done at a quiet time. With `retry`, it returns False at once in both
        cases, without a part of the work."""

    def check(self) -> list[str]:
        """Problems with the files, as sentences; an empty list if there are none."""

    def close(self) -> None:
        """Release every connection; the next use opens new ones."""


class StorageEngine(Protocol):
    """All spaces of an installation, and its catalog."""

    def open(self, tenant: str, owner: str, *, create: bool) -> AbstractContextManager[Database]:
        """The database of one space, for the length of the block; raises `NotFound` unless `create`. The same space gives the
        same object while it is open."""

    def tenants(self) -> Iterable[str]:
        """Every tenant with a space, in the order of their bytes."""

    def owners(self, tenant: str) -> Iterable[str]:
        """Every owner with a space, in the order of their bytes."""

    def catalog(self) -> Database:
        """The database of everything that belongs to no single space, with connections of its own. Reading it creates
        nothing: a statement finds no rows if the catalog does not exist yet."""

    def index_vectors(self) -> int:
        """Give spaces that are too large to be loaded an index of their vectors; returns how many got one. Blocks neither
        readers nor writers. An engine without such indexes does nothing."""

    def probe(self) -> None:
        """Raise the `StorageError` that the next write would raise, if any. Leaves nothing behind."""

    def foreign_file(self) -> str | None:
        """The name of a file that is not ours, if nothing there is ours: then data must not be copied there. Opens no
        database."""

    def close(self) -> None:
        """Release every file and connection."""
