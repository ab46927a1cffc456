"""What ranking knows of turns and memories: vectors and words, and how far a space is with them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from memplane.clock import Instant
from memplane.storage.filter import Audience, Filter
from memplane.types import Memory, Turn

Vector = NDArray[np.float32]

TURNS_PER_ENTRY_MAX = 256
"""How many turns one ledger entry may hold; the projection joins what is beyond."""


def turn_number(seq: int, ordinal: int) -> int:
    """A turn's number: turns of one entry stand together, in the ledger's order."""
    return seq * TURNS_PER_ENTRY_MAX + ordinal


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

    def begins_anew(self, before: "Marks | None") -> bool:
        """Whether a cache that saw a space as it was `before` may keep nothing: some of it may be gone."""
        return before is None or self.generation > before.generation

    def goes_on(self, before: "Marks | None") -> bool:
        """Whether such a cache has something to read from where it is. From an older look it has not: what was forgotten
        since is not to come back."""
        return before is None or (self.generation == before.generation and self != before)


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


class NearMemory(msgspec.Struct, frozen=True, gc=False):
    """A memory that an engine found by its vector."""

    id: str
    turn: int | None
    nearness: float


class WordHolders(msgspec.Struct, frozen=True):
    """Which turns of a large space hold the words of a question."""

    counts: Mapping[str, int]
    """How many hold each stem; counting ends at a limit."""
    best: Mapping[int, Mapping[str, int]]
    """Of the turns that hold most, how often each holds which stem."""
    total: float
    squares: float
    """The scores of all that hold any, and their squares, added up."""


class VectorSearch(Protocol):
    """The vectors of a space that is too large to be loaded. Whoever asks keeps a few kilobytes and reads no more than it
    is told; neighbours are found by an approximate index."""

    def memories(self, vector: Vector, *, limit: int, audience: Audience | None) -> list[NearMemory]:
        """The nearest that this audience may hear, nearest first."""

    def turns(
        self, vector: Vector | None, *, limit: int, also: Sequence[int], audience: Audience | None
    ) -> list[tuple[TurnHead, float | None]]:
        """The nearest that this audience may hear, and those of these numbers, in the ledger's order, with how near each
        is; None for one without a vector."""

    def holders(self, stems: Sequence[str], *, turns: int, usual: float, each: int, best: int) -> WordHolders:
        """`turns` is about how many there are, `usual` how many words one has. A stem that `each` turns or more hold does
        not choose."""

    def around(self, numbers: Sequence[int], *, reach: int) -> list[int]:
        """The turns just before and after these in their conversation."""

    def speakers(self, *, limit: int) -> list[str]:
        """Who speaks."""

    def size(self) -> int:
        """How many turns there are, exactly; takes its time."""

    def some_turns(self, *, sittings: int, each: int, pause: int) -> list[int]:
        """Turns of sittings here and there, so that they stand for all."""

    def some_memories(self, *, limit: int) -> list[str]:
        """Memories with a vector, from here and there."""


class IndexReader(Protocol):
    """What ranking asks of a store, beside `Reader`."""

    def vector_search(self, model: int) -> VectorSearch | None:
        """Where the engine looks for vectors of this model itself; None: they are few enough to be loaded."""

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

    def occurrences_of(self, stems: Sequence[str]) -> dict[str, list[int]]:
        """The same of each of these."""

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

    def turn_before(self, turn: Turn) -> Turn | None:
        """The one before it in its conversation, by time and then by place in the ledger. Outside of any conversation,
        the nearest earlier turn that is in none either, among the last few entries only."""

    def turns_after(self, turn: Turn, *, limit: int, offset: int = 0) -> list[Turn]:
        """Those that may have it before them: later in the ledger and, in a conversation, not said earlier; the nearest
        first. Outside of any conversation, only among the next few entries."""


class IndexWriter(Protocol):
    """The same inside a write transaction."""

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
