"""What an empty query returns: what is useful before the first question of a session.

Pinned memories and instructions come first, as for any turn; then the most important memories, the newest of equal ones first; then the
newest turns, all within a small budget. `brief` has the same memories as Markdown, without turns.
"""

from collections.abc import Iterator

import msgspec

from memplane.config import Settings
from memplane.recall.brief import brief_memories
from memplane.recall.copies import same_words
from memplane.recall.marks import memory_mark, with_mark
from memplane.recall.matters import wishes_of
from memplane.recall.request import RecallRequest
from memplane.recall.result import Limits, RecallHit
from memplane.recall.selection import Selection
from memplane.safety.sanitize import sanitized_memory, visible
from memplane.storage.filter import EVERYWHERE, Filter
from memplane.storage.store import Reader
from memplane.types import Memory

OPENING_TOKENS = 400
_MEMORIES_MAX = 40


def is_empty(query: str) -> bool:
    """Whether nothing of a query can be seen."""
    return not visible(query).strip()


def with_opening(
    reader: Reader,
    request: RecallRequest,
    selection: Selection,
    limits: Limits,
    settings: Settings,
    where: Filter,
) -> tuple[Selection, Limits]:
    """For an empty query, the opening selection and a small part of the budget; otherwise both as they are."""
    if not is_empty(request.query):
        return selection, limits
    tokens = settings.recall_tokens_max if limits.tokens is None else limits.tokens
    small = msgspec.structs.replace(limits, tokens=min(tokens, OPENING_TOKENS))
    return _opening(reader, selection, where), small


def _opening(reader: Reader, selection: Selection, where: Filter) -> Selection:
    """The same selection, ordered by importance, with the memories of a brief."""
    found = {hit.id: hit for hit in selection.items if hit.memory is not None}
    if where.as_of is None:
        for memory in _brief(reader, selection, where):
            found.setdefault(memory.id, _hit(sanitized_memory(memory, where.now)))
    plain = (hit for hit in (*selection.hits, *found.values()) if not hit.flags)
    known = {hit.id: hit.memory for hit in plain if hit.memory is not None}
    wishes = wishes_of(reader, known.values(), where.as_of)
    memories = [hit for hit in found.values() if not hit.flags and wishes.asks(hit.id)]
    memories.sort(key=_importance, reverse=True)
    turns = [(turn.at, hit) for hit in selection.items if (turn := hit.turn) is not None]
    turns.sort(key=lambda each: each[0], reverse=True)
    chosen = {hit.id for hit in memories}
    ranked = {hit.id for hit in selection.hits}
    return msgspec.structs.replace(
        selection,
        items=(*memories, *(hit for _, hit in turns)),
        hits=(
            *(
                msgspec.structs.replace(hit, selected=True) if hit.id in chosen and hit.memory else hit
                for hit in selection.hits
            ),
            *(hit for hit in memories if hit.id not in ranked),
        ),
    )


def _brief(reader: Reader, selection: Selection, where: Filter) -> Iterator[Memory]:
    """The memories of a brief that the selection does not show yet."""
    applying = {hit.id for hit in selection.standing}
    shown = {(turn.seq, turn.ordinal) for hit in selection.items if (turn := hit.turn) is not None}
    stated = {same_words(hit.statement) for hit in selection.items}
    audience = where.audience or EVERYWHERE
    for memory in brief_memories(reader, now=where.now, limit=_MEMORIES_MAX, audience=audience):
        of_turn = memory.derived and (memory.seq, memory.ordinal) in shown
        if memory.id not in applying and not of_turn and same_words(memory.line) not in stated:
            yield memory


def _importance(hit: RecallHit) -> tuple[float, float]:
    assert hit.memory is not None
    return hit.memory.importance, hit.memory.updated_at.timestamp()


def _hit(memory: Memory) -> RecallHit:
    hit = RecallHit(
        id=memory.id,
        score=memory.importance,
        probability=memory.importance,
        channels={"importance": memory.importance},
        ranks={},
        memory=memory,
        selected=True,
        flags=memory.flags or () if memory.quarantined else (),
    )
    return with_mark(hit, memory_mark(memory, {}))
