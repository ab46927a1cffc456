"""Tokens as others make them: PyJWT and Go's golang-jwt rules, with the upstream tests of Helmdeck's `jwt_test.go`
re-expressed and named. The clock is turned by hand, so tokens are made for its time."""

import base64
import hashlib
import hmac
import json
import subprocess
import sys

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from memplane.auth.principal import Right, Secret, Unauthenticated
from memplane.auth.tokens import TokenClaims, TokenRequirements, Tokens
from memplane.clock import SECOND, to_datetime
from memplane.errors import SettingsInvalid

SECRET = "0123456789abcdef0123456789abcdef"
PEER = "203.0.113.7"
ISSUER, AUDIENCE = "https://issuer.example/", "memplane"
RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
HOUR = 3_600


def public_pem(key):
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def segment(document):
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.fixture
def now(clock):
    return clock.now // SECOND


@pytest.fixture
def claims(now):
    """What Helmdeck's own tokens hold."""
    return {"sub": "alice", "iss": "helmdeck", "iat": now, "nbf": now - 60, "exp": now + HOUR}


@pytest.fixture
def jwks(tmp_path):
    file = tmp_path / "jwks.json"
    keys = [
        json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA_KEY.public_key())) | {"kid": "r1", "use": "sig"},
        json.loads(jwt.algorithms.ECAlgorithm.to_jwk(EC_KEY.public_key())) | {"kid": "e1", "alg": "ES256"},
    ]
    file.write_text(json.dumps({"keys": keys}))
    return str(file)


@pytest.fixture
def open_identity(open_identity):
    return lambda **changes: open_identity(**({"jwt_secret": SECRET} | changes))


@pytest.fixture
def identity(open_identity):
    return open_identity()


@pytest.fixture
def federated(open_identity, jwks):
    """Takes tokens of an issuer, and of the shared secret."""
    return open_identity(jwks=jwks, jwks_issuer=ISSUER, jwks_audience=AUDIENCE)


@pytest.fixture
def foreign(claims):
    """What a token of the issuer holds."""
    return claims | {"iss": ISSUER, "aud": AUDIENCE}


def enter(identity, token):
    return identity.authenticate(token, peer=PEER)


def refused(identity, token, words="not valid"):
    with pytest.raises(Unauthenticated, match=words):
        enter(identity, token)


# ── jwt_test.go ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_upstream_round_trip(identity, now):
    """
    jwt_test: what is issued is verified, with its subject, name, client and scopes; PyJWT reads it too.
    """
    token, ends = identity.mint_token(
        TokenClaims(sub="alice", name="Alice", client="claude-code", scopes=["packs:*"])
    )
    read = jwt.decode(
        token.reveal(),
        SECRET,
        ["HS256"],
        issuer="helmdeck",
        options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
    )

    assert read == {
        "sub": "alice",
        "name": "Alice",
        "client": "claude-code",
        "scopes": ["packs:*"],
        "iss": "helmdeck",
        "iat": now,
        "nbf": now - 60,
        "exp": now + 24 * HOUR,
    }
    assert ends == read["exp"] * SECOND
    assert enter(identity, token.reveal()).subject == "alice"


def test_upstream_admin_implies_all(identity, claims):
    """
    jwt_test: the scope `admin` satisfies any other; here it is every right in every space.
    """
    found = enter(identity, jwt.encode(claims | {"scopes": ["admin"]}, SECRET))

    for right in Right:
        found.check(right, adapter="facts", space="someone else")


def test_upstream_expired_is_rejected(identity, claims, now):
    """
    jwt_test: from the very second of `exp` on, without leeway.
    """
    assert enter(identity, jwt.encode(claims | {"exp": now + 1}, SECRET))

    refused(identity, jwt.encode(claims | {"exp": now}, SECRET), "expired")
    refused(identity, jwt.encode(claims | {"exp": now - HOUR}, SECRET), "expired")


def test_upstream_other_secret_is_rejected(identity, claims):
    """
    jwt_test: signed with another secret, or with none.
    """
    refused(identity, jwt.encode(claims, "another secret that is long enough"))


def test_upstream_short_secret_is_rejected(clock):
    """
    jwt_test: fewer than 32 bytes; bytes are counted, not characters, and hexadecimal is not decoded.
    """
    with pytest.raises(SettingsInvalid, match="32 bytes"):
        Tokens(Secret("x" * 31), TokenRequirements())

    Tokens(Secret("ä" * 16), TokenRequirements())


def test_upstream_configure_script(identity, clock, now):
    """
    The upstream configure script makes its token with PyJWT, for `openclaw-configure`, held to be valid a minute ago.
    """
    token = jwt.encode(
        {
            "sub": "openclaw-configure",
            "client": "openclaw",
            "scopes": ["admin"],
            "iss": "helmdeck",
            "iat": now,
            "nbf": now - 60,
            "exp": now + 600,
        },
        SECRET,
        algorithm="HS256",
    )

    assert enter(identity, token).subject == "openclaw-configure"


# ── what a token becomes ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_any_hmac_is_taken(open_identity, claims, algorithm):
    """
    As upstream verifies: issued as HS256, accepted as any of the three.
    """
    identity = open_identity(jwt_secret=SECRET * 2)

    assert enter(identity, jwt.encode(claims, SECRET * 2, algorithm=algorithm)).subject == "alice"


@pytest.mark.parametrize("algorithm", ["HS384", "HS512"])
def test_a_secret_of_32_bytes_is_enough_for_any_hmac(identity, claims, algorithm):
    """
    Upstream asks for no more, although the longer ones could use it; PyJWT would warn, so this is made by hand.
    """
    signed = f"{segment({'alg': algorithm})}.{segment(claims)}"
    mac = hmac.digest(SECRET.encode(), signed.encode(), algorithm.replace("HS", "sha"))

    assert enter(identity, f"{signed}.{segment(mac)}").subject == "alice"


@pytest.mark.parametrize("exp", [1e300, 10**40, 253_402_300_800])
def test_an_end_beyond_any_calendar(identity, claims, exp):
    """
    Is an end in the last year there is.
    """
    found = enter(identity, jwt.encode(claims | {"exp": exp}, SECRET))

    assert to_datetime(found.expires).year == 9999


@pytest.mark.parametrize("exp", [-1e300, -1, 0])
def test_an_end_before_any_calendar(identity, claims, exp):
    """
    Has long been.
    """
    refused(identity, jwt.encode(claims | {"exp": exp}, SECRET), "expired")


@pytest.mark.parametrize(
    ("extra", "rights", "spaces"),
    [
        ({}, {"read", "write"}, {"alice"}),
        ({"scopes": ["packs:*", "mcp:*"]}, {"read", "write"}, {"alice"}),
        ({"scopes": ["memory:read"]}, {"read"}, {"alice"}),
        ({"scope": "openid memory:write"}, {"write"}, {"alice"}),
        ({"scopes": ["memory:read", "memory:write"]}, {"read", "write"}, {"alice"}),
        ({"scopes": ["admin", "memory:read"]}, {"read", "write", "admin"}, None),
        ({"scopes": ["administrator", "ADMIN"]}, {"read", "write"}, {"alice"}),
        ({"spaces": ["team", "shared"]}, {"read", "write"}, {"team", "shared"}),
        ({"spaces": []}, {"read", "write"}, set()),
    ],
    ids=lambda value: str(sorted(value)) if isinstance(value, set) else str(value),
)
def test_claims_become_a_principal(identity, claims, extra, rights, spaces):
    """
    Memory needs no scope, as upstream; scopes of ours narrow, `admin` opens everything.
    """
    found = enter(identity, jwt.encode(claims | extra, SECRET))

    assert (found.rights, found.spaces, found.adapters) == (rights, spaces, None)


def test_tenant_and_doors_can_be_said(identity, claims):
    """
    Claims of our own.
    """
    found = enter(identity, jwt.encode(claims | {"tenant": "acme", "doors": ["mcp"]}, SECRET))

    assert (found.tenant, found.adapters) == ("acme", {"mcp"})


@pytest.mark.parametrize("sub", [None, ""])
def test_without_a_subject_it_is_unknown(identity, claims, sub):
    """
    As upstream names the caller then.
    """
    claims |= {"sub": sub}
    if sub is None:
        del claims["sub"]

    assert enter(identity, jwt.encode(claims, SECRET)).subject == "unknown"


def test_the_principal_says_when_it_ends(identity, claims):
    """
    For connections that stay open.
    """
    found = enter(identity, jwt.encode(claims, SECRET))

    assert (found.credential, found.expires) == ("jwt", claims["exp"] * SECOND)


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"exp": None}, "exp"),
        ({"nbf": 60}, "not valid yet"),
        ({"iss": "someone"}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"sub": 7}, "cannot be read"),
        ({"scopes": "admin"}, "cannot be read"),
        ({"scopes": [1]}, "cannot be read"),
        ({"exp": "tomorrow"}, "cannot be read"),
        ({"exp": True}, "cannot be read"),
        ({"spaces": "a"}, "cannot be read"),
    ],
    ids=str,
)
def test_a_signed_token_with_wrong_claims(identity, claims, now, change, words):
    """
    The holder is told why: the signature was right.
    """
    changed = claims | {name: now + value if name == "nbf" else value for name, value in change.items()}
    body = {name: value for name, value in changed.items() if value is not None}
    signed = f"{segment({'alg': 'HS256'})}.{segment(body)}"
    mac = hmac.digest(SECRET.encode(), signed.encode(), hashlib.sha256)

    refused(identity, f"{signed}.{segment(mac)}", words)


def test_audience_where_it_is_set(open_identity, claims):
    """
    Alone or among others; without the setting it is not looked at, as upstream.
    """
    identity = open_identity(jwt_audience="memplane")

    assert enter(identity, jwt.encode(claims | {"aud": "memplane"}, SECRET))
    assert enter(identity, jwt.encode(claims | {"aud": ["x", "memplane"]}, SECRET))
    for wrong in ({"aud": "x"}, {"aud": []}, {}):
        refused(identity, jwt.encode(claims | wrong, SECRET), "audience")
    assert enter(open_identity(), jwt.encode(claims | {"aud": "x"}, SECRET))


def test_what_is_minted_is_taken_with_an_audience_too(open_identity):
    """
    The settings apply to both ends.
    """
    identity = open_identity(jwt_audience="memplane", jwt_issuer="us")

    assert enter(identity, identity.mint_token(TokenClaims(sub="a"))[0].reveal())


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", "HS1", "PS256", "EdDSA", "RS256"])
def test_no_other_algorithm(identity, claims, algorithm):
    """
    `none` in any spelling, with and without a signature, and algorithms nobody configured.
    """
    unsigned = f"{segment({'alg': algorithm, 'typ': 'JWT'})}.{segment(claims)}."
    mac = hmac.digest(SECRET.encode(), unsigned[:-1].encode(), hashlib.sha256)

    refused(identity, unsigned)
    refused(identity, unsigned + segment(mac))


def test_pyjwt_none(federated, claims):
    """
    As PyJWT makes them.
    """
    refused(federated, jwt.encode(claims, None, algorithm="none"))


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
@pytest.mark.parametrize("key", [RSA_KEY, EC_KEY], ids=["rsa", "ec"])
@pytest.mark.parametrize("kid", [None, "r1", "e1"])
def test_a_public_key_is_not_a_secret(federated, foreign, algorithm, key, kid):
    """
    Algorithm confusion: everybody knows the public key, so a MAC made with it proves nothing.
    """
    head = {"alg": algorithm} | ({"kid": kid} if kid else {})
    signed = f"{segment(head)}.{segment(foreign)}"
    for material in (public_pem(key), public_pem(key).strip()):
        mac = hmac.digest(material, signed.encode(), algorithm.replace("HS", "sha"))
        refused(federated, f"{signed}.{segment(mac)}")


@pytest.mark.parametrize(
    "head",
    [
        {"alg": "HS256", "crit": ["exp"]},
        {"alg": "HS256", "crit": []},
        {"alg": "HS256", "b64": False, "crit": ["b64"]},
        {"alg": ["HS256"]},
        {"alg": "HS256", "kid": 5},
        {},
        [],
        "HS256",
        b"\xff\xfe",
        b"[" * 700,
    ],
    ids=str,
)
def test_headers_that_are_not_understood(identity, claims, head):
    """
    Refused even with a right signature.
    """
    signed = f"{segment(head)}.{segment(claims)}"
    mac = hmac.digest(SECRET.encode(), signed.encode(), hashlib.sha256)

    refused(identity, f"{signed}.{segment(mac)}")


def test_a_key_in_the_header_is_not_believed(federated, foreign):
    """
    `jwk`, `jku` and `x5c` would let the token bring its own judge.
    """
    mine = rsa.generate_private_key(65537, 2048)
    own = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(mine.public_key()))
    for header in (
        {"jwk": own},
        {"jku": "https://evil.example/jwks", "kid": "r1"},
        {"jwk": own, "kid": "r1"},
    ):
        refused(federated, jwt.encode(foreign, mine, "RS256", headers=header))


@pytest.mark.parametrize("body", [b"[" * 50_000, b"\xff", b"7", b'"admin"', b"null", b"[]", b""])
def test_signed_nonsense(identity, body):
    """
    Whoever has the secret and signs nonsense gets an answer, not a crash.
    """
    signed = f"{segment({'alg': 'HS256'})}.{segment(body)}"
    mac = hmac.digest(SECRET.encode(), signed.encode(), hashlib.sha256)

    with pytest.raises(Unauthenticated):
        enter(identity, f"{signed}.{segment(mac)}")


def test_no_secret_no_token(open_identity, claims):
    """
    Without a secret no such token is taken or made; never one signed with nothing.
    """
    identity = open_identity(jwt_secret=None)

    refused(identity, jwt.encode(claims, SECRET))
    signed = f"{segment({'alg': 'HS256'})}.{segment(claims)}"
    refused(identity, f"{signed}.{segment(hmac.digest(b'', signed.encode(), hashlib.sha256))}")
    with pytest.raises(SettingsInvalid, match="MEMPLANE_JWT_SECRET"):
        identity.mint_token(TokenClaims(sub="a"))


@given(st.data())
def test_every_bit_of_a_token_counts(data):
    """
    A change anywhere in any of the three parts ends it.
    """
    now = 1_800_000_000
    tokens = Tokens(Secret(SECRET), TokenRequirements(issuer="helmdeck"))
    token = jwt.encode({"sub": "a", "iss": "helmdeck", "exp": now + 1}, SECRET)
    at = data.draw(st.integers(0, len(token) - 1))
    char = data.draw(st.sampled_from(sorted(set("ABCabc019-_=.+/ ") - {token[at]})))

    assert tokens.read(token, now=now * SECOND) is not None
    assert tokens.read(token[:at] + char + token[at + 1 :], now=now * SECOND) is None


# ── the keys of an issuer ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("key", "algorithm", "kid"), [(RSA_KEY, "RS256", "r1"), (EC_KEY, "ES256", "e1")])
def test_tokens_of_an_issuer(federated, foreign, key, algorithm, kid):
    """
    RS256 and ES256, with the id of the key or with the only key of its type.
    """
    for headers in ({"kid": kid}, {}, {"kid": kid, "custom": 1}):
        assert enter(federated, jwt.encode(foreign, key, algorithm, headers=headers)).subject == "alice"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"iss": "helmdeck"}, "issuer"),
        ({"aud": "another service"}, "audience"),
        ({"exp": 1}, "expired"),
    ],
    ids=str,
)
def test_tokens_an_issuer_made_for_others(federated, foreign, change, words):
    """
    Each way of signing has its own issuer and audience.
    """
    refused(federated, jwt.encode(foreign | change, RSA_KEY, "RS256", headers={"kid": "r1"}), words)


def test_each_way_has_its_own_issuer(federated, foreign, claims):
    """
    Who has the shared secret cannot speak for the issuer, nor the other way round.
    """
    assert enter(federated, jwt.encode(claims, SECRET)).subject == "alice"

    refused(federated, jwt.encode(foreign, SECRET), "issuer")
    refused(federated, jwt.encode(claims, EC_KEY, "ES256", headers={"kid": "e1"}), "issuer")


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [
        (RSA_KEY, "RS512", "r1"),
        (RSA_KEY, "PS256", "r1"),
        (RSA_KEY, "RS256", "e1"),
        (EC_KEY, "ES256", "r1"),
        (RSA_KEY, "RS256", "x"),
    ],
)
def test_a_key_signs_in_its_own_way_only(federated, foreign, key, algorithm, kid):
    """
    Another algorithm, another key's id, or an id nobody has.
    """
    refused(federated, jwt.encode(foreign, key, algorithm, headers={"kid": kid}))


def test_a_stranger_with_a_good_key(federated, foreign):
    """
    Any key but the issuer's.
    """
    stranger = rsa.generate_private_key(65537, 2048)

    refused(federated, jwt.encode(foreign, stranger, "RS256", headers={"kid": "r1"}))
    refused(federated, jwt.encode(foreign, stranger, "RS256"))


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pyjwt_reads_what_the_command_makes(tmp_path):
    """
    `memplane token mint` with the secret in a file; PyJWT verifies it with every check on.
    """
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    environment = {
        "MEMPLANE_DATA": str(tmp_path / "data"),
        "MEMPLANE_JWT_SECRET_FILE": str(tmp_path / "secret"),
    }
    environment["PYTHONPATH"] = ":".join(path for path in sys.path if path)
    made = subprocess.run(
        [sys.executable, "-m", "memplane", "token", "mint", "alice", "--scope", "admin", "--ttl", "1h"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    read = jwt.decode(
        made.stdout.strip(), SECRET, ["HS256"], issuer="helmdeck", options={"require": ["exp", "iat", "nbf"]}
    )
    assert (read["sub"], read["scopes"], read["exp"] - read["iat"]) == ("alice", ["admin"], HOUR)
    assert not (tmp_path / "data").exists()
