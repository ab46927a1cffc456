"""A recorded turn: one entry of the session history."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from memplane.adapters.proxy.answer import ProviderResponse
from memplane.adapters.proxy.apis import Api, ChatRequest
from memplane.adapters.proxy.recorder import PendingTurn
from memplane.clock import Instant
from memplane.ledger import gojson
from memplane.ledger.history import HistoryLine, Payload, compose_line
from memplane.ledger.history_text import FAILED
from memplane.telemetry import Charge
from memplane.types import PinnedTexts

ABORTED = "aborted"
"""The client disconnected or the stream broke: the partial response is stored and marked."""

_TEXT_CHARS_MAX = 16_384
_VALUE = msgspec.json.Decoder()
_sorted = msgspec.json.Encoder(order="sorted").encode


class ProxyTurn:
    """The request, the upstream request and the response."""

    def __init__(
        self,
        chat_request: ChatRequest,
        *,
        at: Instant,
        tenant: str,
        owner: str,
        actor: str,
        conversation: str,
        path: str,
        upstream: str,
        model: str,
        effective: bytes,
        entry_bytes_max: int,
        pins: PinnedTexts | None = None,
    ) -> None:
        self.asked = chat_request
        self.owner = owner
        self.tenant = tenant
        self.upstream = upstream
        self.model = model
        """The upstream's name for the model."""
        self.answer = ProviderResponse(media="", encoding="")
        self.status = ""
        self.status_code = 0
        self._at = at
        self._actor = actor
        self._conversation = conversation
        self._path = path
        self._pins = pins
        self.effective = effective
        self._entry_bytes_max = entry_bytes_max

    @cached_property
    def charge(self) -> Charge:
        return self.answer.charge()

    @cached_property
    def pending(self) -> PendingTurn:
        """Slow for a long conversation, so it runs in a thread."""
        if self.answer.failed():  # began as a valid response: recorded, but not remembered
            self.status = FAILED
        full = self._line(self.asked.raw, self._sorted_effective(), self.answer.payload())
        line = self._fitting(full.id)
        return PendingTurn(
            tenant=self.tenant,
            owner=self.owner,
            actor=self._actor,
            conversation=self._conversation,
            model=self.asked.model,
            line=line,
            history=full.line if len(full.line) <= self._entry_bytes_max else line,
            pins=self._pins,
        )

    def _fitting(self, id_: str) -> bytes:
        """Shorten a turn that is too long, instead of losing it. Earlier messages are removed first, because earlier
        entries have them, then images and other values too long to be text."""
        payload = self.answer.payload()
        requests: tuple[Callable[[], bytes], ...] = (
            lambda: self.asked.raw,
            self._newest,
            lambda: _cut(self._newest()),
        )
        for request in requests:
            made = self._line(request(), None, payload)
            line = made.line.replace(made.id.encode(), id_.encode(), 1)
            if len(line) <= self._entry_bytes_max:
                return line
        made = self._line(_cut(self._newest()), None, _shortened(payload))
        return made.line.replace(made.id.encode(), id_.encode(), 1)

    def _line(self, original: bytes, effective: bytes | None, payload: Payload) -> HistoryLine:
        return compose_line(
            at=self._at,
            claw_id=self.owner,
            path=self._path,
            requested_model=self.asked.model,
            effective_provider=self.upstream,
            effective_model=self.model,
            response=payload,
            status_code=self.status_code,
            stream=self.asked.stream,
            request_original=original,
            request_effective=effective,
            usage=self.charge.usage,
            status=self.status,
        )

    def _sorted_effective(self) -> bytes:
        return _sorted(gojson.decode(self.effective, _VALUE))

    def _newest(self) -> bytes:
        """The request with only the last user message and everything after it."""
        messages = self.asked.messages
        last = next((at for at in range(len(messages) - 1, -1, -1) if _has_content(messages[at])), 0)
        name = "input" if self.asked.api is Api.RESPONSES else "messages"
        return _sorted({"model": self.asked.model, name: messages[last:]})


def _has_content(message: Any) -> bool:
    return isinstance(message, dict) and message.get("role") == "user"


def _cut(raw: bytes) -> bytes:
    return _sorted(_without_long(gojson.decode(raw, _VALUE)))


def _without_long(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT_CHARS_MAX else value[:_TEXT_CHARS_MAX] + "…"
    if isinstance(value, list):
        return [_without_long(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_long(item) for name, item in value.items()}
    return value


def _shortened(payload: Payload) -> Payload:
    text = payload.json.decode("utf-8", "replace") if isinstance(payload.json, bytes) else payload.text
    return Payload(text=text[:_TEXT_CHARS_MAX])
