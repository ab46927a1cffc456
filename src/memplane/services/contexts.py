"""The context directories of a pod's agents, as a server reads them: which memory service each subscribes to."""

from pathlib import Path

from memplane.errors import InvalidRequest, StorageUnavailable
from memplane.folder import Folder
from memplane.services.manifest import (
    AgentContext,
    ManifestInvalid,
    MemoryManifest,
    load_context,
    load_manifest,
)
from memplane.types import TENANT_DEFAULT


class Contexts:
    """All below one root, each read anew for every request, so that an operator's change needs no restart."""

    def __init__(self, root: str | None) -> None:
        self._root = None if root is None else Path(root).expanduser()

    def of(self, agent: str, *, tenant: str) -> tuple[MemoryManifest | None, AgentContext]:
        """No manifest where the agent subscribes to none: memory is this process's. Raises `ManifestInvalid`.

        A pod's agents are those of one installation. A space of the same name that belongs to another tenant is nobody
        of theirs, and its turns must not reach their service.
        """
        unknown = AgentContext(agent_id=agent)
        if self._root is None or tenant != TENANT_DEFAULT:
            return None, unknown
        try:
            with Folder.root(self._root) as root:
                context = root.below(agent)
        except (StorageUnavailable, InvalidRequest):  # no folder of that name, or no name of a folder
            return None, unknown
        with context:
            try:
                return load_manifest(context), load_context(context, agent)
            except ManifestInvalid:
                raise
            except (StorageUnavailable, InvalidRequest) as exc:  # what they say names files of the host
                raise ManifestInvalid(
                    "memory.json and metadata.json must be plain files of at most 1 MiB"
                ) from exc
