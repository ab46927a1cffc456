"""Relay a request to a provider and its response to the client: the bytes unchanged, with memory added."""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any

import aiohttp
import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Send

from memplane.adapters.proxy.answer import ProviderResponse, UsageReader
from memplane.adapters.proxy.apis import ChatRequest
from memplane.adapters.proxy.headers import (
    RECALL_HEADER,
    RECALLED_HEADER,
    encode_blocks,
    summary_of,
    to_client,
    to_upstream,
)
from memplane.adapters.proxy.injection import Injection, Injector
from memplane.adapters.proxy.prices import Prices
from memplane.adapters.proxy.recorder import TurnRecorder
from memplane.adapters.proxy.relay import ProviderClient, ProviderDisconnected, next_piece, pieces_of
from memplane.adapters.proxy.request import ProxyRequest, decoded
from memplane.adapters.proxy.turn import ABORTED, ProxyTurn
from memplane.adapters.proxy.upstreams import Upstream
from memplane.auth.principal import Right
from memplane.clock import Clock
from memplane.config import Settings
from memplane.ledger.history_text import FAILED
from memplane.server.errors import HttpError
from memplane.space import Space
from memplane.telemetry import Charge, PassedListener, ProviderCall

ADAPTER = "proxy"

_SEND_SECONDS_MAX = 60.0
_END_SECONDS = 0.25
"""How long to wait for the end of a stream after its end marker."""
_CLOSING_S = 5.0


class ProxyServices:
    """Shared state of all relayed requests while the server runs."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        passed: PassedListener,
        *,
        relay: ProviderClient,
        injector: Injector,
        recorder: TurnRecorder,
        prices: Prices,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.passed = passed
        self.relay = relay
        self.injector = injector
        self.recorder = recorder
        self.prices = prices
        self._tasks: set[asyncio.Future[None]] = set()

    def later(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run a task to completion even if its caller is cancelled."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        await self.relay.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSING_S)
        await self.recorder.close()
        await self.injector.close()


class Carrier:
    """Relays one request to a provider and the response to the client."""

    def __init__(
        self,
        parts: ProxyServices,
        request: ProxyRequest,
        upstream: Upstream,
        provider_keys: frozenset[str],
        send: Send,
    ) -> None:
        self._parts = parts
        self._request = request
        self._upstream = upstream
        self._provider_keys = provider_keys
        self._send = send

    async def without_memory(self, content: bytes | None, model: str) -> None:
        """Relay bytes only. The usage is read on the way."""
        operation = self._request.operation
        if operation is None:
            async with await self._call_provider(content, readable=False) as response:
                await self._start(response)
                await self._pass_rest(response)
            return
        tally, status, outcome = UsageReader(encoding=""), 0, "failed"
        try:
            async with await self._call_provider(content, readable=False) as response:
                status, outcome = response.status, "refused"
                await self._start(response)
                if status // 100 == 2:  # noqa: PLR2004
                    outcome = ABORTED
                    tally = UsageReader(encoding=response.headers.get("content-encoding", ""))
                if await self._pass_rest(response, tally) and outcome == ABORTED:
                    outcome = "ok"
        finally:
            self._count(operation, model, status, outcome, charge=tally.charge())

    async def with_memory(self, chat_request: ChatRequest, model: str | None, space: Space) -> None:
        parts = self._parts
        at = parts.clock()
        conversation = space.caller.session
        may_read = self._request.principal.allows(Right.READ, adapter=ADAPTER, space=space.owner)
        injection = await parts.injector.inject(
            space, chat_request, conversation or chat_request.opening, may_read=may_read
        )
        changes = await decoded(
            chat_request.raw, chat_request.with_memory, injection.brief, injection.context
        )
        if model is not None:
            changes += chat_request.with_model(model)
        turn = ProxyTurn(
            chat_request,
            at=at,
            tenant=space.tenant,
            owner=space.owner,
            actor=space.caller.actor,
            conversation=conversation,
            path=self._request.path,
            upstream=self._upstream.name,
            model=model or chat_request.model,
            effective=chat_request.effective(changes),
            entry_bytes_max=parts.settings.entry_bytes_max,
            pins=injection.pins,
        )
        await self._forward(turn, injection)

    async def _forward(self, turn: ProxyTurn, injection: Injection) -> None:
        try:
            response = await self._call_provider(turn.effective, readable=True)
        except HttpError:
            self._report(turn, "failed")
            raise
        async with response:
            turn.status_code = response.status
            await self._start(response, self._recall_headers(injection))
            if response.status // 100 != 2:  # noqa: PLR2004 - failed turns are not recorded
                await self._pass_rest(response)
                self._report(turn, "refused")
                return
            turn.answer = ProviderResponse(
                media=response.headers.get("content-type", ""),
                encoding=response.headers.get("content-encoding", ""),
            )
            try:
                held = await self._pass_answer(response, turn)
            except ProviderDisconnected:
                self._abort(turn, injection)
                return
            except (asyncio.CancelledError, ClientDisconnect):
                self._abort(turn, injection)
                raise
            # The client may disconnect without reading the end; the turn is complete nevertheless.
            await asyncio.shield(self._parts.later(self._record(turn, injection)))
            await self._pass_end(response, held)

    async def _pass_answer(self, response: aiohttp.ClientResponse, turn: ProxyTurn) -> list[bytes]:
        """Send each chunk as it arrives, except the last, which is sent after the turn is recorded. The last chunk of
        a stream is its end marker; otherwise it is the last one received."""
        answer, held, over = turn.answer, list[bytes](), False
        while True:
            try:
                async with asyncio.timeout(_END_SECONDS if over else None):
                    piece = await next_piece(response)
            except TimeoutError:  # the stream sent its end marker but did not close
                return held
            except ProviderDisconnected:
                if over:
                    return held
                raise
            if not piece:
                return held
            over = answer.add(piece) or over
            if not answer.is_stream and held:
                await self._body(held.pop())
            if over or not answer.is_stream:
                held.append(piece)
            else:
                await self._body(piece)

    async def _pass_end(self, response: aiohttp.ClientResponse, held: list[bytes]) -> None:
        for piece in held:
            await self._body(piece)
        await self._pass_rest(response)

    async def _pass_rest(self, response: aiohttp.ClientResponse, tally: UsageReader | None = None) -> bool:
        """Whether the response ended normally. If not, the connection is closed early, as the provider's was."""
        try:
            async for piece in pieces_of(response):
                if tally is not None:
                    tally.add(piece)
                await self._body(piece)
        except ProviderDisconnected:
            return False
        await self._body(b"", more=False)
        return True

    def _abort(self, turn: ProxyTurn, injection: Injection) -> None:
        """A partial stream is recorded; any other partial response is not."""
        if turn.answer.is_stream:
            turn.status = ABORTED
            self._parts.later(self._record(turn, injection))
        else:
            self._report(turn, "failed")

    async def _record(self, turn: ProxyTurn, injection: Injection) -> None:
        in_time = await self._parts.recorder.record(lambda: turn.pending)
        self._report(turn, turn.status or "ok", kept=in_time)
        if injection.backend is not None and turn.status != FAILED:
            self._parts.later(self._parts.injector.retain(injection, turn.pending.history, turn.asked.model))

    def _report(self, turn: ProxyTurn, outcome: str, *, kept: bool | None = None) -> None:
        self._count("chat", turn.model, turn.status_code, outcome, charge=turn.charge, kept=kept)

    def _count(
        self,
        operation: str,
        model: str,
        status: int,
        outcome: str,
        *,
        charge: Charge,
        kept: bool | None = None,
    ) -> None:
        self._parts.passed(
            ProviderCall(
                upstream=self._upstream.name,
                operation=operation,
                model=model,
                status=status,
                outcome=outcome,
                seconds=time.perf_counter() - self._request.begun,
                charge=self._priced(model, charge),
                recorded=kept,
            )
        )

    def _priced(self, model: str, charge: Charge) -> Charge:
        """With the cost, if the provider does not report it and a price is configured."""
        price = self._parts.prices.of(model) if charge.cost_usd is None else None
        if price is None:
            return charge
        cost = price.of(
            prompt=charge.prompt_tokens, completion=charge.completion_tokens, cached=charge.cached_tokens
        )
        return msgspec.structs.replace(charge, cost_usd=cost)

    # ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _call_provider(self, content: bytes | None, *, readable: bool) -> aiohttp.ClientResponse:
        request, upstream = self._request, self._upstream
        headers = to_upstream(
            request.raw_headers,
            provider_keys=self._provider_keys,
            own_key=upstream.credential(speaks_anthropic=request.is_anthropic),
            readable=readable,
        )
        address = upstream.address(request.path, request.query)
        return await self._parts.relay.send(upstream, request.method, address, headers, content)

    def _recall_headers(self, injection: Injection) -> list[tuple[bytes, bytes]]:
        """The recalled memory as a header, if the client asked for it; the body is the provider's."""
        recalled = injection.recalled
        if recalled is None:
            return []
        shown = [(RECALL_HEADER.encode(), summary_of(recalled).encode())]
        if self._request.shows and recalled.blocks:
            shown.append((RECALLED_HEADER.encode(), encode_blocks(recalled).encode()))
        return shown

    async def _start(
        self, response: aiohttp.ClientResponse, more: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        headers = [*to_client(response.raw_headers), *more]
        await self._send({"type": "http.response.start", "status": response.status, "headers": headers})

    async def _body(self, piece: bytes, *, more: bool = True) -> None:
        """Drop a client that does not read, because its data is buffered in memory."""
        try:
            async with asyncio.timeout(_SEND_SECONDS_MAX):
                await self._send({"type": "http.response.body", "body": piece, "more_body": more})
        except TimeoutError as exc:
            raise ClientDisconnect from exc
