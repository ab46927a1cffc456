"""What holds for every page, in a real browser."""


def test_signing_in_by_hand(browser, console, key):
    """
    A person with a key gets in with the keyboard alone.
    """
    context = browser.new_context(base_url=console.url)
    page = context.new_page()
    page.goto("/console")
    page.keyboard.type(key)
    page.keyboard.press("Enter")
    page.wait_for_url("**/console")

    assert page.inner_text("h1") == "Spaces"
    context.close()


def test_names_of_spaces_are_data(open_page, plane):
    """
    Whatever a space is called, its page is its own and its name is text.
    """
    names = ["../..", "<b>bold</b>", "a/b?c#d", "\u202egnp.exe", "."]
    for name in names:
        plane.space(name).store("fact", "something")
    page = open_page()

    for name in names:
        page.goto("/console")
        shown = name.replace("\u202e", "⟨U+202E⟩")
        with page.expect_navigation():
            page.get_by_role("link", name=shown, exact=True).click()
        assert page.inner_text("h1") == shown
