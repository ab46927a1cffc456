"""Before a turn: what memory has to say to it, in time or not at all.

Nothing in here is ever a reason for a turn to fail. What goes wrong is in the telemetry, and the turn goes on without.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from memplane.config import Settings
from memplane.doors.http.proxy.apis import Asked
from memplane.doors.http.timebox import TimeBox
from memplane.engine import Engine
from memplane.errors import MemplaneError
from memplane.governance.events import Listener
from memplane.governance.fence import SERVICE, fence
from memplane.governance.outgoing import RecalledBlock, govern
from memplane.recall.blocks import as_recalled
from memplane.recall.result import Limits, Recall
from memplane.services.contexts import Contexts
from memplane.services.injection import NOTICE, memory_block, runtime_context
from memplane.services.manifest import AgentContext, ManifestInvalid, MemoryManifest
from memplane.services.memory_client import Backend, MemoryClient
from memplane.services.outcome import DEADLINE, MemoryStatus, Outcome, Recalled, event_of
from memplane.services.requests import RecallRequest, RetainRequest
from memplane.space import Space

_LIMITS = Limits(blocks=16, bytes=16_384)
"""Twice what is told: some of it may stand in the conversation already."""
_REMEMBERED_MAX = 4_096

T = TypeVar("T")


class Recent(Generic[T]):
    """The values asked for last."""

    def __init__(self, most: int = _REMEMBERED_MAX) -> None:
        self._most = most
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable) -> T | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: Hashable, value: T) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)


class Pinned(NamedTuple):
    """What was told, and how much had been forgotten by then."""

    generation: int
    text: str


class Told:
    """What goes into the prompt, and where the turn is retained besides our own ledger."""

    def __init__(self, brief: str = "", context: str = "", backend: Backend | None = None) -> None:
        self.brief = brief
        self.context = context
        self.backend = backend
        """A memory service of somebody else's; None is this process."""
        self.agent = AgentContext(agent_id="")


class Teller:
    """Recalls for turns, from this process or from the service that an agent's `memory.json` names."""

    def __init__(self, plane: Engine, settings: Settings, listener: Listener) -> None:
        self._plane = plane
        self._settings = settings
        self._listener = listener
        self._client = MemoryClient(listener=listener, clock=plane.clock)
        self._seconds = settings.proxy_recall_ms / 1_000
        self._box: TimeBox[Recall] = TimeBox()
        self._briefs: Recent[Pinned] = Recent()
        self._told: Recent[Pinned] = Recent()
        self._contexts = Contexts(settings.claw_context_root)

    async def tell(self, space: Space, asked: Asked, conversation: str, *, may_read: bool) -> Told:
        """`conversation` names it among those of the space."""
        told = Told()
        manifest, told.agent = self._manifest_of(space, asked.model)
        if manifest is not None:
            told.backend = self._client.backend(manifest)
        if not may_read:
            return told
        until = asyncio.get_running_loop().time() + self._seconds
        backend = told.backend or _EngineBackend(self, space, asked, until)
        briefing = asyncio.ensure_future(
            self._brief(space, asked, conversation, external=manifest is not None)
        )
        told.context = await self._context(space, asked, conversation, backend, told.agent)
        told.brief = await briefing
        return told

    async def retain(self, told: Told, line: bytes, model: str) -> None:
        """Tell the agent's own memory service of a turn that is in the ledger."""
        if told.backend is not None:
            await told.backend.retain(RetainRequest(context=told.agent, line=line, requested_model=model))

    async def close(self) -> None:
        await self._client.close()
        await asyncio.to_thread(self._box.close)

    # ── what bears on this turn ──────────────────────────────────────────────────────────────────────────────

    async def _context(
        self, space: Space, asked: Asked, conversation: str, backend: Backend, agent: AgentContext
    ) -> str:
        """Between the calls of an agent's tools the same is told again, byte for byte, since it stands before them."""
        place = (space.tenant, space.owner, conversation, asked.question)
        before = self._told.get(place) if asked.goes_on else None
        generation = None
        if asked.has_tools:  # read before the recall: what is forgotten between the two is not told again
            generation = await self._box.glance(_generation_of, self._plane, space, seconds=self._seconds)
        if before is not None and before.generation == generation:
            return before.text
        system = asked.body.get("system")
        recalled = await backend.recall(
            RecallRequest(
                context=agent,
                path="anthropic" if system is not None or asked.api == "messages" else "openai",
                requested_model=asked.model,
                messages=asked.body.get("messages", asked.body.get("input")),
                system=system if asked.api == "messages" else None,
            )
        )
        text = recalled.text
        told = runtime_context([text], now=self._plane.clock(), timezone=agent.timezone) if text else ""
        if generation is not None:
            self._told.put(place, Pinned(generation, told))
        return told

    async def recalled(self, space: Space, asked: Asked, until: float) -> Recalled:
        """From this process, until then by the clock of the loop."""
        left_s = until - asyncio.get_running_loop().time()
        found = None
        try:
            if left_s > 0:
                found = await self._box.awaited(
                    lambda: _if_there(
                        self._plane, space, lambda: space.recall(asked.question, limits=_LIMITS)
                    ),
                    lambda: _if_there(
                        self._plane, space, lambda: space.recall_by_words(asked.question, limits=_LIMITS)
                    ),
                    seconds=left_s,
                )
        except Exception as exc:  # noqa: BLE001 - whatever is wrong with memory, the turn goes on; the engine told of it
            code = exc.code if isinstance(exc, MemplaneError) else type(exc).__name__
            return Recalled(operation="recall", status=MemoryStatus.FAILED, error=code)
        if found is None:
            late = Recalled(
                operation="recall",
                status=MemoryStatus.TIMED_OUT,
                latency_ms=self._settings.proxy_recall_ms,
                error=DEADLINE,
            )
            self._tell(late, space.owner, asked.model)
            return late
        blocks = as_recalled(found.blocks)
        governed = govern(_news(blocks, asked))
        return Recalled(
            operation="recall",
            status=MemoryStatus.SUCCEEDED,
            blocks=governed.blocks,
            returned=len(blocks),
            removed=governed.removed,
            text=memory_block(SERVICE, governed.blocks),
        )

    # ── what a conversation begins with ──────────────────────────────────────────────────────────────────────

    async def _brief(self, space: Space, asked: Asked, conversation: str, *, external: bool) -> str:
        """The same bytes in every request of a conversation, whatever is remembered meanwhile: it stands before all of
        it, and a provider's cache goes by that."""
        if external or not self._settings.proxy_brief or asked.kept_elsewhere:
            return ""
        place = (space.tenant, space.owner, conversation)
        before = None if asked.begins else self._briefs.get(place)
        found = await self._box.glance(_brief_of, self._plane, space, before, seconds=self._seconds)
        if found is None:
            return ""
        self._briefs.put(place, found)
        return found.text

    def _manifest_of(self, space: Space, model: str) -> tuple[MemoryManifest | None, AgentContext]:
        try:
            return self._contexts.of(space.owner, tenant=space.tenant)
        except ManifestInvalid as exc:
            invalid = Recalled(operation="recall", status=MemoryStatus.FAILED, error=str(exc))
            self._tell(invalid, space.owner, model, service="")
            return None, AgentContext(agent_id=space.owner)

    def _tell(self, outcome: Recalled, owner: str, model: str, *, service: str = SERVICE) -> None:
        """What the engine does not know of, and therefore does not tell."""
        now = self._plane.clock()
        self._listener(event_of(outcome, service=service, agent=owner, model=model, now=now))


class _EngineBackend:
    """`Backend` over this process. The ledger is written by the keeper, so retaining is done already."""

    service = SERVICE

    def __init__(self, teller: Teller, space: Space, asked: Asked, until: float) -> None:
        self._teller = teller
        self._until = until
        self._space = space
        self._asked = asked

    async def recall(self, request: RecallRequest) -> Recalled:  # noqa: ARG002 - what is asked is known in full
        return await self._teller.recalled(self._space, self._asked, self._until)

    async def retain(self, request: RetainRequest) -> Outcome:  # noqa: ARG002
        return Outcome(operation="retain", status=MemoryStatus.SKIPPED)


def _if_there(plane: Engine, space: Space, work: Callable[[], Recall]) -> Recall:
    """A look must not create a space."""
    if not plane.has_space(space.owner, tenant=space.tenant):
        return Recall(query="", text="")
    return work()


def _generation_of(plane: Engine, space: Space) -> int:
    return space.generation() if plane.has_space(space.owner, tenant=space.tenant) else 0


def _brief_of(plane: Engine, space: Space, before: Pinned | None) -> Pinned:
    """What was told before, unless something was forgotten since: then it is made anew, whatever a cache costs."""
    generation = _generation_of(plane, space)
    if before is not None and before.generation == generation:
        return before
    markdown = space.brief().markdown if plane.has_space(space.owner, tenant=space.tenant) else ""
    return Pinned(generation, f"{NOTICE}\n\n{fence(markdown.strip())}" if markdown else "")


def _news(blocks: list[RecalledBlock], asked: Asked) -> list[RecalledBlock]:
    """What the conversation does not say already."""
    said = " ".join(" ".join(asked.texts()).split())
    return [block for block in blocks if " ".join(block.text.split()) not in said]
