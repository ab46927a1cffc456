"""Checks before an adapter runs: host names, origins and credentials."""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from memplane.auth.principal import CREDENTIAL_CHARS_MAX, Unauthenticated
from memplane.config import Settings
from memplane.errors import SettingsInvalid
from memplane.server.errors import HttpError

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_ANY = "*"
_WEB = frozenset({"http", "https"})


def check_names(settings: Settings) -> None:
    """Raise `SettingsInvalid` for a value that can never match, because requests would be rejected without a clear
    cause."""
    for host in settings.hosts:
        if host != _ANY and _name_of(host.lower()) is None:
            raise SettingsInvalid(f"hosts: {host!r} is not a host name; use one such as memory.example")
    for origin in settings.origins:
        parts = urlsplit(origin)
        if origin != _ANY and (parts.scheme not in _WEB or not parts.netloc or parts.path.strip("/")):
            raise SettingsInvalid(
                f"origins: {origin!r} is not an origin; use one such as https://console.example"
            )
    for proxy in settings.trusted_proxies:
        if proxy != _ANY and not _is_network(proxy):
            raise SettingsInvalid(
                f"trusted_proxies: {proxy!r} is not an IP address; use one such as 10.0.0.2"
            )


class Guard:
    """Check the Host header. A DNS rebinding page makes the browser send the page's own name as Host, so names must
    be configured. IP addresses are safe."""

    def __init__(self, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> None:
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}
        self._origins = {origin.lower().rstrip("/") for origin in origins}

    def check(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) > 1:
            raise HttpError(400, "bad_host", "a request must have exactly one Host header")
        host = hosts[0].decode("latin-1").strip().lower() if hosts else ""
        if not self._is_known(host):
            raise HttpError(421, "unknown_host", "unknown host name; see the setting `hosts`")
        for name, value in headers:
            if name == b"origin":
                self._check_origin(value.decode("latin-1").strip().lower(), host)

    def allows(self, origin: str) -> bool:
        """Whether pages of this origin may read responses."""
        return _ANY in self._origins or origin.lower().rstrip("/") in self._origins

    def _is_known(self, host: str) -> bool:
        name = _name_of(host)
        if name is None:
            return False
        return name in self._hosts or host in self._hosts or _ANY in self._hosts or _is_address(name)

    def _check_origin(self, origin: str, host: str) -> None:
        if self.allows(origin):
            return
        if origin in {f"{scheme}://{host}" for scheme in _WEB}:
            return
        raise HttpError(403, "foreign_origin", "this origin is not allowed; see the setting `origins`")


def credential_of(headers: Mapping[str, str]) -> str:
    """Return the credential from `Authorization: Bearer` or `x-api-key`. Raises `Unauthenticated` if there is none."""
    scheme, _, value = headers.get("authorization", "").strip().partition(" ")
    credential = value.strip() if scheme.lower() == "bearer" else ""
    credential = credential or headers.get("x-api-key", "").strip()
    if not credential:
        raise MissingCredential("credential required: Authorization: Bearer <key>")
    if len(credential) > CREDENTIAL_CHARS_MAX:
        raise Unauthenticated("the credential is not valid")
    return credential


class MissingCredential(Unauthenticated):
    """The request has no credential."""

    code = "missing_credential"


def _name_of(host: str) -> str | None:
    """Return the name without the port, or None if the value is not a host."""
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port  # raises for a port that is not a number
    except ValueError:
        return None
    return name if parts.netloc == host and "@" not in host else None


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
