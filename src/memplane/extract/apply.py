"""Apply a derived memory to the existing ones: add it, count it as further evidence, supersede another, or contest
it. `conflict.settle` decides; this module writes."""

import msgspec

from memplane.clock import to_instant
from memplane.extract.catalog import PredicateCatalog
from memplane.extract.claims import decode_claim, importance_of, should_be_hot, tier_of
from memplane.extract.conflict import LATER, ConflictOutcome, KnownMemory, decide_conflict, replay_decision
from memplane.extract.proposition import Proposition, Tense
from memplane.extract.relevance import Question
from memplane.storage.claims import Evidence, RivalWindow, noting_window
from memplane.storage.store import Writer
from memplane.types import Memory, State, Tier

_RIVALS_MAX = 48
_RIVAL_WORDS_MAX = 12


def file_memory(
    writer: Writer,
    memory: Memory,
    catalog: PredicateCatalog,
    *,
    decided: ConflictOutcome | None = None,
    window: RivalWindow | None = None,
) -> None:
    """Applying the same memory again changes nothing. `decided` and `window` are the recorded outcome, and how far it was
    compared, if that cannot be computed again."""
    if memory.claim is None or writer.memories.get(memory.id) is not None:
        return
    claim = decode_claim(memory.claim)
    plan = _is_plan(memory, claim)
    found, reached = _rivals(writer, memory, claim, window)
    memory = noting_window(memory, reached)
    said = [(rival, decode_claim(rival.claim or "")) for rival in found]
    rivals = [(rival, other) for rival, other in said if _is_plan(rival, other) is plan]
    known = [_known_memory(rival, other, claim) for rival, other in rivals]
    text = memory.quote or ""
    if decided is None:
        decision = decide_conflict(claim, known, catalog=catalog, text=text, at=memory.created_at)
    else:
        decision = replay_decision(decided, claim, known, catalog=catalog, text=text)
    targets = [rival for rival, _ in rivals if rival.id in decision.targets]
    if targets and decision.outcome in _REPLACING:
        memory = _noted(memory, claim, catalog)
    if decision.outcome is ConflictOutcome.DUPLICATE:
        writer.claims.add_evidence(Evidence(decision.targets[0], memory))
    elif decided is None and decision.outcome in _REPLACING and _arrived_late(memory, targets):
        writer.memories.add([_replaced(memory, by=targets[0])])
    elif decision.outcome is ConflictOutcome.IGNORE:  # it stays in the ledger, where it can be searched
        writer.claims.add_overruled(memory.id, decision.targets)
    else:
        _apply(writer, decision.outcome, memory, targets)


_REPLACING = frozenset({ConflictOutcome.SUPERSEDE, ConflictOutcome.RETIRE, ConflictOutcome.CONTEST})


def _noted(memory: Memory, claim: Proposition, catalog: PredicateCatalog) -> Memory:
    """A claim that changes what is known matters, however it was said."""
    importance = round(importance_of(claim, catalog), 3)
    tier = tier_of(importance=importance, hot=should_be_hot(claim, catalog))
    return msgspec.structs.replace(memory, importance=importance, tier=tier)


def _apply(writer: Writer, outcome: ConflictOutcome, memory: Memory, targets: list[Memory]) -> None:
    writer.memories.add([_replaced(memory, by=memory) if outcome is ConflictOutcome.RETIRE else memory])
    for target in targets:
        if outcome is ConflictOutcome.CONTEST:
            writer.claims.contest(target.id, memory.id)
        else:
            writer.memories.supersede(target.id, by=memory.id, at=to_instant(memory.created_at))


def resolve(writer: Writer, winner: str, losers: tuple[str, ...], at: int) -> None:
    """Apply a decision: the winner supersedes the losers, even if the winner was forgotten since. Stored memories are
    settled by the projection; an imported decision has no other effect."""
    for loser in losers:
        memory = writer.memories.get(loser)
        if memory is not None and memory.derived and not _decided_before(writer, winner, loser):
            writer.memories.supersede(loser, by=winner, at=at)
    if writer.memories.get(winner) is not None:
        writer.claims.settle(winner)


def _decided_before(writer: Writer, winner: str, loser: str) -> bool:
    """Whether another replica already decided the other way round."""
    memory = writer.memories.get(winner)
    return memory is not None and memory.superseded_by == loser


def _is_plan(memory: Memory, claim: Proposition) -> bool:
    """Whether it is about the future. Someone who plans to move to Lisbon still lives in Berlin."""
    if claim.tense is Tense.FUTURE:
        return True
    once = [time for time in memory.times if time.kind != "recurring"]
    return bool(once) and all(time.begin > memory.created_at for time in once)


def _rivals(
    writer: Writer, memory: Memory, claim: Proposition, window: RivalWindow | None
) -> tuple[list[Memory], RivalWindow]:
    """Only memories of the same scope: what is true in one project says nothing about another."""
    words = Question(f"{claim.object_text} {claim.replaces} {claim.topic}").words[:_RIVAL_WORDS_MAX]
    return writer.claims.rivals_within(
        memory.subject or "",
        claim.predicate,
        words,
        limit=_RIVALS_MAX,
        topic=claim.topic,
        within=memory.within,
        window=window,
    )


def _known_memory(memory: Memory, claim: Proposition, new: Proposition) -> KnownMemory:
    """With the subject as the new memory spells it; rivals were already matched by subject."""
    return KnownMemory(
        id=memory.id,
        proposition=msgspec.structs.replace(claim, subject=new.subject),
        text=memory.quote or "",
        at=memory.created_at,
        contested=memory.state is State.CONTESTED,
    )


def _arrived_late(memory: Memory, targets: list[Memory]) -> bool:
    """Whether it was said long before the memory it contradicts but arrived later, for example by import."""
    return bool(targets) and all(target.created_at - memory.created_at >= LATER for target in targets)


def _replaced(memory: Memory, *, by: Memory) -> Memory:
    return msgspec.structs.replace(
        memory, state=State.SUPERSEDED, tier=Tier.COLD, superseded_by=by.id, superseded_at=by.created_at
    )
