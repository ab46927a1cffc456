"""Recall: return a few governed blocks for the current turn, within the timeout."""

from collections.abc import Iterable, Sequence

import msgspec
from starlette.responses import Response

from memplane.adapters.clawdapus.wire import PlaneBlock, PlaneRecallRequest, PlaneRecallResponse, read
from memplane.config import Settings
from memplane.ledger.history_text import question_in
from memplane.recall.request import RecallRequest
from memplane.recall.result import Limits, Recall, RecallBlock
from memplane.recall.timebox import TimeBox
from memplane.safety.outgoing import BLOCKS_MAX, TEXT_BYTES_MAX, is_blocked
from memplane.server.endpoint import HttpCall
from memplane.server.responses import JSON
from memplane.space import Space

ANSWER_BYTES_MAX = 16_384

LATE = "time: recall was not ready in time"
_LATE_SHARE = 0.75
"""An answer that is late by this share of the limit is better than none: clients wait for twice the limit."""
_GONE_AFTER = 10
"""A request that waited this many times the limit for a thread has no client any more."""
_REASONS_MAX = 6
_REASON_CHARS_MAX = 160

_encode = msgspec.json.Encoder().encode


class PlaneRecallHandler:
    """Handles `POST /recall`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._box: TimeBox[Recall] = TimeBox()

    def handle(self, call: HttpCall) -> Response:
        asked = read(call, PlaneRecallRequest, "recall")
        space = call.existing_space(asked.agent)
        if space is None:
            return Response(content=answer_of((), ()), media_type=JSON)
        question = question_in({"messages": asked.messages, "system": asked.system})
        result = self._recall(space, question, waited_s=call.waited_s)
        if result is None:
            return Response(content=answer_of((), (LATE,)), media_type=JSON)
        return Response(content=answer_of(result.blocks, result.degraded), media_type=JSON)

    def close(self) -> None:
        self._box.close()

    def _recall(self, space: Space, question: str, *, waited_s: float) -> Recall | None:
        request = RecallRequest(query=question, limits=plane_limits(self._settings))
        limit_s = self._settings.recall_answer_ms / 1_000
        if waited_s > limit_s * _GONE_AFTER:
            return None
        return self._box.answer(
            lambda: space.recall(request),
            lambda: space.recall_by_words(request),
            seconds=limit_s - waited_s,
            late_s=limit_s * _LATE_SHARE,
        )


def plane_limits(settings: Settings) -> Limits:
    """How much the memory plane may return."""
    return Limits(blocks=min(BLOCKS_MAX, settings.recall_blocks_max), bytes=TEXT_BYTES_MAX)


def answer_of(blocks: Sequence[RecallBlock], degraded: Iterable[str]) -> bytes:
    """Fit the response into its byte limit. A block that does not fit is skipped, and smaller ones after it may be
    used."""
    reasons = [reason[:_REASON_CHARS_MAX] for reason in degraded][:_REASONS_MAX]
    left = ANSWER_BYTES_MAX - len(_encode(PlaneRecallResponse(memories=[], degraded=reasons)))
    text_left = TEXT_BYTES_MAX
    kept: list[PlaneBlock] = []
    for block in blocks:
        text = block.text.strip()
        if not text or is_blocked(block.kind, block.source) or len(kept) == BLOCKS_MAX:
            continue
        result = PlaneBlock(text=text, score=block.score, kind=block.kind, source=block.source, ts=block.ts)
        size, text_size = len(_encode(result)) + 1, len(text.encode("utf-8"))
        if size <= left and text_size <= text_left:
            kept.append(result)
            left -= size
            text_left -= text_size
    return _encode(PlaneRecallResponse(memories=kept, degraded=reasons))
