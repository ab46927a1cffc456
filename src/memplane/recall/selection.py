"""Selection: which of the ranked turns and memories an agent gets.

Everything ranked gets a probability that it helps. Copies of a text count once, the question itself never, and a fact is one
item with the turn it was read from. Items are taken from the most probable on until together they hold nearly all of the
probability; the token budget may end it earlier. If memory is not likely to help with the turn, nothing is taken but pinned
memories and standing instructions that apply.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from memplane.recall.breadth import BEST_ITEMS, Breadth, breadth_of, floor_of
from memplane.recall.calibration import Calibration
from memplane.recall.copies import acknowledges, repeats, same_words
from memplane.recall.fact_ranking import RankedFact
from memplane.recall.marks import Mark, current_first, current_of, memory_mark, turn_mark, with_mark
from memplane.recall.matters import StandingWishes, wishes_of
from memplane.recall.request import RecallRequest
from memplane.recall.result import Conflict, Helps, Limits, RecallHit
from memplane.recall.standing import APPLIES_MIN, applicability
from memplane.recall.turn_ranking import RankedTurn
from memplane.safety.sanitize import sanitized_memory, sanitized_turn
from memplane.storage.filter import Filter
from memplane.storage.numbers import turn_number
from memplane.storage.recall_reads import DisputedClaim
from memplane.storage.store import Reader
from memplane.types import Memory, Role, State, Tier, Turn

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
STANDING_BLOCKS = 4
"""How many instructions come before other blocks; the rest come after them."""
_STANDING_MAX = 12
_MAY_APPLY_MIN = 0.25
_ITEMS_MIN = 8
"""A small space returns more of itself: a few lines cost little, and one that seemed to say it all may be out of date."""
_NUMBER = re.compile(r"\d+")
_EPISODES_MAX = 3
_CONFLICTS_MAX = 8


_Place = tuple[int, int | None]
"""Entry and ordinal of a turn; a stored memory has no ordinal."""


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent gets, and everything it was chosen from."""

    helps: Helps
    """Whether memory helps with this turn."""
    standing: tuple[RecallHit, ...]
    """Pinned memories, then instructions that apply."""
    dated: Mapping[str, datetime]
    """When those of them were said that may contradict each other, by id."""
    items: tuple[RecallHit, ...]
    """Turns and memories, the most probable first."""
    answers: tuple[RecallHit, ...]
    supporting: tuple[RecallHit, ...]
    background: tuple[RecallHit, ...]
    conflicts: tuple[Conflict, ...]
    episodes: tuple[Memory, ...]
    hits: tuple[RecallHit, ...]
    suspects: tuple[RecallHit, ...] = ()


class _DistinctTurn(msgspec.Struct, frozen=True):
    """A turn and how often it was said; of equal ones the newest."""

    ranked: RankedTurn
    probability: float = 0.0
    copies: tuple[_Place, ...] = ()
    """The places of the others."""

    @property
    def place(self) -> _Place:
        return self.ranked.turn.seq, self.ranked.turn.ordinal

    @property
    def places(self) -> tuple[_Place, ...]:
        return self.place, *self.copies


class _RankedMemory(msgspec.Struct, frozen=True):
    """A memory with its probability."""

    ranked: RankedFact
    probability: float
    inherited: float = 0.0
    """How likely an older instruction about the same matter applies."""
    replaced_by: Memory | None = None
    """For an instruction that no longer holds, what ended it."""
    holds: bool = True
    """Not for an instruction that no longer holds, or that only withdraws another."""

    @property
    def id(self) -> str:
        return self.ranked.memory.id

    @property
    def applies(self) -> float:
        return max(applicability(self.ranked.signals), self.inherited) if self.holds else 0.0

    def is_item(self, helps: Helps) -> bool:
        """An instruction is an item only if the query asks for instructions, or if it may apply to a turn that needs memory."""
        signals = self.ranked.signals
        if "every" not in signals or signals["asked"]:
            return True
        return (
            self.holds
            and helps == "likely"
            and signals["applies"] >= _MAY_APPLY_MIN
            and self.applies < APPLIES_MIN
        )

    @property
    def place(self) -> _Place:
        """Where it was read; a stored memory has no turn."""
        return self.ranked.memory.seq, self.ranked.memory.ordinal


class _Chosen(msgspec.Struct, frozen=True):
    """What was selected."""

    turns: Sequence[_DistinctTurn]
    alone: frozenset[str]
    """Ids of memories selected as items."""
    merged: frozenset[str]
    """Ids of memories that are shown by a selected turn."""
    rules: Sequence[_RankedMemory]
    """Pinned memories and instructions that apply."""

    @property
    def memories(self) -> frozenset[str]:
        return self.alone | self.merged


class _Context(msgspec.Struct, frozen=True):
    """What was looked up to show the selected items."""

    disputed: Sequence[DisputedClaim]
    current: Mapping[str, Memory]
    """For what was superseded, the memory that is current now."""
    heirs: frozenset[str]
    """Of these, the ids of those that replaced something in a selected turn."""
    worth: Mapping[str, float]
    """The probability of each memory, by id."""
    conflicts: tuple[Conflict, ...]
    episodes: tuple[Memory, ...]

    def mark(self, turn: Turn) -> Mark:
        return turn_mark(turn, self.disputed, self.current, lambda heir: self.worth.get(heir.id, 0.0))


class _Facts(msgspec.Struct, frozen=True):
    """The memories among the selected items, in the lists for clients that build their own prompt."""

    answers: Sequence[_RankedMemory]
    supporting: Sequence[_RankedMemory]
    background: Sequence[_RankedMemory]


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
    wishes = wishes_of(reader, (fact.memory for fact in known if _counts(fact.memory, where)), where.as_of)
    ranked = _with_wishes(_probable_memories(known, calibration), wishes)
    turns, said, probabilities = _probable_turns(said, request.query, calibration)
    askable = [memory for memory in ranked if memory.is_item(helps)]
    chosen = _chosen(turns, askable, _rules(ranked, wishes), breadth_of(request.query))
    context = _context(reader, request, chosen, said, ranked, helps, where)
    wanted = helps != "unlikely"
    facts = _facts(ranked, chosen, context, request.limits, wanted=wanted)
    selected = {rule.id for rule in chosen.rules} | (chosen.alone if wanted else frozenset())
    kept = {turn.place for turn in chosen.turns} if wanted else set[_Place]()

    def hits(memories: Iterable[_RankedMemory]) -> tuple[RecallHit, ...]:
        return tuple(
            _fact_hit(memory, context.current, where, selected=memory.id in selected) for memory in memories
        )

    ended = _ended_in(ranked, where)
    spoken = {
        place: with_mark(
            _turn_hit(turn, probabilities[place], selected=place in kept),
            ended.get(place) or context.mark(turn.turn),
        )
        for turn in said
        for place in [_place(turn)]
    }
    items = [_counted(spoken[turn.place], turn) for turn in chosen.turns]
    items += hits(memory for memory in ranked if memory.id in chosen.alone)
    return Selection(
        helps=helps,
        standing=hits(chosen.rules),
        dated=wishes.unclear,
        items=tuple(current_first(_most_probable_first(items), context.current.values())) if wanted else (),
        answers=hits(facts.answers),
        supporting=hits(facts.supporting),
        background=hits(facts.background),
        conflicts=context.conflicts,
        episodes=context.episodes,
        hits=_most_probable_first(
            [*list(spoken.values())[: request.limits.turns], *hits(ranked[: request.limits.facts])]
        ),
    )


def _probable_memories(known: Sequence[RankedFact], calibration: Calibration) -> list[_RankedMemory]:
    """The most probable first."""
    ranked = [_RankedMemory(fact, _memory_probability(fact, calibration)) for fact in known]
    return sorted(ranked, key=lambda memory: -memory.probability)


def _memory_probability(fact: RankedFact, calibration: Calibration) -> float:
    return (calibration.memory if fact.memory.derived else calibration.stored)(fact.signals)


def _counts(memory: Memory, where: Filter) -> bool:
    """What was superseded neither holds nor ends anything, except before it was."""
    return memory.state is not State.SUPERSEDED or where.as_of is not None


def _with_wishes(ranked: Sequence[_RankedMemory], wishes: StandingWishes) -> list[_RankedMemory]:
    """With what newer instructions mean for older ones."""
    applies = {memory.id: memory.applies for memory in ranked}
    return [
        msgspec.structs.replace(
            memory,
            inherited=max((applies[id_] for id_ in wishes.before.get(memory.id, ())), default=0.0),
            replaced_by=wishes.replaced.get(memory.id),
            holds=wishes.asks(memory.id),
        )
        for memory in ranked
    ]


def _ended_in(ranked: Sequence[_RankedMemory], where: Filter) -> dict[_Place, Mark]:
    """The marks of turns whose instruction no longer holds."""
    return {
        memory.place: Mark(replaced=True, current=sanitized_memory(memory.replaced_by, where.now))
        for memory in ranked
        if memory.replaced_by is not None and memory.ranked.memory.derived
    }


def _probable_turns(
    said: Sequence[RankedTurn], query: str, calibration: Calibration
) -> tuple[list[_DistinctTurn], list[RankedTurn], dict[_Place, float]]:
    """Distinct turns, all turns, and the probability of each. Copies have the best probability of them."""
    turns = _distinct(said, query)
    said = _measured(said, max((turn.ranked.score for turn in turns), default=0.0))
    probabilities = {_place(turn): calibration.turn(turn.signals) for turn in said}
    turns = [
        msgspec.structs.replace(turn, probability=max(probabilities[place] for place in turn.places))
        for turn in turns
    ]
    return turns, said, probabilities | {turn.place: turn.probability for turn in turns}


def _context(
    reader: Reader,
    request: RecallRequest,
    chosen: _Chosen,
    said: Sequence[RankedTurn],
    ranked: Sequence[_RankedMemory],
    helps: Helps,
    where: Filter,
) -> _Context:
    facts = _best_facts(ranked, chosen.memories, request.limits.facts)
    disputed, pairs, episodes = reader.recall.context(
        # At an earlier time, what was replaced since was still current.
        [turn.turn.seq for turn in said] if request.as_of is None else [],
        [fact.id for fact in facts if fact.ranked.memory.state is State.CONTESTED],
        None if helps == "unlikely" else request.conversation,
        where,
        episodes_max=_EPISODES_MAX,
    )
    current = _current(reader, disputed, ranked, where)
    places = {turn_number(turn.ranked.turn.seq, turn.ranked.turn.ordinal) for turn in chosen.turns}
    return _Context(
        disputed,
        current,
        frozenset(current[claim.id].id for claim in disputed if claim.turn in places and claim.id in current),
        {memory.id: memory.probability for memory in ranked},
        _conflicts(reader, pairs[:_CONFLICTS_MAX], where),
        tuple(sanitized_memory(episode, where.now) for episode in episodes),
    )


def _facts(
    ranked: Sequence[_RankedMemory], chosen: _Chosen, context: _Context, limits: Limits, *, wanted: bool
) -> _Facts:
    """If memory is not wanted, only rules and hot memories, which are in every recall."""
    rules = frozenset(rule.id for rule in chosen.rules)
    found = chosen.memories | context.heirs if wanted else frozenset[str]()
    facts = _best_facts(ranked, rules | found, limits.facts)
    answers = [fact for fact in facts if fact.ranked.score >= _ANSWER_MIN][: limits.answers]
    others = facts[len(answers) :][: limits.supporting]
    listed = {fact.id for fact in (*answers, *others)}
    hot = _hot(ranked, listed)[: max(0, limits.facts - len(listed))]
    return _Facts(answers, others, hot[: limits.background])


def _best_facts(ranked: Sequence[_RankedMemory], ids: frozenset[str], limit: int) -> list[_RankedMemory]:
    facts = [memory for memory in ranked if memory.id in ids]
    return sorted(facts, key=lambda fact: -fact.ranked.score)[:limit]


def _hot(ranked: Sequence[_RankedMemory], shown: set[str]) -> list[_RankedMemory]:
    return [fact for fact in ranked if fact.ranked.memory.tier is Tier.HOT and fact.id not in shown]


def _most_probable_first(hits: Sequence[RecallHit]) -> tuple[RecallHit, ...]:
    return tuple(sorted(hits, key=lambda hit: -hit.probability))


def _rules(ranked: Sequence[_RankedMemory], wishes: StandingWishes) -> list[_RankedMemory]:
    """Pinned memories, and the instructions that most probably apply, stored ones before those that were said. Of those that may
    contradict each other, the newest comes first."""
    pinned = [memory for memory in ranked if memory.ranked.memory.pinned]
    others = _distinct_rules(
        [memory for memory in ranked if not memory.ranked.memory.pinned and memory.applies >= APPLIES_MIN]
    )
    others.sort(key=lambda memory: (memory.ranked.memory.derived, -memory.applies))
    chosen = others[:_STANDING_MAX]
    unclear = [memory for memory in chosen if memory.id in wishes.unclear]
    newest = iter(sorted(unclear, key=lambda memory: wishes.unclear[memory.id], reverse=True))
    return pinned + [next(newest) if memory.id in wishes.unclear else memory for memory in chosen]


def _distinct_rules(rules: Sequence[_RankedMemory]) -> list[_RankedMemory]:
    """All stored ones. Of said ones, the newest of those that differ only in numbers, unless it was stored as well."""
    stored = [memory for memory in rules if not memory.ranked.memory.derived]
    known = {same_words(memory.ranked.memory.line) for memory in stored}
    said: dict[tuple[str, ...], _RankedMemory] = {}
    for memory in sorted(rules, key=lambda memory: memory.ranked.memory.updated_at):
        line = memory.ranked.memory.line
        if memory.ranked.memory.derived and same_words(line) not in known:
            said[same_words(_NUMBER.sub("", line))] = memory
    return [*stored, *said.values()]


def _distinct(said: Sequence[RankedTurn], query: str) -> list[_DistinctTurn]:
    """Equal texts of the same speaker once; the question itself, and what only acknowledges something, not at all."""
    first: dict[tuple[str, ...], _DistinctTurn] = {}
    for ranked in said:
        if repeats(ranked.turn.text, query) or acknowledges(ranked.turn.text):
            continue
        key = ranked.copy_key
        before = first.get(key)
        if before is None:
            first[key] = _DistinctTurn(ranked)
            continue
        newer, older = sorted((before.ranked, ranked), key=lambda each: each.turn.at, reverse=True)
        best = newer if newer.score >= older.score else msgspec.structs.replace(older, turn=newer.turn)
        first[key] = _DistinctTurn(best, copies=(*before.copies, _place(older)))
    return list(first.values())


def _measured(said: Sequence[RankedTurn], best: float) -> list[RankedTurn]:
    """With how far each is behind the best that may be returned; copies of the question are not."""
    return [
        msgspec.structs.replace(turn, signals={**turn.signals, "behind": max(0.0, best - turn.score)})
        for turn in said
    ]


def _place(ranked: RankedTurn) -> _Place:
    return ranked.turn.seq, ranked.turn.ordinal


def _chosen(
    turns: Sequence[_DistinctTurn],
    ranked: Sequence[_RankedMemory],
    rules: Sequence[_RankedMemory],
    breadth: Breadth,
) -> _Chosen:
    """The items that make up nearly all of the probability; for a summary, all of them. Rules, and turns that only repeat a rule,
    are not items."""
    applying = {rule.id for rule in rules}
    stated = {same_words(rule.ranked.memory.line) for rule in rules}
    turns = [turn for turn in turns if turn.ranked.same not in stated]
    by_place = {place: turn.place for turn in turns for place in turn.places}
    by_text: dict[tuple[str, ...], object] = {
        turn.ranked.same: turn.place for turn in turns if turn.ranked.turn.role == Role.USER
    }
    items: dict[object, float] = {turn.place: turn.probability for turn in turns}
    shown_by: dict[str, object] = {}
    for memory in ranked:
        if memory.id in applying:
            continue
        words = same_words(memory.ranked.memory.line)
        # The score of a turn includes what was read from it.
        of_turn = by_place.get(memory.place) if memory.ranked.memory.derived else None
        shown_by[memory.id] = item = of_turn or by_text.setdefault(words, memory.id)
        if item == memory.id or not memory.ranked.memory.derived:
            items[item] = max(items.get(item, 0.0), memory.probability)
    memories: dict[object, float] = {item: items[item] for item in items if isinstance(item, str)}
    whole = breadth is Breadth.SUMMARY
    best = _nucleus(memories, 1.0 if whole else MEMORY_COVERAGE)
    kept = {
        item for item in _nucleus(items, 1.0 if whole else COVERAGE) if item in best or item not in memories
    }
    kept &= _probable(items, breadth)
    chosen = [
        msgspec.structs.replace(turn, probability=items[turn.place]) for turn in turns if turn.place in kept
    ]
    alone = frozenset(memory.id for memory in ranked if memory.id in kept)
    merged = frozenset(id_ for id_, item in shown_by.items() if item in kept and item != id_)
    return _Chosen(chosen, alone, merged, rules)


def _probable(items: Mapping[object, float], breadth: Breadth) -> set[object]:
    """The items at or above their floor, and the best few in any case."""
    order = sorted(items, key=lambda item: -items[item])
    best = items[order[0]] if order else 0.0
    return {
        item
        for rank, item in enumerate(order)
        if rank < BEST_ITEMS or items[item] >= floor_of(breadth, best, turn=not isinstance(item, str))
    }


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


def _current(
    reader: Reader, disputed: Sequence[DisputedClaim], ranked: Sequence[_RankedMemory], where: Filter
) -> dict[str, Memory]:
    """For what was superseded, the memory that is current now."""
    gone = [claim.id for claim in disputed if claim.state is State.SUPERSEDED]
    if where.as_of is None:
        gone += [memory.id for memory in ranked if memory.ranked.memory.state is State.SUPERSEDED]
    return current_of(reader, gone, where)


def by_words(hits: Sequence[RecallHit], query: str) -> Selection:
    """A selection of keyword matches, without anything that needs further reads."""
    plain = [hit for hit in hits if not hit.flags]
    distinct: dict[tuple[str, ...], RecallHit] = {}
    for hit in plain:
        if hit.turn is None or not (repeats(hit.turn.text, query) or acknowledges(hit.turn.text)):
            distinct.setdefault((_teller(hit), *same_words(hit.statement)), hit)
    return Selection(
        helps="likely",
        standing=(),
        dated={},
        items=tuple(distinct.values()),
        answers=(),
        supporting=(),
        background=(),
        conflicts=(),
        episodes=(),
        hits=tuple(plain),
        suspects=tuple(hit for hit in hits if hit.flags)[:SUSPECTS_MAX],
    )


def _teller(hit: RecallHit) -> str:
    """Who said a turn; empty for a memory."""
    return "" if hit.turn is None else f"{hit.turn.role} {hit.turn.speaker or ''}"


def with_suspects(
    selection: Selection, turns: Sequence[RankedTurn], memories: Sequence[RankedFact], where: Filter
) -> Selection:
    """Flagged items come last, a few at most. A memory is dropped if its source turn is selected."""
    hits = [_turn_hit(ranked, 0.0) for ranked in turns if ranked.relevant][:SUSPECTS_MAX]
    said = {hit.id for hit in hits}
    hits += [
        _fact_hit(_RankedMemory(fact, 0.0), {}, where)
        for fact in memories
        if fact.memory.entry_id not in said
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


def _counted(hit: RecallHit, turn: _DistinctTurn) -> RecallHit:
    """With how often it was said."""
    return msgspec.structs.replace(hit, probability=turn.probability, count=1 + len(turn.copies))


def _fact_hit(
    ranked_memory: _RankedMemory, current: Mapping[str, Memory], where: Filter, *, selected: bool = False
) -> RecallHit:
    ranked = ranked_memory.ranked
    memory = _as_it_was(sanitized_memory(ranked.memory, where.now), where)
    hit = RecallHit(
        id=ranked.memory.id,
        score=ranked.score,
        probability=ranked_memory.probability,
        signals=ranked.signals,
        channels=ranked.contributions,
        ranks=ranked.ranks,
        memory=memory,
        selected=selected,
        flags=memory.flags or () if memory.quarantined else (),
    )
    if ranked_memory.replaced_by is not None:
        return with_mark(
            hit, Mark(replaced=True, current=sanitized_memory(ranked_memory.replaced_by, where.now))
        )
    return with_mark(hit, memory_mark(memory, current))


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
