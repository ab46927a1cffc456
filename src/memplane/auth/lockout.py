"""Lockout after repeated failed logins.

Wrong credentials are counted by place: the client address, and the target. A guess at an existing key counts against
that key from that address; a token against tokens; anything else against the address alone. So an attacker behind a
proxy locks out neither the keys nor the tokens of others behind it. A credential that was accepted before is always
checked: it is not a guess. Attempts during a lockout do not count, so it ends a minute after the last checked guess.

Each process counts by itself and publishes a lockout to the others with one write. Several processes thus allow a few
more guesses, and no guess costs a write. The number of places is bounded; the least recently seen is dropped.
"""

import hashlib
import ipaddress
import os
import threading
from collections import OrderedDict, deque

from memplane.auth.principal import LockedOut
from memplane.clock import SECOND, Clock, Instant
from memplane.storage.catalog.credentials import CredentialStore

GUESSES_MAX = 20
WINDOW = 60 * SECOND
SOURCES_MAX = 10_000
KNOWN_MAX = 10_000

_IPV6_NETWORK_BITS = 64


class LoginThrottle:
    """Counts wrong credentials and remembers accepted ones. Thread-safe."""

    def __init__(self, credentials: CredentialStore, clock: Clock) -> None:
        self._credentials = credentials
        self._clock = clock
        self._missed: OrderedDict[bytes, deque[Instant]] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._salt = os.urandom(32)
        self._lock = threading.Lock()

    def check(self, peer: str, aim: str = "") -> None:
        """Raise `LockedOut` while this place is locked, by any process."""
        place, now = _source(peer, aim), self._clock()
        with self._lock:
            until = self._locked_here(place, now)
        if until is None:
            until = self._credentials.locked_until(place)
        # A clock that was set back must not turn a minute into an hour.
        if until is not None and now < until <= now + WINDOW:
            raise LockedOut(-(-(until - now) // SECOND))

    def missed(self, peer: str, aim: str = "") -> None:
        """Count a wrong credential."""
        place, now = _source(peer, aim), self._clock()
        with self._lock:
            missed = self._missed.setdefault(place, deque(maxlen=GUESSES_MAX))
            self._missed.move_to_end(place)
            missed.append(now)
            until = self._locked_here(place, now)
            if len(self._missed) > SOURCES_MAX:
                self._missed.popitem(last=False)
        if until is not None:
            self._credentials.lock(place, until, now=now)

    def is_known(self, credential: str) -> bool:
        """Whether this process has accepted it before."""
        mark = self._mark(credential)
        with self._lock:
            return mark in self._known

    def remember(self, credential: str) -> None:
        mark = self._mark(credential)
        with self._lock:
            self._known[mark] = None
            self._known.move_to_end(mark)
            if len(self._known) > KNOWN_MAX:
                self._known.popitem(last=False)

    def forget(self, credential: str) -> None:
        """An accepted credential became invalid: from now on it counts as a guess."""
        mark = self._mark(credential)
        with self._lock:
            self._known.pop(mark, None)

    def _locked_here(self, place: bytes, now: Instant) -> Instant | None:
        """Until the oldest of too many guesses is out of the window."""
        missed = self._missed.get(place)
        if missed is None or len(missed) < GUESSES_MAX or missed[0] + WINDOW <= now:
            return None
        return missed[0] + WINDOW

    def _mark(self, credential: str) -> bytes:
        """A digest rather than the credential: memory may end up in a core dump."""
        return hashlib.blake2b(
            credential.encode("utf-8", "surrogatepass"), digest_size=16, key=self._salt
        ).digest()


def _source(peer: str, aim: str) -> bytes:
    return hashlib.blake2b(
        f"{network_of(peer)}\n{aim}".encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()


def network_of(peer: str) -> str:
    """The address, or for IPv6 the network, because one machine has countless addresses there."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, _IPV6_NETWORK_BITS), strict=False))
    return str(address)
