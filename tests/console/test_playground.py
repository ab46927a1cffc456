"""Trying a recall out."""

import pytest


@pytest.fixture
def told(plane, clock):
    space = plane.space("alice")
    space.retain("My sister Ana lives in Porto", conversation="c1")
    space.retain("<img src=x onerror=alert(1)> is what I typed", conversation="c1")
    space.enrich()
    return space


def test_what_would_be_told_and_why(open_page, told):
    """
    The text, its tokens, what each channel gave, and what was left out with its reason.
    """
    page = open_page()
    page.goto("/console/space/@alice/recall")
    page.fill("#q", "Where does Ana live?")
    page.click("main button")
    page.wait_for_selector("#told-text pre")

    assert "Porto" in page.inner_text("pre")
    assert "tokens" in page.inner_text("main")
    assert page.locator("tbody tr").count() >= 1


def test_why_not_this_one(open_page, told):
    """
    One sentence about anything one expected.
    """
    page = open_page()
    page.goto("/console/space/@alice/recall?q=Where+does+Ana+live")
    page.fill("#id", "no-such-id")
    page.get_by_role("button", name="Ask", exact=True).click()

    assert "Nothing with this id" in page.inner_text(".notice")


def test_looking_is_no_use(open_page, told, console):
    """
    What a person tries out does not rise in the memory of an agent.
    """
    page = open_page()
    for _ in range(3):
        page.goto("/console/space/@alice/recall?q=Where+does+Ana+live")

    assert console.plane._parts.uses.take(told.tenant, told.owner) == []


def test_as_it_was_then(open_page, told):
    """
    Before anything was said, nothing is told.
    """
    page = open_page()
    page.goto("/console/space/@alice/recall?q=Where+does+Ana+live&as_of=2020-01-01")

    assert "Porto" not in page.inner_text("pre")
