"""Parse a `claw-pod.yml`: its services, which of them are agents, and the memory service of each agent."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from memplane.errors import InvalidRequest

# Expand `${VARIABLE}` in a pod file as Compose does, with the `.env` file next to it.


_VARIABLE = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<plain>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?P<rule>:?[-?+])?(?P<word>[^}]*)\})",
    re.ASCII,
)
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*", re.ASCII)


def interpolate(text: str, variables: Mapping[str, str]) -> str:
    """Expand the variables in a text; an unset variable is empty."""

    def value(found: re.Match[str]) -> str:
        if found["escaped"]:
            return "$"
        name, rule, word = found["plain"] or found["name"], found["rule"] or "", found["word"] or ""
        there = name in variables and (not rule.startswith(":") or bool(variables[name]))
        match rule[-1:]:
            case "-":
                return variables[name] if there else word
            case "+":
                return word if there else ""
            case "?" if not there:
                raise InvalidRequest(f"required variable {name} is missing a value: {word}".rstrip(": "))
        return variables.get(name, "")

    return _VARIABLE.sub(value, text)


def read_env_file(raw: bytes) -> dict[str, str]:
    """Parse `NAME=value` lines. Quotes around a value are removed; other lines are ignored."""
    found: dict[str, str] = {}
    for line in raw.decode("utf-8", "replace").splitlines():
        match = _ASSIGNMENT.fullmatch(line)
        if match is None or line.lstrip().startswith("#"):
            continue
        value = match[2]
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        else:
            value = value.split(" #", 1)[0].rstrip()
        found[match[1]] = value
    return found


TIMEOUT_MS_DEFAULT = 300
FILE_BYTES_MAX = 4 * 1024 * 1024

_PORT_DEFAULT = 80
_PORT_MAX = 65_535
_COUNT_MAX = 10_000
_MERGE = "tag:yaml.org,2002:merge"


class PodInvalid(InvalidRequest):
    """An invalid pod file; the message is the original's where it has one."""


class Subscription(msgspec.Struct, frozen=True):
    """The memory service of an agent, and the timeout of a recall."""

    service: str
    timeout_ms: int = TIMEOUT_MS_DEFAULT


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A service of the pod. `claw` is its `x-claw` block, or None."""

    name: str
    compose: dict[str, Any]
    claw: dict[str, Any] | None
    environment: dict[str, str]
    """With variables expanded."""
    port: int
    """The port for other services in the pod."""
    memory: Subscription | None = None

    @property
    def has_proxy(self) -> bool:
        return bool(self.claw and self.claw.get("cllama"))

    @property
    def agents(self) -> list[str]:
        """The ids of its agents: the service name, or one id per replica."""
        if self.claw is None:
            return []
        count = self.claw.get("count", 1)
        return [self.name] if count == 1 else [f"{self.name}-{number}" for number in range(count)]

    @property
    def labels(self) -> dict[str, str]:
        return _pairs(self.compose.get("labels"), f'service "{self.name}": labels')


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed pod file."""

    name: str
    services: dict[str, Service]
    document: dict[str, Any]


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Load only plain data, and reject duplicate keys, because their values would be ambiguous."""


def _mapping(loader: _Loader, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == _MERGE:  # merged keys may be overridden; that is their purpose
            continue
        if not isinstance(key_node, yaml.ScalarNode):
            raise PodInvalid(f"line {key_node.start_mark.line + 1}: a key must be plain text")
        key = loader.construct_object(key_node, deep=True)
        if key in seen:
            raise PodInvalid(f'line {key_node.start_mark.line + 1}: mapping key "{key}" already defined')
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=deep)  # type: ignore[no-any-return]


def _constructed(loader: _Loader, node: yaml.MappingNode) -> Any:
    data: dict[Any, Any] = {}
    yield data
    data.update(_mapping(loader, node))


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _constructed)


def load_yaml(raw: bytes, name: str) -> dict[str, Any]:
    """Parse a document that is a mapping, without constructing any objects from tags."""
    try:
        document = yaml.load(raw, Loader=_Loader)  # noqa: S506 - a subclass of SafeLoader
    except PodInvalid as exc:
        raise PodInvalid(f"parse {name}: {exc}") from exc
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as exc:
        said = " ".join(str(exc).split()) or type(exc).__name__
        raise PodInvalid(f"parse {name}: {said}") from exc
    if not isinstance(document, dict):
        raise PodInvalid(f"parse {name}: the document is not a mapping")
    return document


def parse_pod(raw: bytes, variables: Mapping[str, str], *, default_name: str) -> Pod:
    """Check all memory settings before any file is written. Raises `PodInvalid`."""
    document = load_yaml(raw, "claw-pod.yml")
    top = _block(document.get("x-claw"), "x-claw") or {}
    services = _block(document.get("services"), "services") or {}
    default = _subscription(top.get("memory-defaults"), "x-claw.memory-defaults")
    made = {
        str(it): _service(str(it), _block(compose, f'service "{it}"') or {}, variables, default)
        for it, compose in services.items()
    }
    for service in made.values():
        _check_subscription(service, made)
    _check_agents(made)
    return Pod(name=pod_name(document, default_name), services=made, document=document)


def pod_name(document: Mapping[str, Any], default: str) -> str:
    top = document.get("x-claw")
    named = top.get("pod") if isinstance(top, dict) else None
    return str(named or document.get("name") or default)


def _service(
    name: str, compose: dict[str, Any], variables: Mapping[str, str], default: Subscription | None
) -> Service:
    where = f'service "{name}"'
    claw = _block(compose.get("x-claw"), f"{where}: x-claw") if "x-claw" in compose else None
    if "x-claw" in compose and claw is None:
        claw = {}
    memory = None
    if claw is not None:
        count = claw.get("count", 1)
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _COUNT_MAX:
            raise PodInvalid(f"{where}: x-claw.count must be a number from 1 to {_COUNT_MAX}")
        if "memory" in claw:
            memory = _subscription(claw["memory"], f"{where}: x-claw.memory")
        elif not is_stdio(claw):
            memory = default
    raw = _pairs(compose.get("environment"), f"{where}: environment", variables)
    return Service(
        name=name,
        compose=compose,
        claw=claw,
        environment={key: interpolate(value, variables) for key, value in raw.items()},
        port=_port(compose, variables, where),
        memory=memory,
    )


def is_stdio(claw: Mapping[str, Any]) -> bool:
    """A tool server on stdio, which never uses the proxy."""
    return "mcp-stdio" in claw or claw.get("type") == "mcp-stdio"


def _subscription(given: Any, where: str) -> Subscription | None:
    """A service's value replaces the default and is not merged with it; null means none."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise PodInvalid(f"{where} must be a mapping with service and timeout-ms")
    service = given.get("service")
    if not isinstance(service, str) or not service.strip():
        raise PodInvalid(f"{where}: service is required")
    timeout_ms = given.get("timeout-ms")
    if timeout_ms is None:
        return Subscription(service.strip())
    if not isinstance(timeout_ms, int) or isinstance(timeout_ms, bool):
        raise PodInvalid(f"{where}: timeout-ms must be a whole number")
    if timeout_ms <= 0:
        raise PodInvalid(f"{where}: timeout-ms must be > 0")
    return Subscription(service.strip(), timeout_ms)


def _check_subscription(service: Service, services: Mapping[str, Service]) -> None:
    if service.memory is None:
        return
    if not service.has_proxy:
        raise PodInvalid(
            f'service "{service.name}": x-claw.memory require x-claw.cllama on the consuming service; '
            "native projection for non-cllama services is not implemented"
        )
    if service.memory.service not in services:
        raise PodInvalid(
            f'service "{service.name}": memory targets unknown service "{service.memory.service}"'
        )


def _check_agents(services: Mapping[str, Service]) -> None:
    """Reject duplicate agent ids: two agents with one id would write to the same files."""
    owners: dict[str, str] = {}
    for service in services.values():
        for agent in service.agents:
            if agent in owners:
                raise PodInvalid(
                    f'services "{owners[agent]}" and "{service.name}" both have an agent "{agent}"'
                )
            owners[agent] = service.name


def _block(given: Any, where: str) -> dict[str, Any] | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise PodInvalid(f"{where} must be a mapping")
    return given


def _pairs(given: Any, where: str, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Compose accepts a mapping or a list of `NAME=value`. A name without a value is read from the environment."""
    outer = variables or {}
    if given is None:
        return {}
    if isinstance(given, dict):
        return {
            str(name): outer.get(str(name), "") if value is None else _scalar(value)
            for name, value in given.items()
        }
    if isinstance(given, list):
        split = (str(item).partition("=") for item in given)
        return {name: value if equals else outer.get(name, "") for name, equals, value in split}
    raise PodInvalid(f"{where} must be a mapping or a list")


def _scalar(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _port(compose: Mapping[str, Any], variables: Mapping[str, str], where: str) -> int:
    """The first exposed port, else the first published port, else the default HTTP port."""
    for port in (*_listed(compose.get("expose"), where), *_listed(compose.get("ports"), where)):
        target = (
            port.get("target") if isinstance(port, dict) else port_parts(_interpolated(port, variables))[2]
        )
        number = _interpolated(target, variables).split("-")[0]
        if not number.isdecimal() or not 0 < int(number) <= _PORT_MAX:
            raise PodInvalid(f"{where}: {port!r} is not a port")
        return int(number)
    return _PORT_DEFAULT


def port_parts(spelled: str) -> tuple[str, str, str]:
    """`127.0.0.1:8080:80/tcp` to address, published port and target port; the first two may be empty."""
    text = spelled.split("/", maxsplit=1)[0]
    address, published = "", ""
    rest, _, target = text.rpartition(":")
    if rest:
        address, _, published = rest.rpartition(":")
    return address.strip("[]"), published, target


def _listed(given: Any, where: str) -> list[Any]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise PodInvalid(f"{where}: expose and ports must be lists")
    return given


def _interpolated(value: Any, variables: Mapping[str, str]) -> str:
    return interpolate(str(value), variables)
