"""The ledger as it grows, and one entry of it."""

import pytest

TIMELINE = "/console/space/@alice/timeline"


@pytest.fixture
def told(plane):
    space = plane.space("alice")
    space.retain("I moved to Lisbon last week, and it rains", conversation="c1", id="moved")
    space.retain("Noted.", role="assistant", conversation="c2")
    space.put("theme", "<i>dark</i>")
    space.enrich()
    return space


def test_what_came_in_comes_up_live(open_page, told):
    """
    Without loading the page anew.
    """
    page = open_page()
    page.goto(TIMELINE)
    assert page.locator("ol.rows > li").count() == 3
    told.retain("Something new <b>was</b> said")
    page.wait_for_selector("text=Something new <b>was</b> said")

    assert page.locator("ol.rows > li").count() == 4


def test_narrowing(open_page, told):
    """
    By conversation, by role, by what it was, by time.
    """
    page = open_page()
    for query, count in (
        ("conversation=c1", 1),
        ("role=assistant", 1),
        ("op=put", 1),
        ("since=2030-01-01", 0),
    ):
        page.goto(f"{TIMELINE}?{query}")
        assert page.locator("ol.rows > li").count() == count


def test_a_turn_opens_with_what_was_derived_from_it(open_page, told):
    """
    The words that something was read out of are marked where they stand.
    """
    page = open_page()
    page.goto(f"{TIMELINE}/@moved")
    with page.expect_navigation():
        page.locator("a.quoted").first.click()

    assert "Lisbon" in page.inner_text("h1")


def test_a_forgotten_entry_is_on_record(open_page, told):
    """
    That it was there can be seen, and nothing of what it said.
    """
    told.forget(entries=["moved"])
    page = open_page()
    page.goto(f"{TIMELINE}/@moved")

    assert "forgotten" in page.inner_text("main")
    assert "Lisbon" not in page.inner_text("main")
