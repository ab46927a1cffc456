"""The agents that an operator's command applies to, and the URL of their memory service from this machine."""

import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from memplane.adapters.clawdapus.memory_manifest import (
    AgentContext,
    ManifestAuth,
    ManifestInvalid,
    MemoryManifest,
    is_web_address,
    load_context,
    load_manifest,
)
from memplane.adapters.clawdapus.pod.directory import CONTEXTS, GENERATED, PodDirectory
from memplane.adapters.clawdapus.pod.podfile import port_parts
from memplane.errors import InvalidRequest

# Queries to docker about a running pod: ports that docker assigned, and the proxies' logs.


_SECONDS_MAX = 60


def published_address(compose_file: Path, service: str, port: int) -> tuple[str, str] | None:
    """Address and port on this machine; None if unknown."""
    said = _run("compose", "-f", str(compose_file), "port", service, str(port))
    address, _, out = (said or b"").decode("utf-8", "replace").strip().rpartition(":")
    return (address, out) if out.isdecimal() and out != "0" else None


def proxy_lines(pod: str, since: str | None) -> Iterator[bytes]:
    """The log lines of each proxy. Raises `InvalidRequest` if docker does not return them."""
    labels = ("--filter", f"label=claw.pod={pod}", "--filter", "label=claw.role=proxy")
    names = _address(_run("ps", "--all", *labels, "--format", "{{.Names}}"))
    for name in names.decode("utf-8", "replace").split():
        yield from _address(_run("logs", *(("--since", since) if since else ()), name)).splitlines()


def _address(said: bytes | None) -> bytes:
    if said is None:
        raise InvalidRequest("cannot read the logs of the pod's proxies from docker; pass --log FILE")
    return said


def _run(*words: str) -> bytes | None:
    """The output of a docker command; None if it fails or docker is not installed."""
    try:
        done = subprocess.run(["docker", *words], capture_output=True, timeout=_SECONDS_MAX, check=True)  # noqa: S603, S607
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


_ANYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with, never bound
_LOOPBACK = "127.0.0.1"

AskCompose = Callable[[str, int], str | None]
"""Maps service and port to `address:port` on this machine, or None."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A subscribing agent."""

    agent: str
    manifest: MemoryManifest
    context: AgentContext


def split_names(given: Iterable[str]) -> list[str]:
    """Parse `--agent a --agent b,c`: each name once, in the given order."""
    names = (name.strip() for text in given for name in text.split(","))
    return list(dict.fromkeys(name for name in names if name))


def find_targets(
    directory: PodDirectory, service: str, *, operation: str, agents: Sequence[str] = ()
) -> list[Target]:
    """Subscribers of the service by id, limited to the named ones if any. Raises if a named agent does not subscribe."""
    directory.check_generated()
    found: list[Target] = []
    seen = False
    for agent, context in directory.contexts():
        seen = True
        try:
            manifest = load_manifest(context)
            if manifest is not None and manifest.service == service:
                found.append(Target(agent=agent, manifest=manifest, context=load_context(context, agent)))
        except ManifestInvalid as exc:
            raise InvalidRequest(f'agent "{agent}": {exc}') from exc
    if not seen:
        where = directory.path.joinpath(*CONTEXTS)
        raise InvalidRequest(f"no generated agent context found in \"{where}\" (run 'memplane up' first)")
    strangers = sorted(set(agents) - {target.agent for target in found})
    if strangers:
        raise InvalidRequest(
            f'memory service "{service}" is not subscribed by agent(s) {", ".join(strangers)}'
        )
    if not found:
        raise InvalidRequest(f'no agents subscribe to memory service "{service}"')
    chosen = sorted((it for it in found if not agents or it.agent in agents), key=lambda it: it.agent)
    for target in chosen:
        if target.manifest.operation(operation) is None:
            raise InvalidRequest(
                f'memory service "{service}" has no {operation} endpoint for agent "{target.agent}"'
            )
    return chosen


def with_token(targets: Sequence[Target], token: str | None) -> list[Target]:
    """Replace every agent's token with the operator's."""
    if not token:
        return list(targets)
    return [
        msgspec.structs.replace(
            it, manifest=msgspec.structs.replace(it.manifest, auth=ManifestAuth("bearer", token))
        )
        for it in targets
    ]


def resolve_url(
    directory: PodDirectory,
    service: str,
    targets: Sequence[Target],
    *,
    operation: str,
    given: str | None,
    ask: AskCompose | None = None,
) -> str:
    """The URL of the operation from this machine. A service's name inside the pod does not resolve here."""
    path = _only(
        {_path(target, operation) for target in targets},
        f'memory service "{service}" has inconsistent {operation} paths across agents',
    )
    if given is not None:
        return _given_url(given, path)
    base = _only(
        {target.manifest.base_url for target in targets},
        f'memory service "{service}" has inconsistent base URLs across agents',
    )
    parts = urlsplit(base)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    services = directory.generated().get("services")
    services = services if isinstance(services, dict) else {}
    if host not in services:
        return base + path  # a full address, not a service name of the pod
    place = published(services[host], port) or (ask or _asker(directory))(host, port)
    if place is None:
        raise InvalidRequest(
            f'memory service "{service}" does not publish port {port} to this machine (pass --url to override)'
        )
    return urlunsplit((parts.scheme, place, parts.path, "", "")) + path


def _path(target: Target, operation: str) -> str:
    declared = target.manifest.operation(operation)
    assert declared is not None, "find_targets looked"
    return declared.path


def _only(values: set[str], why: str) -> str:
    if len(values) != 1:
        raise InvalidRequest(f"{why}: {', '.join(sorted(values))}; pass --url to override")
    return next(iter(values))


def _given_url(given: str, path: str) -> str:
    if not is_web_address(given.strip()):
        raise InvalidRequest("--url must include scheme and host", field="url")
    parts = urlsplit(given.strip())
    return urlunsplit(parts._replace(path=path)) if parts.path in {"", "/"} else given.strip()


def published(service: Any, port: int) -> str | None:
    """The `address:port` that the compose file publishes for a port of a service."""
    ports = service.get("ports") if isinstance(service, dict) else None
    for it in ports if isinstance(ports, list) else ():
        if isinstance(it, dict):
            address, out, target = str(it.get("host_ip") or ""), it.get("published"), it.get("target")
        else:
            address, out, target = port_parts(str(it))
        if str(target) == str(port) and out and str(out).isdecimal():
            address = _LOOPBACK if address in _ANYWHERE else address
            return f"[{address}]:{out}" if ":" in address else f"{address}:{out}"
    return None


def _asker(directory: PodDirectory) -> AskCompose:
    def ask(service: str, port: int) -> str | None:
        found = published_address(directory.path / GENERATED, service, port)
        if found is None:
            return None
        address, out = found
        return f"{_LOOPBACK if address.strip('[]') in _ANYWHERE else address}:{out}"

    return ask
