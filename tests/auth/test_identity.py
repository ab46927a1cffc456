"""Keys: what they open, how they end, and what never gets in."""

import logging
import pickle
import re
import string
from contextlib import closing
from datetime import timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.conftest import HandClock, fresh_folder

from memplane import Memplane, Settings
from memplane.auth.identity import USED_EVERY
from memplane.auth.keys import Grant
from memplane.auth.principal import ADAPTERS, Forbidden, Principal, Right, Secret, Unauthenticated
from memplane.auth.tokens import TokenClaims
from memplane.errors import InvalidRequest, NotFound, SettingsInvalid

PEER = "203.0.113.7"


@pytest.fixture
def identity(open_identity):
    return open_identity(jwt_secret="s" * 32)


def key_of(identity, **fields):
    return identity.create_key(Grant(**fields))


def principal_of(identity, **fields):
    return identity.authenticate(key_of(identity, **fields).bearer.reveal(), peer=PEER)


# ── what a key is ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_opens_what_it_was_made_for(identity):
    """
    The principal says exactly what the grant said.
    """
    found = principal_of(
        identity, name="laptop", tenant="acme", spaces=["b", "a"], adapters=["mcp"], rights=[Right.READ]
    )

    assert (found.tenant, found.subject, found.spaces, found.adapters, found.rights) == (
        "acme",
        "laptop",
        {"a", "b"},
        {"mcp"},
        {Right.READ},
    )


@pytest.mark.parametrize(
    ("fields", "subject"),
    [
        ({"name": "n"}, "n"),
        ({"name": "n", "spaces": ["alice"]}, "alice"),
        ({"name": "n", "spaces": ["alice", "bob"]}, "n"),
        ({"name": "n", "spaces": ["alice"], "subject": "carol"}, "carol"),
        ({"agent": "weston", "name": "n"}, "weston"),
        ({}, "key"),
    ],
)
def test_whose_space_a_key_opens_that_names_none(identity, fields, subject):
    """
    Said, or the agent, or the only space, or the name.
    """
    assert principal_of(identity, **fields).subject == subject


def test_the_form_of_a_key(identity):
    """
    `mp_<id>_<secret>`, new each time, with 256 bits nobody can guess.
    """
    first, second = key_of(identity), key_of(identity)
    form = re.compile(r"mp_([0-9a-f]{16})_[0-9A-Za-z]{43}")

    assert form.fullmatch(first.bearer.reveal())[1] == first.key.id
    assert first.bearer.reveal() != second.bearer.reveal()


def test_an_agent_has_its_own_form_and_its_own_space(identity):
    """
    `agent:secret` with 48 hexadecimal digits, as Clawdapus hands them out; several at once while one is replaced.
    """
    first, second = key_of(identity, agent="weston:eu"), key_of(identity, agent="weston:eu")

    for minted in (first, second):
        assert re.fullmatch(r"weston:eu:[0-9a-f]{48}", minted.bearer.reveal())
        found = identity.authenticate(minted.bearer.reveal(), peer=PEER)
        assert (found.subject, found.spaces, found.rights) == (
            "weston:eu",
            {"weston:eu"},
            {Right.READ, Right.WRITE},
        )


def test_an_agents_token_can_be_taken_over(identity):
    """
    The token that an agent has already goes on working; one that could be guessed is refused, without being repeated.
    """
    token = "weston:" + "0123456789abcdef" * 3
    identity.create_key(Grant(agent="weston"), secret=Secret(token))

    assert identity.authenticate(token, peer=PEER).subject == "weston"
    for weak in ("hunter2", "weston:abcdef", "0" * 47, "g" * 48):
        with pytest.raises(InvalidRequest) as refused:
            identity.create_key(Grant(agent="weston"), secret=Secret(weak))
        assert weak not in str(refused.value)
    with pytest.raises(InvalidRequest):
        identity.create_key(Grant(name="x"), secret=Secret(token))


def test_the_same_agent_of_two_tenants(identity):
    """
    The secret decides which of them it is.
    """
    bearers = {
        tenant: key_of(identity, agent="a", tenant=tenant).bearer.reveal() for tenant in ("one", "two")
    }

    assert {t: identity.authenticate(b, peer=PEER).tenant for t, b in bearers.items()} == {
        "one": "one",
        "two": "two",
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"rights": []},
        {"spaces": []},
        {"adapters": []},
        {"adapters": ["window"]},
        {"rights": [Right.ADMIN], "spaces": ["a"]},
        {"rights": [Right.ADMIN], "agent": "a"},
        {"ttl": timedelta(0)},
        {"ttl": timedelta(days=-1)},
        {"ttl": timedelta(days=99_999)},
        {"agent": " "},
        {"tenant": ""},
        {"subject": ""},
        {"spaces": [""]},
        {"name": "a\nb"},
        {"name": "x" * 201},
    ],
    ids=str,
)
def test_a_grant_that_makes_no_sense_is_refused(identity, fields):
    """
    Nothing is stored.
    """
    with pytest.raises(InvalidRequest):
        key_of(identity, **fields)

    assert identity.list_keys() == []


# ── how it ends ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_revoked_key_is_refused_by_everyone_at_once(open_identity):
    """
    Also where it was let in a moment ago.
    """
    here, there = open_identity(), open_identity()
    minted = key_of(here)
    there.authenticate(minted.bearer.reveal(), peer=PEER)

    here.revoke(minted.key.id)

    for identity in (here, there):
        with pytest.raises(Unauthenticated, match="revoked"):
            identity.authenticate(minted.bearer.reveal(), peer=PEER)


def test_revoking_one_key_of_an_agent_leaves_the_other(identity):
    """
    So a token can be replaced without a gap.
    """
    old, new = key_of(identity, agent="a"), key_of(identity, agent="a")
    identity.revoke(old.key.id)

    with pytest.raises(Unauthenticated):
        identity.authenticate(old.bearer.reveal(), peer=PEER)
    assert identity.authenticate(new.bearer.reveal(), peer=PEER).credential == new.key.id


@pytest.mark.parametrize("key_id", ["0" * 16, "nonsense", "", "mp_" + "0" * 16 + "_" + "x" * 43])
def test_revoking_what_is_not_there(identity, key_id):
    """
    A clear answer, which does not repeat what may be a secret.
    """
    with pytest.raises(NotFound) as refused:
        identity.revoke(key_id)

    assert "x" * 43 not in str(refused.value)


def test_a_word_makes_one_key(open_identity):
    """
    Whoever comes with it again, wherever, gets none.
    """
    here, there = open_identity(), open_identity()
    first = here.create_key_once(Grant(name="laptop"), "word")

    assert first is not None
    assert there.create_key_once(Grant(name="laptop"), "word") is None
    assert [record.id for record in there.list_keys()] == [first.key.id]


def test_the_only_administrator_is_known(identity, clock):
    """
    Of a tenant and a door, among the keys that live; a session is none, and knows its key.
    """
    admin = {"rights": [Right.ADMIN]}
    assert identity.only_admin("default", adapter="console") is None
    first = key_of(identity, **admin)
    key_of(identity)
    key_of(identity, tenant="acme", **admin)
    key_of(identity, adapters=["plane"], **admin)
    passing = key_of(identity, ttl=timedelta(hours=1), **admin)
    assert identity.only_admin("default", adapter="console") is None
    clock.advance(hours=1)
    session = identity.sign_in(
        identity.authenticate(first.bearer.reveal(), peer=PEER), adapter="console", ttl=timedelta(hours=1)
    )
    assert identity.only_admin("default", adapter="console") == first.key.id
    assert identity.parent_of(session.key.id) == first.key.id
    assert identity.parent_of(passing.key.id) is None
    identity.revoke(first.key.id)

    assert identity.only_admin("default", adapter="console") is None


def test_a_key_expires(identity, clock):
    """
    To the microsecond; the holder is told, since the secret was right.
    """
    bearer = key_of(identity, ttl=timedelta(hours=1)).bearer.reveal()
    clock.advance(hours=1, microseconds=-1)
    assert identity.authenticate(bearer, peer=PEER).expires == clock.now + 1

    clock.advance(microseconds=1)

    with pytest.raises(Unauthenticated, match="expired"):
        identity.authenticate(bearer, peer=PEER)


def test_use_is_noted_by_the_hour(identity, clock):
    """
    The first use at once, then at most once an hour.
    """
    bearer = key_of(identity).bearer.reveal()
    seen = []
    for _ in range(3):
        identity.authenticate(bearer, peer=PEER)
        seen.append(identity.list_keys()[0].used)
        clock.advance(microseconds=USED_EVERY // 2)

    assert seen == [clock.now - 3 * USED_EVERY // 2] * 2 + [clock.now - USED_EVERY // 2]


def test_the_owner_key_is_made_once(open_identity):
    """
    For the first who asks, whatever other keys there are; it opens everything of the default tenant.
    """
    first, second = open_identity(), open_identity()
    key_of(first)

    made = [identity.owner_key() for identity in (first, second, first)]

    assert made[1:] == [None, None]
    owner = second.authenticate(made[0].bearer.reveal(), peer=PEER)
    assert (owner.tenant, owner.spaces, owner.adapters, owner.rights) == ("default", None, None, set(Right))
    assert len(second.list_keys()) == 2


# ── nothing shows ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_a_hash_reaches_the_disk(tmp_path, identity):
    """
    No part of the secret is in any file of the data directory; the files are their owner's alone.
    """
    bearers = [
        identity.owner_key().bearer.reveal(),
        key_of(identity).bearer.reveal(),
        key_of(identity, agent="weston").bearer.reveal(),
    ]
    raw = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())

    assert len(raw) > 1_000
    assert [bearer for bearer in bearers if re.split("[_:]", bearer)[-1].encode() in raw] == []
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "data").glob("catalog.db*")} == {0}


def test_no_repr_and_no_error_shows_a_credential(identity, caplog):
    """
    Whatever is printed by accident.
    """
    caplog.set_level(logging.DEBUG)
    minted = key_of(identity, agent="weston")
    bearer = minted.bearer.reveal()
    token, _ = identity.mint_token(TokenClaims(sub="x"))
    secret = bearer.partition(":")[2]
    shown = [repr(minted), str(minted.bearer), f"{minted.bearer}", repr(token), repr(minted.key)]
    shown += [repr(Settings(jwt_secret="s" * 32))]
    shown += [repr(identity.authenticate(bearer, peer=PEER))]
    for wrong in (f"{bearer}0", f"other:{secret}", f"mp_{'0' * 16}_{secret[:43]}", f"{token.reveal()}A"):
        with pytest.raises(Unauthenticated) as refused:
            identity.authenticate(wrong, peer=PEER)
        shown += [str(refused.value), repr(refused.value)]

    everything = "\n".join([*shown, caplog.text])
    assert secret[:40] not in everything
    assert token.reveal().split(".")[2] not in everything
    assert "s" * 32 not in everything
    with pytest.raises(TypeError):
        pickle.dumps(minted.bearer)


@pytest.mark.parametrize(
    "secret",
    ["short", "s" * 31, "-----BEGIN PUBLIC KEY-----\nMIIB…\n-----END PUBLIC KEY-----", "ssh-rsa " + "A" * 40],
)
def test_a_weak_or_public_secret_stops_the_start(open_plane, secret):
    """
    Before anything is served, and without repeating it.
    """
    with pytest.raises(SettingsInvalid, match="jwt_secret") as refused:
        open_plane(jwt_secret=secret).identity()

    assert secret not in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [{"jwks_issuer": "i"}, {"jwks_audience": "a"}, {}],
    ids=["no audience", "no issuer", "neither"],
)
def test_an_issuer_needs_a_name_and_an_audience(open_plane, settings):
    """
    Without them a token that its issuer signed for someone else would open Memplane.
    """
    with pytest.raises(SettingsInvalid, match="jwks"):
        open_plane(jwks="keys.json", **settings).identity()


# ── whatever comes ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def crowded():
    """An installation with a key of each kind, and their bearers. Its clock goes on, so that nobody is locked out."""
    clock = HandClock()
    with (
        fresh_folder() as folder,
        Memplane.open(folder, embedder=None, clock=clock, settings=Settings(jwt_secret="s" * 32)) as plane,
        closing(plane.identity()) as identity,
    ):
        bearers = [
            identity.owner_key().bearer.reveal(),
            key_of(identity, agent="weston").bearer.reveal(),
            identity.mint_token(TokenClaims(sub="alice"), ttl_s=3_000_000)[0].reveal(),
        ]
        yield identity, bearers, clock


anything = st.one_of(
    st.text(max_size=80),
    st.from_regex(r"\Amp_[0-9a-f]{16}_[0-9A-Za-z]{43}\Z"),
    st.from_regex(r"\Aweston:[0-9a-f]{48}\Z"),
    st.from_regex(r"\AeyJ[\w-]{5,60}\.eyJ[\w-]{5,60}\.[\w-]{0,60}\Z"),
    st.text(alphabet=st.characters(exclude_categories=()), max_size=20),
    st.builds(lambda n: "mp_" + "a" * n, st.integers(0, 40_000)),
)


@given(anything)
def test_no_made_up_credential_gets_in(crowded, credential):
    """
    Any text at all is refused as a wrong credential is, and nothing else happens.
    """
    identity, _, clock = crowded
    clock.advance(seconds=4)

    with pytest.raises(Unauthenticated):
        identity.authenticate(credential, peer=PEER)


@given(st.data())
def test_no_near_miss_gets_in(crowded, data):
    """
    A valid credential with one character changed, dropped or added is not valid.
    """
    identity, bearers, clock = crowded
    clock.advance(seconds=4)
    bearer = data.draw(st.sampled_from(bearers))
    at = data.draw(st.integers(0, len(bearer) - 1))
    char = data.draw(st.sampled_from(string.ascii_letters + string.digits + "_:.- "))
    near = data.draw(
        st.sampled_from(
            [bearer[:at] + char + bearer[at + 1 :], bearer[:at] + bearer[at + 1 :], bearer + char]
        )
    )
    assume(near != bearer)

    with pytest.raises(Unauthenticated):
        identity.authenticate(near, peer=PEER)
    assert identity.authenticate(bearer, peer=PEER)


names = st.sampled_from(["a", "b", "c", "A", "ä"])


@given(
    spaces=st.none() | st.sets(names, min_size=1),
    adapters=st.none() | st.sets(st.sampled_from(sorted(ADAPTERS)), min_size=1),
    rights=st.sets(st.sampled_from(Right), min_size=1),
    right=st.sampled_from(Right),
    adapter=st.sampled_from(sorted(ADAPTERS)),
    space=st.none() | names,
)
def test_a_principal_opens_what_lies_in_all_of_its_scopes(
    crowded, spaces, adapters, rights, right, adapter, space
):
    """
    Door and right and space, each: what one allows no other can take back or add to, through the catalog and back.
    """
    identity, _, _ = crowded
    if Right.ADMIN in rights:
        spaces = None
    principal = principal_of(identity, spaces=spaces, adapters=adapters, rights=rights)
    allowed = (
        (adapters is None or adapter in adapters)
        and (right in rights or Right.ADMIN in rights)
        and (space is None or spaces is None or space in spaces)
    )

    try:
        principal.check(right, adapter=adapter, space=space)
    except Forbidden:
        assert not allowed
    else:
        assert allowed


def test_a_principal_without_rights_opens_nothing():
    """
    The default is no.
    """
    with pytest.raises(Forbidden):
        Principal(tenant="t", subject="s").check(Right.READ, adapter="mcp")
