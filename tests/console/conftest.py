"""The console behind a real server, signed in to by a real browser."""

import pytest

from browser import Watched, browsing
from console_pages import signed_in
from http_server import serving
from memplane.auth.keys import Grant
from memplane.auth.principal import Right


@pytest.fixture
def identity(open_identity):
    return open_identity()


@pytest.fixture
def key(identity):
    """One that may do everything."""
    return identity.create_key(Grant(name="owner", subject="default", rights=tuple(Right))).bearer.reveal()


@pytest.fixture
def console(plane, identity):
    with serving(plane, keys=identity) as running:
        yield running
        assert running.faults == []


@pytest.fixture
def client(console):
    """Keeps cookies, follows nothing."""
    return console.client(None, follow_redirects=False)


@pytest.fixture(scope="module")
def browser():
    """For one file: as long as it is open, the event loop that leads it is the only one of its thread."""
    with browsing() as opened:
        yield opened


@pytest.fixture
def open_page(browser, console, identity):
    """A page of a browser that is signed in; `open_page(dark=True, width=400)`. Nothing may go wrong in it."""
    opened = []

    def open_(*, dark=False, width=1_280, script=True):
        context = browser.new_context(
            color_scheme="dark" if dark else "light",
            viewport={"width": width, "height": 900},
            java_script_enabled=script,
            base_url=console.url,
        )
        context.add_cookies([signed_in(identity, console.url)])
        watched = Watched(context.new_page(), console.url)
        opened.append((context, watched))
        watched.page.goto("/console")
        return watched.page

    yield open_
    for context, watched in opened:
        context.close()
        assert watched.errors == []
        assert watched.foreign == []
