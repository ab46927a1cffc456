"""The memory plane endpoints, compatible with Clawdapus' reference service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from starlette.responses import Response

from memplane.adapters.clawdapus.backfill import HistoryBackfill
from memplane.adapters.clawdapus.describe import Descriptor, describe
from memplane.adapters.clawdapus.errors import FORMAT
from memplane.adapters.clawdapus.history_pages import history_of, own_history
from memplane.adapters.clawdapus.recall import PlaneRecallHandler
from memplane.adapters.clawdapus.snapshot import PATH, QUERY, Snapshot, Snapshots
from memplane.adapters.clawdapus.wire import (
    EXAMPLES,
    PlaneForgetBody,
    PlaneForgetRequest,
    PlaneRecallBody,
    PlaneRecallResponse,
    PlaneRetainBody,
    PlaneRetainRequest,
    bad_request,
    own_history_error,
    read,
    refuse,
    refuse_foreign,
)
from memplane.auth.principal import Right
from memplane.config import Settings
from memplane.engine import Engine
from memplane.server.endpoint import Adapter, Endpoint, HttpCall, Query
from memplane.server.responses import NDJSON, TEXT
from memplane.types import Receipt

ADAPTER = "plane"

_PATHS = (
    "/recall",
    "/retain",
    "/forget",
    "/history",
    "/history/",
    "/internal/context/",
    "/health",
    "/.claw-describe.json",
)
_ANY = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_PAGING = (
    Query(name="after", description="RFC 3339 time; only later entries are returned"),
    Query(name="limit", description="Number of entries; 100 by default, 1,000 at most"),
    Query(name="cursor", description="Instead of `after`: continue a page, in order of arrival"),
)


def adapter(plane: Engine, settings: Settings) -> Adapter:
    recaller = PlaneRecallHandler(settings)
    backfill = HistoryBackfill.of(plane, settings)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        if backfill is not None:
            backfill.start()
        try:
            yield
        finally:
            if backfill is not None:
                await anyio.to_thread.run_sync(backfill.close)
            await anyio.to_thread.run_sync(recaller.close)

    return Adapter(
        name=ADAPTER,
        title="Clawdapus: memory plane",
        routes=(*_operations(recaller), *_history(), _snapshot(Snapshots(settings)), *_open()),
        lifespan=lifespan,
        paths=_PATHS,
        errors=FORMAT,
        degraded=None if backfill is None else backfill.degraded,
    )


def _operations(recaller: PlaneRecallHandler) -> list[Endpoint]:
    return [
        Endpoint(
            method="POST",
            path="/recall",
            adapter=ADAPTER,
            summary="Recall memories for an agent's next turn",
            example=EXAMPLES["recall"],
            handle=recaller.handle,
            right=Right.READ,
            body=bytes,
            body_shown=PlaneRecallBody,
            answer=PlaneRecallResponse,
            statuses=(400,),
            refuse=refuse,
        ),
        Endpoint(
            method="POST",
            path="/retain",
            adapter=ADAPTER,
            summary="Retain an entry of an agent's session history; idempotent by entry ID",
            example=EXAMPLES["retain"],
            handle=retain,
            right=Right.WRITE,
            body=bytes,
            body_shown=PlaneRetainBody,
            answer_media=TEXT,
            answer_status=202,
            statuses=(400,),
            refuse=refuse,
        ),
        Endpoint(
            method="POST",
            path="/forget",
            adapter=ADAPTER,
            summary="Forget entries permanently; a later replay does not restore them",
            example=EXAMPLES["forget"],
            handle=forget,
            right=Right.WRITE,
            body=bytes,
            body_shown=PlaneForgetBody,
            answer_media=TEXT,
            answer_status=204,
            statuses=(400,),
            refuse=refuse,
        ),
    ]


def _history() -> list[Endpoint]:
    return [
        Endpoint(
            method="GET",
            path="/history",
            adapter=ADAPTER,
            summary="Get the calling agent's session history",
            handle=own_history,
            right=Right.READ,
            answer_media=NDJSON,
            query=_PAGING,
            statuses=(400, 404),
            refuse=own_history_error,
        ),
        Endpoint(
            method="GET",
            path="/history/{agent}",
            adapter=ADAPTER,
            summary="Get the session history of an agent",
            handle=history_of,
            right=Right.READ,
            answer_media=NDJSON,
            query=_PAGING,
            statuses=(400, 404),
            refuse=refuse_foreign,
        ),
    ]


def _snapshot(snapshots: Snapshots) -> Endpoint:
    return Endpoint(
        method="GET",
        path=PATH,
        adapter=ADAPTER,
        summary="Get the memory that an agent would be given now",
        handle=snapshots.handle,
        right=Right.READ,
        answer=Snapshot,
        query=QUERY,
        statuses=(404,),
        refuse=refuse_foreign,
    )


def _open() -> list[Endpoint]:
    return [
        Endpoint(
            method=_ANY,
            path="/health",
            adapter=ADAPTER,
            summary="Health check",
            handle=lambda _call: Response(media_type=TEXT),
            right=None,
            answer_media=TEXT,
        ),
        Endpoint(
            method="GET",
            path="/.claw-describe.json",
            adapter=ADAPTER,
            summary="Service descriptor for a pod",
            handle=describe,
            right=None,
            answer=Descriptor,
        ),
    ]


def retain(call: HttpCall) -> Response:
    """Store an entry. It is durable when the response is sent. Known and forgotten entries get the same response and
    change nothing."""
    asked = read(call, PlaneRetainRequest, "retain")
    space = call.space(asked.agent)
    space.retain_entry(bytes(asked.entry))
    return Response(status_code=202, media_type=TEXT)


def forget(call: HttpCall) -> Response:
    """Unknown ids are forgotten too, so that they cannot arrive later. The receipt id is in a header, because the
    reference service responds without a body."""
    asked = read(call, PlaneForgetRequest, "forget")
    space = call.space(asked.agent)
    ids = dict.fromkeys(id_ for given in asked.entry_ids or () if (id_ := given.strip()))
    if not ids:
        raise bad_request("entry_ids is required")
    receipt = space.forget(entries=ids, reason=(asked.reason or "").strip())
    return Response(status_code=204, media_type=TEXT, headers=_receipt_headers(receipt))


def _receipt_headers(receipt: Receipt) -> dict[str, str]:
    return {"x-memplane-receipt": receipt.id, "x-memplane-off-disk": "true" if receipt.off_disk else "false"}
