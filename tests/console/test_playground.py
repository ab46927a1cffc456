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
    page.keyboard.press("/")
    page.keyboard.type("Where does Ana live?")
    page.keyboard.press("Shift+Enter")
    assert page.input_value("#q").endswith("?\n")
    page.keyboard.press("Enter")
    page.wait_for_selector("#told-text pre")

    assert "Porto" in page.inner_text("pre")
    assert "tokens" in page.inner_text("main")
    assert page.locator("tbody tr").count() >= 1
    assert page.locator("thead th").all_inner_texts()[:3] == ["Recalled", "Result", "Score"]
    assert page.locator("thead th").count() == 4
    assert page.locator("tbody td:nth-child(2)").first.bounding_box()["width"] > 300
    assert "words #1 · +" in page.locator("td.channels").first.inner_text()
    assert "alternate" in page.inner_text("#order")
    assert page.get_attribute("#slider", "aria-valuetext") == "now"
    page.locator("#slider").focus()
    with page.expect_response("**as_of=2026-11-15**"):
        page.keyboard.press("ArrowLeft")
    assert page.get_attribute("#slider", "aria-valuetext") == "2026-11-15"
    page.wait_for_url("**as_of=2026-11-15**")
    page.go_back()
    page.wait_for_url(lambda url: "as_of=2026" not in url)
    page.go_forward()
    page.wait_for_url("**as_of=2026-11-15**")
    page.reload()
    assert page.get_attribute("#slider", "aria-valuetext") == "2026-11-15"
    assert page.input_value("#slider") == "0"


def test_why_not_this_one(open_page, told):
    """
    One sentence about anything one expected.
    """
    page = open_page()
    page.goto("/console/space/@alice/recall?q=Where+does+Ana+live")
    page.fill("#id", "no-such-id")
    page.get_by_role("button", name="Explain", exact=True).click()

    assert "Nothing with this id" in page.inner_text(".notice")


def test_looking_is_no_use(open_page, told, console):
    """
    What a person tries out does not rise in the memory of an agent.
    """
    page = open_page()
    for _ in range(3):
        page.goto("/console/space/@alice/recall?q=Where+does+Ana+live")

    assert console.plane._parts.access_counts.take(told.tenant, told.owner) == []


def test_as_it_was_then(open_page, told):
    """
    Before anything was said, nothing is told.
    """
    page = open_page()
    page.goto("/console/space/@alice/recall?q=Where+does+Ana+live&as_of=2020-01-01")

    assert "Porto" not in page.inner_text("pre")
