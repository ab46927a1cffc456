"""Selection: which ranked memories answer the query and which support it, open conflicts, episodes, and flagged items
last."""

from collections.abc import Sequence
from itertools import takewhile, zip_longest
from typing import TypeVar

import msgspec

from memplane.recall.fact_ranking import RankedFact
from memplane.recall.request import RecallRequest
from memplane.recall.result import Conflict, RecallHit
from memplane.recall.turn_ranking import RankedTurn
from memplane.safety.sanitize import sanitized_memory, sanitized_turn
from memplane.storage.filter import Filter
from memplane.storage.store import Reader
from memplane.types import Memory, State, Turn

SUSPECTS_MAX = 3
_EPISODES_MAX = 3
_SUPPORT_MAX = 6
_CONFLICTS_MAX = 8

_Hit = TypeVar("_Hit")


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The ranked results as returned."""

    turns: tuple[RecallHit, ...]
    answers: tuple[RecallHit, ...]
    supporting: tuple[RecallHit, ...]
    background: tuple[RecallHit, ...]
    conflicts: tuple[Conflict, ...]
    episodes: tuple[Memory, ...]
    hits: tuple[RecallHit, ...]
    suspects: tuple[RecallHit, ...] = ()

    @property
    def relevant(self) -> tuple[RecallHit, ...]:
        return self.answers + self.supporting[:_SUPPORT_MAX] + self.background[:_SUPPORT_MAX]


def select(
    reader: Reader,
    request: RecallRequest,
    said: Sequence[RankedTurn],
    known: Sequence[RankedFact],
    predicates: Sequence[str],
    where: Filter,
) -> Selection:
    """Take at most as many of each kind as the request allows. Further lookups are batched."""
    answers = _answering(known, predicates)[: request.limits.answers]
    chosen = {fact.memory.id for fact in answers}
    background = [fact for fact in known if fact.background and fact.memory.id not in chosen]
    chosen |= {fact.memory.id for fact in background}
    supporting = [fact for fact in known if fact.memory.id not in chosen][: request.limits.supporting]
    background = background[: request.limits.background]
    facts = [*answers, *supporting, *background]
    hits = {fact.memory.id: _fact_hit(fact, where) for fact in facts}
    memories = [fact.memory for fact in facts]
    relevant = [ranked.turn for ranked in said if ranked.relevant]
    replaced, pairs, episodes = reader.recall.context(
        # At an earlier time, what was replaced since was still current.
        [turn.seq for turn in relevant] if request.as_of is None else [],
        [memory.id for memory in memories if memory.state is State.CONTESTED],
        _conversations(request, relevant),
        where,
        episodes_max=_EPISODES_MAX,
    )
    turns = [_turn_hit(ranked, replaced=ranked.turn.seq in replaced) for ranked in said]
    return Selection(
        turns=tuple(hit for hit, ranked in zip(turns, said, strict=True) if ranked.relevant),
        answers=tuple(hits[fact.memory.id] for fact in answers),
        supporting=tuple(hits[fact.memory.id] for fact in supporting),
        background=tuple(hits[fact.memory.id] for fact in background),
        conflicts=_conflicts(reader, pairs[:_CONFLICTS_MAX], where),
        episodes=tuple(sanitized_memory(episode, where.now) for episode in episodes),
        hits=tuple(alternating(turns, list(hits.values()))),
    )


def with_suspects(
    selection: Selection, turns: Sequence[RankedTurn], memories: Sequence[RankedFact], where: Filter
) -> Selection:
    """Flagged items come last, a few at most. A memory is dropped if its source turn is selected."""
    hits = [_turn_hit(ranked, replaced=False) for ranked in turns if ranked.relevant][:SUSPECTS_MAX]
    said = {hit.id for hit in hits}
    hits += [_fact_hit(fact, where) for fact in memories if fact.memory.entry_id not in said][:SUSPECTS_MAX]
    return msgspec.structs.replace(selection, suspects=tuple(hits))


def alternating(*ranked: Sequence[_Hit]) -> list[_Hit]:
    """Scores of facts, turns and spans are not comparable, so the three lists are interleaved."""
    return [hit for each in zip_longest(*ranked) for hit in each if hit is not None]


def _answering(known: Sequence[RankedFact], predicates: Sequence[str]) -> list[RankedFact]:
    """Facts that answer by their content. If none does, facts with the predicate the query asks for, as long as
    nothing ranks before them: cue words such as `where` and `have` are too common to decide alone."""
    direct = [fact for fact in known if fact.answers]
    if direct or not predicates:
        return direct
    return list(takewhile(lambda fact: fact.memory.predicate == predicates[0], known))


def _turn_hit(ranked: RankedTurn, *, replaced: bool) -> RecallHit:
    turn = sanitized_turn(ranked.turn)
    return RecallHit(
        id=ranked.turn.entry_id,
        score=ranked.score,
        channels=ranked.contributions,
        ranks=ranked.ranks,
        turn=turn,
        replaced=replaced,
        flags=turn.flags or () if turn.quarantined else (),
    )


def _fact_hit(ranked: RankedFact, where: Filter) -> RecallHit:
    memory = _as_it_was(sanitized_memory(ranked.memory, where.now), where)
    return RecallHit(
        id=ranked.memory.id,
        score=ranked.score,
        channels=ranked.contributions,
        ranks=ranked.ranks,
        memory=memory,
        flags=memory.flags or () if memory.quarantined else (),
    )


def _as_it_was(memory: Memory, where: Filter) -> Memory:
    """A memory superseded later was still active then."""
    if where.as_of is None or memory.state is not State.SUPERSEDED:
        return memory
    return msgspec.structs.replace(memory, state=State.ACTIVE, superseded_by=None, superseded_at=None)


def _conflicts(reader: Reader, pairs: Sequence[tuple[str, str]], where: Filter) -> tuple[Conflict, ...]:
    if not pairs:
        return ()
    ids = list(dict.fromkeys(id_ for pair in pairs for id_ in pair))
    there = {
        memory.id: sanitized_memory(memory, where.now) for memory in reader.memories.get_many(ids, where)
    }
    return tuple(
        Conflict(left=there[left], right=there[right])
        for left, right in pairs
        if left in there and right in there
    )


def _conversations(request: RecallRequest, turns: Sequence[Turn]) -> list[str]:
    """The current conversation, and those of the best turns."""
    names = (request.conversation, *(turn.conversation for turn in turns))
    return list(dict.fromkeys(name for name in names if name is not None))[:_EPISODES_MAX]
