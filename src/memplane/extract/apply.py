"""A derived memory finds its place among what is known: added, one more piece of evidence, in place of another, or at
odds with it. `conflict.settle` decides; this carries it out."""

import msgspec

from memplane.clock import to_instant
from memplane.extract.catalog import PredicateCatalog
from memplane.extract.claims import decode_claim
from memplane.extract.conflict import LATER, ConflictOutcome, KnownMemory, decide_conflict, replay_decision
from memplane.extract.proposition import Proposition, Tense
from memplane.extract.relevance import Question
from memplane.storage.claims import Evidence
from memplane.storage.store import Writer
from memplane.types import Memory, State, Tier

_RIVALS_MAX = 48
_RIVAL_WORDS_MAX = 12


def file_memory(
    writer: Writer, memory: Memory, catalog: PredicateCatalog, *, decided: ConflictOutcome | None = None
) -> None:
    """Filing the same memory again changes nothing."""
    if memory.claim is None or writer.memories.get(memory.id) is not None:
        return
    claim = decode_claim(memory.claim)
    plan = _is_plan(memory, claim)
    said = [(rival, decode_claim(rival.claim or "")) for rival in _rivals(writer, memory, claim)]
    rivals = [(rival, other) for rival, other in said if _is_plan(rival, other) is plan]
    known = [_known_memory(rival, other, claim) for rival, other in rivals]
    text = memory.quote or ""
    if decided is None:
        decision = decide_conflict(claim, known, catalog=catalog, text=text, at=memory.created_at)
    else:
        decision = replay_decision(decided, claim, known, catalog=catalog, text=text)
    targets = [rival for rival, _ in rivals if rival.id in decision.targets]
    if decision.outcome is ConflictOutcome.DUPLICATE:
        writer.claims.add_evidence(Evidence(decision.targets[0], memory))
    elif decided is None and decision.outcome in _REPLACING and _arrived_late(memory, targets):
        writer.memories.add([_replaced(memory, by=targets[0])])
    elif decision.outcome is ConflictOutcome.IGNORE:  # it stays in the ledger, where it can be searched
        writer.claims.add_overruled(memory.id, decision.targets)
    else:
        _apply(writer, decision.outcome, memory, targets)


_REPLACING = frozenset({ConflictOutcome.SUPERSEDE, ConflictOutcome.RETIRE, ConflictOutcome.CONTEST})


def _apply(writer: Writer, outcome: ConflictOutcome, memory: Memory, targets: list[Memory]) -> None:
    writer.memories.add([_replaced(memory, by=memory) if outcome is ConflictOutcome.RETIRE else memory])
    for target in targets:
        if outcome is ConflictOutcome.CONTEST:
            writer.claims.contest(target.id, memory.id)
        else:
            writer.memories.supersede(target.id, by=memory.id, at=to_instant(memory.created_at))


def resolve(writer: Writer, winner: str, losers: tuple[str, ...], at: int) -> None:
    """Somebody decided: the losers are replaced by the winner, also where that was forgotten since. What was
    stored on purpose is settled by the projection; an imported decision about anything else decides nothing."""
    for loser in losers:
        memory = writer.memories.get(loser)
        if memory is not None and memory.derived and not _decided_before(writer, winner, loser):
            writer.memories.supersede(loser, by=winner, at=at)
    if writer.memories.get(winner) is not None:
        writer.claims.settle(winner)


def _decided_before(writer: Writer, winner: str, loser: str) -> bool:
    """Whether somebody on another replica had decided the other way round already."""
    memory = writer.memories.get(winner)
    return memory is not None and memory.superseded_by == loser


def _is_plan(memory: Memory, claim: Proposition) -> bool:
    """Whether it is told as something to come. Who plans to move to Lisbon still lives in Berlin."""
    if claim.tense is Tense.FUTURE:
        return True
    once = [time for time in memory.times if time.kind != "recurring"]
    return bool(once) and all(time.begin > memory.created_at for time in once)


def _rivals(writer: Writer, memory: Memory, claim: Proposition) -> list[Memory]:
    """Only what is told in the same place: what holds in one project says nothing about elsewhere."""
    words = Question(f"{claim.object_text} {claim.replaces} {claim.topic}").words[:_RIVAL_WORDS_MAX]
    return writer.claims.rivals(
        memory.subject or "",
        claim.predicate,
        words,
        limit=_RIVALS_MAX,
        topic=claim.topic,
        within=memory.within,
    )


def _known_memory(memory: Memory, claim: Proposition, new: Proposition) -> KnownMemory:
    """With the subject as the new one says it: whose it is was settled by whom the rivals were asked for."""
    return KnownMemory(
        id=memory.id,
        proposition=msgspec.structs.replace(claim, subject=new.subject),
        text=memory.quote or "",
        at=memory.created_at,
        contested=memory.state is State.CONTESTED,
    )


def _arrived_late(memory: Memory, targets: list[Memory]) -> bool:
    """Whether it was said long before what it is at odds with, and only arrived after it: from an import, say."""
    return bool(targets) and all(target.created_at - memory.created_at >= LATER for target in targets)


def _replaced(memory: Memory, *, by: Memory) -> Memory:
    return msgspec.structs.replace(
        memory, state=State.SUPERSEDED, tier=Tier.COLD, superseded_by=by.id, superseded_at=by.created_at
    )
