"""The memory that an agent would be given now, for its operator: the brief, the memory service, and counts."""

import msgspec
from starlette.responses import Response

from memplane.adapters.clawdapus.injection import memory_block
from memplane.adapters.clawdapus.memory_manifest import (
    OPERATIONS,
    AgentContext,
    Contexts,
    ManifestInvalid,
    MemoryManifest,
)
from memplane.auth.principal import Forbidden, Right
from memplane.config import Settings
from memplane.recall.blocks import as_recalled
from memplane.recall.result import Limits, Recall
from memplane.safety.fence import SERVICE
from memplane.safety.outgoing import BLOCKS_MAX, TEXT_BYTES_MAX, ServiceBlock, govern
from memplane.server.endpoint import HttpCall, Query
from memplane.server.errors import HttpError
from memplane.server.responses import json_response
from memplane.storage.overview import SpaceSizes

PATH = "/internal/context/{agent}/snapshot"
QUERY = (Query(name="query", description="Also return what would be recalled for this question"),)


class ManifestView(msgspec.Struct, kw_only=True):
    """A memory.json without its token."""

    service: str
    base_url: str
    operations: dict[str, str]
    auth: str
    """`bearer` or empty."""


class RecallView(msgspec.Struct, kw_only=True):
    """The recall for a turn with this question."""

    blocks: list[ServiceBlock]
    text: str
    removed: int
    degraded: list[str]


class Snapshot(msgspec.Struct, kw_only=True):
    """The current state of one agent."""

    agent_id: str
    memory_service: str
    """The memory used before a turn: this server, unless a manifest names another service."""
    brief: str
    manifest: ManifestView | None
    manifest_error: str
    metadata: dict[str, str]
    counts: SpaceSizes
    waiting: int
    """Entries that are stored but not yet searchable."""
    recall: RecallView | None


class Snapshots:
    """Handles `GET /internal/context/{agent}/snapshot`."""

    def __init__(self, settings: Settings) -> None:
        self._contexts = Contexts(settings.claw_context_root)
        self._brief = settings.proxy_brief

    def handle(self, call: HttpCall) -> Response:
        agent, principal = call.path_params["agent"], call.principal
        if Right.ADMIN not in principal.rights and principal.subject != agent:
            raise Forbidden("a snapshot is available only to the agent and the owner")
        space = call.existing_space(agent)
        if space is None:
            raise HttpError(404, "not_found", "agent context not found")
        manifest, context, error = None, AgentContext(agent_id=agent), ""
        try:
            manifest, context = self._contexts.of(agent, tenant=principal.tenant)
        except ManifestInvalid as exc:
            error = str(exc)
        asked = call.query["query"]
        shown = None
        if asked and manifest is None:
            limits = Limits(blocks=BLOCKS_MAX, bytes=TEXT_BYTES_MAX)
            shown = _recalled(space.recall(asked, limits=limits))
        return json_response(
            Snapshot(
                agent_id=agent,
                memory_service=SERVICE if manifest is None else manifest.service,
                brief=space.brief().markdown if self._brief and manifest is None else "",
                manifest=None if manifest is None else _without_token(manifest),
                manifest_error=error,
                metadata={
                    name: value
                    for name in ("pod", "service", "type", "timezone")
                    if (value := getattr(context, name))
                },
                counts=space.overview.stats(),
                waiting=space.overview.lag(),
                recall=shown,
            )
        )


def _without_token(manifest: MemoryManifest) -> ManifestView:
    operations = {
        name: operation.path for name in OPERATIONS if (operation := manifest.operation(name)) is not None
    }
    return ManifestView(
        service=manifest.service,
        base_url=manifest.base_url,
        operations=operations,
        auth="bearer" if manifest.token else "",
    )


def _recalled(result: Recall) -> RecallView:
    governed = govern(as_recalled(result.blocks))
    return RecallView(
        blocks=list(governed.blocks),
        text=memory_block(SERVICE, governed.blocks),
        removed=governed.removed,
        degraded=list(result.degraded),
    )
