"""The public keys of an issuer: a JWKS from a file or a URL, cached and refreshed."""

import base64
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

from memplane.auth.principal import KeySetUnavailable
from memplane.auth.tokens import PublicKey
from memplane.clock import SECOND, Clock, Instant
from memplane.errors import SettingsInvalid
from memplane.models.http import JsonClient, NoResponse, display_address

FRESH = 3_600 * SECOND
"""How long keys are used before a refresh: a withdrawn key is trusted at most this long."""
STALE_MAX = 24 * FRESH
"""How long cached keys are used while the issuer is unreachable."""
PAUSE = 60 * SECOND
"""Minimum time between two requests: unknown key ids must not make us flood the issuer."""
FETCH_TIMEOUT_S = 5.0

_BYTES_MAX = 1024 * 1024
_RSA_BITS_MIN = 2_048


class KeySet:
    """`PublicKeys` of one issuer. Thread-safe; only one thread asks the issuer."""

    def __init__(self, source: str, clock: Clock) -> None:
        self._source = _Source(source)
        self._clock = clock
        self._keys: list[tuple[str | None, PublicKey]] | None = None
        self._loaded: Instant = 0
        self._asked: Instant | None = None
        self._asking = threading.Lock()

    def find(self, kid: str | None, kty: str) -> PublicKey | None:
        if self._keys is None or self._clock() - self._loaded >= FRESH:
            self._refresh(wait=self._keys is None)
        found = self._known(kid, kty)
        if found is None:
            self._refresh(wait=False)
            found = self._known(kid, kty)
        return found

    def _known(self, kid: str | None, kty: str) -> PublicKey | None:
        if self._keys is None or self._clock() - self._loaded >= STALE_MAX:
            raise KeySetUnavailable(f"{self._source.place}: the keys of the issuer cannot be had; try again")
        fitting = [key for its_id, key in self._keys if key.key_type == kty and kid in {None, its_id}]
        return fitting[0] if len(fitting) == 1 else None

    def _refresh(self, *, wait: bool) -> None:
        """Refresh the keys, unless that just happened or another thread is doing it and cached keys exist."""
        if not self._asking.acquire(blocking=wait):
            return
        try:
            now = self._clock()
            if (
                self._asked is not None and 0 <= now - self._asked < PAUSE
            ):  # negative if the clock was set back
                return
            self._asked = now
            keys = self._source.fetch()
            if keys is not None:
                self._keys, self._loaded = keys, now
        finally:
            self._asking.release()


class _Source:
    """The source of the keys."""

    def __init__(self, source: str) -> None:
        self._client: JsonClient | None = None
        self._file: Path | None = None
        if "://" not in source:
            self._file = Path(source).expanduser()
            self.place = str(self._file)
            return
        parts = urlsplit(source)
        if parts.scheme != "https" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}:
            raise SettingsInvalid(
                "jwks: give an https:// address or a file; over plain http anyone could swap keys"
            )
        self.place = display_address(source)
        self._client = JsonClient(
            source, headers={}, timeout_s=FETCH_TIMEOUT_S, attempts_max=1, answer_bytes_max=_BYTES_MAX
        )

    def fetch(self) -> list[tuple[str | None, PublicKey]] | None:
        """None if it cannot be fetched or is not a key set."""
        try:
            raw = self._client.get() if self._client is not None else self._read()
            document = msgspec.json.decode(raw, type=dict[str, Any])
        except (NoResponse, OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        given = document.get("keys")
        if not isinstance(given, list):
            return None
        return [entry for entry in map(_imported, given) if entry is not None]

    def _read(self) -> bytes:
        assert self._file is not None
        with self._file.open("rb") as file:
            return file.read(_BYTES_MAX)


def _imported(given: Any) -> tuple[str | None, PublicKey] | None:
    """A key that can verify RS256 or ES256; others in the set are ignored."""
    if not isinstance(given, dict) or given.get("use") not in {None, "sig"}:
        return None
    kid = given.get("kid")
    if kid is not None and not isinstance(kid, str):
        return None
    try:
        match given:
            case {"kty": "RSA"} if given.get("alg") in {None, "RS256"}:
                return _strong(kid, given)
            case {"kty": "EC", "crv": "P-256"} if given.get("alg") in {None, "ES256"}:
                return kid, ECKey.import_key(_public(given, "crv", "x", "y"))
    except (JoseError, ValueError, TypeError, KeyError):
        pass
    return None


def _strong(kid: str | None, given: dict[str, Any]) -> tuple[str | None, PublicKey] | None:
    public = _public(given, "n", "e")
    modulus = str(public["n"])
    number = int.from_bytes(base64.urlsafe_b64decode(modulus + "=" * (-len(modulus) % 4)))
    return (kid, RSAKey.import_key(public)) if number.bit_length() >= _RSA_BITS_MIN else None


def _public(given: dict[str, Any], *fields: str) -> dict[str, str | list[str]]:
    """Only the public half, even if the file holds a private key."""
    return {name: str(given[name]) for name in ("kty", *fields)}
