"""What every database engine must do. Each passes tests/contract/.

A `Store` is the home of ONE space: no method takes a space, so none can answer across spaces. Reads see
one consistent snapshot. Writes run as functions inside a transaction; when `write` returns, they are
durable. A store maps rows and keeps order; it holds no policy.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

import msgspec

from memplane.clock import Instant
from memplane.storage.accounts import Accounts
from memplane.storage.directory import Directory
from memplane.storage.library import LibraryReader, LibraryWriter
from memplane.types import (
    AuditRecord,
    Caller,
    Conversation,
    Draft,
    Entry,
    Head,
    Kind,
    Memory,
    Reach,
    State,
    Tier,
    Tombstone,
    Turn,
)

T = TypeVar("T")

TURNS_PER_ENTRY_MAX = 256
"""How many turns one ledger entry may hold; the projection joins what is beyond."""


class Audience(msgspec.Struct, frozen=True, kw_only=True):
    """From where somebody asks: what was said for one project or conversation alone is told only there."""

    conversation: str | None = None
    project: str | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """What `within` may say besides nothing."""
        named = ((Reach.CONVERSATION, self.conversation), (Reach.PROJECT, self.project))
        return tuple(f"{reach}:{name}" for reach, name in named if name is not None)

    def hears(self, within: str | None) -> bool:
        return within is None or within in self.places


EVERYWHERE = Audience()
"""Who asks from nowhere in particular is told what is told everywhere."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories or turns to look at. Every condition narrows; all apply before any limit."""

    now: Instant
    """What has expired by then does not exist."""
    kinds: tuple[Kind, ...] = ()
    tags: tuple[str, ...] = ()
    since: Instant | None = None
    until: Instant | None = None
    conversation: str | None = None
    project: str | None = None
    key_prefix: str | None = None
    category: str | None = None
    include_superseded: bool = False
    include_reserved: bool = False
    """Rows the engine keeps for itself (runs) are left out unless asked for."""
    as_of: Instant | None = None
    """As it was then: what came later is not there yet, and what was replaced later still holds. It decides about
    superseded memories by itself, whatever `include_superseded` says; expired is what has expired by `now`."""
    state: State | None = None
    """In this state, whatever else the filter says about states; expired is what would otherwise not exist."""
    predicate: str | None = None
    tier: Tier | None = None
    include_faded: bool = True
    """Memories that feedback has taken out of sight are there all the same, unless one asks for what to tell."""
    audience: Audience | None = EVERYWHERE
    """Who is to be told. None is the owner, who lists, exports and forgets: they see everything. Left out, it hides what
    belongs to one place, so that a question that forgets to say where it comes from tells nothing it should not."""


class Scope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to forget. Conditions narrow each other; a scope without any is refused."""

    entries: tuple[str, ...] = ()
    key: str | None = None
    prefix: str | None = None
    conversation: str | None = None
    project: str | None = None
    document: str | None = None
    """Everything that was ever uploaded under this id, and that it was in collections."""
    since: Instant | None = None
    until: Instant | None = None
    everything: bool = False
    expired_by: Instant | None = None


class SaidAt(msgspec.Struct, frozen=True, order=True, gc=False):
    """An entry in which something was said, and when."""

    seq: int
    at: Instant


class Usage(msgspec.Struct, frozen=True):
    """What a session has used of its limits."""

    stores: int
    supersedes: int
    deletes: int


class Sizes(msgspec.Struct, frozen=True):
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


class Marks(msgspec.Struct, frozen=True):
    """How far a space is. Cheap to read: a cache compares it with what it saw."""

    generation: int
    """Grows whenever rows go: what a cache holds from before may be forgotten by now."""
    cursor: int
    """The last seq the projection includes."""
    indexed: int
    """The last turn number in the word index."""
    derived: int
    """The last seq that memories were derived from."""
    turn_stamp: int
    memory_stamp: int
    """The last vector of each sort."""
    last_turn: int
    """The number of the last turn there is."""


class TurnHead(msgspec.Struct, frozen=True, gc=False):
    """What ranking needs to know about a turn, without its text."""

    n: int
    conversation: str | None
    project: str | None
    role: str
    speaker: str | None
    at: Instant
    words: int
    asks: int
    within: str | None = None


class TurnVector(msgspec.Struct, frozen=True, gc=False):
    """What the worker found out about a turn. `vector` is None where there is no embedding model."""

    n: int
    words: int
    asks: bool
    digest: bytes
    """Of the text it was made from: the same text needs no second vector."""
    vector: bytes | None


class MemoryVector(msgspec.Struct, frozen=True, gc=False):
    """A memory's vector, by the memory's id."""

    id: str
    digest: bytes
    vector: bytes | None
    turn: int | None = None
    """The number of the turn it was read out of, where there is one."""
    within: str | None = None


class Evidence(msgspec.Struct, frozen=True, gc=False):
    """One more place where a memory was said."""

    memory: str
    """The memory that was there already."""
    own: Memory
    """What this place alone would have made: it takes over when the first place is forgotten."""


class Rating(msgspec.Struct, frozen=True, gc=False):
    """What feedback made of a memory."""

    memory: str
    chosen: int
    passed_over: int
    leaning: float
    importance: float


class Untold(msgspec.Struct, frozen=True, gc=False):
    """A conversation that goes on beyond its last episode."""

    conversation: str
    first: int
    """The number of the first turn that no episode tells."""
    last_at: Instant


def turn_number(seq: int, ordinal: int) -> int:
    """A turn's number: turns of one entry stand together, in the ledger's order."""
    return seq * TURNS_PER_ENTRY_MAX + ordinal


class IndexReader(Protocol):
    """What ranking asks of a store, beside `Reader`."""

    def marks(self) -> Marks:
        """One row, whatever the size of the space."""

    def model(self, model_id: str, dimension: int) -> int | None:
        """The number of an embedding model whose vectors may be here."""

    def current_model(self) -> int | None:
        """The number of the model that vectors are made with; None as long as there are none."""

    def embedded(self, model: int) -> int:
        """Every turn up to this number has a vector of this model. A turn has one vector, so that of a model which is
        not in use nothing is promised."""

    def turn_heads(self, *, after: int, until: int, limit: int) -> list[TurnHead]:
        """Turns with after < n <= until, in order. Before the worker came to a turn, `words` and `asks` are guesses from
        its length and its last character."""

    def turn_vectors(self, model: int, *, after: int, limit: int) -> list[tuple[int, TurnVector]]:
        """(stamp, vector) of this model with a stamp beyond `after`, in the order of stamps."""

    def turn_vectors_at(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        """The vectors of these turns, as far as there are any."""

    def turn_digests(self, model: int, numbers: Sequence[int]) -> dict[int, bytes]:
        """Of these turns, those with a vector of this model, and what it was made from."""

    def stale_turns(self, *, limit: int) -> list[int]:
        """Turns that had a vector and wait for another, in order."""

    def memory_vectors(self, model: int, *, after: int, limit: int) -> list[tuple[int, MemoryVector]]:
        """As `turn_vectors`, of memories that are there and wait for no other."""

    def memory_vectors_of(self, model: int, ids: Sequence[str]) -> dict[str, bytes]:
        """The vectors of these memories, as far as there are any."""

    def memory_digests(self, model: int, ids: Sequence[str]) -> dict[str, bytes]:
        """As `turn_digests`."""

    def occurrences(self, stem: str) -> list[int]:
        """The number of every indexed turn that holds the stem, once for each time it does. A stem that `is_prefix`
        stands for every one that begins with it."""

    def common(self, words: Sequence[str], *, beyond: int) -> set[str]:
        """Of these words, those that more than `beyond` turns hold; looks no further than that."""

    def not_indexed(self, *, after: int, until: int, limit: int) -> list[tuple[int, str]]:
        """(n, text) of turns with after < n <= until that the word index does not hold yet, the last first."""

    def turns_at(self, numbers: Sequence[int], where: Filter) -> list[Turn]:
        """Those of these turns that pass the filter."""

    def turns_between(self, first: int, last: int) -> list[Turn]:
        """Turns with first <= n <= last, in order."""

    def memories_of(self, ids: Sequence[str], where: Filter) -> list[Memory]:
        """Those of these memories that pass the filter."""

    def waiting_memories(self, *, limit: int) -> list[Memory]:
        """Memories without a vector of the current model."""

    def waiting_count(self) -> int:
        """How many of them there are."""

    def rivals(
        self,
        subject: str,
        predicate: str,
        words: Sequence[str],
        *,
        limit: int,
        topic: str = "",
        within: str | None = None,
    ) -> list[Memory]:
        """Live claims about a subject that are told in the same place, `within`: those that have this predicate, and of
        these those of the topic; those that hold one of the words, as far as they are among the newest that do; and the
        newest. At most `limit` of each."""

    def claimed(self, predicates: Sequence[str], where: Filter, *, limit: int) -> list[Memory]:
        """Memories with one of these predicates: predicate by predicate, at most `limit` of each, the newest first."""

    def told_between(self, begin: Instant, until: Instant, where: Filter, *, limit: int) -> list[Memory]:
        """Memories that speak of a time in this range, the earliest first."""

    def hot(self, where: Filter, *, limit: int) -> list[Memory]:
        """Memories that are always told, the newest first."""

    def conflicts(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """The open conflicts that one of these memories is part of; all of them where no id is given."""

    def evidence(self, memory_ids: Sequence[str]) -> list[Evidence]:
        """Further places where these were said, in order."""

    def memories_from(self, seqs: Sequence[int]) -> list[Memory]:
        """Every memory of these entries, whatever its state."""

    def heirs(self, ids: Sequence[str]) -> dict[str, str]:
        """For each of these that was replaced, the last of its chain that is there."""

    def all_replaced(self, seqs: Sequence[int]) -> list[int]:
        """Of these entries, those of which there are memories, and all of them superseded."""

    def replaced_by(self, ids: Sequence[str]) -> list[str]:
        """The ids of derived memories that one of these replaced."""

    def accesses(self, ids: Sequence[str]) -> dict[str, int]:
        """How often these were told."""

    def turn_before(self, turn: Turn) -> Turn | None:
        """The one before it in its conversation, by time and then by place in the ledger. Outside of any conversation,
        the nearest earlier turn that is in none either, among the last few entries only."""

    def turns_after(self, turn: Turn, *, limit: int, offset: int = 0) -> list[Turn]:
        """Those that may have it before them: later in the ledger and, in a conversation, not said earlier; the nearest
        first. Outside of any conversation, only among the next few entries."""

    def untold(self, *, before: Instant, limit: int) -> list[Untold]:
        """Conversations whose last turn was before then and that no episode tells to the end."""

    def untold_in(self, conversation: str) -> Untold | None:
        """What no episode tells of a conversation."""

    def turns_of(self, conversation: str, *, since: int) -> list[Turn]:
        """The turns of a conversation with n >= since, in order."""

    def last_turn_of(self, conversation: str, *, before: int) -> Turn | None:
        """The turn of a conversation with the largest n < before."""

    def episode_count(self, conversations: Sequence[str]) -> int:
        """How many episodes tell of these conversations."""

    def conversations_of(self, seqs: Sequence[int]) -> list[str]:
        """The conversations that turns of these entries belong to."""

    def episodes_of(self, conversations: Sequence[str], where: Filter, *, limit: int) -> list[Memory]:
        """The newest episodes of these conversations that pass the filter, all together."""


class Reader(IndexReader, LibraryReader, Protocol):
    """One consistent view of a space."""

    def head(self) -> Head:
        """The ledger's last place; seq 0 and 32 zero bytes when it is empty."""

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

    def said_between(self, after: Instant, until: Instant | None, *, limit: int | None) -> list[SaidAt]:
        """Entries that show turns, by the time they were said at, after < at < until, then by seq. That of a turn of our
        own counts in whole seconds, as a line of a session history says it."""

    def known(self, entry_ids: Sequence[str]) -> dict[str, int]:
        """Of these ids, the ones in the ledger, with their seq."""

    def tombstoned(self, entry_ids: Sequence[str]) -> set[str]:
        """Of these ids, the forgotten ones."""

    def tombstones(self) -> list[Tombstone]:
        """Every tombstone, by id."""

    def hidden(self) -> list[Entry]:
        """Entries that have a payload but show nothing: unreadable, empty once cleaned, or purged."""

    def ledger_rows(self, *, after: int = 0, limit: int = 1_000) -> list[LedgerRow]:
        """Rows as the chain sees them, for verification."""

    def forgets(self) -> list[LedgerRow]:
        """The rows of every forget, in order; sweeps are not among them."""

    def replacement(self, entry_id: str) -> str | None:
        """The id of the last entry whose `ref` this is, forgotten or not."""

    def usage(self, session: str) -> Usage:
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
        """Current memories: behavioral first, newest first within each. Of those that were derived, only the behavioral
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

    def in_scope(self, scope: Scope) -> list[tuple[int, str]]:
        """(seq, id) of the entries a forget of this scope would erase."""

    def count_scope(self, seqs: Sequence[int]) -> dict[str, int]:
        """What hangs on these entries, per kind of thing. Episodes hang on a whole conversation and are not among it;
        `claims` are the places in these entries where a derived memory was said, whether it is its first or not."""

    def memory_count(self) -> int:
        """Every memory, whatever its state."""

    def index_lag(self) -> int:
        """How many projected turns a search cannot reach; 0 for an engine that indexes within the commit."""

    def sizes(self, *, now: Instant) -> Sizes:
        """Exact counts; may take time on a large space."""

    def audit_size(self) -> int:
        """How many audit records were ever added; kept apart from them, so that a missing end is noticed."""

    def audit(self, *, after: int = 0, limit: int = 1_000) -> list[AuditRow]:
        """Audit records in order."""

    def ops(self, *, since: Instant | None, until: Instant | None, limit: int) -> list[Entry]:
        """Ledger entries without bodies, the last recorded first: the audit trail of what succeeded."""

    def note(self, name: str) -> str | None:
        """A small named value kept beside the ledger, outside of any replay."""


class IndexWriter(Protocol):
    """What enrichment asks of a store, beside `Writer`."""

    def use_model(self, model_id: str, dimension: int) -> int:
        """The number of the model that vectors are made with from now on. Where it is another than before, turns and
        memories wait for new vectors; the old ones stay until they are replaced, and the generation grows."""

    def add_turn_vectors(self, model: int, vectors: Sequence[TurnVector], *, until: int) -> None:
        """Add or replace; every turn up to `until` has one now. Turns that are gone meanwhile get none."""

    def embed_again(self, numbers: Sequence[int]) -> None:
        """Take the vectors of these turns away, as far as there are any; they wait for new ones."""

    def add_memory_vectors(self, model: int, vectors: Sequence[MemoryVector]) -> None:
        """Add or replace; such a memory does not wait any more. Memories that are gone get none."""

    def keep_memory_vectors(self, model: int, ids: Sequence[str]) -> None:
        """The vectors that these memories have from before are still theirs; they get a new stamp."""

    def set_derived(self, seq: int) -> None:
        """Memories are derived from everything up to seq."""

    def add_evidence(self, evidence: Evidence) -> None:
        """Adding again changes nothing."""

    def add_episodes(self, episodes: Sequence[tuple[Memory, Sequence[int]]]) -> None:
        """Memories of kind episode, each with the seqs of the entries it quotes; they go with the first of these."""

    def drop_episodes(self, conversation: str) -> None:
        """Take a conversation's episodes away, so that it can be told anew."""

    def set_untold(self, untold: Untold) -> None:
        """Add or replace."""

    def set_told(self, conversation: str) -> None:
        """Episodes tell it to the end."""

    def contest(self, left: str, right: str) -> None:
        """Mark both contested and remember that they are at odds."""

    def settle(self, memory_id: str) -> None:
        """Take it out of every conflict; whoever is in none any more is active again."""

    def rate(self, rating: Rating) -> None:
        """Write down what feedback made of a memory; the importance it had before the first is kept as its base."""

    def set_tiers(self, tiers: Sequence[tuple[str, Tier]]) -> None:
        """Change how these surface."""

    def add_accesses(self, ids: Sequence[str], *, at: Instant) -> None:
        """They were told once more."""


class Writer(Reader, IndexWriter, LibraryWriter, Protocol):
    """The same view inside a write transaction."""

    def append(self, drafts: Sequence[Draft], *, recorded: Instant) -> list[Entry]:
        """Give each the next place in the chain. Ids must be new, `known` tells; a repeated one is a bug, and the whole
        commit fails. `recorded` is the time of those
        that do not bring one from another ledger."""

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

    def erase(self, victims: Sequence[tuple[int, str]], *, seq: int, at: Instant, reason: str) -> None:
        """Tombstone these (seq, id) pairs and remove payload, rows and index entries in one go.
        A pair with seq 0 is an id not seen yet: it gets its tombstone all the same. Erasing again changes nothing."""

    def add_audit(
        self, *, at: Instant, caller: Caller, action: str, target: str | None, outcome: str, detail: str
    ) -> None:
        """Append to the audit chain."""

    def set_note(self, name: str, value: str) -> None:
        """Keep a small named value."""


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
        """Every tenant with a space, in a stable order."""

    def owners(self, tenant: str) -> Iterable[str]:
        """Every owner with a space, in a stable order."""

    def directory(self) -> Directory:
        """Which space a thing lives in; open for as long as the spaces are."""

    def accounts(self) -> Accounts:
        """What tenants used and may use; open for as long as the spaces are."""

    def probe(self) -> None:
        """Raise the `StorageError` that the next write would meet, if it would. Leaves nothing behind."""

    def close(self) -> None:
        """Release every file."""
