"""Identity: authenticate credentials, and create and revoke them."""

from collections.abc import Sequence
from datetime import timedelta

from memplane.auth.claims import TTL_DEFAULT_S, Signer, TokenClaims
from memplane.auth.keys import (
    Grant,
    KeyUnknown,
    MintedKey,
    is_key_id,
    matching,
    mint,
    principal_of,
    split_key,
)
from memplane.auth.lockout import LoginThrottle
from memplane.auth.principal import CREDENTIAL_CHARS_MAX, Principal, Right, Secret, Unauthenticated
from memplane.clock import SECOND, Clock, Instant, system_clock
from memplane.storage.catalog.credentials import CredentialStore, KeyRecord

USED_EVERY = 3_600 * SECOND
"""The granularity of "last used": a key in steady use costs one small write per hour."""

_OWNER = Grant(name="owner", subject="default", rights=tuple(Right))
_OWNER_ONCE = "owner key"
_TOKEN_DOTS = 2
_AIM_TOKEN = "token"  # noqa: S105 - what a guess is aimed at, not a token


class Identity:
    """The `Authenticator` over the catalog. Thread-safe; any number of processes share one catalog."""

    def __init__(self, credentials: CredentialStore, tokens: Signer, *, clock: Clock = system_clock) -> None:
        self._credentials = credentials
        self._tokens = tokens
        self._clock = clock
        self.guesses = LoginThrottle(credentials, clock)
        """For adapters with their own login: call `check(peer)` before, `missed(peer)` after a wrong password."""

    # ── who is it? ───────────────────────────────────────────────────────────────────────────────────────────────

    def authenticate(self, credential: str, *, peer: str) -> Principal:
        """See `Authenticator`. Every call reads the catalog, so a revoked key is rejected from the next request on,
        in every process."""
        known = self.guesses.is_known(credential)
        try:
            principal = self._principal(credential, peer, known=known)
        except Unauthenticated:
            if known:
                self.guesses.forget(credential)
            raise
        if not known:
            self.guesses.remember(credential)
        return principal

    def _principal(self, credential: str, peer: str, *, known: bool) -> Principal:
        if len(credential) > CREDENTIAL_CHARS_MAX or not _is_text(credential):
            credential = ""
        split = split_key(credential)
        if split is not None:
            record = self._credentials.key(split[0])
            records, secret, aim = (
                ([] if record is None else [record]),
                split[1],
                "" if record is None else split[0],
            )
        elif ":" not in credential and credential.count(".") == _TOKEN_DOTS:
            return self._of_token(credential, peer, known=known)
        else:
            agent, _, secret = credential.rpartition(":")
            records, aim = (list(self._credentials.keys_of_agent(agent)) if agent else []), ""
        if not known:
            self.guesses.check(peer, aim)
        found = matching(records, secret)
        if found is None:
            self.guesses.missed(peer, aim)
            raise Unauthenticated("the credential is not valid")
        return self._of_key(found)

    def _of_key(self, record: KeyRecord) -> Principal:
        now = self._clock()
        _check_lives(record, now)
        if record.parent is not None:
            parent = self._credentials.key(record.parent)
            if parent is None:
                raise Unauthenticated("the key of this session is gone")
            _check_lives(parent, now)
        if record.used is None or now - record.used >= USED_EVERY:
            self._credentials.touch(record.id, now)
        return principal_of(record)

    def _of_token(self, token: str, peer: str, *, known: bool) -> Principal:
        if not known:
            self.guesses.check(peer, _AIM_TOKEN)
        principal = self._tokens.read(token, now=self._clock())
        if principal is None:
            self.guesses.missed(peer, _AIM_TOKEN)
            raise Unauthenticated("the credential is not valid")
        return principal

    # ── making and ending ────────────────────────────────────────────────────────────────────────────────────────

    def create_key(self, grant: Grant, *, secret: Secret | None = None) -> MintedKey:
        """Create a key; its secret is only in the result. `secret` takes over an agent's existing token."""
        minted = mint(grant, now=self._clock(), secret=secret)
        self._credentials.add(minted.key)
        return minted

    def create_key_once(self, grant: Grant, word: str) -> MintedKey | None:
        """Like `create_key` for the first call with this nonce, in any process; None for later ones. For clients that
        repeat a request."""
        minted = mint(grant, now=self._clock())
        return minted if self._credentials.add(minted.key, once=f"key {word}") else None

    def ticket(self, *, adapter: str, ttl: timedelta) -> Secret:
        """The ticket of the owner's sign-in link: valid for minutes, for one adapter, and `sign_in` with `once`
        accepts it a single time."""
        grant = Grant(
            name=f"{adapter} link",
            subject=_OWNER.subject,
            adapters=(adapter,),
            rights=tuple(Right),
            ttl=ttl,
            passing=True,
        )
        return self.create_key(grant).bearer

    def sign_in(
        self, principal: Principal, *, adapter: str, ttl: timedelta, once: str | None = None
    ) -> MintedKey | None:
        """A key for one session at one adapter, with at most the rights and lifetime of the caller. With `once`, None
        for all but the first call with that nonce."""
        now = self._clock()
        if principal.expires is not None:
            ttl = min(ttl, timedelta(microseconds=principal.expires - now))
        grant = Grant(
            name=f"{adapter} session",
            tenant=principal.tenant,
            subject=principal.subject,
            spaces=principal.spaces,
            adapters=(adapter,),
            rights=tuple(principal.rights),
            ttl=max(ttl, timedelta(seconds=1)),
            parent=principal.credential if is_key_id(principal.credential) else None,
            passing=True,
        )
        minted = mint(grant, now=now)
        return minted if self._credentials.add(minted.key, once=once) else None

    def owner_key(self) -> MintedKey | None:
        """The owner key, for the first caller in the life of the data directory, in any process; None for later ones."""
        minted = mint(_OWNER, now=self._clock())
        return minted if self._credentials.add(minted.key, once=_OWNER_ONCE) else None

    def list_keys(self) -> Sequence[KeyRecord]:
        """Every key, including revoked ones, oldest first; without sessions."""
        return [record for record in self._credentials.list_keys() if not record.passing]

    def only_admin(self, tenant: str, *, adapter: str) -> str | None:
        """The id of the only key that can administer the tenant through this adapter; None if there are several or
        none. It can still be revoked: a stolen key must end at once, and the owner of the data can create another."""
        now = self._clock()
        living = [
            record.id
            for record in self.list_keys()
            if record.tenant == tenant
            and Right.ADMIN in record.rights
            and (record.doors is None or adapter in record.doors)
            and _lives(record, now)
        ]
        return living[0] if len(living) == 1 else None

    def parent_of(self, key_id: str) -> str | None:
        """The id of the key a session was created with and ends with."""
        record = self._credentials.key(key_id) if is_key_id(key_id) else None
        return None if record is None else record.parent

    def revoke(self, key_id: str) -> KeyRecord:
        """Revoke a key; every process rejects it from the next request on."""
        revoked = self._credentials.revoke(key_id, self._clock())
        if revoked is None:
            raise KeyUnknown(key_id)
        return revoked

    def mint_token(self, claims: TokenClaims, *, ttl_s: int = TTL_DEFAULT_S) -> tuple[Secret, Instant]:
        """A token signed with the shared secret, and its expiry; `SettingsInvalid` without a secret."""
        return self._tokens.mint(claims, now=self._clock(), ttl_s=ttl_s)

    def close(self) -> None:
        self._credentials.close()


def _lives(record: KeyRecord, now: Instant) -> bool:
    return record.revoked is None and (record.expires is None or record.expires > now)


def _check_lives(record: KeyRecord, now: Instant) -> None:
    if record.revoked is not None:
        raise Unauthenticated("this key was revoked")
    if record.expires is not None and record.expires <= now:
        raise Unauthenticated("this key has expired")


def _is_text(credential: str) -> bool:
    """Headers are bytes; the catalog cannot be queried with a lone surrogate."""
    try:
        credential.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in credential
