"""`memplane up`: compile a pod file and the descriptors of its memory services into the files that a proxy reads.

All input is checked before any file is written, and each file is written atomically. Existing secrets are reused, so
that compiling an unchanged pod again changes nothing.
"""

import copy
import secrets
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import yaml

from memplane.adapters.clawdapus.memory_manifest import FILE_BYTES_MAX as SMALL_BYTES_MAX
from memplane.adapters.clawdapus.memory_manifest import (
    MEMORY_NAME,
    METADATA_NAME,
    OPERATIONS,
    ManifestAuth,
    ManifestOperation,
    MemoryManifest,
    encode_manifest,
    parse_manifest,
)
from memplane.adapters.clawdapus.pod.directory import (
    CONTEXT_MODE,
    CONTEXTS,
    GENERATED,
    SERVICE_AUTH,
    PodDirectory,
)
from memplane.adapters.clawdapus.pod.podfile import (
    FILE_BYTES_MAX,
    Pod,
    PodInvalid,
    Service,
    Subscription,
    interpolate,
    parse_pod,
    read_env_file,
)
from memplane.errors import InvalidRequest, StorageUnavailable
from memplane.ledger import gojson
from memplane.safety.safe_directory import SafeDirectory

# The memory part of a service's `claw.describe` document.


_AUTH_TYPES = ("bearer", "header", "none")
_VERSIONS = (1, 2)


class DescriptorInvalid(InvalidRequest):
    """An invalid descriptor; the message is the original's."""


class MemoryDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The operation paths of a memory service, and the variable that holds its token."""

    memory: dict[str, str]
    """Operation to path; empty if the service offers no memory."""
    auth_type: str = ""
    auth_env: str = ""


_DOCUMENT: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def parse_descriptor(raw: bytes) -> MemoryDescription:
    """Raise `DescriptorInvalid` for what the original rejects. Unknown keys are ignored."""
    try:
        document = gojson.decode(raw, _DOCUMENT)
    except (gojson.NotJson, msgspec.ValidationError) as exc:
        raise DescriptorInvalid(f"parse descriptor: {exc}") from exc
    version = document.get("version", 0)
    if isinstance(version, bool) or version not in _VERSIONS:
        raise DescriptorInvalid(f"descriptor version must be 1 or 2, got {_display_value(version)}")
    memory = document.get("memory")
    if memory is not None and version == 1:
        raise DescriptorInvalid("descriptor version 1 does not support memory")
    auth_type, auth_env = _auth(document.get("auth"))
    return MemoryDescription(memory=_memory(memory), auth_type=auth_type, auth_env=auth_env)


def _memory(memory: Any) -> dict[str, str]:
    if memory is None:
        return {}
    if not isinstance(memory, dict):
        raise DescriptorInvalid("memory must be an object")
    paths: dict[str, str] = {}
    for name in OPERATIONS:
        operation = memory.get(name)
        if operation is None:
            continue
        path = operation.get("path") if isinstance(operation, dict) else None
        if not isinstance(path, str) or not path.strip():
            raise DescriptorInvalid(f"memory.{name}.path is required")
        if not path.startswith("/"):
            raise DescriptorInvalid(f"memory.{name}.path \"{path}\" must start with '/'")
        paths[name] = path
    if not {"recall", "retain"} & paths.keys():
        raise DescriptorInvalid("memory: at least one of recall or retain must be declared")
    return paths


def _auth(auth: Any) -> tuple[str, str]:
    if auth is None:
        return "", ""
    if not isinstance(auth, dict):
        raise DescriptorInvalid("auth must be an object")
    given, env = auth.get("type"), auth.get("env")
    type_ = given.strip().lower() if isinstance(given, str) else ""
    if type_ not in _AUTH_TYPES:
        raise DescriptorInvalid(f"auth.type must be bearer, header or none, got {_display_value(given)}")
    return type_, env.strip() if isinstance(env, str) else ""


def _display_value(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else type(value).__name__


DESCRIPTOR_NAME = ".claw-describe.json"
HISTORY_URL_DEFAULT = "http://cllama:8080/history"
HISTORY_SERVICE = "cllama-history"
HISTORY_NETWORK = "claw-internal"

_HEADER = "# Written by `memplane up`; change claw-pod.yml and run it again.\n"
_SECRET_BYTES = 24
_MANIFEST_MODE = 0o644
_SECRET_MODE = 0o600

_OBJECT: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


class CompiledAgent(msgspec.Struct, kw_only=True):
    """The files of one agent; `memory` is its service, or None if it subscribes to none."""

    agent: str
    service: str
    memory: str | None


class CompileResult(msgspec.Struct, kw_only=True):
    """The result of `memplane up`."""

    pod: str
    directory: str
    agents: list[CompiledAgent]
    generated: bool
    """Whether Memplane wrote the compose file; one from `claw up` is not changed."""


class _Plan(msgspec.Struct, kw_only=True):
    """The planned files of one agent."""

    agent: str
    service: Service
    manifest: MemoryManifest | None = None
    metadata: dict[str, Any] = {}
    replay: bytes | None = None


class ServiceAuth(msgspec.Struct, frozen=True, kw_only=True):
    """A credential for one service to call another."""

    service: str = ""
    auth_type: str = ""
    token: str = ""
    principal: str = ""


_SERVICE_AUTH = msgspec.json.Decoder(ServiceAuth)


def compile_pod(
    directory: PodDirectory,
    environment: Mapping[str, str],
    *,
    descriptors: Mapping[str, bytes] = {},
    by_image: Mapping[str, bytes] = {},
    history_url: str = HISTORY_URL_DEFAULT,
) -> CompileResult:
    """`descriptors` are given by an operator per service name; `by_image` maps known images to theirs."""
    beside = directory.folder.read(".env", bytes_max=SMALL_BYTES_MAX)
    variables = {**read_env_file(beside or b""), **environment}
    pod = parse_pod(directory.read_pod(), variables, default_name=directory.path.resolve().name)
    found = _described(directory, pod, descriptors, by_image, variables)
    tokens = _replay_tokens(directory, pod)
    plans = [_planned(directory, pod, service, agent, found, tokens) for service, agent in _agents(pod)]
    _write_contexts(directory, plans)
    generated = _write_generated(directory, pod, tokens, history_url)
    return CompileResult(
        pod=pod.name,
        directory=str(directory.path),
        agents=[
            CompiledAgent(
                agent=plan.agent,
                service=plan.service.name,
                memory=None if plan.manifest is None else plan.manifest.service,
            )
            for plan in plans
        ],
        generated=generated,
    )


def _agents(pod: Pod) -> list[tuple[Service, str]]:
    return [
        (service, agent) for service in pod.services.values() if service.has_proxy for agent in service.agents
    ]


def _subscribers(pod: Pod) -> dict[str, list[str]]:
    """Map each memory service to the sorted ids of its agents."""
    found: dict[str, list[str]] = {}
    for service, agent in _agents(pod):
        if service.memory is not None:
            found.setdefault(service.memory.service, []).append(agent)
    return {name: sorted(agents) for name, agents in found.items()}


def _described(
    directory: PodDirectory,
    pod: Pod,
    descriptors: Mapping[str, bytes],
    by_image: Mapping[str, bytes],
    variables: Mapping[str, str],
) -> dict[str, MemoryDescription]:
    found: dict[str, MemoryDescription] = {}
    for consumer in pod.services.values():
        if consumer.memory is None or consumer.memory.service in found:
            continue
        name = consumer.memory.service
        target = pod.services[name]
        raw = descriptors.get(name) or _from_build(directory, target, variables)
        raw = raw or by_image.get(_image_name(target, variables))
        if raw is None:
            raise PodInvalid(
                f'service "{consumer.name}": memory target "{name}" has no descriptor '
                f"(put {DESCRIPTOR_NAME} into its build context or pass --describe {name}=FILE)"
            )
        try:
            described = parse_descriptor(raw)
        except DescriptorInvalid as exc:
            raise PodInvalid(f'service "{name}": {exc}') from exc
        if not described.memory:
            raise PodInvalid(
                f'service "{consumer.name}": memory target "{name}" does not declare a memory capability'
            )
        found[name] = described
    return found


def _from_build(directory: PodDirectory, target: Service, variables: Mapping[str, str]) -> bytes | None:
    """Read the descriptor from the build context of the image."""
    build = target.compose.get("build")
    context = build.get("context", ".") if isinstance(build, dict) else build
    if not isinstance(context, str):
        return None
    label = Path(target.labels.get("claw.describe", DESCRIPTOR_NAME)).name or DESCRIPTOR_NAME
    try:
        with SafeDirectory.root(directory.path / interpolate(context, variables)) as folder:
            return folder.read(label, bytes_max=SMALL_BYTES_MAX)
    except StorageUnavailable:
        return None


def _image_name(target: Service, variables: Mapping[str, str]) -> str:
    image = target.compose.get("image")
    if not isinstance(image, str):
        return ""
    return interpolate(image, variables).rpartition("/")[2].partition("@")[0].partition(":")[0]


def _planned(
    directory: PodDirectory,
    pod: Pod,
    service: Service,
    agent: str,
    described: Mapping[str, MemoryDescription],
    tokens: Mapping[str, str],
) -> _Plan:
    with _context(directory, agent) as context:
        metadata = _read_object(context, METADATA_NAME)
        subscription = service.memory
        auth = None
        if subscription is not None:
            auth = _projected(context, service, subscription, described[subscription.service])
    metadata |= {"pod": pod.name, "service": service.name}
    metadata["type"] = _text((service.claw or {}).get("type")) or _text(metadata.get("type"))
    timezone = service.environment.get("TZ") or _text(metadata.get("timezone"))
    metadata |= {"timezone": timezone} if timezone else {}
    if not str(metadata.get("token") or "").startswith(f"{agent}:"):
        metadata["token"] = f"{agent}:{secrets.token_hex(_SECRET_BYTES)}"
    if subscription is None:
        return _Plan(agent=agent, service=service, metadata=metadata)
    target = pod.services[subscription.service]
    return _Plan(
        agent=agent,
        service=service,
        metadata=metadata,
        manifest=_manifest(target, subscription, described[target.name], auth),
        replay=_encoded(
            {
                "service": HISTORY_SERVICE,
                "auth_type": "bearer",
                "token": tokens[target.name],
                "principal": target.name,
            }
        ),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _manifest(
    target: Service, subscription: Subscription, described: MemoryDescription, auth: ManifestAuth | None
) -> MemoryManifest:
    operations = {
        name: ManifestOperation(described.memory[name], subscription.timeout_ms if name == "recall" else 0)
        for name in OPERATIONS
        if name in described.memory
    }
    manifest = MemoryManifest(
        version=1,
        service=target.name,
        base_url=f"http://{target.name}:{target.port}",
        auth=auth,
        **operations,
    )
    return parse_manifest(encode_manifest(manifest))  # do not write a file that a proxy would reject


def _projected(
    context: SafeDirectory | None, service: Service, subscription: Subscription, described: MemoryDescription
) -> ManifestAuth | None:
    """The credential configured for this service, or the value of the variable that its descriptor names."""
    given = _service_auth(context, subscription.service)
    if given is not None and given.auth_type == "bearer" and given.token:
        return ManifestAuth("bearer", given.token)
    if described.auth_type != "bearer" or not described.auth_env:
        return None
    token = service.environment.get(described.auth_env, "")
    if not token:
        raise PodInvalid(
            f'feed auth: service env has no value for "{described.auth_env}" '
            "(required by descriptor auth.env for bearer auth)"
        )
    return ManifestAuth("bearer", token)


def _service_auth(context: SafeDirectory | None, service: str) -> ServiceAuth | None:
    if context is None or not context.has(SERVICE_AUTH):
        return None
    with context.below(SERVICE_AUTH) as folder:
        raw = folder.read(f"{service}.json", bytes_max=SMALL_BYTES_MAX)
    if raw is None:
        return None
    try:
        return gojson.decode(raw, _SERVICE_AUTH)
    except (gojson.NotJson, msgspec.ValidationError) as exc:
        raise InvalidRequest(f"parse {SERVICE_AUTH}/{service}.json: {exc}") from exc


def _replay_tokens(directory: PodDirectory, pod: Pod) -> dict[str, str]:
    """Map each memory service to its token for reading histories: the existing one, or a new one."""
    tokens: dict[str, str] = {}
    for _, context in directory.contexts():
        known = _service_auth(context, HISTORY_SERVICE)
        if known is not None and known.token.startswith(f"{known.principal}-history:"):
            tokens.setdefault(known.principal, known.token)
    return {
        name: tokens.get(name) or f"{name}-history:{secrets.token_hex(_SECRET_BYTES)}"
        for name in _subscribers(pod)
    }


def _context(directory: PodDirectory, agent: str) -> AbstractContextManager[SafeDirectory | None]:
    if not directory.path.joinpath(*CONTEXTS, agent).exists():
        return nullcontext()
    return directory.folder.below(*CONTEXTS, agent)


def _read_object(context: SafeDirectory | None, name: str) -> dict[str, Any]:
    raw = None if context is None else context.read(name, bytes_max=SMALL_BYTES_MAX)
    if raw is None:
        return {}
    try:
        return gojson.decode(raw, _OBJECT)
    except (gojson.NotJson, msgspec.ValidationError) as exc:
        raise InvalidRequest(f"parse {name}: {exc}") from exc


def _encoded(document: dict[str, Any]) -> bytes:
    return msgspec.json.format(gojson.encode(document), indent=2) + b"\n"


def _write_contexts(directory: PodDirectory, plans: list[_Plan]) -> None:
    """Remove obsolete files too: a leftover manifest would keep sending an agent's turns to a service."""
    planned = {plan.agent: plan for plan in plans}
    for agent, context in directory.contexts():
        if agent not in planned or planned[agent].manifest is None:
            context.remove(MEMORY_NAME)
            if context.has(SERVICE_AUTH):
                with context.below(SERVICE_AUTH) as folder:
                    folder.remove(f"{HISTORY_SERVICE}.json")
    for plan in plans:
        with directory.folder.below(*CONTEXTS, plan.agent, create=True, mode=CONTEXT_MODE) as context:
            context.set_mode(CONTEXT_MODE)
            context.replace(METADATA_NAME, _encoded(plan.metadata), mode=_SECRET_MODE)
            if plan.manifest is None or plan.replay is None:
                continue
            with context.below(SERVICE_AUTH, create=True, mode=CONTEXT_MODE) as folder:
                folder.replace(f"{HISTORY_SERVICE}.json", plan.replay, mode=_SECRET_MODE)
            context.replace(MEMORY_NAME, encode_manifest(plan.manifest), mode=_MANIFEST_MODE)


def _write_generated(directory: PodDirectory, pod: Pod, tokens: Mapping[str, str], history_url: str) -> bool:
    """Write the pod as plain Compose, with the variables that memory services need to read histories. It is written
    last, so that it is the newest file."""
    known = directory.folder.read(GENERATED, bytes_max=FILE_BYTES_MAX)
    if known is not None and not known.startswith(_HEADER.encode()):
        return False
    document = copy.deepcopy(pod.document)
    document.pop("x-claw", None)
    subscribers = _subscribers(pod)
    for given, service in (document.get("services") or {}).items():
        if isinstance(service, dict):
            name = str(given)
            service.pop("x-claw", None)
            if name in tokens:
                _hand_history(service, history_url, tokens[name], subscribers[name])
    if tokens:
        networks = document.setdefault("networks", {}) or {}
        networks.setdefault(HISTORY_NETWORK, {})
        document["networks"] = networks
    text = _HEADER + yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    directory.folder.replace(GENERATED, text.encode(), mode=_SECRET_MODE)
    return True


def _hand_history(service: dict[str, Any], url: str, token: str, agents: list[str]) -> None:
    added = {
        "CLAW_HISTORY_URL": url,
        "CLAW_HISTORY_TOKEN": token,
        "CLAW_HISTORY_AGENT_IDS": ",".join(agents),
    }
    environment = service.get("environment")
    if isinstance(environment, list):
        kept = [item for item in environment if str(item).partition("=")[0] not in added]
        service["environment"] = [*kept, *(f"{name}={value}" for name, value in added.items())]
    else:
        service["environment"] = {**(environment or {}), **added}
    networks = service.get("networks")
    if isinstance(networks, dict):
        networks.setdefault(HISTORY_NETWORK, None)
    else:
        # Naming a network removes the default one, so it is named too.
        service["networks"] = list(dict.fromkeys([*(networks or ["default"]), HISTORY_NETWORK]))
