"""Client for an external memory service, configured by a `memory.json`: recall before a turn, retain after it,
forget.

Failures of a service never raise. Every call returns its outcome, logs one `memory_op` and is made once. A slow or
broken memory service must not delay a turn beyond its timeout, or break it.
"""

import asyncio
import math
import time
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import aiohttp
import msgspec
from yarl import URL

from memplane.adapters.clawdapus.injection import memory_block
from memplane.adapters.clawdapus.memory_manifest import AgentContext, MemoryManifest
from memplane.adapters.clawdapus.outcome import (
    DEADLINE,
    MemoryStatus,
    RecallOutcome,
    ServiceOutcome,
    event_of,
)
from memplane.clock import Clock, system_clock
from memplane.errors import InvalidRequest
from memplane.ledger import gojson
from memplane.ledger.gojson import Json
from memplane.ledger.history_text import decode_rewritable, reply_of, reply_text
from memplane.models.http import display_address
from memplane.safety.outgoing import ServiceBlock, govern, redact_outgoing, redact_outgoing_tree
from memplane.telemetry import Listener, log_event

# A session history entry for a memory service: the same id, without secrets. Clawdapus scrubs the request and the
# response but not tool input and output; Memplane scrubs those too.


_SCRUBBED = ("request_original", "request_effective", "response", "tool_trace")
_MEMBERS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


def scrub_entry(line: bytes) -> tuple[bytes, int]:
    """Return the entry and the number of removed secrets. A field with a secret is re-encoded with sorted keys; other
    fields keep their bytes. Raises `NotJson` or `msgspec.ValidationError` if the input is not a JSON object."""
    members = {name: bytes(raw) for name, raw in gojson.decode(line, _MEMBERS).items()}
    count = 0
    for name in _SCRUBBED:
        if name in members:
            members[name], found = _scrubbed(members[name])
            count += found
    if not count:
        return line.strip(), 0
    spelled: dict[str, Json] = dict(members)
    return gojson.encode(spelled), count


def _scrubbed(raw: bytes) -> tuple[bytes, int]:
    value = decode_rewritable(raw)
    if value is None:
        return raw, 0
    clean, count = redact_outgoing_tree(value)
    if isinstance(clean, dict) and isinstance(clean.get("text"), str):
        # A secret may be split over several events of a stream, so that no single event shows it.
        reply, spread = redact_outgoing(reply_text(clean))
        if spread:
            clean = reply_of(reply)
            count += spread
    return (gojson.encode(clean, sort_keys=True), count) if count else (raw, 0)


# Request bodies of recall, retain and forget, byte for byte as Clawdapus sends them.


class ServiceRecallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The upcoming turn. `messages` is the whole inbound array, or None if there is none."""

    context: AgentContext
    path: str
    """`openai` or `anthropic`."""
    requested_model: str = ""
    messages: Any = None
    system: Any = None
    """The system prompt of an Anthropic request."""


class ServiceRetainRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A completed turn: its line in the session history, unscrubbed."""

    context: AgentContext
    line: bytes
    requested_model: str = ""


class ServiceForgetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that the service must forget."""

    context: AgentContext
    entry_ids: tuple[str, ...]
    reason: str = ""


def recall_body(request: ServiceRecallRequest) -> bytes:
    """The recall body. Keys inside messages are sorted, as Go encodes maps."""
    metadata = _metadata(request.context, request.path, request.requested_model)
    members: dict[str, Json] = _identity_fields(request.context)
    for name, value in (("messages", request.messages), ("system", request.system)):
        if value is not None:
            members[name] = gojson.encode(value, sort_keys=True)
    return gojson.encode({**members, "metadata": metadata})


def retain_body(request: ServiceRetainRequest) -> tuple[bytes, int]:
    """The entry without secrets, and the number of secrets."""
    entry, removed = scrub_entry(request.line)
    metadata = _metadata(request.context, "retain", request.requested_model)
    if removed:
        metadata["policy_removed"] = removed
    members: dict[str, Json] = _identity_fields(request.context)
    members["metadata"] = dict(sorted(metadata.items()))
    members["entry"] = entry
    return gojson.encode(members), removed


def forget_body(request: ServiceForgetRequest) -> bytes:
    members: dict[str, Json] = _identity_fields(request.context)
    members["metadata"] = _metadata(request.context, "forget", "")
    members["entry_ids"] = list(request.entry_ids)
    if request.reason:
        members["reason"] = request.reason
    return gojson.encode(members)


def _identity_fields(context: AgentContext) -> dict[str, Json]:
    pod: dict[str, Json] = {"pod": context.pod} if context.pod else {}
    return {"agent_id": context.agent_id, **pod}


def _metadata(context: AgentContext, path: str, model: str) -> dict[str, Json]:
    members: dict[str, Json] = {"path": path}
    if model:
        members["requested_model"] = model
    members["service"] = context.service
    if context.timezone:
        members["timezone"] = context.timezone
    members["type"] = context.type
    return members


RECALL_TIMEOUT_MS = 300
RETAIN_TIMEOUT_S = 2.0
"""Timeout of a live retain; the manifest does not override it."""
REPLAY_TIMEOUT_S = 10.0
"""Default timeout of a backfill retain and of a forget; the manifest may override it."""
ANSWER_BYTES_MAX = 16_384
DETAIL_BYTES_MAX = 2_048

_KEEP_ALIVE_S = 2.0
"""Shorter than servers keep an idle connection open; otherwise a call could use a connection that is being closed."""
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "gzip",
    "User-Agent": "memplane",
}

T = TypeVar("T")


class MemoryBackend(Protocol):
    """The memory that a proxy uses: this process or an external service. Neither call raises on failure, and each
    logs one `memory_op`."""

    async def recall(self, request: ServiceRecallRequest, *, seconds_max: float = math.inf) -> RecallOutcome:
        """Recall within the backend's own timeout and the caller's remaining time."""

    async def retain(self, request: ServiceRetainRequest) -> ServiceOutcome:
        """Retain a turn, best effort; the turn is durable already."""


class _WireBlock(msgspec.Struct):
    """Accept null as absent; any other type is an error."""

    text: str | None = None
    score: float | None = None
    kind: str | None = None
    source: str | None = None
    ts: str | None = None


class _WireRecalled(msgspec.Struct):
    memories: list[_WireBlock | None] | None = None


_RECALLED: msgspec.json.Decoder[_WireRecalled | None] = msgspec.json.Decoder(_WireRecalled | None)


class _Answer(msgspec.Struct, kw_only=True):
    """A response as received, before parsing."""

    status: MemoryStatus = MemoryStatus.FAILED
    status_code: int = 0
    error: str = ""
    body: bytes = b""
    latency_ms: int = 0


class MemoryClient:
    """Calls memory services over one connection pool. Bound to the event loop of its first use."""

    def __init__(self, *, listener: Listener = log_event, clock: Clock = system_clock) -> None:
        self._listener = listener
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    def backend(self, manifest: MemoryManifest) -> MemoryBackend:
        """One service, as the proxy uses it."""
        return _ServiceBackend(self, manifest)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def recall(
        self, manifest: MemoryManifest, request: ServiceRecallRequest, *, seconds_max: float = math.inf
    ) -> RecallOutcome:
        operation = manifest.recall
        if operation is None:
            skipped = RecallOutcome(operation="recall", status=MemoryStatus.SKIPPED)
            return self._reported(manifest, request.context, request.requested_model, skipped)
        try:
            body = recall_body(request)
        except InvalidRequest as exc:
            failed = RecallOutcome(operation="recall", status=MemoryStatus.FAILED, error=str(exc))
            return self._reported(manifest, request.context, request.requested_model, failed)
        answer = await self._post(
            manifest,
            "recall",
            body,
            timeout_s=min(seconds_max, (operation.timeout_ms or RECALL_TIMEOUT_MS) / 1_000),
            answer_bytes_max=ANSWER_BYTES_MAX,
        )
        recalled = _understood(answer, manifest.service)
        return self._reported(manifest, request.context, request.requested_model, recalled)

    async def retain(
        self,
        manifest: MemoryManifest,
        request: ServiceRetainRequest,
        *,
        timeout_s: float = RETAIN_TIMEOUT_S,
        url: str | None = None,
    ) -> ServiceOutcome:
        """`url` overrides the base URL for an operator outside the pod's network."""
        model = request.requested_model
        if manifest.retain is None:
            skipped = ServiceOutcome(operation="retain", status=MemoryStatus.SKIPPED)
            return self._reported(manifest, request.context, model, skipped)
        try:
            body, removed = retain_body(request)
        except (InvalidRequest, msgspec.ValidationError) as exc:
            failed = ServiceOutcome(
                operation="retain", status=MemoryStatus.FAILED, error=f"parse entry: {exc}"
            )
            return self._reported(manifest, request.context, model, failed)
        answer = await self._post(manifest, "retain", body, timeout_s=timeout_s, url=url)
        return self._reported(manifest, request.context, model, _outcome("retain", answer, removed))

    async def forget(
        self, manifest: MemoryManifest, request: ServiceForgetRequest, *, url: str | None = None
    ) -> ServiceOutcome:
        operation = manifest.forget
        if operation is None:
            skipped = ServiceOutcome(operation="forget", status=MemoryStatus.SKIPPED)
            return self._reported(manifest, request.context, "", skipped)
        timeout_s = operation.timeout_ms / 1_000 or REPLAY_TIMEOUT_S
        answer = await self._post(manifest, "forget", forget_body(request), timeout_s=timeout_s, url=url)
        return self._reported(manifest, request.context, "", _outcome("forget", answer))

    def _reported(self, manifest: MemoryManifest, context: AgentContext, model: str, outcome: T) -> T:
        """Log the outcome and return it."""
        assert isinstance(outcome, ServiceOutcome)
        self._listener(
            event_of(
                outcome, service=manifest.service, agent=context.agent_id, model=model, now=self._clock()
            )
        )
        return outcome

    async def _post(
        self,
        manifest: MemoryManifest,
        name: str,
        body: bytes,
        *,
        timeout_s: float,
        answer_bytes_max: int = 0,
        url: str | None = None,
    ) -> _Answer:
        operation = manifest.operation(name)
        assert operation is not None
        url = url or manifest.base_url + operation.path
        started = time.perf_counter()
        answer = _Answer()
        try:
            async with asyncio.timeout(timeout_s):
                await self._exchange(url, body, manifest.token, answer, answer_bytes_max)
            answer.status = MemoryStatus.SUCCEEDED
        except TimeoutError:
            answer.error = DEADLINE
            answer.status = MemoryStatus.FAILED if answer.status_code else MemoryStatus.TIMED_OUT
        except _Refused:
            answer.error = f"{name} returned status {answer.status_code}"
        except _TooLong:
            answer.error = f"{name} response exceeds {answer_bytes_max} bytes"
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            answer.error = f'Post "{display_address(url)}": {_reason(exc)}'
        answer.latency_ms = int((time.perf_counter() - started) * 1_000)
        return answer

    async def _exchange(
        self, url: str, body: bytes, token: str, answer: _Answer, answer_bytes_max: int
    ) -> None:
        """Fill in the response as it arrives, so that a caller that times out knows how much was received."""
        headers = _HEADERS | ({"Authorization": f"Bearer {token}"} if token else {})
        # Do not follow redirects: they would send the token and the conversation to an address that is not
        # configured.
        async with self._pool().post(
            URL(url, encoded=True), data=body, headers=headers, allow_redirects=False
        ) as response:
            answer.status_code = response.status
            if response.status // 100 != 2:  # noqa: PLR2004
                answer.body = await _beginning(response)
                raise _Refused
            if answer_bytes_max:
                answer.body = await _read(response.content, answer_bytes_max)

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


class _ServiceBackend:
    def __init__(self, client: MemoryClient, manifest: MemoryManifest) -> None:
        self._client = client
        self._manifest = manifest

    async def recall(self, request: ServiceRecallRequest, *, seconds_max: float = math.inf) -> RecallOutcome:
        return await self._client.recall(self._manifest, request, seconds_max=seconds_max)

    async def retain(self, request: ServiceRetainRequest) -> ServiceOutcome:
        return await self._client.retain(self._manifest, request)


class BlockingMemoryClient:
    """The same client for commands, which run without an event loop."""

    def __init__(self, *, listener: Listener = log_event, clock: Clock = system_clock) -> None:
        self._runner = asyncio.Runner()
        self._client = MemoryClient(listener=listener, clock=clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._client.close())
        self._runner.close()

    def recall(self, manifest: MemoryManifest, request: ServiceRecallRequest) -> RecallOutcome:
        return self._run(self._client.recall(manifest, request))

    def retain(
        self, manifest: MemoryManifest, request: ServiceRetainRequest, *, url: str | None = None
    ) -> ServiceOutcome:
        """Retain with the timeout of a backfill."""
        operation = manifest.retain
        timeout_s = (operation.timeout_ms / 1_000 if operation else 0) or REPLAY_TIMEOUT_S
        return self._run(self._client.retain(manifest, request, timeout_s=timeout_s, url=url))

    def forget(
        self, manifest: MemoryManifest, request: ServiceForgetRequest, *, url: str | None = None
    ) -> ServiceOutcome:
        return self._run(self._client.forget(manifest, request, url=url))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)


class _Refused(Exception):
    """The service responded with a status other than 2xx."""


class _TooLong(Exception):
    """The response exceeds the size limit."""


async def _read(content: aiohttp.StreamReader, bytes_max: int) -> bytes:
    body = bytearray()
    async for piece in content.iter_any():
        body += piece
        if len(body) > bytes_max:
            raise _TooLong
    return bytes(body)


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """Read the body of an error response as far as possible; the status is known already."""
    body = bytearray()
    try:
        async for piece in response.content.iter_any():
            body += piece
            if len(body) >= DETAIL_BYTES_MAX:
                break
    except aiohttp.ClientError:
        pass
    return bytes(body[:DETAIL_BYTES_MAX])


def _outcome(operation: str, answer: _Answer, removed: int = 0) -> ServiceOutcome:
    return ServiceOutcome(
        operation=operation,
        status=answer.status,
        status_code=answer.status_code,
        latency_ms=answer.latency_ms,
        error=answer.error,
        detail=answer.body.decode("utf-8", "replace").strip(),
        removed=removed,
    )


def _understood(answer: _Answer, service: str) -> RecallOutcome:
    """Parse and govern the blocks of a response. One wrong type rejects the whole response."""
    if answer.status is MemoryStatus.SUCCEEDED:
        try:
            if not answer.body:
                raise gojson.NotJson("unexpected end of JSON input")
            found = gojson.decode(answer.body, _RECALLED)
        except (gojson.NotJson, msgspec.ValidationError) as exc:
            answer.status, answer.error = MemoryStatus.FAILED, f"parse recall response: {exc}"
    outcome = _outcome("recall", answer)
    if not outcome.ok:
        return RecallOutcome(**msgspec.structs.asdict(outcome))
    blocks = [_block(it) for it in (found.memories if found else None) or ()]
    governed = govern(blocks)
    fields = msgspec.structs.asdict(outcome) | {"removed": governed.removed, "detail": ""}
    text = memory_block(service, governed.blocks)
    return RecallOutcome(**fields, blocks=governed.blocks, returned=len(blocks), text=text)


def _block(it: _WireBlock | None) -> ServiceBlock:
    if it is None:
        return ServiceBlock()
    return ServiceBlock(
        text=it.text or "", score=it.score or 0.0, kind=it.kind or "", source=it.source or "", ts=it.ts or ""
    )


def _reason(error: Exception) -> str:
    """The reason without the URL, which may contain a password."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    said = cause.strerror if isinstance(cause, OSError) else None
    return said.lower() if said else type(cause).__name__
