"""What holds for every page, in a real browser."""

from console_pages import signed_in


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


def test_what_a_part_of_a_page_is_refused_is_said(browser, console, identity):
    """
    In the words of the refusal, on the page that asked; what was typed stays.
    """
    context = browser.new_context(base_url=console.url)
    context.add_cookies([signed_in(identity, console.url)])
    page = context.new_page()
    page.goto("/console/keys")
    page.fill("#name", "x" * 300)
    page.click("text=Create key")
    page.wait_for_function("() => document.getElementById('told').innerText.startsWith('name: ')")

    assert page.input_value("#name") == "x" * 300
    assert identity.list_keys() == []
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
