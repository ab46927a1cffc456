"""What an agent is told before a turn, shaped by that turn: for now by its words and by how recent things are."""

import math

import msgspec

from memplane.clock import DAY, Instant, to_instant
from memplane.config import Settings
from memplane.governance.fence import defang, fence
from memplane.governance.neutral import one_line
from memplane.governance.redact import redact
from memplane.memory.shown import shown_turn
from memplane.recall.search import Hit, SearchRequest, search
from memplane.storage.base import Filter, Reader
from memplane.types import Role, Turn

_RECENCY_SHARE = 0.15
_RECENCY_HALF_LIFE_DAYS = 30
_CANDIDATES = 40


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One thing told, and why."""

    id: str
    text: str
    kind: str
    source: str
    ts: str
    score: float


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """What to tell the agent. `text` is fenced, so that it is recognised and never remembered again."""

    query: str
    text: str
    blocks: tuple[Block, ...]
    conversation_history: tuple[Turn, ...] = ()
    degraded: tuple[str, ...] = ()
    """Why the answer may be incomplete; empty when it is whole."""


def recall(
    reader: Reader,
    query: str,
    *,
    conversation: str | None,
    settings: Settings,
    now: Instant,
    degraded: tuple[str, ...],
) -> Recall:
    history = _recent_turns(reader, conversation, settings, now)
    already = {turn.entry_id for turn in history}
    hits = search(reader, SearchRequest(query=query, limit=_CANDIDATES), now)
    hits = [
        hit for hit in hits if hit.id not in already and (hit.turn is None or hit.turn.role != Role.SYSTEM)
    ]
    hits.sort(key=lambda hit: _worth(hit, now), reverse=True)
    blocks = _within_budget([_block(hit, now) for hit in hits], settings)
    text = fence("\n".join(_rendered(block) for block in blocks)) if blocks else ""
    return Recall(
        query=query, text=text, blocks=tuple(blocks), conversation_history=tuple(history), degraded=degraded
    )


def _recent_turns(reader: Reader, conversation: str | None, settings: Settings, now: Instant) -> list[Turn]:
    if conversation is None:
        return []
    where = Filter(now=now, conversation=conversation)
    newest = reader.turns(where, limit=settings.recall_turns_max)
    return [shown_turn(turn) for turn in reversed(newest)]


def _worth(hit: Hit, now: Instant) -> float:
    age_days = max(0, now - to_instant(hit.at)) / DAY
    return (1 - _RECENCY_SHARE) * hit.score + _RECENCY_SHARE * math.exp2(-age_days / _RECENCY_HALF_LIFE_DAYS)


def _block(hit: Hit, now: Instant) -> Block:
    memory, turn = hit.memory, hit.turn
    text = hit.text if memory is None else memory.line
    return Block(
        id=hit.id,
        text=defang(redact(one_line(text)).text),
        kind=memory.kind.value if memory is not None else "turn",
        source="memory" if memory is not None else f"{one_line(turn.role) if turn else 'user'}-turn",
        ts=hit.at.isoformat(timespec="seconds").replace("+00:00", "Z"),
        score=round(_worth(hit, now), 4),
    )


def _within_budget(blocks: list[Block], settings: Settings) -> list[Block]:
    """The best first; one that does not fit gives way to a smaller one after it."""
    kept: list[Block] = []
    chars = 0
    for block in blocks:
        if len(kept) == settings.recall_blocks_max:
            break
        if chars + len(block.text) <= settings.recall_chars_max:
            kept.append(block)
            chars += len(block.text)
    return kept


def _rendered(block: Block) -> str:
    return f"[kind={block.kind}, source={block.source}, ts={block.ts}, score={block.score:.2f}]\n{block.text}"
