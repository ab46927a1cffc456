"""Who gets in, how, and for how long."""

import html
import re
from datetime import timedelta

import pytest

from http_server import serving
from memplane.auth.keys import Grant
from memplane.console.routes import TABS

WORD = re.compile(r'name="_word" value="([0-9a-f]+)"')
MINUTES = timedelta(minutes=5)


def ticket_of(identity):
    return identity.ticket(adapter="console", ttl=MINUTES).reveal()


def word_in(answer):
    return WORD.search(answer.text)[1]


def sign_in(client, key):
    word = word_in(client.get("/console/sign-in"))
    return client.post("/console/sign-in", data={"key": key, "_word": word})


def test_a_stranger_is_led_to_the_door(client):
    """
    Nothing is shown without a session, and what a page asks for in parts is told where to go.
    """
    answer = client.get("/console")
    part = client.get("/console", headers={"hx-request": "true"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/console/sign-in")
    assert part.headers["hx-redirect"] == "/console/sign-in"


@pytest.mark.parametrize(
    "asked", ["/console/space/@alice/audit?verify=yes", "/console/space/@a%2Fb%20%C3%A9", "/console?q=a%26b"]
)
def test_signing_in_leads_to_where_one_was_going(client, key, plane, asked):
    """
    Through a wrong key, too, and for a part of a page to the page it is on; a form that was sent is not sent again.
    """
    led = client.get(asked).headers["location"]
    part = client.get("/console", headers={"hx-request": "true", "hx-current-url": f"http://x{asked}"})
    assert part.headers["hx-redirect"] == led
    assert client.post(asked.partition("?")[0]).headers.get("location") in (None, "/console/sign-in")
    shown = client.get(led)
    for tried in ("mp_wrong", key):
        to = html.unescape(re.search(r'name="to" value="([^"]*)"', shown.text)[1])
        assert to == asked
        shown = client.post("/console/sign-in", data={"key": tried, "_word": word_in(shown), "to": to})

    assert shown.status_code == 200
    assert f'href="{html.escape(asked)}"' in shown.text


@pytest.mark.parametrize(
    "asked",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example/console",
        "/console/../../evil",
        "/console/%2e%2e/%2E./evil",
        "/console//evil.example",
        "/console\\evil",
        "/console/\\evil",
        "/console/space\r\nx: y",
        "/consolevil",
        "/console@evil.example",
        "/console.evil.example",
        "console/keys",
        "javascript:alert(1)",
        "/docs",
        "/console/sign-in",
        "/console/enter?ticket=x",
        "/console/space/@a#\u202e",
        "/console/" + "x" * 3_000,
    ],
)
def test_signing_in_leads_nowhere_else(client, key, asked):
    """
    Neither to another site nor to anything but a page, whatever a link to the door says.
    """
    shown = client.get("/console/sign-in", params={"to": asked})
    entered = client.post("/console/sign-in", data={"key": key, "_word": word_in(shown), "to": asked})

    assert 'name="to" value="/console"' in shown.text
    assert 'content="0;url=/console"' in entered.text


def test_a_key_signs_in(client, key):
    """
    The cookie is out of reach of scripts and other sites, and is not the key.
    """
    answer = sign_in(client, key)
    cookie = answer.headers["set-cookie"]

    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert key not in cookie
    assert client.get("/console").status_code == 200


def test_a_wrong_key_is_told(client):
    """
    On the same page, in words, without a session.
    """
    answer = sign_in(client, "mp_0000000000000000_" + "x" * 43)

    assert answer.status_code == 401
    assert "not valid" in answer.text
    assert client.get("/console").status_code == 303


def test_a_link_works_once(console, identity):
    """
    Whoever finds it later, in a history or a log, gets nowhere.
    """
    ticket = ticket_of(identity)
    first, second = (console.client(None) for _ in range(2))

    assert "Continue" in first.get("/console/enter", params={"ticket": ticket}).text
    assert first.get("/console").status_code == 200
    assert second.get("/console/enter", params={"ticket": ticket}).status_code == 401


def test_a_link_does_not_live_long(client, identity, clock):
    """
    A quarter of an hour is enough to click on it.
    """
    ticket = ticket_of(identity)
    clock.advance(minutes=6)

    assert client.get("/console/enter", params={"ticket": ticket}).status_code == 401


def test_a_session_ends_with_its_key(client, identity):
    """
    Revoking a key ends what was signed in to with it.
    """
    minted = identity.create_key(Grant(name="laptop"))
    sign_in(client, minted.bearer.reveal())
    assert client.get("/console").status_code == 200
    identity.revoke(minted.key.id)

    assert client.get("/console").status_code == 303


def test_sessions_are_in_no_list_of_keys(client, identity, key):
    """
    Whoever looks through the keys sees those that somebody keeps.
    """
    ticket_of(identity)
    sign_in(client, key)

    assert [record.name for record in identity.list_keys()] == ["owner"]


def test_a_session_ends_by_itself_and_by_signing_out(client, key, clock):
    """
    After half a day, or when asked; the cookie is worth nothing then.
    """
    sign_in(client, key)
    cookie = client.cookies["memplane_console"]
    client.post("/console/sign-out", data={"_word": word_in(client.get("/console"))})
    client.cookies.set("memplane_console", cookie, domain="127.0.0.1", path="/console")
    assert client.get("/console").status_code == 303
    client.cookies.clear()
    sign_in(client, key)
    clock.advance(hours=13)

    assert client.get("/console").status_code == 303


@pytest.mark.parametrize("sent", [{}, {"_word": "0" * 32}])
def test_a_form_from_elsewhere_is_refused(client, key, sent):
    """
    A page of another site can send a form, but does not know the word.
    """
    sign_in(client, key)

    assert client.post("/console/sign-out", data=sent).status_code == 403
    assert client.get("/console").status_code == 200


def test_a_session_opens_the_console_only(client, key):
    """
    A cookie that was taken opens no other door.
    """
    sign_in(client, key)
    session = client.cookies["memplane_console"]

    answer = client.post("/recall", json={}, headers={"authorization": f"Bearer {session}"})
    assert answer.status_code == 403


def test_a_key_of_one_space_sees_one_space(client, identity, plane):
    """
    Neither in the list nor by its address is another one there.
    """
    for owner in ("alice", "bob"):
        plane.space(owner).store("fact", f"of {owner}")
    sign_in(client, identity.create_key(Grant(name="one", spaces=["alice"])).bearer.reveal())

    assert "bob" not in client.get("/console").text
    assert client.get("/console/space/@alice").status_code == 200
    assert client.get("/console/space/@bob").status_code == 403


def test_without_credentials_nobody_signs_in(plane):
    """
    Where nobody is asked for a key, the console is open, and forms still need the word.
    """
    with serving(plane, auth=False) as running:
        client = running.client(None, follow_redirects=False)

        assert client.get("/console").status_code == 200
        assert client.post("/console/sign-out", data={}).status_code == 403


def test_where_an_address_leads(client, key, plane):
    """
    The first one that a person sees is that of the server; what is mistyped says where the pages are, and each page says in
    its title which one it is.
    """
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    assert client.get("/", headers=browser).headers["location"] == "/console"
    assert client.get("/console/").headers["location"] == "/console"
    assert client.get("/").json()["console"] == "/console"
    missing = client.get("/console/nowhere")
    assert (missing.status_code, "/docs" in missing.text) == (404, False)
    space = plane.space("alice")
    memory = space.store("fact", "Has a cat")
    sign_in(client, key)
    here = "/console/space/@alice"
    pages = ["/console", here, *(f"{here}/{tab}" for tab, _ in TABS if tab), f"{here}/memories/@{memory.id}"]
    titles = [re.search(r"<title>(.*)</title>", client.get(page).text)[1] for page in pages]

    assert len(set(titles)) == len(titles)
    assert titles[:2] == ["Spaces · Memplane", "Overview · alice · Memplane"]
    assert titles[-1] == "Has a cat · alice · Memplane"


def test_every_answer_says_what_a_page_may_do(client, key):
    """
    No script but ours, no frame, no other host.
    """
    sign_in(client, key)
    policy = client.get("/console").headers["content-security-policy"]

    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
