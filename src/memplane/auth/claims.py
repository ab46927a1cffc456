"""The claims of a token, and the interface that reads and signs tokens. The implementation is in `tokens.py`: its
cryptography takes longer to load than most commands, and few installations use tokens."""

from typing import NoReturn, Protocol

import msgspec

from memplane.auth.principal import Principal, Secret
from memplane.clock import Instant
from memplane.errors import SettingsInvalid

TTL_DEFAULT_S = 24 * 3_600
SUBJECT_MISSING = "unknown"
NOT_SET = "jwt_secret: set MEMPLANE_JWT_SECRET_FILE or MEMPLANE_JWT_SECRET to make tokens"


class TokenClaims(msgspec.Struct, omit_defaults=True):
    """The claims of a token; unknown ones are ignored."""

    exp: float | None = None
    nbf: float | None = None
    iat: float | None = None
    iss: str | None = None
    sub: str | None = None
    aud: str | list[str] | None = None
    name: str | None = None
    client: str | None = None
    scopes: list[str] | None = None
    scope: str | None = None
    tenant: str | None = None
    spaces: list[str] | None = None
    adapters: list[str] | None = msgspec.field(default=None, name="doors")


class TokenRequirements(msgspec.Struct, frozen=True, kw_only=True):
    """The claims a token must have to be accepted."""

    issuer: str | None = None
    audience: str | None = None


class Signer(Protocol):
    """Reads and signs tokens; `memplane.auth.tokens.Tokens` implements it."""

    def mint(
        self, claims: TokenClaims, *, now: Instant, ttl_s: int = TTL_DEFAULT_S
    ) -> tuple[Secret, Instant]: ...

    def read(self, token: str, *, now: Instant) -> Principal | None: ...


class NoTokens:
    """A `Signer` without a secret or an issuer: no token is trusted."""

    def mint(self, claims: TokenClaims, *, now: Instant, ttl_s: int = TTL_DEFAULT_S) -> NoReturn:
        del claims, now, ttl_s
        raise SettingsInvalid(NOT_SET)

    def read(self, token: str, *, now: Instant) -> Principal | None:
        del token, now
        return None
