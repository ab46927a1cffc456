"""Named statements inside one transaction: what the nouns are made of."""

from collections.abc import Mapping, Sequence
from typing import Any

from memplane.clock import Instant
from memplane.storage import conditions, rows, status
from memplane.storage.chain import GENESIS
from memplane.storage.engine import Connection, FullText, Request, Row
from memplane.storage.filter import Filter
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX
from memplane.types import LedgerHead, Memory

NEVER = -(1 << 62)
FOREVER = 1 << 62
ALL = (1 << 63) - 1
"""A limit that limits nothing."""
INDEX_TURNS_MIN = 128
"""How many new turns make an index segment worth writing."""
INDEX_TURNS_MAX = 4_096

_NOTES = ("notes",)


class ReadSession:
    """A snapshot. Values that describe the state of the space are read once and remembered: a recall needs them some twenty
    times, and they cannot change."""

    def __init__(self, connection: Connection, owner: str) -> None:
        self.connection = connection
        self.owner = owner
        self._remembered: dict[tuple[Any, ...], list[Any]] = {}
        self._notes: dict[str, str] | None = None
        self.tail_stems: dict[int, frozenset[str]] = {}
        """The stems of turns that are not in the word index yet."""

    @property
    def words(self) -> FullText:
        return self.connection.words

    def all(self, query: str, /, **parameters: Any) -> list[Any]:
        if query not in status.STEADY:
            return self.connection.execute(query, parameters)
        key = (query, *parameters.values())
        found = self._remembered.get(key)
        if found is None:
            if self.connection.remote and key in status.KEYS:
                self._load_status()
            else:
                self._remembered[key] = self.connection.execute(query, parameters)
            found = self._remembered[key]
        return found

    def one(self, query: str, /, **parameters: Any) -> Any:
        found = self.all(query, **parameters)
        return found[0] if found else None

    def filtered(self, query: str, where: conditions.WhereClause, /, **parameters: Any) -> list[Any]:
        return self.connection.execute(query, {**where.parameters, **parameters}, str(where))

    def batch(self, groups: Sequence[Sequence[Request]]) -> list[list[Any]]:
        """The rows of each group of requests, all in one round trip."""
        requests = [request for group in groups for request in group]
        found = iter(self.connection.execute_batch(requests) if requests else [])
        result: list[list[Any]] = []
        for group in groups:
            gathered: list[Any] = []
            for request in group:
                part = next(found)
                if request.query in status.STEADY and isinstance(request.parameters, Mapping):
                    self._remembered[request.query, *request.parameters.values()] = part
                gathered += part
            result.append(gathered)
        return result

    def memories(self, query: str, where: Filter, /, **parameters: Any) -> list[Memory]:
        found = self.filtered(query, conditions.of_memories(where), **parameters)
        return [rows.memory_from(row) for row in found]

    def note(self, name: str) -> str | None:
        """A value of the table `meta`. Those that describe the space's own state are read together."""
        if name.startswith("note:"):
            row = self.one("note", name=name)
            return None if row is None else str(row[0])
        if self._notes is None:
            self._notes = dict(self.all("notes"))
        return self._notes.get(name)

    def indexed(self) -> int:
        """The last turn in the word index."""
        return int(self.note("indexed") or 0)

    def _load_status(self) -> None:
        found, models, notes = self.connection.execute_batch(
            [Request("status"), Request("models"), Request("notes")]
        )
        self._remembered |= status.parts(found[0])
        self._remembered["models",] = models
        self._remembered[_NOTES] = notes
        self.connection.reviewed = bool(self._remembered["ruled",][0][0])


class WriteSession(ReadSession):
    """A transaction that several works may share.

    Appended rows wait in memory and are written together, so a work that only appends runs no SQL and needs no savepoint;
    any other work gets one. Turns are added to the word index some dozens at a time, because an index takes many as easily as
    one; until then readers scan them.
    """

    def __init__(self, connection: Connection, owner: str) -> None:
        super().__init__(connection, owner)
        self.entries: list[Row] = []
        self.payloads: list[Row] = []
        self.turns: list[Row] = []
        self._turns_added = False
        self.start()
        self.begin_work()

    def start(self) -> None:
        """Read the end of the ledger."""
        found = self.connection.execute("start")
        seq, digest, position, recorded, cursor, indexed, positions = (
            found[0] if found else (0, GENESIS, 0, NEVER, 0, 0, 0)
        )
        if position != positions:  # the last entry came in before some that precede it in the ledger's order
            ((digest, position),) = self.connection.execute("chain_end")
        self.recorded: Instant = recorded
        self.head = LedgerHead(seq, digest, position)
        self.cursor = self._written_cursor = int(cursor)
        self._indexed_before = int(indexed)

    def begin_work(self) -> None:
        self._begun = (self._lengths(), self.head, self.cursor, self.recorded)
        self._saved = False

    def end_work(self) -> None:
        if self._saved:
            self.write_rows()
            self.connection.execute("release_savepoint")

    def undo_work(self) -> None:
        lengths, self.head, self.cursor, self.recorded = self._begun
        if self._saved:
            self.connection.execute("rollback_to_savepoint")
            self.connection.execute("release_savepoint")
            lengths = (0, 0, 0)  # the rows of other works were written before the savepoint
        for waiting, length in zip(self._waiting(), lengths, strict=True):
            del waiting[length:]

    def finish(self) -> None:
        """Write everything that waits: the transaction is about to be committed."""
        self.write_rows()
        if (
            self._turns_added
            and self.head.seq - self._indexed_before // TURNS_PER_ENTRY_MAX >= INDEX_TURNS_MIN
        ):
            self._saved = True  # no work can be undone any more
            while self.index_turns(at_least=INDEX_TURNS_MIN):
                pass
        if self.cursor != self._written_cursor:
            self.connection.execute_many("set_note", [("cursor", str(self.cursor))])

    def index_turns(self, *, at_least: int, limit: int = INDEX_TURNS_MAX) -> int:
        """Add waiting turns to the word index, if there are enough to be worth a segment; returns how many.

        The index grows in the ledger's order: turns after the cursor wait until those before them are projected.
        """
        beyond = (self.cursor + 1) * TURNS_PER_ENTRY_MAX
        found = self.all("tail_texts", indexed=self.indexed(), beyond=beyond, limit=limit)
        if len(found) < at_least:
            return 0
        self.words.add("turn", found)
        self.set_note("indexed", str(found[-1][0]))
        return len(found)

    def all(self, query: str, /, **parameters: Any) -> list[Any]:
        self._ready()
        return self.connection.execute(query, parameters)

    def filtered(self, query: str, where: conditions.WhereClause, /, **parameters: Any) -> list[Any]:
        self._ready()
        return super().filtered(query, where, **parameters)

    def batch(self, groups: Sequence[Sequence[Request]]) -> list[list[Any]]:
        self._ready()
        return super().batch(groups)

    def note(self, name: str) -> str | None:
        row = self.one("note", name=name)
        return None if row is None else str(row[0])

    def run(self, query: str, *values: Any) -> list[Any]:
        self._ready()
        return self.connection.execute(query, values)

    def many(self, query: str, values: Sequence[Row]) -> None:
        if values:
            self._ready()
            self.connection.execute_many(query, values)

    def set_note(self, name: str, value: str) -> None:
        self.many("set_note", [(name, value)])

    def write_rows(self) -> None:
        """Write the rows that wait in memory."""
        for query, waiting in (
            ("add_ledger", self.entries),
            ("add_payload", self.payloads),
            ("add_turn", self.turns),
        ):
            if waiting:
                self.connection.execute_many(query, waiting)
        self._turns_added = self._turns_added or bool(self.turns)
        for waiting in self._waiting():
            waiting.clear()

    def _ready(self) -> None:
        """Before a work's first statement: write what waits, that of earlier works outside its savepoint."""
        if not self._saved:
            own = [waiting[length:] for waiting, length in zip(self._waiting(), self._begun[0], strict=True)]
            for waiting, length in zip(self._waiting(), self._begun[0], strict=True):
                del waiting[length:]
            self.write_rows()
            self.connection.execute("savepoint")
            self._saved = True
            self.entries, self.payloads, self.turns = own
        self.write_rows()

    def _waiting(self) -> tuple[list[Row], ...]:
        return self.entries, self.payloads, self.turns

    def _lengths(self) -> tuple[int, ...]:
        return len(self.entries), len(self.payloads), len(self.turns)


class SessionReader:
    """Reads about one noun, over the session of the transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: ReadSession) -> None:
        self._session = session
