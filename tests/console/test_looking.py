"""Home, the graph, two days side by side, and sync: in a real browser, with memory in it that tries to be more than text."""

from datetime import timedelta

import pytest
from tests.conftest import a_memory

from memplane.auth.keys import Grant
from memplane.auth.principal import Right
from memplane.console.drawing import drawn
from memplane.ledger.payloads import TurnPayload, encode
from memplane.space.summary import BEHIND_ENTRIES
from memplane.sync.opening import open_store
from memplane.sync.remote_state import note_synced, save_target
from memplane.sync.sync import Sync
from memplane.types import NewEntry, Op

SPACE = "/console/space/@alice"
EVIL = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>\u202etxt.exe\u2066 {{ 7*7 }} & \"quoted\" 'too'"


@pytest.fixture
def alice(plane, clock):
    """Somebody who moved, three days after she said where she lives."""
    space = plane.space("alice")
    space.retain("I live in Lisbon.", at=clock.moment)
    space.retain("I work at Siemens.", at=clock.moment)
    space.retain("Siemens is based in Munich.", at=clock.moment)
    space.enrich()
    clock.advance(days=3)
    space.retain("Actually, I moved to Berlin.", at=clock.moment)
    space.enrich()
    return space


@pytest.fixture
def evil(alice, clock):
    """A fact whose every part is hostile."""

    entry = alice.retain(EVIL)
    fields = {
        "subject": EVIL.casefold(),
        "predicate": EVIL,
        "object_text": EVIL,
        "created_at": clock.moment,
        "updated_at": clock.moment,
    }
    made = a_memory(EVIL, id="evil", seq=entry.seq, **fields)
    more = a_memory(EVIL, id="evil-too", seq=entry.seq, **{**fields, "subject": "user"})
    with alice._context.store() as store:
        store.write(lambda writer: writer.memories.add([made, more]))
    gone = alice.retain("to be forgotten")
    alice.forget(entries=[gone.id], reason=EVIL)
    return alice


def is_text(page, path):
    page.goto(path)
    assert page.evaluate("window.pwned") is None, path
    assert "\u202e" not in page.content(), path
    assert "⟨U+202E⟩" in page.content(), path


def test_home_says_what_needs_a_person(open_page, plane, clock):
    """
    Each count leads to the page where it is seen to; activity is told in words too.
    """
    space = plane.space("alice")
    space.retain("I live in Lisbon.", at=clock.moment)
    space.retain("I live in Rome.", at=clock.moment)
    space.enrich()
    page = open_page()
    row = page.get_by_role("row", name="alice")

    assert row.get_by_text("well").count() == 1
    assert "in 30 days, most on" in row.get_by_role("img").get_attribute("aria-label")
    row.get_by_role("link", name="1 conflict").click()
    page.wait_for_url("**/inbox")


def test_home_says_who_is_behind(client, open_page, plane):
    """
    What waits is counted; much of it is told as such.
    """
    space = plane.space("alice")
    for number in range(3):
        space.retain(f"number {number}")
    page = open_page()
    assert page.get_by_role("row", name="alice").get_by_text("degraded").count() == 1
    said = [TurnPayload(role="user", content=f"said {number}", at=number) for number in range(BEHIND_ENTRIES)]
    space.ledger.load([NewEntry(f"t{number}", Op.TURN, encode(it)) for number, it in enumerate(said)])
    page.reload()

    assert page.get_by_role("row", name="alice").get_by_text("behind").count() == 1
    with page.expect_navigation():
        page.get_by_role("link", name="alice").click()
    assert page.get_by_text("Many entries are pending").count() == 1


def test_many_spaces_are_paged_and_found(open_page, plane):
    """
    So many a page, and by name.
    """
    for number in range(23):
        plane.space(f"team {number:02}").store("fact", "something")
    page = open_page()
    assert page.locator("tbody tr").count() == 15
    page.get_by_role("link", name="Next").click()
    page.wait_for_url("**page=2")
    assert page.locator("tbody tr").count() == 8
    page.keyboard.press("/")
    page.keyboard.type("TEAM 07")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=TEAM*")

    assert [row.inner_text() for row in page.locator("tbody th").all()] == ["team 07"]


def test_a_key_sees_its_own_spaces_only(client, identity, plane):
    """
    Names of others are not told, nor that there are any.
    """
    for name in ("alice", "bob"):
        plane.space(name).store("fact", "something")
    minted = identity.create_key(Grant(name="reader", spaces=["bob"], rights=(Right.READ,))).bearer.reveal()
    word = client.get("/console/sign-in").text.partition('name="_word" value="')[2][:32]
    client.post("/console/sign-in", data={"key": minted, "_word": word})
    answer = client.get("/console?q=a").text + client.get("/console").text

    assert "alice" not in answer
    assert "bob" in answer
    assert "1 in total" in answer


def test_the_graph_is_as_it_was_then(open_page, alice, clock):
    """
    What was replaced is shown for the day on which it held, with when that ended; nodes are reached by key and lead on.
    """
    page = open_page()
    page.goto(f"{SPACE}/graph")
    assert page.locator("svg.graph").get_by_text("Berlin").count()
    assert page.locator("svg.graph").get_by_text("Lisbon").count() == 0
    page.fill("#as_of", f"{clock.moment - timedelta(days=1):%Y-%m-%d}")
    page.click("text=Show")
    page.wait_for_url("**as_of=**")
    row = page.get_by_role("row", name="lives_in")

    assert "Lisbon" in row.inner_text()
    assert f"{clock.moment:%Y-%m-%d}" in row.inner_text()
    assert page.locator("svg.graph .edge.past").count() == 1
    page.locator("svg.graph a", has_text="Lisbon").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**subject=lisbon**")
    assert page.get_by_role("row", name="user lives_in Lisbon").count() == 1


def test_the_graph_is_drawn_the_same_way(client, plane, alice):
    """
    The same facts, the same picture.
    """
    graph = alice.overview.graph("user")
    assert graph == alice.overview.graph(" USER ")
    assert drawn(graph) == drawn(alice.overview.graph("user"))
    assert [memory.object_text for memory in graph.further] == ["Munich"]
    assert [memory.subject for memory in alice.overview.graph("siemens").naming] == ["user"]
    assert alice.overview.graph("nobody").all == ()
    assert plane.space("bob").overview.graph() is None


def test_a_telephone_has_the_list(open_page, evil):
    """
    The picture would be too small to read; the list says the same, and nothing is too wide.
    """
    page = open_page(width=400, dark=True)
    for path in ("", "/graph", f"/graph?subject={'user'}", "/compare", "/sync"):
        page.goto(SPACE + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, path
    page.goto(f"{SPACE}/graph")

    assert not page.locator("svg.graph").is_visible()
    assert page.locator("table").is_visible()
    table = page.get_by_role("table", name="Facts")
    assert table.get_by_role("row").count() == table.locator("tr").count() >= 2
    assert table.get_by_role("columnheader").count() == 5
    assert table.get_by_role("rowheader").count() == table.get_by_role("row").count() - 1
    told = """([cell, before]) => getComputedStyle(document.querySelector(cell), before).content"""
    assert page.evaluate(told, ["tbody th", "::before"]) == '"Subject"'
    assert page.evaluate(told, ["tbody td.said", "::before"]) == '"Object"'
    where = page.locator(".tabs [aria-current]").bounding_box()
    assert where["x"] >= 0
    assert where["x"] + where["width"] <= 400


def test_what_a_line_is_called_is_in_front_of_all_lines(open_page, alice):
    """
    Whatever is drawn later lies above: a label that another line is drawn over cannot be read.
    """
    page = open_page()
    page.goto(f"{SPACE}/graph")
    above = page.evaluate(
        """[...document.querySelectorAll("svg.graph .label")].map((label) =>
            [...document.querySelectorAll("svg.graph path")].every((line) =>
                line.compareDocumentPosition(label) & Node.DOCUMENT_POSITION_FOLLOWING))"""
    )

    assert above
    assert all(above)


def test_a_row_of_home_is_level(open_page, alice):
    """
    The picture of the days, the figures and the name stand at one height.
    """
    page = open_page()
    page.goto("/console")
    middles = page.evaluate(
        """[...document.querySelectorAll("tbody tr:first-child > * > *")].map((it) => {
            const box = it.getBoundingClientRect();
            return (box.top + box.bottom) / 2;
        })"""
    )

    assert max(middles) - min(middles) <= 3


def test_facts_are_text_wherever_they_are_drawn(open_page, evil, plane):
    """
    A name in a picture, in a list, in a receipt, of a space.
    """
    plane.space(EVIL).retain("hello")
    page = open_page()
    for path in (f"{SPACE}/graph?subject=user", f"{SPACE}/graph", f"{SPACE}/compare", "/console"):
        is_text(page, path)
    page.goto(f"{SPACE}/graph?subject=user")
    page.locator("svg.graph a", has_text="<script>").first.click()
    page.wait_for_url("**subject=%3Cscript**")
    assert page.evaluate("window.pwned") is None


def test_two_days_side_by_side(open_page, alice, clock):
    """
    What changed and into what, what is new, and of what was forgotten only what its receipt says.
    """
    gone = alice.retain("The secret of the attic is a violin", at=clock.moment)
    alice.retain("I like chess.", at=clock.moment)
    alice.forget(entries=[gone.id], reason="asked for it")
    alice.enrich()
    page = open_page()
    begin, end = (f"{clock.moment - timedelta(days=days):%Y-%m-%d}" for days in (1, 0))
    page.goto(f"{SPACE}/compare?begin={begin}&end={end}")
    changed, learned = page.locator("table.beside").all()

    assert "Lisbon" in changed.inner_text()
    assert "Berlin" in changed.inner_text()
    assert "chess" in learned.inner_text()
    assert "Berlin" not in learned.inner_text()
    assert "asked for it" in page.inner_text("main")
    assert "violin" not in page.content()
    page.goto(f"{SPACE}/compare?begin={end}&end={begin}")
    assert page.input_value("#begin") == begin


def test_days_that_are_none(client, console, key, alice):
    """
    What cannot be read as a day is refused with what to give instead; the ends of time are days too.
    """
    word = client.get("/console/sign-in").text.partition('name="_word" value="')[2][:32]
    client.post("/console/sign-in", data={"key": key, "_word": word})

    assert client.get(f"{SPACE}/compare?begin=soon").status_code == 422
    assert client.get(f"{SPACE}/graph?as_of=%00").status_code == 422
    for query in ("begin=0001-01-01&end=9999-12-31", "page=99999999", "page=-4", "end=0001-01-01"):
        assert client.get(f"{SPACE}/compare?{query}").status_code == 200, query
    assert client.get(f"{SPACE}/graph?as_of=9999-12-31").status_code == 200
    assert client.get(f"{SPACE}/graph?from=%F4%8F%BF%BF").status_code == 200


def test_sync_says_what_to_do_and_what_waits(open_page, alice, tmp_path, clock):
    """
    Where none is set up, how that is done; then when it was pushed, and what waits.
    """
    page = open_page()
    page.goto(f"{SPACE}/sync")
    assert "--to URL" in page.inner_text("main")
    place = tmp_path / "place"
    place.mkdir()
    Sync(alice, open_store(str(place), {}), tmp_path / "data", clock=clock).push()
    save_target(alice, str(place))
    page.reload()
    assert page.get_by_text("up to date").count() == 1
    assert page.get_by_text("default remote").count() == 1
    assert f"{clock.moment:%Y-%m-%d %H:%M}" in page.inner_text("main")
    alice.retain("one more")
    page.reload()

    assert page.get_by_text("push pending").count() == 1


def test_sync_shows_no_credential(open_page, alice):
    """
    Neither of where the space goes nor of where it went.
    """
    secret = "hunter2hunter2"
    for scheme in ("https", "s3"):
        url = f"{scheme}://ann:{secret}@place.example/alice?sig={secret}#{secret}"
        save_target(alice, url)
        note_synced(alice, url, at=0, pushed=True)
    page = open_page()
    page.goto(f"{SPACE}/sync")

    assert "place.example/alice" in page.inner_text("main")
    assert secret not in page.content()
    assert "ann" not in page.inner_text("main")
