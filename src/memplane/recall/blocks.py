"""A recall as blocks, each with a source and a score, for agents that assemble their own prompt."""

import math
from collections.abc import Iterable
from datetime import datetime

from memplane.config import Settings
from memplane.documents.result import SpanHit
from memplane.extract.narrate import narrated
from memplane.recall.render import Sanitizer, mark, passage
from memplane.recall.result import Limits, RecallBlock, RecallHit
from memplane.safety.injection import marked
from memplane.safety.outgoing import ServiceBlock
from memplane.safety.provenance import source_mark, source_of, source_of_turn


def blocks_of(
    hits: Iterable[RecallHit | SpanHit], limits: Limits, settings: Settings, tame: Sanitizer
) -> tuple[RecallBlock, ...]:
    """The best blocks first; one that does not fit is skipped for a smaller one."""
    blocks_max = settings.recall_blocks_max if limits.blocks is None else limits.blocks
    bytes_left = math.inf if limits.bytes is None else limits.bytes
    kept: list[RecallBlock] = []
    chars = 0
    for hit in hits:
        if len(kept) == blocks_max:
            break
        block = _block(hit, tame) if isinstance(hit, RecallHit) else _span_block(hit, tame)
        size = len(block.text.encode("utf-8"))
        if chars + len(block.text) <= settings.recall_chars_max and size <= bytes_left:
            kept.append(block)
            chars += len(block.text)
            bytes_left -= size
    return tuple(kept)


def as_recalled(blocks: Iterable[RecallBlock]) -> list[ServiceBlock]:
    """The blocks as a memory service would return them, so the proxy governs them like any other."""
    return [
        ServiceBlock(text=block.text, score=block.score, kind=block.kind, source=block.source, ts=block.ts)
        for block in blocks
    ]


def _block(hit: RecallHit, tame: Sanitizer) -> RecallBlock:
    memory, turn = hit.memory, hit.turn
    if memory is not None:
        text, kind, source, at = narrated(memory), memory.kind.value, "memory", memory.updated_at
        origin = source_mark(source_of(memory))
    else:
        assert turn is not None
        text, kind, source, at = turn.text, "turn", f"{tame(turn.role)}-turn", turn.at
        origin = source_mark(source_of_turn(turn))
    shown = f"{tame.short(text)}{origin}{mark(hit, tame)}"
    return RecallBlock(
        id=hit.id,
        text=f"{marked(hit.flags)} {shown}" if hit.flags else shown,
        kind=kind,
        source=source,
        ts=_when(at),
        score=0.0 if hit.flags else round(hit.probability, 4),  # a client that sorts by score keeps it last
    )


def _span_block(hit: SpanHit, tame: Sanitizer) -> RecallBlock:
    return RecallBlock(
        id=hit.span.id,
        text=passage(hit, tame).removeprefix("- "),
        kind="span",
        source="document",
        ts=_when(hit.updated_at),
        score=_likely(hit.score),
    )


def _when(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _likely(score: float) -> float:
    """A score between 0 and 1."""
    return round(1 / (1 + math.exp(-score / 2)), 4)
