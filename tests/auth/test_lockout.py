"""Lock-out on guessing: who waits, who does not, and for how long."""

import pytest

from memplane.auth import lockout as module
from memplane.auth.keys import Grant
from memplane.auth.lockout import GUESSES_MAX, WINDOW, LoginThrottle, network_of
from memplane.auth.principal import LockedOut, Unauthenticated
from memplane.auth.tokens import TokenClaims
from memplane.errors import StorageBusy

PEER, OTHER = "203.0.113.7", "203.0.113.8"
WRONG = "mp_" + "0" * 16 + "_" + "w" * 43
WRONG_TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.AAAA"


@pytest.fixture
def identity(open_plane):
    made = open_plane(jwt_secret="s" * 32).identity()
    yield made
    made.close()


@pytest.fixture
def elsewhere(open_plane):
    """Another process on the same data directory."""
    made = open_plane(jwt_secret="s" * 32).identity()
    yield made
    made.close()


def guess(identity, credential=WRONG, peer=PEER, times=GUESSES_MAX):
    """How the attempts ended."""
    ended = []
    for _ in range(times):
        with pytest.raises(Unauthenticated) as refused:
            identity.authenticate(credential, peer=peer)
        ended.append(type(refused.value))
    return ended


def aimed_at(minted):
    """A wrong secret for a key that exists."""
    return f"mp_{minted.key.id}_{'w' * 43}"


def test_too_many_guesses_lock_the_place_they_came_from(identity):
    """
    The next one waits and is told how long; another address does not.
    """
    assert guess(identity, times=GUESSES_MAX + 2) == [Unauthenticated] * GUESSES_MAX + [LockedOut] * 2

    with pytest.raises(LockedOut) as refused:
        identity.authenticate(WRONG, peer=PEER)
    assert refused.value.retry_after_s == 60
    assert guess(identity, peer=OTHER, times=1) == [Unauthenticated]


def test_knocking_while_locked_does_not_lengthen_the_lock(identity, clock):
    """
    It ends a window after the first of the guesses that counted, however often one tries meanwhile.
    """
    guess(identity)
    for _ in range(59):
        clock.advance(seconds=1)
        assert guess(identity, times=3) == [LockedOut] * 3
    clock.advance(seconds=1)

    assert guess(identity, times=1) == [Unauthenticated]


def test_a_clock_that_is_set_back_does_not_lengthen_a_lock(identity, elsewhere, clock):
    """
    Neither here nor in another process.
    """
    guess(identity)
    clock.advance(hours=-5)

    assert guess(elsewhere, times=1) == [Unauthenticated]
    assert guess(identity, times=1) == [Unauthenticated]


def test_the_window_slides(identity, clock):
    """
    Slow guessing is never locked, and after a lock the rate stays what it was.
    """
    for _ in range(3 * GUESSES_MAX):
        assert guess(identity, times=1) == [Unauthenticated]
        clock.advance(microseconds=WINDOW // GUESSES_MAX)


def test_a_credential_that_was_let_in_before_is_never_locked_out(identity):
    """
    Whoever shares an address with one who guesses goes on working.
    """
    bearers = [
        identity.create_key(Grant()).bearer.reveal(),
        identity.create_key(Grant(agent="weston")).bearer.reveal(),
        identity.mint_token(TokenClaims(sub="alice"))[0].reveal(),
    ]
    for bearer in bearers:
        identity.authenticate(bearer, peer=OTHER)
    guess(identity)
    guess(identity, WRONG_TOKEN)

    assert [identity.authenticate(bearer, peer=PEER).tenant for bearer in bearers] == ["default"] * 3


def test_a_key_that_nobody_guesses_at_is_not_locked_out_even_when_new(identity):
    """
    Guesses at other keys, at tokens and at nothing in particular are not held against it.
    """
    newcomer, attacked = identity.create_key(Grant()), identity.create_key(Grant())
    for wrong in (WRONG, WRONG_TOKEN, "nonsense", aimed_at(attacked)):
        guess(identity, wrong, times=2 * GUESSES_MAX)

    assert identity.authenticate(newcomer.bearer.reveal(), peer=PEER)
    with pytest.raises(LockedOut):
        identity.authenticate(attacked.bearer.reveal(), peer=PEER)
    assert identity.authenticate(attacked.bearer.reveal(), peer=OTHER)


def test_tokens_are_not_locked_out_by_other_guesses(identity):
    """
    Nor other credentials by forged tokens.
    """
    guess(identity, "nonsense")
    token, _ = identity.mint_token(TokenClaims(sub="alice"))

    assert identity.authenticate(token.reveal(), peer=PEER).subject == "alice"


def test_a_right_secret_is_no_guess(identity, clock):
    """
    A client that goes on with a key or token that has ended locks nobody out, itself included.
    """
    revoked = identity.create_key(Grant())
    identity.revoke(revoked.key.id)
    token, _ = identity.mint_token(TokenClaims(sub="alice"), ttl_s=1)
    clock.advance(seconds=2)

    for credential in (revoked.bearer.reveal(), token.reveal()):
        assert guess(identity, credential, times=3 * GUESSES_MAX) == [Unauthenticated] * 3 * GUESSES_MAX


def test_a_lock_holds_in_every_process(identity, elsewhere, clock):
    """
    Each counts for itself; the first that locks tells the others.
    """
    guess(elsewhere, times=GUESSES_MAX - 1)
    guess(identity)

    assert guess(elsewhere, times=1) == [LockedOut]
    clock.advance(seconds=60)
    assert guess(elsewhere, times=1) == [Unauthenticated]


def test_a_credential_that_ended_is_no_longer_known(identity):
    """
    Once refused, it is a stranger's.
    """
    minted = identity.create_key(Grant())
    bearer = minted.bearer.reveal()
    identity.authenticate(bearer, peer=PEER)
    assert identity.guesses.is_known(bearer)
    identity.revoke(minted.key.id)

    guess(identity, bearer, times=1)

    assert not identity.guesses.is_known(bearer)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:203.0.113.7", "203.0.113.7", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("203.0.113.7", "203.0.113.8", False),
        ("", "unix", False),
    ],
)
def test_what_one_place_is(one, other, same):
    """
    An address; for IPv6 the network that one customer gets.
    """
    assert (network_of(one) == network_of(other)) is same


class _Deaf:
    """A catalog that cannot be written, and says so."""

    def __init__(self):
        self.locked = []

    def lock(self, place, until, *, now):
        self.locked.append(place)

    def locked_until(self, place):
        return None


def test_memory_is_bounded(monkeypatch, clock):
    """
    Places and known credentials; the one seen longest ago goes.
    """
    monkeypatch.setattr(module, "SOURCES_MAX", 10)
    monkeypatch.setattr(module, "KNOWN_MAX", 10)
    guesses = LoginThrottle(_Deaf(), clock)
    for number in range(100):
        guesses.missed(f"10.0.0.{number}")
        guesses.remember(str(number))

    assert (len(guesses._missed), len(guesses._known)) == (10, 10)
    assert (guesses.is_known("99"), guesses.is_known("1")) == (True, False)


def test_only_locks_are_written(clock):
    """
    A guess costs no write; a lock costs one.
    """
    catalog = _Deaf()
    guesses = LoginThrottle(catalog, clock)
    for _ in range(GUESSES_MAX):
        guesses.missed(PEER)

    assert len(catalog.locked) == 1


def test_a_log_in_can_use_the_same_guard(identity):
    """
    A door with passwords of its own counts and checks through `guesses`.
    """
    for _ in range(GUESSES_MAX):
        identity.guesses.check(PEER, "login")
        identity.guesses.missed(PEER, "login")

    with pytest.raises(LockedOut):
        identity.guesses.check(PEER, "login")
    identity.guesses.check(PEER)


def test_a_busy_catalog_does_not_keep_anyone_out(identity, monkeypatch):
    """
    Where "last used" cannot be noted, the caller is let in all the same.
    """
    bearer = identity.create_key(Grant()).bearer.reveal()

    def busy(*_args, **_rest):
        raise StorageBusy("someone else is at it")

    monkeypatch.setattr(identity._credentials._catalog._database, "write", busy)

    assert identity.authenticate(bearer, peer=PEER)
    assert guess(identity, times=GUESSES_MAX + 1)[-1] is LockedOut
