"""The keys of an issuer: which are taken, when the issuer is asked, and what happens when it does not answer."""

import json
import threading

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from joserfc.jwk import ECKey, OctKey, RSAKey

from memplane.auth import jwks as module
from memplane.auth.jwks import FRESH, PAUSE, STALE_MAX, KeySet
from memplane.auth.principal import KeySetUnavailable
from memplane.errors import SettingsInvalid
from stub_server import Handler, StubServer

RSA = RSAKey.generate_key(2048, private=True)
EC = ECKey.generate_key("P-256", private=True)


def public(key, **fields):
    return key.as_dict(private=False) | fields


class Issuer(StubServer):
    """A real server that answers with `answer`, or hangs up where there is none."""

    def __init__(self):
        self.answer = {"keys": [public(RSA, kid="r1")]}
        self.status = 200
        self.asked = 0
        issuer = self

        class Answering(Handler):
            def answer(self):
                issuer.asked += 1
                body = (
                    issuer.answer if isinstance(issuer.answer, bytes) else json.dumps(issuer.answer).encode()
                )
                self.send_response(issuer.status)
                self.send_header("Content-Length", str(len(body)))
                if issuer.status == 302:
                    self.send_header("Location", f"{issuer.url}/elsewhere")
                self.end_headers()
                self.wfile.write(body)

        super().__init__(Answering, "/jwks.json")


@pytest.fixture
def issuer():
    made = Issuer()
    yield made
    made.close()


@pytest.fixture
def keys(issuer, clock):
    return KeySet(issuer.url, clock)


def test_keys_are_fetched_when_first_needed_and_kept(issuer, keys, clock):
    """
    One question for any number of tokens.
    """
    assert issuer.asked == 0
    for _ in range(5):
        assert keys.find("r1", "RSA").as_dict()["n"] == public(RSA)["n"]
        clock.advance(seconds=300)

    assert issuer.asked == 1


def test_an_unknown_id_asks_again_but_not_often(issuer, keys, clock):
    """
    A new key is found as soon as the pause is over; made-up ids cost one question a minute.
    """
    keys.find("r1", "RSA")
    issuer.answer = {"keys": [public(RSA, kid="r1"), public(EC, kid="e1")]}
    for _ in range(50):
        assert keys.find("made up", "EC") is None
    assert issuer.asked == 1

    clock.advance(microseconds=PAUSE)

    assert keys.find("e1", "EC") is not None
    for number in range(50):
        assert keys.find(f"made up {number}", "EC") is None
    assert issuer.asked == 2


def test_a_clock_that_is_set_back_does_not_keep_new_keys_out(issuer, keys, clock):
    """
    The pause is a minute, whatever the clock did.
    """
    keys.find("r1", "RSA")
    issuer.answer = {"keys": [public(EC, kid="e1")]}

    clock.advance(hours=-5)

    assert keys.find("e1", "EC")


def test_a_withdrawn_key_is_dropped_within_the_hour(issuer, keys, clock):
    """
    Keys are asked for anew even where no token is unknown.
    """
    assert keys.find("r1", "RSA")
    issuer.answer = {"keys": [public(EC, kid="e1")]}

    clock.advance(microseconds=FRESH)

    assert keys.find("r1", "RSA") is None


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (500, {}),
        (302, {}),
        (200, b"<html>"),
        (200, {"keys": "none"}),
        (200, []),
        (200, b'{"keys": [' + b"[" * 9_000),
    ],
    ids=["error", "redirect", "page", "wrong type", "list", "deep"],
)
def test_an_issuer_in_trouble(issuer, keys, clock, status, answer):
    """
    What is known stays in use for a day and no longer; then nobody is let in, and it is not the caller's fault.
    """
    good = issuer.answer
    assert keys.find("r1", "RSA")
    issuer.status, issuer.answer = status, answer
    clock.advance(microseconds=STALE_MAX - 1)
    assert keys.find("r1", "RSA")

    clock.advance(microseconds=PAUSE)
    with pytest.raises(KeySetUnavailable):
        keys.find("r1", "RSA")

    issuer.status, issuer.answer = 200, good
    clock.advance(microseconds=PAUSE)
    assert keys.find("r1", "RSA")


def test_nobody_home_from_the_start(clock):
    """
    No keys at all: unavailable, and asked once a minute.
    """
    keys = KeySet("http://127.0.0.1:9/jwks", clock)

    for _ in range(3):
        with pytest.raises(KeySetUnavailable):
            keys.find("r1", "RSA")


def test_a_file_is_read_like_an_address(tmp_path, clock):
    """
    And read again, as an address is asked again.
    """
    file = tmp_path / "jwks.json"
    keys = KeySet(str(file), clock)
    with pytest.raises(KeySetUnavailable):
        keys.find("e1", "EC")

    file.write_text(json.dumps({"keys": [public(EC, kid="e1")]}))
    clock.advance(microseconds=PAUSE)

    assert keys.find("e1", "EC")


def weak_rsa():
    return RSAKey.import_key(rsa.generate_private_key(65537, 1024))


def test_only_keys_that_fit_are_taken(tmp_path, clock, recwarn):
    """
    Strong RSA and P-256 keys for signatures; a set may hold others, and nonsense, which harm nothing.
    """
    with pytest.warns(UserWarning, match="2048"):
        weak = weak_rsa()
    given = [
        public(RSA, kid="good"),
        public(RSA, kid="for encryption", use="enc"),
        public(RSA, kid="for others", alg="PS512"),
        public(weak, kid="weak"),
        public(ECKey.import_key(ec.generate_private_key(ec.SECP384R1())), kid="other curve"),
        OctKey.generate_key(256).as_dict() | {"kid": "secret"},
        public(RSA, kid=7),
        {"kty": "RSA", "kid": "empty"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "no point"},
        "nonsense",
        None,
    ]
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": given}))
    keys = KeySet(str(file), clock)

    taken = [k["kid"] for k in given if isinstance(k, dict) and keys.find(str(k["kid"]), str(k["kty"]))]
    assert taken == ["good"]


def test_a_private_key_in_the_set_is_used_as_a_public_one(tmp_path, clock):
    """
    Whoever put it there made a mistake; it goes no further.
    """
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [RSA.as_dict(private=True) | {"kid": "r"}]}))

    assert not KeySet(str(file), clock).find("r", "RSA").is_private


def test_without_an_id_the_only_key_is_meant(tmp_path, clock):
    """
    Where there are several, a token must say which.
    """
    file = tmp_path / "jwks.json"
    other = ECKey.generate_key("P-256", private=True)
    file.write_text(json.dumps({"keys": [public(RSA, kid="r"), public(EC, kid="e"), public(other, kid="f")]}))
    keys = KeySet(str(file), clock)

    assert keys.find(None, "RSA") is not None
    assert keys.find(None, "EC") is None


@pytest.mark.parametrize("source", ["http://issuer.example/jwks", "ftp://localhost.example/x", "https://"])
def test_an_address_that_cannot_be_trusted_is_refused(clock, source):
    """
    Over plain http anyone on the way could put a key of theirs into the set.
    """
    with pytest.raises(SettingsInvalid):
        KeySet(source, clock)


def test_many_threads_ask_once(issuer, keys):
    """
    The first who needs the keys fetches them, and the others wait for that.
    """
    found = []
    threads = [threading.Thread(target=lambda: found.append(keys.find("r1", "RSA"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (issuer.asked, len([key for key in found if key])) == (1, 8)


def test_a_huge_answer_is_not_read(issuer, keys, monkeypatch):
    """
    An issuer that was taken over cannot fill our memory.
    """
    monkeypatch.setattr(module, "_BYTES_MAX", 1_000)
    keys = KeySet(issuer.url, keys._clock)
    issuer.answer = {"keys": [public(RSA, kid="r1")], "padding": "x" * 5_000}

    with pytest.raises(KeySetUnavailable):
        keys.find("r1", "RSA")
