"""Lock-out on guessing.

Wrong credentials are counted by place: the address they came from, and what they were aimed at. A guess at a key that
exists counts against that key from that address; a token against tokens; anything else against the address alone. So
somebody who guesses behind a proxy locks out neither the keys nor the tokens of others behind it. A credential that
was let in before is always looked at, whatever its place: it is no guess. What was refused while a place is
locked does not count, so a lock ends a minute after the last guess that was looked at, however often one knocks.

Each process counts for itself and tells the others when it locks a place, with one write. Several processes thus
allow a few more guesses, and no guess costs a write. Places are bounded in number; the one seen longest ago goes.
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
    """Counts wrong credentials and remembers right ones. Safe to use from many threads."""

    def __init__(self, credentials: CredentialStore, clock: Clock) -> None:
        self._credentials = credentials
        self._clock = clock
        self._missed: OrderedDict[bytes, deque[Instant]] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._salt = os.urandom(32)
        self._lock = threading.Lock()

    def check(self, peer: str, aim: str = "") -> None:
        """Raise `LockedOut` while this place is locked, by this process or another."""
        place, now = _source(peer, aim), self._clock()
        with self._lock:
            until = self._locked_here(place, now)
        if until is None:
            until = self._credentials.locked_until(place)
        # A clock that was set back must not make a minute an hour.
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
        """Whether this process has let it in before."""
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
        """It was let in before and no longer is: from now on it is a guess like any other."""
        mark = self._mark(credential)
        with self._lock:
            self._known.pop(mark, None)

    def _locked_here(self, place: bytes, now: Instant) -> Instant | None:
        """Until the oldest of too many guesses is a window ago."""
        missed = self._missed.get(place)
        if missed is None or len(missed) < GUESSES_MAX or missed[0] + WINDOW <= now:
            return None
        return missed[0] + WINDOW

    def _mark(self, credential: str) -> bytes:
        """Not the credential itself: memory may end up in a core dump."""
        return hashlib.blake2b(
            credential.encode("utf-8", "surrogatepass"), digest_size=16, key=self._salt
        ).digest()


def _source(peer: str, aim: str) -> bytes:
    return hashlib.blake2b(
        f"{network_of(peer)}\n{aim}".encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()


def network_of(peer: str) -> str:
    """The address, or for IPv6 the network: one machine has more addresses there than anyone can count."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, _IPV6_NETWORK_BITS), strict=False))
    return str(address)
