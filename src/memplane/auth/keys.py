"""API keys: format, creation and verification.

A key is `mp_<id>_<secret>`; a key bound to an agent is `<agent>:<secret>`, as Clawdapus issues them. Secrets are
generated: 256 random bits (192 for an agent's 48 hexadecimal digits). They cannot be guessed, so a fast salted hash
is stored: a slow hash protects passwords people choose, and here would only let an attacker burn our CPU with wrong
guesses. The salt separates equal secrets and defeats precomputed tables.
"""

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Collection, Sequence
from datetime import timedelta

import msgspec

from memplane.auth.principal import ADAPTERS, Principal, Right, Secret
from memplane.clock import Instant
from memplane.errors import InvalidRequest, NotFound
from memplane.storage.catalog.credentials import KeyRecord
from memplane.types import TENANT_DEFAULT

NAME_CHARS_MAX = 200
TTL_MAX = timedelta(days=36_525)

_ALPHABET = string.ascii_letters + string.digits
_ID_BYTES = 8
_SECRET_CHARS = 43  # 62 characters: 256 bits
_AGENT_SECRET_BYTES = 24
_SALT_BYTES = 16
_MICROSECOND = timedelta(microseconds=1)
_PERSON = b"memplane key"
_KEY = re.compile(r"mp_([0-9a-f]{16})_([0-9A-Za-z]{43})", re.ASCII)
_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
_AGENT_SECRET = re.compile(r"[0-9a-f]{48,512}", re.ASCII)

_DUMMY_SALT = secrets.token_bytes(_SALT_BYTES)
_DUMMY_DIGEST = secrets.token_bytes(32)


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a new key may access."""

    name: str = ""
    """Shown in lists; defaults to the agent or the subject."""
    agent: str | None = None
    """Makes it a key of this agent, `agent:secret`, for the agent's own space."""
    tenant: str = TENANT_DEFAULT
    subject: str | None = None
    """The space used by interfaces that name none; defaults to the agent, the only space, or the name."""
    spaces: Collection[str] | None = None
    """None: every space of the tenant, unless it is an agent's key."""
    adapters: Collection[str] | None = None
    """None: every adapter."""
    rights: Collection[Right] = (Right.READ, Right.WRITE)
    ttl: timedelta | None = None
    """None: until revoked."""
    parent: str | None = None
    """The id of the key it was created with and expires with, if any."""
    passing: bool = False
    """Whether it is a session or a sign-in ticket rather than a key."""


class MintedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new key, the only time its secret is known."""

    key: KeyRecord
    bearer: Secret


class KeyUnknown(NotFound):
    """No key has this id."""

    def __init__(self, key_id: str) -> None:
        InvalidRequest.__init__(self, _unknown(key_id), field="id")
        self.what, self.name = "key", key_id if is_key_id(key_id) else "…"


def mint(grant: Grant, *, now: Instant, secret: Secret | None = None) -> MintedKey:
    """Create a key. `secret` takes over an agent's existing token."""
    _check(grant)
    if secret is not None:
        drawn = _derived_key(grant, secret)
    elif grant.agent is not None:
        drawn = secrets.token_hex(_AGENT_SECRET_BYTES)
    else:
        drawn = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_CHARS))
    key_id, salt = secrets.token_hex(_ID_BYTES), secrets.token_bytes(_SALT_BYTES)
    spaces = _spaces(grant)
    only = spaces[0] if spaces is not None and len(spaces) == 1 else None
    name = grant.name or grant.agent or grant.subject or only or "key"
    record = KeyRecord(
        id=key_id,
        agent=grant.agent,
        salt=salt,
        digest=digest(drawn, salt),
        name=name,
        tenant=grant.tenant,
        subject=grant.subject or grant.agent or only or name,
        spaces=spaces,
        doors=None if grant.adapters is None else tuple(sorted(set(grant.adapters))),
        rights=tuple(sorted({right.value for right in grant.rights})),
        created=now,
        expires=None if grant.ttl is None else now + grant.ttl // _MICROSECOND,
        parent=grant.parent,
        passing=grant.passing,
    )
    bearer = f"{grant.agent}:{drawn}" if grant.agent is not None else f"mp_{key_id}_{drawn}"
    return MintedKey(key=record, bearer=Secret(bearer))


def digest(secret: str, salt: bytes) -> bytes:
    return hashlib.blake2b(secret.encode(), digest_size=32, salt=salt, person=_PERSON).digest()


def split_key(credential: str) -> tuple[str, str] | None:
    """The id and secret of a string like `mp_<id>_<secret>`."""
    found = _KEY.fullmatch(credential)
    return None if found is None else (found[1], found[2])


def contains_key(text: str) -> bool:
    """Whether the text contains something that looks like a key."""
    return _KEY.search(text) is not None


def is_key_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def matching(records: Sequence[KeyRecord], secret: str) -> KeyRecord | None:
    """The record this secret belongs to. Checks all of them, and does the same work if there is none, so the time
    taken does not reveal whether a key or an agent exists."""
    found = None
    if not records:
        hmac.compare_digest(digest(secret, _DUMMY_SALT), _DUMMY_DIGEST)
    for record in records:
        if hmac.compare_digest(digest(secret, record.salt), record.digest):
            found = record
    return found


def principal_of(record: KeyRecord) -> Principal:
    return Principal(
        tenant=record.tenant,
        subject=record.subject,
        spaces=None if record.spaces is None else frozenset(record.spaces),
        adapters=None if record.doors is None else frozenset(record.doors),
        rights=frozenset(Right(right) for right in record.rights),
        credential=record.id,
        expires=record.expires,
    )


def _spaces(grant: Grant) -> tuple[str, ...] | None:
    if grant.spaces is not None:
        return tuple(sorted(set(grant.spaces)))
    return None if grant.agent is None else (grant.agent,)


def _check(grant: Grant) -> None:
    for field in ("name", "agent", "tenant", "subject"):
        _check_name(getattr(grant, field), field, empty=field == "name")
    for space in grant.spaces or ():
        _check_name(space, "space")
    if not grant.rights:
        raise InvalidRequest("rights: give at least one of read, write and admin", field="rights")
    if grant.spaces is not None and not grant.spaces:
        raise InvalidRequest("spaces: name at least one", field="spaces")
    if grant.adapters is not None and not grant.adapters:
        raise InvalidRequest("interfaces: name at least one", field="adapters")
    unknown = sorted(set(grant.adapters or ()) - ADAPTERS)
    if unknown:
        raise InvalidRequest(
            f"interfaces: {unknown[0]!r} is unknown; choose from {', '.join(sorted(ADAPTERS))}",
            field="adapters",
        )
    if Right.ADMIN in set(grant.rights) and (grant.spaces is not None or grant.agent is not None):
        raise InvalidRequest(
            "rights: admin is over the whole tenant, so such a key names no spaces and no agent",
            field="rights",
        )
    if grant.ttl is not None and not timedelta(seconds=1) <= grant.ttl <= TTL_MAX:
        raise InvalidRequest(
            "ttl: a key lives for at least a second and at most a hundred years", field="ttl"
        )


def _check_name(value: str | None, field: str, *, empty: bool = False) -> None:
    if value is None:
        return
    if not value.strip() and not empty:
        raise InvalidRequest(f"{field}: give a name that is not empty", field=field)
    if len(value) > NAME_CHARS_MAX:
        raise InvalidRequest(f"{field}: at most {NAME_CHARS_MAX} characters are possible", field=field)
    if not value.isprintable():
        raise InvalidRequest(f"{field}: a name holds no control characters", field=field)


def _derived_key(grant: Grant, secret: Secret) -> str:
    if grant.agent is None:
        raise InvalidRequest("secret: only an agent's can be taken over; name the agent", field="secret")
    text = secret.reveal().strip().removeprefix(f"{grant.agent}:")
    if not _AGENT_SECRET.fullmatch(text):
        raise InvalidRequest(
            "secret: an agent's is at least 48 hexadecimal digits, as Clawdapus makes them; a shorter or "
            "a chosen one could be guessed",
            field="secret",
        )
    return text


def _unknown(key_id: str) -> str:
    """The caller may have passed a whole key, so it is not repeated."""
    if is_key_id(key_id):
        return f"no key has the id {key_id}; `memplane key list` shows them"
    return "that is not the id of a key: an id is 16 hexadecimal digits, as `memplane key list` shows them"
