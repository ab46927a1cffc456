"""Before a turn: recall memory within the timeout, or continue without it.

No failure here may fail a turn. Failures are logged in the telemetry, and the turn continues without memory.
"""

import asyncio
import hashlib
import math
import time
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from memplane.adapters.clawdapus.injection import NOTICE, memory_block, runtime_context
from memplane.adapters.clawdapus.memory_client import (
    RECALL_TIMEOUT_MS,
    MemoryBackend,
    MemoryClient,
    ServiceRecallRequest,
    ServiceRetainRequest,
)
from memplane.adapters.clawdapus.memory_manifest import (
    AgentContext,
    Contexts,
    ManifestInvalid,
    MemoryManifest,
)
from memplane.adapters.clawdapus.outcome import (
    DEADLINE,
    MemoryStatus,
    RecallOutcome,
    ServiceOutcome,
    event_of,
)
from memplane.config import Settings
from memplane.engine import Engine
from memplane.errors import MemplaneError
from memplane.recall.blocks import as_recalled
from memplane.recall.request import RecallRequest
from memplane.recall.result import Limits, Recall
from memplane.recall.timebox import TimeBox
from memplane.safety.fence import SERVICE, fence
from memplane.safety.outgoing import BLOCKS_MAX, ServiceBlock, govern
from memplane.space import Space
from memplane.telemetry import Listener
from memplane.types import PinnedTexts

# The parts of a turn request that memory needs; an adapter reads them from its API's format.


class TurnRequest(Protocol):
    """An upcoming turn."""

    @property
    def model(self) -> str:
        """The agent's own name for the space."""

    @property
    def question(self) -> str:
        """The recall query: the last user message."""

    @property
    def is_first(self) -> bool:
        """Whether the conversation has no response yet."""

    @property
    def continues(self) -> bool:
        """Whether the agent still works on an earlier user message, as it does between tool calls."""

    @property
    def has_tools(self) -> bool:
        """Whether the agent may return tool results before the next user message."""

    @property
    def stored_by_provider(self) -> bool:
        """Whether the provider stores the conversation, and this turn has only its newest part."""

    @property
    def style(self) -> str:
        """The message format: `openai` or `anthropic`."""

    @property
    def inbound(self) -> Any:
        """The original messages, for an external memory service."""

    @property
    def system(self) -> Any:
        """The system prompt if it is not a message; None otherwise."""

    def texts(self) -> list[str]:
        """All text in the request, which need not be injected again."""


def digest_of(*parts: str) -> str:
    """An opaque digest; different parts give different digests."""
    hashed = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        hashed.update(len(raw).to_bytes(8, "big") + raw)
    return hashed.hexdigest()


_LIMITS = Limits(blocks=16, bytes=16_384)
"""Twice the number of injected blocks, because the conversation may already contain some."""
_LOOKUP_SHARE = 1 / 3
"""The share of the timeout for lookups before the recall."""


class Injection(msgspec.Struct, kw_only=True):
    """The context for the prompt, and the external service that the turn is retained in."""

    agent: AgentContext
    backend: MemoryBackend | None = None
    """An external memory service; None means this process."""
    brief: str = ""
    context: str = ""
    recalled: RecallOutcome | None = None
    """The recall behind the context; None if there was none for this turn."""
    pins: PinnedTexts | None = None
    """The text to repeat in later turns of the conversation, stored with this turn."""


class _PinnedState(msgspec.Struct, frozen=True):
    """The earlier injection, and the brief at the start of the conversation."""

    pins: PinnedTexts
    brief: str | None
    """None if this conversation has no brief."""


class _PinKeys(msgspec.Struct, frozen=True):
    """The keys of pinned injections. A conversation has one slot per type, so that a long conversation does not evict
    others."""

    brief: str
    context: str

    @classmethod
    def of(cls, conversation: str) -> "_PinKeys":
        return cls(digest_of("brief", conversation), digest_of("context", conversation))


class Injector:
    """Recalls for turns, from this process or from the service in an agent's `memory.json`."""

    def __init__(self, plane: Engine, settings: Settings, listener: Listener) -> None:
        self._plane = plane
        self._settings = settings
        self._listener = listener
        self._client = MemoryClient(listener=listener, clock=plane.clock)
        self._box: TimeBox[Recall] = TimeBox()
        self._contexts = Contexts(settings.claw_context_root)

    async def inject(
        self, space: Space, turn: TurnRequest, conversation: str, *, may_read: bool
    ) -> Injection:
        """`conversation` is its name within the space. All steps share one timeout: the external service's if there
        is one."""
        manifest, agent = self._manifest_of(space, turn.model)
        injection = Injection(
            agent=agent, backend=None if manifest is None else self._client.backend(manifest)
        )
        if not may_read:
            return injection
        with self._plane.answering():
            await self._fill(injection, space, turn, conversation, self._seconds_for(manifest))
        return injection

    async def _fill(
        self, injection: Injection, space: Space, turn: TurnRequest, conversation: str, seconds: float
    ) -> None:
        until = asyncio.get_running_loop().time() + seconds
        places = _PinKeys.of(conversation)
        looking = asyncio.ensure_future(self._load_pins(space, turn, places, injection, seconds))
        before = None
        if turn.has_tools:  # looked before the recall: what is forgotten between the two is not pinned
            looked = await looking
            before = None if looked is None else _context_in(looked.pins.texts.get(places.context), turn)
        if before is not None and turn.continues:
            injection.context = before
        else:
            await self._recall(space, turn, injection, until)
        self._pin(injection, turn, places, await looking)

    async def retain(self, injection: Injection, line: bytes, model: str) -> None:
        """Retain a turn in the agent's external memory service. The ledger already has it."""
        if injection.backend is not None:
            await injection.backend.retain(
                ServiceRetainRequest(context=injection.agent, line=line, requested_model=model)
            )

    async def close(self) -> None:
        await self._client.close()
        await asyncio.to_thread(self._box.close)

    # ── recall for this turn ─────────────────────────────────────────────────────────────────────────────────

    async def _recall(self, space: Space, turn: TurnRequest, injection: Injection, until: float) -> None:
        backend = injection.backend or _EngineBackend(self, space, turn)
        request = ServiceRecallRequest(
            context=injection.agent,
            path=turn.style,
            requested_model=turn.model,
            messages=turn.inbound,
            system=turn.system,
        )
        left_s = until - asyncio.get_running_loop().time()
        injection.recalled = await backend.recall(request, seconds_max=left_s)
        if injection.recalled.text:
            injection.context = runtime_context(
                [injection.recalled.text], now=self._plane.clock(), timezone=injection.agent.timezone
            )

    async def recalled(self, space: Space, turn: TurnRequest, seconds: float) -> RecallOutcome:
        """Recall from this process."""
        started, found, quiet = time.perf_counter(), None, space.silent()
        try:
            if seconds > 0:
                request = RecallRequest(query=turn.question, limits=_LIMITS)
                found = await self._box.awaited(
                    lambda: _if_exists(self._plane, quiet, lambda: quiet.recall(request)),
                    lambda: _if_exists(self._plane, quiet, lambda: quiet.recall_by_words(request)),
                    seconds=seconds,
                )
            outcome = _late() if found is None else _governed(found, turn)
        except Exception as exc:  # noqa: BLE001 - a memory failure must not fail the turn
            code = exc.code if isinstance(exc, MemplaneError) else type(exc).__name__
            outcome = RecallOutcome(operation="recall", status=MemoryStatus.FAILED, error=code)
        latency_ms = int((time.perf_counter() - started) * 1_000)
        outcome = msgspec.structs.replace(outcome, latency_ms=latency_ms)
        self._report(outcome, space.owner, turn.model)
        return outcome

    # ── pinned injections ────────────────────────────────────────────────────────────────────────────────────

    async def _load_pins(
        self, space: Space, turn: TurnRequest, places: _PinKeys, injection: Injection, seconds: float
    ) -> _PinnedState | None:
        """None if the space does not respond in time. The brief precedes the whole conversation, and the provider's
        cache depends on it. So it has the same bytes in every request of the conversation, in every process, whatever
        is stored in between."""
        briefed = injection.backend is None and self._settings.proxy_brief and not turn.stored_by_provider
        if not briefed and not turn.has_tools:
            return None
        share = _LOOKUP_SHARE if turn.has_tools else 1.0
        looked = await self._box.quick(
            _pinned, self._plane, space, turn, places, briefed, seconds=seconds * share
        )
        if looked is not None:
            injection.brief = looked.brief or ""
        return looked

    def _pin(
        self, injection: Injection, turn: TurnRequest, places: _PinKeys, looked: _PinnedState | None
    ) -> None:
        """Injections that are not pinned yet. Between an agent's tool calls the same recall is repeated, because it
        precedes them. A brief sent with it is pinned again, so that it does not become one of the oldest."""
        if looked is None:
            return
        texts: dict[str, str] = {}
        if turn.has_tools and injection.recalled is not None:
            texts[places.context] = _pinned_context(turn, injection.context)
        if looked.brief is not None and (texts or looked.pins.texts.get(places.brief) != looked.brief):
            texts[places.brief] = looked.brief
        if texts:
            injection.pins = PinnedTexts(erasures=looked.pins.erasures, texts=texts)

    def _seconds_for(self, manifest: MemoryManifest | None) -> float:
        if manifest is None or manifest.recall is None:
            return self._settings.proxy_recall_ms / 1_000
        return (manifest.recall.timeout_ms or RECALL_TIMEOUT_MS) / 1_000

    def _manifest_of(self, space: Space, model: str) -> tuple[MemoryManifest | None, AgentContext]:
        try:
            return self._contexts.of(space.owner, tenant=space.tenant)
        except ManifestInvalid as exc:
            invalid = RecallOutcome(operation="recall", status=MemoryStatus.FAILED, error=str(exc))
            self._report(invalid, space.owner, model, service="")
            return None, AgentContext(agent_id=space.owner)

    def _report(self, outcome: RecallOutcome, owner: str, model: str, *, service: str = SERVICE) -> None:
        """Log one `memory_op` per turn. The engine knows neither the model nor how its blocks are used."""
        now = self._plane.clock()
        self._listener(event_of(outcome, service=service, agent=owner, model=model, now=now))


class _EngineBackend:
    """`MemoryBackend` for this process. The recorder writes the ledger, so retain has nothing left to do."""

    service = SERVICE

    def __init__(self, injector: Injector, space: Space, turn: TurnRequest) -> None:
        self._injector = injector
        self._space = space
        self._turn = turn

    async def recall(self, request: ServiceRecallRequest, *, seconds_max: float = math.inf) -> RecallOutcome:  # noqa: ARG002 - the request is already known
        return await self._injector.recalled(self._space, self._turn, seconds_max)

    async def retain(self, request: ServiceRetainRequest) -> ServiceOutcome:  # noqa: ARG002
        return ServiceOutcome(operation="retain", status=MemoryStatus.SKIPPED)


def _late() -> RecallOutcome:
    return RecallOutcome(operation="recall", status=MemoryStatus.TIMED_OUT, error=DEADLINE)


def _governed(found: Recall, turn: TurnRequest) -> RecallOutcome:
    """Blocks that the conversation already contains, or beyond the first eight, do not count as returned."""
    blocks = _new_blocks(as_recalled(found.blocks), turn)[:BLOCKS_MAX]
    governed = govern(blocks)
    return RecallOutcome(
        operation="recall",
        status=MemoryStatus.SUCCEEDED,
        blocks=governed.blocks,
        returned=len(blocks),
        removed=governed.removed,
        text=memory_block(SERVICE, governed.blocks),
    )


def _if_exists(plane: Engine, space: Space, work: Callable[[], Recall]) -> Recall:
    """Reading must not create a space."""
    if not plane.has_space(space.owner, tenant=space.tenant):
        return Recall(query="", text="")
    return work()


def _pinned(plane: Engine, space: Space, turn: TurnRequest, places: _PinKeys, briefed: bool) -> _PinnedState:  # noqa: FBT001
    """The earlier injection, unless memory was forgotten since. Then it is rebuilt even if that misses the provider's
    cache. A conversation may also restart under the same name."""
    if not plane.has_space(space.owner, tenant=space.tenant):
        return _PinnedState(PinnedTexts(), "" if briefed else None)
    pins = space.ledger.pinned_texts((places.brief, places.context))
    if not briefed:
        return _PinnedState(pins, None)
    before = None if turn.is_first else pins.texts.get(places.brief)
    return _PinnedState(pins, _brief_of(space) if before is None else before)


def _brief_of(space: Space) -> str:
    markdown = space.silent().brief().markdown
    return f"{NOTICE}\n\n{fence(markdown.strip())}" if markdown else ""


def _pinned_context(turn: TurnRequest, context: str) -> str:
    """Pin the recall with its question; the next question gets another recall."""
    return f"{digest_of(turn.question)}\n{context}"


def _context_in(pinned: str | None, turn: TurnRequest) -> str | None:
    """The earlier recall for the same question, which may have been empty."""
    question, _, context = (pinned or "").partition("\n")
    return context if question == digest_of(turn.question) else None


def _new_blocks(blocks: list[ServiceBlock], turn: TurnRequest) -> list[ServiceBlock]:
    """Blocks that the conversation does not contain yet."""
    said = " ".join(" ".join(turn.texts()).split())
    return [block for block in blocks if " ".join(block.text.split()) not in said]
