"""The reads of a recall, each as one call that takes one round trip to the database.

A recall needs some thirty statements. On a network each would cost a round trip, which takes longer than the statement itself. So
the reads that need no answer of each other are sent together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from memplane.clock import Instant
from memplane.storage import conditions, rows
from memplane.storage.engine import Request
from memplane.storage.filter import Filter
from memplane.storage.numbers import turn_number
from memplane.storage.review import QUARANTINED_TURNS_MAX
from memplane.storage.session import SessionReader
from memplane.storage.turns import TurnHead
from memplane.storage.vectors import MemoryVector, TurnVector
from memplane.types import Memory, State, Turn


class IndexPosition(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a space the caches of recall hold."""

    last_turn: int
    """The number of the last turn."""
    turn_stamp: int
    memory_stamp: int
    """The stamp of the last vector of each kind."""
    last_unindexed: int
    """The number of the last turn that was read because the word index does not contain it yet."""


class IndexChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What is new in a space after a position: the first page of each kind."""

    since: IndexPosition
    turns: list[TurnHead]
    turn_vectors: list[tuple[int, TurnVector]]
    memory_vectors: list[tuple[int, MemoryVector]]
    unindexed: list[tuple[int, str]]
    names: list[str]
    """All decisions about names of speakers; see `RecallReader.names`."""


class CandidateQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories and turns may answer a query."""

    where: Filter
    """Which memories and turns may be returned."""
    conversation: str | None
    turns: int
    """How many of the newest turns of the conversation to read."""
    predicates: Sequence[str]
    per_predicate: int
    words: Sequence[str]
    """Memories with any of these words, superseded ones too."""
    times: Sequence[tuple[Instant, Instant]]
    """Memories that mention a time in one of these ranges, or mention none and were said in it."""
    per_channel: int
    """How many memories to read for the words, for each time range, and of the newest."""
    hot: int
    newest: bool
    """Whether to read the newest memories."""
    standing: int = 0
    """How many instructions to read."""


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """The memories and turns that a `CandidateQuery` found, by channel."""

    recent: list[Turn]
    of_predicates: list[Memory]
    matching: list[Memory]
    of_times: list[Memory]
    hot: list[Memory]
    newest: list[Memory]
    standing: list[Memory]
    """Instructions, the newest first."""


class DisputedClaim(NamedTuple):
    """A memory that is no longer so, or not settled, and the turn it was read from."""

    turn: int
    """The number of the turn."""
    id: str
    state: State


class _Repeated(msgspec.Struct):
    """Where a turn repeated an earlier statement, read from the body of its evidence."""

    seq: int
    ordinal: int | None = None


_decode_repeated = msgspec.json.Decoder(_Repeated).decode


def _turn_of(body: str) -> int:
    place = _decode_repeated(body)
    return turn_number(place.seq, place.ordinal or 0)


class RecallReader(SessionReader):
    """Reads that take one round trip each."""

    def changes(
        self, since: IndexPosition, *, model: int | None, until: int, limit: int, unindexed_max: int
    ) -> IndexChanges:
        """What is new since this position; `until` is the number of the last turn to read."""
        session = self._session
        heads = [Request("turn_heads", {"after": since.last_turn, "until": until, "limit": limit})]
        after = max(since.last_unindexed, session.indexed())
        texts = [Request("not_indexed", {"after": after, "until": until, "limit": unindexed_max})]
        vectors: list[Request] = []
        memories: list[Request] = []
        if model is not None:
            vectors = [Request("turn_vectors", {"model": model, "after": since.turn_stamp, "limit": limit})]
            memories = [
                Request("memory_vectors", {"model": model, "after": since.memory_stamp, "limit": limit})
            ]
        found = session.batch([heads, vectors, memories, texts, [Request("speaker_names")]])
        return IndexChanges(
            since=since,
            turns=[TurnHead(*row) for row in found[0]],
            turn_vectors=[
                (stamp, TurnVector(n, words, bool(asks), digest, vector))
                for stamp, n, words, asks, digest, vector in found[1]
            ],
            memory_vectors=[(stamp, MemoryVector(*row)) for stamp, *row in found[2]],
            unindexed=[(n, text) for n, text in found[3]],
            names=[text for (text,) in found[4]],
        )

    def names(self) -> list[str]:
        """What an operator decided about names of speakers, as stored."""
        return [text for (text,) in self._session.all("speaker_names")]

    def candidates(self, query: CandidateQuery) -> Candidates:
        """The memories and turns that may answer. Also reads which turns are in quarantine and how many are not in the word
        index yet, which the session then remembers."""
        session, where = self._session, query.where
        recent = []
        if query.conversation is not None:
            here = conditions.of_turns(msgspec.structs.replace(where, conversation=query.conversation))
            recent = [_filtered("turns", here, limit=query.turns, offset=0)]
        wanted = conditions.of_memories(where)
        predicates = [
            _filtered("claimed", wanted, predicate=name, limit=query.per_predicate)
            for name in query.predicates
        ]
        matching = []
        if query.words:
            ever = conditions.of_memories(msgspec.structs.replace(where, include_superseded=True))
            match = session.words.match("memory", query.words)
            matching = [_filtered("match_memories", ever, match=match, limit=query.per_channel)]
        times = [
            _filtered(name, wanted, time_from=begin, time_until=until, limit=query.per_channel)
            for begin, until in query.times
            for name in ("told_between", "stated_between")
        ]
        hot = [_filtered("hot", wanted, limit=query.hot)]
        if session.one("ruled")[0]:
            hot.insert(0, _filtered("pinned_memories", wanted, limit=query.hot))
        newest = [_filtered("memories", wanted, limit=query.per_channel, offset=0)] if query.newest else []
        standing = [_filtered("standing", wanted, limit=query.standing)] if query.standing else []
        state = [
            Request("quarantined_turns", {"limit": QUARANTINED_TURNS_MAX}),
            Request("tail_size", {"indexed": session.indexed()}),
        ]
        found = session.batch([recent, predicates, matching, times, hot, newest, standing, state])
        turns = [rows.turn_from(row) for row in found[0]]
        of_predicates, matched, of_times, always, new, rules = (
            [rows.memory_from(row) for row in part] for part in found[1:7]
        )
        return Candidates(
            recent=turns,
            of_predicates=of_predicates,
            matching=matched,
            of_times=_once(of_times),
            hot=[memory for memory in _once(always) if not memory.quarantined][: query.hot],
            newest=new,
            standing=rules,
        )

    def with_successors(
        self, ids: Sequence[str], maybe_superseded: Sequence[str], where: Filter
    ) -> tuple[list[Memory], dict[str, str]]:
        """The memories with these ids that pass the filter, and for each superseded memory the last one of its chain of
        successors."""
        memories, successors = [], []
        if ids:
            memories = [_filtered("memories_of", conditions.of_memories(where), ids=list(ids))]
        if maybe_superseded:
            successors = [Request("heirs", {"ids": list(maybe_superseded)})]
        found, ends = self._session.batch([memories, successors])
        return [rows.memory_from(row) for row in found], dict(ends)

    def context(
        self,
        seqs: Sequence[int],
        contested: Sequence[str],
        conversation: str | None,
        where: Filter,
        *,
        episodes_max: int,
    ) -> tuple[list[DisputedClaim], list[tuple[str, str]], list[Memory]]:
        """What was read from these entries, or repeated in them, and is superseded or contested; `Claims.conflicts` of the
        memories; and the newest episodes of the conversation."""
        disputed, repeated, conflicts, episodes = [], [], [], []
        if seqs:
            disputed = [Request("disputed", {"seqs": list(seqs)})]
            repeated = [Request("disputed_evidence", {"seqs": list(seqs)})]
        if contested:
            conflicts = [Request("conflicts", {"ids": list(contested)})]
        if conversation is not None:
            wanted = conditions.of_memories(where)
            episodes = [_filtered("episodes_of", wanted, conversations=[conversation], limit=episodes_max)]
        found = self._session.batch([disputed, repeated, conflicts, episodes])
        claims = [DisputedClaim(turn, id_, State(state)) for turn, id_, state in found[0]]
        claims += [DisputedClaim(_turn_of(body), id_, State(state)) for body, id_, state in found[1]]
        return (
            claims,
            [(left, right) for left, right in found[2]],
            [rows.memory_from(row) for row in found[3]],
        )


def _filtered(query: str, where: conditions.WhereClause, **parameters: object) -> Request:
    return Request(query, {**where.parameters, **parameters}, str(where))


def _once(memories: Sequence[Memory]) -> list[Memory]:
    return list({memory.id: memory for memory in memories}.values())
