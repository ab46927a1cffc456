"""Looking through memories, one with its evidence, editing and forgetting."""

import pytest

MEMORIES = "/console/space/@alice/memories"


@pytest.fixture
def told(plane):
    space = plane.space("alice")
    space.retain("I moved to Lisbon last week, and it rains", conversation="c1")
    space.store("preference", "Prefers <script>alert('tea')</script> over coffee", tags=["drinks"])
    space.put("preferences/theme", "dark")
    space.enrich()
    return space


def test_words_find_as_one_types(open_page, told):
    """
    Without a press on a button, and with the keyboard alone.
    """
    page = open_page()
    page.goto(MEMORIES)
    page.keyboard.press("/")
    page.keyboard.type("lisb")
    page.wait_for_url("**q=lisb&**")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    assert "Lisbon" in page.inner_text("tbody")
    page.fill("#q", "coffee")
    page.wait_for_url("**q=coffee**")
    page.wait_for_function("() => document.querySelectorAll('tbody tr').length === 1")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/memories/@**")

    assert page.inner_text("h1") == "Prefers <script>alert('tea')</script> over coffee"


def test_a_replaced_memory_names_what_is_current(open_page, told):
    """
    In the list and in what a search finds, with a link.
    """
    old = next(memory for memory in told.memories() if memory.kind == "preference" and not memory.key)
    new = told.store("preference", "Prefers cocoa", supersedes=old.id)
    page = open_page()
    for path in (MEMORIES, f"{MEMORIES}?q=coffee"):
        page.goto(path)
        row = page.locator("tbody tr", has_text="over coffee")

        assert "now: Prefers cocoa" in row.inner_text()
        assert row.locator(f"a[href*='{new.id}']").count() == 1


def test_evidence_is_shown_where_it_stands(open_page, told):
    """
    The quote is marked within what was said.
    """
    derived = next(memory for memory in told.memories() if memory.derived and "Lisbon" in memory.text)
    page = open_page()
    page.goto(f"{MEMORIES}/@{derived.id}")

    assert page.inner_text("blockquote mark") == derived.quote
    assert page.inner_text("blockquote p >> nth=0") == "I moved to Lisbon last week, and it rains"


def test_an_edit_replaces(open_page, told):
    """
    The new one takes its place, and both are in the chain.
    """
    old = next(memory for memory in told.memories() if not memory.derived and memory.key is None)
    page = open_page()
    page.goto(f"{MEMORIES}/@{old.id}")
    page.click("summary")
    page.fill("#text", "Prefers water")
    page.click("text=Save")
    page.wait_for_selector("text=Versions")

    assert page.inner_text("h1") == "Prefers water"
    assert told.memory(old.id).state == "superseded"


def test_forgetting_asks_first(open_page, told):
    """
    It says what goes with it, and does nothing before a second press.
    """
    memory = next(memory for memory in told.memories() if memory.key == "preferences/theme")
    page = open_page()
    page.goto(f"{MEMORIES}/@{memory.id}")
    page.click("text=Forget …")
    assert told.memory(memory.id)
    page.click("text=Keep it")
    with page.expect_navigation():
        page.click("text=Forget …")
    assert "Facts" in page.inner_text("main")
    assert told.memory(memory.id)


def test_without_scripts_everything_works_too(open_page, told):
    """
    Filters are a form like any other.
    """
    page = open_page(script=False)
    page.goto(MEMORIES)
    page.select_option("#kind", "preference")
    with page.expect_navigation():
        page.click("text=Search")

    assert page.locator("tbody tr").count() == 1
