"""Separates Memplane's credentials from providers' keys. A provider's client has one place for a key, which holds
either. Memplane's credentials never go upstream, and recognizable provider keys are not looked up in the catalog."""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from memplane.auth.keys import contains_key, split_key
from memplane.auth.principal import CREDENTIAL_CHARS_MAX, Unauthenticated
from memplane.config import Settings
from memplane.server.guard import MissingCredential, credential_of

KEY_HEADER = "x-memplane-key"
SERVER_KEY = "memplane"
"""Placeholder keys from clients that have none but must send one; the server's key is used instead."""

_HEADERS = ("authorization", "x-api-key", "api-key")
"""Headers in which providers expect a key: OpenAI, Anthropic, Azure."""
_AGENT = re.compile(r".+:[0-9a-f]{48,512}", re.ASCII | re.DOTALL)
_TOKEN_DOTS = 2
_CLAIMS: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


_PROVIDERS_BEGIN = "sk-"
"""Key prefixes of OpenAI, Anthropic and compatible providers."""


class ProxyCredentials:
    """Distinguishes Memplane's credentials from provider keys."""

    def __init__(self, settings: Settings) -> None:
        self._issuers = {settings.jwt_issuer, settings.jwks_issuer} - {None}

    def credential(self, headers: Mapping[str, str]) -> str:
        """The caller's credential. Raises `Unauthenticated` if it can only be a provider's key, and says what to
        send."""
        given = self.own_credential(headers)
        if given.startswith(_PROVIDERS_BEGIN) and ":" not in given:  # an agent token contains a colon
            raise Unauthenticated(
                "this is a provider's key: replace it with a Memplane key (`memplane key create`), or send one in "
                f"{KEY_HEADER}"
            )
        return given

    def own_credential(self, headers: Mapping[str, str]) -> str:
        """The caller's credential: from the dedicated header, else the first value in Memplane's format, else any
        value. Raises `Unauthenticated` if there is none."""
        given = headers.get(KEY_HEADER, "").strip().removeprefix("Bearer ").strip()
        if len(given) > CREDENTIAL_CHARS_MAX:
            raise Unauthenticated("the credential is not valid")
        if given:
            return given
        found = [value for _, value in _credentials_in(headers)]
        for value in found:
            if self._is_own(value):
                return value
        try:
            return credential_of(headers)
        except MissingCredential as exc:
            if found:  # Azure clients use this header
                return found[0]
            raise MissingCredential(
                f"missing credential: send a Memplane key instead of the provider's, or in {KEY_HEADER}"
            ) from exc

    def providers(self, headers: Mapping[str, str], *, authenticated: bool) -> frozenset[str]:
        """The headers with a provider's key. The key belongs to the client and is forwarded."""
        used = self._used(headers, authenticated=authenticated)
        return frozenset(
            place
            for place, value in _credentials_in(headers)
            if value != SERVER_KEY and not _contains(value, used) and not self._is_own(value)
        )

    def stays(self, headers: Mapping[str, str], *, authenticated: bool) -> Callable[[str], bool]:
        """Whether a text contains this request's credential or any Memplane key, in which case it must not be
        forwarded."""
        used = self._used(headers, authenticated=authenticated)
        return lambda text: _contains(text, used)

    def _used(self, headers: Mapping[str, str], *, authenticated: bool) -> str:
        return self.own_credential(headers) if authenticated else ""

    def _is_own(self, credential: str) -> bool:
        if split_key(credential) is not None or _AGENT.fullmatch(credential):
            return True
        return credential.count(".") == _TOKEN_DOTS and _issuer_of(credential) in self._issuers


def is_credential_header(header: str) -> bool:
    return header in _HEADERS


def _contains(text: str, used: str) -> bool:
    return bool(used and used in text) or contains_key(text)


def _credentials_in(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The value of each key header."""
    found = []
    for place in _HEADERS:
        value = headers.get(place, "").strip()
        if place == "authorization":
            scheme, _, rest = value.partition(" ")
            value = rest.strip() if scheme.lower() == "bearer" else value
        if value:
            found.append((place, value))
    return found


def _issuer_of(token: str) -> str | None:
    """The issuer that a token claims, unverified. A token that claims to be Memplane's is not forwarded."""
    claims = token.split(".")[1]
    try:
        decoded = _CLAIMS.decode(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None
    issuer = decoded.get("iss")
    return issuer if isinstance(issuer, str) else None
