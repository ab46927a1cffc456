"""The context directories of a pod's agents, which name each agent's memory service."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from memplane.errors import InvalidRequest, StorageUnavailable
from memplane.ledger import gojson
from memplane.ledger.gojson import Json
from memplane.safety.safe_directory import SafeDirectory
from memplane.types import TENANT_DEFAULT

# An agent's memory service: its `memory.json` and `metadata.json`. `claw up` or `memplane up` compiles both into the
# agent's context directory.


VERSION = 1
MEMORY_NAME = "memory.json"
METADATA_NAME = "metadata.json"
OPERATIONS = ("recall", "retain", "forget")

FILE_BYTES_MAX = 1024 * 1024


class ManifestInvalid(InvalidRequest):
    """A memory.json or metadata.json is invalid. No part of it is used."""


class ManifestOperation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The path and timeout of one operation; zero means the caller's default."""

    path: str
    timeout_ms: Annotated[int, msgspec.Meta(ge=0)] = 0


class ManifestAuth(msgspec.Struct, frozen=True, omit_defaults=True):
    """Authentication to the service. Only `bearer` is ever sent."""

    type: str = ""
    token: str = ""

    def __repr__(self) -> str:
        return f"Auth(type={self.type!r}, token={'…' if self.token else ''!r})"


class MemoryManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The memory service of one agent. An operation that is None is not declared and is skipped."""

    version: int = 0
    service: str = ""
    base_url: str = ""
    recall: ManifestOperation | None = None
    retain: ManifestOperation | None = None
    forget: ManifestOperation | None = None
    auth: ManifestAuth | None = None

    @property
    def token(self) -> str:
        """The bearer token, or empty."""
        auth = self.auth
        return auth.token if auth is not None and auth.type.strip().lower() == "bearer" else ""

    def operation(self, name: str) -> ManifestOperation | None:
        return {"recall": self.recall, "retain": self.retain, "forget": self.forget}[name]


class AgentContext(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata about the agent that the memory service receives with its id."""

    agent_id: str
    pod: str = ""
    service: str = ""
    type: str = ""
    timezone: str = ""


class _Metadata(msgspec.Struct):
    pod: str | None = None
    service: str | None = None
    type: str | None = None
    timezone: str | None = None


_MANIFEST = msgspec.json.Decoder(MemoryManifest)
_METADATA = msgspec.json.Decoder(_Metadata)


def parse_manifest(raw: bytes) -> MemoryManifest:
    """Raise `ManifestInvalid` if an operation could not be called."""
    try:
        manifest = gojson.decode(raw, _MANIFEST)
    except (gojson.NotJson, msgspec.ValidationError) as exc:
        raise ManifestInvalid(f"parse memory.json: {exc}") from exc
    if manifest.version != VERSION:
        raise ManifestInvalid(f"memory.json version must be {VERSION}, got {manifest.version}")
    if not manifest.service.strip():
        raise ManifestInvalid("memory.json: service is required")
    if not is_web_address(manifest.base_url):
        raise ManifestInvalid("memory.json: base_url must begin with http:// or https:// and name a host")
    for name in OPERATIONS:
        operation = manifest.operation(name)
        if operation is not None and not operation.path.startswith("/"):
            raise ManifestInvalid(f"memory.json: {name}.path must start with '/'")
    if not (manifest.token.isascii() and (manifest.token.isprintable() or not manifest.token)):
        raise ManifestInvalid("memory.json: auth.token contains a character that is not allowed in a header")
    return manifest


def load_manifest(context: SafeDirectory) -> MemoryManifest | None:
    """The manifest in an agent's context directory; None if the agent subscribes to no service."""
    raw = context.read(MEMORY_NAME, bytes_max=FILE_BYTES_MAX)
    return None if raw is None else parse_manifest(raw)


def load_context(context: SafeDirectory, agent_id: str) -> AgentContext:
    """The agent's metadata.json; only the id if the file does not exist."""
    return parse_context(context.read(METADATA_NAME, bytes_max=FILE_BYTES_MAX), agent_id)


def parse_context(raw: bytes | None, agent_id: str) -> AgentContext:
    if raw is None:
        return AgentContext(agent_id=agent_id)
    try:
        found = gojson.decode(raw, _METADATA)
    except (gojson.NotJson, msgspec.ValidationError) as exc:
        raise ManifestInvalid(f"parse metadata.json: {exc}") from exc
    return AgentContext(
        agent_id=agent_id,
        pod=found.pod or "",
        service=found.service or "",
        type=found.type or "",
        timezone=found.timezone or "",
    )


def encode_manifest(manifest: MemoryManifest) -> bytes:
    """The file as `claw up` writes it: two spaces of indent, absent operations omitted, a newline at the end."""
    members: dict[str, Json] = {
        "version": VERSION,
        "service": manifest.service,
        "base_url": manifest.base_url,
    }
    for name in OPERATIONS:
        operation = manifest.operation(name)
        if operation is not None:
            timeout: dict[str, Json] = {"timeout_ms": operation.timeout_ms} if operation.timeout_ms else {}
            members[name] = {"path": operation.path, **timeout}
    if manifest.auth is not None:
        members["auth"] = {"type": manifest.auth.type, "token": manifest.auth.token}
    return msgspec.json.format(gojson.encode(members), indent=2) + b"\n"


def is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


class Contexts:
    """All context directories below one root. Each is read again for every request, so that an operator's change
    needs no restart."""

    def __init__(self, root: str | None) -> None:
        self._root = None if root is None else Path(root).expanduser()

    def of(self, agent: str, *, tenant: str) -> tuple[MemoryManifest | None, AgentContext]:
        """Return no manifest if the agent subscribes to no service and this process is its memory. Raises
        `ManifestInvalid`.

        The agents of a pod belong to one installation. A space of the same name in another tenant is a different
        agent, and its turns must not reach the pod's service.
        """
        unknown = AgentContext(agent_id=agent)
        if self._root is None or tenant != TENANT_DEFAULT:
            return None, unknown
        try:
            with SafeDirectory.root(self._root) as root:
                context = root.below(agent)
        except (StorageUnavailable, InvalidRequest):  # no such directory, or not a valid directory name
            return None, unknown
        with context:
            try:
                return load_manifest(context), load_context(context, agent)
            except ManifestInvalid:
                raise
            except (StorageUnavailable, InvalidRequest) as exc:  # the error text contains paths of the host
                raise ManifestInvalid(
                    "memory.json and metadata.json must be plain files of at most 1 MiB"
                ) from exc
