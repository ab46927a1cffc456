"""The inbox and the keys: what a person decides."""

from memplane.identity.keys import Grant
from memplane.identity.principal import Right

SPACE = "/console/space/@alice"


def test_the_keyboard_settles_a_conflict(open_page, plane):
    """
    One key moves, one key decides.
    """
    space = plane.space("alice")
    space.retain("I live in Lisbon.")
    space.retain("I live in Rome.")
    space.enrich()
    assert len(space.conflicts()) == 1
    page = open_page()
    page.goto(f"{SPACE}/inbox")
    page.keyboard.press("j")
    page.keyboard.press("1")
    page.wait_for_selector("text=Nothing contradicts anything.")

    assert space.conflicts() == []


def test_a_key_is_made_and_ended(open_page, identity):
    """
    Its secret is shown once; revoking asks first.
    """
    page = open_page()
    page.goto("/console/keys")
    page.fill("#name", "laptop")
    page.click("text=Make it")
    secret = page.inner_text(".notice pre")
    assert identity.authenticate(secret, peer="").rights
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("row", name="laptop").get_by_role("button").click()
    page.wait_for_selector("text=revoked")

    assert next(key for key in identity.list_keys() if key.name == "laptop").revoked


def test_keys_are_for_administrators(client, identity):
    """
    Whoever may only read sees none of them.
    """
    minted = identity.create_key(Grant(name="reader", rights=(Right.READ,))).bearer.reveal()
    word = client.get("/console/sign-in").text.partition('name="_word" value="')[2][:32]
    client.post("/console/sign-in", data={"key": minted, "_word": word})

    assert client.get("/console/keys").status_code == 403


def test_a_key_confirms_a_draft(open_page, plane, clock):
    """
    What compaction proposes becomes a memory, or does not.
    """
    space = plane.space("alice")
    space.retain("Always answer me in French, please.", at=clock.moment)
    space.retain("I prefer short answers.", at=clock.moment)
    space.enrich()
    day = f"{clock.moment:%Y-%m-%d}"
    clock.advance(days=1)
    space.compact(day=day)
    assert len(space.learnings()) == 2
    page = open_page()
    page.goto(f"{SPACE}/inbox")
    page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("y")
    assert page.locator("section.card").count() == 1
    page.keyboard.press("j")
    page.keyboard.press("n")
    page.wait_for_selector("text=Nothing waits.")

    assert sorted(learning.standing for learning in space.learnings()) == ["confirmed", "rejected"]
