"""Feedback from agents: used memories gain importance, unused ones fade.

One rating changes little. Repeated ratings move a memory further in one direction, within bounds, and recent ratings
count most: a wrongly faded memory recovers when it is used. Not being used counts less than being used, because most
of a recall is there in case it is needed: a memory used in one recall of five keeps its importance.
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
"""The maximum effect of feedback on importance: from the middle of the scale to always recalled, or to no longer
recalled."""
_RATING_USUAL = 3
"""The assumed rating of an unrated recall. The better a recall was rated, the more its choices count."""


def apply_feedback(writer: Writer, rated: FeedbackPayload, catalog: PredicateCatalog) -> None:
    """Apply once per entry, in ledger order. Memories that no longer exist are skipped."""
    weight = (rated.rating or _RATING_USUAL) / _RATING_USUAL
    for id_ in rated.selected:
        _lean(writer, id_, 1.0, CHOSEN_STEP * weight, catalog)
    for id_ in rated.ignored:
        _lean(writer, id_, -1.0, IGNORED_STEP * weight, catalog)


def can_be_rated(memory: Memory | None) -> bool:
    """An episode is rewritten whenever its conversation changes, so feedback on it would not last."""
    return memory is not None and memory.kind is not Kind.EPISODE


def importance_after(base: float, leaning: float) -> float:
    return round(min(max(base + REACH * leaning, 0.0), 1.0), 4)


def tier_after_feedback(memory: Memory, catalog: PredicateCatalog, *, accesses: int) -> Tier:
    """The tier after this many recalls. A stored memory is never hidden for lack of use; being recalled without being
    used is no use."""
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
