"""The facts door with real identity: tokens minted with PyJWT as Helmdeck's script mints them, API keys, and log-in.

Upstream: jwt_test, and the log-in of the control plane.
"""

from contextlib import closing

import jwt
import pytest

from http_server import serving
from memplane.adapters.all import all_adapters
from memplane.adapters.helmdeck.caller import ADAPTER
from memplane.auth.keys import Grant
from memplane.auth.principal import Right
from memplane.clock import SECOND
from memplane.config import Settings

SECRET = "a secret of at least sixty-four bytes, so that every algorithm is content with it"
PASSWORD = "correct horse battery staple"
LOGIN = "/api/v1/auth/login"
FACTS = "/api/v1/memory/facts"
STORE = "/api/v1/memory/store"


@pytest.fixture
def opened(open_plane):
    """A server that knows real credentials, and what it knows them by."""
    plane = open_plane(jwt_secret=SECRET, admin_password=PASSWORD)
    with closing(plane.identity()) as identity:
        adapters = all_adapters(plane, plane.settings, authenticator=identity)
        with serving(plane, keys=identity, settings=plane.settings, adapters=adapters) as server:
            yield server


@pytest.fixture
def token(clock):
    def mint(subject, *, alg="HS256", secret=SECRET, **claims):
        now = clock.now // SECOND
        body = {"sub": subject, "iss": "helmdeck", "iat": now, "nbf": now - 60, "exp": now + 3_600}
        body |= claims
        body = {name: value for name, value in body.items() if value is not None}
        return jwt.encode(body, secret, algorithm=alg)

    return mint


@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512"])
def test_a_token_opens_the_space_of_its_subject(opened, token, alg):
    """
    Any HMAC algorithm; no scope is needed; scopes of other services change nothing.
    """
    alice = opened.client(token("alice", alg=alg, scopes=["packs:*"], client="openclaw"))
    assert alice.post(STORE, json={"key": "k", "value": "v"}).status_code == 200

    assert opened.plane.space("alice").get("k").text == "v"
    assert opened.client(token("bob")).get(FACTS).json()["facts"] == []
    assert opened.client(token("bob")).get(f"{FACTS}?caller=alice").json()["scope"] == "caller=bob"


@pytest.mark.parametrize("subject", ["", None])
def test_a_token_without_a_subject_is_unknown(opened, token, subject):
    """
    Its facts lie under `unknown`.
    """
    assert opened.client(token(subject)).get(FACTS).json()["scope"] == "caller=unknown"


def test_admin_implies_all(opened, token):
    """
    The `admin` scope enumerates callers and reads as any of them.
    """
    opened.client(token("alice")).post(STORE, json={"key": "k", "value": "v"})
    admin = opened.client(token("root", scopes=["admin"]))

    assert admin.get("/api/v1/memory/callers").json() == {"callers": [{"namespace": "alice", "count": 1}]}
    assert admin.get(f"{FACTS}/k?caller=alice").json()["value"] == "v"


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1},
        {"exp": None},
        {"iss": "another"},
        {"iss": None},
        {"nbf": 4_000_000_000},
        {"secret": "another secret of thirty-two bytes!"},
        {"alg": "none", "secret": None},
    ],
)
def test_tokens_that_are_refused(opened, token, changes):
    """
    Expired, without an end, of another issuer, not valid yet, signed by somebody else or by nobody.
    """
    answer = opened.client(token("alice", **changes)).get(FACTS)

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_token")
    assert answer.headers["www-authenticate"] == 'Bearer realm="helmdeck"'


@pytest.mark.parametrize("header", ["Basic YTpi", "Token x", ""])
def test_another_scheme_is_a_missing_bearer(opened, header):
    """
    jwt_test: wrong scheme.
    """
    answer = opened.client(None).get(FACTS, headers={"authorization": header})

    assert answer.json() == {"error": "missing_bearer", "message": "Authorization: Bearer <token> required"}


def test_an_api_key_opens_this_door_too(opened):
    """
    A key of one space stores and reads there; after it is revoked, no longer.
    """
    identity = opened.keys
    made = identity.create_key(
        Grant(
            name="carol",
            subject="carol",
            spaces=("carol",),
            adapters=(ADAPTER,),
            rights=(Right.READ, Right.WRITE),
        )
    )
    carol = opened.client(made.bearer.reveal())
    assert carol.post(STORE, json={"key": "k", "value": "v"}).status_code == 200
    assert carol.get(f"{FACTS}/k").json()["value"] == "v"
    identity.revoke(made.key.id)

    assert carol.get(f"{FACTS}/k").status_code == 401


# ── log-in ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_log_in(opened):
    """
    A token of twelve hours, with the administrator's rights.
    """
    answer = opened.client(None).post(LOGIN, json={"username": "admin", "password": PASSWORD})

    body = answer.json()
    assert set(body) == {"token", "subject", "expires_at"}
    assert (body["subject"], body["expires_at"]) == ("admin", "2026-11-15T20:30:00Z")
    claims = jwt.decode(body["token"], options={"verify_signature": False})
    assert (claims["client"], claims["scopes"], claims["iss"]) == ("ui", ["admin"], "helmdeck")
    assert opened.client(body["token"]).get("/api/v1/memory/callers").json() == {"callers": None}


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "invalid_json"),
        (b'{"username":1}', 400, "invalid_json"),
        (b"{}", 400, "missing_credentials"),
        (b'{"username":"admin","password":""}', 400, "missing_credentials"),
        (b'{"username":"admin","password":"wrong"}', 401, "invalid_credentials"),
        (b'{"username":"root","password":"correct horse battery staple"}', 401, "invalid_credentials"),
        (b'{"username":"admin","password":"' + b"a" * 70_000 + b'"}', 413, "too_large"),
    ],
)
def test_log_in_refused(opened, body, status, code):
    """
    Each reason has its code; which part was wrong is not told.
    """
    answer = opened.client(None).post(LOGIN, content=body)

    assert (answer.status_code, answer.json()["error"]) == (status, code)


def test_guessing_passwords_locks_out(opened, clock):
    """
    After twenty guesses the right password does not help either, until a while has passed.
    """
    client = opened.client(None)
    guesses = [client.post(LOGIN, json={"username": "admin", "password": f"p{n}"}) for n in range(25)]
    right = {"username": "admin", "password": PASSWORD}

    assert [guess.status_code for guess in guesses[:20]] == [401] * 20
    assert {guess.status_code for guess in guesses[20:]} == {429}
    assert client.post(LOGIN, json=right).status_code == 429
    clock.advance(minutes=2)
    assert client.post(LOGIN, json=right).status_code == 200


def test_log_in_disabled(plane):
    """
    503 where there is no password, no secret to sign with, or nobody is asked for a credential at all.
    """

    def code(auth=True, **settings):
        chosen = Settings(**settings)
        with closing(plane.identity()) as identity:
            adapters = all_adapters(plane, chosen, authenticator=identity if auth else None)
            with serving(plane, keys=identity, settings=chosen, adapters=adapters, auth=auth) as server:
                answer = server.client(None).post(LOGIN, json={"username": "admin", "password": PASSWORD})
        return answer.status_code, answer.json()["error"]

    assert code() == (503, "login_disabled")
    assert code(admin_password=PASSWORD) == (503, "login_disabled")
    assert code(auth=False, admin_password=PASSWORD) == (503, "auth_disabled")


def test_without_authentication_everybody_is_one_caller(plane):
    """
    `--no-auth`: what is stored lies in the space that the command line uses too.
    """
    with serving(plane, auth=False) as server:
        client = server.client(None)
        assert client.post(STORE, json={"key": "k", "value": "v"}).status_code == 200
        assert client.get(FACTS).json()["scope"] == "caller=default"
