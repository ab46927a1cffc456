"""Trying a recall out."""

from urllib.parse import urlencode

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
    assert "of 2,000 tokens" in page.inner_text("main")
    assert "Memory is likely to help with this turn (probability " in page.inner_text("#need")
    assert "words " in page.inner_text("#signals")
    assert page.locator("tbody tr").count() >= 1
    assert page.locator("thead th").all_inner_texts()[:3] == ["Returned", "Result", "Probability"]
    assert page.locator("thead th").count() == 4
    assert page.locator("tbody td:nth-child(2)").first.bounding_box()["width"] > 300
    assert "words #1 · +" in page.locator("td.channels").first.inner_text()
    assert "most probable first" in page.inner_text("#order")
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


def test_the_same_selection_as_an_agent_gets(open_page, told):
    """
    The text to the letter, every line of memory linked to its source, and the same marks in the ranking, however many
    were ranked.
    """
    for number in range(40):
        told.retain(f"Ana lives near the garden number {number}", conversation="c1")
    told.store("fact", "Ana lives with a parrot")
    told.enrich()
    query = "Where does Ana live? Who lives near a garden or with a parrot?"
    result = told.recall(query, counted=False)
    page = open_page()
    page.goto(f"/console/space/@alice/recall?{urlencode({'q': query})}")

    assert page.locator("pre").text_content() == result.text
    hrefs = [link.get_attribute("href") for link in page.locator("pre a").all()]
    assert [href.rpartition("/")[2] for href in hrefs] == [f"@{line.ids[0]}" for line in result.lines]
    assert page.locator("pre a").all_inner_texts() == [line.text for line in result.lines]
    rows = page.locator("tbody tr td:first-child").all_inner_texts()
    assert len(rows) == len(result.hits) > 40
    assert sum("text" in row for row in rows) == len(result.lines)
    assert sum("blocks" in row for row in rows) == len(result.blocks) == 8
    page.locator("pre a").first.click()
    page.wait_for_url(f"**{hrefs[0]}")
    assert page.locator("h1").count() == 1


def test_a_greeting_returns_nothing(open_page, told):
    """
    The reason is on the page, and nothing is marked as returned.
    """
    page = open_page()
    page.goto("/console/space/@alice/recall?q=hi")

    assert "Memory is not likely to help with this turn" in page.inner_text("#need")
    assert page.inner_text("pre") == "(nothing)"
    assert {*page.locator("tbody tr td:first-child").all_inner_texts()} == {"why not?"}
    page.locator("tbody tr td:first-child a").first.click()
    page.wait_for_selector(".notice")
    assert "so nothing is returned. It ranks 1 " in page.inner_text(".notice")


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
