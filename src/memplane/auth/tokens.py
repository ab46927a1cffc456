"""JSON Web Tokens: signed with the shared secret, and verified with it or with an issuer's keys.

The allowed algorithms follow from the key, never from the token: the shared secret verifies HS256, HS384 and HS512, a
public key RS256 or ES256 by its type. So neither `none` nor a public key used as a secret is accepted.

| claim | meaning |
|---|---|
| `sub` | the subject, and the one space it may access; `unknown` if missing or empty |
| `scopes` (a list) or `scope` (words) | `admin`: every right, every space. `memory:read`, `memory:write`: only those rights. Anything else, or nothing: read and write |
| `tenant` | the tenant; default `default` |
| `spaces` (a list) | the spaces it may access instead of its own |
| `doors` (a list) | the adapters it may use; default all |
| `exp` | required |
| `nbf` | honoured if present |
| `iss`, `aud` | as set |
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Protocol

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OctKey, RSAKey
from joserfc.jws import JWSRegistry, deserialize_compact, serialize_compact

from memplane.auth.claims import NOT_SET, SUBJECT_MISSING, TTL_DEFAULT_S, TokenClaims, TokenRequirements
from memplane.auth.keys import NAME_CHARS_MAX
from memplane.auth.principal import Principal, Right, Secret, Unauthenticated
from memplane.clock import SECOND, Instant
from memplane.errors import InvalidRequest, SettingsInvalid
from memplane.types import TENANT_DEFAULT

SECRET_BYTES_MIN = 32
TTL_MAX_S = 10 * 365 * 86_400
ADMIN = "admin"
CREDENTIAL = "jwt"

_HMAC = ("HS256", "HS384", "HS512")
_PUBLIC = {"RS256": "RSA", "ES256": "EC"}
_BACKDATED_S = 60
_YEAR_9999 = 253_402_300_799.0
_RIGHTS = {"memory:read": Right.READ, "memory:write": Right.WRITE}

PublicKey = RSAKey | ECKey


class _Header(msgspec.Struct):
    alg: str
    kid: str | None = None
    crit: msgspec.Raw | None = None
    b64: msgspec.Raw | None = None


class PublicKeys(Protocol):
    """The keys of an issuer."""

    def find(self, kid: str | None, kty: str) -> PublicKey | None:
        """The key with that id; without an id, the only one of that type."""


class _Registry(JWSRegistry):
    """Headers may be larger than joserfc allows and have members it does not know; `crit` is rejected before."""

    max_header_length = 1_024


class Tokens:
    """Reads tokens, and signs them if there is a secret."""

    def __init__(
        self,
        secret: Secret | None,
        expected: TokenRequirements,
        *,
        public_keys: PublicKeys | None = None,
        public_expected: TokenRequirements | None = None,
    ) -> None:
        self._key = None if secret is None else _secret_key(secret)
        self._expected = expected
        self._public_keys = public_keys
        self._public_expected = public_expected or TokenRequirements()

    def mint(
        self, claims: TokenClaims, *, now: Instant, ttl_s: int = TTL_DEFAULT_S
    ) -> tuple[Secret, Instant]:
        """A signed token and its expiry. It is valid from slightly before now, for clocks that are behind."""
        if self._key is None:
            raise SettingsInvalid(NOT_SET)
        if not 1 <= ttl_s <= TTL_MAX_S:
            raise InvalidRequest(
                "ttl: a token lives for at least a second and at most ten years", field="ttl"
            )
        if not claims.sub or len(claims.sub) > NAME_CHARS_MAX:
            raise InvalidRequest(f"sub: give a name of at most {NAME_CHARS_MAX} characters", field="sub")
        issued = now // SECOND
        claims = msgspec.structs.replace(
            claims,
            iss=self._expected.issuer,
            aud=self._expected.audience,
            iat=issued,
            nbf=issued - _BACKDATED_S,
            exp=issued + ttl_s,
        )
        token = serialize_compact(
            {"alg": "HS256", "typ": "JWT"}, msgspec.json.encode(claims), self._key, ["HS256"]
        )
        return Secret(token), (issued + ttl_s) * SECOND

    def read(self, token: str, *, now: Instant) -> Principal | None:
        """The owner of the token; None if no trusted party signed it. Raises `Unauthenticated` with the reason for a
        signed but invalid token, which is not a guess."""
        header = _header(token)
        if header is None:
            return None
        key: OctKey | PublicKey | None
        if header.alg in _HMAC:
            key, expected = self._key, self._expected
        elif header.alg in _PUBLIC and self._public_keys is not None:
            key, expected = self._public_keys.find(header.kid, _PUBLIC[header.alg]), self._public_expected
        else:
            return None
        payload = None if key is None else _verified(token, key, header.alg)
        if payload is None:
            return None
        try:
            claims = msgspec.json.decode(payload, type=TokenClaims)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
            raise Unauthenticated("the claims of this token cannot be read") from exc
        _check(claims, expected, now)
        return principal_of(claims)


def principal_of(claims: TokenClaims) -> Principal:
    subject = claims.sub or SUBJECT_MISSING
    scopes = {*(claims.scopes or ()), *(claims.scope or "").split()}
    if ADMIN in scopes:
        spaces, rights = None, frozenset(Right)
    else:
        spaces = frozenset({subject} if claims.spaces is None else claims.spaces)
        named = {_RIGHTS[scope] for scope in scopes if scope in _RIGHTS}
        rights = frozenset(named or {Right.READ, Right.WRITE})
    return Principal(
        tenant=claims.tenant or TENANT_DEFAULT,
        subject=subject,
        spaces=spaces,
        adapters=None if claims.adapters is None else frozenset(claims.adapters),
        rights=rights,
        credential=CREDENTIAL,
        expires=None if claims.exp is None else _instant(claims.exp),
    )


def _check(claims: TokenClaims, expected: TokenRequirements, now: Instant) -> None:
    """No leeway, as the contract requires."""
    if claims.exp is None:
        raise Unauthenticated("this token never expires, so it is not taken: `exp` is missing")
    if _instant(claims.exp) <= now:
        raise Unauthenticated("this token has expired")
    if claims.nbf is not None and _instant(claims.nbf) > now:
        raise Unauthenticated("this token is not valid yet")
    if expected.issuer is not None and claims.iss != expected.issuer:
        raise Unauthenticated("this token is from another issuer")
    if expected.audience is not None and expected.audience not in _audiences(claims.aud):
        raise Unauthenticated("this token is for another audience")


def _audiences(audience: str | Sequence[str] | None) -> Sequence[str]:
    return [audience] if isinstance(audience, str) else audience or ()


def _instant(seconds: float) -> Instant:
    """Clamped to the calendar's range: a token may contain any number."""
    return int(max(0.0, min(seconds, _YEAR_9999)) * SECOND)


def _header(token: str) -> _Header | None:
    segment = token.partition(".")[0]
    try:
        raw = base64.b64decode(segment + "=" * (-len(segment) % 4), altchars="-_", validate=True)
        header = msgspec.json.decode(raw, type=_Header)
    except (binascii.Error, ValueError, msgspec.MsgspecError, RecursionError):
        return None
    # No critical extension is supported, and a token's payload is always encoded.
    return header if header.crit is None and header.b64 is None else None


def _verified(token: str, key: OctKey | PublicKey, algorithm: str) -> bytes | None:
    """The payload, if the signature is valid."""
    registry = _Registry(algorithms=[algorithm], strict_check_header=False)
    try:
        return deserialize_compact(token, key, registry=registry).payload
    except (JoseError, ValueError, TypeError, RecursionError):
        return None


def _secret_key(secret: Secret) -> OctKey:
    raw = secret.reveal().encode()
    if len(raw) < SECRET_BYTES_MIN:
        raise SettingsInvalid(
            f"jwt_secret: at least {SECRET_BYTES_MIN} bytes are needed; `openssl rand -hex 32` makes them"
        )
    if b"BEGIN " in raw or raw.startswith((b"ssh-", b"ecdsa-")):
        raise SettingsInvalid(
            "jwt_secret: this is the public half of a key, which everybody may know; give a secret, or `jwks`"
        )
    return OctKey.import_key(raw)
