"""Whose a credential is. A client of a provider has one place for a key, and puts a provider's there or ours; one that
is ours never goes upstream, and one that is a provider's is never asked of our catalog where it can be told."""

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
"""What a client gives that has no key at all, because it must give something: the server's own is used."""

_HEADERS = ("authorization", "x-api-key", "api-key")
"""Where providers look for a key: OpenAI, Anthropic, Azure."""
_AGENT = re.compile(r".+:[0-9a-f]{48,512}", re.ASCII | re.DOTALL)
_TOKEN_DOTS = 2
_CLAIMS: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


_PROVIDERS_BEGIN = "sk-"
"""How keys of OpenAI and Anthropic begin, and of those who do as they do."""


class ProxyCredentials:
    """Tells ours from a provider's."""

    def __init__(self, settings: Settings) -> None:
        self._issuers = {settings.jwt_issuer, settings.jwks_issuer} - {None}

    def credential(self, headers: Mapping[str, str]) -> str:
        """What says who knocks. Raises `Unauthenticated` where that can only be a provider's, and says what is needed."""
        given = self.own_credential(headers)
        if given.startswith(_PROVIDERS_BEGIN) and ":" not in given:  # an agent's own token has a colon
            raise Unauthenticated(
                "this is a provider's key: put a Memplane key in its place (`memplane key create`), or beside it in "
                f"{KEY_HEADER}"
            )
        return given

    def own_credential(self, headers: Mapping[str, str]) -> str:
        """What says who knocks: the header for it, or else the first place that holds something of our form, or else
        whatever is there. Raises `Unauthenticated` where there is nothing."""
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
            if found:  # where Azure's clients put it
                return found[0]
            raise MissingCredential(
                f"a credential is needed: a Memplane key in place of the provider's, or beside it in {KEY_HEADER}"
            ) from exc

    def providers(self, headers: Mapping[str, str], *, authenticated: bool) -> frozenset[str]:
        """The headers that hold a provider's key, which is the client's own business and goes along."""
        used = self._used(headers, authenticated=authenticated)
        return frozenset(
            place
            for place, value in _credentials_in(headers)
            if value != SERVER_KEY and not _contains(value, used) and not self._is_own(value)
        )

    def stays(self, headers: Mapping[str, str], *, authenticated: bool) -> Callable[[str], bool]:
        """Tells whether a text holds what let this request in, or a key of ours: then it goes nowhere."""
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
    """What stands in each of the places."""
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
    """Who a token says it is from, whether or not that is so: one that claims to be ours stays here."""
    claims = token.split(".")[1]
    try:
        decoded = _CLAIMS.decode(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None
    issuer = decoded.get("iss")
    return issuer if isinstance(issuer, str) else None
