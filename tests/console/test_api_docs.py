"""The interactive documentation at /docs, in a real browser."""

import pytest

PATIENCE_MS = 60_000


@pytest.fixture
def docs(open_page):
    page = open_page()
    page.goto("/docs")
    page.wait_for_selector(".opblock", timeout=PATIENCE_MS)
    return page


def test_a_call_can_be_tried_on_the_page(docs, key):
    """
    With a key, the example of a body is sent to this server as it is and the answer is shown. Nothing is loaded from
    another host, and the content security policy stops nothing.
    """
    docs.get_by_role("button", name="Authorize").first.click()
    docs.get_by_label("auth-bearer-value").fill(key)
    docs.locator(".auth-container").first.get_by_role("button", name="Apply credentials").click()
    docs.get_by_role("button", name="Close").first.click()
    call = docs.locator(".opblock", has=docs.locator("[data-path='/retain']"))
    call.locator(".opblock-summary-control").click()
    call.get_by_role("button", name="Execute").click()
    answer = call.locator(".live-responses-table .response-col_status").nth(1)
    answer.wait_for(timeout=PATIENCE_MS)

    assert answer.inner_text().startswith("202")


def test_only_its_own_files_are_served(client):
    """
    The package holds more than the page needs.
    """
    policy = client.get("/docs").headers["content-security-policy"]
    found = {
        name: client.get(f"/docs/{name}").status_code
        for name in ("swagger-ui.css", "start.js", "..%2F__init__.py", "index.html")
    }

    assert "unsafe" not in policy
    assert found == {"swagger-ui.css": 200, "start.js": 200, "..%2F__init__.py": 404, "index.html": 404}
