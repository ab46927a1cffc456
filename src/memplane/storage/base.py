"""What every database engine must do. Each passes tests/contract/.

A `Store` is the home of ONE space: no method takes a space, so none can answer across spaces. Reads see
one consistent snapshot. Writes run as functions inside a transaction; when `write` returns, they are
durable. A store maps rows and keeps order; it holds no policy.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Protocol, TypeVar

import msgspec

from memplane.clock import Instant
from memplane.storage.accounts import Accounts
from memplane.storage.claims import ClaimReader, ClaimWriter
from memplane.storage.compaction import CompactionReader, CompactionWriter
from memplane.storage.directory import Directory
from memplane.storage.episodes import EpisodeReader, EpisodeWriter
from memplane.storage.filter import EVERYWHERE, Audience, EntryFilter, Filter, ForgetScope
from memplane.storage.index import IndexReader, IndexWriter
from memplane.storage.library import LibraryReader, LibraryWriter
from memplane.storage.moving import MoveReader, MoveWriter, Rows
from memplane.storage.overview import OverviewReader
from memplane.storage.replica import ReplicaReader, ReplicaWriter
from memplane.storage.rulings import RulingReader, RulingWriter
from memplane.storage.work import Work
from memplane.types import (
    AuditRecord,
    Caller,
    Conversation,
    Entry,
    LedgerHead,
    Memory,
    NewEntry,
    Tombstone,
    Turn,
)

T = TypeVar("T")


LOOKED_THROUGH_MAX = 50_000
"""So many entries are looked through for those that pass a filter."""


class EntryTime(msgspec.Struct, frozen=True, order=True, gc=False):
    """An entry in which something was said, and when."""

    seq: int
    at: Instant


class SessionUsage(msgspec.Struct, frozen=True):
    """What a session has used of its limits."""

    stores: int
    supersedes: int
    deletes: int


class SpaceSizes(msgspec.Struct, frozen=True):
    """How much a space holds."""

    entries: int
    erased: int
    turns: int
    memories: int
    active: int
    superseded: int
    expired: int
    keys: int
    tombstones: int
    audit: int


class LedgerRow(msgspec.Struct, frozen=True):
    """One row as the chain sees it, for verification."""

    entry: Entry
    salt: bytes | None
    payload_digest: bytes
    digest: bytes
    tombstoned: bool
    position: int
    """Its place in the chain."""
    origin: str
    chained_id: str
    """The id that the chain covers: what it came under."""


class AuditRow(msgspec.Struct, frozen=True):
    """One audit record with its place in the audit chain."""

    seq: int
    record: AuditRecord
    at: Instant
    digest: bytes


class Category(msgspec.Struct, frozen=True):
    """A category of keyed facts, how many it holds, and the keys written last."""

    name: str
    count: int
    recent_keys: tuple[str, ...]


class Reader(
    IndexReader,
    ClaimReader,
    EpisodeReader,
    LibraryReader,
    CompactionReader,
    ReplicaReader,
    MoveReader,
    OverviewReader,
    RulingReader,
    Protocol,
):
    """One consistent view of a space."""

    def ahead(self, *work: Callable[["Reader"], object]) -> None:
        """What this `work` is going to ask, as far as it waits for no answer to another question, is asked with one trip
        where each would take one. Calls each at most once, with a reader that finds nothing, and may cut it short at any
        question: it changes nothing, keeps nothing that the reader gave it, and copes with nothing found."""

    def head(self) -> LedgerHead:
        """The ledger's last place, and the end of its chain; zeros when it is empty."""

    def cursor(self) -> int:
        """The last seq the projection includes."""

    def entry(self, entry_id: str) -> Entry | None:
        """The entry with this id, erased or not; None if there never was one."""

    def entries(self, *, after: int = 0, limit: int = 1_000) -> list[Entry]:
        """Entries in order, those with seq > after."""

    def entries_at(self, seqs: Sequence[int]) -> list[Entry]:
        """Those of these entries that still have a payload, in order."""

    def said(self, *, after: int, limit: int) -> list[int]:
        """The seqs of turns and histories with seq > after that still have a payload, in order."""

    def said_between(self, after: Instant, until: Instant | None, *, limit: int | None) -> list[EntryTime]:
        """Entries that show turns, by the time they were said at, after < at < until, then by seq. That of a turn of our
        own counts in whole seconds, as a line of a session history says it."""

    def known(self, entry_ids: Sequence[str]) -> dict[str, int]:
        """Of these ids, the ones in the ledger, with their seq."""

    def tombstoned(self, entry_ids: Sequence[str]) -> set[str]:
        """Of these ids, the forgotten ones."""

    def tombstones(self) -> list[Tombstone]:
        """Every tombstone, by id; an id that several forgets buried has one of each."""

    def hidden(self) -> list[Entry]:
        """Entries that have a payload but show nothing: unreadable, empty once cleaned, or purged."""

    def ledger_rows(self, *, after: int = 0, limit: int = 1_000) -> list[LedgerRow]:
        """Rows as the chain sees them, for verification: in its order, those with position > after."""

    def forgets(self) -> list[LedgerRow]:
        """The rows of every forget, in order; sweeps are not among them."""

    def forgets_between(
        self, begin: Instant, end: Instant, *, limit: int, offset: int = 0
    ) -> list[LedgerRow]:
        """Those of them that were recorded after the beginning and not after the end, the newest first."""

    def forget_row(self, entry_id: str) -> LedgerRow | None:
        """The row of one forget."""

    def replacement(self, entry_id: str) -> str | None:
        """The id of the last entry whose `ref` this is, forgotten or not."""

    def replacements(self, entry_id: str) -> list[str]:
        """Everything that was written to replace it, in order. More than one, where two did so without knowing of each
        other."""

    def usage(self, session: str) -> SessionUsage:
        """Counted from the ledger, so it survives a restart, a replay and a forget."""

    def memory(self, memory_id: str) -> Memory | None:
        """Whatever its state; None if there is none."""

    def keyed(self, key: str, *, now: Instant) -> Memory | None:
        """The live value of a key."""

    def holder(self, key: str) -> Memory | None:
        """The memory that occupies a key: its live value, or an expired one that was not swept yet."""

    def key_history(self, key: str) -> list[Memory]:
        """Every kept value of a key, oldest first."""

    def memories(self, where: Filter, *, limit: int, offset: int = 0) -> list[Memory]:
        """Newest first."""

    def brief(self, *, now: Instant, limit: int, audience: Audience = EVERYWHERE) -> list[Memory]:
        """Current memories: pinned ones first, then behavioral ones, newest first within each; nothing quarantined. Of those that were derived, only the behavioral
        and the hot; rows the engine keeps for itself are left out."""

    def conversations(self, *, project: str | None, limit: int, offset: int) -> list[Conversation]:
        """Conversations with turns, of this project if one is given, the one with the newest turn first; only turns of
        the project are counted then."""

    def turns(self, where: Filter, *, limit: int, offset: int = 0) -> list[Turn]:
        """Newest first."""

    def match_memories(
        self, words: Sequence[str], where: Filter, *, limit: int, newest: bool = False
    ) -> list[Memory]:
        """Those holding any of the words (as `words.words_of` gives them), at most `limit`, most relevant first; never a
        syntax error. With `newest`, the latest that match are enough: ranking everything that holds a very common
        word would take too long."""

    def match_turns(
        self, words: Sequence[str], where: Filter, *, limit: int, newest: bool = False
    ) -> list[Turn]:
        """As `match_memories`, over turns."""

    def frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        """In how many memories and turns each stem occurs. Stems are ours (`words.stems_of`), not the database's."""

    def corpus_size(self) -> int:
        """About how many memories and turns there are; cheap at any size."""

    def categories(self, *, now: Instant, keys_max: int) -> list[Category]:
        """Categories of live keyed facts by name, reserved ones left out."""

    def in_scope(self, scope: ForgetScope) -> list[tuple[int, str]]:
        """(seq, id) of the entries a forget of this scope would erase."""

    def count_scope(self, seqs: Sequence[int]) -> dict[str, int]:
        """What hangs on these entries, per kind of thing. Episodes hang on a whole conversation and are not among it;
        `claims` are the places in these entries where a derived memory was said, whether it is its first or not."""

    def memory_count(self) -> int:
        """Every memory, whatever its state."""

    def index_lag(self) -> int:
        """How many projected turns a search cannot reach; 0 for an engine that indexes within the commit."""

    def sizes(self, *, now: Instant) -> SpaceSizes:
        """Exact counts; may take time on a large space."""

    def audit_size(self) -> int:
        """How many audit records were ever added; kept apart from them, so that a missing end is noticed."""

    def audit(self, *, after: int = 0, limit: int = 1_000) -> list[AuditRow]:
        """Audit records in order."""

    def ops(self, *, since: Instant | None, until: Instant | None, limit: int) -> list[Entry]:
        """Ledger entries without bodies, the last recorded first: the audit trail of what succeeded."""

    def entries_before(self, seq: int, where: EntryFilter, *, limit: int) -> list[Entry]:
        """Entries that pass, the last before that place first, erased or not. Where hardly any does, those among the last
        `LOOKED_THROUGH_MAX` only; of a time, fewer yet."""

    def last_recorded_before(self, at: Instant) -> int:
        """The last place of the ledger that was taken before then; 0 where there is none."""

    def newest_ops(self, *, limit: int) -> list[Entry]:
        """The last of them in the ledger's order, which is the same unless a merge is still to put it in order; cheap at
        any size."""

    def note(self, name: str) -> str | None:
        """A small named value kept beside the ledger, outside of any replay."""

    def pinned(self, name: str) -> str | None:
        """What was pinned under this name, unless something was forgotten since."""

    def erasures(self) -> int:
        """How often something went for good, by `erase`, `purge_superseded` or `clear_projection`: each unpins
        everything, since what was told may hold it."""


PINS_MAX = 512
"""More conversations than go on in one space at once."""


class Writer(
    Reader,
    IndexWriter,
    ClaimWriter,
    EpisodeWriter,
    LibraryWriter,
    CompactionWriter,
    ReplicaWriter,
    RulingWriter,
    MoveWriter,
    Protocol,
):
    """The same view inside a write transaction."""

    def append(self, drafts: Sequence[NewEntry], *, recorded: Instant) -> list[Entry]:
        """Give each the next place, in the ledger and in the chain. Ids must be new, `known` tells; a repeated one is a bug,
        and the whole commit fails. `recorded` is the time of those that do not bring one from another ledger; a
        microsecond after the last entry where the clock is not beyond that, so that no later entry ever sorts before
        an earlier one. What brings a time of its own must sort after the last entry; `place` is for the rest."""

    def project(self, turns: Iterable[Turn] = (), memories: Iterable[Memory] = ()) -> None:
        """Add derived rows and their index entries. A turn that is there already stays as it is; a memory's id must be
        new. Searchable within the commit, or by whatever `index_lag` counts."""

    def supersede(self, memory_id: str, *, by: str, at: Instant) -> bool:
        """Mark it superseded, tier cold, and take it out of every conflict, as `settle` does; False if it is not there."""

    def purge_superseded(self, *, before: Instant) -> int:
        """Remove memories superseded before then; returns how many, 0 when done again."""

    def hide(self, seq: int) -> None:
        """This entry shows nothing, so that no scope finds it; `hidden` does. Erasing it takes it off the list, and so
        does `clear_projection`. `purge_superseded` hides what it drops."""

    def set_cursor(self, seq: int) -> None:
        """The projection now includes everything up to seq."""

    def clear_projection(self) -> None:
        """Drop everything derived and set the cursor, and how far memories were derived and turns embedded, to 0; the
        generation grows. Vectors and accesses stay, for the turns and memories that come again; so do notes."""

    def erase(
        self,
        victims: Sequence[tuple[int, str]],
        *,
        position: int,
        at: Instant,
        reason: str,
        causes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Tombstone these (seq, id) pairs for the forget at this position of the chain, and remove payload, rows and index
        entries in one go. A pair with seq 0 is an id not seen yet: it gets its tombstone all the same. `causes` names,
        for those that the forget did not name, the one that takes them along. Erasing again changes nothing."""

    def add_audit(
        self, *, at: Instant, caller: Caller, action: str, target: str | None, outcome: str, detail: str
    ) -> None:
        """Append to the audit chain."""

    def set_note(self, name: str, value: str) -> None:
        """Keep a small named value."""

    def pin(self, name: str, text: str, *, at: Instant) -> None:
        """Keep what was told then, unless something later is pinned there. Only the last `PINS_MAX` stay."""


class Store(Protocol):
    """One space's durable home."""

    def read(self) -> AbstractContextManager[Reader]:
        """A consistent snapshot; cheap, never blocked by a writer."""

    def write(self, work: Callable[[Writer], T]) -> T:
        """Run `work` in a transaction and return its result once that is durable.

        Works of concurrent callers may share one commit; each stands or falls alone: if it raises, its
        own changes are undone and the exception reaches its own caller. `work` may run in another
        thread and must not call `write` itself.
        """

    def wipe(self, *, bytes_max: int | None = None) -> bool:
        """Leave no erased byte in any file of the space. False if a reader prevents it for now, or if the space has
        more than `bytes_max`: writing it anew keeps writers waiting, and that is better done at a quiet time."""

    def check(self) -> list[str]:
        """What is wrong with the files, in words; an empty list is good."""


class Stores(Protocol):
    """All spaces of an installation."""

    def open(self, tenant: str, owner: str, *, create: bool) -> AbstractContextManager[Store]:
        """The store of one space, for the length of the block; raises `NotFound` unless `create`."""

    def tenants(self) -> Iterable[str]:
        """Every tenant with a space, in the order of their bytes."""

    def owners(self, tenant: str) -> Iterable[str]:
        """Every owner with a space, in the order of their bytes."""

    def directory(self) -> Directory:
        """Which space a thing lives in; open for as long as the spaces are."""

    def accounts(self) -> Accounts:
        """What tenants used and may use; open for as long as the spaces are."""

    def catalog_rows(self) -> Rows:
        """What belongs to no single space, as a move sees it; open for as long as the spaces are."""

    def work(self) -> Work | None:
        """Which spaces have something waiting, where workers on several machines share them; None where the process that
        writes also enriches."""

    def index_large_spaces(self) -> int:
        """Give spaces that have grown too large to be loaded an index of their vectors; returns how many got one. Keeps
        nobody waiting. An engine that loads whatever it has does nothing."""

    def probe(self) -> None:
        """Raise the `StorageError` that the next write would meet, if it would. Leaves nothing behind."""

    def stranger(self) -> str | None:
        """The name of something there that is not ours, where nothing that is there is ours: a place somebody else uses,
        which no copy is to be written into. Opens no database."""

    def close(self) -> None:
        """Release every file."""
