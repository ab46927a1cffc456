"""Selection: which of the ranked turns and memories an agent gets.

Everything ranked gets a probability that it helps. Copies of a text count once, the question itself never, and a fact is one
item with the turn it was read from. Items are taken from the most probable on until together they hold nearly all of the
probability; the token budget may end it earlier. If memory is not likely to help with the turn, nothing is taken but pinned
memories and standing instructions that apply.
"""

from collections.abc import Mapping, Sequence

import msgspec

from memplane.recall.calibration import Calibration
from memplane.recall.copies import repeats, same_words
from memplane.recall.fact_ranking import RankedFact
from memplane.recall.request import RecallRequest
from memplane.recall.result import Conflict, Helps, RecallHit
from memplane.recall.turn_ranking import RankedTurn
from memplane.safety.sanitize import sanitized_memory, sanitized_turn
from memplane.storage.filter import Filter
from memplane.storage.numbers import turn_number
from memplane.storage.recall_reads import DisputedClaim
from memplane.storage.store import Reader
from memplane.types import Kind, Memory, State, Tier

SUSPECTS_MAX = 3
COVERAGE = 0.97
"""The share of the probability of all items that the selected ones hold together."""
MEMORY_COVERAGE = 0.93
"""The share of the probability of all memories that the selected ones hold at most: their probabilities differ less than those of
turns, so the last few per cent would be most of a small space."""
MAYBE_TOKENS = 80
MAYBE_BLOCKS = 2
"""How much is returned if memory may help with the turn, but probably does not."""
_ANSWER_MIN = 1.0
"""A fact with this score is an answer, the others are support."""
_APPLIES_MIN = 0.5
_STANDING_MAX = 5
_ITEMS_MIN = 8
"""A small space returns more of itself: a few lines cost little, and one that seemed to say it all may be out of date."""
_USER = "user"
_EPISODES_MAX = 3
_CONFLICTS_MAX = 8


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent gets, and everything it was chosen from."""

    sure: bool
    """Whether memory is likely to help with this turn."""
    standing: tuple[RecallHit, ...]
    """Pinned memories, then instructions that apply."""
    items: tuple[RecallHit, ...]
    """Turns and memories, the most probable first."""
    answers: tuple[RecallHit, ...]
    supporting: tuple[RecallHit, ...]
    background: tuple[RecallHit, ...]
    conflicts: tuple[Conflict, ...]
    episodes: tuple[Memory, ...]
    hits: tuple[RecallHit, ...]
    suspects: tuple[RecallHit, ...] = ()

    @property
    def chosen(self) -> tuple[RecallHit, ...]:
        return self.standing + self.items


class _DistinctTurn(msgspec.Struct, frozen=True):
    """A turn and how often it was said; of equal ones the newest."""

    ranked: RankedTurn
    probability: float = 0.0
    copies: tuple[tuple[int, int | None], ...] = ()
    """The places of the others."""

    @property
    def place(self) -> tuple[int, int | None]:
        return self.ranked.turn.seq, self.ranked.turn.ordinal

    @property
    def places(self) -> tuple[tuple[int, int | None], ...]:
        return self.place, *self.copies


class _RankedMemory(msgspec.Struct, frozen=True):
    """A memory with its probability."""

    ranked: RankedFact
    probability: float

    @property
    def id(self) -> str:
        return self.ranked.memory.id

    @property
    def place(self) -> tuple[int, int | None]:
        """Where it was read; a stored memory has no turn."""
        return self.ranked.memory.seq, self.ranked.memory.ordinal


def select(
    reader: Reader,
    request: RecallRequest,
    said: Sequence[RankedTurn],
    known: Sequence[RankedFact],
    calibration: Calibration,
    helps: Helps,
    where: Filter,
) -> Selection:
    """Choose, and look up what is needed to show it: what replaced it, what contradicts it, and episodes."""
    limits = request.limits
    ranked = [
        _RankedMemory(fact, (calibration.memory if fact.memory.derived else calibration.stored)(fact.signals))
        for fact in known
    ]
    ranked.sort(key=lambda memory: -memory.probability)
    rules = _rules(ranked, calibration)
    standing = {rule.id for rule in rules}
    turns = _distinct(said, request.query)
    said = _measured(said, max((turn.ranked.score for turn in turns), default=0.0))
    probabilities = {_place(turn): calibration.turn(turn.signals) for turn in said}
    turns = [
        msgspec.structs.replace(turn, probability=max(probabilities[place] for place in turn.places))
        for turn in turns
    ]
    probabilities |= {turn.place: turn.probability for turn in turns}
    chosen_turns, alone, merged = _chosen(turns, ranked, standing)
    kept = {turn.place for turn in chosen_turns} if helps != "unlikely" else set[tuple[int, int | None]]()

    def hit(memory: _RankedMemory) -> RecallHit:
        return _fact_hit(
            memory, where, selected=(memory.id in alone and helps != "unlikely") or memory.id in standing
        )

    facts = _best_facts(ranked, alone | merged, limits.facts)
    disputed, pairs, episodes = reader.recall.context(
        # At an earlier time, what was replaced since was still current.
        [turn.ranked.turn.seq for turn in chosen_turns] if request.as_of is None else [],
        [fact.id for fact in facts if fact.ranked.memory.state is State.CONTESTED],
        None if helps == "unlikely" else request.conversation,
        where,
        episodes_max=_EPISODES_MAX,
    )
    current = _current(reader, disputed, where)
    returned = alone | merged | standing | {heir.id for heir in current.values()}
    facts = _best_facts(ranked, returned, limits.facts)
    spoken = {
        _place(turn): _turn_hit(turn, probabilities[_place(turn)], selected=_place(turn) in kept)
        for turn in said
    }
    items = [_marked(spoken[turn.place], turn, disputed, current) for turn in chosen_turns]
    items += [hit(memory) for memory in ranked if memory.id in alone]
    answers = [fact for fact in facts if fact.ranked.score >= _ANSWER_MIN][: limits.answers]
    others = facts[len(answers) :][: limits.supporting]
    shown = {fact.id for fact in (*answers, *others)}
    hot = _hot(ranked, shown)[: max(0, limits.facts - len(shown))]
    return Selection(
        sure=helps == "likely",
        standing=tuple(map(hit, rules)),
        items=() if helps == "unlikely" else _most_probable_first(items),
        answers=tuple(map(hit, answers)),
        supporting=tuple(map(hit, others)),
        background=tuple(map(hit, hot[: limits.background])),
        conflicts=_conflicts(reader, pairs[:_CONFLICTS_MAX], where),
        episodes=tuple(sanitized_memory(episode, where.now) for episode in episodes),
        hits=_most_probable_first(
            [*list(spoken.values())[: limits.turns], *map(hit, ranked[: limits.facts])]
        ),
    )


def _best_facts(ranked: Sequence[_RankedMemory], ids: set[str], limit: int) -> list[_RankedMemory]:
    facts = [memory for memory in ranked if memory.id in ids]
    return sorted(facts, key=lambda fact: -fact.ranked.score)[:limit]


def _hot(ranked: Sequence[_RankedMemory], shown: set[str]) -> list[_RankedMemory]:
    return [fact for fact in ranked if fact.ranked.memory.tier is Tier.HOT and fact.id not in shown]


def _most_probable_first(hits: Sequence[RecallHit]) -> tuple[RecallHit, ...]:
    return tuple(sorted(hits, key=lambda hit: -hit.probability))


def _rules(ranked: Sequence[_RankedMemory], calibration: Calibration) -> list[_RankedMemory]:
    """Pinned memories, and the instructions that most probably apply."""
    pinned = [memory for memory in ranked if memory.ranked.memory.pinned]
    others = (memory for memory in ranked if not memory.ranked.memory.pinned)
    return pinned + [memory for memory in others if _applies(memory, calibration)][:_STANDING_MAX]


def _applies(memory: _RankedMemory, calibration: Calibration) -> bool:
    """Only what was stored, or what the user said to the agent: `never give up` between two people instructs nobody."""
    fact = memory.ranked
    if fact.memory.kind is not Kind.INSTRUCTION or (fact.memory.derived and fact.memory.subject != _USER):
        return False
    return calibration.standing(fact.signals) >= _APPLIES_MIN


def _distinct(said: Sequence[RankedTurn], query: str) -> list[_DistinctTurn]:
    """Equal texts once, and the question itself not at all."""
    first: dict[tuple[str, ...], _DistinctTurn] = {}
    for ranked in said:
        if repeats(ranked.turn.text, query):
            continue
        words = ranked.same
        before = first.get(words)
        if before is None:
            first[words] = _DistinctTurn(ranked)
            continue
        newer, older = sorted((before.ranked, ranked), key=lambda each: each.turn.at, reverse=True)
        best = newer if newer.score >= older.score else msgspec.structs.replace(older, turn=newer.turn)
        first[words] = _DistinctTurn(best, copies=(*before.copies, _place(older)))
    return list(first.values())


def _measured(said: Sequence[RankedTurn], best: float) -> list[RankedTurn]:
    """With how far each is behind the best that may be returned; copies of the question are not."""
    return [
        msgspec.structs.replace(turn, signals={**turn.signals, "behind": max(0.0, best - turn.score)})
        for turn in said
    ]


def _place(ranked: RankedTurn) -> tuple[int, int | None]:
    return ranked.turn.seq, ranked.turn.ordinal


def _chosen(
    turns: Sequence[_DistinctTurn], ranked: Sequence[_RankedMemory], rules: set[str]
) -> tuple[list[_DistinctTurn], set[str], set[str]]:
    """The selected turns, the ids of memories selected by themselves, and of those that are part of a selected turn."""
    by_place = {place: turn.place for turn in turns for place in turn.places}
    by_text: dict[tuple[str, ...], object] = {turn.ranked.same: turn.place for turn in turns}
    items: dict[object, float] = {turn.place: turn.probability for turn in turns}
    shown_by: dict[str, object] = {}
    for memory in ranked:
        if memory.id in rules:
            continue
        words = same_words(memory.ranked.memory.line)
        # The score of a turn includes what was read from it.
        of_turn = by_place.get(memory.place) if memory.ranked.memory.derived else None
        shown_by[memory.id] = item = of_turn or by_text.setdefault(words, memory.id)
        if item == memory.id or not memory.ranked.memory.derived:
            items[item] = max(items.get(item, 0.0), memory.probability)
    best = _nucleus({item: items[item] for item in items if isinstance(item, str)}, MEMORY_COVERAGE)
    kept = {item for item in _nucleus(items, COVERAGE) if item in best or not isinstance(item, str)}
    chosen = [
        msgspec.structs.replace(turn, probability=items[turn.place]) for turn in turns if turn.place in kept
    ]
    alone = {memory.id for memory in ranked if memory.id in kept}
    merged = {id_ for id_, item in shown_by.items() if item in kept and item != id_}
    return chosen, alone, merged


def _nucleus(items: Mapping[object, float], coverage: float) -> set[object]:
    """The most probable items that together hold nearly all of the probability, and at least a few."""
    left = coverage * sum(items.values())
    kept: set[object] = set()
    for item in sorted(items, key=lambda item: -items[item]):
        if left <= 0 and len(kept) >= _ITEMS_MIN:
            break
        kept.add(item)
        left -= items[item]
    return kept


def _current(reader: Reader, disputed: Sequence[DisputedClaim], where: Filter) -> dict[str, Memory]:
    """For what was superseded, the memory that is current now."""
    gone = [claim.id for claim in disputed if claim.state is State.SUPERSEDED]
    if not gone:
        return {}
    _, ends = reader.recall.with_successors([], gone, where)
    heirs = {
        heir.id: sanitized_memory(heir, where.now)
        for heir in reader.memories.get_many(list(ends.values()), where)
    }
    return {start: heirs[end] for start, end in ends.items() if end in heirs and not heirs[end].quarantined}


def by_words(hits: Sequence[RecallHit], query: str) -> Selection:
    """A selection of keyword matches, without anything that needs further reads."""
    plain = [hit for hit in hits if not hit.flags]
    distinct: dict[tuple[str, ...], RecallHit] = {}
    for hit in plain:
        if hit.turn is None or not repeats(hit.turn.text, query):
            distinct.setdefault(same_words(hit.statement), hit)
    return Selection(
        sure=True,
        standing=(),
        items=tuple(distinct.values()),
        answers=(),
        supporting=(),
        background=(),
        conflicts=(),
        episodes=(),
        hits=tuple(plain),
        suspects=tuple(hit for hit in hits if hit.flags)[:SUSPECTS_MAX],
    )


def with_suspects(
    selection: Selection, turns: Sequence[RankedTurn], memories: Sequence[RankedFact], where: Filter
) -> Selection:
    """Flagged items come last, a few at most. A memory is dropped if its source turn is selected."""
    hits = [_turn_hit(ranked, 0.0) for ranked in turns if ranked.relevant][:SUSPECTS_MAX]
    said = {hit.id for hit in hits}
    hits += [
        _fact_hit(_RankedMemory(fact, 0.0), where) for fact in memories if fact.memory.entry_id not in said
    ][:SUSPECTS_MAX]
    return msgspec.structs.replace(selection, suspects=tuple(hits))


def _turn_hit(ranked: RankedTurn, probability: float, *, selected: bool = False) -> RecallHit:
    turn = sanitized_turn(ranked.turn)
    return RecallHit(
        id=ranked.turn.entry_id,
        score=ranked.score,
        probability=probability,
        signals=ranked.signals,
        channels=ranked.contributions,
        ranks=ranked.ranks,
        turn=turn,
        selected=selected,
        flags=turn.flags or () if turn.quarantined else (),
    )


def _marked(
    hit: RecallHit, turn: _DistinctTurn, disputed: Sequence[DisputedClaim], current: Mapping[str, Memory]
) -> RecallHit:
    """With how often it was said, and whether it is still so."""
    number = turn_number(turn.ranked.turn.seq, turn.ranked.turn.ordinal)
    claims = [claim for claim in disputed if claim.turn == number]
    gone = [claim for claim in claims if claim.state is State.SUPERSEDED]
    return msgspec.structs.replace(
        hit,
        probability=turn.probability,
        count=1 + len(turn.copies),
        replaced=bool(gone),
        replaced_by=next((current[claim.id].line for claim in gone if claim.id in current), None),
        contested=any(claim.state is State.CONTESTED for claim in claims),
    )


def _fact_hit(ranked_memory: _RankedMemory, where: Filter, *, selected: bool = False) -> RecallHit:
    ranked = ranked_memory.ranked
    memory = _as_it_was(sanitized_memory(ranked.memory, where.now), where)
    return RecallHit(
        id=ranked.memory.id,
        score=ranked.score,
        probability=ranked_memory.probability,
        signals=ranked.signals,
        channels=ranked.contributions,
        ranks=ranked.ranks,
        memory=memory,
        selected=selected,
        replaced=memory.state is State.SUPERSEDED,
        contested=memory.state is State.CONTESTED,
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
