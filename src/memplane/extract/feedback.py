"""What agents make of what they are told: memories they use gain importance, those they pass over fade.

One word from one agent changes little. A memory leans ever more to one side the more often it is chosen or passed over,
never beyond the end, and the newest words count most: a memory that was wrongly passed over comes back by being chosen.
To be passed over says less than to be chosen, because most of what a recall tells is there in case it is needed: a
memory that one recall in five has a use for stays where it is.
"""

import msgspec

from memplane.extract.catalog import PredicateCatalog
from memplane.extract.claims import decode_claim, should_be_hot, tier_of
from memplane.ledger.payloads import FeedbackPayload
from memplane.storage.memories import Rating
from memplane.storage.store import Writer
from memplane.types import Kind, Memory, Tier

CHOSEN_STEP = 0.2
IGNORED_STEP = 0.05
REACH = 0.4
"""How far feedback moves importance, at most: from the middle of the scale to where a memory is always told, or to where
it is told no more."""
_RATING_USUAL = 3
"""What a recall that nobody rated counts as. The better a recall was, the more its choices say."""


def apply_feedback(writer: Writer, rated: FeedbackPayload, catalog: PredicateCatalog) -> None:
    """To be done once for each entry, in the ledger's order. What is gone since is left out."""
    weight = (rated.rating or _RATING_USUAL) / _RATING_USUAL
    for id_ in rated.selected:
        _lean(writer, id_, 1.0, CHOSEN_STEP * weight, catalog)
    for id_ in rated.ignored:
        _lean(writer, id_, -1.0, IGNORED_STEP * weight, catalog)


def can_be_rated(memory: Memory | None) -> bool:
    """An episode is told anew whenever its conversation changes; nothing that was said of it would stay."""
    return memory is not None and memory.kind is not Kind.EPISODE


def importance_after(base: float, leaning: float) -> float:
    return round(min(max(base + REACH * leaning, 0.0), 1.0), 4)


def tier_after_feedback(memory: Memory, catalog: PredicateCatalog, *, accesses: int) -> Tier:
    """How it surfaces, told so often by now. What was stored on purpose is never put out of sight for want of use; to have
    been told and passed over is no use."""
    if not memory.derived:
        tier = tier_of(importance=memory.importance)
        return Tier.WARM if tier is Tier.COLD else tier
    hot = memory.claim is not None and should_be_hot(decode_claim(memory.claim), catalog)
    return tier_of(importance=memory.importance, accesses=accesses - memory.passed_over, hot=hot)


def _lean(writer: Writer, memory_id: str, towards: float, step: float, catalog: PredicateCatalog) -> None:
    memory = writer.memories.get(memory_id)
    if memory is None or not can_be_rated(memory):
        return
    base = memory.importance if memory.importance_base is None else memory.importance_base
    leaning = round(memory.leaning + step * (towards - memory.leaning), 6)
    importance = importance_after(base, leaning)
    chosen, passed_over = memory.chosen + (towards > 0), memory.passed_over + (towards < 0)
    rated = msgspec.structs.replace(memory, importance=importance, passed_over=passed_over)
    writer.memories.rate(Rating(memory.id, chosen, passed_over, leaning, importance))
    accesses = writer.memories.accesses((memory.id,)).get(memory.id, 0)
    writer.memories.set_tiers([(memory.id, tier_after_feedback(rated, catalog, accesses=accesses))])
