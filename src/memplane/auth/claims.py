"""What a token says, and what is asked of whoever reads and makes them. What signs is elsewhere: the cryptography of
tokens takes longer to load than most commands take, and few installations have any."""

from typing import NoReturn, Protocol

import msgspec

from memplane.auth.principal import Principal, Secret
from memplane.clock import Instant
from memplane.errors import SettingsInvalid

TTL_DEFAULT_S = 24 * 3_600
SUBJECT_MISSING = "unknown"
NOT_SET = "jwt_secret: set MEMPLANE_JWT_SECRET_FILE or MEMPLANE_JWT_SECRET to make tokens"


class Claims(msgspec.Struct, omit_defaults=True):
    """What a token says. Anything else in it is passed over."""

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
    doors: list[str] | None = None


class TokenRequirements(msgspec.Struct, frozen=True, kw_only=True):
    """What must stand in a token for us to take it."""

    issuer: str | None = None
    audience: str | None = None


class Signer(Protocol):
    """Reads tokens and makes them; `memplane.auth.tokens.Tokens` is one."""

    def mint(self, claims: Claims, *, now: Instant, ttl_s: int = TTL_DEFAULT_S) -> tuple[Secret, Instant]: ...

    def read(self, token: str, *, now: Instant) -> Principal | None: ...


class NoTokens:
    """A `Signer` where neither a secret nor an issuer is set: nobody we trust signed anything."""

    def mint(self, claims: Claims, *, now: Instant, ttl_s: int = TTL_DEFAULT_S) -> NoReturn:
        del claims, now, ttl_s
        raise SettingsInvalid(NOT_SET)

    def read(self, token: str, *, now: Instant) -> Principal | None:
        del token, now
        return None
